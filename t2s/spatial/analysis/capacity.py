"""The default depths of channels: how many tokens they hold unless the user says otherwise.

Enough for one token in every cycle; and if one end serves the elements of a channel array in turn,
or sends bursts of tokens, enough to keep PEs from waiting for one another.

**Operands along a reduction in space never block.**  PE p hands its sum of element m to PE p + 1 in
its firing s(m), and PE p + 1 takes it in its firing r(m) <= s(m): in between lie the other steps of
the reduction loops in time inside of the loop in space.  An operand that PEs pass on is sent in
firing n of PE p and taken in firing n of PE p + 1.  So with a channel of c tokens

* (p + 1, n) comes after (p, n), and (p + 1, r(m)) after (p, s(m)),
* (p, n) comes after (p + 1, n - c): there is no room before.

Let g(n) be the largest of n and all s(m) with r(m) <= n, and L the largest of all s(m) - r(m),
which ``_lags`` gives: g never decreases, and n <= g(n) <= n + L.  Take the firings of the first PE
in their order, and insert, PE by PE, firing n of PE p + 1 right behind firing g(n) of PE p.  Then
the first two rules hold, and the third one if g(n - c) < n, which c = L + 1 grants: there is an
order that meets all rules, so that nothing blocks, whatever the hops of the sums hold (sums are
sent in the order in which they are taken).  Further dimensions of space change nothing: a firing of
PE p stands for those of all PEs beside it, which take the same operands in the same firings.  With
a reduction in space inside of another one, a firing of the outer chain stands for the inner chain,
whose last PE is at most the inner chain's own lag behind its first, so that this is added to L.  A
reduction loop in time around the chain, whose sums go back to the first PE, cuts the order into
pieces, one for each iteration, of which each is as above.  A channel takes one cycle, so that two
tokens more than L, or as many as the default, keep every PE busy in every cycle if a sum is with
the next PE one cycle after its firing.  It takes the latencies of a term and an addition longer,
for which there are HOP tokens more.

**Diamonds**: a stream that meets values computed from itself has to wait.  If P feeds F and G, and
G takes the results of F too, then G may need a result of F before it takes the tokens that P has
sent meanwhile::

    P ---> F          F[i] needs A[i, k] for all k before it sends,
     \\     |          and G needs F[i] before it takes the first A[i, k]:
      \\--> G          the channel from P to G has to hold a row of A, or P, F and G wait for ever

All functions of such a diamond run through their common outer loops together, from the fork at
which the paths part, so a channel that enters G gets room for the tokens of one of their
iterations.  A buffer on a path sends in one iteration what it took at the end of the previous one,
which adds an iteration for every buffer, and some tokens for the latencies of the path, or one more
iteration if that is less.  A path through memory, whose readers wait for the last store, needs room
for the whole stream.

If the fork feeds G directly, the channel of the other path needs no extra room: each of its tokens
was computed from tokens of the fork, which have been sent to G as well by then.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Index, index_names, reads, substitute
from t2s.spatial.analysis.token_order import drains
from t2s.spatial.ir import (
    KernelOperand,
    LoadUnit,
    LoopExecution,
    NeighborHop,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    shifted,
)

DEFAULT_CAPACITY = 2  # tokens: enough for one per cycle over a channel of latency 1


SKEW = 32  # extra tokens for a hop that waits for values with a longer latency to the next PE


HOP = 30  # extra tokens for the latency of a sum; with the default, still a FIFO of registers


def channel_capacity(
    program: SpatialProgram,
    producer: SpatialKernel,
    consumer: SpatialKernel,
    operand: KernelOperand,
    source: tuple[Expr, ...],
    sink: tuple[Expr, ...],
    least: int,
) -> int:
    """Room for the bursts of one end while the other end needs all elements.

    An end that serves the elements of a channel array one after the other, with several tokens for
    each, would otherwise wait for PEs that wait for each other.  Gathered results need room for a
    burst of each PE while the others have their turn; a stream shared by all PEs needs room for as
    many tokens as the last PE starts later than the first.  ``source`` and ``sink`` are the
    elements that the two ends use; ``least`` is the demand of other parts of the design.
    """
    if producer.capacity is not None:
        return producer.capacity
    pinned = frozenset(operand.pinned)
    sent = _burst(producer, source, pinned, once=drains(producer))
    taken = _burst(consumer, sink, pinned, once=operand.at_start)
    waiting = 1 if consumer.gathering is None else _backlog(producer, consumer)
    late = _lag(consumer) if _shares_stream(program, producer, consumer) else 0
    burst = max(sent, taken, waiting)
    return max(DEFAULT_CAPACITY, least, burst + 1 if burst > 1 else 1) + late


def _burst(
    kernel: SpatialKernel, element: tuple[Expr, ...], pinned: frozenset[str], *, once: bool
) -> int:
    """Most tokens for one element until a kernel that serves all in turn returns to it.

    The loops that choose the element are those its position depends on.  Inside the outermost of
    them, every other loop repeats the element.  ``once``: reductions make a single token, as
    ``pinned`` loops do.
    """
    chosen = frozenset[str]().union(*(index_names(position) for position in element))
    chosen |= frozenset([kernel.digit] if kernel.digit is not None else [])
    serial = kernel.kind(LoopExecution.SERIAL)
    outermost = next((at for at, loop in enumerate(serial) if loop.name in chosen), len(serial))
    repeating = [
        loop
        for loop in serial[outermost + 1 :]
        if loop.name not in chosen and loop.name not in pinned and not (once and loop.reduction)
    ]
    return prod(kernel.longest(loop) for loop in repeating)


def _backlog(producer: SpatialKernel, consumer: SpatialKernel) -> int:
    """Most results that a reduction sends before a burst of them has been gathered.

    Each of ``count`` gathered PEs sends one token in ``count`` firings.  If loops make results
    faster than that, all of them wait.
    """
    stream = None if consumer.gathering is None else consumer.loop(consumer.gathering.loop)
    serial = producer.kind(LoopExecution.SERIAL)
    reductions = [at for at, loop in enumerate(serial) if loop.reduction]
    if producer.initial is None or stream is None or not reductions:
        return 1
    count = 1 if consumer.digit is None else consumer.longest(stream)
    firings, results, waiting = 1, 1, 1
    for loop in reversed(serial[reductions[0] :]):
        extent = producer.longest(loop)
        if not loop.reduction:
            waiting *= extent if results * count > firings else 1
            results *= extent
        firings *= extent
    return waiting


def _shares_stream(
    program: SpatialProgram, producer: SpatialKernel, consumer: SpatialKernel
) -> bool:
    """Whether the PEs of a reduction share one stream of this operand, here or further upstream."""
    late = [x.definition for x in consumer.kind(LoopExecution.UNROLLED) if x.reduction]
    pending = [producer] if consumer.initial is not None and late else []
    while pending:
        kernel = pending.pop()
        if any(loop.definition in late for loop in kernel.kind(LoopExecution.SERIAL)):
            return True
        pending += [program.sender(o) for o in kernel.operands if o.taken is None]
    return False


def hop_capacity(kernel: SpatialKernel, operand: KernelOperand, position: int) -> int:
    """Room in the channels from PE to PE along a loop of ``operand.forwards``, as asked or needed.

    In a recurrence the operand waits for values with a longer latency.
    """
    asked = operand.hops[position].capacity
    if asked is not None:
        return asked
    if kernel.members:
        return DEFAULT_CAPACITY + SKEW
    name = operand.hops[position].loop
    lags = _lags(kernel)
    lag = lags.get(name, 0)
    depth = DEFAULT_CAPACITY + (HOP + lag if name in lags else 0)
    if depth > LARGEST:
        raise UserError(
            f"forward({operand.producer}, {name}) on {kernel.name}: PEs along {name} start {lag} "
            "firings one after the other",
            location=kernel.location,
            expected=f"at most {LARGEST} values in a channel",
            given=f"the loops of the reduction inside of {name}, in the order "
            f"{', '.join(loop.name for loop in kernel.loops)}",
            hint="put loops of the reduction outside, or ask for the room: "
            f"forward(..., {name}, depth={depth})",
        )
    return depth


def neighbor_capacity(kernel: SpatialKernel, hop: NeighborHop) -> int:
    """Room in the channels of a hop between PEs that take different values, as asked or needed."""
    if hop.capacity is not None:
        return hop.capacity
    return DEFAULT_CAPACITY + (SKEW if kernel.members else 0)


def _lags(kernel: SpatialKernel) -> dict[str, int]:
    """Firings by which a PE of a reduction starts after its predecessor, by loop in space.

    A partial result moves on to the next PE after the last step of the reduction loops in time
    inside of the loop in space, and after the last PE of those in space.
    """
    if kernel.initial is None:
        return {}
    lags: dict[str, int] = {}
    total, steps = 0, 0
    inside = 1
    for loop in reversed(kernel.loops):
        if loop.kind is LoopExecution.SERIAL:
            extent = kernel.longest(loop)
            steps += (extent - 1) * inside if loop.reduction else 0
            inside *= extent
        elif loop.kind is LoopExecution.UNROLLED and loop.reduction:
            lags[loop.name] = steps + total
            total += (kernel.longest(loop) - 1) * (steps + total)
    return lags


def _lag(kernel: SpatialKernel) -> int:
    """Firings by which the last PE of a reduction in space starts after the first."""
    lags = _lags(kernel)
    return sum(
        (kernel.longest(loop) - 1) * lags[loop.name] for loop in kernel.loops if loop.name in lags
    )


LARGEST = 1 << 16
"""The largest default capacity of a channel, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """A dataflow path between kernels; its serial ``loops`` are over the variables of its end.

    ``channels`` and ``memory`` tell whether it uses channels only, and memory.  A kernel with a
    buffer keeps one iteration of its ``buffered`` outermost loops.
    """

    loops: tuple[SpatialLoop, ...]
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
            common = _forks(program, common, pair)
            if not common:
                continue
            prefix, buffers = _common_loops(program, kernel, common, [first, second])
            for operand in pair:
                if not any(ways[operand.name][name].channels for name in common):
                    continue
                if any(other is not operand and {other.producer} == common for other in pair):
                    continue  # the other stream was sent before this one's tokens were computed
                tokens = _tokens(program, operand, prefix)
                depth = tokens * buffers + min(tokens + 1, SKEW) if buffers else tokens + 1
                key = (kernel.name, operand.name)
                depths[key] = max(depth, depths.get(key, 0))
                _check_size(program, kernel, operand, depths[key])
    return depths


