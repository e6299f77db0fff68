"""Plans as C: compiled with the Makefile's paths, linked, run, and right (acceptance A7)."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.gemm.chains import TINY, gemm
from t2s import Float, Int, Var, external, sparse
from t2s.capability.description import CallTerm
from t2s.core.types import INT32, Type
from t2s.driver.external_c import library_of
from t2s.errors import UserError
from t2s.loops.c_text import c_number
from t2s.sparse import Schedule
from t2s.sparse_repr.notation.parse import parse_expression
from tests.errors.refusal import refused
from tests.sampling import sampled

i, j = Var("i"), Var("j")
COMPILER = shutil.which("cc") if shutil.which("make") else None
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler, or no make")

ADD8 = """\
#include <stdint.h>
int32_t add8(const double *x, const double *y, double *z)
{
    for (int i = 0; i < 8; i++)
        z[i] = x[i] + y[i];
    return 3;
}
"""


def _data(name: str) -> CallTerm:
    return external.call.DataOf(tensor=name)


def _number(value: float, type: Type = INT32) -> CallTerm:
    return external.call.CallNumber(value=value, type=type)


def _openblas() -> external.call.LibraryOf:
    """The wheel of OpenBLAS with headers, if it is installed."""
    if find_spec("scipy_openblas32") is None:
        pytest.skip("scipy-openblas32 is not installed")
    import scipy_openblas32

    folder = Path(scipy_openblas32.get_lib_dir())
    found = sorted(folder.glob("libscipy_openblas.*"))
    if not found:
        pytest.skip("scipy-openblas32 has no library to link")
    return external.call.LibraryOf(
        name="OpenBLAS",
        path=str(found[0]),
        includes=("cblas.h", scipy_openblas32.get_include_dir()),
    )


def _sgemm() -> external.ExternalFunction:
    sizes = (external.call.DimensionOf(variable=name) for name in "ikj")
    operands = [(_data(name), external.call.LeadOf(tensor=name)) for name in "xyz"]
    one, zero = _number(1, Float(32)), _number(0, Float(32))
    return external.make_function(
        "cblas_sgemm",
        "z(i,k) = x(i,j) * y(j,k)",
        call=external.call.ExternalCall(
            symbol="scipy_cblas_sgemm",
            arguments=(
                *(_number(101), _number(111), _number(111), *sizes, one),
                *(*operands[0], *operands[1], zero, *operands[2]),
            ),
        ),
        library=_openblas(),
        index=INT32,
        types="float32",
        strides={"x": "rows", "y": "rows", "z": "rows"},
    )


def _sdot() -> external.ExternalFunction:
    steps = [(_data(name), external.call.StepOf(tensor=name, mode=0)) for name in "xy"]
    return external.make_function(
        "cblas_sdot",
        "s = x(i) * y(i)",
        call=external.call.ExternalCall(
            symbol="scipy_cblas_sdot",
            arguments=(external.call.DimensionOf(variable="i"), *steps[0], *steps[1]),
            returns=Float(32),
        ),
        library=_openblas(),
        index=INT32,
        types="float32",
        strides="steps",
    )


def _add8(folder: Path) -> external.ExternalFunction:
    """Somebody's own function, without a header, which returns a status that is 3."""
    (folder / "add8.c").write_text(ADD8)
    made = folder / "libadd8.so"
    assert COMPILER is not None
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-o", str(made), str(folder / "add8.c")], check=True
    )
    return external.make_function(
        "add8",
        "z(i) = x(i) + y(i) when i == 8",
        call=external.call.ExternalCall(
            symbol="add8", arguments=(_data("x"), _data("y"), _data("z")), returns=INT32
        ),
        library=external.call.LibraryOf(name="my adds", path=str(made)),
        status=external.call.ReturnedStatus(good=(3, 4)),
        types="float64",
        strides="dense",
    )


def _made(folder: Path) -> subprocess.CompletedProcess[str]:
    """Compiled, with all warnings as errors but for arguments that nobody reads, and run."""
    flags = "CFLAGS=-O1 -Wall -Wextra -Werror -Wno-unused-parameter"
    return subprocess.run(
        ["make", "-s", "run", flags], cwd=folder, capture_output=True, text=True, check=False
    )


def _part(text: str) -> sparse.Notation:
    return sparse.Notation(parse_expression(text), {})


