"""Descriptions of calls that cannot be made are refused where the function is made, by its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import Float, Int, external, sparse
from t2s.core.types import INT32
from t2s.errors import UserError
from t2s.sparse import Schedule
from t2s.sparse_repr.notation.parse import parse_expression
from tests.errors.refusal import refused

LIBC = external.call.LibraryOf(name="the C library", path="libc.so.6")
NOWHERE = external.call.CallNumber(value=0, type=Int(64))
STORED = external.call.StoredResult(pos=NOWHERE, crd=NOWHERE, values=NOWHERE, index=INT32)
STATEMENT = "z(i,j) = x(i,j) * y(j)"


def _call(*arguments: Any, **said: Any) -> external.call.ExternalCall:
    return external.call.ExternalCall(symbol="labs", arguments=arguments, **said)


def _made(*arguments: Any, **said: Any) -> external.ExternalFunction:
    given = {"call": _call(*arguments), "library": LIBC, **said}
    return external.make_function("labs", STATEMENT, **given)


REFUSED: list[tuple[tuple[Any, ...], dict[str, Any], str, str, str]] = [
    (
        (external.call.DataOf(tensor="w"),),
        {},
        "it uses w, which is not in the statement",
        "one of x, y, z",
        "DataOf(tensor='w')",
    ),
    (
        (external.call.AddressOf(value=external.call.DimensionOf(variable="k")),),
        {},
        "the extent of k, which is not in the statement, is asked for",
        "one of i, j",
        "DimensionOf(variable='k')",
    ),
    (
        (external.call.StepOf(tensor="y", mode=1),),
        {},
        "y has no mode 1",
        "a mode from 0 to 0",
        "StepOf(tensor='y', mode=1)",
    ),
    (
        (external.call.LeadOf(tensor="y"),),
        {},
        "y has no leading dimension: it is not a matrix",
        "a tensor of order 2",
        "LeadOf(tensor='y')",
    ),
    (
        (external.call.ArrayOfLevelOf(tensor="x", level=1, array="pos"),),
        {},
        "x has no arrays of levels: it is dense",
        'formats={"x": "ds"}, or another format, of the function',
        "level=1, array='pos'",
    ),
    (
        (external.call.BytesOf(tensor="x", level=0, array="crd"),),
        {"formats": {"x": "ds"}},
        "x as ds:0,1 has no such array",
        "level=1, array='pos'; level=1, array='crd'",
        "level=0, array='crd'",
    ),
    (
        (external.call.StructOf(fields=(external.call.StepsOf(tensor="x"),)),),
        {"formats": {"x": "ds"}},
        "x is stored as ds:0,1, which has no steps",
        "external.call.ArrayOfLevelOf(tensor=..., level=..., array=...), and DataOf",
        "StepsOf(tensor='x')",
    ),
    (
        (external.call.ForType(terms=((Float(32), external.call.CallLetter(letter="s")),)),),
        {},
        "it has no term for the type float64",
        "a term for each type that the function computes",
        "terms for 1 of 2",
    ),
    (
        (external.call.ForSemiring(terms=()),),
        {"semirings": (sparse.MIN_PLUS,)},
        "it has no term for the semiring min, +",
        "a term for each semiring that the function computes",
        "terms for 0 of 1",
    ),
    (
        ("x", 3),
        {},
        "an argument is not a term of a call",
        "terms such as external.call.DataOf and external.call.DimensionOf, or "
        "external.call.CallNumber(value=..., type=...)",
        "'x'",
    ),
    (
        (external.call.CallLetter(letter="No"),),
        {},
        "a letter must be one character",
        "an ASCII character",
        "'No'",
    ),
    (
        (external.call.CallNumber(value="3", type=INT32),),  # type: ignore[arg-type]
        {},
        "the value of a number has the wrong type",
        "an integer, or a float of a type of floats",
        "CallNumber(value='3', type=int32)",
    ),
    (
        (external.call.AddressOf(value=external.call.StructOf(fields=())),),
        {},
        "the address of an address cannot be passed",
        "the address of a number, a letter or an array",
        "AddressOf(value=StructOf(...))",
    ),
    ((), {"call": "labs"}, "the call has the wrong type", "", "'labs'"),
    ((), {"library": "libc.so.6"}, "the library has the wrong type", "", "'libc.so.6'"),
    ((), {"status": 0}, "the status has the wrong type", "", "0"),
    ((), {"stored": "z"}, "the stored has the wrong type", "", "'z'"),
    (
        (),
        {"stored": STORED},
        "z is dense",
        'formats={"z": "ds"} beside stored=',
        "z(i,j) = x(i,j)*y(j)",
    ),
    ((), {"setup": ["init"]}, "setup has something that is not a call", "", "'init'"),
    ((), {"library": None}, "its symbol has no library", "", "labs"),
    (
        (),
        {"status": external.call.ReturnedStatus()},
        "it checks a status that the call does not return",
        "returns=t2s.Int(32), or another integer, of the call",
        "labs",
    ),
]


@pytest.mark.parametrize(("arguments", "said", "what", "expected", "given"), REFUSED)
def test_calls_that_cannot_be_made(
    arguments: tuple[Any, ...], said: dict[str, Any], what: str, expected: str, given: str
) -> None:
    with pytest.raises(UserError) as caught:
        _made(*arguments, **said)
    error = caught.value
    assert error.message == f"labs cannot be called: {what}"
    assert error.given == given
    assert not expected or error.expected == expected
    assert error.location is not None
    assert error.location.file == __file__


def test_the_extent_of_a_list() -> None:
    with refused("""
        labs cannot be called: the extent of I, which is a list, is asked for
          --> external.make_function("labs", "z(I) = x(I)", call=call, library=LIBC)
          expected: external.call.ExtentsOf(tensor=...), of all modes
          given:    DimensionOf(variable='I')
    """):
        call = _call(external.call.DimensionOf(variable="I"))
        external.make_function("labs", "z(I) = x(I)", call=call, library=LIBC)


def test_terms_of_all_kinds_are_described() -> None:
    terms = (
        *(
            external.call.ExtentsOf(tensor="x"),
            external.call.StepsOf(tensor="x"),
            external.call.OrderOf(tensor="x"),
        ),
        *(
            external.call.LabelsOf(tensor="x"),
            external.call.BytesOf(tensor="y"),
            external.call.CountOf(tensor="z"),
        ),
        external.call.StructOf(
            fields=(external.call.DataOf(tensor="x"), external.call.LeadOf(tensor="x"))
        ),
        external.call.AddressOf(value=external.call.CallNumber(value=1.5, type=Float(64))),
        external.call.LayoutOf(tensor="x", rows="R", columns="C"),
        _call(external.call.CallNumber(value=3, type=Int(64)), returns=Int(64)),
    )
    assert _made(*terms).call == _call(*terms)


def test_types_in_which_nothing_can_be_computed() -> None:
    with refused("""
        a quotient does not fit int32
          --> external.make_capability("z(i) = x(i) / y(i)", types="int32")
          expected: a floating-point type, such as float64
    """):
        external.make_capability("z(i) = x(i) / y(i)", types="int32")
    with pytest.raises(UserError, match="the number 300 does not fit uint8"):
        external.make_capability("z(i) = 300 * x(i)", types="uint8")
    with pytest.raises(UserError, match="the number inf does not fit int8"):
        external.make_capability("z(i) = x(i) * y(i)", types="int8", semirings=[sparse.MIN_PLUS])
    with pytest.raises(UserError, match="there is no type bool for values"):
        external.make_capability("z(i) = x(i) * y(i)", types="bool")


def test_types_that_only_some_semirings_have() -> None:
    """Integers have no infinite zero: over min-plus the function computes in floats."""

    @external.function(
        "z(i) = x(i) * y(i)", types="float64 int32", semirings=[sparse.MIN_PLUS], strides="any"
    )
    def added(x: Any, y: Any, z: Any) -> None:
        assert x.dtype == "float64"
        z[...] = x + y

    assert external.check(added).trials == 200


def test_results_that_are_stored_are_returned() -> None:
    said = {"formats": {"z": "ds"}, "types": "float64"}
    with refused("""
        fills is given its result z, which is stored as ds:0,1
          --> external.make_function("fills", "z(i,j) = x(i,j)", python=fills, **said)
          expected: a function without z that returns it, such as sparse.tensor(...)
          given:    x, z
    """):

        def fills(x: Any, z: Any) -> None:
            del x, z

        external.make_function("fills", "z(i,j) = x(i,j)", python=fills, **said)
    with refused("""
        z is added to, and is stored as ds:0,1
          --> external.make_capability("z(i,j) += x(i,j)", **said)
          expected: = in place of +=: what a function stores it returns
          given:    z(i,j) += x(i,j)
    """):
        external.make_capability("z(i,j) += x(i,j)", **said)
    with refused("""
        labs cannot be called: z is stored as ds:0,1
          --> external.make_function("labs", "z(i,j) = x(i,j)", call=_call(), library=LIBC, **said)
          expected: stored=external.call.StoredResult(...), which says where its arrays are
          given:    z(i,j) = x(i,j)
    """):
        external.make_function("labs", "z(i,j) = x(i,j)", call=_call(), library=LIBC, **said)


def test_formats_of_dense_tensors() -> None:
    """How these lie in memory is said by steps; beside others they are arrays of numpy."""
    assert (
        external.make_capability("z(i) = x(i,j)", formats={"x": "dd"}).needs_of("x").formats == ()
    )
    with refused("""
        the format dd:1,0 of x is that of a dense tensor
          --> external.make_capability("z(i) = x(i,j)", formats={"x": "dd:1,0|ds"})
          expected: formats of tensors that are not dense, or dense ones by rows
          hint:     strides={"x": "columns"} says how a dense matrix lies in memory
    """):
        external.make_capability("z(i) = x(i,j)", formats={"x": "dd:1,0|ds"})

    @external.function("z(i) = x(i,j)", types="float64", formats={"x": "dd|ds"})
    def total(x: Any, z: Any) -> None:
        z[...] = (x if isinstance(x, np.ndarray) else x.to_dense()).sum(1)

    assert external.check(total).trials == 200
    for letters in ("dd", "dd:1,0", "ds", "ss"):
        assignment = sparse.parse("a(i) = B(i,j)", {"B": letters})
        part = sparse.Notation(parse_expression("B(i,j)"), {})
        plan = sparse.compile(assignment, Schedule().map(part, total))
        assert plan.run({"B": np.eye(3)[:, :2]}).output.tolist() == [1, 1, 0]
        steps = [type(step).__name__ for step in plan.program.steps]
        assert steps == (["ConvertStep", "CallStep"] if letters == "ss" else ["CallStep"])
