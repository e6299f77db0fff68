"""Where an operand or an expression occurs in a kernel, and whether it can be moved out.

An operand given by name (``A``) may occur several times with the same subscripts and is one value
then.  If the subscripts differ, the name is ambiguous and the user has to write ``A[i, k]``.  An
expression (``alpha * A[i, k]``) is found by its structure.

``check_loadable`` proves that a load unit may load what a definition reads.  A definition reads an
element only where its path condition holds.  Hardware decides whether to load from the static part
of that condition alone; the data-dependent part only selects between values that have arrived.  So
the address has to be in range under the static part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Expr, Index, Read, conjuncts, reads
from t2s.core.isl import LoopDomain, is_affine
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.core.walk import distinct, walk
from t2s.func.accesses import GuardedRead, guarded_nodes, guarded_reads
from t2s.func.ir import TemporalProgram
from t2s.spatial.analysis.lookup import any_of, is_static, readable_update
from t2s.spatial.directive import IsolateProducer
from t2s.spatial.inline import inline_functions
from t2s.spatial.ir import ComputedValue, Content, LoadedElement, SpatialKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """A value that a kernel computes, wherever it occurs in it.

    ``condition`` is the path condition (``None``: always); ``at_start`` says that only the initial
    value of a reduction needs it.
    """

    value: Expr
    condition: Expr | None
    at_start: bool
    location: SourceLocation

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        """The subscripts that determine the value."""
        if isinstance(self.value, Read):
            return self.value.indices
        return tuple(dict.fromkeys(_subscripts(self.value)))

    def content(self, source: str) -> Content:
        """The content of an operand in its place; ``source`` names an expression."""
        if isinstance(self.value, Read):
            return LoadedElement(source=self.value.source, access=self.subscripts)
        return ComputedValue(source=source, value=self.value, access=self.subscripts)


def _subscripts(expr: Expr) -> Iterator[Expr]:
    for node in distinct(expr, into=lambda term: not isinstance(term, Read)):
        match node:
            case Read(indices=indices):
                yield from indices
            case Index():
                yield node


def find_occurrence(
    program: TemporalProgram, kernel: SpatialKernel, directive: IsolateProducer
) -> tuple[SpatialKernel, Occurrence]:
    """The value that a directive moves, and the kernel with it (with Funcs inlined if necessary).

    Raises ``UserError`` if the value is missing or ambiguous, and ``UnsupportedError`` if it cannot
    be computed before the condition that guards it.
    """
    target = directive.target
    value: Expr
    if target is None:
        kernel, value = _named(program, kernel, directive)
    else:
        if not list(_everywhere(kernel, target)):
            not_inlined = frozenset(read.source for read in reads(target))
            kernel = inline_functions(program, kernel, keep=not_inlined)
        if not list(_everywhere(kernel, target)):
            raise _not_there(kernel, directive, target)
        value = target
    for read in reads(value):
        if read.source in _member_names(kernel):
            raise _computed_here(kernel, directive, read.source)
    for guard, _ in _everywhere(kernel, value):
        for guarded in guarded_reads(value, guard):
            check_loadable(program, kernel, guarded)
    return kernel, occurrence_of(kernel, value)


def occurrence_of(kernel: SpatialKernel, value: Expr) -> Occurrence:
    """A value that occurs in a kernel, under any of the conditions that it has there."""
    return _occurrence(kernel, value, list(_everywhere(kernel, value)))


def loads_of(kernel: SpatialKernel) -> list[Occurrence]:
    """The values that a kernel loads itself: reads without a producer, each once."""
    conditions: dict[Read, list[tuple[Expr | None, bool]]] = {}
    for guarded, start in all_reads(kernel, nested=False):
        conditions.setdefault(guarded.read, []).append((guarded.condition, start))
    return [_occurrence(kernel, read, places) for read, places in conditions.items()]


def _occurrence(
    kernel: SpatialKernel, value: Expr, conditions: Sequence[tuple[Expr | None, bool]]
) -> Occurrence:
    condition = conditions[0][0]
    for other, _ in conditions[1:]:
        same = conjuncts(condition) == conjuncts(other)
        condition = condition if same else any_of(condition, other)
    read = next(iter(reads(value)), None)
    location = read.location if read is not None else None
    return Occurrence(
        value=value,
        condition=condition,
        at_start=all(start for _, start in conditions),
        location=location or kernel.location,
    )


def _everywhere(kernel: SpatialKernel, value: Expr) -> Iterator[tuple[Expr | None, bool]]:
    """The conditions under which a value is needed, and whether at the start of a reduction."""
    if kernel.initial is not None:
        yield from ((guard, True) for guard in _guards(kernel.initial, value, None))
    exprs = (kernel.value, *(e for m in kernel.members for e in (m.value, m.initial)))
    for expr in exprs:
        if expr is not None:
            yield from ((guard, False) for guard in _guards(expr, value, None))


def _guards(expr: Expr, value: Expr, condition: Expr | None) -> Iterator[Expr | None]:
    for node, where in guarded_nodes(expr, condition):
        if node == value:
            yield where


def all_reads(kernel: SpatialKernel, *, nested: bool = True) -> list[tuple[GuardedRead, bool]]:
    """The reads without a producer, and whether only the start of a reduction needs them.

    Reads in subscripts of others are left out unless ``nested``.
    """
    start = [] if kernel.initial is None else list(guarded_reads(kernel.initial, nested=nested))
    return [
        *((guarded, True) for guarded in start),
        *((guarded, False) for guarded in guarded_reads(kernel.value, nested=nested)),
        *((guarded, False) for guarded in _reads_of_members(kernel, nested)),
    ]


def _reads_of_members(kernel: SpatialKernel, nested: bool) -> list[GuardedRead]:
    """The reads of a kernel's members that do not read members."""
    names = _member_names(kernel)
    exprs = [e for m in kernel.members for e in (m.value, m.initial) if e is not None]
    guarded_reads_ = [guarded for expr in exprs for guarded in guarded_reads(expr, nested=nested)]
    return [guarded for guarded in guarded_reads_ if guarded.read.source not in names]


