"""Bodies of patterns during lowering: where each local is computed, and how units receive it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from t2s.backends.capstan.machines.kit import GraphDraft, UnitDraft, Wire
from t2s.backends.capstan.machines.vectors import in_lanes, is_there, stages
from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local, Parameter, ReduceLanes, apply, const, equals, select, spread
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.body import Let, Role, SpaceDimension, Statement
from t2s.graph.build import In, put, rule, when, write
from t2s.graph.nodes import Choice, Put
from t2s.patterns.ir import Bind, Reduce, start_of


@dataclass(eq=False, kw_only=True)
class PatternBody:
    """The body of a pattern, or of the whole program; the latter fires once.

    Attributes
    ----------
    around: the enclosing body.
    lanes: iterations of a firing.
    space: the partitions.
    control: see the package's docstring; ``binder`` is the name of its value in units of the body,
        and of a local with the same values.
    wires: the locals, by name.
    environment: values of parameters that are fixed before the program runs.
    given_back: for locals that announce a loaded block, the wires on which its readers release it,
        one token for each firing of this body.
    carry: turns a wire of the enclosing body into one of this body; only where both bodies have the
        same firings, as for the partitions of a body.
    """

    draft: GraphDraft
    around: PatternBody | None
    lanes: int
    space: tuple[SpaceDimension, ...]
    region: str | None
    control: Wire
    binder: str
    wires: dict[str, Wire] = field(default_factory=dict)
    environment: dict[str, int] = field(default_factory=dict)
    given_back: dict[str, list[Wire]] = field(default_factory=dict)
    carry: Callable[[Wire, str], Wire] | None = None
    _repeated: set[str] = field(default_factory=set)

    @property
    def made(self) -> set[str]:
        """The locals that this body computes, without those that it only repeats."""
        return set(self.wires) - self._repeated

    def distance(self, name: str) -> int:
        """How many bodies further out a local is defined; -1 for an unknown local."""
        if name in self.wires:
            return 0
        if self.around is None:
            return -1
        beyond = self.around.distance(name)
        return beyond if beyond < 0 else beyond + 1

    def wire(self, name: str) -> Wire:
        """The wire of a local in this body; one from further out is repeated for each firing."""
        if name not in self.wires:
            if self.around is None:
                raise InternalError(f"no unit makes {name!r}")
            outer = self.around.wire(name)
            if self.carry is not None:
                self.wires[name] = self.carry(outer, name)
            else:
                self.wires[name] = repeated(self, name)
                self._repeated.add(name)
        return self.wires[name]

    def known(self, expr: Expr) -> Expr:
        """The expression with the environment substituted."""

        def rule(node: Term) -> Term | None:
            if isinstance(node, Parameter) and node.name in self.environment:
                return const(self.environment[node.name], node.type)
            return None

        return rewrite(expr, rule)


class BodyUnit(UnitDraft):
    """A unit of a body: it takes the control and the body's locals, and holds the enclosing body's.

    ``valid`` tells active iterations from idle ones, by lane if the body has lanes.
    """

    def __init__(
        self, body: PatternBody, name: str, role: Role, location: SourceLocation | None
    ) -> None:
        super().__init__(body.draft, name, role, body.space, body.region, location)
        self.body = body
        self.control = self.listen(body.control, body.binder)
        self._own: dict[str, In] = {}
        self._held: dict[str, In] = {}
        self._inside: dict[str, Local] = {}
        self._credits: tuple[list[Wire], list[Wire]] = [], []

    @property
    def lanes(self) -> int:
        return self.body.lanes

    @property
    def valid(self) -> Expr:
        """Whether the iteration is active."""
        return is_there(self.control.value)

    def local_type(self, name: str) -> Type:
        """The type of a local here: a vector if a body with lanes computes it."""
        return self.reads(name).type

    def reads(self, name: str) -> Local:
        """The value of a local of this body, of an enclosing one, or bound by the unit itself."""
        return self._inside[name] if name in self._inside else self._head(name).value

    def bind(self, name: str, value: Expr) -> Let:
        """Bind a local of the body inside the unit."""
        self._inside[name] = Local(name=name, type=value.type)
        return Let(target=name, value=value)

    def _head(self, name: str) -> In:
        body = self.body
        if name == body.binder:
            return self.control
        if name in self._own or name in self._held:
            return self._own.get(name) or self._held[name]
        near = body.distance(name) == 0 or body.carry is not None
        if near or body.around is None:
            self._own[name] = self.listen(body.wire(name), name)
            self._give_back(body, name, 0)
        else:
            self._held[name] = self.listen(body.around.wire(name), name)
            self._give_back(body.around, name, 1)
        return self._own.get(name) or self._held[name]

    def _give_back(self, owner: PatternBody, name: str, distance: int) -> None:
        """Release a block when it has been read, where it is reloaded in an inner body."""
        if name in owner.given_back:
            credit = self.output(f"{name}_read")
            owner.given_back[name].append(credit)
            self._credits[distance].append(credit)

    def scalar(self, expr: Expr) -> Expr:
        """An expression over locals that are equal in all lanes."""
        known = self.body.known(expr)
        self._listen(known)
        return known

    def vector(self, expr: Expr) -> Expr:
        """An expression for all lanes of the body; a scalar if the body has one lane."""
        known = self.body.known(expr)
        self._listen(known)
        if self.lanes == 1:
            return known
        return in_lanes(known, self.lanes, self.local_type)

    def _listen(self, expr: Expr) -> None:
        for term in walk(expr):
            if isinstance(term, Local):
                self.reads(term.name)

    def wait(self, names: Iterable[str]) -> None:
        """Make every firing wait for these locals, whose values are not used."""
        for name in names:
            self._head(name)

    @property
    def own_operands(self) -> tuple[In, ...]:
        """The locals of the body that the unit takes, without the control."""
        return tuple(self._own.values())

    @property
    def operands(self) -> tuple[In, ...]:
        """The locals that the unit takes or holds."""
        return (*self._own.values(), *self._held.values())

    def at_each(
        self,
        cases: Sequence[FiringCase],
        *,
        first: Sequence[FiringCase] = (),
        also: Sequence[In] = (),
        lets: Sequence[Let] = (),
        done: Sequence[Put] = (),
        mode: str = "run",
        gate: CreditGate | None = None,
    ) -> None:
        """Add the mode in which the unit fires for each firing of the body, and ends with it.

        Every firing waits for all heads and for the ``gate``.  The cases in ``first`` are tried;
        then, with the heads in ``also`` present and ``lets`` bound, ``cases``, in order.
        """
        end = rule("done", None if gate is None else "drain", takes=[self.control], puts=done)
        self.mode(
            mode,
            when(self.control.is_done, end),
            when(
                None,
                [
                    *(choice for case in first for choice in self._choices(case, mode)),
                    when(None, self._gated(cases, mode, gate), needs=also, body=lets),
                ],
                needs=self.operands,
            ),
            needs=[self.control],
        )
        if gate is not None:
            less_begun = write(gate.begun, gate.begun - 1)
            drained = rule("drain", "drain", takes=gate.heads, body=[less_begun])
            self.mode(
                "drain",
                when(equals(gate.begun, 0), rule("drained", None)),
                when(None, drained, needs=gate.heads),
            )

    def then(self, cases: Sequence[FiringCase], *, mode: str) -> None:
        """Add a mode that continues a firing of the body that another mode began."""
        choices = [choice for case in cases for choice in self._choices(case, mode)]
        self.mode(mode, when(None, choices, needs=self.operands), needs=[self.control])

    def _gated(
        self, cases: Sequence[FiringCase], mode: str, gate: CreditGate | None
    ) -> list[Choice]:
        if gate is None:
            return [choice for case in cases for choice in self._choices(case, mode)]
        begins = write(gate.begun, gate.begun + 1)
        early = [
            choice
            for case in cases
            for choice in self._choices(
                replace(case, name=f"{case.name} early", body=(*case.body, begins)), mode
            )
        ]
        late = [choice for case in cases for choice in self._choices(case, mode, gate.heads)]
        return [
            when(gate.begun < gate.buffers, early),
            when(None, late, needs=gate.heads),
        ]

    def _choices(
        self, case: FiringCase, mode: str, more_heads: tuple[In, ...] = ()
    ) -> list[Choice]:
        """The rules of a case: a separate one for the last firing of a segment, if something is
        held.
        """
        after = mode if case.after is None else case.after
        own = (self.control, *self._own.values(), *more_heads, *case.takes)
        if not case.final:
            taken = case.takes
            partly = rule(case.name, after, takes=taken, puts=case.puts, body=case.body)
            return [when(case.when, partly)]
        puts = (*case.puts, *(put(credit) for credit in self._credits[0]))
        if not self._held:
            whole = rule(case.name, after, takes=own, puts=puts, body=case.body)
            return [when(case.when, whole)]
        last = rule(
            f"{case.name} last",
            after,
            takes=(*own, *self._held.values()),
            puts=(*puts, *(put(credit) for credit in self._credits[1])),
            body=case.body,
        )
        more = rule(case.name, after, takes=own, puts=puts, body=case.body)
        inner = [when(self.control.ends_list, last), when(None, more)]
        return [when(case.when, inner)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditGate:
    """What a loader waits for before it begins a block: that an older one has been released.

    The first ``buffers`` blocks wait for nothing; ``begun`` counts them.  ``heads`` are the credits
    of all readers.
    """

    begun: Local
    heads: tuple[In, ...]
    buffers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringCase:
    """What a unit does in a firing, if ``when`` holds.

    ``final``: it takes the tokens of the body that it peeks at; ``takes`` are heads of other
    streams that it takes; ``after`` is the next mode, if it is another one.
    """

    name: str
    when: Expr | None = None
    body: tuple[Statement, ...] = ()
    puts: tuple[Put, ...] = ()
    final: bool = True
    takes: tuple[In, ...] = ()
    after: str | None = None


def repeated(body: PatternBody, name: str) -> Wire:
    """A unit that sends a local of the enclosing body for every firing of this one."""
    unit = BodyUnit(body, f"repeat_{name}", Role.RELAY, None)
    value = unit.reads(name)
    out = unit.output(name, value.type)
    unit.at_each([FiringCase(name="repeat", puts=(put(out, value),))])
    unit.finish()
    return out


# Compute units: values of locals, and reductions over lanes and iterations.


def passage(body: PatternBody, value: Expr) -> int:
    """Cycles to the listeners: the pipeline stages of a value, and a hop after each unit of
    them.
    """
    times = body.draft.times
    taken = stages(value)
    return taken + times.hop * max(1, -(-taken // times.stages))


def bound(body: PatternBody, statements: Sequence[Bind]) -> dict[str, Wire]:
    """The values that some statements bind, computed in one unit."""
    first = statements[0]
    unit = BodyUnit(body, f"bind_{first.target}", Role.COMPUTE, first.location)
    steps: list[Statement] = []
    puts: list[Put] = []
    wires: dict[str, Wire] = {}
    for statement in statements:
        value = unit.vector(statement.value)
        steps.append(unit.bind(statement.target, value))
        out = unit.output(statement.target, value.type, latency=passage(body, value))
        puts.append(put(out, unit.reads(statement.target)))
        wires[statement.target] = out
    unit.at_each([FiringCase(name="compute", body=tuple(steps), puts=tuple(puts))])
    unit.finish()
    return wires


def reduced(body: PatternBody, statement: Reduce) -> Wire:
    """The result of a reduction: a local of the enclosing body."""
    unit = BodyUnit(body, f"reduce_{statement.target}", Role.COMPUTE, statement.location)
    type = statement.value.type
    start = start_of(statement)
    assert start is not None
    neutral = const(start, type)
    operator = statement.operator
    value: Expr = select(unit.valid, unit.vector(statement.value), spread(neutral, body.lanes))
    total = unit.register("total", type, start)
    steps: list[Statement] = []
    if body.lanes > 1:
        value = ReduceLanes(operator=operator, value=value, type=type)
    combination = apply(operator, total, value)
    step, combined = unit.let("combined", combination)
    steps.append(step)
    out = unit.output(statement.target, type, latency=passage(body, combination))
    last = FiringCase(
        name="end",
        when=unit.control.ends_list,
        body=(*steps, write(total, neutral)),
        puts=(put(out, combined),),
    )
    more = FiringCase(name="add", body=(*steps, write(total, combined)))
    unit.at_each([last, more])
    unit.finish()
    return out
