"""Schedules with external functions as text: what is said behind a function, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import external, sparse
from t2s.driver.external_search import schedule_text
from t2s.errors import UserError
from t2s.sparse import Schedule
from t2s.sparse_repr.notation.parse import parse_expression
from tests.capability.functions import described
from tests.errors.refusal import refused

PART = sparse.Notation(parse_expression("B(i,j)*c(j)"), {})
SAID: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    (",densify", {"densify": True}),
    (",pad=False", {"pad": False}),
    (",trusted,else_=None", {"trusted": True, "else_": None}),
    (",trusted,densify,pad=False,else_=None", {"trusted": True, "densify": True, "pad": False}),
]


@pytest.mark.parametrize(("more", "said"), SAID)
def test_what_is_said_behind_a_function(more: str, said: dict[str, Any]) -> None:
    if more.endswith("else_=None"):
        said = {**said, "else_": None}
    text = f"map(B(i,j)*c(j),blas.dgemv{more})"
    made = Schedule().map(PART, external.blas.dgemv, **said)
    assert schedule_text(made) == text
    assert schedule_text(sparse.schedule(text)) == text
    assert schedule_text(sparse.schedule(text.replace("densify", "densify = True"))) == text


def test_bind_takes_less() -> None:
    text = "bind(B(i,j)*c(j),blas.dgemv,trusted,else_=None)"
    assert schedule_text(sparse.schedule(text)) == text
    assert schedule_text(Schedule().bind(PART, "blas.dgemv", trusted=True, else_=None)) == text
    with refused("""
        bind(B(i,j)*c(j), blas.dgemv, densify) does not say a directive
          --> sparse.schedule("bind(B(i,j)*c(j),blas.dgemv,densify)")
          expected: bind(B(i,k)*C(k,j),blas.sgemm), and behind it any of trusted, else_=None
    """):
        sparse.schedule("bind(B(i,j)*c(j),blas.dgemv,densify)")


@pytest.mark.parametrize("text", ["map(B(i,j)*c(j))", "map(B(i,j)*c(j),blas.dgemv,pad=True)"])
def test_what_says_no_directive(text: str) -> None:
    with pytest.raises(UserError) as caught:
        sparse.schedule(text)
    assert caught.value.expected == (
        "map(B(i,k)*C(k,j),blas.sgemm), and behind it any of densify, trusted, pad=False, "
        "else_=None"
    )


def test_plans_of_a_search_without_padding_are_made_again() -> None:
    def add(x: Any, y: Any, z: Any) -> None:
        assert len(x) == 4
        np.add(x, y, out=z)

    four = described("four", "z(i) = x(i) + y(i) when i == 4", add)
    assignment = sparse.parse("a(i) = b(i) + c(i)")
    for reshape, text in (("tile", "map(b(i)+c(i),four,pad=False)"), ("tile pad", "")):
        found = external.search(
            assignment, four, shapes={"b": (8,), "c": (8,)}, reshape=reshape, limit=4
        )
        made = next(one for one in found.plans if one.ranked.functions)
        assert made.schedule == text or not text
        again = sparse.compile(assignment, external.schedule(made.schedule, [four]))
        given = {"b": np.arange(8.0), "c": np.ones(8)}
        assert again.run(given).steps[0].calls == 2
        short = again.run({"b": np.arange(6.0), "c": np.ones(6)}).steps[0]
        assert short.calls == (0 if text else 2)


def test_positions_and_numbers() -> None:
    assignment = sparse.parse("a(i) = B(i,j)*c(j)")
    with refused("""
        a dimension is added at a position of a tensor
          --> sparse.compile(assignment, "promote(c,2), map(B(i,j)*c(j),numpy.matmul)")
          expected: a position of c from 0 to 1
          given:    2
    """):
        sparse.compile(assignment, "promote(c,2), map(B(i,j)*c(j),numpy.matmul)")
    assignment = sparse.parse("a(i) = b(i) + 1")
    with refused("""
        b(i) + 1 is not what add computes
          --> sparse.compile(assignment, "map(b(i)+1,numpy.add)")
          expected: z(I) = x(I) + y(I)
          given:    the number 1
    """):
        sparse.compile(assignment, "map(b(i)+1,numpy.add)")
