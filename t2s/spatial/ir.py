"""The spatial program: kernels (loop nests with a value) and how they feed each other.

Directives rewrite this program; ``to_graph`` turns each kernel into one node of the graph.  A
kernel's value is written over the *domain's* variables (i, j, k of the definition); its loops are
what executes, and the two are tied together in both directions: ``Kernel.variables`` gives each
domain variable as an expression of the loops, ``Loop.definition`` each loop as an expression of the
domain variables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from t2s.core.errors import InternalError
from t2s.core.expr import Apply, Const, Expr, apply, const, simplify, substitute
from t2s.core.isl import Interval
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.func.ir import Dimension, TemporalProgram
from t2s.graph.nodes import Role
from t2s.spatial.directives import Buffer, Directive, Gather, Scatter


def shifted(expr: Expr, by: int) -> Expr:
    """``expr + by``, with the constants at its end combined."""
    match expr:
        case Apply(operator=Op.ADD, operands=(part, Const(value=int() as number))):
            return shifted(part, by + number)
        case Apply(operator=Op.SUBTRACT, operands=(part, Const(value=int() as number))):
            return shifted(part, by - number)
    operator = Op.SUBTRACT if by < 0 else Op.ADD
    return simplify(apply(operator, expr, const(abs(by))))


class LoopKind(Enum):
    """How a loop executes."""

    SERIAL = "serial"
    UNROLLED = "unrolled"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Term):
    """One loop of a kernel.

    ``definition`` is the loop's index as an expression of the domain's variables; two loops of
    different kernels with equal definitions iterate over the same thing.  ``reason`` says why the
    loop is there, for ``print_loop_nest``.
    """

    name: str
    minimum: Expr
    extent: Expr
    kind: LoopKind
    reduction: bool
    definition: Expr
    reason: str

    @property
    def interval(self) -> Interval:
        return Interval(name=self.name, minimum=self.minimum, extent=self.extent)

    @property
    def constant(self) -> tuple[int, int] | None:
        """(minimum, extent) if both are numbers."""
        if isinstance(self.minimum, Const) and isinstance(self.extent, Const):
            return int(self.minimum.value), int(self.extent.value)
        return None

    @property
    def last(self) -> Expr:
        """The last value of the index."""
        if isinstance(self.minimum, Const):
            return shifted(self.extent, int(self.minimum.value) - 1)
        match self.extent:
            case Apply(operator=Op.SUBTRACT, operands=(end, begin)) if begin == self.minimum:
                return shifted(end, -1)
        return simplify(apply(Op.ADD, self.minimum, shifted(self.extent, -1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand(Term):
    """A value that a kernel receives, once per iteration.

    Attributes
    ----------
    name: the local that stands for it in the kernel's value.
    access: its subscripts over the domain's variables (``None`` for a result on its way out).
    source: the input or Func it came from.
    producer: the kernel that sends it.
    condition: static path condition over the domain's variables (``None``: always).
    at_start: needed only at the first step of the reduction (part of the initial value), so the
        producer has no reduction loops.
    forwards: unrolled loops along which PEs pass the value on, outermost hop first, and in
        ``hop_capacities`` the depth of the channels along each.
    removed, removed_by: loops that the producer does not have any more, and why.
    buffer: the buffer that restores the stream, if there is one.
    scatter, gather: PEs pass these values on as one stream, on their way in or out.
    """

    name: str
    source: str
    producer: str
    type: Type
    access: tuple[Expr, ...] | None
    condition: Expr | None
    at_start: bool
    forwards: tuple[str, ...] = ()
    hop_capacities: tuple[int, ...] = ()
    removed: tuple[str, ...] = ()
    removed_by: Directive | None = None
    buffer: Buffer | None = None
    scatter: Scatter | None = None
    gather: Gather | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTarget(Term):
    """Where a kernel stores what it receives: ``tensor[indices]`` over the domain's variables."""

    tensor: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Term):
    """One loop nest: a node of the graph to be.

    Attributes
    ----------
    role: compute, relay, load or store.
    function: the temporal Func it belongs to.
    domain: the dimensions its value is written over.
    loops: the nest, outermost first, unrolled and vector loops included.
    variables: each domain variable as an expression of the loops.
    operands: values received; ``Local``s of ``value`` and ``initial``.
    value: what one iteration computes.  Reads in it are not placed yet.
    initial: the value a reduction starts from; ``None`` if the kernel does not reduce.
    condition: static condition under which an iteration produces a value (``None``: always).
    store: for store kernels, where the received value goes.
    vector_operands: operands asked for by ``vload``; ``vector_store``: asked for by ``vstore``.
    vectorised: the directive that made the vector loop; ``reshaped``: the last one that split,
        fused or reordered loops.
    capacity: depth of the output channel if the user gave it.
    digit: of a kernel that passes on a stream token by token, the loop over the PEs whose tokens
        pass by.
    """

    name: str
    role: Role
    function: str
    domain: tuple[Dimension, ...]
    loops: tuple[Loop, ...]
    variables: tuple[tuple[str, Expr], ...]
    operands: tuple[Operand, ...] = ()
    value: Expr
    initial: Expr | None = None
    condition: Expr | None = None
    store: StoreTarget | None = None
    vector_operands: tuple[str, ...] = ()
    vector_store: bool = False
    vectorised: Directive | None = None
    reshaped: Directive | None = None
    reassociate: bool = False
    capacity: int | None = None
    digit: str | None = None
    location: SourceLocation

    def loop(self, name: str) -> Loop | None:
        """The loop of that name, or ``None``."""
        return next((loop for loop in self.loops if loop.name == name), None)

    def place(self, expr: Expr) -> Expr:
        """An expression of the domain's variables as one of the loops."""
        return substitute(expr, dict(self.variables))

    def kind(self, kind: LoopKind) -> tuple[Loop, ...]:
        """The loops of one kind, outermost first."""
        return tuple(loop for loop in self.loops if loop.kind is kind)

    @property
    def vector_loop(self) -> Loop | None:
        return next(iter(self.kind(LoopKind.VECTOR)), None)

    @property
    def gathering(self) -> Gather | None:
        """The directive by which this kernel sends its values as one stream."""
        return next((o.gather for o in self.operands if o.gather is not None), None)

    @property
    def reduction_loops(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.loops if loop.reduction)

    def with_innermost(self, name: str, reason: str) -> Kernel:
        """The kernel with a loop in time, inside of all others but the lanes."""
        moved = [
            replace(x, kind=LoopKind.SERIAL, reason=reason) for x in self.loops if x.name == name
        ]
        others = [loop for loop in self.loops if loop.name != name]
        return replace(self, loops=(*others, *moved))

    def with_operand(self, old: Operand, new: Operand) -> Kernel:
        """The kernel with one of its operands replaced."""
        operands = tuple(new if operand is old else operand for operand in self.operands)
        return replace(self, operands=operands)

    def without(self, names: frozenset[str]) -> Kernel:
        """The kernel with loops dropped: they stay at their first iteration."""
        dropped = {loop.name: loop.minimum for loop in self.loops if loop.name in names}
        return replace(
            self,
            loops=tuple(loop for loop in self.loops if loop.name not in names),
            variables=tuple((name, substitute(expr, dropped)) for name, expr in self.variables),
        )


@dataclass(frozen=True, kw_only=True)
class SpatialProgram(Term):
    """All kernels of a design, producers before consumers."""

    temporal: TemporalProgram
    kernels: tuple[Kernel, ...]

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise InternalError(f"there is no kernel {name}")

    def find(self, name: str) -> Kernel | None:
        """The kernel of that name, or ``None``."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)

    def with_kernel(self, kernel: Kernel) -> SpatialProgram:
        """The program with the kernel of that name replaced."""
        kernels = tuple(kernel if old.name == kernel.name else old for old in self.kernels)
        return replace(self, kernels=kernels)

    def with_before(self, anchor: str, kernel: Kernel) -> SpatialProgram:
        """The program with a new kernel in front of another."""
        position = self._position(anchor)
        kernels = (*self.kernels[:position], kernel, *self.kernels[position:])
        return replace(self, kernels=kernels)

    def with_after(self, anchor: str, kernel: Kernel) -> SpatialProgram:
        """The program with a new kernel behind another."""
        position = self._position(anchor) + 1
        kernels = (*self.kernels[:position], kernel, *self.kernels[position:])
        return replace(self, kernels=kernels)

    def _position(self, name: str) -> int:
        return [kernel.name for kernel in self.kernels].index(name)
