"""Barriers: a Func that is kept in memory is complete before it is read.

The store units of the Func send a control token after their last store, and its load units wait for
one before their first load.  Between them a one-PE node collects a token from every store unit and
then gives one to every load unit.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.expr import TRUE, Expr, Index, apply, conjunction, const, digits, equals, simplify
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
    before = apply(Op.LESS, step, const(store.pe_count))
    after = apply(Op.GREATER_EQUAL, step, const(store.pe_count))
    stored = channel_names.fresh(f"{name}_stored")
    released = channel_names.fresh(f"{name}_released")
    barrier = PEArray(
        name=name,
        role=Role.RELAY,
        space=(),
        loops=(Loop(name="step", minimum=const(0), extent=const(store.pe_count + load.pe_count)),),
        body=(
            Receive(target="stored", channel=stored, type=BOOL, condition=before),
            Send(channel=released, value=TRUE, condition=after),
        ),
        location=store.location,
    )
    ends = (
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
            source_index=digits(apply(Op.SUBTRACT, step, const(store.pe_count)), _shape(load)),
            sink_index=_own_position(load),
            location=load.location,
        ),
    )
    done = Send(channel=stored, value=TRUE, condition=_at_end(store))
    wait = Receive(
        target=NameSupply(_locals(load)).fresh("complete"),
        channel=released,
        type=BOOL,
        condition=_at_start(load),
    )
    changed = {
        store.name: replace(_array(graph, store.name), body=(*store.body, done)),
        load.name: replace(load, body=(wait, *load.body)),
    }
    nodes = [changed.get(node.name, node) for node in graph.nodes]
    nodes.insert([node.name for node in nodes].index(load.name), barrier)
    return replace(graph, nodes=tuple(nodes), channels=(*graph.channels, *ends))


def _locals(node: PEArray) -> list[str]:
    names = [dimension.name for dimension in node.space] + [loop.name for loop in node.loops]
    return names + [s.target for s in node.body if isinstance(s, Load | Receive)]


def _shape(node: PEArray) -> tuple[int, ...]:
    return tuple(dimension.extent for dimension in node.space)


def _own_position(node: PEArray) -> tuple[Expr, ...]:
    return tuple(
        simplify(apply(Op.SUBTRACT, Index(name=d.name), const(d.minimum))) for d in node.space
    )


def _at_start(node: PEArray) -> Expr | None:
    return conjunction(*(equals(Index(name=x.name), x.minimum) for x in node.loops))


def _at_end(node: PEArray) -> Expr | None:
    parts: list[Expr] = []
    for loop in node.loops:
        end = simplify(apply(Op.ADD, loop.minimum, loop.extent))
        parts.append(apply(Op.EQUAL, apply(Op.ADD, Index(name=loop.name), const(1)), end))
    return conjunction(*parts)
