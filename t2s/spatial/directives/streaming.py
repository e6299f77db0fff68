"""Taking the tokens of another function: ``stream``, and producers that several Funcs share.

Before -> after::

    G.stream(F)                  F: ... store F[i]          ->   F: ... send F[i]
                                 G: ... load F[i] ...            G: ... receive ...
    F.isolate_producer(A, P)     P: load A[i], send to F    ->   P: load A[i], send to F and to G
    G.isolate_producer(A, P)     G: ... A[i] ...                 G: ... receive ...

The sender keeps its loops, so both ends have to agree on the values and their order.  That is
checked once the design is complete (``analysis/token_order.py``), because later directives may
still change the nests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Apply, Const, Expr, Index, Local, Read, conjunction
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.func.ir import Function
from t2s.spatial.analysis.lookup import static_conjuncts
from t2s.spatial.analysis.occurrences import Occurrence, all_reads, occurrence_of
from t2s.spatial.directive import Directive, IsolateProducer
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import (
    ComputedValue,
    KernelOperand,
    LoadedElement,
    LoadUnit,
    Relay,
    Rename,
    SharedProducer,
    SpatialKernel,
    SpatialProgram,
    StreamedResults,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResults(Directive):
    """The results of ``function`` come through a channel instead of through memory."""

    function: str


def stream(program: SpatialProgram, name: str, directive: StreamResults) -> SpatialProgram:
    """Receive the results of a function from the kernel that would store them."""
    kernel, subject = program.kernel(name), f"{directive.text} on {name}"
    function, sender = _stored(program, directive, subject)
    kernel, read = _read_of(program, kernel, directive, subject)
    occurrence = occurrence_of(kernel, read)
    if kernel.condition is not None or occurrence.condition is not None:
        raise UserError(
            f"{subject}: {show(read)} is not needed in every iteration",
            location=directive.location,
            expected="every value of the stream to be taken",
            hint=f"move the access out of the select, or read {function.name} from memory",
        )
    taken = KernelOperand(
        name=NameSupply(operand.name for operand in kernel.operands).fresh(function.name),
        content=LoadedElement(source=function.name, access=read.indices),
        producer=sender.name,
        type=read.type,
        condition=None,
        at_start=occurrence.at_start,
        pinned=tuple(loop for operand in sender.operands for loop in operand.pinned),
        taken=StreamedResults(by=directive, renames=_renames(function, read, directive, subject)),
    )
    return program.with_kernel(_taking(kernel, occurrence, taken))


def share(
    program: SpatialProgram,
    kernel: SpatialKernel,
    occurrence: Occurrence,
    directive: IsolateProducer,
) -> SpatialProgram:
    """Receive the tokens of a producer that was isolated from another function."""
    name = directive.producers[0]
    owner, known = _first_user(program, kernel, name, directive)
    removal = known.removal
    if removal is not None:
        left = tuple(loop for loop in removal.loops if kernel.loop(loop) is not None)
        removal = replace(removal, loops=left)
    sample = KernelOperand(
        name=NameSupply(operand.name for operand in kernel.operands).fresh(known.source),
        content=occurrence.content(known.source),
        producer=name,
        type=occurrence.value.type,
        condition=program.kernel(name).condition,
        at_start=occurrence.at_start,
        removal=removal,
        taken=SharedProducer(by=directive),
    )
    same = known.content == sample.content
    condition = conjunction(*static_conjuncts(occurrence.condition))
    if not same or condition != known.condition or kernel.condition is not None:
        guarded = "" if condition is None else f" if {show(condition)}"
        condition_text = "" if known.condition is None else f" if {show(known.condition)}"
        raise UserError(
            f"{directive.text} on {kernel.name}: {name} does not send what {kernel.name} needs",
            location=directive.location,
            expected=f"{show(occurrence.value)}{guarded}, as in {kernel.name}",
            given=f"{_text(known)}{condition_text}, as in {owner.name}",
            notes=((program.kernel(name).location, f"{name} was isolated here"),),
            hint="write both with the same variables, or give each a producer of its own",
        )
    return program.with_kernel(_taking(kernel, occurrence, sample))


def _text(operand: KernelOperand) -> str:
    match operand.content:
        case ComputedValue(value=value):
            return show(value)
        case content:
            return f"{content.source}[{', '.join(map(show, content.access))}]"


def _first_user(
    program: SpatialProgram, kernel: SpatialKernel, name: str, directive: IsolateProducer
) -> tuple[SpatialKernel, KernelOperand]:
    for user in program.kernels:
        for operand in user.operands:
            if operand.producer == name:
                return user, operand
    raise UserError(
        f"{directive.text} on {kernel.name}: {name} is not isolated yet when {kernel.name} comes",
        location=directive.location,
        expected=f"{name} isolated first from {kernel.name}, then from the other Func",
        hint="Funcs are scheduled in the order in which they depend on each other",
    )


def _taking(kernel: SpatialKernel, occurrence: Occurrence, operand: KernelOperand) -> SpatialKernel:
    """The kernel with an operand in place of a value."""
    value, local = occurrence.value, Local(name=operand.name, type=operand.type)

    def rule(node: Term) -> Term | None:
        return local if node == value else None

    taking = replace(kernel, operands=(*kernel.operands, operand))
    match kernel.work:
        case LoadUnit(value=whole) if whole == value:
            return replace(taking, work=Relay(value=local))
    return taking.rewritten(lambda expr: rewrite(expr, rule))


def _stored(
    program: SpatialProgram, directive: StreamResults, subject: str
) -> tuple[Function, SpatialKernel]:
    """The function of a stream, and the kernel that stores its results."""
    for kernel in program.kernels:
        if kernel.store is not None and kernel.store.tensor == directive.function:
            return program.temporal.function(directive.function), kernel
    if any(kernel.function == directive.function for kernel in program.kernels):
        raise UserError(
            f"{subject}: {directive.function} has a schedule, and nothing takes its results yet",
            location=directive.location,
            expected="results that leave through a chain",
            given=f"{directive.function} alone",
            hint=f"write {directive.function}.isolate_consumer_chain(unloader) first",
        )
    own = {directive.function, *program.temporal.outputs}
    stored = sorted({k.store.tensor for k in program.kernels if k.store is not None} - own)
    raise UserError(
        f"{subject}: {directive.function} has no loop nest of its own",
        location=directive.location,
        expected=f"a Func with an update{': ' if stored else ''}{', '.join(stored)}",
        given=directive.function,
        hint="a Func without updates is computed inside of the Funcs that use it; isolate_producer "
        "gives it a place of its own",
    )


def _read_of(
    program: SpatialProgram, kernel: SpatialKernel, directive: StreamResults, subject: str
) -> tuple[SpatialKernel, Read]:
    name = directive.function
    candidates = _reads(kernel, name)
    if not candidates:
        kernel = inline_functions(program.temporal, kernel, keep=frozenset({name}))
        candidates = _reads(kernel, name)
    if len(candidates) == 1:
        return kernel, candidates[0]
    if candidates:
        raise UserError(
            f"{subject}: {name} is read at {len(candidates)} places",
            location=directive.location,
            expected="one element in each iteration: a channel gives every value once",
            given=", ".join(show(read) for read in candidates),
            notes=tuple((read.location, f"{show(read)} is read here") for read in candidates),
            hint=f"read {name} from memory, as without stream",
        )
    others = sorted({guarded.read.source for guarded, _ in all_reads(kernel)})
    raise UserError(
        f"{subject}: {name} is not used in {kernel.name}",
        location=directive.location,
        expected=f"one of {', '.join(others)}" if others else "a function that reads it",
        given=name,
        hint=f"after isolate_producer({name}, P) it is P that reads {name}: write P.stream({name})",
    )


def _reads(kernel: SpatialKernel, name: str) -> list[Read]:
    matching = (guarded.read for guarded, _ in all_reads(kernel) if guarded.read.source == name)
    return list(dict.fromkeys(matching))


def _renames(
    function: Function, read: Read, directive: Directive, subject: str
) -> tuple[Rename, ...]:
    """The reader's variable for each variable of the function."""
    definition = function.updates[0] if function.updates else function.initial
    renames: list[Rename] = []
    for own, index in zip(definition.target, read.indices, strict=True):
        variable, offset = _shifted_variable(index)
        taken = variable in {rename.reader for rename in renames}
        if variable is None or taken or not isinstance(own, Index):
            raise UnsupportedError(
                f"{subject}: {show(read)} is not a plain element of {function.name}",
                location=directive.location,
                expected=f"a different plain variable in each subscript of {function.name}",
                given=show(read),
                hint=f"read {function.name} from memory, as without stream",
            )
        renames.append(Rename(sender=own.name, reader=variable, offset=offset))
    return tuple(renames)


def _shifted_variable(index: Expr) -> tuple[str | None, int]:
    match index:
        case Index(name=name):
            return name, 0
        case Apply(operator=Op.ADD, operands=(Index(name=name), Const(value=int() as by))):
            return name, by
        case Apply(operator=Op.SUBTRACT, operands=(Index(name=name), Const(value=int() as by))):
            return name, -by
    return None, 0
