"""Values of expressions where loops are, and whether there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.core.expr import Const, Expr, Local, Select, apply, conjunction
from t2s.core.ops import Op
from t2s.loops.cursors import Scope
from t2s.loops.destinations import Arithmetic
from t2s.loops.ir import number, plus, times
from t2s.loops.loop_stage import ArrayLayout, LoopStage, step_of, values_of
from t2s.loops.writing import LoopWriter
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Negative,
    Number,
    is_finite,
)
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
        semiring, type = self.stage.semiring, self.stage.type
        known = constant(value, semiring)
        if known is not None:
            return Const(value=known, type=type), None
        match value:
            case Access():
                if value not in loaded:
                    loaded[value] = self._load(value, scope)
                return loaded[value]
            case Negative(value=inner):
                positive, there = self.value(inner, scope, loaded)
                return apply(Op.NEGATE, positive), there
            case Combine(operator=operator, left=left, right=right):
                one, here = self.value(left, scope, loaded)
                other, also = self.value(right, scope, loaded)
                made: Expr = apply(semiring.operator(operator), one, other)
                if operator is Op.MULTIPLY and is_finite(value):
                    both = conjunction(here, also)
                    if both is not None:
                        made = Select(
                            condition=both, if_true=made, if_false=self.arithmetic.zero, type=type
                        )
                    return made, both
                if operator is Op.DIVIDE and isinstance(right, Number) and right.value != 0:
                    return made, here
                if operator in (Op.MULTIPLY, Op.DIVIDE) or here is None or also is None:
                    return made, None
                return made, apply(Op.OR, here, also)
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
