"""A machine as a flat block: its tags and flags are decided, for the tags that can arrive.

Registers that hold truth values or affect tags are control registers: each combination of their
values is a state of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE
from t2s.backends.cgra_tia.lower.control import flat_blocks as flat
from t2s.backends.cgra_tia.lower.control.decision_trees import reduced
from t2s.backends.cgra_tia.lower.control.refusals import BlockRefusals
from t2s.core.expr import Const, Expr, Local, const
from t2s.core.types import INT32
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.graph import Graph, StreamKind
from t2s.graph.nodes import Choice, Machine, Mode, Rule

MOST_STATES = 128
"""Control states that are looked at: as many as the predicates number."""

_Known = dict[str, Expr]
_Then = Callable[[_Known], flat.Tree | None]


def unfolded(
    graph: Graph, machine: Machine, tags: flat.Tags, ties: dict[str, str]
) -> flat.FlatBlock:
    """The flat block of a machine, for the tags that can arrive; raises ``NotLowered``."""
    refusals = BlockRefusals(machine)
    refusals.check_machine(graph)
    unfolding = _BlockUnfolding(
        graph=graph, machine=machine, tags=tags, ties=ties, refusals=refusals
    )
    return unfolding.block()


@dataclass(kw_only=True)
class _BlockUnfolding:
    graph: Graph
    machine: Machine
    tags: flat.Tags
    ties: dict[str, str]
    refusals: BlockRefusals
    control: tuple[str, ...] = ()
    tied: bool = False
    trees: dict[flat.ControlState, flat.Tree] = field(default_factory=dict)
    _waiting: list[flat.ControlState] = field(default_factory=list)
    _loads: int = 0

    def block(self) -> flat.FlatBlock:
        machine = self.machine
        self.control = _control_registers(machine)
        initial = {register.name: register.initial for register in machine.registers}
        first = flat.ControlState(
            machine.modes[0].name, tuple(int(initial[c]) for c in self.control)
        )
        self._waiting = [first]
        while self._waiting:
            state = self._waiting.pop()
            if state not in self.trees:
                self.trees[state] = flat.NOTHING
                self.trees[state] = self._tree(state)
                if len(self.trees) > MOST_STATES:
                    self.refusals.too_many_states(len(self.trees))
        types = {r.name: r.type for r in machine.registers if r.name not in self.control}
        return flat.FlatBlock(
            name=machine.name,
            location=machine.location,
            heads={h.channel: self.graph.channel(h.channel).stream.element for h in machine.heads},
            values={head.channel: head.value for head in machine.heads},
            outputs={c.name: c.stream.element for c in self.graph.outputs_of(machine.name)},
            registers=types,
            first=first,
            trees=self.trees,
            loose=self._loose(),
            ties=self.ties if self.tied else {},
            coordinates=frozenset(
                head.channel
                for head in machine.heads
                if self.graph.channel(head.channel).stream.kind is StreamKind.COORDINATE
            ),
        )

    def _loose(self) -> frozenset[str]:
        """The int32 values that may be sums or products; coordinates and references are not."""
        loose = set[str]()
        for head in self.machine.heads:
            stream = self.graph.channel(head.channel).stream
            if stream.kind is StreamKind.VALUE and stream.element == INT32:
                loose.add(head.value)
        if loose:
            loose |= {r.name for r in self.machine.registers if r.type == INT32}
        return frozenset(loose)

    def _tree(self, state: flat.ControlState) -> flat.Tree:
        mode: Mode = self.machine.mode(state.mode)
        types = {register.name: register.type for register in self.machine.registers}
        known: _Known = {
            name: Const(value=bool(value) if types[name].is_bool else value, type=types[name])
            for name, value in zip(self.control, state.held, strict=True)
        }
        return (
            self._wait(mode.needs, known, lambda k: self._choices(mode.choices, k)) or flat.NOTHING
        )

    def _wait(self, needs: Sequence[str], known: _Known, then: _Then) -> flat.Tree | None:
        """Wait for the heads that are not known yet; ``None`` where that leads to no firing."""
        heads = {head.channel: head for head in self.machine.heads}
        new = tuple(n for n in dict.fromkeys(needs) if f"?{n}" not in known)
        if not new:
            return then(known)
        if len(new) > EXTENDED_CORE.checks:
            # more heads than one instruction checks: those that are tied need no check
            self.tied = True
            self.refusals.check_heads([name for name in new if self.ties.get(name) not in new])
        cases: list[tuple[tuple[int, ...], flat.Tree]] = []
        for combination in self._combinations(new, known, self.ties if self.tied else {}):
            known_below = dict(known)
            for name, tag in zip(new, combination, strict=True):
                head, stream = heads[name], self.graph.channel(name).stream
                known_below[f"?{name}"] = const(tag)
                if head.tag is not None:
                    known_below[head.tag] = const(flat.graph_tag(tag), INT32)
                if tag != flat.VALUE_TAG and not stream.values_under_tags:
                    known_below[head.value] = const(
                        0.0 if stream.element.is_float else 0, stream.element
                    )
            below = then(known_below)
            if below is not None:
                cases.append((combination, below))
        return flat.HeadWait(heads=new, cases=tuple(cases)) if cases else None

    def _combinations(
        self, new: Sequence[str], known: _Known, ties: Mapping[str, str]
    ) -> Iterator[tuple[int, ...]]:
        """The combinations of tags that heads can have."""
        combinations: list[dict[str, int]] = [{}]
        for name in sorted(new, key=lambda name: name in ties):
            leader = ties.get(name)
            wider: list[dict[str, int]] = []
            for tags, own in product(combinations, sorted(self.tags.get(name, ()))):
                by = known.get(f"?{leader}")
                other = tags.get(leader or "", None if by is None else flat.number_of(by))
                if other in (None, own) or (other, own) == (flat.VALUE_TAG, flat.EMPTY_TAG):
                    wider.append({**tags, name: own})
            combinations = wider
        yield from sorted(tuple(tags[name] for name in new) for tags in combinations)

    def _choices(self, choices: Sequence[Choice], known: _Known) -> flat.Tree | None:
        if not choices:
            return None
        choice, rest = choices[0], choices[1:]
        when = Const(value=True, type=INT32) if choice.when is None else reduced(choice.when, known)
        decided = flat.number_of(when)
        if decided == 0:
            return self._choices(rest, known)
        inside = self._wait(choice.needs, known, lambda k: self._inside(choice, k))
        if decided is not None:
            return inside
        others = self._choices(rest, known)
        return flat.ValueTest(condition=when, yes=inside or flat.NOTHING, no=others or flat.NOTHING)

    def _inside(self, choice: Choice, known: _Known) -> flat.Tree | None:
        match choice.inside:
            case Rule() as rule:
                return self._statements(choice.body, known, lambda k: self._rule(rule, k))
            case inner:
                return self._statements(choice.body, known, lambda k: self._choices(inner, k))

    def _statements(
        self, statements: Sequence[Statement], known: _Known, then: _Then
    ) -> flat.Tree | None:
        """Bind the targets of statements in order; each load becomes a fetch."""
        bound = dict(known)
        for number, statement in enumerate(statements):
            match statement:
                case Let(target=target, value=value):
                    bound[target] = reduced(value, bound)
                case RegisterRead(target=target, register=register, type=type, indices=()):
                    bound[target] = bound.get(register, Local(name=register, type=type))
                case Load(target=target, tensor=tensor, type=type):
                    index = reduced(self.refusals.index_of(self.graph, statement), bound)
                    self._loads += 1
                    name = f"{target}.{self._loads}"
                    bound[target] = Local(name=name, type=type)
                    below = self._statements(statements[number + 1 :], bound, then)
                    if below is None:
                        return None
                    return flat.Fetch(
                        target=name, type=type, tensor=tensor, index=index, then=below
                    )
                case _:
                    self.refusals.statement(statement)
        return then(bound)

    def _rule(self, rule: Rule, known: _Known) -> flat.Tree | None:
        binds = [s for s in rule.body if not isinstance(s, RegisterWrite | Store)]
        if any(isinstance(s, RegisterWrite) for s in rule.body[: len(binds)]):
            first = next(n for n, s in enumerate(rule.body) if isinstance(s, RegisterWrite))
            late = [s for s in rule.body[first:] if isinstance(s, RegisterRead)]
            if late:
                self.refusals.statement(late[0])
        return self._statements(binds, known, lambda k: self._firing(rule, k))

    def _firing(self, rule: Rule, known: _Known) -> flat.Tree:
        held = {name: flat.number_of(known[name]) for name in self.control}
        writes: list[tuple[str, Expr]] = []
        stores: list[flat.FlatStore] = []
        for statement in rule.body:
            match statement:
                case RegisterWrite(register=register, indices=(), value=value):
                    reduced_value = reduced(value, known)
                    if register in held:
                        held[register] = self._decided(
                            reduced_value, f"the register {register!r}", rule
                        )
                    else:
                        writes.append((register, reduced_value))
                case RegisterWrite():
                    self.refusals.statement(statement)
                case Store(tensor=tensor, value=value):
                    where = reduced(self.refusals.index_of(self.graph, statement), known)
                    stores.append(
                        flat.FlatStore(tensor=tensor, index=where, value=reduced(value, known))
                    )
        after = None
        if rule.next is not None:
            after = flat.ControlState(rule.next, tuple(int(held[c] or 0) for c in self.control))
            self._waiting.append(after)
        puts = tuple(
            flat.FlatPut(
                channel=put.channel,
                value=None if put.value is None else reduced(put.value, known),
                tag=self._tag(put.tag, known, rule),
            )
            for put in rule.puts
        )
        return flat.Firing(
            takes=rule.takes, puts=puts, writes=tuple(writes), stores=tuple(stores), after=after
        )

    def _tag(self, tag: Expr | None, known: _Known, rule: Rule) -> int:
        if tag is None:
            return flat.VALUE_TAG
        number = self._decided(reduced(tag, known), "a tag", rule)
        self.refusals.check_tag(number)
        return flat.hardware_tag(number)

    def _decided(self, value: Expr, what: str, rule: Rule) -> int:
        number = flat.number_of(value)
        if number is None:
            self.refusals.depends(what, rule.name)
        return number


def _control_registers(machine: Machine) -> tuple[str, ...]:
    """Registers of truth values, and registers that affect tags or are compared with tags."""
    scalars = {r.name: r for r in machine.registers if not r.shape}
    tags = {head.tag for head in machine.heads if head.tag is not None}
    tag_names: set[str] = set(tags)
    control = {name for name, register in scalars.items() if register.type.is_bool}
    terms: list[Expr] = [put.tag for path in machine.paths() for put in path.rule.puts if put.tag]
    for path in machine.paths():
        conditions = [c.when for c in path.choices if c.when is not None]
        compared = [part for c in conditions for part in walk(c) if isinstance(part, Expr)]
        terms += [
            c
            for c in compared
            if c.type.is_bool and flat.local_names(c) & tag_names and _is_small(c)
        ]
    for term in terms:
        control |= flat.local_names(term) & set(scalars)
    return tuple(name for name in scalars if name in control)


def _is_small(condition: Expr) -> bool:
    """Whether it is a single comparison."""
    return all(not part.type.is_bool for part in walk(condition) if part is not condition)  # type: ignore[attr-defined]
