"""Spans of tokens, and bursts of firings: what machines may do many times at once.

Along the row of a dense matrix, machines fire thousands of times by the same rule, and the tokens
follow from the first one: coordinates and references count up, values lie side by side in memory.
Such tokens are a *span*, one entry of a channel, and such firings a *burst*: its spans take
constant time, and only the values themselves take time for each token.

A rule can burst if it leads back to its own mode and all it takes comes in spans, so that its
conditions hold again for the next token, and if what it takes or sends are spans at all.  A channel
carries spans if a rule that can burst sends into it, and one takes from it.  Each depends on the
other, so both are found by elimination: first all channels might, and those that do not are struck
off until nothing changes.  A span of one token is the general case, so whatever cannot burst works
on spans as well.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType

from t2s.core.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Local,
    Parameter,
    conjuncts,
    const,
    simplify,
)
from t2s.core.ops import OPERATORS, Op
from t2s.core.types import INT32, Type
from t2s.core.walk import Term, children, rewrite, walk
from t2s.graph.body import Let, Load, RegisterWrite, Store, by_lanes
from t2s.graph.graph import Channel, Graph, TensorRole
from t2s.graph.nodes import (
    VALUE,
    Choice,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Path,
    Put,
    Rule,
    SortedMemory,
)


class Carried(Enum):
    """The form of the spans in a channel.

    LINEAR: integers at equal distances.  ARRAY: values at equal distances in memory.
    """

    LINEAR = "linear"
    ARRAY = "array"


class Change(IntEnum):
    """How an expression changes from one firing of a burst to the next.

    FIXED: not at all.  LINEAR: by the same distance, an int32.  VARIED: in any other way.
    """

    FIXED = 0
    LINEAR = 1
    VARIED = 2


Changes = Mapping[str, Change]
Condition = tuple[Expr, bool]
"""A condition on the way to a rule, and whether it has to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A rule that can fire many times at once.

    Attributes
    ----------
    code: its position in ``Machine.paths``.
    changes: of all locals and registers.
    counters: registers that each firing increments, with the increment.
    settled: writes that change nothing, if they do not in the first firing.
    sequential: registers whose new value depends on the firing.
    bound: where a counter bounds the firings: the counter, and the value that it does not reach.
    shifts: of all locals, if the heads that are compared go on by one distance: comparisons of
        such heads are ``FIXED``, and heads and their maximum ``LINEAR``.
    drops: a memory from which each firing takes the first point: its row bounds the firings.
    sizes: locals that hold the number of points in a memory.
    """

    path: Path
    code: int
    changes: Changes
    counters: Mapping[str, int]
    settled: tuple[RegisterWrite, ...]
    sequential: frozenset[str]
    bound: tuple[str, Expr] | None
    shifts: Changes
    drops: str | None
    sizes: Mapping[str, str]

    def change(self, expr: Expr | None) -> Change:
        """How an expression changes; ``None`` is a constant."""
        return Change.FIXED if expr is None else change_of(expr, self.changes)

    @property
    def compared(self) -> tuple[str, ...]:
        """The linear heads that the conditions on the way to the rule depend on."""
        lets = [s for choice in self.path.choices for s in choice.body if isinstance(s, Let)]
        exprs = [*(e for _, level in self.conditions for e, _ in level), *(s.value for s in lets)]
        names = {e.name for expr in exprs for e in walk(expr) if isinstance(e, Local)}
        names -= {s.target for s in lets}
        return tuple(sorted(n for n in names if self.shifts.get(n) is Change.LINEAR))

    @property
    def conditions(self) -> Iterator[tuple[Choice, list[Condition]]]:
        """The alternatives on the way to the rule, each with the conditions at its level."""
        choices = self.path.mode.choices
        for taken in self.path.choices:
            before = choices[: choices.index(taken)]
            level = [(c.when, False) for c in before if c.when is not None]
            if taken.when is not None:
                level.append((taken.when, True))
            yield taken, [(e, holds) for e, holds in level if not self._is_bound(e)]
            choices = taken.inside if isinstance(taken.inside, tuple) else ()

    def _is_bound(self, condition: Expr) -> bool:
        if self.bound is not None and bound_of(condition, self.counters) == self.bound:
            return True
        match condition:
            case Apply(operator=Op.NOT_EQUAL, operands=(Local(name=name), Const(value=0))):
                return self.drops is not None and self.sizes.get(name) == self.drops
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """The channels of a graph that carry spans, and the rules of its machines that can burst."""

    carried: Mapping[str, Carried]
    bursts: Mapping[str, tuple[Burst, ...]]


NO_SPANS = Spans(carried=MappingProxyType({}), bursts=MappingProxyType({}))


def spans_of(graph: Graph, among: Container[str] | None = None) -> Spans:
    """Find the channels that carry spans, and the rules that can burst.

    Only machines ``among`` these, by name, are to burst, or all.
    """
    carried = {c.name: _first_form(c) for c in graph.channels if _may_carry(graph, c)}
    while True:
        bursts = {
            node.name: _bursts(graph, node, carried)
            for node in graph.machines
            if among is None or node.name in among
        }
        kept = {
            name: form
            for name in carried
            if (form := _form(graph.channel(name), bursts, carried)) is not None
        }
        if kept == carried:
            useful = {name: found for name, found in bursts.items() if found}
            return Spans(carried=MappingProxyType(kept), bursts=MappingProxyType(useful))
        carried = kept


def _may_carry(graph: Graph, channel: Channel) -> bool:
    if channel.sink is None or channel.stream.nesting == 0 or channel.stream.element.lanes > 1:
        return False
    ends = graph.node(channel.source), graph.node(channel.sink)
    return all(isinstance(node, Machine) for node in ends)


def _first_form(channel: Channel) -> Carried:
    return Carried.LINEAR if _counts(channel.stream.element) else Carried.ARRAY


def _counts(type: Type) -> bool:
    return type.scalar == INT32 and type.lanes == 1


def _form(
    channel: Channel, bursts: Mapping[str, Sequence[Burst]], carried: Mapping[str, Carried]
) -> Carried | None:
    """What a channel carries, if it does carry spans."""
    taken = any(
        channel.name in burst.path.rule.takes for burst in bursts.get(channel.sink or "", ())
    )
    changes = [
        burst.change(put.value)
        for burst in bursts.get(channel.source, ())
        for put in burst.path.rule.puts
        if put.channel == channel.name
    ]
    if not taken or not changes:
        return None
    return Carried.ARRAY if max(changes) is Change.VARIED else carried[channel.name]


def change_of(expr: Expr, changes: Changes) -> Change:
    """How an expression changes, given its locals."""
    match expr:
        case Const() | Parameter() | Index():
            return Change.FIXED
        case Local(name=name):
            return changes.get(name, Change.VARIED)
        case Cast(value=value, type=type) if type == value.type:
            return change_of(value, changes)
    parts = [change_of(e, changes) for e in children(expr) if isinstance(e, Expr)]
    most = max(parts, default=Change.FIXED)
    if most is not Change.LINEAR or not isinstance(expr, Apply) or not _counts(expr.type):
        return Change.FIXED if most is Change.FIXED else Change.VARIED
    linear = expr.operator in (Op.ADD, Op.SUBTRACT) or (
        expr.operator is Op.MULTIPLY and min(parts) is Change.FIXED
    )
    return Change.LINEAR if linear else Change.VARIED


def _bursts(graph: Graph, node: Machine, carried: Mapping[str, Carried]) -> tuple[Burst, ...]:
    """The rules of a machine that can burst.

    Points are removed in bursts from memories that are filled in bursts: the others have no rows.
    """
    found = [
        burst
        for code, path in enumerate(node.paths())
        if (burst := _burst(graph, node, path, code, carried)) is not None
    ]
    filled = {
        statement.memory
        for burst in found
        for statement in burst.path.rule.body
        if isinstance(statement, MemoryAdd)
    }
    return tuple(burst for burst in found if burst.drops is None or burst.drops in filled)


def _burst(
    graph: Graph, node: Machine, path: Path, code: int, carried: Mapping[str, Carried]
) -> Burst | None:
    """A rule as a burst, if it can be one."""
    rule = path.rule
    writes = register_writes(node, rule)
    if rule.next != path.mode.name or writes is None:
        return None
    puts = [put.channel for put in rule.puts]
    if not all(name in carried for name in rule.takes):
        return None
    if puts and not any(name in carried for name in (*rule.takes, *puts)):
        return None
    heads = _changes_of_heads(node, path, carried)
    registers = {r.name: Change.FIXED for r in node.registers if r.shape == ()}
    counters = {name: by for name, w in writes.items() if (by := increment(w)) is not None}
    registers |= dict.fromkeys(counters, Change.LINEAR)
    sequential: frozenset[str] = frozenset()
    while True:
        changes = _changes_of_locals(graph, node, path, {**heads, **registers})
        if changes is None:
            return None
        varied = frozenset(
            name for name, w in writes.items() if name not in counters and _varies(w, changes)
        )
        if varied == sequential:
            break
        sequential = varied | sequential
        registers |= dict.fromkeys(sequential, Change.VARIED)
    bound = path.choices[-1].when
    drops = [s.memory for s in rule.body if isinstance(s, MemoryDrop)]
    shifts = _shifts(node, path, changes)
    sizes = {s.target: s.memory for s in path.statements if isinstance(s, MemorySize)}
    burst = Burst(
        path=path,
        code=code,
        changes=MappingProxyType(changes),
        counters=MappingProxyType(counters),
        settled=tuple(
            w for name, w in writes.items() if name not in counters and name not in sequential
        ),
        sequential=sequential,
        bound=None if bound is None else bound_of(bound, counters),
        shifts=MappingProxyType(shifts),
        drops=drops[0] if drops else None,
        sizes=MappingProxyType(sizes),
    )
    return burst if _is_sound(burst) and _takes_values(burst, node) else None


def register_writes(node: Machine, rule: Rule) -> dict[str, RegisterWrite] | None:
    """The register writes of a rule; ``None`` if there are others than of scalars, once each."""
    scalars = {r.name for r in node.registers if r.shape == ()}
    found = [s for s in rule.body if isinstance(s, RegisterWrite)]
    writes = {w.register: w for w in found}
    fits = len(writes) == len(found) and scalars >= writes.keys()
    return writes if fits and all(w.condition is None for w in found) else None


def increment(write: RegisterWrite) -> int | None:
    """The constant that a write adds to its register."""
    match write.value:
        case Apply(
            operator=Op.ADD,
            operands=(Local(name=name), Const(value=by)) | (Const(value=by), Local(name=name)),
            type=type,
        ) if name == write.register and _counts(type):
            return int(by)
    return None


def _varies(write: RegisterWrite, changes: Changes) -> bool:
    """Whether a write depends on the firing, or on how floating-point zeros compare."""
    return write.value.type.is_float or change_of(write.value, changes) is not Change.FIXED


def _changes_of_heads(
    node: Machine, path: Path, carried: Mapping[str, Carried]
) -> dict[str, Change]:
    found: dict[str, Change] = {}
    heads = {head.channel: head for head in node.heads}
    for name in path.needs:
        head = heads[name]
        if head.tag is not None:
            found[head.tag] = Change.FIXED
        found[head.value] = Change.FIXED
        if name in path.rule.takes:
            linear = carried[name] is Carried.LINEAR
            found[head.value] = Change.LINEAR if linear else Change.VARIED
    return found


def _changes_of_locals(
    graph: Graph, node: Machine, path: Path, start: Changes
) -> dict[str, Change] | None:
    """How the locals change as well; ``None`` if a statement does not fit into a burst."""
    changes = dict(start)
    memories = {memory.name: memory for memory in node.memories}
    kinds = [type(s) for s in path.statements if isinstance(s, MemoryAdd | MemoryDrop | Store)]
    if len(kinds) > 1:
        return None
    for statement in path.statements:
        match statement:
            case Let(target=target, value=value):
                changes[target] = change_of(value, changes)
            case Load(target=target, tensor=tensor, indices=(index,), condition=None):
                fits = graph.tensor(tensor).role is TensorRole.INPUT and not by_lanes((index,))
                if not fits or statement.type.lanes > 1:
                    return None
                if not _counts(index.type) or change_of(index, changes) is Change.VARIED:
                    return None
                changes[target] = Change.VARIED
            case Store(tensor=tensor, indices=(index,), condition=None, value=value):
                if by_lanes((index,)) or value.type.lanes > 1:
                    return None
                if not _counts(index.type) or change_of(index, changes) is not Change.LINEAR:
                    return None
            case MemorySize(target=target):
                changes[target] = Change.VARIED
            case MemoryFirst(targets=targets, value=value, memory=memory):
                if MemoryDrop not in kinds or not makes_rows(memories[memory]):
                    return None
                changes |= dict.fromkeys(targets, Change.FIXED)
                changes[targets[-1]] = Change.LINEAR
                changes[value] = Change.VARIED
            case MemoryAdd(memory=memory, keys=keys, value=value):
                *outer, last = (change_of(key, changes) for key in keys)
                is_row = last is Change.LINEAR and all(one is Change.FIXED for one in outer)
                if value.type.lanes > 1 or not is_row or not makes_rows(memories[memory]):
                    return None  # other points are not worth it: they are added one by one
            case RegisterWrite() | MemoryDrop():
                pass
            case _:
                return None
    return changes


_COMPARISONS = frozenset(op for op, operator in OPERATORS.items() if operator.comparison)


def shift_of(expr: Expr, shifts: Changes) -> Change:
    """How an expression changes if all compared heads go on by one distance."""
    match expr:
        case Const() | Parameter() | Index():
            return Change.FIXED
        case Local(name=name):
            return shifts.get(name, Change.VARIED)
    parts = {shift_of(e, shifts) for e in children(expr) if isinstance(e, Expr)}
    if parts <= {Change.FIXED}:
        return Change.FIXED
    if parts == {Change.LINEAR} and isinstance(expr, Apply):
        if expr.operator in _COMPARISONS:
            return Change.FIXED
        if expr.operator in (Op.MAXIMUM, Op.MINIMUM):
            return Change.LINEAR
    return Change.VARIED


def _shifts(node: Machine, path: Path, changes: Changes) -> dict[str, Change]:
    """How the locals on the way to a rule change, as ``Burst`` says."""
    heads = {head.value for head in node.heads if head.channel in path.rule.takes}
    shifts: dict[str, Change] = {
        name: change
        for name, change in changes.items()
        if change is Change.FIXED or (change is Change.LINEAR and name in heads)
    }
    for choice in path.choices:
        for statement in choice.body:
            if isinstance(statement, Let):
                shifts[statement.target] = shift_of(statement.value, shifts)
    return shifts


def makes_rows(memory: SortedMemory) -> bool:
    """Whether consecutive points of a memory may be kept as a row: their keys fit into a word."""
    return len(memory.keys) == 1 or (
        len(memory.keys) == 2 and all(type.bits <= INT32.bits for type in memory.keys)
    )


def bound_of(condition: Expr, counters: Mapping[str, int]) -> tuple[str, Expr] | None:
    """The counter in a condition that it is less than something else, and that."""
    match condition:
        case Apply(operator=Op.LESS, operands=(Local(name=name), limit)) if counters.get(name) == 1:
            return name, limit
    return None


def _is_sound(burst: Burst) -> bool:
    """Whether the conditions of the first firing hold for all, whose number is bounded."""
    if not burst.path.rule.takes and burst.bound is None and burst.drops is None:
        return False
    if burst.bound is not None and burst.change(burst.bound[1]) is not Change.FIXED:
        return False
    conditions = (e for _, level in burst.conditions for e, _ in level)
    if any(shift_of(e, burst.shifts) is not Change.FIXED for e in conditions):
        return False
    if any(burst.change(put.tag) is not Change.FIXED for put in burst.path.rule.puts):
        return False
    return not any(map(_is_wide, burst.path.rule.puts))


def _takes_values(burst: Burst, node: Machine) -> bool:
    """Whether the rule may be taken for tokens that are values, as far as tags tell.

    Other tokens hardly ever follow one another, and are no reason for more code.
    """
    conditions = (one for _, level in burst.conditions for one in level)
    return may_hold(conditions, node, burst.path.rule.takes, VALUE)


def may_hold(
    conditions: Iterable[Condition], node: Machine, takes: Container[str], tag: int
) -> bool:
    """Whether conditions may hold if all tokens that are taken have this tag."""
    heads = (head for head in node.heads if head.channel in takes)
    tags = {head.tag: const(tag, INT32) for head in heads if head.tag is not None}
    return not any(
        isinstance(known := simplify(substituted(part, tags)), Const) and known.value is not holds
        for condition, holds in conditions
        for part in (conjuncts(condition) if holds else (condition,))
    )


def substituted(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    def replaced(term: Term) -> Term | None:
        return values.get(term.name) if isinstance(term, Local) else None

    result = rewrite(expr, replaced)
    assert isinstance(result, Expr)
    return result


def _is_wide(put: Put) -> bool:
    return put.value is not None and put.value.type.lanes > 1
