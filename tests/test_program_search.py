"""``Program.search``: the fastest way to pass results on, against all ways and orders."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import sparse
from t2s.driver import program_search
from t2s.errors import UserError
from tests.models import MODELS

THREE = """
    T(i,j) = A(i,k) * X(k,j)
    H(i,h) = T(i,j) * W(j,h)
    Z(i,h) = A(i,k) * H(k,h)
"""
TWO = """
    T(i,j) = A(i,k) * X(k,j)
    Z(i,h) = T(i,j) * W(j,h)
"""


def network(text: str = TWO) -> tuple[sparse.Program, dict[str, Any]]:
    generator = np.random.default_rng(3)
    weights = generator.standard_normal((4, 3)) * (generator.random((4, 3)) < 0.5)
    arrays = {
        "A": sparse.random_graph(8, 14, seed=1, isolated=2),
        "X": generator.standard_normal((8, 4)),
        "W": weights,
    }
    return sparse.program(text, formats={"A": "ds", "W": "ds"}), arrays


@pytest.mark.slow
def test_the_best_of_all_ways_and_orders() -> None:
    program, arrays = network(THREE)
    found = program.search(arrays, seconds=100, progress=False)
    orders = {"T": "ikj", "H": "ijh", "Z": "ikh"}
    cycles = []
    for ways in product(("store", "stream", "recompute"), repeat=2):
        for chosen in product(*(permutations(names) for names in orders.values())):
            try:
                one = program
                for name, order in zip(orders, chosen, strict=True):
                    one = one.schedule(name, f"reorder({','.join(order)})")
                for name, way in zip("TH", ways, strict=True):
                    one = getattr(one, way)(name)
                cycles.append(one.cycles(arrays))
            except UserError:
                continue
    assert len(cycles) > 10
    assert found.complete
    assert found.cycles == found.lower_bound == min(cycles)
    assert found.gap == 0


def test_results_that_the_types_of_inputs_keep_out_of_a_graph_are_stored() -> None:
    program = sparse.program("T(i,j) = A(i,j)*A(i,j)\nY(i) = T(i,j)*s\nm = max(i; Y(i))")
    for factor in (2, 2.5):
        inputs = {"A": np.arange(12, dtype=np.int8).reshape(4, 3), "s": factor}
        found = program.search(inputs, seconds=20, progress=False)
        assert found.complete
        assert found.cycles == found.program.cycles(inputs)
        assert found.program.simulate(inputs)["m"] == program.interpret(inputs)["m"]
    with pytest.raises(UserError, match="T is of int8, and the graph that passes it on"):
        program.stream("T").search(inputs, seconds=20, progress=False)


@pytest.mark.parametrize(
    "name",
    ["autoencoder", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gcn", "sage"))],
)
def test_models(name: str) -> None:
    model = MODELS[name]()
    program = sparse.program(model.text, formats=model.formats)
    found = program.search(model.inputs, seconds=20, progress=False)
    assert found.program.cycles(model.inputs) == found.cycles
    for fusion, cycles in found.cycles_of.items():
        whole = program.fuse(fusion).cycles(model.inputs)
        assert whole >= found.cycles
        assert cycles in (whole, None)
    assert found.lower_bound <= found.cycles
    result = found.program.simulate(model.inputs)
    for tensor, expected in model.expected.items():
        if tensor in result.tensors:
            np.testing.assert_allclose(result[tensor], expected, atol=1e-9)


def test_rows_that_nobody_reads_are_not_computed() -> None:
    """A graph with one edge: one row of H is enough, which only a recomputed H does not exceed."""
    _, arrays = network()
    edge = np.zeros((8, 8))
    edge[2, 5] = 1
    text = "H(i,h) = X(i,j) * W(j,h)\nZ(i,h) = A(i,k) * H(k,h)"
    program = sparse.program(text, formats={"A": "ds", "W": "ds"})
    found = program.search({**arrays, "A": edge}, progress=False)
    assert '.recompute("H")' in found.lines
    assert found.complete
    assert found.cycles < min(
        program.cycles({**arrays, "A": edge}),
        program.schedule("H", "reorder(i,j,h)").cycles({**arrays, "A": edge}),
    )


def test_lines_make_the_program_again() -> None:
    program, arrays = network()
    found = program.search(arrays, seconds=100, progress=False)
    again = eval(f"program{''.join(found.lines)}", {"program": program})
    assert again.cycles(arrays) == found.cycles
    text = str(found)
    assert f"{found.cycles:,} cycles: the least of the space" in text
    assert all(line in text for line in found.lines)
    assert str(program.search(arrays, seconds=100, progress=False)) == text


def test_what_is_said_stays() -> None:
    program, arrays = network()
    found = program.store("T").schedule("Z", "reorder(i,j,h)").search(arrays, progress=False)
    assert "T" in found.program.simulate(arrays).tensors
    assert not any("'T'" in line or '"Z"' in line for line in found.lines)
    free = program.search(arrays, progress=False)
    assert free.cycles <= found.cycles


def test_no_graph_is_timed_that_cannot_win(monkeypatch: pytest.MonkeyPatch) -> None:
    program, arrays = network()
    limits: list[tuple[int | None, int | None]] = []
    real = program_search.cycles_within

    def watched(*given: Any, most: int | None, **more: Any) -> int | None:
        limits.append((most, real(*given, most=most, **more)))
        return limits[-1][1]

    monkeypatch.setattr(program_search, "cycles_within", watched)
    found = program.search(arrays, progress=False)
    assert found.graphs == len(limits)
    assert all(most is None or taken is None or taken <= most for most, taken in limits)
    assert any(taken is None for _, taken in limits)


def test_little_time_and_bad_input() -> None:
    program, arrays = network()
    found = program.search(arrays, seconds=1e-9, progress=False)
    assert not found.complete
    assert found.lower_bound <= found.cycles
    assert found.cycles == min(cycles for cycles in found.cycles_of.values() if cycles is not None)
    assert "lower bound" in str(found)
    with pytest.raises(UserError, match="seconds= must be a time in seconds"):
        program.search(arrays, seconds=-1)
    with pytest.raises(UserError, match="W"):
        program.search({name: arrays[name] for name in "AX"})
    with pytest.raises(UserError):
        program.search(arrays, device="no such device")
    assert t2s.cycles(found.program, arrays) == found.cycles


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    program, arrays = network()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(program_search._Space, "_descend", interrupted)
    found = program.search(arrays, progress=False)
    assert found.interrupted
    assert found.program.cycles(arrays) == found.cycles
