"""Room in channels where one stream comes together with what was computed from it.

If P feeds F and G, and G takes the results of F too, then G may need a result of F before it takes
what P has sent meanwhile::

    P ---> F          F[i] needs A[i, k] for all k before it sends,
     \\     |          and G needs F[i] before it takes the first A[i, k]:
      \\--> G          the channel from P to G has to hold a row of A, or P, F and G wait for ever

All functions of such a diamond run through their common outer loops together, so both channels that
enter G get room for the tokens of one iteration of these loops, and of one more for every buffer on
the way, which sends what it took an iteration earlier.  Where one way leads through memory, whose
readers wait for the last store, it is the whole stream.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Index, reads, substitute
from t2s.spatial.analysis.token_order import drains
from t2s.spatial.ir import Kernel, Loop, LoopKind, SpatialProgram, shifted
from t2s.spatial.operands import Operand
from t2s.spatial.work import LoadUnit

LARGEST = 1 << 16
"""Tokens that a channel holds at most without the user asking for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How a kernel leads to another one, over whose variables its serial ``loops`` are given.

    ``channels`` and ``memory``: whether it does by channels alone, and through memory.  A kernel
    with a buffer keeps one iteration of its ``buffered`` outermost loops.
    """

    loops: tuple[Loop, ...]
    channels: bool
    memory: bool
    buffered: int | None = None


def meeting_depths(program: SpatialProgram) -> dict[tuple[str, str], int]:
    """The least depths of the channels that close a diamond, by consumer and operand."""
    depths: dict[tuple[str, str], int] = {}
    for kernel in program.kernels:
        ways = {operand.name: _ways(program, operand) for operand in kernel.operands}
        for pair in combinations(kernel.operands, 2):
            first, second = (ways[operand.name] for operand in pair)
            common = {
                name
                for name in first.keys() & second.keys()
                if first[name].channels or second[name].channels
            }
            if not common:
                continue
            prefix, iterations = _common_loops(program, kernel, common, [first, second])
            for operand in pair:
                if not any(ways[operand.name][name].channels for name in common):
                    continue
                depth = _tokens(program, operand, prefix) * iterations + 1
                key = (kernel.name, operand.name)
                depths[key] = max(depth, depths.get(key, 0))
                _check_size(program, kernel, operand, depths[key])
    return depths


def _ways(program: SpatialProgram, operand: Operand) -> dict[str, _Way]:
    """Everything that leads to an operand, by kernel."""
    producer = program.kernel(operand.producer)
    serial = producer.kind(LoopKind.SERIAL)
    names = [loop.name for loop in serial]
    kept = None if producer.buffer is None else names.index(producer.buffer.loop) + 1
    ways = {producer.name: _Way(loops=serial, channels=True, memory=False, buffered=kept)}
    for upstream in producer.operands:
        for name, way in _ways(program, upstream).items():
            ways[name] = _joined(ways[name], way) if name in ways else way
    for name in _stored_by(program, producer):
        ways[name] = _Way(loops=(), channels=name in ways, memory=True)
    return {name: _renamed(way, producer, operand) for name, way in ways.items()}


def _stored_by(program: SpatialProgram, load: Kernel) -> list[str]:
    """The kernels whose values a load unit reads from memory."""
    if not isinstance(load.work, LoadUnit):
        return []
    tensors = {read.source for read in reads(load.work.value)}
    found: list[str] = []
    for kernel in program.kernels:
        if kernel.store is not None and kernel.store.tensor in tensors:
            above = (name for operand in kernel.operands for name in _ways(program, operand))
            found += [kernel.name, *above]
    return found


def _renamed(way: _Way, producer: Kernel, operand: Operand) -> _Way:
    if not operand.renames:
        return way
    names: dict[str, Expr] = {
        name: Index(name=f"{producer.function}.{name}") for name, _ in producer.variables
    }
    for rename in operand.renames:
        names[rename.sender] = shifted(Index(name=rename.reader), rename.offset)
    loops = tuple(
        replace(loop, definition=substitute(loop.definition, names)) for loop in way.loops
    )
    return replace(way, loops=loops)


def _joined(left: _Way, right: _Way) -> _Way:
    kept = [way.buffered for way in (left, right) if way.buffered is not None]
    return _Way(
        loops=_prefix(left.loops, right.loops),
        channels=left.channels or right.channels,
        memory=left.memory or right.memory,
        buffered=min(kept, default=None),
    )


def _prefix(left: tuple[Loop, ...], right: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """The outer loops of one nest that are those of the other too."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if (one.definition, one.minimum, one.extent) != (
            other.definition,
            other.minimum,
            other.extent,
        ):
            break
        count += 1
    return left[:count]


def _common_loops(
    program: SpatialProgram, kernel: Kernel, common: set[str], sides: list[dict[str, _Way]]
) -> tuple[tuple[Loop, ...], int]:
    """The loops that a diamond runs through together, and how many iterations are on the way.

    ``common`` are the kernels where it may begin, ``sides`` what leads to its two ends.
    """
    passed = [
        way
        for side in sides
        for name, way in side.items()
        if name in common or common & _above(program, program.kernel(name))
    ]
    if any(way.memory for way in passed):
        return (), 1
    prefix = kernel.kind(LoopKind.SERIAL)
    for way in passed:
        if way.buffered is not None:
            prefix = prefix[: way.buffered]
        prefix = _prefix(prefix, way.loops)
    return prefix, 1 + sum(way.buffered is not None for way in passed)


def _above(program: SpatialProgram, kernel: Kernel) -> set[str]:
    """The kernels whose values a kernel gets."""
    direct = {name for operand in kernel.operands for name in _ways(program, operand)}
    return direct | set(_stored_by(program, kernel))


def _tokens(program: SpatialProgram, operand: Operand, prefix: tuple[Loop, ...]) -> int:
    """How many tokens of an operand are sent in one iteration of the outer loops ``prefix``."""
    sender = program.sender(operand)
    known = [loop.definition for loop in prefix]
    return prod(
        sender.longest(loop)
        for loop in sender.kind(LoopKind.SERIAL)
        if loop.definition not in known and not (drains(sender) and loop.reduction)
    )


def _check_size(program: SpatialProgram, kernel: Kernel, operand: Operand, depth: int) -> None:
    producer = program.kernel(operand.producer)
    if depth <= LARGEST or producer.capacity is not None:
        return
    takings = (o.taken for o in (operand, *kernel.operands) if o.taken is not None)
    taken = next((taking.by for taking in takings), None)
    raise UserError(
        f"{taken.text + ' on ' if taken else ''}{kernel.name}: {producer.name} sends {depth - 1} "
        f"values before {kernel.name} can take them",
        location=taken.location if taken is not None else kernel.location,
        expected=f"at most {LARGEST} values in a channel",
        given=f"{kernel.name} waits for something that is computed from the same stream",
        hint=f"give {kernel.name} a producer of its own, give both the same outer loops, or ask "
        f"for the room: {producer.name}.depth({depth})",
    )