def _right(plan: Any, folder: Path, inputs: dict[str, Any]) -> None:
    external.emit(plan, str(folder), inputs)
    run = _made(folder)
    assert (run.returncode, run.stdout, run.stderr) == (0, "A is right\n", "")
    # a main that finds other values says so
    expected = folder / "A_expected.bin"
    expected.write_bytes(bytes(byte ^ 0x55 for byte in expected.read_bytes()))
    run = _made(folder)
    assert run.returncode != 0
    assert "A differs at 0" in run.stdout
    expected.write_bytes(b"")
    assert "does not have" in _made(folder).stderr


@needs_compiler
def test_a_sampled_product_by_sgemm(tmp_path: Path) -> None:
    assignment = sparse.parse("A(i,k) = B(i,k)*C(i,j)*D(j,k)", {"B": "ds", "A": "ds"})
    plan = sparse.compile(assignment, Schedule().map(_part("C(i,j)*D(j,k)"), _sgemm()))
    generator = np.random.default_rng(0)
    B = generator.integers(1, 9, (7, 40)) * (generator.random((7, 40)) < 0.4)
    inputs = {"B": B.astype(np.float32)}
    inputs["C"] = generator.random((7, 5), dtype=np.float32)
    inputs["D"] = generator.random((5, 40), dtype=np.float32)
    assert B.astype(bool).sum() > 64  # the result grows
    assert np.allclose(plan.run(inputs).output, B * (inputs["C"] @ inputs["D"]), rtol=1e-5)
    _right(plan, tmp_path, inputs)


@needs_compiler
def test_dots_for_fixed_variables(tmp_path: Path) -> None:
    assignment = sparse.parse("A(i,k) = C(i,j)*D(j,k)")
    schedule = Schedule().fix("i", "k").bind(_part("C(i,j)*D(j,k)"), _sdot())
    plan = sparse.compile(assignment, schedule)
    generator = np.random.default_rng(1)
    inputs = {"C": generator.random((7, 5), dtype=np.float32)}
    inputs["D"] = generator.random((5, 6), dtype=np.float32)
    assert plan.run(inputs).steps[0].calls == 42
    _right(plan, tmp_path, inputs)


@needs_compiler
@sampled("extent", [3, 8, 21], quick=2)
def test_tiles_of_eight(extent: int, tmp_path: Path) -> None:
    assignment = sparse.parse("A(i) = B(i)+C(i)")
    plan = sparse.compile(assignment, Schedule().map(_part("B(i)+C(i)"), _add8(tmp_path)))
    inputs = {"B": np.arange(1.0, extent + 1), "C": np.full(extent, 0.5)}
    assert plan.run(inputs).output.tolist() == (inputs["B"] + 0.5).tolist()
    _right(plan, tmp_path / "made", inputs)
    text = (tmp_path / "made" / "plan.c").read_text()
    assert "extern int32_t add8(void *, void *, void *);" in text


@needs_compiler
def test_functions_of_one_value(tmp_path: Path) -> None:
    plan = sparse.compile(sparse.parse("A(i) = abs(B(i)) - 3*relu(B(i))"), "assume(1 == 1)")
    inputs = {"B": np.array([-2.5, -0.0, 0.0, -np.inf, 4.0])}
    np.testing.assert_array_equal(plan.run(inputs).output, [2.5, 0, 0, np.inf, -8])
    _right(plan, tmp_path, inputs)
    text = "A(i) = exp(B(i)) + log(C(i)) + gelu(B(i)) + sqrt(C(i)) - rsqrt(C(i)) + silu(B(i))"
    for type in (Float(32), Float(64)):
        plan = sparse.compile(sparse.parse(text), "assume(1 == 1)")
        given = {"B": np.linspace(-3, 3, 7), "C": np.linspace(0.1, 2, 7)}
        arrays = {name: array.astype(type.numpy) for name, array in given.items()}
        _right(plan, tmp_path / str(type), arrays)


