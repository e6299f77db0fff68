"""Proof that channels and buffers deliver tokens in the order in which they are consumed.

Buffers may reorder, and are checked below.  Scattered and gathered streams have one order by
construction (``pipeline.py``).

A producer and a consumer may iterate differently, as long as every element of the channel array
carries its tokens in one order on both sides.  Where their nests are the same that is evident;
otherwise isl compares the two orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod

from t2s.core.errors import UserError, warn
from t2s.core.expr import Expr, Index, const, equals, index_names, simplify
from t2s.core.isl import Interval, LoopDomain
from t2s.core.printer import show
from t2s.spatial.analysis.padding import padding_text
from t2s.spatial.directive import Directive
from t2s.spatial.ir import (
    KernelOperand,
    LoopExecution,
    RelayBuffer,
    Removal,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
    StreamedResults,
)


def stream_loops(
    producer: SpatialKernel, consumer: SpatialKernel, operand: KernelOperand
) -> tuple[SpatialLoop, ...]:
    """The consumer's loops (without lanes) that the tokens of an operand are indexed by."""
    return tuple(
        loop
        for loop in consumer.loops
        if loop.kind is not LoopExecution.VECTOR
        and loop.name not in operand.forwards
        and loop.name not in operand.removed
        and loop.name not in operand.pinned
        and not (operand.at_start and loop.reduction)
    )


def axes(
    producer: SpatialKernel, consumer: SpatialKernel, operand: KernelOperand
) -> tuple[SpatialLoop, ...]:
    """The dimensions of the channel array: loops that are space at either end.

    A streamed function has loops of its own; a consumer's loop along which its results do not vary
    has a single iteration in the array.
    """
    result: list[SpatialLoop] = []
    as_they_come = isinstance(operand.taken, StreamedResults)
    gathered, scattered = producer.gathering, consumer.scattering
    candidates = [
        *(
            loop
            for loop in stream_loops(producer, consumer, operand)
            if (scattered is None or loop.name != scattered.loop)
            and not (as_they_come and loop.extent == const(1))
        ),
        *(
            loop
            for loop in producer.loops
            if loop.name not in operand.pinned
            and not (loop.reduction and drains(producer))
            and (gathered is None or loop.name != gathered.loop)
        ),
    ]
    for loop in candidates:
        known = any(other.definition == loop.definition for other in result)
        if loop.kind is LoopExecution.UNROLLED and not known:
            result.append(loop)
    return tuple(result)


def position(kernel: SpatialKernel, axis: SpatialLoop) -> Expr:
    """The position along one axis, from 0, over the loops of a kernel that may have others."""
    own = kernel.loop(axis.name)
    same = own is not None and own.definition == axis.definition
    value = Index(name=axis.name) if same else kernel.place(axis.definition)
    return simplify(value - axis.minimum)


def drains(producer: SpatialKernel) -> bool:
    """Whether a kernel sends one value for all steps of a reduction."""
    return producer.initial is not None


def check_streams(program: SpatialProgram) -> None:
    """Raise ``UserError`` for a channel whose two ends disagree about the order of tokens."""
    for consumer in program.kernels:
        for operand in consumer.operands:
            producer = program.sender(operand)
            if producer.paddings or consumer.paddings:
                _check_padding(producer, consumer, operand)
            if isinstance(operand.taken, StreamedResults):
                check_all_read(program, consumer, operand, _repeating(consumer, operand))
            if operand.taken is not None:
                _check_same_loops(producer, consumer, operand, operand.taken.by)
            followed = consumer.scattering is not None or producer.gathering is not None
            if consumer.buffer is None and not followed:
                _check(producer, consumer, operand)


def _check_same_loops(
    producer: SpatialKernel, consumer: SpatialKernel, operand: KernelOperand, directive: Directive
) -> None:
    """Check that a sender that did not follow the loops of its consumer has the same loops."""
    streamed = isinstance(operand.taken, StreamedResults)
    vectors = [
        loop for loop in consumer.kind(LoopExecution.VECTOR) if _varies(consumer, operand, loop)
    ]
    sent = [_range_of(loop) for loop in producer.loops]
    if consumer.buffer is None:
        wanted = stream_loops(producer, consumer, operand)
        taken = Counter(_range_of(loop) for loop in (*wanted, *vectors))
        same = streamed or Counter(sent) == taken
    else:
        wanted = consumer.loops
        same = set(sent) <= {_range_of(loop) for loop in wanted}
    lanes = [_range_of(loop) for loop in producer.kind(LoopExecution.VECTOR)]
    if same and lanes == [_range_of(loop) for loop in vectors]:
        return
    raise UserError(
        f"{directive.text} on {consumer.name}: {producer.name} does not send what {consumer.name} "
        "takes",
        location=directive.location,
        expected=f"the values of {consumer.name}: {_nest(consumer, (*wanted, *vectors))}",
        given=f"those of {producer.name}: {_nest(producer, producer.loops)}",
        hint="give both functions the same ranges, loops and lanes",
    )


