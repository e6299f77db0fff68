"""The names of a file: kernels, channels, struct types; and the links of channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from t2s.backends.kernels.conditions import without
from t2s.backends.kernels.dialect import Dialect
from t2s.backends.kernels.expressions import Expressions
from t2s.backends.kernels.kernel_ast import Declare, ZeroInitializer
from t2s.backends.kernels.links import Bundle, ChannelLinks, Link, Separate
from t2s.backends.kernels.lockstep import LockstepNode
from t2s.backends.kernels.registers import RegisterPlan
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
from t2s.graph.body import Load, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, Tensor, TensorRole
from t2s.graph.nodes import Machine, Search
from t2s.graph.ports import Wide

_LONGEST_STEM = 100


@dataclass(frozen=True, kw_only=True)
class KernelDesign:
    """A supported graph, with all decisions about it, and the dialect that it is written in.

    ``nodes`` are the PE arrays; ``source`` is the original of a graph that was unfolded.
    """

    dialect: Dialect
    graph: Graph
    nodes: Mapping[str, LockstepNode]
    links: ChannelLinks
    source: Graph | None = None

    def link(self, channel: str) -> Link:
        return self.links.by_channel[channel]

    def link_at(self, channel: str, node: LockstepNode) -> Link:
        """The link as seen from one of its ends: a single PE needs no bundle of one element."""
        match self.link(channel):
            case Bundle(channel=shared, depth=depth) if not (dimensions_of(shared) or node.space):
                return Separate(channel=shared, depth=depth)
            case link:
                return link


@dataclass(frozen=True, kw_only=True)
class FileScope:
    """Identifiers at file level, by the names of the graph.

    ``channels`` names a channel, or the array that a wire or FIFO inside a kernel becomes;
    ``structs`` names the type of a bundle: one struct for all bundles of the same elements, or the
    type of a single element.

    Where the dialect is ``sparse``: ``reports`` names the channel by which a machine says how it
    went, ``points`` the struct of the points of a sorted memory (by machine and memory), and
    ``capacities`` the constants for tensors that machines copy, and for sorted memories.
    """

    kernels: Mapping[str, str]
    channels: Mapping[str, str]
    structs: Mapping[str, str]
    reports: Mapping[str, str] = field(default_factory=dict)
    points: Mapping[tuple[str, str], str] = field(default_factory=dict)
    capacities: Mapping[str | tuple[str, str], str] = field(default_factory=dict)

    @property
    def visible(self) -> tuple[str, ...]:
        """Names that variables of a kernel must not have."""
        own = (self.channels, self.structs, self.reports, self.points, self.capacities)
        return tuple(name for names in own for name in names.values())


def file_scope(design: KernelDesign) -> FileScope:
    """Choose the names of a file: kernels first, because hosts and reports show them."""
    dialect = design.dialect
    identifiers = dialect.file_identifiers()
    kernels = {node.name: identifiers.fresh(node.name) for node in design.graph.nodes}
    channels = {name: identifiers.fresh(name) for name in design.links.by_channel}
    types: dict[tuple[Type, tuple[int, ...]], str] = {}
    structs: dict[str, str] = {}
    for name, link in design.links.by_channel.items():
        if isinstance(link, Bundle):
            type, shape = link.channel.stream.element, dimensions_of(link.channel)
            if not shape:
                types[type, shape] = dialect.storage_name(type)
            elif (type, shape) not in types:
                element = dialect.storage_name(type).removesuffix("_t")
                sizes = "x".join(str(size) for size in shape)
                types[type, shape] = identifiers.fresh(f"{element}_{sizes}_t")
            structs[name] = types[type, shape]
    machines = design.graph.machines if dialect.sparse else ()
    memories = [(node.name, memory.name) for node in machines for memory in node.memories]
    copied = [
        t.name for t in design.graph.tensors if t.open and any(is_copied(t, n) for n in machines)
    ]
    return FileScope(
        kernels=kernels,
        channels=channels,
        structs=structs,
        reports={node.name: identifiers.fresh(f"{node.name}_status") for node in machines},
        points={key: identifiers.fresh(f"{'_'.join(key)}_point_t") for key in memories},
        capacities={name: identifiers.fresh(f"{name}_capacity") for name in copied}
        | {key: identifiers.fresh(f"{'_'.join(key)}_capacity") for key in memories},
    )


def is_copied(tensor: Tensor, machine: Machine) -> bool:
    """Whether a machine has a copy of a tensor: it is on the chip, and the machine reads it."""
    return tensor.place is MemorySpace.CHIP and any(
        isinstance(statement, Load | Search) and statement.tensor == tensor.name
        for statement in machine.statements()
    )


def file_stem(dialect: Dialect, graph: Graph) -> str:
    """The name of the files of a design, short enough for every file system."""
    return dialect.identifier(graph.name)[:_LONGEST_STEM]


def dimensions_of(channel: Channel) -> tuple[int, ...]:
    """The shape of a channel array, without dimensions of one element."""
    return tuple(size for size in channel.shape if size > 1)


# The scope of one kernel: what its statements refer to, and how its locals become variables.

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

    ``tensors``, ``registers`` and ``tokens`` (the structs of bundles) are variables by name in the
    graph; ``plans`` are those of register files.  ``wide`` has the tensors that are parameters of
    vectors, and ``words`` the variable of each access that PEs share.  ``lane`` counts lanes in
    loops.  ``conditions`` are the variables of conditions that are evaluated once per iteration.
    """

    design: KernelDesign
    file: FileScope
    node: LockstepNode
    identifiers: Identifiers
    expressions: Expressions
    tensors: Mapping[str, str]
    wide: Mapping[str, Wide]
    lane: str
    words: Mapping[Load | Store, str]
    registers: Mapping[str, str]
    plans: Mapping[str, RegisterPlan]
    tokens: Mapping[str, str]
    positions: Mapping[str, Positions]
    conditions: Mapping[tuple[Expr, ...], str]

    @property
    def dialect(self) -> Dialect:
        return self.design.dialect

    @property
    def space(self) -> frozenset[str]:
        """Names of the space dimensions."""
        return frozenset(dimension.name for dimension in self.node.space)

    def link(self, channel: str) -> Link:
        """The link of a channel as this kernel sees it."""
        return self.design.link_at(channel, self.node)

    def depends_on_space(self, expr: Expr) -> bool:
        """Whether the value may differ between PEs."""
        return bool(index_names(expr) & self.space)

    def depends_on_time(self, expr: Expr) -> bool:
        """Whether the value may change from one iteration to the next."""
        return bool(index_names(expr) - self.space)

    def lower(self, expr: Expr) -> TargetExpression:
        return self.expressions.lower(expr)

    def condition(self, condition: Expr | None) -> TargetExpression | None:
        """A condition as an expression, using the variables of shared conditions."""
        factors = conjuncts(condition)
        for known, name in self.conditions.items():
            rest = without(factors, known)
            if rest is not None:
                others = self.condition(conjunction(*rest))
                holds = Name(name=name)
                return holds if others is None else binary("&&", holds, others)
        factored = conjunction(*factors)
        return None if factored is None else self.lower(factored)

    def index(self, name: str) -> TargetExpression:
        """The variable of a space dimension or loop."""
        return self.lower(Index(name=name))

    def is_intermediate(self, tensor: str) -> bool:
        """Whether one kernel writes the tensor and another one reads it."""
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
        name = self._variable(target)
        return [Declare(type=self.dialect.value_name(type), name=name, initial=value)]

    def bind_where(
        self, target: str, type: Type, condition: Expr | None, value: TargetExpression
    ) -> list[TargetStatement]:
        """Declare the variable of a local that is zero if the condition does not hold.

        ``value`` is evaluated only where it holds.
        """
        test = self.condition(condition)
        if test is None:
            return self.bind(target, type, value)
        if self.dialect.is_struct(type):
            return self.bind_by(target, type, condition, lambda v: [Set(target=v, value=value)])
        choice = Ternary(condition=test, if_true=value, if_false=self.dialect.zero(type))
        return self.bind(target, type, choice)

    def bind_by(
        self, target: str, type: Type, condition: Expr | None, fill: Fill
    ) -> list[TargetStatement]:
        """The same for a value that needs statements."""
        test = self.condition(condition)
        struct = self.dialect.is_struct(type)
        start: TargetExpression | None = ZeroInitializer() if struct else self.dialect.zero(type)
        if test is None and struct:
            start = None
        name = self._variable(target)
        filled = fill(Name(name=name))
        declaration = Declare(type=self.dialect.value_name(type), name=name, initial=start)
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