def _forks(
    program: SpatialProgram, common: set[str], pair: tuple[KernelOperand, KernelOperand]
) -> set[str]:
    """The kernels at which the paths to two operands part; all others reach both through these."""
    producers = [operand.producer for operand in pair]
    uses = Counter(producers)
    for name in set().union(*(_ways(program, operand) for operand in pair)):
        kernel = program.kernel(name)
        uses.update(operand.producer for operand in kernel.operands)
        uses.update(_stored_by(program, kernel))
    return {name for name in common if uses[name] > 1}


def _ways(program: SpatialProgram, operand: KernelOperand) -> dict[str, _Way]:
    """All paths to an operand, by kernel."""
    producer = program.kernel(operand.producer)
    serial = producer.kind(LoopExecution.SERIAL)
    names = [loop.name for loop in serial]
    buffered = None if producer.buffer is None else names.index(producer.buffer.loop) + 1
    ways = {producer.name: _Way(loops=serial, channels=True, memory=False, buffered=buffered)}
    for upstream in producer.operands:
        for name, way in _ways(program, upstream).items():
            ways[name] = _joined(ways[name], way) if name in ways else way
    for name in _stored_by(program, producer):
        ways[name] = _Way(loops=(), channels=name in ways, memory=True)
    return {name: _renamed(way, producer, operand) for name, way in ways.items()}