def _varies(kernel: SpatialKernel, operand: KernelOperand, loop: SpatialLoop) -> bool:
    nest = LoopDomain([other.interval for other in kernel.loops])
    return nest.varies_along([kernel.place(index) for index in operand.access], loop.name)


def _range_of(loop: SpatialLoop) -> tuple[Expr, Expr, Expr]:
    return loop.definition, loop.minimum, loop.extent


def _nest(kernel: SpatialKernel, loops: Sequence[SpatialLoop]) -> str:
    parts = (
        f"{show(loop.definition)} in {show(loop.minimum)}..{show(loop.last)}"
        + (" as lanes" if loop.kind is LoopExecution.VECTOR else "")
        for loop in dict.fromkeys(loops)
    )
    return ", ".join(parts) or "one value"


def _check(producer: SpatialKernel, consumer: SpatialKernel, operand: KernelOperand) -> None:
    receiving = stream_loops(producer, consumer, operand)
    sending = tuple(
        loop
        for loop in producer.loops
        if loop.kind is not LoopExecution.VECTOR
        and loop.name not in operand.pinned
        and not (loop.reduction and drains(producer))
    )
    if [loop.definition for loop in receiving] == [loop.definition for loop in sending]:
        return
    elements = [loop.definition for loop in axes(producer, consumer, operand)]
    send_order = [loop.definition for loop in sending if loop.kind is LoopExecution.SERIAL]
    receive_order = [loop.definition for loop in receiving if loop.kind is LoopExecution.SERIAL]
    domain = LoopDomain(
        [dimension.interval for dimension in consumer.padded_domain], _fixed(consumer, operand)
    )
    _check_results_have_a_place(producer, consumer, operand, [*elements, *send_order])
    clash = domain.reverses([*elements, *send_order], [*elements, *receive_order])
    if clash is None:
        return
    point = ", ".join(f"{name}={value}" for name, value in clash.items())
    culprit, other = _culprit(producer, consumer), consumer
    if operand.taken is not None:
        subject = f"{operand.taken.by.text} on {consumer.name}: "
        location = operand.taken.by.location
    elif culprit is None:
        subject, location = "", consumer.location
    else:
        other = producer if culprit is consumer.reshaped else consumer
        reshaped = consumer if other is producer else producer
        own = reshaped.digit is None  # otherwise its loops are those of its producer or consumer
        subject = f"{culprit.text} on {reshaped.name}: " if own else f"{culprit.text}: "
        location = culprit.location
    raise UserError(
        f"{subject}{producer.name} sends its values in another order than {consumer.name} takes "
        "them",
        location=location,
        expected=f"the order of {consumer.name}: {_order(receiving)}",
        given=f"the order of {producer.name}: {_order(sending)}; the value for {point} comes "
        "too early",
        hint=f"order the loops before isolating, or reorder {other.name} in the same way",
    )


def _check_results_have_a_place(
    producer: SpatialKernel,
    consumer: SpatialKernel,
    operand: KernelOperand,
    order: Sequence[Expr],
) -> None:
    """Check that place and time at which a result leaves follow from the result alone.

    In a schedule of a reduction whose bounds depend on the result, the last step may be in another
    PE for each of them.
    """
    known = {dimension.name for dimension in consumer.padded_domain}
    steps = sorted(frozenset[str]().union(*map(index_names, order)) - known)
    if not steps:
        return
    taken = operand.taken
    names = ", ".join(name.rpartition(".")[2] for name in steps)
    raise UserError(
        f"{taken.by.text + ' on ' if taken else ''}{consumer.name}: which PE of "
        f"{producer.function} has a result, and when, depends on {names}",
        location=taken.by.location if taken else consumer.location,
        expected=f"a schedule in which the last step of {names} is the same for all results",
        given=f"a last step that follows from the bounds of {names}",
        hint=f"leave {names} out of the places of {producer.function}, or store it in memory",
    )


