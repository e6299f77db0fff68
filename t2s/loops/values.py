"""Values of expressions where loops are, and whether there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2s.core.expr import Const, Expr, Local, Select, apply, conjunction
from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.loops.cursors import Scope
from t2s.loops.destinations import FALSE, Arithmetic
from t2s.loops.ir import number, plus, times
from t2s.loops.loop_stage import ArrayLayout, LoopStage, step_of, values_of
from t2s.loops.writing import LoopWriter
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Negative,
    Number,
)
from t2s.sparse_repr.notation.support import is_strict, vanishes
from t2s.sparse_repr.notation.types import constant


@dataclass(frozen=True, slots=True)
class LoopValues:
    """Writes what an expression loads and computes; temporaries are locals, or in workspaces."""

    stage: LoopStage
    writer: LoopWriter
    arithmetic: Arithmetic
    scalars: Mapping[str, Local]
    workspaces: Mapping[str, str]

    def value(
        self, value: Expression, scope: Scope, loaded: dict[Access, tuple[Expr, Expr | None]]
    ) -> tuple[Expr, Expr | None]:
        """The value of an expression, and whether there is one; see ``notation/evaluate.py``."""
        found = self._value(value, scope, loaded)
        return found.value, found.there

    def _value(
        self, value: Expression, scope: Scope, loaded: dict[Access, tuple[Expr, Expr | None]]
    ) -> _LoopValue:
        semiring, type = self.stage.semiring, self.stage.type
        known = constant(value, semiring)
        if known is not None:
            if not isinstance(value, Number):
                known = _computed_in(type, known)  # -(1), for example, is 255 in uint8
            return _LoopValue(Const(value=known, type=type), stored=FALSE, vanishes=False)
        match value:
            case Access():
                if value not in loaded:
                    loaded[value] = self._load(value, scope)
                return _LoopValue(*loaded[value])
            case Negative(value=inner):
                found = self._value(inner, scope, loaded)
                return replace(found, value=apply(Op.NEGATE, found.value))
            case Combine(operator=operator, left=left, right=right):
                one = self._value(left, scope, loaded)
                other = self._value(right, scope, loaded)
                made: Expr = apply(semiring.operator(operator), one.value, other.value)
                if not is_strict(value, semiring):
                    stored = _either(one.stored, other.stored)
                    return _LoopValue(made, stored, vanishes=vanishes(value, semiring))
                needed = (one,) if operator is Op.DIVIDE else (one, other)
                there = conjunction(*(side.there for side in needed))
                if there is not None:
                    zero = self.arithmetic.zero
                    made = Select(condition=there, if_true=made, if_false=zero, type=type)
                return _LoopValue(made, there)
            case _:
                raise ValueError("sums are loops in concrete index notation")

    def _load(self, access: Access, scope: Scope) -> tuple[Expr, Expr | None]:
        """The value of a tensor where the loops are."""
        writer, type = self.writer, self.stage.type
        if access.tensor in self.scalars:
            return self.scalars[access.tensor], None
        reached = scope.at(access)
        if access.tensor in self.workspaces:
            array = self.workspaces[access.tensor]
            position = scope.coordinates[access.variables[0]]
        else:
            layout = self.stage.layout(access.tensor)
            array = writer.array(values_of(access.tensor), type)
            position = reached.position
            if isinstance(layout, ArrayLayout):
                position = number(0)
                for mode, name in enumerate(access.variables):
                    step = number(1)
                    if mode not in layout.unit:
                        step = writer.number(step_of(access.tensor, mode))  # type: ignore[assignment]
                    position = plus(position, times(scope.coordinates[name], step))
        if reached.present is None:
            return writer.load("loaded", array, position, type), None
        found = writer.fresh("loaded", self.arithmetic.zero)
        with writer.where(reached.present):
            writer.load_into(found, array, position)
        return found, reached.present


@dataclass(frozen=True, slots=True)
class _LoopValue:
    """A value, and whether something of it is stored: ``None`` means that it always is.

    It is there where that is so, and anyway unless it ``vanishes`` elsewhere.
    """

    value: Expr
    stored: Expr | None
    vanishes: bool = True

    @property
    def there(self) -> Expr | None:
        return self.stored if self.vanishes else None


def _either(one: Expr | None, other: Expr | None) -> Expr | None:
    """Whether one of two conditions holds."""
    if one is None or other is None:
        return None
    if FALSE in (one, other):
        return other if one == FALSE else one
    return apply(Op.OR, one, other)


def _computed_in(type: Type, number: float | int) -> float | int:
    """A whole number as arithmetic of a type wraps it."""
    if not isinstance(number, int) or not type.is_integer:
        return number
    number &= (1 << type.bits) - 1
    negative = type.kind is Kind.INT and number >> type.bits - 1
    return number - (1 << type.bits) if negative else number
