"""What no capability may be, with the line that makes the function."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from t2s import Float, external, sparse
from t2s.capability import solver
from t2s.core.location import SourceLocation
from t2s.errors import UserError
from t2s.sparse_repr.notation.parse import parse_expression
from tests.errors.refusal import refused


def _nothing(x: Any, z: Any) -> None:
    del x, z


def _made(statement: Any, **said: Any) -> external.ExternalFunction:
    where = SourceLocation(__file__, sys._getframe(1).f_lineno)
    return external.make_function("made", statement, python=_nothing, location=where, **said)


# a statement, the message, what was expected, and what was given if it is not the statement
STATEMENTS = [
    (
        "z(i,i) = x(i)",
        "the result z has i twice",
        "different variables, so that every element of the result is defined",
        "z(i,i) = x(i)",
    ),
    (
        "z(i) = x",
        "the extent of i is unknown: only the result has it",
        "variables and lists of the result that operands have too",
        "z(i) = x",
    ),
    (
        "z(i) = sum(i, x(i))",
        "i is summed over, and the result has it",
        "a sum over variables that the result does not have",
        "z(i) = sum(i, x(i))",
    ),
    (
        "z(i) = sum(j, x(i))",
        "the sum over j has no operand with j",
        "sums over variables and lists that they have",
        "z(i) = sum(j, x(i))",
    ),
    (
        "z(i) = sum(j,x(i,j)) * sum(j, x(i,j))",
        "j is summed over in one place, and means something else in another one",
        "a name of its own for each variable",
        "z(i) = sum(j, x(i,j))*sum(j, x(i,j))",
    ),
    (
        "z(i) = x(i) + x(i,j)",
        "x occurs with two different orders",
        "the same number of variables and lists wherever a tensor is",
        "z(i) = x(i) + x(i,j)",
    ),
    (
        "z(i) = z(j) * x(i,j)",
        "z is overwritten, and read at other places",
        "z at i only",
        "z(i) = z(j)*x(i,j)",
    ),
    (
        "z(i) += z(i) + x(i)",
        "z is added to, and read on the right as well",
        "+= and the operands, or = and the result among them",
        "z(i) += z(i) + x(i)",
    ),
    (
        "z(i) = x(i) when q == 3",
        "the condition asks about q, which the statement does not have",
        "one of i",
        "q == 3",
    ),
    (
        "z(i) = x(i) when i / 0 == 1",
        "the condition divides by zero",
        "a divisor of 1 or more",
        "i / 0 == 1",
    ),
    (
        "z(i) = x(i) when i == 8 and i % 3 == 0",
        "no shape satisfies i == 8 and i % 3 == 0",
        "a condition that some extents satisfy",
        "z(i) = x(i) when i == 8 and i % 3 == 0",
    ),
    (
        "z(I) = x(I) when order(I) < 0",
        "no shape satisfies order(I) < 0",
        "a condition that some extents satisfy",
        "z(I) = x(I) when order(I) < 0",
    ),
]


@pytest.mark.parametrize(("statement", "message", "expected", "given"), STATEMENTS)
def test_statements_that_mean_nothing(
    statement: str, message: str, expected: str, given: str
) -> None:
    with pytest.raises(UserError) as caught:
        _made(statement)
    error = caught.value
    assert (error.message, error.expected, error.given) == (message, expected, given)
    assert error.location is not None
    assert error.location.file == __file__


def test_clashing_numbers_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "_z3", lambda: None)
    with pytest.raises(UserError, match="no shape satisfies i == 8 and i % 3 == 0"):
        _made("z(i) = x(i) when i == 8 and i % 3 == 0")
    _made("z(i) = x(i) when i % 2 == 1 and i % 4 == 0")  # nobody is there who knows


def test_conditions_that_are_none() -> None:
    with refused("""
        not a condition, at column 30:
            z(i) = x(i) when i == 8 and i
                                         ^
          --> _made("z(i) = x(i) when i == 8 and i")  # a half
          expected: a comparison: ==, !=, <, <=, > or >=
          given:    the end
    """):
        _made("z(i) = x(i) when i == 8 and i")  # a half


SAID = [
    ({"types": "float31"}, "there is no type float31 for values"),
    ({"types": 3}, "the types of a function have the wrong type"),
    ({"formats": "ds"}, "the formats of a function have the wrong type"),
    ({"formats": {"q": "d"}}, "there is a format for q, which the statement does not have"),
    ({"formats": {"x": "ds"}}, "the format ds:0,1 does not fit x"),
    ({"formats": {"x": 3}}, "the format of x must be a format or its text"),
    ({"strides": "any way"}, "there are no steps 'any way'"),
    ({"strides": {"y": "rows"}}, "there is a step for y, which the statement does not have"),
    ({"strides": {"x": "columns"}}, "the steps of x are those of a matrix"),
    ({"properties": {"x": "large"}}, "unknown property 'large'"),
    ({"semirings": 3}, "the semirings of a function have the wrong type"),
    ({"semirings": [3]}, "the semirings of a function have the wrong type"),
    ({"semirings": "min"}, "the semirings of a function have the wrong type"),
    ({"semirings": ()}, "the semirings of a function have the wrong type"),
]


@pytest.mark.parametrize(("said", "message"), SAID)
def test_what_is_said_beside_a_statement(said: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        _made("z(i) = x(i)", **said)
    assert caught.value.message == message


def test_parameters_are_the_tensors() -> None:
    with refused("""
        the parameters of add are not the tensors of its statement
          --> @external.function("z(i) = x(i) + y(i)", types="float32")
          expected: x, y, z, in any order; without z the function returns it
          given:    x, z
    """):

        @external.function("z(i) = x(i) + y(i)", types="float32")
        def add(x: Any, z: Any) -> None:
            del x, z


def test_functions_are_called_in_one_way() -> None:
    with pytest.raises(UserError, match="made must have either call= or python="):
        external.make_function("made", "z(i) = x(i)")


@pytest.mark.parametrize("trials", [0, -1, 1.5, "many"])
def test_numbers_of_trials(trials: Any) -> None:
    with pytest.raises(UserError, match="a claim is tried a number of times"):
        external.check(external.numpy.add, trials)


def test_only_functions_are_checked() -> None:
    with pytest.raises(UserError, match="what is checked has the wrong type"):
        external.check(3)  # type: ignore[arg-type]


FUNCTIONS = [
    ({"name": 3}, "the name of a function must be a string", "3"),
    ({"name": "two\nlines"}, "the name of a function must be a string", r"'two\nlines'"),
    ({"index": Float(32)}, "the index type of made is not an integer type", "float32"),
    ({"checker": 3}, "the checker of made is not a function", "3"),
]


@pytest.mark.parametrize(("said", "message", "given"), FUNCTIONS)
def test_what_is_said_of_a_function(said: dict[str, Any], message: str, given: str) -> None:
    given_name = {"name": "made"} | said
    with pytest.raises(UserError) as caught:
        external.make_function(capability="z(i) = x(i)", python=_nothing, **given_name)
    assert (caught.value.message, caught.value.given) == (message, given)
    assert caught.value.location is not None


def test_a_checker_that_fails() -> None:
    made = external.make_function(
        "divides", "z(i) = x(i)", python=lambda x: x, trusted=True, checker=lambda found: 1 // 0
    )
    assignment = sparse.parse("a(i) = b(i)")
    part = sparse.Notation(parse_expression("b(i)"), {})
    for work in (
        lambda: sparse.compile(assignment, sparse.Schedule().bind(part, made)),
        lambda: external.search(assignment, made, shapes={"b": (4,)}),
    ):
        with pytest.raises(UserError) as caught:
            work()
        assert caught.value.message == (
            "the checker of divides failed: ZeroDivisionError: integer division or modulo by zero"
        )
        assert caught.value.given == "b(i) by divides"


def test_further_parameters_keep_their_defaults() -> None:
    @external.function("z(i) = x(i)", types="float64")
    def scaled(x: Any, z: Any, factor: float = 1.0) -> None:
        z[...] = factor * x

    assert scaled.parameters == ("x", "z")
    assert external.check(scaled, trials=20).trials == 20
