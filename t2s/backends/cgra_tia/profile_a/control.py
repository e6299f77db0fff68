"""The streams between PEs, and how each PE knows the kind of its next firing.

A PE of the public core has no stream unit that sends it tags, so the kind of a firing arrives with
the data.  A stream from which a PE takes in every firing is its *leader*: the tag of each token is
the kind of the firing.  The sender of the leader has to know these tags, and so on up to the PE at
the memory port, which sends addresses with these tags.  A PE without a leader counts: its firings
follow a pattern that is short enough to be written out.  Tag 3 ends every stream.

PEs that only copy one stream to another are removed, and the two streams are merged.  Refused are
streams with one end, cycles of streams, PEs that take nothing, and more kinds of firings than there
are tags or instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.profile_a.firings import (
    FileElement,
    FiringKind,
    MemoryAccess,
    WordProcess,
    kept,
    token,
)
from t2s.core.expr import Const, Expr, Local, simplify
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.core.types import Type
from t2s.core.walk import Term, rewrite
from t2s.graph.control.iterations import rows_apart

END = 3
"""The tag of the token behind the last one of a stream."""

MOST_TAGS = 3
"""Tags for data; the fourth is ``END``."""

MOST_PATTERN = 12
"""Most firings in the pattern of a PE that counts."""


@dataclass(frozen=True, kw_only=True)
class StreamEnds:
    """The sender and the receiver: numbers of processes, or ``None`` for the memory."""

    source: int | None
    sink: int | None
    tokens: int


@dataclass(frozen=True, kw_only=True)
class ControlledProcess:
    """A process, and how its firings are selected.

    ``kinds`` are its kinds of firings, each with the ``tags`` of what it sends.  With a ``leader``
    the tag of its token is the number of the kind (any tag if there is one kind); without,
    ``pattern`` is the repeated sequence of kinds.
    """

    process: WordProcess
    kinds: tuple[FiringKind, ...]
    tags: tuple[dict[TokenStream, int], ...]
    sequence: Array
    leader: TokenStream | None
    pattern: tuple[int, ...]


@dataclass(kw_only=True)
class ControlledDesign:
    """Processes and streams.

    ``needs`` has the tag of each token of the streams whose receivers need tags; all other tags
    are 0."""

    processes: list[ControlledProcess]
    streams: dict[TokenStream, StreamEnds]
    needs: dict[TokenStream, Array] = field(default_factory=dict)
    loads: dict[TokenStream, MemoryAccess] = field(default_factory=dict)
    stores: dict[TokenStream, MemoryAccess] = field(default_factory=dict)

    def tags_of(self, stream: TokenStream) -> tuple[int, ...]:
        """The tags that occur in a stream, without that of its end."""
        needed = self.needs.get(stream)
        return (0,) if needed is None else tuple(int(tag) for tag in np.unique(needed))


def controlled(
    processes: Sequence[WordProcess], accesses: dict[TokenStream, MemoryAccess], ports: int
) -> ControlledDesign:
    """Connect processes, and decide how the firings of each are selected.

    If there are more load streams than ``ports``, those of one PE share a port.
    """
    remaining, renamed = _without_movers(processes)
    loads = {renamed.get(s, s): a for s, a in accesses.items() if a.loads}
    stores = {s: a for s, a in accesses.items() if not a.loads}
    share_ports(remaining, loads, ports)
    streams = _connected(remaining, loads, stores)
    design = ControlledDesign(processes=[], streams=streams, loads=loads, stores=stores)
    by_number = {
        number: _control(remaining[number], design) for number in _backwards(remaining, streams)
    }
    design.processes = [by_number[number] for number in range(len(remaining))]
    return design


# -------------------------------------------------------------------------------- streams


def _without_movers(
    processes: Sequence[WordProcess],
) -> tuple[list[WordProcess], dict[TokenStream, TokenStream]]:
    """Remove PEs that only copy one stream to another; returns the new names of streams.

    A chain of merged streams is named after its last one.
    """
    renamed: dict[TokenStream, TokenStream] = {}
    remaining: list[WordProcess] = []
    for process in processes:
        moved = _moved(process)
        if moved is None:
            remaining.append(process)
        else:
            renamed[moved[0]] = moved[1]
    final = {stream: _last(stream, renamed) for stream in renamed}
    for process in remaining:
        process.kinds = tuple(_renamed(kind, final) for kind in process.kinds)
    return remaining, final


def _moved(process: WordProcess) -> tuple[TokenStream, TokenStream] | None:
    if len(process.kinds) != 1:
        return None
    (kind,) = process.kinds
    if len(kind.takes) != 1 or len(kind.sends) != 1 or kind.writes:
        return None
    (stream,), ((sent, value),) = kind.takes, kind.sends
    return (stream, sent) if value == token(stream, value.type) else None


def _last(stream: TokenStream, renamed: dict[TokenStream, TokenStream]) -> TokenStream:
    while stream in renamed:
        stream = renamed[stream]
    return stream


def _renamed(kind: FiringKind, final: dict[TokenStream, TokenStream]) -> FiringKind:
    """Rename the streams that are sent; those that are taken already have their final names."""
    return FiringKind(
        takes=kind.takes,
        sends=tuple((final.get(stream, stream), value) for stream, value in kind.sends),
        writes=kind.writes,
        parts=kind.parts,
    )


def _connected(
    processes: Sequence[WordProcess],
    loads: dict[TokenStream, MemoryAccess],
    stores: dict[TokenStream, MemoryAccess],
) -> dict[TokenStream, StreamEnds]:
    """Both ends of every stream; a stream with one end is refused."""
    sources: dict[TokenStream, tuple[int | None, int]] = {
        stream: (None, len(access.addresses)) for stream, access in loads.items()
    }
    sinks: dict[TokenStream, tuple[int | None, int]] = {
        stream: (None, len(access.addresses)) for stream, access in stores.items()
    }
    for number, process in enumerate(processes):
        for stream in process.sends:
            sources[stream] = (number, int(_happens(process, stream).sum()))
        for stream in process.takes:
            sinks[stream] = (number, int(_tokens(process.kinds, stream)[process.sequence].sum()))
    ends_of: dict[TokenStream, StreamEnds] = {}
    for stream in dict.fromkeys((*sources, *sinks)):
        source, sink = sources.get(stream), sinks.get(stream)
        if source is None or sink is None or source[1] != sink[1]:
            end = source if sink is None else sink
            assert end is not None
            location = _location(processes, end[0])
            sent, taken = (0 if source is None else source[1]), (0 if sink is None else sink[1])
            why = f"{sent} tokens are sent to it, and {taken} are taken from it"
            refuse(f"channel {str(stream)!r}", why, location)
        ends_of[stream] = StreamEnds(source=source[0], sink=sink[0], tokens=source[1])
    return ends_of


def _location(processes: Sequence[WordProcess], number: int | None) -> SourceLocation | None:
    return None if number is None else processes[number].location


def _happens(process: WordProcess, stream: TokenStream) -> Array:
    """For each firing, whether the process sends to a stream."""
    return np.array([stream in dict(kind.sends) for kind in process.kinds])[process.sequence]


def _tokens(kinds: Sequence[FiringKind], stream: TokenStream) -> Array:
    """How many tokens each kind of firing takes from a stream."""
    return np.array([kind.tokens(stream) for kind in kinds], np.int64)


def _backwards(
    processes: Sequence[WordProcess], streams: dict[TokenStream, StreamEnds]
) -> list[int]:
    """The numbers of processes, receivers before their senders."""
    after: dict[int, list[int]] = {number: [] for number in range(len(processes))}
    for ends in streams.values():
        if ends.source is not None and ends.sink is not None:
            after[ends.source].append(ends.sink)
    order: list[int] = []
    remaining = list(after)
    while remaining:
        ready = [number for number in remaining if all(sink in order for sink in after[number])]
        if not ready:
            names = ", ".join(processes[number].name for number in remaining[:4])
            refuse(
                processes[remaining[0]].subject,
                f"streams form a cycle through its PEs and others ({names}), and tags are "
                "passed on from the memory: use t2s.cgra.place, whose stream units send tags",
                processes[remaining[0]].location,
            )
        order += ready
        remaining = [number for number in remaining if number not in ready]
    return order


# -------------------------------------------------------------------------------- control


def _control(process: WordProcess, design: ControlledDesign) -> ControlledProcess:
    """Split the kinds of a process by the tags that they send, and decide what selects them."""
    if not process.takes:
        refuse(
            process.subject,
            "its PEs take nothing, and each firing of the public core waits for a token: load "
            "something there",
            process.location,
        )
    without_restarts(process)
    kinds, tags, sequence = _split(process, design)
    leaders = [s for s in process.takes if all(s in kind.takes for kind in kinds)]
    leader, pattern = None, tuple[int, ...]()
    if leaders and len(kinds) <= MOST_TAGS:
        leader = leaders[0]
        if len(kinds) > 1:
            design.needs[leader] = np.repeat(sequence, _tokens(kinds, leader)[sequence])
    else:
        pattern = _pattern(process, sequence, leaders)
    return ControlledProcess(
        process=process,
        kinds=kinds,
        tags=tags,
        sequence=sequence,
        leader=leader,
        pattern=pattern,
    )


def _split(
    process: WordProcess, design: ControlledDesign
) -> tuple[tuple[FiringKind, ...], tuple[dict[TokenStream, int], ...], Array]:
    columns: list[Array] = [process.sequence]
    tagged = [stream for stream in process.sends if stream in design.needs]
    for stream in tagged:
        happens = _happens(process, stream)
        column = np.full(len(happens), -1, np.int64)
        column[happens] = design.needs[stream]
        columns.append(column)
    codes, first = rows_apart(columns, len(process.sequence))
    kinds = tuple(process.kinds[int(process.sequence[at])] for at in first)
    tags = tuple(
        {stream: int(of[at]) for stream, of in zip(tagged, columns[1:], strict=True) if of[at] >= 0}
        for at in first
    )
    return kinds, tags, codes


def _pattern(
    process: WordProcess, sequence: Array, leaders: Sequence[TokenStream]
) -> tuple[int, ...]:
    """The shortest prefix whose repetition is the sequence; a long one is refused."""
    total = len(sequence)
    for period in range(1, min(total, MOST_PATTERN) + 1):
        if total % period == 0 and (sequence[period:] == sequence[: total - period]).all():
            return tuple(int(kind) for kind in sequence[:period])
    kinds = int(sequence.max()) + 1
    why = (
        f"its firings are of {kinds} kinds, and tags of {str(leaders[0])!r} tell {MOST_TAGS} apart"
        if leaders
        else f"no stream gives it a token in each of its firings, so that tags could tell the "
        f"{kinds} kinds of them apart"
    )
    refuse(
        process.subject,
        f"{why}, and they come in no pattern of at most {MOST_PATTERN}: let what it does depend "
        "on fewer loops, or make them smaller",
        process.location,
    )


def taken_names(kind: FiringKind) -> dict[str, TokenStream]:
    """The streams that a kind takes from, by the names of their tokens."""
    names: dict[str, TokenStream] = {}
    brought = dict(kind.parts)
    for stream in kind.takes:
        for part in brought.get(stream, (stream,)):
            names[f"take {part}"] = part
    return names


def is_token(local: Local) -> bool:
    """Whether a local of a value is a token, and not the content of a register."""
    return local.name.startswith("take ")


# Resetting accumulators at the end of a sum rather than at its start.
#
# The first firing of a sum ignores the content of the register.  If the firing before it leaves a
# zero there, the first firing is like those that follow: this saves a tag, and an instruction in
# every PE that the tag passes.


def without_restarts(process: WordProcess) -> None:
    """Merge kinds of firings that are equal if a register is zero, where it can be made zero."""
    for element in dict.fromkeys(process.elements.values()):
        if process.initial.get(element, 0):
            continue
        for first in range(len(process.kinds)):
            other = _same_from_zero(process, element, first)
            if other is not None:
                _merge(process, element, first, other)
                break


def _same_from_zero(process: WordProcess, element: FileElement, first: int) -> int | None:
    """The kind that equals ``first`` if the element is zero, if the element can be made zero."""
    sequence = process.sequence
    pairs = set(zip(sequence[:-1].tolist(), sequence[1:].tolist(), strict=True))
    before = {previous for previous, after in pairs if after == first}
    if any(after != first for previous, after in pairs if previous in before) or first in before:
        return None
    for number, kind in enumerate(process.kinds):
        if number != first and _from_zero(kind, element) == process.kinds[first]:
            return number
    return None


def _from_zero(kind: FiringKind, element: FileElement) -> FiringKind:
    """The kind of a firing for which an element of a register file holds zero."""

    def value(expr: Expr) -> Expr:
        def rule(term: Term) -> Term | None:
            if isinstance(term, Local) and term == kept(element, term.type):
                return Const(value=0, type=term.type)
            return None

        return simplify(rewrite(expr, rule))

    return replace(
        kind,
        sends=tuple((stream, value(sent)) for stream, sent in kind.sends),
        writes=tuple((written_element, value(written)) for written_element, written in kind.writes),
    )


def _merge(process: WordProcess, element: FileElement, first: int, other: int) -> None:
    """Let the kinds that precede ``first`` leave a zero, and replace ``first`` by ``other``."""
    sequence = process.sequence
    before = set(sequence[:-1][sequence[1:] == first].tolist())
    zero = Const(value=0, type=_type(process, element))
    process.kinds = tuple(
        replace(
            kind,
            writes=(*(pair for pair in kind.writes if pair[0] != element), (element, zero)),
        )
        if number in before
        else kind
        for number, kind in enumerate(process.kinds)
    )
    sequence = sequence.copy()
    sequence[sequence == first] = other
    process.sequence = sequence


def _type(process: WordProcess, element: FileElement) -> Type:
    return next(
        register.type for register in process.node.registers if register.name == element.register
    )


# Sharing ports: the loads of one PE as one stream, if there are fewer ports than load streams.
#
# The words arrive in the order in which the firings of the PE take them.


def share_ports(
    processes: Sequence[WordProcess], loads: dict[TokenStream, MemoryAccess], ports: int
) -> None:
    """Merge the loads of each process into one stream if there are more streams than ports."""
    if len(loads) <= ports:
        return
    for process in processes:
        mine = [stream for stream in process.takes if stream in loads]
        if len(mine) > 1:
            _share(process, mine, loads)


def _share(
    process: WordProcess, mine: list[TokenStream], loads: dict[TokenStream, MemoryAccess]
) -> None:
    together = TokenStream(array=f"the loads of {process.name}")
    brought = [tuple(s for s in kind.takes if s in mine) for kind in process.kinds]
    counts = np.array([len(streams) for streams in brought], np.int64)[process.sequence]
    starts = np.cumsum(counts) - counts
    addresses = np.zeros(int(counts.sum()), np.int64)
    lanes = np.zeros(len(addresses), np.int64)
    accesses = [loads.pop(stream) for stream in mine]
    for lane, (stream, access) in enumerate(zip(mine, accesses, strict=True)):
        place = np.array([s.index(stream) if stream in s else -1 for s in brought], np.int64)
        where = place[process.sequence]
        at = (starts + where)[where >= 0]
        addresses[at], lanes[at] = access.addresses, lane
    names = " and ".join(dict.fromkeys(access.tensor for access in accesses))
    loads[together] = replace(accesses[0], tensor=names, addresses=addresses, lanes=lanes)
    process.kinds = tuple(
        _with_one(kind, streams, together)
        for kind, streams in zip(process.kinds, brought, strict=True)
    )


def _with_one(
    kind: FiringKind, streams: tuple[TokenStream, ...], together: TokenStream
) -> FiringKind:
    if not streams:
        return kind
    others = tuple(stream for stream in kind.takes if stream not in streams)
    return replace(kind, takes=(together, *others), parts=((together, streams),))