def _check_padding(
    producer: SpatialKernel, consumer: SpatialKernel, operand: KernelOperand
) -> None:
    """Check that both ends run the same iterations, including padded ones."""
    names = [name for name, _ in producer.variables if name in dict(consumer.variables)]
    # Lanes at one end may be gathered from PEs at the other, so all iterations are compared.
    common = {loop.definition for loop in producer.loops} & {
        loop.definition for loop in consumer.loops
    }
    sent = LoopDomain(
        [loop.interval for loop in producer.loops], _at_first(producer, operand, common)
    )
    tokens = _fixed(consumer, operand, buffered=False, lanes_of_both=common)
    fixed = [consumer.place(condition) for condition in tokens]
    taken = LoopDomain([loop.interval for loop in consumer.loops], fixed)
    ends = [[dict(kernel.variables)[name] for name in names] for kernel in (producer, consumer)]
    difference = sent.differs(ends[0], taken, ends[1])
    if difference is None:
        return
    owner, directive = _ragged(producer, consumer)
    other = producer if owner is consumer else consumer
    point = ", ".join(f"{name}={value}" for name, value in zip(names, difference, strict=True))
    raise UserError(
        f"{directive.text} on {owner.name}: {producer.name} and {consumer.name} are not padded "
        "in the same way",
        location=directive.location,
        expected=f"the same iterations in {other.name}",
        given=f"{producer.name} with {padding_text(producer)}, {consumer.name} with "
        f"{padding_text(consumer)}; only one of them has the iteration {point}",
        notes=((other.location, f"{other.name} was made here"),),
        hint=f"write the split on {consumer.function} before isolating from it",
    )


def _ragged(producer: SpatialKernel, consumer: SpatialKernel) -> tuple[SpatialKernel, Directive]:
    """The kernel that pads a loop that the other one does not, and its directive."""
    ends = ((consumer, producer), (producer, consumer))
    paddings = [(kernel, p) for kernel, _ in ends for p in kernel.paddings]
    for kernel, other in ends:
        amounts = [(padding.variable, padding.padded) for padding in other.paddings]
        for padding in kernel.paddings:
            if (padding.variable, padding.padded) not in amounts:
                return kernel, padding.directive
    return paddings[0][0], paddings[0][1].directive


def _at_first(
    producer: SpatialKernel, operand: KernelOperand, lanes_of_both: Collection[Expr]
) -> list[Expr]:
    """A single token for lanes that the consumer does not have, and for each reduced result."""
    return [
        equals(Index(name=loop.name), loop.minimum)
        for loop in producer.loops
        if (loop.kind is LoopExecution.VECTOR and loop.definition not in lanes_of_both)
        or (loop.reduction and drains(producer))
    ]


def _culprit(producer: SpatialKernel, consumer: SpatialKernel) -> Directive | None:
    """The directive that made the two nests differ: the one that only one kernel has."""
    directives = [
        k.reshaped for k in (producer, consumer) if producer.reshaped != consumer.reshaped
    ]
    return next((directive for directive in directives if directive is not None), None)


def _order(loops: tuple[SpatialLoop, ...]) -> str:
    return (
        ", ".join(loop.name for loop in loops if loop.kind is LoopExecution.SERIAL) or "one value"
    )


def _repeating(
    consumer: SpatialKernel, operand: KernelOperand, *, buffered: bool = True
) -> tuple[SpatialLoop, ...]:
    """The loops in which the consumer does not take the tokens again.

    With ``buffered``, loops over which a buffer keeps a value are among them.
    """
    return tuple(
        loop
        for loop in consumer.loops
        if loop.name in operand.forwards
        or loop.name in operand.removed
        or (operand.at_start and loop.reduction)
        or (buffered and consumer.buffer is not None and not _varies(consumer, operand, loop))
    )


def _fixed(
    consumer: SpatialKernel,
    operand: KernelOperand,
    *,
    buffered: bool = True,
    lanes_of_both: Collection[Expr] = (),
) -> list[Expr]:
    """One representative iteration for everything the tokens are not indexed by.

    Tokens are indexed by ``lanes_of_both``, where these are asked for.
    """
    lanes = [
        loop for loop in consumer.kind(LoopExecution.VECTOR) if loop.definition not in lanes_of_both
    ]
    dropped = dict.fromkeys((*_repeating(consumer, operand, buffered=buffered), *lanes))
    conditions = [] if operand.condition is None or not operand.pinned else [operand.condition]
    return [*(equals(loop.definition, loop.minimum) for loop in dropped), *conditions]


