"""The spatial program: kernels, their loops, their work, and the operands that connect them.

Directives rewrite this program; ``to_graph`` turns each kernel into one node of the graph.  A
kernel's value is written over the *domain's* variables (i, j, k of the definition), while its loops
execute.  The two are tied together in both directions: ``SpatialKernel.variables`` gives
each domain variable as an expression of the loops, ``SpatialLoop.definition`` each loop as an
expression of the domain variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from t2s.core.affine import tidy
from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Const,
    Expr,
    Index,
    Local,
    apply,
    conjunction,
    const,
    simplify,
    substitute,
)
from t2s.core.isl import Interval, LoopDomain
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.func.ir import Dimension, TemporalProgram
from t2s.graph.nodes import Role
from t2s.spatial.directive import Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialKernel(Term):
    """One loop nest: a node of the graph to be.

    Attributes
    ----------
    function: the temporal Func it belongs to.
    domain: the dimensions its values are written over.
    paddings: variables that the loops take past the end of the domain.
    loops: the nest, outermost first, unrolled and vector loops included.
    variables: each domain variable as an expression of the loops.
    operands: values received; ``Local``s of the work's values.
    work: what one iteration does, by kind.
    condition: static condition under which an iteration produces a value (``None``: always).
    active: which iterations of the nest there are, over the loops (``None``: all).
    vectorized: the directive that made the vector loop; ``reshaped``: the last one that split,
        fused or reordered loops.
    capacity: depth of the output channel if the user gave it.
    """

    name: str
    function: str
    domain: tuple[Dimension, ...]
    loops: tuple[SpatialLoop, ...]
    variables: tuple[tuple[str, Expr], ...]
    paddings: tuple[Padding, ...] = ()
    operands: tuple[KernelOperand, ...] = ()
    work: Work
    condition: Expr | None = None
    active: Expr | None = None
    vectorized: Directive | None = None
    reshaped: Directive | None = None
    capacity: int | None = None
    location: SourceLocation

    @property
    def role(self) -> Role:
        """The role of the node to be."""
        match self.work:
            case LoadUnit():
                return Role.LOAD
            case Relay():
                return Role.RELAY
            case StoreUnit():
                return Role.STORE
            case _:
                return Role.COMPUTE

    @property
    def value(self) -> Expr:
        """The value that an iteration computes or passes on; for a system, the last member's."""
        match self.work:
            case Recurrences(members=members):
                return Local(name=members[-1].name, type=members[-1].type)
            case work:
                return work.value

    @property
    def initial(self) -> Expr | None:
        """The value that a reduction starts from; ``None`` if the kernel does not reduce."""
        return self.work.initial if isinstance(self.work, Reduction) else None

    @property
    def store(self) -> StoreTarget | None:
        """Where the kernel stores its value, or ``None``."""
        match self.work:
            case Evaluation(store=store) | Reduction(store=store) | StoreUnit(store=store):
                return store
        return None

    @property
    def members(self) -> tuple[Member, ...]:
        """The Funcs of a system of recurrences; none in kernels of other kinds."""
        return self.work.members if isinstance(self.work, Recurrences) else ()

    @property
    def results(self) -> tuple[Result, ...]:
        """The streams that leave a system."""
        return self.work.results if isinstance(self.work, Recurrences) else ()

    @property
    def timed(self) -> str | None:
        """The time loop of a schedule."""
        return self.work.timed if isinstance(self.work, Recurrences) else None

    @property
    def on_host(self) -> bool:
        """Whether the kernel runs on the host, where it orders an array and is not a node."""
        return isinstance(self.work, LoadUnit | StoreUnit) and self.work.on_host

    @property
    def buffer(self) -> RelayBuffer | None:
        """The buffer of a relay, or ``None``."""
        return self.work.buffer if isinstance(self.work, Relay) else None

    @property
    def stream(self) -> ScatteredStream | GatheredStream | None:
        """The stream that the PEs of a relay pass on, or ``None``."""
        return self.work.stream if isinstance(self.work, Relay) else None

    @property
    def scattering(self) -> ScatteredStream | None:
        """The stream that the kernel's PEs take their operand from, or ``None``."""
        return self.stream if isinstance(self.stream, ScatteredStream) else None

    @property
    def gathering(self) -> GatheredStream | None:
        """The stream that the kernel's PEs put their values into, or ``None``."""
        return self.stream if isinstance(self.stream, GatheredStream) else None

    @property
    def digit(self) -> str | None:
        """For a kernel that passes a stream on, the loop over the PEs whose tokens pass by."""
        return self.work.digit if isinstance(self.work, Relay) else None

    def without_store(self) -> SpatialKernel:
        """The kernel with its values sent to another one instead of stored."""
        match self.work:
            case Evaluation() | Reduction() as work:
                return replace(self, work=replace(work, store=None))
            case StoreUnit(value=value):
                return replace(self, work=Relay(value=value))
        return self

    def loop(self, name: str) -> SpatialLoop | None:
        """The loop of that name, or ``None``."""
        return next((loop for loop in self.loops if loop.name == name), None)

    def place(self, expr: Expr) -> Expr:
        """Rewrite an expression of the domain's variables over the loops."""
        return tidy(substitute(expr, dict(self.variables)))

    def text_of(self, operand: KernelOperand) -> str:
        """The content of an operand, as text over the loops."""
        match operand.content:
            case ComputedValue(value=value):
                return show(self.place(value))
            case content:
                return f"{content.source}[{', '.join(show(self.place(e)) for e in content.access)}]"

    def over_domain(self, expr: Expr) -> Expr:
        """Rewrite an expression of the loops over the domain's variables."""
        return substitute(expr, {loop.name: loop.definition for loop in self.loops})

    def first_lane(self, expr: Expr) -> Expr:
        """The expression with the vector loop, if there is one, at its first iteration."""
        vector = self.vector_loop
        return expr if vector is None else substitute(expr, {vector.name: vector.minimum})

    def longest(self, loop: SpatialLoop) -> int:
        """The largest extent of a loop."""
        if loop.constant is not None:
            return loop.constant[1]
        range_ = LoopDomain([other.interval for other in self.loops]).range_of(loop.extent)
        return range_[1] if range_ is not None else 1

    def kind(self, kind: LoopExecution) -> tuple[SpatialLoop, ...]:
        """The loops of one kind, outermost first."""
        return tuple(loop for loop in self.loops if loop.kind is kind)

    @property
    def padded_domain(self) -> tuple[Dimension, ...]:
        """The domain with its padding."""
        padded = {padding.variable: const(padding.padded) for padding in self.paddings}
        return tuple(replace(d, extent=padded.get(d.name, d.extent)) for d in self.domain)

    @property
    def vector_loop(self) -> SpatialLoop | None:
        return next(iter(self.kind(LoopExecution.VECTOR)), None)

    @property
    def reduction_loops(self) -> tuple[SpatialLoop, ...]:
        return tuple(loop for loop in self.loops if loop.reduction)

    def with_innermost(self, name: str, reason: str) -> SpatialKernel:
        """The kernel with a time loop inside of all others except the lanes."""
        moved = [
            replace(x, kind=LoopExecution.SERIAL, reason=reason)
            for x in self.loops
            if x.name == name
        ]
        others = [loop for loop in self.loops if loop.name != name]
        return replace(self, loops=(*others, *moved))

    def with_operand(self, old: KernelOperand, new: KernelOperand) -> SpatialKernel:
        """The kernel with one of its operands replaced."""
        operands = tuple(new if operand is old else operand for operand in self.operands)
        return replace(self, operands=operands)

    def with_consumer(self, result: Result, consumer: str) -> SpatialKernel:
        """The system with a consumer for one of its results."""
        if not isinstance(self.work, Recurrences):
            raise InternalError(f"{self.name} has no results")
        changed = replace(result, consumer=consumer)
        results = tuple(changed if old is result else old for old in self.work.results)
        return replace(self, work=replace(self.work, results=results))

    def seen_by_reader(self, renames: tuple[Rename, ...]) -> SpatialKernel:
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

    def without(self, names: frozenset[str]) -> SpatialKernel:
        """The kernel with loops removed, that is, fixed at their first iteration."""
        return self.pinned({loop.name: loop.minimum for loop in self.loops if loop.name in names})

    def pinned(self, values: Mapping[str, Expr]) -> SpatialKernel:
        """The kernel with loops removed that are fixed at values over the other loops."""
        known = dict(values)
        active = None if self.active is None else substitute(self.active, known)

        def bounded(loop: SpatialLoop) -> SpatialLoop:
            minimum, extent = substitute(loop.minimum, known), substitute(loop.extent, known)
            same = minimum is loop.minimum and extent is loop.extent
            return loop if same else replace(loop, minimum=minimum, extent=extent)

        return replace(
            self,
            loops=tuple(bounded(loop) for loop in self.loops if loop.name not in known),
            variables=tuple((name, substitute(expr, known)) for name, expr in self.variables),
            active=conjunction(active),
        )

    def rewritten(self, rule: Callable[[Expr], Expr]) -> SpatialKernel:
        """The kernel with its values rewritten: the value, the initial value, those of members."""
        return replace(self, work=rewritten_work(self.work, rule))

    def member(self, name: str) -> Member | None:
        """The member of that name, or ``None``."""
        return next((member for member in self.members if member.name == name), None)

    def result(self, function: str) -> Result | None:
        """The stream of a Func's final values, or ``None``."""
        return next((result for result in self.results if result.function == function), None)

    @property
    def domain_of_iterations(self) -> LoopDomain:
        """The set of iterations, without lanes."""
        loops = [loop.interval for loop in self.loops if loop.kind is not LoopExecution.VECTOR]
        return LoopDomain(loops, [] if self.active is None else [self.active])


