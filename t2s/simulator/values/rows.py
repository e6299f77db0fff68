"""Rows: machines that fire in step along the rows of a scanner, as one piece of code.

A scanner makes a token for each coordinate of a row, and a stop where the row ends.  Machines that
pass this structure on, such as a load, a product, or one that repeats a token for each coordinate,
make one token of each of these.  So a scanner and all such machines behind it fire the same number
of times, and in which rule each of them fires follows from whether the token is a stop, and whether
the row begins.  Their tokens need no channels: they pass from one machine to the next in registers,
eight at a time, one in each lane (see ``emit_rows``).

What such machines do in other cases, as at the end of a matrix, they do each by itself.  Values in
streams do not depend on the order in which machines fire, so this changes nothing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from t2s.core.expr import Apply, Const, Expr, Local, Select, const, simplify
from t2s.core.ops import C_FUNCTIONS
from t2s.core.types import INT32
from t2s.core.walk import children
from t2s.graph.body import Let, Load, RegisterWrite, by_lanes
from t2s.graph.graph import Channel, Graph, TensorRole
from t2s.graph.nodes import VALUE, Choice, Machine, Mode, Path, Put, Rule
from t2s.simulator.values.spans import (
    bound_of,
    increment,
    register_writes,
    substituted,
)
from t2s.simulator.values.vectors import END_OF_ROW, fits_lanes, has_vectors

_FEWEST = 3
"""Machines that are worth code of their own."""

_MOST_GROUPS = 4
"""Groups of a graph: each one is more code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A rule, and its position in ``Machine.paths``."""

    path: Path
    code: int

    @property
    def puts(self) -> dict[str, Put]:
        """What it puts, by channel."""
        return {put.channel: put for put in self.path.rule.puts}

    @property
    def writes(self) -> dict[str, Expr]:
        """What it writes into registers."""
        body = self.path.rule.body
        return {s.register: s.value for s in body if isinstance(s, RegisterWrite)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanner:
    """A machine that counts along rows.

    Attributes
    ----------
    mode: in which it does.
    step: the rule of each coordinate, which takes no token.
    close: the rule of the end of a row, which takes a token and begins the next row.
    counters: the registers that ``step`` increments, with the increment.
    counter, limit: one of these, and what it does not reach.
    """

    node: Machine
    mode: Mode
    step: Firing
    close: Firing
    counters: Mapping[str, int]
    counter: str
    limit: Expr

    @property
    def is_dense(self) -> bool:
        """Whether coordinates are counted, and not loaded."""
        return not any(isinstance(s, Load) for s in self.step.path.statements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """A machine that makes one token of each one in a row.

    Attributes
    ----------
    takes: the channels of which it takes them.
    held: those of which it takes a token where a row begins.
    inside, outside: the modes in which it is within a row and between two, which may be the same.
    again: the rule of a coordinate.
    first: that of the first one of a row, which puts what ``again`` would put after it.
    stop: the rule of a stop.
    empty: that of a stop where a row begins; ``None`` if there is no such rule.
    others: the same machine in other modes, in which it puts the same into other channels.
    """

    node: Machine
    takes: tuple[str, ...]
    held: tuple[str, ...]
    inside: Mode
    outside: Mode
    again: Firing
    first: Firing
    stop: Firing
    empty: Firing | None
    others: tuple[Follower, ...] = ()

    @property
    def ways(self) -> tuple[Follower, ...]:
        """The machine in every mode."""
        return (self, *self.others)

    @property
    def alternates(self) -> bool:
        """Whether it is in another mode between rows."""
        return self.inside.name != self.outside.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A scanner and the machines that follow it, senders before receivers.

    ``inner`` are the channels between them, and ``outer`` those that they put tokens into, or one
    of several, depending on the mode.
    """

    scanner: Scanner
    followers: tuple[Follower, ...]
    inner: tuple[str, ...]
    outer: tuple[tuple[str, ...], ...]

    @property
    def machines(self) -> tuple[Machine, ...]:
        """All machines."""
        return (self.scanner.node, *(follower.node for follower in self.followers))