def _with_padded(producer: SpatialKernel, box: LoopDomain) -> LoopDomain:
    """The values of a function with those of the padded iterations of its kernel."""
    pure = [dimension.name for dimension in producer.domain if not dimension.reduction]
    padded = {padding.variable: const(padding.padded) for padding in producer.paddings}
    intervals = [
        replace(interval, extent=padded.get(name, interval.extent))
        for name, interval in zip(pure, box.intervals, strict=False)
    ]
    return LoopDomain([*intervals, *box.intervals[len(intervals) :]])


def check_all_read(
    program: SpatialProgram,
    consumer: SpatialKernel,
    operand: KernelOperand,
    repeating: tuple[SpatialLoop, ...],
) -> None:
    """Check that every value of a streamed function is taken exactly once.

    ``repeating`` are the loops in which the consumer does not take the values again.  What the
    producer sends in padded iterations may be taken too; that both ends have the same of these is
    checked elsewhere.
    """
    function, taken = program.temporal.function(operand.source), operand.taken
    names = list(function.arguments)
    box = LoopDomain(
        [
            Interval(name=name, minimum=const(low), extent=const(extent))
            for name, (low, extent) in zip(names, function.bounds, strict=True)
        ]
    )
    nest = [loop.interval for loop in consumer.loops]
    once = [equals(Index(name=loop.name), loop.minimum) for loop in repeating]
    places = [consumer.place(index) for index in operand.access]
    within = _with_padded(program.kernel(operand.producer), box)
    problem = LoopDomain(nest, once).covers_exactly(
        places, box, names=names, within=within, what="taken"
    )
    if problem is None or taken is None:
        return
    directive = taken.by
    again = [
        loop.name
        for loop in consumer.loops
        if loop not in repeating and not LoopDomain(nest).varies_along(places, loop.name)
    ]
    hint = f"read {function.name} from memory, as without stream"
    if again:
        problem = f"{consumer.text_of(operand)} again for every {', '.join(again)}"
        hint = (
            f"forward it along {again[0]} where that is unrolled, or keep it on chip: take the "
            f"stream in a feeder, isolate_producer({function.name}, feeder), and buffer it there"
        )
    raise UserError(
        f"{directive.text} on {consumer.name}: {consumer.name} does not take every value of "
        f"{function.name} exactly once",
        location=directive.location,
        expected=f"each of {function.name}[{', '.join(names)}] once",
        given=problem,
        hint=hint,
    )


# The writes and reads of a buffer, and the proof that it restores its stream.


def split_at(
    kernel: SpatialKernel, name: str
) -> tuple[tuple[SpatialLoop, ...], tuple[SpatialLoop, ...]]:
    """The serial loops down to and including the named one, and those inside of it."""
    serial = kernel.kind(LoopExecution.SERIAL)
    position = [loop.name for loop in serial].index(name) + 1
    return serial[:position], serial[position:]


def fill_loops(
    producer: SpatialKernel, consumer: SpatialKernel, outer: tuple[SpatialLoop, ...]
) -> tuple[SpatialLoop, ...]:
    """The producer's loops over the values that arrive for one iteration of the buffer's loop.

    One PE of the consumer keeps all of them, or its share of what is scattered.
    """
    known = [loop.definition for loop in outer]
    digit = scattered(consumer)
    known += [
        loop.definition for loop in consumer.kind(LoopExecution.UNROLLED) if loop is not digit
    ]
    return tuple(
        loop for loop in producer.kind(LoopExecution.SERIAL) if loop.definition not in known
    )


def scattered(kernel: SpatialKernel) -> SpatialLoop | None:
    """The loop along which the kernel scatters its operand, or ``None``."""
    stream = kernel.scattering
    return None if stream is None else kernel.loop(stream.loop)


def trips(loops: tuple[SpatialLoop, ...]) -> int:
    """Iterations of loops with constant bounds."""
    return prod(loop.constant[1] for loop in loops if loop.constant is not None)


def check_buffers(program: SpatialProgram) -> None:
    """Check that a buffer replaces every removed loop, and that buffers restore their streams."""
    for kernel in program.kernels:
        for operand in kernel.operands:
            producer = program.sender(operand)
            check_buffer(producer, kernel, operand)
            if kernel.buffer is not None and kernel.buffer.double:
                _warn_if_slow(producer, kernel, kernel.buffer)