@dataclass(frozen=True, kw_only=True)
class SpatialProgram(Term):
    """All kernels of a design, producers before consumers."""

    temporal: TemporalProgram
    kernels: tuple[SpatialKernel, ...]

    def kernel(self, name: str) -> SpatialKernel:
        """The kernel of that name."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise InternalError(f"unknown kernel {name}")

    def sender(self, operand: KernelOperand) -> SpatialKernel:
        """The producer of an operand, over the variables of the kernel that receives it."""
        producer = self.kernel(operand.producer)
        return producer.seen_by_reader(operand.renames) if operand.renames else producer

    def find(self, name: str) -> SpatialKernel | None:
        """The kernel of that name, or ``None``."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)

    def with_kernel(self, kernel: SpatialKernel) -> SpatialProgram:
        """The program with the kernel of that name replaced."""
        kernels = tuple(kernel if old.name == kernel.name else old for old in self.kernels)
        return replace(self, kernels=kernels)

    def with_before(self, anchor: str, kernel: SpatialKernel) -> SpatialProgram:
        """The program with a new kernel in front of another."""
        position = self._position(anchor)
        kernels = (*self.kernels[:position], kernel, *self.kernels[position:])
        return replace(self, kernels=kernels)

    def with_after(self, anchor: str, kernel: SpatialKernel) -> SpatialProgram:
        """The program with a new kernel behind another."""
        position = self._position(anchor) + 1
        kernels = (*self.kernels[:position], kernel, *self.kernels[position:])
        return replace(self, kernels=kernels)

    def _position(self, name: str) -> int:
        return [kernel.name for kernel in self.kernels].index(name)