def _stored_by(program: SpatialProgram, load: SpatialKernel) -> list[str]:
    """The kernels whose values a load unit reads from memory."""
    if not isinstance(load.work, LoadUnit):
        return []
    tensors = {read.source for read in reads(load.work.value)}
    kernels: list[str] = []
    for kernel in program.kernels:
        if kernel.store is not None and kernel.store.tensor in tensors:
            above = (name for operand in kernel.operands for name in _ways(program, operand))
            kernels += [kernel.name, *above]
    return kernels


def _renamed(way: _Way, producer: SpatialKernel, operand: KernelOperand) -> _Way:
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
    buffered = [way.buffered for way in (left, right) if way.buffered is not None]
    return _Way(
        loops=_prefix(left.loops, right.loops),
        channels=left.channels or right.channels,
        memory=left.memory or right.memory,
        buffered=min(buffered, default=None),
    )


def _prefix(
    left: tuple[SpatialLoop, ...], right: tuple[SpatialLoop, ...]
) -> tuple[SpatialLoop, ...]:
    """The outer loops that two nests have in common."""
    count = 0
    for mine, other in zip(left, right, strict=False):
        if (mine.definition, mine.minimum, mine.extent) != (
            other.definition,
            other.minimum,
            other.extent,
        ):
            break
        count += 1
    return left[:count]


def _common_loops(
    program: SpatialProgram, kernel: SpatialKernel, common: set[str], sides: list[dict[str, _Way]]
) -> tuple[tuple[SpatialLoop, ...], int]:
    """The loops that a diamond runs through together, and the number of buffers on its paths.

    ``common`` are the kernels where it may begin, ``sides`` the paths to its two ends.
    """
    passed = [
        way
        for side in sides
        for name, way in side.items()
        if name in common or common & _above(program, program.kernel(name))
    ]
    if any(way.memory for way in passed):
        return (), 0
    prefix = kernel.kind(LoopExecution.SERIAL)
    for way in passed:
        if way.buffered is not None:
            prefix = prefix[: way.buffered]
        prefix = _prefix(prefix, way.loops)
    return prefix, sum(way.buffered is not None for way in passed)


def _above(program: SpatialProgram, kernel: SpatialKernel) -> set[str]:
    """The kernels that feed a kernel."""
    direct = {name for operand in kernel.operands for name in _ways(program, operand)}
    return direct | set(_stored_by(program, kernel))


def _tokens(
    program: SpatialProgram, operand: KernelOperand, prefix: tuple[SpatialLoop, ...]
) -> int:
    """How many tokens of an operand are sent in one iteration of the outer loops ``prefix``."""
    sender = program.sender(operand)
    known = [loop.definition for loop in prefix]
    return prod(
        sender.longest(loop)
        for loop in sender.kind(LoopExecution.SERIAL)
        if loop.definition not in known and not (drains(sender) and loop.reduction)
    )


def _check_size(
    program: SpatialProgram, kernel: SpatialKernel, operand: KernelOperand, depth: int
) -> None:
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
