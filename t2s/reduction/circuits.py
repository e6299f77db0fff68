"""Reduction circuits: sums of groups of values of data-dependent length, one value per cycle.

A *lane* is a stream of pairs (target, value), one pair per step.  Targets are row numbers from 1; 0
marks a step without a value.  Pairs of one target are consecutive (a *continuous* reduction).  A
circuit produces, for each lane, exactly one pair with the sum for each target, in the same order,
at one step per cycle whatever the latency of an addition.

A floating-point addition takes several cycles, so a sum cannot wait for the previous one.  None of
the circuit's three parts does:

1. *Accumulator*: ``slots`` partial sums, used in turn.  The slot of a step still holds the target
of ``slots`` steps ago.  If that is the current target, the value is added; else the slot
starts anew and emits what it held.  So every slot is written and read again ``slots`` steps
later, and a target leaves in at most ``slots`` parts, one after the other.
2. *Linear array* of ``levels`` = log2(slots) pairing units.  Each holds one pair.  If the next one
   has the same target their sum leaves, else the held pair leaves; each unit halves the number of
   parts of a target, and behind the last unit there is one.
3. Or a *tree*: a collector puts the parts of a target side by side and an adder tree sums them.

At the end of the streams, ``slots`` steps without values, and one for each level, flush the
circuit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from t2s.core.expr import (
    Broadcast,
    Const,
    Expr,
    Insert,
    Local,
    ReduceLanes,
    const,
    equals,
    select,
    simplify,
    unequal,
)
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import (
    Let,
    Receive,
    Register,
    RegisterRead,
    RegisterWrite,
    Role,
    Send,
    Statement,
)
from t2s.graph.build import (
    GraphParts,
    index,
    local,
    loop,
    register,
    space,
)
from t2s.graph.graph import StreamKind
from t2s.graph.nodes import Loop, PEArray


class Structure(Enum):
    """How the parts of a sum are combined."""

    TREE = "Tree"
    LINEAR_ARRAY = "LinearArray"

    def __repr__(self) -> str:
        return self.value


Tree, LinearArray = Structure.TREE, Structure.LINEAR_ARRAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The circuit to build: structure, levels (``slots`` is 2 to that power) and element type."""

    structure: Structure
    levels: int
    type: Type
    location: SourceLocation | None = None

    @property
    def slots(self) -> int:
        """Partial sums of one target that are in flight at the same time."""
        return int(2**self.levels)

    @property
    def node_count(self) -> int:
        """Nodes of the circuit."""
        return len(_stages(self))


LANE, STEP, SIDE = "lane", "step", "side"
"""Names of the space dimension and of the loops of all nodes here."""

WAITING = 64
"""Pairs that may wait for those of another path: more than the latency of any chain of adders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Lanes that leave or enter a node.

    Each PE of the node has ``fused`` lanes: lane = PE * fused + copy.  ``steps`` pairs come on each
    lane, each for ``width`` right-hand sides; ``type`` is that of the values.
    """

    node: str
    count: int
    fused: int
    steps: int
    width: int
    type: Type

    @property
    def places(self) -> int:
        """PEs of the node."""
        return self.count // self.fused


def step_loops(steps: int, width: int) -> tuple[Loop, ...]:
    """Steps, and right-hand sides within a step."""
    return (loop(STEP, steps), *([loop(SIDE, width)] if width > 1 else []))


def side(width: int) -> Expr:
    """The number of the right-hand side."""
    return index(SIDE) if width > 1 else const(0)


