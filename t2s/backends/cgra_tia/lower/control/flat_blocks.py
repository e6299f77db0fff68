"""Flat blocks: machines with all tags and flags decided, as a tree for each control state.

Their tags are those of the hardware: 0 is a value, ``n + 1`` the stop of level n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE
from t2s.core.expr import Apply, Const, Expr, Local
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import Int, Type
from t2s.core.walk import walk
from t2s.graph.graph import Graph
from t2s.graph.nodes import DONE, EMPTY, Machine

VALUE_TAG = 0
EMPTY_TAG = EXTENDED_CORE.tags - 2
DONE_TAG = EXTENDED_CORE.tags - 1


def hardware_tag(tag: int) -> int:
    """The tag on the wires that stands for a tag of the graph."""
    return {EMPTY: EMPTY_TAG, DONE: DONE_TAG}.get(tag, tag)


def graph_tag(tag: int) -> int:
    """The tag of the graph that a tag on the wires stands for."""
    return {EMPTY_TAG: EMPTY, DONE_TAG: DONE}.get(tag, tag)


@dataclass(frozen=True, slots=True)
class ControlState:
    """A mode, and the values of the control registers."""

    mode: str
    held: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatPut:
    """A token that is put into a channel; without a ``value`` it is zero."""

    channel: str
    value: Expr | None
    tag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatStore:
    """A store to an element of a tensor."""

    tensor: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A rule: what it takes, puts, writes and stores, and the next state (``None`` at the end)."""

    takes: tuple[str, ...]
    puts: tuple[FlatPut, ...]
    writes: tuple[tuple[str, Expr], ...]
    stores: tuple[FlatStore, ...]
    after: ControlState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadWait:
    """A wait for tokens at some heads, with a tree for each combination of tags that can arrive."""

    heads: tuple[str, ...]
    cases: tuple[tuple[tuple[int, ...], Tree], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTest:
    """A branch on values."""

    condition: Expr
    yes: Tree
    no: Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Load an element into the local ``target``."""

    target: str
    type: Type
    tensor: str
    index: Expr
    then: Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Send an address into the channel ``asks``, and wait for the head ``answers``."""

    asks: str
    answers: str
    index: Expr
    then: Tree


Tree = Firing | HeadWait | ValueTest | Fetch | Ask

NOTHING = HeadWait(heads=(), cases=())
"""Where no alternative holds: nothing fires any more."""


@dataclass(kw_only=True)
class FlatBlock:
    """A machine as trees; ``heads`` and ``outputs`` are channels with their element types.

    ``values`` are the locals that hold the values of heads.  ``loaded`` are outputs into which
    addresses are put, and the tensors that are loaded there.  ``loose`` are locals of type int32
    whose upper word half is undefined, because they may be sums or products.  ``ties`` are heads
    that arrive together with another head whose tag determines theirs (references beside
    coordinates).  ``coordinates`` are the heads that bring coordinates.
    """

    name: str
    location: SourceLocation | None
    heads: dict[str, Type]
    values: dict[str, str]
    outputs: dict[str, Type]
    registers: dict[str, Type]
    first: ControlState
    trees: dict[ControlState, Tree]
    loaded: dict[str, str] = field(default_factory=dict)
    loose: frozenset[str] = frozenset()
    ties: dict[str, str] = field(default_factory=dict)
    coordinates: frozenset[str] = frozenset()

    @property
    def subject(self) -> str:
        return f"block {self.name!r}"


def parts_below(tree: Tree) -> Iterator[Tree]:
    """A tree and all of its subtrees."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        yield part
        match part:
            case HeadWait(cases=cases):
                waiting += [below for _, below in reversed(cases)]
            case ValueTest(yes=yes, no=no):
                waiting += [no, yes]
            case Fetch(then=then) | Ask(then=then):
                waiting.append(then)


def all_parts(block: FlatBlock) -> Iterator[Tree]:
    """All trees of a block."""
    for tree in block.trees.values():
        yield from parts_below(tree)


def firings_of(block: FlatBlock) -> list[Firing]:
    """All firings, in order."""
    return [part for part in all_parts(block) if isinstance(part, Firing)]


def changed(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """A tree with every subtree rewritten, from the leaves up."""
    match tree:
        case HeadWait(heads=heads, cases=cases):
            inner = tuple((tags, changed(below, change)) for tags, below in cases)
            return change(HeadWait(heads=heads, cases=inner))
        case ValueTest(condition=condition, yes=yes, no=no):
            return change(
                ValueTest(condition=condition, yes=changed(yes, change), no=changed(no, change))
            )
        case Fetch(target=target, type=type, tensor=tensor, index=index, then=then):
            return change(
                Fetch(
                    target=target,
                    type=type,
                    tensor=tensor,
                    index=index,
                    then=changed(then, change),
                )
            )
        case Ask(asks=asks, answers=answers, index=index, then=then):
            return change(Ask(asks=asks, answers=answers, index=index, then=changed(then, change)))
    return change(tree)


def with_expressions(tree: Tree, change: Callable[[Expr], Expr]) -> Tree:
    """A tree with every expression rewritten."""

    def one(part: Tree) -> Tree:
        match part:
            case Firing():
                return Firing(
                    takes=part.takes,
                    puts=tuple(
                        FlatPut(
                            channel=put.channel,
                            value=None if put.value is None else change(put.value),
                            tag=put.tag,
                        )
                        for put in part.puts
                    ),
                    writes=tuple((name, change(value)) for name, value in part.writes),
                    stores=tuple(
                        FlatStore(
                            tensor=store.tensor,
                            index=change(store.index),
                            value=change(store.value),
                        )
                        for store in part.stores
                    ),
                    after=part.after,
                )
            case ValueTest(condition=condition, yes=yes, no=no):
                return ValueTest(condition=change(condition), yes=yes, no=no)
            case Fetch(target=target, type=type, tensor=tensor, index=index, then=then):
                return Fetch(
                    target=target, type=type, tensor=tensor, index=change(index), then=then
                )
            case Ask(asks=asks, answers=answers, index=index, then=then):
                return Ask(asks=asks, answers=answers, index=change(index), then=then)
        return part

    return changed(tree, one)


def with_last_head(block: FlatBlock, head: str) -> FlatBlock:
    """The block with one more head, whose only token the last firing takes."""

    def one(part: Tree) -> Tree:
        if isinstance(part, Firing) and part.after is None:
            return replace(part, takes=(*part.takes, head))
        return part

    return replace(
        block,
        heads={**block.heads, head: Int(64)},
        values={**block.values, head: head},
        trees={state: changed(tree, one) for state, tree in block.trees.items()},
    )


def expressions_of(part: Tree) -> list[Expr]:
    """The expressions of a tree, without those of its subtrees."""
    match part:
        case Firing():
            expressions = [put.value for put in part.puts if put.value is not None]
            expressions += [value for _, value in part.writes]
            return expressions + [e for store in part.stores for e in (store.index, store.value)]
        case ValueTest(condition=condition):
            return [condition]
        case Fetch(index=index) | Ask(index=index):
            return [index]
    return []


def alike(block: FlatBlock) -> dict[str, str]:
    """For each output, the first output that always gets the same tokens at the same time."""
    puts: dict[str, list[object]] = {name: [] for name in block.outputs}
    asks = {part.asks for tree in block.trees.values() for part in asks_of(tree)}
    for number, firing in enumerate(firings_of(block)):
        for put in firing.puts:
            puts[put.channel].append((number, put.value, put.tag))
    first: dict[object, str] = {}
    return {
        name: name if name in asks else first.setdefault(tuple(tokens), name)
        for name, tokens in puts.items()
    }


def asks_of(tree: Tree) -> list[Ask]:
    """The load requests in a tree."""
    return [part for part in parts_below(tree) if isinstance(part, Ask)]


def local_names(expr: Expr) -> set[str]:
    """The locals that an expression reads."""
    return {part.name for part in walk(expr) if isinstance(part, Local)}


def number_of(expr: Expr) -> int | None:
    """The value of a constant integer or truth value; ``None`` for any other expression."""
    if isinstance(expr, Const) and not expr.type.is_float:
        return int(expr.value)
    return None


Tags = Mapping[str, frozenset[int]]
"""The tags that may come through each channel."""


# Liveness: which registers of a flat block are needed in which of its control states.
#
# Dead writes are removed.  A register is *summed* if it holds the result of an FMA.

_ARITHMETIC = {Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.FUSED_MULTIPLY_ADD}

Live = Mapping[ControlState, frozenset[str]]


@dataclass(frozen=True, kw_only=True)
class NeededBlock:
    """A block without dead writes; ``live`` are the registers that are live in each state."""

    block: FlatBlock
    live: Live
    summed: frozenset[str]


def needed(block: FlatBlock) -> NeededBlock:
    """The block without dead writes."""
    live = _live(block)

    def one(part: Tree) -> Tree:
        if not isinstance(part, Firing):
            return part
        live_after = live[part.after] if part.after is not None else frozenset()
        writes = tuple(
            (name, value)
            for name, value in part.writes
            if name in live_after and not (isinstance(value, Local) and value.name == name)
        )
        return replace(part, writes=writes)

    trees = {state: changed(tree, one) for state, tree in block.trees.items()}
    narrow = replace(block, trees=trees)
    summed = {
        name
        for firing in firings_of(narrow)
        for name, value in firing.writes
        if any(
            isinstance(part, Apply) and part.type.is_float and part.operator in _ARITHMETIC
            for part in walk(value)
        )
    }
    return NeededBlock(block=narrow, live=live, summed=frozenset(summed))


def needed_by(tree: Tree, block: FlatBlock) -> frozenset[str]:
    """The registers that are live before a tree of a block."""
    return _before(tree, block, _live(block))


def _live(block: FlatBlock) -> dict[ControlState, frozenset[str]]:
    live_before: dict[ControlState, frozenset[str]] = dict.fromkeys(block.trees, frozenset())
    while True:
        new = {state: _before(tree, block, live_before) for state, tree in block.trees.items()}
        if new == live_before:
            return live_before
        live_before = new


def _before(tree: Tree, block: FlatBlock, live: Live) -> frozenset[str]:
    """The registers that are live before a tree, given those of all states."""
    match tree:
        case Firing(after=after, writes=writes):
            live_after = live[after] if after is not None else frozenset()
            without_dead = replace(tree, writes=tuple(w for w in writes if w[0] in live_after))
            return live_after - {name for name, _ in writes} | _read(without_dead, block)
        case HeadWait(cases=cases):
            return frozenset[str]().union(*(_before(below, block, live) for _, below in cases))
        case ValueTest(yes=yes, no=no):
            return _before(yes, block, live) | _before(no, block, live) | _read(tree, block)
        case Fetch(then=then) | Ask(then=then):
            return _before(then, block, live) | _read(tree, block)


def _read(part: Tree, block: FlatBlock) -> frozenset[str]:
    names = set[str]().union(*map(local_names, expressions_of(part)))
    return frozenset(names.intersection(block.registers))


# Tied heads: references beside coordinates.
#
# If a block puts two streams in the same rules, with equal tags or with a value beside an empty
# token, and another block takes both in the same rules, then the tag of one determines that of the
# other, except for whether it is empty.  A cell that does not use the value of such a head need not
# see it; the cell that uses the value takes the token.


def ties_of(graph: Graph, machine: Machine, blocks: Mapping[str, FlatBlock]) -> dict[str, str]:
    """The tied heads of a machine, each with the head that determines its tag."""
    ties: dict[str, str] = {}
    takes = [path.rule.takes for path in machine.paths()]
    leaders: list[str] = []
    for head in (machine_head.channel for machine_head in machine.heads):
        channel = graph.channel(head)
        if channel.stream.values_under_tags:
            continue
        source = blocks.get(channel.source)
        firings = [] if source is None else firings_of(source)
        for leader in leaders:
            same = graph.channel(leader).source == channel.source
            together = all((head in own) == (leader in own) for own in takes)
            if same and together and all(_alike(firing, leader, head) for firing in firings):
                ties[head] = leader
                break
        else:
            leaders.append(head)
    return ties


def _alike(firing: Firing, leader: str, head: str) -> bool:
    """Whether a firing puts both with matching tags, or neither."""
    one, other = (
        [put.tag for put in firing.puts if put.channel == name] for name in (leader, head)
    )
    return one == other or (one, other) == ([VALUE_TAG], [EMPTY_TAG])


def without_ties(block: FlatBlock) -> FlatBlock:
    """The block without tied heads whose values it does not use."""
    for tied in block.ties:
        value = block.values.get(tied)
        expressions = [e for part in all_parts(block) for e in expressions_of(part)]
        if value is None or any(value in local_names(expr) for expr in expressions):
            continue
        trees = {state: changed(tree, _Untied(tied)) for state, tree in block.trees.items()}
        narrow = replace(
            block,
            trees=trees,
            heads={name: type for name, type in block.heads.items() if name != tied},
            values={name: own for name, own in block.values.items() if name != tied},
        )
        waits = (part.heads for part in all_parts(narrow) if isinstance(part, HeadWait))
        if not any(tied in heads for heads in waits):
            block = narrow
    return block


@dataclass(frozen=True, slots=True)
class _Untied:
    """Removes a head from a tree where its tags decide nothing."""

    head: str

    def __call__(self, part: Tree) -> Tree:
        match part:
            case Firing(takes=takes):
                return replace(part, takes=tuple(name for name in takes if name != self.head))
            case HeadWait(heads=heads, cases=cases) if self.head in heads:
                at = heads.index(self.head)
                narrow = [((*tags[:at], *tags[at + 1 :]), below) for tags, below in cases]
                merged = dict(narrow)
                if any(merged[tags] != below for tags, below in narrow):
                    return part
                others = (*heads[:at], *heads[at + 1 :])
                return HeadWait(heads=others, cases=tuple(merged.items())) if others else merged[()]
        return part
