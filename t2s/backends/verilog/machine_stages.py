"""Stages of what machines send: their products have registers behind the firing.

A machine decides in the cycle of its firing, and what it keeps is there in the next one; so its
conditions, addresses and registers are in stage 0.  The value of a token may come later, as that
of a PE does: its products are multipliers with registers of their own, and other operators on the
way have the registers that the device counts for them.  A value without such a product is in stage
0, and its channel delays it.
"""

from __future__ import annotations

from collections.abc import Mapping

from t2s.backends.base import DeviceTimes
from t2s.backends.verilog.stages import (
    Factor,
    StagePlan,
    ValueStages,
    check_operator,
    is_control,
    multiplier_operands,
)
from t2s.backends.verilog.technology import Technology
from t2s.core.expr import Apply, Const, Expr, Local
from t2s.core.ops import Op
from t2s.core.walk import rewrite, walk
from t2s.graph.body import Let
from t2s.graph.nodes import Machine


class SentStages(ValueStages):
    """The stages of values over heads, registers and loaded data, which all are in stage 0."""

    def __init__(self, plan: StagePlan) -> None:
        super().__init__(plan, {})

    def of_local(self, name: str) -> int | None:
        return 0

    def sent(self, value: Expr) -> int:
        """The stage in which a value is sent."""
        if any(self.is_product(term) for term in walk(value) if isinstance(term, Expr)):
            return self.of(value, False) or 0
        return 0

    def is_product(self, term: Expr) -> bool:
        """Whether a value is a product with registers."""
        technology = self.plan.technology
        return (
            multiplier_operands(term, technology) is not None
            or wide_factors(term, technology) is not None
        ) and not (is_control(term) or self.plan.latency_of(term) == 0)


def wide_factors(expr: Expr, technology: Technology) -> tuple[Factor, Factor] | None:
    """The operands of a product that is several multipliers; ``None`` for anything else."""
    most = technology.multiplier_bits
    match expr:
        case Apply(operator=Op.MULTIPLY, operands=(left, right), type=type) if (
            type.is_integer and type.lanes == 1
        ):
            constant = isinstance(left, Const) or isinstance(right, Const)
        case _:
            return None
    if constant or most is None or multiplier_operands(expr, technology) is not None:
        return None
    # halves without a sign have one bit more
    if type.bits > 2 * (most - 1):
        return None
    return Factor(value=left, bits=type.bits), Factor(value=right, bits=type.bits)


def machine_plan(node: Machine, times: DeviceTimes, technology: Technology) -> StagePlan:
    """The stages of a machine on a device.

    Raises ``UnsupportedError`` if the technology cannot build a product of a token with the
    registers that the device says.
    """
    plan = StagePlan(latency_of=times.latency_of, technology=technology)
    stages = SentStages(plan)
    late: dict[str, int] = {}
    for path in node.paths():
        computed: dict[str, Expr] = {}
        for statement in path.statements:
            if isinstance(statement, Let):
                computed[statement.target] = written_out(statement.value, computed)
        for put in path.rule.puts:
            if put.value is None:
                continue
            value = written_out(put.value, computed)
            for term in walk(value):
                if isinstance(term, Expr) and not is_control(term):
                    check_operator(node, term, plan)
            if stage := stages.sent(value):
                late[put.channel] = max(stage, late.get(put.channel, 0))
    return StagePlan(latency_of=times.latency_of, late=late, technology=technology)


def written_out(value: Expr, computed: Mapping[str, Expr]) -> Expr:
    """A value with what its locals are computed from in their place."""
    return rewrite(value, lambda term: computed.get(term.name) if isinstance(term, Local) else None)
