"""The spatial program: kernels (loop nests with a value) and how they feed each other.

Directives rewrite this program; ``to_graph`` turns each kernel into one node of the graph.  A
kernel's value is written over the *domain's* variables (i, j, k of the definition); its loops are
what executes, and the two are tied together in both directions: ``Kernel.variables`` gives each
domain variable as an expression of the loops, ``Loop.definition`` each loop as an expression of the
domain variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from t2s.core.affine import tidy
from t2s.core.errors import InternalError
from t2s.core.expr import Apply, Const, Expr, Index, apply, conjunction, const, simplify, substitute
from t2s.core.isl import Interval, LoopDomain
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import Term
from t2s.func.ir import Dimension, TemporalProgram
from t2s.graph.nodes import Role
from t2s.spatial.directives import Directive, Gather, Place
from t2s.spatial.operands import Member, Operand, Padding, Rename, Result, StoreTarget


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
        return self.interval.constant

    @property
    def last(self) -> Expr:
        """The last value of the index."""
        if isinstance(self.minimum, Const):
            return shifted(self.extent, int(self.minimum.value) - 1)
        return tidy(apply(Op.ADD, self.minimum, shifted(self.extent, -1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Term):
    """One loop nest: a node of the graph to be.

    Attributes
    ----------
    role: compute, relay, load or store.
    function: the temporal Func it belongs to.
    domain: the dimensions its value is written over.
    paddings: variables that the loops take past the end of the domain.
    loops: the nest, outermost first, unrolled and vector loops included.
    variables: each domain variable as an expression of the loops.
    operands: values received; ``Local``s of ``value`` and ``initial``.
    value: what one iteration computes.  Reads in it are not placed yet.
    initial: the value a reduction starts from; ``None`` if the kernel does not reduce.
    condition: static condition under which an iteration produces a value (``None``: always).
    store: for store kernels, where the received value goes.
    members: the Funcs of a system of recurrences; ``value`` and ``initial`` are not used then.
    results: the streams that leave a system.
    active: which iterations of the nest there are, over the loops (``None``: all).
    timed: the time loop of a schedule; a value that goes to another PE takes as many cycles as the
        schedule says.
    vector_operands: operands asked for by ``vload``; ``vector_store``: asked for by ``vstore``.
    vectorised: the directive that made the vector loop; ``reshaped``: the last one that split,
        fused or reordered loops.
    capacity: depth of the output channel if the user gave it.
    inserted: a feeder that the compiler made, for a buffer or scatter of a Func that computes.
    digit: of a kernel that passes on a stream token by token, the loop over the PEs whose tokens
        pass by.
    runs_on: a kernel on the host orders an array in memory; it is a loop nest, but no node.
    address: for a load or store unit whose tensor the host orders, the subscripts over the loops.
    """

    name: str
    role: Role
    function: str
    domain: tuple[Dimension, ...]
    loops: tuple[Loop, ...]
    variables: tuple[tuple[str, Expr], ...]
    paddings: tuple[Padding, ...] = ()
    operands: tuple[Operand, ...] = ()
    value: Expr
    initial: Expr | None = None
    condition: Expr | None = None
    store: StoreTarget | None = None
    members: tuple[Member, ...] = ()
    results: tuple[Result, ...] = ()
    active: Expr | None = None
    timed: str | None = None
    vector_operands: tuple[str, ...] = ()
    vector_store: bool = False
    vectorised: Directive | None = None
    reshaped: Directive | None = None
    reassociate: bool = False
    capacity: int | None = None
    inserted: bool = False
    digit: str | None = None
    runs_on: Place = Place.DEVICE
    address: tuple[Expr, ...] | None = None
    location: SourceLocation

    def loop(self, name: str) -> Loop | None:
        """The loop of that name, or ``None``."""
        return next((loop for loop in self.loops if loop.name == name), None)

    def place(self, expr: Expr) -> Expr:
        """An expression of the domain's variables as one of the loops."""
        return tidy(substitute(expr, dict(self.variables)))

    def text_of(self, operand: Operand) -> str:
        """What an operand stands for, over the loops."""
        if operand.computed is not None:
            return show(self.place(operand.computed))
        return f"{operand.source}[{', '.join(show(self.place(e)) for e in operand.access or ())}]"

    def over_domain(self, expr: Expr) -> Expr:
        """An expression of the loops as one of the domain's variables."""
        return substitute(expr, {loop.name: loop.definition for loop in self.loops})

    def first_lane(self, expr: Expr) -> Expr:
        """With the vector loop, if there is one, at its first iteration."""
        vector = self.vector_loop
        return expr if vector is None else substitute(expr, {vector.name: vector.minimum})

    def longest(self, loop: Loop) -> int:
        """The largest extent that a loop has."""
        if loop.constant is not None:
            return loop.constant[1]
        found = LoopDomain([other.interval for other in self.loops]).range_of(loop.extent)
        return found[1] if found is not None else 1

    def kind(self, kind: LoopKind) -> tuple[Loop, ...]:
        """The loops of one kind, outermost first."""
        return tuple(loop for loop in self.loops if loop.kind is kind)

    @property
    def padded_domain(self) -> tuple[Dimension, ...]:
        """The domain with its padding."""
        padded = {padding.variable: const(padding.padded) for padding in self.paddings}
        return tuple(replace(d, extent=padded.get(d.name, d.extent)) for d in self.domain)

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

    def with_consumer(self, result: Result, consumer: str) -> Kernel:
        """The kernel with a consumer for one of its results."""
        changed = replace(result, consumer=consumer)
        results = tuple(changed if old is result else old for old in self.results)
        return replace(self, results=results)

    def seen_by_reader(self, renames: tuple[Rename, ...]) -> Kernel:
        """The nest of the final values, over the variables of the kernel that reads them."""
        final = self.without(frozenset(loop.name for loop in self.reduction_loops))
        known = {rename.sender: rename for rename in renames}
        names: dict[str, Expr] = {
            name: shifted(Index(name=known[name].reader), known[name].offset)
            if name in known
            else Index(name=f"{self.function}.{name}")
            for name, _ in self.variables
        }
        return replace(
            final,
            loops=tuple(
                replace(loop, definition=substitute(loop.definition, names)) for loop in final.loops
            ),
            variables=tuple(
                (known[name].reader, shifted(expr, -known[name].offset))
                if name in known
                else (f"{self.function}.{name}", expr)
                for name, expr in final.variables
            ),
        )

    def without(self, names: frozenset[str]) -> Kernel:
        """The kernel with loops dropped: they stay at their first iteration."""
        return self.pinned({loop.name: loop.minimum for loop in self.loops if loop.name in names})

    def pinned(self, values: Mapping[str, Expr]) -> Kernel:
        """The kernel with loops dropped that stay at a value, given over the other loops."""
        known = dict(values)
        active = None if self.active is None else substitute(self.active, known)
        return replace(
            self,
            loops=tuple(
                replace(
                    loop,
                    minimum=substitute(loop.minimum, known),
                    extent=substitute(loop.extent, known),
                )
                for loop in self.loops
                if loop.name not in known
            ),
            variables=tuple((name, substitute(expr, known)) for name, expr in self.variables),
            active=conjunction(active),
        )

    def rewritten(self, rule: Callable[[Expr], Expr]) -> Kernel:
        """The kernel with its values rewritten: the value, the initial value, those of members."""
        return replace(
            self,
            value=rule(self.value),
            initial=None if self.initial is None else rule(self.initial),
            members=tuple(
                replace(
                    member,
                    value=rule(member.value),
                    initial=None if member.initial is None else rule(member.initial),
                )
                for member in self.members
            ),
        )

    def member(self, name: str) -> Member | None:
        """The member of that name, or ``None``."""
        return next((member for member in self.members if member.name == name), None)

    def result(self, function: str) -> Result | None:
        """The stream of a Func's final values, or ``None``."""
        return next((result for result in self.results if result.function == function), None)

    @property
    def domain_of_iterations(self) -> LoopDomain:
        """The iterations that there are, lanes left out."""
        loops = [loop.interval for loop in self.loops if loop.kind is not LoopKind.VECTOR]
        return LoopDomain(loops, [] if self.active is None else [self.active])


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

    def sender(self, operand: Operand) -> Kernel:
        """The producer of an operand, over the variables of the kernel that receives it."""
        producer = self.kernel(operand.producer)
        return producer.seen_by_reader(operand.renames) if operand.renames else producer

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