# Loops: how they execute, and their definition in terms of the domain.


def shifted(expr: Expr, by: int) -> Expr:
    """``expr + by``, with trailing constants combined."""
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

    ``definition`` is the loop's index as an expression of the domain's variables; loops of
    different kernels with equal definitions iterate over the same thing.  ``reason`` is the text
    that ``print_loop_nest`` shows for the origin of the loop.
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
    def fixed(self) -> tuple[int, int]:
        """(minimum, extent) of a loop that is known to have constant bounds."""
        if self.constant is None:
            raise InternalError(f"{self.name} has no constant bounds")
        return self.constant

    @property
    def last(self) -> Expr:
        """The largest value of the index."""
        if isinstance(self.minimum, Const):
            return shifted(self.extent, int(self.minimum.value) - 1)
        return tidy(self.minimum + shifted(self.extent, -1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding(Term):
    """A variable that runs past its domain: ``padded`` values instead of ``extent``.

    ``limit`` is the first value outside of the domain; ``directive`` pads.
    """

    variable: str
    limit: int
    extent: int
    padded: int
    directive: Directive

    def __str__(self) -> str:
        return f"{self.variable}: {self.extent} padded to {self.padded}"


# Operands: what a kernel receives, what it stands for, and how it arrives.
#
# Expressions are over the domain's variables of the receiving kernel.


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedElement(Term):
    """The element ``source[access]`` of an input or a Func."""

    source: str
    access: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedValue(Term):
    """An expression that the function ``source`` computes; ``access`` has its subscripts."""

    source: str
    value: Expr
    access: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalValue(Term):
    """A result of the Func ``source``, on its way out."""

    source: str

    @property
    def access(self) -> tuple[Expr, ...]:
        return ()


Content = LoadedElement | ComputedValue | FinalValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardHop(Term):
    """PEs pass a value on along an unrolled loop.

    ``capacity``: depth of the channels between them (``None``: not the user's choice).
    """

    loop: str
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborHop(Term):
    """PEs pass a value on along an unrolled loop to the neighbors that need it.

    It enters where no neighbor has it, for example at the edge of a triangle.

    Attributes
    ----------
    loop: the loop; ``step`` is 1 where values go to the next PE, -1 for the one before.
    needed: where a PE gets the value from its neighbor or from elsewhere.
    arrives: where, of these, it gets it from its neighbor.
    leaves: where, of these, a neighbor gets it from it.
    capacity: depth of the channels between them (``None``: not the user's choice).
    """

    loop: str
    step: int
    needed: Expr | None
    arrives: Expr
    leaves: Expr
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal(Term):
    """Loops removed from the producer, and the directive that removed the last one."""

    loops: tuple[str, ...]
    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(Term):
    """The variable ``sender`` of a streamed function is ``reader + offset`` where it is read."""

    sender: str
    reader: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProducer(Term):
    """Taken from a producer that was isolated from another function, whose loops it keeps."""

    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedResults(Term):
    """The results of a function in the order it sends them; ``renames`` are for its variables."""

    by: Directive
    renames: tuple[Rename, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOperand(Term):
    """A value that a kernel receives, once per iteration.

    Attributes
    ----------
    name: the local that stands for it in the kernel's value.
    content: what it stands for.
    producer: the kernel that sends it.
    condition: static path condition over the domain's variables (``None``: always).
    at_start: needed only at the first step of the reduction (part of the initial value), so the
        producer has no reduction loops.
    pinned: loops of either end along which there is a token at one iteration only.
    hops: where PEs pass the value on, outermost hop first.
    neighbors: the same where a PE takes other values than its neighbor; ``condition`` is where the
        value enters then.
    removal: loops removed from the producer, for which a buffer makes up.
    taken: set if the kernel takes a stream that the producer sends anyway; then the producer's
    loops do not follow the kernel's.
    """

    name: str
    content: Content
    producer: str
    type: Type
    condition: Expr | None
    at_start: bool = False
    pinned: tuple[str, ...] = ()
    hops: tuple[ForwardHop, ...] = ()
    neighbors: tuple[NeighborHop, ...] = ()
    removal: Removal | None = None
    taken: SharedProducer | StreamedResults | None = None

    @property
    def source(self) -> str:
        """The input or Func that it comes from; for an expression, the function that computes."""
        return self.content.source

    @property
    def access(self) -> tuple[Expr, ...]:
        """Its subscripts; empty for a result on its way out."""
        return self.content.access

    @property
    def is_result(self) -> bool:
        """Whether it is a result on its way out."""
        return isinstance(self.content, FinalValue)

    @property
    def forwards(self) -> tuple[str, ...]:
        """The unrolled loops along which PEs pass the value on."""
        return tuple(hop.loop for hop in self.hops)

    @property
    def removed(self) -> tuple[str, ...]:
        """The loops removed from the producer."""
        return () if self.removal is None else self.removal.loops

    @property
    def renames(self) -> tuple[Rename, ...]:
        """For a streamed function, the variables of its definition where it is read."""
        return self.taken.renames if isinstance(self.taken, StreamedResults) else ()


# The work of a kernel in an iteration: one class for each kind.
#
# Expressions are over the domain's variables; loops are mentioned only by name.


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTarget(Term):
    """Where a kernel stores what it has: ``tensor[indices]``."""

    tensor: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation(Term):
    """Base of the work that computes.

    ``vector_operands``: operands asked for by ``vload``; ``vector_store``: asked for by ``vstore``.
    """

    vector_operands: tuple[str, ...] = ()
    vector_store: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Calculation):
    """A value in every iteration.

    Reads in ``value`` have no load unit yet; ``store`` is the target while this kernel still stores
    the value itself.
    """

    value: Expr
    store: StoreTarget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction(Calculation):
    """An ``Evaluation`` over the value of the previous step, which starts as ``initial``.

    ``reassociate``: the steps may be reordered, although that rounds differently.
    """

    value: Expr
    initial: Expr
    store: StoreTarget | None = None
    reassociate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Term):
    """One of the Funcs that a kernel computes together: uniform recurrence equations.

    Attributes
    ----------
    name: the Func; other members read it as ``Read(source=name)`` over the domain's variables.
    type: of one element.
    arguments: the domain's variables that index it.
    value: what one iteration computes.
    lanes: it has a value in each lane of the vector loop, not one for all.
    combine: the lanes of ``value`` are reduced with this operator, starting from ``initial``.
    location: the user's definition.
    """

    name: str
    type: Type
    arguments: tuple[str, ...]
    value: Expr
    lanes: bool
    combine: Op | None = None
    initial: Expr | None = None
    location: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Term):
    """A stream of final values of a kernel that computes several Funcs.

    Attributes
    ----------
    function: the Func whose elements these are.
    member: the member whose values they are.
    indices: the element, over the domain's variables, from 0.
    condition: static, over the domain's variables: where there is one (``None``: everywhere).
    consumer: the kernel that takes the stream, once there is one.
    """

    function: str
    member: str
    indices: tuple[Expr, ...]
    condition: Expr | None
    consumer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrences(Calculation):
    """A system of recurrences: the Funcs that are computed, and the streams that leave.

    ``timed``: the time loop of a schedule, which determines the latency of a hop between PEs.
    """

    members: tuple[Member, ...]
    results: tuple[Result, ...]
    timed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadUnit(Term):
    """Sends elements of an array in memory.

    Attributes
    ----------
    value: the element, a ``Read``; before load units are placed possibly an expression.
    on_host: the unit runs on the host, orders the elements in memory, and is not a node of the
        graph.
    address: for a tensor that the host orders, the subscripts over the loops.
    """

    value: Expr
    on_host: bool = False
    address: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUnit(Term):
    """Stores its operand; ``on_host`` and ``address`` are those of a ``LoadUnit``."""

    value: Local
    store: StoreTarget
    on_host: bool = False
    address: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayBuffer(Term):
    """A memory for the tokens of one iteration of ``loop``; ``double``: filled ahead."""

    loop: str
    double: bool
    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedStream(Term):
    """Base of the streams that the PEs along ``loop`` pass on from PE to PE.

    They enter or leave at the first PE, with ``reverse`` at the last one.
    """

    loop: str
    reverse: bool
    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatteredStream(PassedStream):
    """Every PE keeps its own values of one stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredStream(PassedStream):
    """Every PE adds its own values to one stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay(Term):
    """Passes its single operand on.

    Attributes
    ----------
    value: the operand.
    inserted: made by the compiler, for a buffer, scatter or gather in a Func that computes.
    buffer: the buffer that restores the stream, if there is one.
    stream: the stream that the PEs pass on; ``digit`` is the loop over the PEs whose tokens pass
        by, once the relay iterates over them.
    """

    value: Local
    inserted: bool = False
    buffer: RelayBuffer | None = None
    stream: ScatteredStream | GatheredStream | None = None
    digit: str | None = None


Work = Evaluation | Reduction | Recurrences | LoadUnit | Relay | StoreUnit


def rewritten_work(work: Work, rule: Callable[[Expr], Expr]) -> Work:
    """The work with its values rewritten: the value, the initial value, those of members."""
    match work:
        case Evaluation() | LoadUnit():
            return replace(work, value=rule(work.value))
        case Reduction():
            return replace(work, value=rule(work.value), initial=rule(work.initial))
        case Recurrences():
            members = tuple(
                replace(
                    member,
                    value=rule(member.value),
                    initial=None if member.initial is None else rule(member.initial),
                )
                for member in work.members
            )
            return replace(work, members=members)
        case Relay() | StoreUnit():
            return work
