"""Flat blocks: machines whose tags and flags are all decided, as trees for each control state.

The tags in them are those of the hardware: 0 is a value, ``n + 1`` the stop of level n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE
from t2s.core.expr import Const, Expr
from t2s.core.location import SourceLocation
from t2s.core.types import Int, Type
from t2s.graph.machine import DONE, EMPTY

VALUE_TAG = 0
EMPTY_TAG = EXTENDED_CORE.tags - 2
DONE_TAG = EXTENDED_CORE.tags - 1


def hardware_tag(tag: int) -> int:
    """The tag on the wires for a tag of the graph."""
    return {EMPTY: EMPTY_TAG, DONE: DONE_TAG}.get(tag, tag)


def graph_tag(tag: int) -> int:
    """The tag of the graph for one on the wires."""
    return {EMPTY_TAG: EMPTY, DONE_TAG: DONE}.get(tag, tag)


@dataclass(frozen=True, slots=True)
class ControlState:
    """A mode, and the values of the registers that are part of the control."""

    mode: str
    held: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatPut:
    """A token into a channel; ``value`` ``None`` is zero."""

    channel: str
    value: Expr | None
    tag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatStore:
    """An element that is stored."""

    tensor: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A rule: what it takes, puts, keeps and stores; ``after`` ``None`` is the end."""

    takes: tuple[str, ...]
    puts: tuple[FlatPut, ...]
    writes: tuple[tuple[str, Expr], ...]
    stores: tuple[FlatStore, ...]
    after: ControlState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadWait:
    """Tokens at some heads: what to do for each combination of their tags that may come."""

    heads: tuple[str, ...]
    cases: tuple[tuple[tuple[int, ...], Tree], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTest:
    """A choice over values."""

    condition: Expr
    yes: Tree
    no: Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Load an element, as the local ``target``.  ``asks``: the head that the cell gets it from."""

    target: str
    type: Type
    tensor: str
    index: Expr
    then: Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Put an address into the channel ``asks``, and wait for the answer at the head ``answers``."""

    asks: str
    answers: str
    index: Expr
    then: Tree


Tree = Firing | HeadWait | ValueTest | Fetch | Ask

NOTHING = HeadWait(heads=(), cases=())
"""Where no alternative holds: nothing fires any more."""


@dataclass(kw_only=True)
class FlatBlock:
    """A machine with its trees; ``heads`` and ``outputs`` are channels with types of elements.

    ``values`` are the names by which expressions call the values of heads.  ``answers`` are heads
    of loads that are asked for, which have values alone; ``loaded`` says of outputs that what is
    put there is an address: of which tensor.  ``loose`` are locals of type int32 of whose words the
    upper half is undefined, because they may be sums and products.  ``ties`` are heads that come
    and go with another one, by whose tag theirs is known: the references beside coordinates.
    ``coordinates`` are the heads that bring these.
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
    """A tree and all trees in it."""
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
    """A tree with every part replaced, from the leaves up."""
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
    """A tree with every expression replaced."""

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
    """The block with one more head, of which the last firing takes the only token."""

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
    """The expressions of a part itself."""
    match part:
        case Firing():
            found = [put.value for put in part.puts if put.value is not None]
            found += [value for _, value in part.writes]
            return found + [e for store in part.stores for e in (store.index, store.value)]
        case ValueTest(condition=condition):
            return [condition]
        case Fetch(index=index) | Ask(index=index):
            return [index]
    return []


def alike(block: FlatBlock) -> dict[str, str]:
    """For each output the first one that always puts the same tokens at the same time."""
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
    """The loads that are asked for in a tree."""
    return [part for part in parts_below(tree) if isinstance(part, Ask)]


def number_of(expr: Expr) -> int | None:
    """The value of an integer or a truth value that is constant."""
    if isinstance(expr, Const) and not expr.type.is_float:
        return int(expr.value)
    return None


Tags = Mapping[str, frozenset[int]]
"""The tags that may come through each channel."""
