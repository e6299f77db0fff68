"""Calls by address in compiled loops: what they give, count and refuse is that of single calls."""

from __future__ import annotations

import ctypes.util
from typing import Any

import numpy as np
import pytest

from t2s import Int, Var, external, sparse
from t2s.capability.ir import print_capability
from t2s.core.types import INT32
from t2s.driver import external_plan
from t2s.libraries import compiled_calls
from t2s.libraries.compiled_calls import looped_calls
from t2s.sparse import Schedule, Tensor, dense
from t2s.sparse_repr.notation.ir import accesses
from t2s.sparse_repr.notation.parse import parse_expression
from tests.errors.refusal import refused

i, j = Var("i"), Var("j")
EXTENTS = {"i": 9, "j": 5, "k": 10, "l": 3, "m": 2, "n": 4}

# a statement, and a schedule in text with calls for fixed variables
CASES = [
    ("A(i,k) = C(i,j)*D(j,k)", "fix(i,k), bind(C(i,j)*D(j,k),blas.ddot)"),
    ("A(i,k) = C(i,j)*D(j,k)", "fix(k,i), bind(C(i,j)*D(j,k),blas.ddot)"),
    ("A(i,k) = C(i,j)*D(j,k)", "fix(k), map(C(i,j)*D(j,k),blas.dgemv)"),
    ("A(i,k) = C(i,j)*D(j,k)", "fix(i), map(C(i,j)*D(j,k),blas.dgemv_columns)"),
    ("A(i,k) = C(i,j)*D(j,k)", "fix(j), map(C(i,j)*D(j,k),blas.dger)"),
    ("A(i,k,m,n) = B(i,k,j,l)*C(j,l,m,n)", "fix(i,j,m), bind(B(i,k,j,l)*C(j,l,m,n),blas.dgemm)"),
    ("A(i,j) = B(i,j)+C(i,j)", "fix(i), bind(B(i,j)+C(i,j),blas.daxpy)"),
    ("A(i,k) = B(i)+C(i,k)", "fix(k), bind(B(i)+C(i,k),blas.daxpy)"),
    ("A(i) = B(i,j)*C(i,j)", "fix(i), map(B(i,j)*C(i,j),blas.ddot)"),
    ("A(k) = B(i,k,j)*C(i,j)", "fix(i,k), map(B(i,k,j)*C(i,j),blas.ddot)"),
]


def _run_both(plan: Any, inputs: dict[str, Any], monkeypatch: Any, **said: Any) -> tuple[Any, Any]:
    """A run with compiled loops, and one call by call; no input changes."""
    before = {name: value.tobytes() for name, value in inputs.items()}
    new = plan.run(inputs, **said)
    with monkeypatch.context() as patched:
        patched.setattr(external_plan, "run_looped_calls", None)
        old = plan.run(inputs, **said)
    assert {name: value.tobytes() for name, value in inputs.items()} == before
    return new, old


def _inputs(assignment: Any, seed: int) -> dict[str, Any]:
    """Fractions, in windows of larger arrays, some of them transposed."""
    generator = np.random.default_rng(seed)
    found = {}
    for access in accesses(assignment.value):
        shape = [EXTENTS[name] for name in access.variables]
        larger = generator.standard_normal([extent + 2 for extent in shape])
        if seed % 2:
            larger = np.array(larger.T, order="C").T
        found[access.tensor] = larger[tuple(slice(1, extent + 1) for extent in shape)]
    return found


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many calls each nest of compiled loops makes from now on."""
    made: list[int] = []
    run = external_plan.run_looped_calls

    def noting(calls: Any) -> int | None:
        made.append(calls.calls)
        return run(calls)

    monkeypatch.setattr(external_plan, "run_looped_calls", noting)
    return made


@pytest.mark.parametrize(("text", "schedule"), CASES)
def test_bits_counts_and_copies_are_those_of_single_calls(
    text: str, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = sparse.parse(text)
    plan = sparse.compile(assignment, schedule)
    for seed in (0, 1):
        inputs = _inputs(assignment, seed)
        new, old = _run_both(plan, inputs, monkeypatch)
        assert new.output.tobytes() == old.output.tobytes()
        for one, other in zip(new.steps, old.steps, strict=True):
            assert (one.calls, one.copied, one.note) == (other.calls, other.copied, other.note)
        assert new.steps[0].calls > 4
        assert np.allclose(new.output, sparse.interpret(assignment, inputs))


def _under(condition: str, name: str) -> external.ExternalFunction:
    """A function of the BLAS that is for small, or for certain extents alone."""
    function = getattr(external.blas, name)
    capability = function.capability
    return external.make_function(
        f"small {name}",
        f"{print_capability(capability)} when {condition}",
        call=function.call,
        library=function.library,
        index=function.index,
        types=capability.types,
        strides={one.name: one.strides.value for one in capability.needs},
        trusted=True,
    )


# a statement, variables to fix, what is mapped, a function, its condition, whether loops are right
TILED = [
    ("A(i,k) = C(i,j)*D(j,k)", "", "C(i,j)*D(j,k)", "dgemm", "i <= 4 and k <= 3", True),
    ("A(i,k) = C(i,j)*D(j,k)", "", "C(i,j)*D(j,k)", "dgemm", "i == 4 and k == 3", True),
    ("A(i,k) = C(i,j)*D(j,k)", "", "C(i,j)*D(j,k)", "dgemm", "i == 4 and j == 2", True),
    ("A(i,k) = C(i,j)*D(j,k)", "", "C(i,j)*D(j,k)", "dgemm", "i == 1 and j <= 2", True),
    ("A(i,k) = C(i,j)*D(j,k)", "k", "C(i,j)*D(j,k)", "dgemv", "i == 2 and j <= 2", True),
    ("A(i,k) = B(i,k,j)*D(j,k)", "i,k", "B(i,k,j)*D(j,k)", "ddot", "i == 2", True),
    ("A(k) = B(i,k,j)*D(j,k)", "i,k", "B(i,k,j)*D(j,k)", "ddot", "i == 2", False),
    ("A(i,j) = B(i,j)+C(i,j)", "i", "B(i,j)+C(i,j)", "daxpy", "i <= 2", True),
    ("A(i,j) = B(i,j)+C(i,j)", "i", "B(i,j)+C(i,j)", "daxpy", "i == 2", False),
]


@pytest.mark.parametrize(("text", "fixed", "part", "name", "condition", "looped"), TILED)
def test_tiles_in_compiled_loops(
    text: str,
    fixed: str,
    part: str,
    name: str,
    condition: str,
    looped: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Remainders, padded operands and results, sums of tiles; others are made call by call."""
    assignment = sparse.parse(text)
    schedule = Schedule().fix(*map(Var, fixed.split(","))) if fixed else Schedule()
    notation = sparse.Notation(parse_expression(part), {})
    schedule = schedule.map(notation, _under(condition, name))
    plan = sparse.compile(assignment, schedule)
    made = _noted(monkeypatch)
    for seed in (0, 1):
        inputs = _inputs(assignment, seed)
        new, old = _run_both(plan, inputs, monkeypatch)
        assert new.output.tobytes() == old.output.tobytes()
        one, other = new.steps[0], old.steps[0]
        assert (one.calls, one.copied, one.note) == (other.calls, other.copied, other.note)
        assert one.note
        assert np.allclose(new.output, sparse.interpret(assignment, inputs))
    assert bool(made) == looped


