"""Classes of PEs: the places of an array whose PEs have the same module.

A condition over the place alone is decided at emission.  PEs for which all such conditions have the
same truth are of one class: they receive, send, load and store with the same statements.  Positions
that a class still computes with are parameters of its module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import Const, Expr, Local, Parameter, evaluate, index_names, simplify
from t2s.core.ops import Array
from t2s.core.types import BOOL
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.body import Load, Statement, Store
from t2s.graph.nodes import Machine, Node, PEArray
from t2s.graph.semantics import space_points
from t2s.graph.specialize import fold_statement


@dataclass(frozen=True, slots=True, kw_only=True)
class PEClass:
    """Some PEs of an array.

    Attributes
    ----------
    node: the array, as these PEs see it.
    places: their numbers in the space domain, in row-major order.
    loads, stores: of each load and store of ``node``, which one of the whole array it is.
    """

    node: Node
    places: tuple[int, ...]
    loads: tuple[int, ...]
    stores: tuple[int, ...]


def classes_of(node: Node) -> tuple[PEClass, ...]:
    """The classes of a node, in the order of their first places; machines are of one class."""
    if isinstance(node, Machine):
        loads, stores = (
            tuple(range(sum(isinstance(statement, kind) for statement in node.statements())))
            for kind in (Load, Store)
        )
        places = tuple(range(node.place_count))
        return (PEClass(node=node, places=places, loads=loads, stores=stores),)
    conditions = _conditions_of_places(node)
    columns = columns_of(node)
    there = np.flatnonzero(node.there)
    with np.errstate(all="ignore"):
        truths = [np.broadcast_to(evaluate(c, columns), (node.place_count,)) for c in conditions]
    members: dict[bytes, list[int]] = {}
    table = np.array(truths, np.bool_).reshape(len(truths), node.place_count)[:, there]
    for column, place in zip(table.T, there, strict=True):
        members.setdefault(column.tobytes(), []).append(int(place))
    return tuple(
        _class_of(node, conditions, np.frombuffer(key, np.bool_), tuple(places))
        for key, places in members.items()
    )


def columns_of(node: Node) -> dict[str, Array]:
    """The value of each space index at every place."""
    points = np.array(list(space_points(node)), np.int32).reshape(node.place_count, len(node.space))
    return {dimension.name: points[:, at] for at, dimension in enumerate(node.space)}


def _conditions_of_places(node: PEArray) -> tuple[Expr, ...]:
    """The conditions that depend on the place alone."""
    space = {dimension.name for dimension in node.space}
    found: dict[Expr, None] = {}
    for term in walk(replace(node, exists=None)):
        if isinstance(term, Expr) and term.type == BOOL and not isinstance(term, Const):
            others = any(isinstance(part, Local | Parameter) for part in walk(term))
            if not others and index_names(term) <= space:
                found[term] = None
    return tuple(found)


def _class_of(
    node: PEArray, conditions: tuple[Expr, ...], truths: NDArray[np.bool_], places: tuple[int, ...]
) -> PEClass:
    known = {
        condition: Const(value=bool(truth), type=BOOL)
        for condition, truth in zip(conditions, truths, strict=True)
    }

    def rule(term: Term) -> Term | None:
        return known.get(term) if isinstance(term, Expr) and term.type == BOOL else None

    def decided(expr: Expr) -> Expr:
        return simplify(rewrite(expr, rule))

    body: list[Statement] = []
    kept: dict[type[Statement], list[int]] = {Load: [], Store: []}
    seen: dict[type[Statement], int] = {Load: 0, Store: 0}
    for statement in node.body:
        folded = fold_statement(statement, decided)
        if folded is not None:
            body.append(folded)
        kind = type(statement)
        if kind in seen:
            if isinstance(folded, kind):
                kept[kind].append(seen[kind])
            seen[kind] += 1
    loops = tuple(
        replace(loop, minimum=decided(loop.minimum), extent=decided(loop.extent))
        for loop in node.loops
    )
    return PEClass(
        node=replace(node, body=tuple(body), loops=loops, exists=None),
        places=places,
        loads=tuple(kept[Load]),
        stores=tuple(kept[Store]),
    )


def fixed_elements(
    node: Node, index: tuple[Expr, ...], shape: tuple[int, ...]
) -> tuple[int | None, ...] | None:
    """The element of a channel that each place means, in row-major order.

    ``None`` in the tuple is an element outside of the array, ``None`` in its place an index that
    moves while the design runs, or that several places have in common.
    """
    space = {dimension.name for dimension in node.space}
    for expr in index:
        if index_names(expr) - space or any(isinstance(term, Parameter) for term in walk(expr)):
            return None
    columns = columns_of(node)
    flat = np.zeros(node.place_count, np.int64)
    inside = np.ones(node.place_count, np.bool_)
    for expr, extent in zip(index, shape, strict=True):
        with np.errstate(all="ignore"):
            at = np.broadcast_to(evaluate(expr, columns), (node.place_count,)).astype(np.int64)
        inside &= (at >= 0) & (at < extent)
        flat = flat * extent + at
    return tuple(int(at) if there else None for at, there in zip(flat, inside, strict=True))