def _member_names(kernel: SpatialKernel) -> set[str]:
    return {member.name for member in kernel.members}


def _named(
    program: TemporalProgram, kernel: SpatialKernel, directive: IsolateProducer
) -> tuple[SpatialKernel, Read]:
    """The one element of a named operand, and the kernel it was found in."""
    name = directive.operand
    candidates = _reads_of(kernel, name)
    if not candidates:
        kernel = inline_functions(program, kernel, keep=frozenset({name}))
        candidates = _reads_of(kernel, name)
    distinct = list(dict.fromkeys(candidates))
    if len(distinct) == 1:
        return kernel, distinct[0]
    if not candidates:
        raise _no_operand(kernel, directive)
    raise UserError(
        f"{directive.text} on {kernel.name}: {name} occurs {len(distinct)} times, with different "
        "subscripts",
        location=directive.location,
        expected="one element, so that it is clear which one moves",
        given=", ".join(show(read) for read in distinct),
        notes=tuple((read.location, f"{show(read)} is read here") for read in distinct),
        hint=f"say which one: {directive.method}({show(distinct[0])}, "
        f"{', '.join(directive.producers)})",
    )


def _reads_of(kernel: SpatialKernel, name: str) -> list[Read]:
    return [guarded.read for guarded, _ in all_reads(kernel) if guarded.read.source == name]


def _computed_here(kernel: SpatialKernel, directive: IsolateProducer, member: str) -> UserError:
    others = sorted({guarded.read.source for guarded, _ in all_reads(kernel)})
    return UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} computes {member} itself, because "
        "their recurrences share one loop nest",
        location=directive.location,
        expected="an operand that the recurrences read from outside",
        given=f"{member}; computed together: {', '.join(sorted(_member_names(kernel)))}",
        hint=f"isolate one of {', '.join(others)}" if others else None,
    )