@needs_compiler
@pytest.mark.parametrize("text", ["A(i,j) = B(i,j)+C(i,j)", "A(i,j) = B(i)+C(i,j)"])
def test_functions_that_overwrite(text: str, tmp_path: Path) -> None:
    steps = [(_data(name), external.call.StepOf(tensor=name, mode=0)) for name in "yx"]
    saxpy = external.make_function(
        "cblas_saxpy",
        "x(i) = x(i) + y(i)",
        call=external.call.ExternalCall(
            symbol="scipy_cblas_saxpy",
            arguments=(
                external.call.DimensionOf(variable="i"),
                _number(1, Float(32)),
                *(*steps[0], *steps[1]),
            ),
        ),
        library=_openblas(),
        index=INT32,
        types="float32",
        strides="steps",
    )
    assignment = sparse.parse(text)
    fixed = "j" if "B(i)" in text else "i"
    plan = sparse.compile(assignment, Schedule().fix(fixed).bind(_part(text[9:]), saxpy))
    inputs = {"B": np.arange(20, dtype=np.float32).reshape(4, 5), "C": np.ones((4, 5), np.float32)}
    if "B(i)" in text:
        inputs["B"] = inputs["B"][:, 0]
    _right(plan, tmp_path, inputs)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "formats"),
    [
        ("A(i,j) = T(i,k)*D(k,j) + E(i,j)", {"D": "ds", "E": "ss", "A": "ss"}),
        ("A(i,j) = T(i,k)*D(k,j)", {"D": "ss", "A": "ds"}),
        ("A(j,i) = D(k,j)*T(i,k)", {"D": "ds", "A": "ss"}),
        ("A(i) = max(T(i,k)*E(i,k), E(i,j)) / F(i)", {"E": "uq"}),
        ("A = T(i,k)*E(i,k)", {"E": "ds"}),
        ("A(k) = T(i,k) - E(i,k)", {"E": "ds", "A": "s"}),
    ],
)
def test_loops_as_c(statement: str, formats: dict[str, str], tmp_path: Path) -> None:
    """Workspaces, merged levels, lists of coordinates, several stages: behind a call."""
    text = statement.replace("T(i,k)", "(B(i,k)+C(i,k))")
    assignment = sparse.parse(text, formats)
    plan = sparse.compile(
        assignment, Schedule().fix("i").map(_part("B(i,k)+C(i,k)"), _add8(tmp_path))
    )
    generator = np.random.default_rng(4)
    shapes = {"B": (5, 6), "C": (5, 6), "D": (6, 4), "F": (5,)}
    shapes["E"] = (5, 4) if "E(i,j)" in text and "E(i,k)" not in text else (5, 6)
    inputs = {
        name: generator.integers(0, 3, shape).astype(float)
        for name, shape in shapes.items()
        if f"{name}(" in text
    }
    external.emit(plan, str(tmp_path / "made"), inputs)
    run = _made(tmp_path / "made")
    assert (run.returncode, run.stdout, run.stderr) == (0, "A is right\n", "")


def test_functions_that_c_does_not_call(tmp_path: Path) -> None:
    assignment = sparse.parse("A(i,k) = C(i,j)*D(j,k)")
    inputs = {"C": np.ones((2, 3)), "D": np.ones((3, 2))}
    schedule = Schedule().map(_part("C(i,j)*D(j,k)"), external.numpy.matmul)
    plan = sparse.compile(assignment, schedule)
    with refused("""
        matmul is not called by C: it is a function in Python
          --> schedule = Schedule().map(_part("C(i,j)*D(j,k)"), external.numpy.matmul)
          expected: a function of a library, described with call= and library=
    """):
        external.emit(plan, str(tmp_path), inputs)
    schedule = Schedule().map(_part("C(i,j)*D(j,k)"), external.blas.dgemm)
    plan = sparse.compile(assignment, schedule)
    with refused("""
        dgemm is not called by C: scipy's BLAS has no file to link
          --> schedule = Schedule().map(_part("C(i,j)*D(j,k)"), external.blas.dgemm)
          expected: a library with path=, or with flags= and library_paths=
          given:    capsules of scipy.linalg.cython_blas
    """):
        external.emit(plan, str(tmp_path), inputs)
    array = external.from_design(gemm(TINY), device="arria10", link=external.PCIE3_X8)
    schedule = Schedule().map(_part("C(i,j)*D(j,k)"), array)
    plan = sparse.compile(assignment, schedule)
    with refused("""
        C is hardware, whose calls are simulated: no program calls it
          --> schedule = Schedule().map(_part("C(i,j)*D(j,k)"), array)
          expected: a function of a library, described with call= and library=
    """):
        external.emit(plan, str(tmp_path), inputs)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="float16 is not a type of C"):
        external.emit(plan, str(tmp_path), inputs, type=Float(16))


