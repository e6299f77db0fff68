"""The walker: children in order, and rewriting that keeps what it does not change."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from t2s.core.expr import Index, Select, const, equals
from t2s.core.types import INT32
from t2s.core.walk import PLAIN, Term, children, rebuild, rewrite, walk
from t2s.graph.nodes import PEArray
from tests.hand_graphs import systolic_gemm

i, j = Index(name="i"), Index(name="j")
SUM = i + j
CHOICE = Select(condition=equals(i, 0), if_true=SUM, if_false=j, type=INT32)


def test_children_are_direct_and_in_field_order() -> None:
    assert list(children(CHOICE)) == [equals(i, 0), SUM, j]
    assert list(children(SUM)) == [i, j]
    assert list(children(i)) == []


def test_walk_visits_parents_first() -> None:
    assert list(walk(CHOICE)) == [CHOICE, equals(i, 0), i, const(0), SUM, i, j, j]


def test_walk_reaches_every_node_of_a_graph() -> None:
    graph = systolic_gemm(2, 2, 2)
    assert tuple(term for term in walk(graph) if isinstance(term, PEArray)) == graph.nodes


def test_rewriting_nothing_returns_the_same_object() -> None:
    graph = systolic_gemm(2, 2, 2)
    assert rewrite(graph, lambda term: None) is graph
    assert rewrite(graph, lambda term: term) is graph
    assert rebuild(CHOICE, lambda child: child) is CHOICE


def test_rewriting_keeps_the_untouched_siblings() -> None:
    def rename(term: Term) -> Term | None:
        return Index(name="k") if term == const(0) else None

    changed = rewrite(CHOICE, rename)
    assert changed.condition == equals(i, Index(name="k"))
    assert changed.if_true is CHOICE.if_true
    assert changed.if_false is CHOICE.if_false


def test_rewriting_is_bottom_up() -> None:
    """A rule sees operands that are already rewritten, and its own result only once."""

    def rule(term: Term) -> Term | None:
        if term == i:
            return j
        return const(7) if term == (j + j) else None

    assert rewrite(SUM, rule) == const(7)

    def swap(term: Term) -> Term | None:
        return {"i": j, "j": i}[term.name] if isinstance(term, Index) else None

    assert rewrite(SUM, swap) == (j + i)


def test_no_field_that_is_passed_over_holds_a_term() -> None:
    """The walker goes by annotations; here every field is looked at."""

    def all_inside(term: Term) -> list[Term]:
        values = [getattr(term, field.name) for field in dataclasses.fields(cast(Any, term))]
        items = [item for v in values for item in (v if isinstance(v, tuple) else (v,))]
        return [item for item in items if isinstance(item, Term)]

    graph = systolic_gemm(2, 2, 2)
    assert all(children(term) == all_inside(term) for term in walk(graph))
    kinds: list[type[Any]] = [Term]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert len(kinds) > 40
    assert not {kind.__name__ for kind in kinds} & PLAIN