def rows_of(graph: Graph, besides: Container[str] = ()) -> tuple[Rows, ...]:
    """The groups of machines that fire along rows, each machine in one of them at most.

    Only the innermost rows are worth it: all others have fewer tokens.  Machines that are named in
    ``besides`` fire in another way, so no group has them.
    """
    found: list[Rows] = []
    deepest = max((channel.stream.nesting for channel in graph.channels), default=0)
    for node in graph.machines:
        nesting = max((c.stream.nesting for c in graph.outputs_of(node.name)), default=0)
        if len(found) == _MOST_GROUPS or nesting < deepest:
            continue
        if (scanner := _scanner(graph, node)) is not None:
            group = _group(graph, scanner, {m.name for rows in found for m in rows.machines})
            alone = any(machine.name in besides for machine in group.machines)
            if len(group.machines) >= _FEWEST and not alone:
                found.append(group)
    return tuple(found)


def _group(graph: Graph, scanner: Scanner, taken: set[str]) -> Rows:
    """A scanner with all machines that follow it."""
    followers: dict[str, Follower] = {}
    puts = dict.fromkeys(scanner.step.puts)
    while True:
        names = {graph.channel(name).sink for name in puts} - followers.keys() - taken
        new = [
            follower
            for node in graph.machines
            if node.name in names and (follower := _follower(graph, node, puts)) is not None
        ]
        if not new:
            break
        followers |= {follower.node.name: follower for follower in new}
        for follower in new:
            if not follower.others:
                puts |= dict.fromkeys(follower.again.puts)
    if any(name in puts for follower in followers.values() for name in follower.held):
        followers, puts = {}, {}
    inner = {name for follower in followers.values() for name in follower.takes}
    others = [
        channels
        for follower in followers.values()
        if follower.others
        for channels in zip(*(way.again.puts for way in follower.ways), strict=True)
    ]
    return Rows(
        scanner=scanner,
        followers=tuple(followers.values()),
        inner=tuple(name for name in puts if name in inner),
        outer=(*((name,) for name in puts if name not in inner), *others),
    )


def _scanner(graph: Graph, node: Machine) -> Scanner | None:
    """A machine as a scanner, if it is one."""
    if not _is_alone(graph, node):
        return None
    tags = _tags(node, dict.fromkeys(_inputs(node), VALUE))
    found = (_counting(graph, node, mode, tags) for mode in node.modes if not mode.needs)
    return next((scanner for scanner in found if scanner is not None), None)


def _counting(graph: Graph, node: Machine, mode: Mode, tags: Mapping[str, Expr]) -> Scanner | None:
    """A machine as a scanner that counts in a mode; heads have the ``tags`` of values."""
    counts, *others = mode.choices
    rule, last = counts.inside, _decided(others, tags)
    if not isinstance(rule, Rule) or counts.when is None or last is None:
        return None
    writes = register_writes(node, rule)
    if writes is None or register_writes(node, last) is None:
        return None
    counters = {name: by for name, write in writes.items() if (by := increment(write))}
    bound = bound_of(counts.when, counters)
    step, close = _firing(node, rule), _firing(node, last)
    fits = (
        bound is not None
        and len(counters) == len(writes)
        and rule.next == last.next == mode.name
        and not counts.needs
        and not rule.takes
        and len(last.takes) == 1
        and last.takes == close.path.needs
        and _puts(graph, step, tuple(step.puts), VALUE, tags)
        and _puts(graph, close, tuple(step.puts), END_OF_ROW, tags)
        and _is_computed(graph, step)
        and _is_computed(graph, close)
    )
    if not fits or bound is None:
        return None
    counter, limit = bound
    return Scanner(
        node=node,
        mode=mode,
        step=step,
        close=close,
        counters=counters,
        counter=counter,
        limit=limit,
    )


