"""Machine code of kernels on disk: whole, up to date, or made again."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from t2s.core.errors import InternalError
from t2s.simulator.emit import kernels as machine_code
from t2s.simulator.emit.compile import compile_when_new
from t2s.simulator.emit.kernels import Argument, Callback, CompiledKernel
from t2s.simulator.emit.object_cache import ObjectCache
from t2s.simulator.run import simulate_cycles
from t2s.simulator.times.banked_layout import advance_with_banks, advance_with_banks_and_dram
from t2s.simulator.times.table_layout import advance_with_credit as advance
from t2s.simulator.times.table_layout import advance_with_dram
from t2s.simulator.values.point_block import HEADER, HEAP, SIZE, TABLE, new_block
from t2s.simulator.values.sorted_memory import addresses
from tests.simulator.designs import chain
from tests.sources import PACKAGE, tree

MADE = b"machine code"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The kernels that were compiled, in a cache of its own."""
    found: list[str] = []

    def compiled(kernel: CompiledKernel, machine: object) -> bytes:
        found.append(kernel.name)
        return MADE

    monkeypatch.setattr(machine_code, "_compiled", compiled)
    caches = ObjectCache(tmp_path / "here"), ObjectCache(tmp_path / "there")
    monkeypatch.setattr(machine_code, "_caches", lambda: caches)
    return found


def test_code_is_made_once(made: list[str], tmp_path: Path) -> None:
    assert machine_code._code(advance, None) == MADE
    assert machine_code._code(advance, None) == MADE
    assert made == ["advance"]
    assert [path.parent.name for path in tmp_path.rglob("*.object")] == ["here"]


def test_a_damaged_file_is_made_again(made: list[str], tmp_path: Path) -> None:
    machine_code._code(advance, None)
    (path,) = tmp_path.rglob("*.object")
    path.write_bytes(path.read_bytes()[:-1])
    assert machine_code._code(advance, None) == MADE
    assert machine_code._code(advance, None) == MADE
    assert made == ["advance", "advance"]


def test_a_folder_that_cannot_be_written(made: list[str], tmp_path: Path) -> None:
    (tmp_path / "here").write_text("a file")
    assert machine_code._code(advance, None) == MADE
    assert [path.parent.name for path in tmp_path.rglob("*.object")] == ["there"]
    (tmp_path / "there").rename(tmp_path / "gone")
    (tmp_path / "there").write_text("a file")
    assert machine_code._code(advance, None) == MADE
    assert made == ["advance", "advance"]


def test_the_name_depends_on_the_sources() -> None:
    other = CompiledKernel(
        module=advance.module, name="advance", sources=("t2s.core.ops",), arguments=()
    )
    assert machine_code._fingerprint(other) != machine_code._fingerprint(advance)
    assert machine_code._fingerprint(advance) == machine_code._fingerprint(advance)


@pytest.mark.parametrize(
    "array", [np.zeros(2, np.float64), np.zeros((2, 2), np.int64), np.zeros(4, np.int64)[::2]]
)
def test_arrays_have_to_be_flat_and_of_their_type(array: np.ndarray) -> None:
    with pytest.raises(InternalError, match="a kernel takes a flat array of int64"):
        machine_code._array_words(Argument.INT64_ARRAY, array)


def test_another_way_of_passing_arguments_is_noticed() -> None:
    text = "define i32 @other(ptr %retptr, ptr %excinfo, i64 %arg.x) {\n"
    with pytest.raises(InternalError, match="passes the arguments of advance in another way"):
        machine_code._with_entry(advance, text)


def test_functions_of_numba_are_noticed() -> None:
    kernel = CompiledKernel(module="m", name="k", sources=(), arguments=(Argument.INT64,))
    text = "define i32 @k(ptr %retptr, ptr %excinfo, i64 %arg.x) {\n}\n"
    assert "@kernel(" in machine_code._with_entry(kernel, text)
    with pytest.raises(InternalError, match="calls functions of numba"):
        machine_code._with_entry(kernel, text + "declare i32 @numba_unpickle(ptr)\n")


def test_a_callback_is_called_by_address() -> None:
    """Three entries of a heap, of which the table does not know."""
    block = new_block(4, 1, 1)
    block[[SIZE, HEADER, HEADER + 2, HEADER + 4]] = 3, 5, 6, 7
    heap, table = int(block[HEAP]), int(block[TABLE])
    block[heap + 1 : heap + 7 : 2] = HEADER, HEADER + 2, HEADER + 4
    code = "t2s.simulator.values.point_functions"
    rehash = Callback(module=code, name="rehash", sources=(code,))
    assert rehash(block.ctypes.data) == 0
    assert sorted(block[table : table + 8]) == [0] * 5 + [HEADER, HEADER + 2, HEADER + 4]


def test_a_new_process_needs_no_numba() -> None:
    simulate_cycles(chain(4))
    addresses()
    code = (
        "import sys; from tests.simulator.designs import chain;"
        "from t2s.simulator.values.sorted_memory import addresses; addresses();"
        "from t2s.simulator.run import simulate_cycles;"
        "assert simulate_cycles(chain(4)).cycles == 6; sys.exit('numba' in sys.modules)"
    )
    root = Path(__file__).parent.parent.parent
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=root).returncode == 0


def test_a_function_keeps_its_code() -> None:
    """Two threads that load it at once make two: one is kept, and the other has to run as well."""
    code = compile_when_new(
        "a function that keeps its code",
        lambda: "define i64 @run(i8* %a, i64 %b) {\n  ret i64 %b\n}\n",
    )
    run, engine = code.run, weakref.ref(code.engine)
    del code
    gc.collect()
    assert engine() is not None
    assert run(0, 7) == 7


@pytest.mark.parametrize(
    "kernel",
    [advance, advance_with_dram, advance_with_banks, advance_with_banks_and_dram],
    ids=lambda kernel: kernel.module.rpartition(".")[2],
)
def test_machine_code_is_made_again_for_every_module_it_is_of(kernel: CompiledKernel) -> None:
    room = "t2s.simulator.times."
    for source in kernel.sources:
        if source.startswith(room):
            path = PACKAGE.parent / f"{source.replace('.', '/')}.py"
            imports = [node for node in ast.walk(tree(path)) if isinstance(node, ast.ImportFrom)]
            found = {node.module for node in imports if (node.module or "").startswith(room)}
            assert found <= set(kernel.sources)
