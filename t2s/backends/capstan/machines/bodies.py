"""Bodies of patterns while their units are made: who has which local, and how others get at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from t2s.backends.capstan.machines.kit import (
    GraphDraft,
    UnitDraft,
    UnitHead,
    Wire,
    put,
    rule,
    when,
)
from t2s.backends.capstan.machines.vectors import in_lanes, is_there
from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local, Parameter, const
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.body import Let, Role, SpaceDimension, Statement
from t2s.graph.machine import Choice, Put


@dataclass(eq=False, kw_only=True)
class PatternBody:
    """The body of a pattern, or of the whole program, which fires once.

    Attributes
    ----------
    around: the body that this one is in.
    lanes: iterations of a firing.
    space: the partitions.
    control: see the package's docstring; ``binder`` is the name of its value in units of the body,
        and of a local with the same values.
    wires: the locals, by name.
    environment: values of the parameters that no host gives.
    carry: makes a wire of the body around one of this body; only where the bodies have the same
        firings, as for the partitions of a body.
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
    carry: Callable[[Wire, str], Wire] | None = None

    def distance(self, name: str) -> int:
        """How many bodies further out a local is; -1 if there is none."""
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
        return self.wires[name]

    def known(self, expr: Expr) -> Expr:
        """The expression with the environment in it."""

        def rule(node: Term) -> Term | None:
            if isinstance(node, Parameter) and node.name in self.environment:
                return const(self.environment[node.name], node.type)
            return None

        return rewrite(expr, rule)


class BodyUnit(UnitDraft):
    """A unit of a body: it takes the control, its locals, and holds those of the body around.

    ``valid`` says which iterations there are, by lane if the body has lanes.
    """

    def __init__(
        self, body: PatternBody, name: str, role: Role, location: SourceLocation | None
    ) -> None:
        super().__init__(body.draft, name, role, body.space, body.region, location)
        self.body = body
        self.control = self.take(body.control, body.binder)
        self._own: dict[str, UnitHead] = {}
        self._held: dict[str, UnitHead] = {}
        self._inside: dict[str, Local] = {}

    @property
    def lanes(self) -> int:
        return self.body.lanes

    @property
    def valid(self) -> Expr:
        """Whether there is an iteration."""
        return is_there(self.control.value)

    def local_type(self, name: str) -> Type:
        """The type of a local here: a vector, if this body made it and has lanes."""
        return self.reads(name).type

    def reads(self, name: str) -> Local:
        """A local of this body or of one around it, or one that the unit itself binds."""
        return self._inside[name] if name in self._inside else self._head(name).value

    def bind(self, name: str, value: Expr) -> Let:
        """Bind a local of the body, for what the unit computes behind it."""
        self._inside[name] = Local(name=name, type=value.type)
        return Let(target=name, value=value)

    def _head(self, name: str) -> UnitHead:
        body = self.body
        if name == body.binder:
            return self.control
        if name in self._own or name in self._held:
            return self._own.get(name) or self._held[name]
        near = body.distance(name) == 0 or body.carry is not None
        if near or body.around is None:
            self._own[name] = self.take(body.wire(name), name)
        else:
            self._held[name] = self.take(body.around.wire(name), name)
        return self._own.get(name) or self._held[name]

    def scalar(self, expr: Expr) -> Expr:
        """An expression over locals that are the same in all lanes."""
        known = self.body.known(expr)
        self._listen(known)
        return known

    def vector(self, expr: Expr) -> Expr:
        """An expression for all lanes of the body; a scalar one if it has none."""
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
        """Let every firing wait for these locals, whose values do not matter."""
        for name in names:
            self._head(name)

    @property
    def _needs(self) -> tuple[UnitHead, ...]:
        return (*self._own.values(), *self._held.values())

    def at_each(
        self,
        cases: Sequence[FiringCase],
        *,
        done: Sequence[Put] = (),
        done_body: Sequence[Statement] = (),
        mode: str = "run",
    ) -> None:
        """The mode in which the unit fires for each firing of the body, and ends with it.

        ``cases`` are tried in order.  All heads have to be there first.
        """
        choices = [choice for case in cases for choice in self._choices(case, mode)]
        end = rule("done", None, takes=[self.control], puts=done, body=done_body)
        self.mode(
            mode,
            when(self.control.is_done, end),
            when(None, choices, needs=self._needs),
            needs=[self.control],
        )

    def _choices(self, case: FiringCase, mode: str) -> list[Choice]:
        """The rules of a case: one for the last firing of a segment, if something is held."""
        after = mode if case.after is None else case.after
        own = (self.control, *self._own.values())
        if not case.final:
            return [when(case.when, rule(case.name, after, puts=case.puts, body=case.body))]
        if not self._held:
            whole = rule(case.name, after, takes=own, puts=case.puts, body=case.body)
            return [when(case.when, whole)]
        everything = (*own, *self._held.values())
        last = rule(
            f"{case.name} last",
            after,
            takes=everything,
            puts=(*case.puts, *case.puts_last),
            body=case.body,
        )
        more = rule(case.name, after, takes=own, puts=case.puts, body=case.body)
        inner = [when(self.control.is_last, last), when(None, more)]
        return [when(case.when, inner)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringCase:
    """What a unit does in a firing, if ``when`` holds.

    ``final`` says that it is done with the tokens that it looks at; ``puts_last`` are put in the
    last firing of a segment, beside ``puts``; ``after`` is the next mode, if it is another one.
    """

    name: str
    when: Expr | None = None
    body: tuple[Statement, ...] = ()
    puts: tuple[Put, ...] = ()
    puts_last: tuple[Put, ...] = ()
    final: bool = True
    after: str | None = None


def repeated(body: PatternBody, name: str) -> Wire:
    """A unit that puts a local of the body around for every firing of this one."""
    unit = BodyUnit(body, f"repeat_{name}", Role.RELAY, None)
    value = unit.reads(name)
    out = unit.output(name, value.type)
    unit.at_each([FiringCase(name="repeat", puts=(put(out, value),))])
    unit.finish()
    return out