def _follower(graph: Graph, node: Machine, puts: Mapping[str, None]) -> Follower | None:
    """A machine that takes tokens of some channels as a follower, if it is one."""
    takes = tuple(name for name in _inputs(node) if name in puts)
    others = tuple(name for name in _inputs(node) if name not in puts)
    if not _is_alone(graph, node):
        return None
    value, stop = (
        _tags(node, {**dict.fromkeys(takes, tag), **dict.fromkeys(others, VALUE)})
        for tag in (VALUE, END_OF_ROW)
    )
    found = [_within(graph, node, mode, takes, value, stop) for mode in node.modes]
    ways = [follower for follower in found if follower is not None]
    if not ways or not all(_are_alike(graph, ways[0], way) for way in ways[1:]):
        return None
    return replace(ways[0], others=tuple(ways[1:]))


def _are_alike(graph: Graph, one: Follower, other: Follower) -> bool:
    """Whether a machine does the same in two modes, but for the channels."""
    puts = one.again.path.rule.puts, other.again.path.rule.puts
    return (
        not one.alternates
        and not other.alternates
        and len(puts[0]) == len(puts[1])
        and not one.again.puts.keys() & other.again.puts.keys()
        and not one.again.path.statements
        and not other.again.path.statements
        and all(
            a.value == b.value
            and graph.channel(a.channel).stream.element == graph.channel(b.channel).stream.element
            for a, b in zip(*puts, strict=True)
        )
    )


def _within(
    graph: Graph,
    node: Machine,
    inside: Mode,
    takes: tuple[str, ...],
    value: Mapping[str, Expr],
    stop: Mapping[str, Expr],
) -> Follower | None:
    """A machine as a follower that is in a mode within rows; ``value`` and ``stop`` are tags."""
    again, end = _decided(inside.choices, value), _decided(inside.choices, stop)
    if again is None or end is None or again.next != inside.name or end.next is None:
        return None
    outside = node.mode(end.next)
    first, empty = _decided(outside.choices, value), _decided(outside.choices, stop)
    if first is None or first.next != inside.name:
        return None
    follower = Follower(
        node=node,
        takes=takes,
        held=tuple(name for name in _firing(node, first).path.needs if name not in takes),
        inside=inside,
        outside=outside,
        again=_firing(node, again),
        first=_firing(node, first),
        stop=_firing(node, end),
        empty=None if empty is None else _firing(node, empty),
    )
    puts = tuple(follower.again.puts)
    fits = (
        _uses(follower.again, takes)
        and _uses(follower.stop, takes)
        and _uses(follower.first, (*takes, *follower.held))
        and _puts(graph, follower.stop, puts, END_OF_ROW, stop)
        and not follower.stop.path.statements
        and not follower.again.writes
        and _is_computed(graph, follower.again)
    )
    if not fits or not _begins_alike(graph, follower, value):
        return None
    if follower.empty is not None and not (
        _uses(follower.empty, (*takes, *follower.held))
        and follower.empty.path.rule.next == outside.name
        and _puts(graph, follower.empty, puts, END_OF_ROW, stop)
        and not follower.empty.path.statements
    ):
        return replace(follower, empty=None)
    return follower


def _begins_alike(graph: Graph, follower: Follower, value: Mapping[str, Expr]) -> bool:
    """Whether the first token of a row is as those after it; ``value`` are the tags."""
    first, again = follower.first, follower.again
    puts = tuple(again.puts)
    if not follower.alternates:
        return _puts(graph, again, puts, VALUE, value)
    if any(not isinstance(s, RegisterWrite) for s in first.path.statements):
        return False
    if register_writes(follower.node, first.path.rule) is None:
        return False
    after = {name: substituted(written, value) for name, written in first.writes.items()}
    return (
        _puts(graph, first, puts, VALUE, value)
        and _puts(graph, again, puts, VALUE, {**value, **after})
        and all(
            _after(put.value, first.writes) == first.puts[name].value
            for name, put in again.puts.items()
        )
    )


