"""Barriers: a Func that is kept in memory is complete before it is read.

The store units of the Func send a control token in their last iteration, and its load units wait
for one in their first.  Between them a one-PE node collects a token from every store unit and then
gives one to every load unit; it passes over the places of an array that have no unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from t2s.core.expr import (
    TRUE,
    Const,
    Expr,
    Index,
    apply,
    conjunction,
    const,
    digits,
    equals,
    simplify,
    substitute,
)
from t2s.core.isl import Interval, LoopDomain
from t2s.core.isl_maps import condition, ends, project
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import BOOL
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.graph import Channel, Graph, StreamKind, StreamType, TensorRole
from t2s.graph.nodes import Loop, PEArray, Role

_CONTROL = StreamType(element=BOOL, kind=StreamKind.CONTROL)


def add_barriers(graph: Graph, channel_names: NameSupply) -> Graph:
    """Put a barrier between the store of every tensor and each node that loads it."""
    node_names = NameSupply(node.name for node in graph.nodes)
    kept = {t.name for t in graph.tensors if t.role is not TensorRole.INPUT}
    for load in graph.pe_arrays:
        tensor = next((s.tensor for s in load.body if isinstance(s, Load)), None)
        if tensor in kept:
            store = next(n for n in graph.pe_arrays if _stores(n, tensor))
            name = node_names.fresh(f"{tensor}_complete")
            graph = _add_barrier(graph, store, _array(graph, load.name), name, channel_names)
    return graph


def _array(graph: Graph, name: str) -> PEArray:
    return next(node for node in graph.pe_arrays if node.name == name)


def _stores(node: PEArray, tensor: str | None) -> bool:
    return any(isinstance(s, Store) and s.tensor == tensor for s in node.body)


def _add_barrier(
    graph: Graph, store: PEArray, load: PEArray, name: str, channel_names: NameSupply
) -> Graph:
    step = Index(name="step")
    stores, loads = _Units.of(store), _Units.of(load)
    after = simplify(apply(Op.SUBTRACT, step, const(store.place_count)))
    before = apply(Op.LESS, step, const(store.place_count))
    later = apply(Op.GREATER_EQUAL, step, const(store.place_count))
    stored = channel_names.fresh(f"{name}_stored")
    released = channel_names.fresh(f"{name}_released")
    count = store.place_count + load.place_count
    barrier = PEArray(
        name=name,
        role=Role.RELAY,
        space=(),
        loops=(Loop(name="step", minimum=const(0), extent=const(count)),),
        body=(
            Receive(
                target="stored",
                channel=stored,
                type=BOOL,
                condition=conjunction(before, stores.present_at(step)),
            ),
            Send(
                channel=released, value=TRUE, condition=conjunction(later, loads.present_at(after))
            ),
        ),
        location=store.location,
    )
    channels = (
        Channel(
            name=stored,
            stream=_CONTROL,
            source=store.name,
            sink=name,
            shape=_shape(store),
            source_index=_own_position(store),
            sink_index=digits(step, _shape(store)),
            location=store.location,
        ),
        Channel(
            name=released,
            stream=_CONTROL,
            source=name,
            sink=load.name,
            shape=_shape(load),
            source_index=digits(after, _shape(load)),
            sink_index=_own_position(load),
            location=load.location,
        ),
    )
    done = Send(channel=stored, value=TRUE, condition=stores.at_end)
    wait = Receive(
        target=NameSupply(_locals(load)).fresh("complete"),
        channel=released,
        type=BOOL,
        condition=loads.at_start,
    )
    changed = {
        store.name: replace(_array(graph, store.name), body=(*store.body, done)),
        load.name: replace(load, body=(wait, *load.body)),
    }
    nodes = [changed.get(node.name, node) for node in graph.nodes]
    nodes.insert([node.name for node in nodes].index(load.name), barrier)
    return replace(graph, nodes=tuple(nodes), channels=(*graph.channels, *channels))


def _locals(node: PEArray) -> list[str]:
    names = [dimension.name for dimension in node.space] + [loop.name for loop in node.loops]
    return names + [s.target for s in node.body if isinstance(s, Load | Receive)]


def _shape(node: PEArray) -> tuple[int, ...]:
    return tuple(dimension.extent for dimension in node.space)


def _own_position(node: PEArray) -> tuple[Expr, ...]:
    return tuple(
        simplify(apply(Op.SUBTRACT, Index(name=d.name), const(d.minimum))) for d in node.space
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Units:
    """The units of a node and the end of each.

    ``present`` is the condition over the space for a unit that iterates at all; ``at_start`` and
    ``at_end`` hold in the one iteration of a unit that is its first, and its last.
    """

    node: PEArray
    present: Expr | None
    at_start: Expr | None
    at_end: Expr | None

    @staticmethod
    def of(node: PEArray) -> _Units:
        at_start = conjunction(*(equals(Index(name=x.name), x.minimum) for x in node.loops))
        at_end = conjunction(*(_is_last(loop) for loop in node.loops))
        boxed = all(
            isinstance(x, Const) for loop in node.loops for x in (loop.minimum, loop.extent)
        )
        if node.exists is None and boxed:
            return _Units(node=node, present=None, at_start=at_start, at_end=at_end)
        space = [_interval(d.name, const(d.minimum), const(d.extent)) for d in node.space]
        loops = [_interval(x.name, x.minimum, x.extent) for x in node.loops]
        nest = LoopDomain([*space, *loops], [] if node.exists is None else [node.exists])
        reached = project(nest, [place.name for place in space])
        return _Units(
            node=node,
            present=condition(LoopDomain(space), reached),
            at_start=_where(nest, at_start, ends(nest, len(space), first=True)),
            at_end=_where(nest, at_end, ends(nest, len(space), first=False)),
        )

    def present_at(self, number: Expr) -> Expr | None:
        """Whether there is a unit at the place with a number, in row-major order."""
        if self.present is None:
            return None
        space = self.node.space
        places = digits(number, _shape(self.node))
        point: dict[str, Expr] = {
            dimension.name: apply(Op.ADD, place, const(dimension.minimum))
            for dimension, place in zip(space, places, strict=True)
        }
        return simplify(substitute(self.present, point))


def _interval(name: str, minimum: Expr, extent: Expr) -> Interval:
    return Interval(name=name, minimum=minimum, extent=extent)


def _where(nest: LoopDomain, corner: Expr | None, points: Any) -> Expr | None:
    """The condition for points of a nest: that of its corner where it says the same."""
    cornered = nest if corner is None else nest.restricted(corner)
    return corner if bool(cornered.points.is_equal(points)) else condition(nest, points)


def _is_last(loop: Loop) -> Expr:
    end = simplify(apply(Op.ADD, loop.minimum, loop.extent))
    return equals(apply(Op.ADD, Index(name=loop.name), const(1)), end)
