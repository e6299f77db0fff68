"""What holds of a tensor's access in all loops around it, before anything is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2s.core.walk import Term
from t2s.sparse_repr.concrete.ir import Assign, ConcreteProgram, Forall, Statement, Where
from t2s.sparse_repr.notation.ir import Access, accesses
from t2s.sparse_repr.stardust.coiteration import (
    AllCoordinates,
    CombinedLevels,
    JoinedLevels,
    LoopIteration,
    WalkedLevel,
    iteration_of,
    level_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFacts(Term):
    """How the levels of an access are found.

    Attributes
    ----------
    irregular: levels whose coordinate comes out of a compressed level, not of a counter.
    joined: levels that are joined with others, or with all coordinates.
    """

    irregular: frozenset[int] = frozenset()
    joined: frozenset[int] = frozenset()


@dataclass
class _Walk:
    program: ConcreteProgram
    found: dict[Access, AccessFacts] = field(default_factory=dict)

    def visit(self, statement: Statement, loops: Mapping[str, LoopIteration]) -> None:
        match statement:
            case Forall(variable=variable, body=body):
                here = iteration_of(statement, self.program)
                self.visit(body, {**loops, variable: here})
            case Where(consumer=consumer, producer=producer):
                self.visit(producer, loops)
                self.visit(consumer, loops)
            case Assign(result=result, value=value):
                for access in (result, *accesses(value)):
                    self.note(access, loops)

    def note(self, access: Access, loops: Mapping[str, LoopIteration]) -> None:
        known = self.found.get(access, AccessFacts())
        if not access.variables:
            return
        format = self.program.format_of(access.tensor)
        for variable in access.variables:
            level = frozenset({level_of(access, variable, format)})
            here = loops[variable]
            own = isinstance(here, WalkedLevel) and here.access == access
            if not own and not isinstance(here, AllCoordinates):
                known = replace(known, irregular=known.irregular | level)
            if isinstance(here, JoinedLevels | CombinedLevels) and access in here.accesses:
                known = replace(known, joined=known.joined | level)
        self.found[access] = known


def facts_of(program: ConcreteProgram) -> Mapping[Access, AccessFacts]:
    """The facts of all accesses, those that are written too."""
    walk = _Walk(program)
    for stage in program.stages:
        walk.visit(stage, {})
    return walk.found
