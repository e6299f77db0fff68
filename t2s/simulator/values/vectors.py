"""Vectors of firings: rules that a machine may fire eight at a time, whatever its tokens are.

A machine that makes one token of one, such as a load or a product, does so for values, stops and
absent values alike, by one of a few rules that lead back to its mode.  None of these firings needs
another one, so each lane of a vector can make one: it holds a token of every input, and the tokens
that each rule would send are computed and selected.  Unlike a burst (see ``spans``), a vector of
firings needs no repetition, and rows may be as short as they like.

A firing may also count, as that of a scanner does: its register is known in each lane.  Points are
added to a sorted memory one after the other, but all are known at once.

The firings of a vector are those before the first lane for which no such rule holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from t2s.core.expr import Apply, Broadcast, Expr, Local, Select
from t2s.core.ops import C_FUNCTIONS
from t2s.core.types import INT32, Kind, Type
from t2s.core.walk import children, walk
from t2s.graph.body import Let, Load, RegisterWrite, by_lanes
from t2s.graph.graph import Channel, Graph, TensorRole
from t2s.graph.nodes import VALUE, Choice, Machine, MemoryAdd, Mode, Path, Rule
from t2s.simulator.values.spans import Condition, increment, may_hold, register_writes

LANES = 8

END_OF_ROW = 1
"""The tag of the lowest stop."""

_MOST_RULES = 8
_MOST_LOADS = 2
_BITS = (32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRules:
    """Rules of a mode that lead back to it, and fire in vectors.

    Attributes
    ----------
    codes: the position of each rule in ``Machine.paths``, by name.
    takes, puts: the channels of which each of them takes a token, and into which it puts one.
    go_on: whether they go on where a row ends, so that all lanes fire as a rule.
    counters: registers that each firing increments, with the increment.
    memory: the sorted memory that some of them add a point to.
    interrupted: whether tokens may call for other rules that lead back to the mode.
    """

    codes: Mapping[str, int]
    takes: tuple[str, ...]
    puts: tuple[str, ...]
    go_on: bool
    counters: Mapping[str, int]
    memory: str | None
    interrupted: bool

    def among(self, choice: Choice) -> bool:
        """Whether an alternative has such a rule."""
        if isinstance(choice.inside, Rule):
            return choice.inside.name in self.codes
        return any(map(self.among, choice.inside))


def vector_rules(graph: Graph, node: Machine, mode: Mode) -> VectorRules | None:
    """The rules of a mode that lead back to it and fire in vectors, if some do."""
    numbered = list(enumerate(node.paths()))
    repeated = {
        code: path
        for code, path in numbered
        if path.mode.name == mode.name and path.rule.next == mode.name
    }
    paths = _alike(repeated)
    if not 0 < len(paths) <= _MOST_RULES:
        return None
    first, *others = (path.rule for path in paths.values())
    takes, puts = first.takes, tuple(put.channel for put in first.puts)
    channels = [graph.channel(name) for name in (*takes, *puts)]
    statements = [s for path in paths.values() for s in path.statements]
    loads = {s.target for s in statements if isinstance(s, Load)}
    memories = {s.memory for s in statements if isinstance(s, MemoryAdd)}
    counters = _counters(node, first)
    fits = (
        0 < len(channels) == len({*takes, *puts})
        and all(set(rule.takes) == set(takes) for rule in others)
        and all(sorted(put.channel for put in rule.puts) == sorted(puts) for rule in others)
        and all(set(path.needs) == set(takes) for path in paths.values())
        and all(map(has_vectors, channels))
        and len(loads) <= _MOST_LOADS
        and len(memories) <= 1
        and counters is not None
        and all(_counters(node, rule) == counters for rule in others)
        and all(_fits(graph, node, path, takes, counters) for path in paths.values())
    )
    if not fits or counters is None or not _may_take(node, paths.values(), VALUE):
        return None
    return VectorRules(
        codes={path.rule.name: code for code, path in paths.items()},
        takes=takes,
        puts=puts,
        go_on=bool(takes) and _may_take(node, paths.values(), END_OF_ROW),
        counters=counters,
        memory=next(iter(memories), None),
        interrupted=len(paths) < len(repeated) and bool(takes),
    )


def _alike(paths: Mapping[int, Path]) -> dict[int, Path]:
    """The rules that take and put the same, of those that do so in different ways.

    Those that take no tokens come first: nothing but registers decides about them.  Else those that
    take most do, as where all coordinates of a join are the same.
    """
    classes: dict[tuple[frozenset[str], frozenset[str]], dict[int, Path]] = {}
    for code, path in paths.items():
        puts = frozenset(put.channel for put in path.rule.puts)
        classes.setdefault((frozenset(path.rule.takes), puts), {})[code] = path
    if not classes:
        return {}
    counting = [one for one in classes if not one[0]]
    return classes[max(counting or classes, key=lambda one: (len(one[0]), len(one[1])))]


def _counters(node: Machine, rule: Rule) -> Mapping[str, int] | None:
    """The increments of registers; ``None`` if there are other writes."""
    writes = register_writes(node, rule)
    if writes is None:
        return None
    increments = {name: by for name, w in writes.items() if (by := increment(w)) is not None}
    return increments if len(increments) == len(writes) else None


def _may_take(node: Machine, paths: Iterable[Path], tag: int) -> bool:
    """Whether one of these rules may be taken for tokens with a tag, as far as tags tell."""
    return any(may_hold(_conditions(path), node, path.rule.takes, tag) for path in paths)


def _conditions(path: Path) -> Iterator[Condition]:
    """The conditions on the way to a rule."""
    for choice in _alternatives(path):
        if choice.when is not None:
            yield choice.when, choice in path.choices


def has_vectors(channel: Channel) -> bool:
    """Whether eight tokens are two vectors, of tags and of values."""
    type = channel.stream.element
    return (
        channel.stream.nesting > 0 and not type.is_bool and type.bits in _BITS and type.lanes == 1
    )


def _fits(
    graph: Graph, node: Machine, path: Path, takes: tuple[str, ...], counters: Iterable[str]
) -> bool:
    """Whether the way to a rule, and its statements, can be computed for several tokens at once."""
    varied = varied_heads(node, takes).union(counters)
    adds = 0
    for statement in path.statements:
        match statement:
            case RegisterWrite():
                continue
            case MemoryAdd(keys=keys, value=value):
                adds += 1
                parts = (*keys, value)
                if adds > 1 or any(part.type.is_bool for part in parts):
                    return False
                if not all(has_lanes(part, varies_with(varied)) for part in parts):
                    return False
                continue
            case Let(target=target, value=value):
                if not has_lanes(value, varies_with(varied)):
                    return False
            case Load(target=target, tensor=tensor, indices=(index,), condition=None):
                if graph.tensor(tensor).role is not TensorRole.INPUT or by_lanes((index,)):
                    return False
                if index.type != INT32 or not fits_lanes(statement.type):
                    return False
                if not has_lanes(index, varies_with(varied)):
                    return False
            case _:
                return False
        varied |= {target}
    varies = varies_with(varied)
    conditions = (c.when for c in _alternatives(path) if c.when is not None)
    tokens = [e for put in path.rule.puts for e in (put.value, put.tag) if e is not None]
    tags = [put.tag.type for put in path.rule.puts if put.tag is not None]
    return all(has_lanes(e, varies) for e in (*conditions, *tokens)) and set(tags) <= {INT32}


def varied_heads(node: Machine, takes: tuple[str, ...]) -> set[str]:
    """The names of heads that are taken, which differ between lanes."""
    heads = [head for head in node.heads if head.channel in takes]
    return {name for head in heads for name in (head.value, head.tag) if name is not None}


def _alternatives(path: Path) -> Iterator[Choice]:
    """The alternatives that are tried on the way to a rule."""
    choices = path.mode.choices
    for taken in path.choices:
        yield from choices[: choices.index(taken) + 1]
        choices = taken.inside if isinstance(taken.inside, tuple) else ()


# Expressions for several firings at once.

Varies = Callable[[Expr], bool]


def varies_with(names: set[str]) -> Varies:
    """Whether an expression has one of these locals."""
    return lambda expr: any(isinstance(e, Local) and e.name in names for e in walk(expr))


def fits_lanes(type: Type) -> bool:
    """Whether values can be computed in vectors."""
    return type.lanes == 1 and (type.is_bool or (type.kind is not Kind.BFLOAT and type.bits >= 32))


def has_lanes(expr: Expr, varies: Varies) -> bool:
    """Whether an expression can be computed for several firings at once."""
    if not fits_lanes(expr.type):
        return False
    if not varies(expr):
        return True
    match expr:
        case Local():
            return True
        case Apply(operator=operator) if operator in C_FUNCTIONS:
            return False
        case Apply() | Select():
            return all(has_lanes(e, varies) for e in children(expr) if isinstance(e, Expr))
    return False


def for_lanes(expr: Expr, varies: Varies) -> Expr:
    """The same expression for several firings."""
    wide = expr.type.with_lanes(LANES)
    if not varies(expr):
        return Broadcast(value=expr, type=wide)
    match expr:
        case Apply(operands=operands):
            operands = tuple(for_lanes(operand, varies) for operand in operands)
            return replace(expr, type=wide, operands=operands)
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            parts = (for_lanes(part, varies) for part in (condition, if_true, if_false))
            condition, if_true, if_false = parts
            return Select(type=wide, condition=condition, if_true=if_true, if_false=if_false)
    assert isinstance(expr, Local)
    return replace(expr, type=wide)
