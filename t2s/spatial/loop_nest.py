"""Loops: how they execute, and what a loop is in terms of the domain that it runs through."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from t2s.core.affine import tidy
from t2s.core.expr import Apply, Const, Expr, apply, const, simplify
from t2s.core.isl import Interval
from t2s.core.ops import Op
from t2s.core.walk import Term
from t2s.spatial.directive import Directive


def shifted(expr: Expr, by: int) -> Expr:
    """``expr + by``, with the constants at its end combined."""
    match expr:
        case Apply(operator=Op.ADD, operands=(part, Const(value=int() as number))):
            return shifted(part, by + number)
        case Apply(operator=Op.SUBTRACT, operands=(part, Const(value=int() as number))):
            return shifted(part, by - number)
    operator = Op.SUBTRACT if by < 0 else Op.ADD
    return simplify(apply(operator, expr, const(abs(by))))


class LoopExecution(Enum):
    """How a loop executes."""

    SERIAL = "serial"
    UNROLLED = "unrolled"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialLoop(Term):
    """One loop of a kernel.

    ``definition`` is the loop's index as an expression of the domain's variables; two loops of
    different kernels with equal definitions iterate over the same thing.  ``reason`` says why the
    loop is there, for ``print_loop_nest``.
    """

    name: str
    minimum: Expr
    extent: Expr
    kind: LoopExecution
    reduction: bool
    definition: Expr
    reason: str

    @property
    def interval(self) -> Interval:
        return Interval(name=self.name, minimum=self.minimum, extent=self.extent)

    @property
    def constant(self) -> tuple[int, int] | None:
        """(minimum, extent) if both are numbers."""
        return self.interval.constant

    @property
    def last(self) -> Expr:
        """The last value of the index."""
        if isinstance(self.minimum, Const):
            return shifted(self.extent, int(self.minimum.value) - 1)
        return tidy(apply(Op.ADD, self.minimum, shifted(self.extent, -1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaddedVariable(Term):
    """A variable that runs past its domain: ``padded`` values for ``extent`` that count.

    ``limit`` is the first value outside of the domain; ``directive`` pads.
    """

    variable: str
    limit: int
    extent: int
    padded: int
    directive: Directive

    def __str__(self) -> str:
        return f"{self.variable}: {self.extent} padded to {self.padded}"
