"""The spatial program: kernels (loop nests with a value) and how they feed each other.

Directives rewrite this program; ``to_graph`` turns each kernel into one node of the graph.  A
kernel's value is written over the *domain's* variables (i, j, k of the definition); its loops are
what executes, and the two are tied together in both directions: ``SpatialKernel.variables`` gives
each domain variable as an expression of the loops, ``SpatialLoop.definition`` each loop as an
expression of the domain variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from t2s.core.affine import tidy
from t2s.core.errors import InternalError
from t2s.core.expr import (
    Expr,
    Index,
    Local,
    conjunction,
    const,
    substitute,
)
from t2s.core.isl import LoopDomain
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.core.walk import Term
from t2s.func.ir import Dimension, TemporalProgram
from t2s.graph.nodes import Role
from t2s.spatial.directive import Directive
from t2s.spatial.loop_nest import LoopExecution, Padding, SpatialLoop, shifted
from t2s.spatial.operands import ComputedValue, KernelOperand, Rename
from t2s.spatial.work import (
    Evaluation,
    GatheredStream,
    LoadUnit,
    Member,
    Recurrences,
    Reduction,
    Relay,
    RelayBuffer,
    Result,
    ScatteredStream,
    StoreTarget,
    StoreUnit,
    Work,
    rewritten_work,
)


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
        """What one iteration computes or passes on; of a system the last member."""
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
        """Where the kernel stores what it has, if it does."""
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
        """Whether the kernel orders an array in memory: it is a loop nest, but no node."""
        return isinstance(self.work, LoadUnit | StoreUnit) and self.work.on_host

    @property
    def buffer(self) -> RelayBuffer | None:
        """The buffer in which a relay keeps what it passes on."""
        return self.work.buffer if isinstance(self.work, Relay) else None

    @property
    def stream(self) -> ScatteredStream | GatheredStream | None:
        """The one stream that the PEs of a relay pass on."""
        return self.work.stream if isinstance(self.work, Relay) else None

    @property
    def scattering(self) -> ScatteredStream | None:
        """The stream that the kernel's PEs take their operand from."""
        return self.stream if isinstance(self.stream, ScatteredStream) else None

    @property
    def gathering(self) -> GatheredStream | None:
        """The stream that the kernel's PEs put their values into."""
        return self.stream if isinstance(self.stream, GatheredStream) else None

    @property
    def digit(self) -> str | None:
        """Of a kernel that passes a stream on, the loop over the PEs whose tokens pass by."""
        return self.work.digit if isinstance(self.work, Relay) else None

    def without_store(self) -> SpatialKernel:
        """The kernel with its values on their way to another one."""
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
        """An expression of the domain's variables as one of the loops."""
        return tidy(substitute(expr, dict(self.variables)))

    def text_of(self, operand: KernelOperand) -> str:
        """What an operand stands for, over the loops."""
        match operand.content:
            case ComputedValue(value=value):
                return show(self.place(value))
            case content:
                return f"{content.source}[{', '.join(show(self.place(e)) for e in content.access)}]"

    def over_domain(self, expr: Expr) -> Expr:
        """An expression of the loops as one of the domain's variables."""
        return substitute(expr, {loop.name: loop.definition for loop in self.loops})

    def first_lane(self, expr: Expr) -> Expr:
        """With the vector loop, if there is one, at its first iteration."""
        vector = self.vector_loop
        return expr if vector is None else substitute(expr, {vector.name: vector.minimum})

    def longest(self, loop: SpatialLoop) -> int:
        """The largest extent that a loop has."""
        if loop.constant is not None:
            return loop.constant[1]
        found = LoopDomain([other.interval for other in self.loops]).range_of(loop.extent)
        return found[1] if found is not None else 1

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
        """The kernel with a loop in time, inside of all others but the lanes."""
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
        """The kernel with loops dropped: they stay at their first iteration."""
        return self.pinned({loop.name: loop.minimum for loop in self.loops if loop.name in names})

    def pinned(self, values: Mapping[str, Expr]) -> SpatialKernel:
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
        """The iterations that there are, lanes left out."""
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
        raise InternalError(f"there is no kernel {name}")

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