def _warn_if_slow(producer: SpatialKernel, kernel: SpatialKernel, buffer: RelayBuffer) -> None:
    """Warn if filling takes longer than sending, which only happens with scattered values."""
    outer, inner = split_at(kernel, buffer.loop)
    writes, reads = trips(fill_loops(producer, kernel, outer)), trips(inner)
    if writes <= reads:
        return
    warn(
        f"{buffer.by.text} on {kernel.name}: filling the buffer takes longer than sending from it",
        location=buffer.by.location,
        expected=f"at most {reads} values for all PEs in each iteration of {buffer.loop}, since "
        f"each PE sends {reads}",
        given=f"{writes} values from {producer.name}: {kernel.name} stalls for "
        f"{writes - reads} of {writes} cycles",
        hint=f"remove more loops from {producer.name}, buffer at a loop further out, or reuse each "
        "value more often",
    )


def check_buffer(producer: SpatialKernel, kernel: SpatialKernel, operand: KernelOperand) -> None:
    """Check that its buffer restores the loops removed from the producer of an operand."""
    if kernel.buffer is not None:
        _check_still_there(kernel, kernel.buffer)
    if operand.removal is not None and not producer.on_host:
        _check_removed(producer, kernel, operand.removal)
    if kernel.buffer is not None:
        _check_restored(producer, kernel, kernel.buffer)


def _check_still_there(kernel: SpatialKernel, buffer: RelayBuffer) -> None:
    """Check that later directives left the buffer's loop in time."""
    loop = kernel.loop(buffer.loop)
    if loop is not None and loop.kind is LoopExecution.SERIAL:
        return
    raise UserError(
        f"{buffer.by.text} on {kernel.name}: loop {buffer.loop} does not run in time any more",
        location=buffer.by.location,
        expected="a loop that stays as it is after buffer",
        given=loop.reason if loop is not None else f"{kernel.name} lost the loop",
        hint="transform, unroll and forward first, then buffer",
    )


def _check_removed(producer: SpatialKernel, consumer: SpatialKernel, removal: Removal) -> None:
    directive, buffer = removal.by, consumer.buffer
    still = [name for name in removal.loops if consumer.loop(name) is not None]
    if not still:
        return
    if buffer is None:
        raise UserError(
            f"{directive.text} on {producer.name}: {consumer.name} still needs every value "
            f"along {', '.join(still)}",
            location=directive.location,
            expected=f"a buffer in {consumer.name}",
            hint=f"write {consumer.name}.buffer({producer.name}, loop) with a loop outside of "
            f"{', '.join(still)}",
        )
    for loop in consumer.kind(LoopExecution.UNROLLED):
        if loop.name in still:
            raise UserError(
                f"{directive.text} on {producer.name}: {consumer.name} has a PE for each "
                f"{loop.name}",
                location=directive.location,
                expected=f"one PE of {consumer.name} for each stream of {producer.name}",
                given=f"{loop.name} in {consumer.name}: {loop.reason}",
                hint=f"keep {loop.name} in time in {consumer.name}, or do not remove it",
            )
    outer, _ = split_at(consumer, buffer.loop)
    for loop in outer:
        if loop.name in still:
            raise UserError(
                f"{buffer.by.text} on {consumer.name}: {loop.name} was removed from "
                f"{producer.name} and is not inside of {buffer.loop}",
                location=buffer.by.location,
                expected=f"a loop outside of {loop.name}",
                notes=((directive.location, f"{loop.name} was removed here"),),
                hint=f"loops of {consumer.name}, outermost first: "
                + ", ".join(other.name for other in consumer.kind(LoopExecution.SERIAL)),
            )


def _check_restored(producer: SpatialKernel, consumer: SpatialKernel, buffer: RelayBuffer) -> None:
    outer, inner = split_at(consumer, buffer.loop)
    fill = fill_loops(producer, consumer, outer)
    first = producer.kind(LoopExecution.SERIAL)[: len(outer)]
    same_outer = [loop.definition for loop in first] == [loop.definition for loop in outer]
    digit = scattered(consumer)
    reads = [loop.definition for loop in (*inner, *([] if digit is None else [digit]))]
    if not same_outer or any(loop.definition not in reads for loop in fill):
        raise UserError(
            f"{buffer.by.text} on {consumer.name}: {producer.name} does not fill the buffer once "
            f"for each iteration of {buffer.loop}",
            location=buffer.by.location,
            expected="the loops of " + _names(consumer) + ", less those that were removed",
            given="the loops of " + _names(producer),
            notes=((producer.location, f"{producer.name} was made here"),),
        )


def _names(kernel: SpatialKernel) -> str:
    loops = ", ".join(loop.name for loop in kernel.kind(LoopExecution.SERIAL))
    return f"{kernel.name} ({loops or 'none'})"