def _no_operand(kernel: SpatialKernel, directive: IsolateProducer) -> UserError:
    name = directive.operand
    if name in _member_names(kernel):
        return _computed_here(kernel, directive, name)
    isolated = next((o for o in kernel.operands if o.source == name), None)
    if isolated is not None:
        return UserError(
            f"{directive.text} on {kernel.name}: {name} is already loaded by {isolated.producer}",
            location=directive.location,
            expected=f"an operand that {kernel.name} still loads itself",
            hint=f"isolate before forward, or isolate further from {isolated.producer}",
        )
    for operand in kernel.operands:
        match operand.content:
            case ComputedValue(value=whole) if any(r.source == name for r in reads(whole)):
                return _inside(kernel, directive, name, operand.source, whole)
    others = sorted({guarded.read.source for guarded, _ in all_reads(kernel)})
    return UserError(
        f"{directive.text} on {kernel.name}: {name} is not used in {kernel.name}",
        location=directive.location,
        expected=f"one of {', '.join(others)}" if others else "an operand that is still there",
        given=name,
    )


def _inside(
    kernel: SpatialKernel, directive: IsolateProducer, part: str, producer: str, whole: Expr
) -> UserError:
    return UserError(
        f"{directive.text} on {kernel.name}: {part} is a part of {show(whole)}, which {producer} "
        "computes",
        location=directive.location,
        expected=f"something that {kernel.name} still computes itself",
        hint=f"isolate it from {producer}: {producer}.{directive.method}("
        f"{', '.join([part, *directive.producers])})",
    )


def _not_there(kernel: SpatialKernel, directive: IsolateProducer, target: Expr) -> UserError:
    for operand in kernel.operands:
        content = operand.content
        whole = content.value if isinstance(content, ComputedValue) else None
        if whole is not None and any(node == target for node in walk(whole)):
            return _inside(kernel, directive, show(target), operand.source, whole)
        for part in walk(target):
            same = isinstance(part, Read) and (part.source, part.indices) == (
                operand.source,
                operand.access,
            )
            if same or (whole is not None and part == whole):
                text = show(cast(Expr, part))
                return UserError(
                    f"{directive.text} on {kernel.name}: {text}, a part of it, already comes from "
                    f"{operand.producer}",
                    location=directive.location,
                    expected="expressions that do not overlap",
                    hint=f"isolate {show(target)} first, and then {text} from "
                    f"{directive.producers[0]}",
                )
    return UserError(
        f"{directive.text} on {kernel.name}: {show(target)} does not occur in {kernel.name}",
        location=directive.location,
        expected=f"a part of {show(readable_update(kernel.function, kernel.value))}",
        given=show(target),
        hint="it is found as it is written: the same operands in the same order",
    )


def check_loadable(program: TemporalProgram, kernel: SpatialKernel, guarded: GuardedRead) -> None:
    """Raise ``UnsupportedError`` for an address that depends on data or may be out of range."""
    read = guarded.read
    location = read.location or kernel.location
    inner = next((part for index in read.indices for part in reads(index)), None)
    if inner is not None:
        raise UnsupportedError(
            f"{show(read)} in {kernel.name} is read at a place that depends on data",
            location=location,
            expected="subscripts of loop variables, numbers and Params",
            given=show(inner),
            hint="it can be computed by t2s.interpret; hardware for it is not generated yet",
        )
    parts = conjuncts(guarded.condition)
    dynamic = [part for part in parts if not is_static(part)]
    if not dynamic:
        return
    domain = LoopDomain([d.interval for d in kernel.domain], filter(is_affine, parts))
    for index, (low, extent) in zip(read.indices, _bounds(program, read), strict=True):
        range_ = domain.range_of(index) if is_affine(index) else None
        if range_ is not None and low <= range_[0] and range_[1] < low + extent:
            continue
        if domain.is_empty():
            continue
        raise UnsupportedError(
            f"{show(read)} in {kernel.name} cannot be loaded ahead of the condition that guards it",
            location=location,
            expected=f"{show(index)} within {low}..{low + extent - 1} whatever the data",
            given=f"a guard that depends on data: {show(dynamic[0])}",
            hint="add a condition on the loops, as in t2s.select((i > 0) & (x[i] > 0), ...), or "
            "clamp the subscript with t2s.max and t2s.min",
        )


def _bounds(program: TemporalProgram, read: Read) -> tuple[tuple[int, int], ...]:
    """(minimum, extent) of each dimension of what is read."""
    for array in program.inputs:
        if array.name == read.source:
            return tuple((0, extent) for extent in array.shape)
    return program.function(read.source).bounds
