"""Stages of what machines send: products and loaded data that come behind the firing.

A machine decides in the cycle of its firing, and what it keeps is there in the next one; so its
conditions, addresses and registers are in stage 0, and so is what they are computed from.  The
value of a token may come later, as that of a PE does.  Its products are multipliers with registers
of their own, and other operators on the way have the registers that the device counts for them.
What a machine loads only to send it comes as late as the channels allow, up to the load latency of
the device.  A value with neither of these is in stage 0, and its channel delays it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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
from t2s.graph.body import Let, Load, Statement
from t2s.graph.nodes import Machine, Path


class SentStages(ValueStages):
    """The stages of values over heads, registers and loaded data.

    They are in stage 0, but for the loaded data in ``locals``.
    """

    def of_local(self, name: str) -> int | None:
        return self.locals.get(name, 0)

    def sent(self, value: Expr) -> int:
        """The stage in which a value is sent."""
        late = any(
            self.of_local(term.name) if isinstance(term, Local) else self.is_product(term)
            for term in walk(value)
            if isinstance(term, Expr)
        )
        return (self.of(value, False) or 0) if late else 0

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
    paths = [_sent_by(path) for path in node.paths()]
    for sent in paths:
        for _, value in sent.values:
            for term in walk(value):
                if isinstance(term, Expr) and not is_control(term):
                    check_operator(node, term, plan)
    tensors = _late_tensors(node, paths, plan, times)
    late: dict[str, int] = {}
    for sent in paths:
        stages = SentStages(plan, sent.stages(tensors))
        for channel, value in sent.values:
            stage = stages.sent(value)
            assert stage < times.channels[channel].latency, "a channel has that of its values"
            if stage:
                late[channel] = max(stage, late.get(channel, 0))
    return StagePlan(
        latency_of=times.latency_of,
        loads=tuple(
            tensors.get(statement.tensor, 0)
            for statement in node.statements()
            if isinstance(statement, Load)
        ),
        late=late,
        technology=technology,
    )


@dataclass(kw_only=True)
class _Sent:
    """What a rule sends: its ``values`` by channel, over heads, registers and loaded data.

    ``loaded`` has the tensors of these data; ``decided`` are locals that are needed in stage 0.
    """

    values: list[tuple[str, Expr]] = field(default_factory=list)
    loaded: dict[str, str] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)

    def stages(self, tensors: Mapping[str, int]) -> dict[str, int | None]:
        """The stages of loaded data, where those of their tensors are known."""
        return {name: tensors.get(tensor, 0) for name, tensor in self.loaded.items()}

    def tensors_of(self, value: Expr) -> set[str]:
        """The tensors of the data in a value."""
        return {self.loaded[name] for name in _locals(value) if name in self.loaded}


def _sent_by(path: Path) -> _Sent:
    sent, computed = _Sent(), dict[str, Expr]()

    def decide(value: Expr | None) -> None:
        if value is not None:
            sent.decided |= _locals(written_out(value, computed))

    def carry_out(statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            if isinstance(statement, Let):
                computed[statement.target] = written_out(statement.value, computed)
                continue
            if isinstance(statement, Load):
                sent.loaded[statement.target] = statement.tensor
            for term in walk(statement):
                if isinstance(term, Local):
                    decide(term)

    for choice in path.choices:
        decide(choice.when)
        carry_out(choice.body)
    carry_out(path.rule.body)
    for put in path.rule.puts:
        decide(put.tag)
        if put.value is not None:
            sent.values.append((put.channel, written_out(put.value, computed)))
    return sent


def _late_tensors(
    node: Machine, paths: list[_Sent], plan: StagePlan, times: DeviceTimes
) -> dict[str, int]:
    """The stages of the data of the tensors that a machine loads only to send them."""
    tensors = dict.fromkeys(_only_sent(paths), times.load_latency)

    def too_late() -> Iterator[str]:
        for sent in paths:
            stages = SentStages(plan, sent.stages(tensors))
            for channel, value in sent.values:
                if stages.sent(value) > times.channels[channel].latency - 1:
                    yield from sent.tensors_of(value)

    # with data at once a value is in time: its channel has the latency of the operators
    while found := {name for name in too_late() if tensors.get(name)}:
        for name in found:
            tensors[name] -= 1
    return tensors


def only_sent(node: Machine) -> frozenset[str]:
    """The tensors that a machine loads only to send what is in them."""
    return _only_sent([_sent_by(path) for path in node.paths()])


def _only_sent(paths: list[_Sent]) -> frozenset[str]:
    loaded = {tensor for sent in paths for tensor in sent.loaded.values()}
    return frozenset(
        loaded.difference(
            sent.loaded[name] for sent in paths for name in sent.decided if name in sent.loaded
        )
    )


def _locals(value: Expr) -> set[str]:
    return {term.name for term in walk(value) if isinstance(term, Local)}


def written_out(value: Expr, computed: Mapping[str, Expr]) -> Expr:
    """A value with what its locals are computed from in their place."""
    return rewrite(value, lambda term: computed.get(term.name) if isinstance(term, Local) else None)
