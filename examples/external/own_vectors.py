"""A function of one's own: eight sums at once by AVX, from C or, without a compiler, from LLVM.

``z(i) = x(i) + y(i) when i == 8`` [Mosaic, sec. 3].  Plans cut sums of any length into
eights, the last one padded.  Of C the address is called inside of compiled loops; without a
compiler the same instruction is made by llvmlite, and called from Python.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from t2s import external, sparse

STATEMENT = "z(i) = x(i) + y(i) when i == 8"
SOURCE = """\
typedef float eight __attribute__((vector_size(32), aligned(4)));
void add8(const float *x, const float *y, float *z) {
    *(eight *)z = *(const eight *)x + *(const eight *)y;
}
"""
LLVM = """\
define void @add8(ptr %x, ptr %y, ptr %z) {
  %a = load <8 x float>, ptr %x, align 4
  %b = load <8 x float>, ptr %y, align 4
  %c = fadd <8 x float> %a, %b
  store <8 x float> %c, ptr %z, align 4
  ret void
}
"""
SAID = {"types": "float32", "strides": "dense"}


def from_c(folder: Path) -> external.ExternalFunction:
    """The function of a library that the system's compiler makes in a folder."""
    (folder / "add8.c").write_text(SOURCE, encoding="utf-8")
    made = folder / "libadd8.so"
    vectors = ["-mavx"] if platform.machine() in ("x86_64", "AMD64") else []
    command = ["cc", "-O2", *vectors, "-shared", "-fPIC", "-o", str(made), str(folder / "add8.c")]
    subprocess.run(command, check=True)
    arguments = tuple(external.call.DataOf(tensor=name) for name in "xyz")
    return external.make_function(
        "add8",
        STATEMENT,
        call=external.call.ExternalCall(symbol="add8", arguments=arguments),
        library=external.call.LibraryOf(name="add8", path=str(made)),
        **SAID,
    )


def from_llvm() -> external.ExternalFunction:
    """The same without a compiler."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(LLVM), machine)
    engine.finalize_object()
    called = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(engine.get_function_address("add8"))

    def add8(x: Any, y: Any, z: Any) -> None:
        called(x.ctypes.data, y.ctypes.data, z.ctypes.data)

    add8.engine = engine  # type: ignore[attr-defined]  # its code lives as long
    return external.make_function("add8", STATEMENT, python=add8, **SAID)


def plan_with(add8: external.ExternalFunction) -> external.ExternalPlan:
    """A sum of any length by the function."""
    assignment = sparse.parse("a(i) = b(i) + c(i)")
    part = sparse.Notation(assignment.value, {})
    return sparse.compile(assignment, sparse.Schedule().map(part, add8))


def summed(add8: external.ExternalFunction, count: int) -> external.PlanResult:
    """Numbers and their squares, eight by eight; the second run, for the first compiles loops."""
    plan = plan_with(add8)
    numbers = np.arange(count, dtype=np.float32)
    plan.run({"b": numbers, "c": numbers**2})
    return plan.run({"b": numbers, "c": numbers**2})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        add8 = from_c(Path(folder)) if shutil.which("cc") else from_llvm()
        print(external.check(add8))
        result = summed(add8, 1003)
        print(result)
        numbers = np.arange(1003, dtype=np.float32)
        print("right" if np.array_equal(result.output, numbers + numbers**2) else "WRONG")


if __name__ == "__main__":
    main()
