"""Machine code of kernels: made once, kept on disk, made again when their sources change."""

from __future__ import annotations

import ast
import ctypes
import gc
import subprocess
import sys
import weakref
from pathlib import Path

from t2s.llvm.compile import compile_when_new
from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument
from t2s.simulator.times.table_layout import advance_with_credit
from t2s.simulator.times.table_memories import (
    advance_with_banks,
    advance_with_banks_and_dram,
    advance_with_dram,
)
from t2s.simulator.values.sorted_memory import HEADER, HEAP, SIZE, TABLE, new_block
from tests.sources import PACKAGE, tree

KERNELS = (
    advance_with_credit,
    advance_with_dram,
    advance_with_banks,
    advance_with_banks_and_dram,
)


def test_a_kernel_of_words_is_called_by_address() -> None:
    """Three entries of a heap, of which the table does not know."""
    block = new_block(4, 1, 1)
    block[[SIZE, HEADER, HEADER + 2, HEADER + 4]] = 3, 5, 6, 7
    heap, table = int(block[HEAP]), int(block[TABLE])
    block[heap + 1 : heap + 7 : 2] = HEADER, HEADER + 2, HEADER + 4
    rehash = CompiledKernel(
        module="t2s.simulator.values.sorted_memory",
        name="rehash",
        sources=(PACKAGE / "simulator" / "values" / "sorted_memory.py",),
        arguments=(Argument.WORDS,),
    )
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(rehash.address)
    assert run(block.ctypes.data) == 0
    assert sorted(block[table : table + 8]) == [0] * 5 + [HEADER, HEADER + 2, HEADER + 4]
    assert rehash(new_block(4, 1, 1)) == 0


PROGRAM = """
import sys
from pathlib import Path
from t2s.llvm import compile, kernels
compile.cache_directory = lambda: Path(sys.argv[1])
made, optimize = [], compile._object_code
compile._object_code = lambda *given: made.append(1) or optimize(*given)
from t2s.simulator.times.table_layout import advance_with_credit
from t2s.simulator.values.sorted_memory import addresses
addresses()
advance_with_credit.address
print(len(made), "t2s.simulator.times.table_kernel" in sys.modules)
"""


def test_kernels_are_compiled_once_and_then_read_from_disk(tmp_path: Path) -> None:
    """A later process neither translates nor optimizes them, nor imports their modules."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    root = PACKAGE.parent
    first, second = (
        subprocess.run(command, check=True, cwd=root, capture_output=True, text=True).stdout
        for _ in range(2)
    )
    assert (first, second) == ("5 True\n", "0 False\n")


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


def test_sources_of_kernels_have_all_their_functions_and_constants() -> None:
    for kernel in KERNELS:
        covered = {
            file
            for path in kernel.sources
            for file in ([path] if path.is_file() else path.glob("*.py"))
        }
        left, seen = [kernel.module], {kernel.module}
        while left:
            path = PACKAGE.parent / f"{left.pop().replace('.', '/')}.py"
            assert path in covered
            for node in ast.walk(tree(path)):
                if not isinstance(node, ast.ImportFrom) or node.module is None:
                    continue
                if node.module.startswith("t2s.simulator.times"):
                    left += {node.module} - seen
                    seen.add(node.module)
                elif any(alias.name.isupper() for alias in node.names):
                    assert PACKAGE.parent / f"{node.module.replace('.', '/')}.py" in covered
