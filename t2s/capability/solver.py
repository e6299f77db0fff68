"""Proofs about conditions by z3, which is optional and imported only here, when it is first needed.

A condition over unknown extents is proved from facts about them, or refuted, or stays open; proofs
that take longer than a second stay open too.  Without z3 everything is open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from t2s.capability.conditions import Answer, compared
from t2s.capability.ir import (
    AllOf,
    AnyOf,
    Calculated,
    Compared,
    Condition,
    Quantity,
    VariableExtent,
    WholeNumber,
    print_condition,
)
from t2s.core.ops import Op
from t2s.core.sigint import import_deferring_sigint

TIME_LIMIT = 1000
"""The time limit of a proof, in milliseconds."""

NOT_THERE = "not proved: z3 is not there (pip install t2s-spatial[smt])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """An answer, and the reason as text."""

    answer: Answer
    text: str


@dataclass
class SolverCalls:
    """How often a solver was started, for tests of efficiency."""

    count: int = 0


@dataclass
class Solver:
    """Proves conditions without lists; ``calls`` counts how often z3 was started."""

    time_limit: int = TIME_LIMIT
    calls: SolverCalls = field(default_factory=SolverCalls)

    def prove(
        self, condition: Condition, facts: Sequence[Condition], known: Mapping[str, int]
    ) -> Proof:
        """Whether the condition holds for all positive extents that satisfy the facts."""
        z3 = _z3()
        if z3 is None:
            return Proof(answer=Answer.OPEN, text=NOT_THERE)
        terms = _Terms(z3, known)
        facts = tuple(facts)
        assumptions = [terms.condition(fact) for fact in facts]
        claim = terms.condition(condition)
        shown = print_condition(condition)
        if self._check(z3, terms, [*assumptions, z3.Not(claim)]) == z3.unsat:
            needed = self._needed(z3, terms, facts, assumptions, z3.Not(claim))
            why = " and ".join(print_condition(fact) for fact in needed) or "any extents"
            return Proof(answer=Answer.TRUE, text=f"{shown} follows from {why}")
        if self._check(z3, terms, [*assumptions, claim]) == z3.unsat:
            return Proof(answer=Answer.FALSE, text=f"nothing satisfies {shown}")
        return Proof(answer=Answer.OPEN, text=f"{shown} depends on the extents")

    def satisfiable(self, condition: Condition) -> Answer:
        """Whether any positive extents satisfy a condition without lists."""
        z3 = _z3()
        if z3 is None:
            return Answer.OPEN
        terms = _Terms(z3, {})
        result = self._check(z3, terms, [terms.condition(condition)])
        if result == z3.unsat:
            return Answer.FALSE
        return Answer.TRUE if result == z3.sat else Answer.OPEN

    def _check(self, z3: Any, terms: _Terms, claims: Sequence[Any]) -> Any:
        self.calls.count += 1
        solver = z3.Solver()
        solver.set("timeout", self.time_limit)
        solver.add(*terms.limits(), *claims)
        return solver.check()

    def _needed(
        self,
        z3: Any,
        terms: _Terms,
        facts: Sequence[Condition],
        assumptions: Sequence[Any],
        refuted: Any,
    ) -> list[Condition]:
        """The facts of the unsat core."""
        solver = z3.Solver()
        solver.set("timeout", self.time_limit)
        solver.add(*terms.limits(), refuted)
        names = [z3.Bool(f"fact {number}") for number in range(len(facts))]
        for name, fact in zip(names, assumptions, strict=True):
            solver.assert_and_track(fact, name)
        if solver.check() != z3.unsat:
            return list(facts)
        core = {str(name) for name in solver.unsat_core()}
        return [fact for name, fact in zip(names, facts, strict=True) if str(name) in core]


def _z3() -> Any:
    try:
        return import_deferring_sigint("z3")
    except ImportError:
        return None


class _Terms:
    """Conditions as terms of z3, over one integer for each variable."""

    def __init__(self, z3: Any, known: Mapping[str, int]) -> None:
        self.z3 = z3
        self.known = known
        self.variables: dict[str, Any] = {}
        self.divisors: list[Any] = []

    def limits(self) -> list[Any]:
        """Extents are 1 or more: nothing is called where one is 0."""
        return [variable >= 1 for variable in self.variables.values()]

    def condition(self, condition: Condition) -> Any:
        """A condition as a term."""
        match condition:
            case Compared(operator=operator, left=left, right=right):
                self.divisors = []
                one, other = self.quantity(left), self.quantity(right)
                holds = compared(operator, one, other)
                return self.z3.And(holds, *(divisor > 0 for divisor in self.divisors))
            case AllOf(parts=parts):
                return self.z3.And(*(self.condition(part) for part in parts))
            case AnyOf(parts=parts):
                return self.z3.Or(*(self.condition(part) for part in parts))
        raise ValueError("a condition is proved for the lists of a match")

    def quantity(self, value: Quantity) -> Any:
        """A quantity as a term; a fused mode is the product of its variables."""
        match value:
            case WholeNumber(value=number):
                return self.z3.IntVal(number)
            case VariableExtent(variable=name):
                result = self._variable(name.split("*")[0])
                for part in name.split("*")[1:]:
                    result = result * self._variable(part)
                return result
            case Calculated(operator=operator, left=left, right=right):
                one, other = self.quantity(left), self.quantity(right)
                match operator:
                    case Op.ADD:
                        return one + other
                    case Op.SUBTRACT:
                        return one - other
                    case Op.MULTIPLY:
                        return one * other
                self.divisors.append(other)
                if operator is Op.MODULO:
                    return one % other
                return one / other
        raise ValueError("a condition is proved for the lists of a match")

    def _variable(self, name: str) -> Any:
        if name in self.known:
            return self.z3.IntVal(self.known[name])
        return self.variables.setdefault(name, self.z3.Int(name))
