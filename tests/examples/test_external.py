"""Examples of external functions: every plan of each is right, and what does which part."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from examples.external import block_sparse, own_vectors, sddmm, tttp
from t2s import external


def test_sddmm_on_three_machines() -> None:
    given = sddmm.inputs()
    found = sddmm.results(given)
    expected = given["B"] * (given["C"] @ given["D"])
    assert all(np.array_equal(one.output, expected) for one in found.values())
    array, blas, loops = found.values()
    stored = int(np.count_nonzero(given["B"]))
    assert (array.cycles, blas.cycles, loops.cycles) == (4398 + stored + 86, 0, 0)
    assert array.times.transfers > array.times.simulated > 0
    assert [[step.calls for step in one.steps] for one in (blas, loops)] == [[1, 0], [0]]


def test_tttp() -> None:
    given = tttp.inputs(extent=5, rank=3, density=0.1)
    expected = given["B"] * np.einsum("im,jm,km,lm->ijkl", *(given[name] for name in "CDEF"))
    for name, result in tttp.results(given).items():
        assert np.array_equal(result.output, expected), name
        assert sum(step.calls for step in result.steps) == (0 if name == "loops alone" else 3)


def test_block_sparse() -> None:
    given = block_sparse.inputs(blocks=3, size=2)
    expected = np.einsum("ikjl,jlmn->ikmn", given["B"], given["C"])
    for name, result in block_sparse.results(given).items():
        assert np.array_equal(result.output, expected), name
        assert sum(step.calls for step in result.steps) == (0 if name == "loops alone" else 27)


def _eights(function: external.ExternalFunction) -> None:
    assert str(external.check(function, 20)).endswith("all right")
    for count in (8, 19):
        result = own_vectors.summed(function, count)
        numbers = np.arange(count)
        assert np.array_equal(result.output, numbers + numbers**2)
        assert result.steps[0].calls == -(-count // 8)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_vectors_from_c(tmp_path: Path) -> None:
    _eights(own_vectors.from_c(tmp_path))


def test_vectors_without_a_compiler() -> None:
    _eights(own_vectors.from_llvm())


@pytest.mark.slow
@pytest.mark.parametrize("example", [sddmm, tttp, block_sparse, own_vectors])
def test_what_they_print(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("right")
    assert not any("WRONG" in line for line in lines)