def test_results_that_are_stored_anew_are_refused(tmp_path: Path) -> None:
    B, C, D = (sparse.Tensor(name, "dd") for name in "BCD")
    A = sparse.Tensor("A", sparse.coo(2))
    function = external.make_function(
        "f",
        "z(i,j) = x(i,j) + y(i,j)",
        call=external.call.ExternalCall(symbol="f", arguments=(_data("x"), _data("y"), _data("z"))),
        library=external.call.LibraryOf(name="a library", flags=("-lm",)),
        trusted=True,
    )
    A[i, j] = D[i, j] * (B[i, j] + C[i, j])
    plan = sparse.compile(A, Schedule().map(B[i, j] + C[i, j], function))
    with refused("""
        A is not stored as the loops of C walk it
          --> A[i, j] = D[i, j] * (B[i, j] + C[i, j])
          expected: results and workspaces in the order of the loops, of dense and compressed levels
          given:    A as uq:0,1
    """):
        external.emit(plan, str(tmp_path), dict.fromkeys("BCD", np.ones((2, 2))))


def test_what_has_no_elements_is_refused(tmp_path: Path) -> None:
    plan = sparse.compile(sparse.parse("A(i) = B(i,j)"), "assume(1 == 1)")
    with refused("""
        the extent of i is 0, and C has no arrays of nothing
          --> external.emit(plan, str(tmp_path), {"B": np.zeros((0, 3))})
          expected: inputs with elements
    """):
        external.emit(plan, str(tmp_path), {"B": np.zeros((0, 3))})


def test_a_result_that_is_read_is_refused(tmp_path: Path) -> None:
    A, B = sparse.Tensor("A", "dd"), sparse.Tensor("B", "dd")
    A[i, j] = A[i, j] + B[i, j]
    plan = sparse.compile(A, "assume(1 == 1)")
    with refused("""
        A is read and written, and loops in C have one place for it
          --> A[i, j] = A[i, j] + B[i, j]
          expected: a result that the statement does not read
          hint:     a result of another name
    """):
        external.emit(plan, str(tmp_path), {"A": np.ones((2, 3)), "B": np.ones((2, 3))})


@pytest.mark.parametrize(
    "said",
    [
        {"path": "lib$(shell touch x).so"},
        {"path": "lib'; touch x; '.so"},
        {"path": "lib.so", "flags": ("-O2\nall: ; touch x",)},
        {"path": "lib.so", "includes": ('a.h"\nint x;//.h',)},
    ],
)
def test_nothing_of_a_description_becomes_a_command(said: dict[str, Any], tmp_path: Path) -> None:
    function = external.make_function(
        "f",
        "z(i) = x(i)",
        call=external.call.ExternalCall(symbol="f", arguments=(_data("x"), _data("z"))),
        library=external.call.LibraryOf(name="a library", **said),
        trusted=True,
    )
    with pytest.raises(UserError, match="does not go into a Makefile"):
        library_of(function, None)


def test_symbols_are_names(tmp_path: Path) -> None:
    function = external.make_function(
        "f",
        "z(i) = x(i)",
        call=external.call.ExternalCall(symbol="f(); g", arguments=(_data("x"), _data("z"))),
        library=external.call.LibraryOf(name="a library", path="lib.so"),
        trusted=True,
    )
    with pytest.raises(UserError, match=r"'f\(\); g' is not a name in C"):
        library_of(function, None)


@needs_compiler
def test_names_of_users_are_no_words_of_c(tmp_path: Path) -> None:
    """Tensors and variables that are words, macros and functions of C."""
    assignment = sparse.parse("int(NULL) = double(NULL) + main(NULL)")
    part = _part("double(NULL)+main(NULL)")
    plan = sparse.compile(assignment, Schedule().map(part, _add8(tmp_path)))
    inputs = {"double": np.arange(9.0), "main": np.ones(9)}
    external.emit(plan, str(tmp_path / "made"), inputs)
    assert _made(tmp_path / "made").stdout == "int is right\n"


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (1, Float(32), "0x1.0000000000000p+0f"),
        (-0.1, Float(64), "(-0x1.999999999999ap-4)"),
        (np.inf, Float(32), "INFINITY"),
        (-np.inf, Float(64), "(-INFINITY)"),
        (np.nan, Float(64), "NAN"),
        (-(1 << 63), Int(64), "INT64_MIN"),
        (-3, Int(32), "(-INT32_C(3))"),
        (200, Int(8), "-56"),
    ],
)
def test_numbers_are_exact(value: float, type: Type, text: str) -> None:
    assert c_number(value, type).strip("()") == text.strip("()")