def send_lanes(parts: GraphParts, sender: Lanes, sink: str, fused: int) -> tuple[Statement, ...]:
    """Sends of all lanes of a node to a sink with ``fused`` lanes in each PE, and their channels.

    They send the locals ``out_target_c`` and ``out_value_c`` of each copy c of the sender.  The
    sink takes channels ``<sink>_target_c`` and ``<sink>_value_c`` for each copy c of its own.
    """
    statements: list[Statement] = []
    several = sender.count > fused
    for target in range(fused):
        copy, condition, element = _meeting(sender, fused, target)
        for what, type, kind in (
            ("target", INT32, StreamKind.COORDINATE),
            ("value", sender.type, StreamKind.VALUE),
        ):
            name = f"{sink}_{what}_{target}"
            value = local(f"out_{what}_{copy}", type)
            statements.append(Send(channel=name, value=value, condition=condition))
            parts.link(
                name,
                type,
                sender.node,
                sink,
                shape=(sender.count // fused,) if several else (),
                source_index=(element,) if several else (),
                sink_index=(index(LANE),) if several else (),
                capacity=WAITING,
                kind=kind,
            )
    return tuple(statements)


def _meeting(sender: Lanes, fused: int, target: int) -> tuple[int, Expr | None, Expr]:
    """The copy in the sender that sends to a copy of the sink, when, and to which of its PEs."""
    at = index(LANE)
    if sender.fused == fused:
        return target, None, at
    if sender.fused == 1:
        condition = equals(simplify(at % fused) if sender.count > fused else at, target)
        return 0, condition, simplify(at // fused)
    place, copy = divmod(target, sender.fused)  # all lanes go to one PE
    return copy, equals(at, place) if sender.places > 1 else None, const(0)


def receive_lanes(lanes: Lanes, copy: int, *, steps: int) -> list[Statement]:
    """Take a pair of a copy, in the first ``steps`` steps only, as ``target_c`` and ``value_c``."""
    condition = index(STEP) < steps if steps < lanes.steps else None
    return [
        Receive(
            target=f"{what}_{copy}",
            channel=f"{lanes.node}_{what}_{copy}",
            type=type,
            condition=condition,
        )
        for what, type in (("target", INT32), ("value", lanes.type))
    ]


def reduce_lanes(
    parts: GraphParts, circuit: Circuit, taken: Lanes, names: tuple[str, ...], sink: str, fused: int
) -> Lanes:
    """Add a circuit that takes lanes at ``names[0]`` and gives them to ``sink``.

    ``taken`` describes the lanes as the accumulator takes them; ``names`` has as many names as
    ``circuit.node_count``.  Returns the lanes that leave the last node.
    """
    makers = _stages(circuit)
    lanes = replace(taken, node=names[0])
    for position, (make, name) in enumerate(zip(makers, names, strict=True)):
        last = position == len(makers) - 1
        body, registers, leaving = make(circuit, replace(lanes, node=name))
        following = sink if last else names[position + 1]
        sends = send_lanes(parts, leaving, following, fused if last else leaving.fused)
        parts.nodes.append(
            PEArray(
                name=name,
                role=Role.COMPUTE,
                space=(space(LANE, leaving.places),) if leaving.count > 1 else (),
                loops=step_loops(leaving.steps, leaving.width),
                registers=registers,
                body=(*body, *sends),
                location=circuit.location,
            )
        )
        lanes = leaving
    return lanes


Body = tuple[list[Statement], tuple[Register, ...], Lanes]
Maker = Callable[[Circuit, Lanes], Body]


def _stages(circuit: Circuit) -> tuple[Maker, ...]:
    if not circuit.levels:
        return (_accumulator,)
    if circuit.structure is Tree:
        return (_accumulator, _collector, _tree)
    return (_accumulator, *[_pairing] * circuit.levels)


def _accumulator(circuit: Circuit, lanes: Lanes) -> Body:
    """Add to the slot of this step, or start it anew and emit what it held."""
    slots, width, type = circuit.slots, lanes.width, lanes.type
    leaving = replace(lanes, steps=lanes.steps + slots)
    slot = (simplify(index(STEP) % slots * width + side(width)),)
    body: list[Statement] = []
    registers: list[Register] = []
    for c in range(lanes.fused):
        held, sum_, same = local(f"held_{c}"), local(f"sum_{c}", type), local(f"same_{c}", BOOL)
        target, value = local(f"target_{c}"), local(f"value_{c}", type)
        distance, shape = slots * width, (slots * width,)
        registers.append(register(f"targets_{c}", INT32, shape, distance, circuit.location))
        registers.append(register(f"sums_{c}", type, shape, distance, circuit.location))
        body += receive_lanes(replace(leaving), c, steps=lanes.steps)
        body += [
            RegisterRead(target=held.name, register=f"targets_{c}", indices=slot, type=INT32),
            RegisterRead(target=sum_.name, register=f"sums_{c}", indices=slot, type=type),
            Let(target=same.name, value=equals(held, target)),
            RegisterWrite(register=f"targets_{c}", indices=slot, value=target),
            RegisterWrite(
                register=f"sums_{c}", indices=slot, value=select(same, sum_ + value, value)
            ),
            Let(target=f"out_target_{c}", value=select(same, 0, held)),
            Let(target=f"out_value_{c}", value=sum_),
        ]
    return body, tuple(registers), leaving


def _pairing(circuit: Circuit, lanes: Lanes) -> Body:
    """Hold a pair; emit sums of two pairs of one target, and pairs without a partner."""
    width, type, steps = lanes.width, lanes.type, lanes.steps
    leaving = replace(lanes, steps=steps + 1)
    body: list[Statement] = []
    registers: list[Register] = []
    for c in range(lanes.fused):
        held, kept = local(f"held_{c}"), local(f"kept_{c}", type)
        same, new = local(f"same_{c}", BOOL), local(f"new_{c}", BOOL)
        target, value = local(f"target_{c}"), local(f"value_{c}", type)
        body += receive_lanes(leaving, c, steps=steps)
        body += _read_held(registers, circuit, c, ((held, "targets"), (kept, "values")), width)
        body += [
            Let(target=new.name, value=unequal(target, 0)),
            Let(target=same.name, value=new & equals(held, target)),
            RegisterWrite(
                register=f"targets_{c}",
                indices=(side(width),),
                value=select(same, 0, select(new, target, held)),
            ),
            RegisterWrite(
                register=f"values_{c}", indices=(side(width),), value=select(new, value, kept)
            ),
            Let(target=f"out_target_{c}", value=select(new | _last(steps), held, 0)),
            Let(target=f"out_value_{c}", value=select(same, kept + value, kept)),
        ]
    return body, tuple(registers), leaving


def _last(steps: int) -> Expr:
    """Whether this is the step behind the last pair."""
    return equals(index(STEP), steps)


def _read_held(
    registers: list[Register],
    circuit: Circuit,
    copy: int,
    names: tuple[tuple[Local, str], ...],
    width: int,
) -> list[Statement]:
    """Registers for each right-hand side, and the statements that read them."""
    for value, name in names:
        registers.append(register(f"{name}_{copy}", value.type, (width,), width, circuit.location))
    return [
        RegisterRead(
            target=value.name, register=f"{name}_{copy}", indices=(side(width),), type=value.type
        )
        for value, name in names
    ]


def _collector(circuit: Circuit, lanes: Lanes) -> Body:
    """Put the parts of a target side by side, in a vector of ``slots`` lanes."""
    width, type, steps = lanes.width, lanes.type, lanes.steps
    vector = type.with_lanes(circuit.slots)
    leaving = replace(lanes, steps=steps + 1, type=vector)
    empty = Broadcast(value=_nothing(type), type=vector)
    body: list[Statement] = []
    registers: list[Register] = []
    for c in range(lanes.fused):
        held, kept, at = local(f"held_{c}"), local(f"kept_{c}", vector), local(f"at_{c}")
        same, new = local(f"same_{c}", BOOL), local(f"new_{c}", BOOL)
        target, value = local(f"target_{c}"), local(f"value_{c}", type)
        body += receive_lanes(replace(leaving, type=type), c, steps=steps)
        names = ((held, "targets"), (kept, "parts"), (at, "places"))
        body += _read_held(registers, circuit, c, names, width)
        filled = Insert(
            vector=select(same, kept, empty), lane=select(same, at, 0), value=value, type=vector
        )
        writes = (
            ("targets", select(new, target, held)),
            ("parts", select(new, filled, kept)),
            ("places", select(same, at + 1, select(new, 1, at))),
        )
        body += [
            Let(target=new.name, value=unequal(target, 0)),
            Let(target=same.name, value=new & equals(held, target)),
            *(
                RegisterWrite(register=f"{name}_{c}", indices=(side(width),), value=written)
                for name, written in writes
            ),
            Let(target=f"left_{c}", value=new & unequal(held, target)),
            Let(
                target=f"out_target_{c}",
                value=select(local(f"left_{c}", BOOL) | _last(steps), held, 0),
            ),
            Let(target=f"out_value_{c}", value=kept),
        ]
    return body, tuple(registers), leaving


def _nothing(type: Type) -> Const:
    """The neutral element of the addition: it does not even change the sign of a zero."""
    return const(-0.0, type) if type.is_float else const(0, type)


def _tree(circuit: Circuit, lanes: Lanes) -> Body:
    """Sum the lanes of a vector."""
    leaving = replace(lanes, type=circuit.type)
    body: list[Statement] = []
    for c in range(lanes.fused):
        vector = local(f"value_{c}", lanes.type)
        total = ReduceLanes(operator=Op.ADD, value=vector, type=circuit.type)
        body += receive_lanes(lanes, c, steps=lanes.steps)
        body += [
            Let(target=f"out_target_{c}", value=local(f"target_{c}")),
            Let(target=f"out_value_{c}", value=total),
        ]
    return body, (), leaving