def test_compiled_loops_make_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the cases above are about them: all but those with copies of operands."""
    made = _noted(monkeypatch)
    for text, schedule in CASES:
        assignment = sparse.parse(text)
        sparse.compile(assignment, schedule).run(_inputs(assignment, 0))
    assert len(made) >= len(CASES) - 3
    assert 90 in made


def test_no_loops_are_made_for_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor looked at: what is around one call of a library is most of what a small one takes."""
    made = []

    def noted(given: Any) -> Any:
        made.append(given)
        return looped_calls(given)

    monkeypatch.setattr(compiled_calls, "looped_calls", noted)
    assignment = sparse.parse("A(i,k) = C(i,j)*D(j,k)")
    plan = sparse.compile(assignment, "fix(i), map(C(i,j)*D(j,k),blas.dgemv_columns)")
    for rows, wanted in ((1, 0), (7, 0), (8, 1), (9, 2)):
        inputs = {"C": np.ones((rows, 3)), "D": np.ones((3, 2))}
        assert plan.run(inputs).steps[0].calls == rows
        assert len(made) == wanted


def _c_library() -> external.call.LibraryOf:
    name = ctypes.util.find_library("c")
    if name is None:
        pytest.skip("there is no C library by a name")
    return external.call.LibraryOf(name="the C library", path=name)


def test_a_status_ends_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the call that failed; ``strncmp`` of 2 bytes that differ in row 7.

    What it returns is the difference; ``memcmp`` may return another number in each run.
    """
    compared = external.make_function(
        "strncmp",
        "z(i) = x(i)",
        call=external.call.ExternalCall(
            symbol="strncmp",
            arguments=(
                external.call.DataOf(tensor="x"),
                external.call.DataOf(tensor="z"),
                external.call.DimensionOf(variable="i"),
            ),
            returns=INT32,
        ),
        library=_c_library(),
        status=external.call.ReturnedStatus(good=(0,), meanings=((1, "not alike"),)),
        types="int8",
        trusted=True,
    )
    a, b = Tensor("a", dense(2)), Tensor("b", dense(2))
    a[i, j] = b[i, j]
    plan = sparse.compile(a, Schedule().fix(i).bind(b[i, j], compared))
    zeros = np.zeros((9, 2), np.int8)
    for values in (zeros, np.zeros((3, 2), np.int8)):  # compiled loops, and call by call
        assert np.array_equal(plan.run({"b": values}, type=Int(8)).output, values)
    zeros[7, 0] = 1
    with refused("""
        strncmp failed
          --> plan = sparse.compile(a, Schedule().fix(i).bind(b[i, j], compared))
          expected: status 0
          given:    status 1, not alike
          note:     strncmp is described here
          --> compared = external.make_function(
    """):
        plan.run({"b": zeros}, type=Int(8))


def test_integers_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of rows, and 64-bit integers by value."""
    copied = external.make_function(
        "memcpy",
        "z(i) = x(i)",
        call=external.call.ExternalCall(
            symbol="memcpy",
            arguments=(
                external.call.DataOf(tensor="z"),
                external.call.DataOf(tensor="x"),
                external.call.DimensionOf(variable="i"),
            ),
        ),
        library=_c_library(),
        index=Int(64),
        types="uint8",
        strides="dense",
        trusted=True,
    )
    a, b = Tensor("a", dense(2)), Tensor("b", dense(2))
    a[i, j] = b[i, j]
    plan = sparse.compile(a, Schedule().fix(i).bind(b[i, j], copied))
    values = np.arange(60, dtype=np.uint8).reshape(20, 3)
    new, old = _run_both(plan, {"b": values}, monkeypatch)
    assert np.array_equal(new.output, values)
    assert np.array_equal(old.output, values)
