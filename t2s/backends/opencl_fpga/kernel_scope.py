"""What the statements of one kernel refer to, and how its locals become variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from t2s.backends.opencl_fpga.c_types import is_struct, value_name, zero
from t2s.backends.opencl_fpga.conditions import without
from t2s.backends.opencl_fpga.expressions import Expressions
from t2s.backends.opencl_fpga.kernel_ast import (
    Declare,
    ZeroInitializer,
)
from t2s.backends.opencl_fpga.links import Link
from t2s.backends.opencl_fpga.lockstep import LockstepNode
from t2s.backends.opencl_fpga.registers import RegisterPlan
from t2s.backends.opencl_fpga.scope import FileScope, KernelDesign
from t2s.backends.text.expressions import (
    If,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    binary,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.expr import Expr, Index, conjunction, conjuncts, index_names
from t2s.core.types import Type
from t2s.graph.body import Load
from t2s.graph.graph import TensorRole
from t2s.graph.nodes import Machine

Fill = Callable[[TargetExpression], list[TargetStatement]]
"""Statements that put a value into a variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Variables that hold where a FIFO inside the kernel is read and written next."""

    read: str
    write: str


@dataclass(frozen=True, kw_only=True)
class KernelScope:
    """The names of one kernel.

    ``tensors``, ``registers`` and ``tokens`` (the structs of bundles) are variables by the name in
    the graph; ``plans`` says how each register file is kept.  ``conditions`` holds the variables
    of conditions that are worked out once per iteration.
    """

    design: KernelDesign
    file: FileScope
    node: LockstepNode
    identifiers: Identifiers
    expressions: Expressions
    tensors: Mapping[str, str]
    registers: Mapping[str, str]
    plans: Mapping[str, RegisterPlan]
    tokens: Mapping[str, str]
    positions: Mapping[str, Positions]
    conditions: Mapping[tuple[Expr, ...], str]

    @property
    def space(self) -> frozenset[str]:
        """Names of the space dimensions."""
        return frozenset(dimension.name for dimension in self.node.space)

    def link(self, channel: str) -> Link:
        """The link of a channel as this kernel sees it."""
        return self.design.link_at(channel, self.node)

    def depends_on_space(self, expr: Expr) -> bool:
        """Whether PEs may disagree on the value."""
        return bool(index_names(expr) & self.space)

    def depends_on_time(self, expr: Expr) -> bool:
        """Whether the value may change from one iteration to the next."""
        return bool(index_names(expr) - self.space)

    def lower(self, expr: Expr) -> TargetExpression:
        return self.expressions.lower(expr)

    def condition(self, condition: Expr | None) -> TargetExpression | None:
        """A condition as a test, by the variables that hold it or a part of it."""
        factors = conjuncts(condition)
        for known, name in self.conditions.items():
            rest = without(factors, known)
            if rest is not None:
                others = self.condition(conjunction(*rest))
                holds = Name(name=name)
                return holds if others is None else binary("&&", holds, others)
        kept = conjunction(*factors)
        return None if kept is None else self.lower(kept)

    def index(self, name: str) -> TargetExpression:
        """The variable of a space dimension or loop."""
        return self.lower(Index(name=name))

    def is_intermediate(self, tensor: str) -> bool:
        """Whether one kernel writes the tensor and another one reads it again."""
        graph = self.design.graph
        if graph.tensor(tensor).role is not TensorRole.OUTPUT:
            return graph.tensor(tensor).role is TensorRole.INTERMEDIATE
        statements = (
            statement
            for node in graph.nodes
            for statement in (node.statements() if isinstance(node, Machine) else node.body)
        )
        return any(isinstance(s, Load) and s.tensor == tensor for s in statements)

    def bind(self, target: str, type: Type, value: TargetExpression) -> list[TargetStatement]:
        """Declare the variable of a local."""
        return [Declare(type=value_name(type), name=self._variable(target), initial=value)]

    def bind_where(
        self, target: str, type: Type, condition: Expr | None, value: TargetExpression
    ) -> list[TargetStatement]:
        """Declare the variable of a local that is zero where the condition does not hold.

        ``value`` is evaluated only where it holds.
        """
        test = self.condition(condition)
        if test is None:
            return self.bind(target, type, value)
        if is_struct(type):
            return self.bind_by(target, type, condition, lambda v: [Set(target=v, value=value)])
        choice = Ternary(condition=test, if_true=value, if_false=zero(type))
        return self.bind(target, type, choice)

    def bind_by(
        self, target: str, type: Type, condition: Expr | None, fill: Fill
    ) -> list[TargetStatement]:
        """The same for a value that takes statements to get."""
        test = self.condition(condition)
        start: TargetExpression | None = ZeroInitializer() if is_struct(type) else zero(type)
        if test is None and is_struct(type):
            start = None
        name = self._variable(target)
        filled = fill(Name(name=name))
        declaration = Declare(type=value_name(type), name=name, initial=start)
        return [declaration, *where(test, filled)]

    def _variable(self, target: str) -> str:
        name = self.identifiers.fresh(target)
        self.expressions.locals[target] = Name(name=name)
        return name


def where(
    condition: TargetExpression | None, statements: list[TargetStatement]
) -> list[TargetStatement]:
    """The statements under a condition; ``None`` means always."""
    if condition is None or not statements:
        return statements
    return [If(condition=condition, then=tuple(statements))]
