"""Concrete index notation that is broken is found out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from t2s.core.errors import InternalError
from t2s.sparse import Schedule, compile, parse
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    SplitLoop,
    Statement,
    View,
)
from t2s.sparse_repr.concrete.order import verify_program
from t2s.sparse_repr.notation.ir import Access

FORMATS = {"B": "ss", "C": "ss", "X": "ss"}
PROGRAM = compile(parse("X(i,j) = B(i,k) * C(k,j)", FORMATS), Schedule().reorder("i k j")).program


def nest(variables: str = "ikj", **changed: object) -> Statement:
    """The loops of the product, the assignment at their bottom changed."""
    statement: Statement = PROGRAM.stages[0]
    while isinstance(statement, Forall):
        statement = statement.body
    assert isinstance(statement, Assign)
    made: Statement = replace(statement, **changed)  # type: ignore[arg-type]
    for variable in reversed(variables):
        made = Forall(variable=variable, body=made)
    return made


def stage(statement: Statement) -> ConcreteProgram:
    return replace(PROGRAM, stages=(statement,))


def outer(**changed: object) -> ConcreteProgram:
    """The program with notes at its outermost loop."""
    return stage(replace(PROGRAM.stages[0], **changed))  # type: ignore[arg-type]


STORED = PROGRAM.tensors[0]
ONE_MODE = View(name="X", source="X", parts=(), format=STORED.format)

BROKEN = {
    "there are no stages": replace(PROGRAM, stages=()),
    "a tensor has two storages": replace(PROGRAM, tensors=(*PROGRAM.tensors, STORED)),
    "nothing stores X": replace(PROGRAM, tensors=PROGRAM.tensors[1:]),
    "no loop binds i of X": stage(nest("zkj")),
    "a loop over i is inside of one": stage(nest("iikj")),
    "the loops do not walk the levels of B in order": stage(nest("kij")),
    "the last stage does not write Q": replace(PROGRAM, written="Q"),
    "X is not stored for Q": replace(PROGRAM, result="Q"),
    "X is overwritten in a loop": stage(nest(accumulate=False)),
    "X is not of order 1": stage(nest(result=Access(tensor="X", variables=("i",)))),
    "the loop over i has no lanes": outer(lanes=0),
    "vectors of i are not innermost": outer(vector=4),
    "nothing locates into a level at i": outer(located=("C",)),
    "the view X is not stored as it says": replace(PROGRAM, views=(ONE_MODE,)),
    "the split of i has no parts": replace(
        PROGRAM, splits=(SplitLoop(variable="i", outer="i", inner="i1", factor=2),)
    ),
}


def test_what_the_compiler_makes_is_right() -> None:
    verify_program(PROGRAM)


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_program(text: str) -> None:
    with pytest.raises(InternalError, match=text):
        verify_program(BROKEN[text])