def _after(expr: Expr | None, writes: Mapping[str, Expr]) -> Expr | None:
    """An expression as it was before registers were written."""
    return None if expr is None else substituted(expr, writes)


def _is_alone(graph: Graph, node: Machine) -> bool:
    """Whether it is one machine, with channels of its own, and codes of a byte."""
    ends = (*graph.inputs_of(node.name), *graph.outputs_of(node.name))
    return not node.space and all(channel.shape == () for channel in ends)


def _inputs(node: Machine) -> tuple[str, ...]:
    return tuple(head.channel for head in node.heads)


def _carries(channel: Channel) -> bool:
    """Whether its tokens are in lanes, and nothing but tokens under the tag of a value has one."""
    return has_vectors(channel) and not channel.stream.values_under_tags


def _tags(node: Machine, tags: Mapping[str, int]) -> dict[str, Expr]:
    """The tags of heads, by name."""
    return {
        head.tag: const(tags[head.channel], INT32)
        for head in node.heads
        if head.tag is not None and head.channel in tags
    }


def _decided(choices: Sequence[Choice], tags: Mapping[str, Expr]) -> Rule | None:
    """The rule that is chosen for heads with these tags; ``None`` if more than tags decides."""
    for choice in choices:
        if choice.when is not None:
            holds = simplify(substituted(choice.when, tags))
            if not isinstance(holds, Const):
                return None
            if not holds.value:
                continue
        return choice.inside if isinstance(choice.inside, Rule) else _decided(choice.inside, tags)
    return None


def _firing(node: Machine, rule: Rule) -> Firing:
    return next(
        Firing(path=path, code=code)
        for code, path in enumerate(node.paths())
        if path.rule.name == rule.name
    )


def _uses(firing: Firing, takes: tuple[str, ...]) -> bool:
    """Whether a rule needs these tokens alone, and takes them."""
    return set(takes) == set(firing.path.rule.takes) == set(firing.path.needs)


def _puts(
    graph: Graph,
    firing: Firing,
    channels: tuple[str, ...],
    tag: int,
    known: Mapping[str, Expr],
) -> bool:
    """Whether a rule puts a token with this tag into each of these channels, given locals."""
    puts = firing.path.rule.puts
    return 0 < len(puts) == len(channels) and all(
        put.channel in channels
        and _carries(graph.channel(put.channel))
        and _tag_of(put, known) == tag
        for put in puts
    )


def _tag_of(put: Put, known: Mapping[str, Expr]) -> object:
    """The tag of a put, given locals; ``None`` if it depends on more."""
    if put.tag is None:
        return VALUE
    found = simplify(substituted(put.tag, known))
    return found.value if isinstance(found, Const) else None


def _is_computed(graph: Graph, firing: Firing) -> bool:
    """Whether what a rule does can be computed in lanes, and before it is known that it fires."""
    exprs = [put.value for put in firing.path.rule.puts if put.value is not None]
    for statement in firing.path.statements:
        match statement:
            case Let(value=value) | RegisterWrite(value=value):
                exprs.append(value)
            case Load(indices=indices) if _is_read(graph, statement):
                exprs += indices
            case _:
                return False
    return all(map(_has_lanes, exprs))


def _is_read(graph: Graph, load: Load) -> bool:
    """Whether it is a scalar of an input."""
    return (
        graph.tensor(load.tensor).role is TensorRole.INPUT
        and load.condition is None
        and len(load.indices) == 1
        and not by_lanes(load.indices)
        and load.indices[0].type == INT32
        and fits_lanes(load.type)
        and not load.type.is_bool
    )


def _has_lanes(expr: Expr) -> bool:
    """Whether an expression can be computed in lanes, whatever differs between them."""
    match expr:
        case Local() | Const():
            return fits_lanes(expr.type)
        case Apply(operator=operator) if operator in C_FUNCTIONS:
            return False
        case Apply() | Select():
            parts = (e for e in children(expr) if isinstance(e, Expr))
            return fits_lanes(expr.type) and all(map(_has_lanes, parts))
    return False
