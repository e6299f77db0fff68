"""Random graphs and devices for the referee: small, and with everything in them that is legal.

A graph is several independent parts side by side, which share the bandwidth of memory.  A part is a
network of single PEs with channels that are used now and then, or an array that is fed and drained
one PE after the other (some places may have no PE), or a chain of nodes over a nest that is not a
box.  Types, lanes, expressions, register files, depths and latencies are random.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from benchmarks.random_parts import ARITHMETIC, WHOLE, Parts
from t2s.core.expr import (
    Expr,
    Index,
    Local,
    Select,
    apply,
    const,
    equals,
    evaluate,
)
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.nodes import Loop, PEArray, Register, Role, SpaceDimension
from t2s.simulator.devices import DEVICES, Device, TypeFamily


def random_device(seed: int) -> tuple[Device, ...]:
    """Two devices: slow in some ways and unlimited in others, and the board."""
    random = Random(seed + 1_000_000)
    ideal = DEVICES["ideal"]
    bandwidth = random.choice([None, 1, 3, 7, 8, 101])
    operators = (*ARITHMETIC, *WHOLE, Op.NEGATE, Op.ABSOLUTE)
    latencies = {
        (op, family): random.randint(0, 5)
        for op in operators
        for family in (TypeFamily.INTEGER, TypeFamily.FLOAT32, TypeFamily.FLOAT64)
    }
    slow = replace(
        ideal,
        name=f"random {seed}",
        operator_latencies=latencies,
        conversion_latency=random.randint(0, 3),
        load_latency=random.randint(0, 9),
        store_latency=random.randint(0, 9),
        bytes_per_cycle_per_unit=random.choice([None, 2, 4, 16]),
        memory_bytes_per_second=bandwidth and bandwidth * ideal.clock_hz // 2,
    )
    return slow, DEVICES["arria10"]


def random_graph(seed: int) -> Graph:
    """Two to five parts side by side."""
    random = Random(seed)
    parts = Parts(random=random)
    for number in range(random.randint(2, 5)):
        make = random.choice([_network, _network, _array, _array, _nest])
        make(parts, f"p{number}")
    order = list(parts.nodes)
    random.shuffle(order)
    return Graph(
        name=f"random_{seed}",
        nodes=tuple(order),
        channels=tuple(parts.channels),
        tensors=tuple(parts.tensors),
    )


def _loop(name: str, extent: int | Expr, minimum: int | Expr = 0) -> Loop:
    low = minimum if isinstance(minimum, Expr) else const(minimum)
    return Loop(
        name=name, minimum=low, extent=extent if isinstance(extent, Expr) else const(extent)
    )


def _load(tensor: str, indices: tuple[Expr, ...], type: Type) -> Load:
    return Load(target="value", tensor=tensor, indices=indices, type=type)


def _memory(
    parts: Parts, type: Type, register: str, where: Expr, total: Expr
) -> tuple[list[Statement], Expr]:
    """Read, write and possibly read again an element of a register file."""
    body: list[Statement] = [
        RegisterRead(target="old", register=register, indices=(where,), type=type),
        Let(target="new", value=total + Local(name="old", type=type)),
    ]
    new = Local(name="new", type=type)
    keep = parts.condition(parts.random.choice([1, 1, 2]), where)
    body.append(RegisterWrite(register=register, indices=(where,), value=new, condition=keep))
    if parts.random.random() < 0.5:
        body.append(RegisterRead(target="again", register=register, indices=(where,), type=type))
        return body, Local(name="again", type=type)
    return body, new


def _network(parts: Parts, prefix: str) -> None:
    """Load units, a random acyclic network, store units, and now and then a channel back."""
    random, type = parts.random, parts.type()
    count, loads, middle = random.randint(1, 12), random.randint(1, 2), random.randint(1, 4)
    n = Index(name="n")
    names = [f"{prefix}_load{i}" for i in range(loads)] + [f"{prefix}_n{i}" for i in range(middle)]
    edges: list[tuple[str, str, str]] = []
    for at in range(loads, len(names)):
        for source in random.sample(range(at), random.randint(1, min(at, 3))):
            edges.append((f"{prefix}_c{len(edges)}", names[source], names[at]))
    back = f"{prefix}_back"
    if random.random() < 0.4:
        edges.append((back, names[-1], names[loads]))
    for name in names:
        if all(source != name for label, source, _ in edges if label != back):
            edges.append((f"{prefix}_to_{name}", name, f"{prefix}_store_{name}"))
    for label, source, sink in edges:
        parts.channel(label, (source, sink), type)
    whens = {
        label: parts.condition(1 if source in names[:loads] else random.choice([1, 1, 2, 3]), n)
        for label, source, _ in edges
    }
    for at, name in enumerate(names):
        trips = count + (random.random() < 0.01)
        sending = [label for label, source, _ in edges if source == name]
        if at < loads:
            lane = n * type.lanes
            body: list[Statement] = [_load(f"X_{name}", (lane,), type)]
            body += [Send(channel=c, value=Local(name="value", type=type)) for c in sending]
            parts.tensor(f"X_{name}", type, trips * type.lanes, role=TensorRole.INPUT)
            registers: tuple[Register, ...] = ()
        else:
            receiving = [label for label, _, sink in edges if sink == name]
            body, registers = _middle(parts, type, receiving, sending, back, count, whens)
        role = Role.LOAD if at < loads else Role.COMPUTE
        parts.nodes.append(
            PEArray(
                name=name,
                role=role,
                space=(),
                loops=(_loop("n", trips),),
                registers=registers,
                body=tuple(body),
            )
        )
    for label, _, sink in edges:
        if label.startswith(f"{prefix}_to_"):
            trips = len([t for t in range(count) if _holds(whens[label], t)])
            _store(parts, sink, label, type, trips)


def _middle(
    parts: Parts,
    type: Type,
    receiving: list[str],
    sending: list[str],
    back: str,
    count: int,
    whens: dict[str, Expr | None],
) -> tuple[list[Statement], tuple[Register, ...]]:
    random, n = parts.random, Index(name="n")
    body: list[Statement] = []
    for label in receiving:
        when = n > 0 if label == back else whens[label]
        body.append(Receive(target=label, channel=label, type=type, condition=when))
    known: list[Expr] = [Local(name=label, type=type) for label in receiving]
    total = parts.value(type, known)
    registers: tuple[Register, ...] = ()
    if random.random() < 0.5:
        size = random.randint(1, 3)
        registers = (Register(name="r", type=type, shape=(size,), distance=size),)
        more, total = _memory(parts, type, "r", n % size, total)
        body += more
    for label in sending:
        when = n < count - 1 if label == back else whens[label]
        value = parts.value(type, [*known, total], 1)
        body.append(Send(channel=label, value=value, condition=when))
    return body, registers


def _holds(condition: Expr | None, at: int) -> bool:
    return condition is None or bool(evaluate(condition, {"n": np.int32(at)}))


def _store(parts: Parts, name: str, channel: str, type: Type, trips: int) -> None:
    n = Index(name="n")
    where = n * type.lanes
    body = (
        Receive(target="value", channel=channel, type=type),
        Store(tensor=f"Y_{name}", indices=(where,), value=Local(name="value", type=type)),
    )
    parts.tensor(f"Y_{name}", type, max(1, trips) * type.lanes, role=TensorRole.OUTPUT)
    parts.nodes.append(
        PEArray(name=name, role=Role.STORE, space=(), loops=(_loop("n", trips),), body=body)
    )


def _array(parts: Parts, prefix: str) -> None:
    """A feeder serves the PEs of an array in turn, they pass tokens on, a collector drains them."""
    random, type = parts.random, parts.type()
    rows, columns = random.randint(1, 3), random.randint(1, 4)
    rounds, block, low = random.randint(1, 3), random.randint(1, 3), random.choice([0, -1, 2])
    r, i, j, b = (Index(name=name) for name in "rijb")
    space = (
        SpaceDimension(name="i", minimum=0, extent=rows),
        SpaceDimension(name="j", minimum=low, extent=columns),
    )
    column = j - low
    triangular = random.random() < 0.5
    exists = i <= column if triangular else None
    feeder, array, collector = f"{prefix}_feed", f"{prefix}_array", f"{prefix}_collect"
    entry, passed, out = f"{prefix}_in", f"{prefix}_pass", f"{prefix}_out"
    turn = (j + r) % columns if random.random() < 0.5 else j
    parts.channel(entry, (feeder, array), type, (columns,), (turn,), (column,))
    below = (i + 1, column)
    parts.channel(passed, (array, array), type, (rows + 1, columns), below, (i, column))
    parts.channel(out, (array, collector), type, (rows, columns), (i, column), (i, j))
    parts.tensor(f"X_{prefix}", type, rounds, columns, block * type.lanes, role=TensorRole.INPUT)
    shape = (rounds, rows, columns, type.lanes)
    parts.tensor(f"Y_{prefix}", type, *shape, role=TensorRole.OUTPUT)
    wide = b * type.lanes
    load = _load(f"X_{prefix}", (r, turn, wide), type)
    send = Send(channel=entry, value=Local(name="value", type=type))
    loops = (_loop("r", rounds), _loop("j", columns), _loop("b", block))
    parts.nodes.append(
        PEArray(name=feeder, role=Role.LOAD, space=(), loops=loops, body=(load, send))
    )
    top = equals(i, 0)
    last_row = column if triangular else const(rows - 1)
    last = apply(Op.MINIMUM, last_row, const(rows - 1))
    first, above = (Local(name=name, type=type) for name in ("first", "above"))
    chosen = Select(condition=top, if_true=first, if_false=above, type=type)
    body: list[Statement] = [
        Receive(target="first", channel=entry, type=type, condition=top),
        Receive(target="above", channel=passed, type=type, condition=i > 0),
        Let(target="own", value=chosen),
    ]
    own = Local(name="own", type=type)
    more, total = _memory(parts, type, "kept", const(0), parts.value(type, [own]))
    body += [*more, Send(channel=passed, value=own, condition=i < last)]
    ending = equals(b, block - 1)
    body.append(Send(channel=out, value=total, condition=ending))
    parts.nodes.append(
        PEArray(
            name=array,
            role=Role.COMPUTE,
            space=space,
            exists=exists,
            loops=(_loop("r", rounds), _loop("b", block)),
            registers=(Register(name="kept", type=type, shape=(1,), distance=1),),
            body=tuple(body),
        )
    )
    _collector(parts, (collector, out, f"Y_{prefix}"), type, (rounds, rows, columns), triangular)


def _collector(
    parts: Parts,
    names: tuple[str, str, str],
    type: Type,
    extents: tuple[int, int, int],
    triangular: bool,
) -> None:
    """Takes one token of each PE, one after the other; only PEs that exist have an iteration."""
    name, channel, tensor = names
    rounds, rows, columns = extents
    r, i, j = (Index(name=index) for index in "rij")
    start: Expr = i if triangular else const(0)
    inner = _loop("j", columns - start, start)
    most = min(rows, columns) if triangular else rows
    body = (
        Receive(target="value", channel=channel, type=type),
        Store(tensor=tensor, indices=(r, i, j, const(0)), value=Local(name="value", type=type)),
    )
    loops = (_loop("r", rounds), _loop("i", most), inner)
    parts.nodes.append(PEArray(name=name, role=Role.STORE, space=(), loops=loops, body=body))


def _nest(parts: Parts, prefix: str) -> None:
    """A load unit, nodes that pass on or drop, a store unit: all over a nest that is not a box."""
    random, type = parts.random, parts.type()
    size = random.randint(1, 5)
    i, j, p = Index(name="i"), Index(name="j"), Index(name="p")
    pes = random.randint(1, 3)
    space = (SpaceDimension(name="p", minimum=0, extent=pes),)
    step = random.choice([1, 2])
    shrink = i * step % 3
    low: Expr = random.choice([const(0), i, p, const(-1)])
    extent: Expr = random.choice(
        [
            shrink,
            (i + p) % random.choice([2, 4]),
            apply(Op.MAXIMUM, i - random.randint(0, 4), const(0)),
            i + p,
            size - i,
        ]
    )
    loops = [_loop("i", size), _loop("j", extent, low)]
    if random.random() < 0.5:
        tail = (i + apply(Op.ABSOLUTE, j)) % 3
        loops.append(_loop("k", tail))
    names = [f"{prefix}_load", f"{prefix}_mid", f"{prefix}_store"]
    for at, label in enumerate(("x", "y")):
        parts.channel(f"{prefix}_{label}", (names[at], names[at + 1]), type, (pes,), (p,), (p,))
    parts.tensor(f"X_{prefix}", type, pes, size * type.lanes, role=TensorRole.INPUT)
    parts.tensor(f"Y_{prefix}", type, pes, size, type.lanes, role=TensorRole.OUTPUT)
    value = Local(name="value", type=type)
    wide = i * type.lanes
    more, total = _memory(parts, type, "r", const(0), parts.value(type, [value]))
    bodies: list[tuple[Statement, ...]] = [
        (_load(f"X_{prefix}", (p, wide), type), Send(channel=f"{prefix}_x", value=value)),
        (
            Receive(target="value", channel=f"{prefix}_x", type=type),
            *more,
            Send(channel=f"{prefix}_y", value=total),
        ),
        (
            Receive(target="value", channel=f"{prefix}_y", type=type),
            Store(tensor=f"Y_{prefix}", indices=(p, i, const(0)), value=value),
        ),
    ]
    for name, role, body in zip(names, (Role.LOAD, Role.COMPUTE, Role.STORE), bodies, strict=True):
        registers = (Register(name="r", type=type, shape=(1,), distance=1),)
        parts.nodes.append(
            PEArray(
                name=name,
                role=role,
                space=space,
                loops=tuple(loops),
                registers=registers if role is Role.COMPUTE else (),
                body=body,
            )
        )
