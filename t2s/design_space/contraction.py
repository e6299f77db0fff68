"""What is searched: a Func over the points of a box, which reduces a term along some of its loops.

In goes a Func without directives: ``C[i, j] = c`` and ``C[i, j] += term``, the same with ``min``,
``max``, a product or a difference instead of a sum, or with another step from one value to the next
(``C[i] = C[i] * x[i] + c[k]``), or ``C[i, j] = term`` alone.

Out comes a ``Contraction``: its loops with their extents, and its operands with the loops that each
of them varies along.  Everything that spaces and bounds need to know about a definition is in it.

Refused, with the user's line: several updates, updates without an RDom, or that read the Func
itself at other elements,
loops whose bounds depend on other loops, subscripts that are read from memory, and Funcs that have
directives.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Expr,
    Index,
    Parameter,
    Read,
    Select,
    any_holds,
    apply,
    conjunction,
    const,
    index_names,
    is_associative,
    reads,
    substitute,
)
from t2s.core.intervals import linear_form
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import NameSupply
from t2s.core.ops import OPERATORS, Op, reorderable
from t2s.core.printer import show
from t2s.core.types import BOOL, INT32, Type
from t2s.core.walk import Term, children, rewrite, walk
from t2s.func.collect import needed_funcs
from t2s.func.expressions import Expression, Symbol
from t2s.func.freeze import freeze
from t2s.func.func import ImageParam, Var, WrittenDefinition
from t2s.func.ir import Definition, TemporalProgram
from t2s.spatial.schedule import ScheduledFunc


@dataclass(frozen=True, kw_only=True)
class SearchedLoop:
    """A loop of the definition: ``extent`` iterations from ``minimum``."""

    name: str
    minimum: int
    extent: int


@dataclass(frozen=True, kw_only=True)
class SearchedOperand:
    """An input, or a Func without hardware of its own, that the term reads.

    ``varies`` are the loops on which the element that is read depends; ``adjacent`` those along
    which one element follows on the other in memory.  ``stored`` says whether it is an array in
    memory, and not the value of a Func, and ``distinct`` whether it has another element for all
    values of the loops.  Where all reads are in branches of a select about loops, it is read under
    the ``condition`` only; ``loaded`` is that of what a Func reads.
    """

    name: str
    type: Type
    varies: frozenset[str]
    adjacent: frozenset[str]
    indices: tuple[Expr, ...]
    stored: bool
    distinct: bool
    condition: Expr | None
    loaded: Expr | None


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """``name[outputs] += term`` over ``outputs`` and ``reductions``, each outermost first.

    Attributes
    ----------
    operator: what terms are reduced with; ``None`` if there are no reductions, or if ``term`` is
        another step from one value to the next, such as ``a * C[i] + x[i, k]``.
    operands: what the term reads.
    initial: what the value reads that a reduction starts from; ``stored`` if not through a Func.
    definition: all definitions as text, which tells two contractions apart.
    stored: the loop that each subscript of the result is, outermost in memory first.
    """

    name: str
    type: Type
    outputs: tuple[SearchedLoop, ...]
    reductions: tuple[SearchedLoop, ...]
    operator: Op | None
    operands: tuple[SearchedOperand, ...]
    initial: tuple[SearchedOperand, ...]
    term: Expr
    definition: str
    stored: tuple[str | None, ...]

    @property
    def extents(self) -> dict[str, int]:
        return {loop.name: loop.extent for loop in (*self.outputs, *self.reductions)}

    @property
    def steps(self) -> int:
        """Evaluations of the term."""
        return prod(self.extents.values())

    @property
    def loops_in_space(self) -> tuple[SearchedLoop, ...]:
        """The loops that PEs may be along: outputs, and reductions.

        Of a sum that rounds, which keeps its order, the innermost reduction only.
        """
        if self.operator is None or not self._reassociates:
            return self.outputs
        keeps_order = not reorderable(self.operator, self.type)
        return self.outputs + (self.reductions[-1:] if keeps_order else self.reductions)

    @property
    def _reassociates(self) -> bool:
        return self.operator is not None and is_associative(self.operator)

    @property
    def vector_loop(self) -> str | None:
        """The loop that vectors run along: the innermost reduction, or adjacent results."""
        if not self.reductions:
            return self.stored[-1] if self.stored else None
        return self.reductions[-1].name if self._reassociates else None


def with_single_reads(func: ScheduledFunc) -> ScheduledFunc:
    """The Func, or a copy that reads each array at one place: at others through further Funcs.

    Directives name what is loaded, so ``A[i, k] * A[j, k]`` becomes ``A[i, k] * A_2[j, k]``, with
    ``A_2[d0, d1] = A[d0, d1]``, and a third read ``A_3``.
    """
    if not isinstance(func, ScheduledFunc) or func.plan or not func.written:
        return func
    inside = _read_inside(func)
    places = {
        (read.source, read.indices)
        for written in func.written
        for read in reads(written.value.node)
    }
    sources = [*inside, *(source for source, _ in places if source != func.name)]
    if len(sources) == len(set(sources)):
        return func
    copied: ScheduledFunc = pickle.loads(pickle.dumps(func))
    everything: dict[str, Symbol] = {}
    for written in copied.written:
        everything |= written.symbols
    names = NameSupply(everything)
    first: dict[str, tuple[Expr, ...] | None] = dict.fromkeys(inside)
    further: dict[tuple[str, tuple[Expr, ...]], ScheduledFunc] = {}
    variables: list[Var] = []

    def read_through(read: Read) -> ScheduledFunc:
        """A Func with the elements of what is read, of which there is one for these subscripts."""
        while len(variables) < len(read.indices):
            variables.append(Var(names.fresh(f"d{len(variables)}")))
        own = variables[: len(read.indices)]
        value = Read(
            source=read.source,
            indices=tuple(Index(name=variable.name, type=INT32) for variable in own),
            type=read.type,
            location=read.location,
        )
        reader = ScheduledFunc(names.fresh(read.source))
        location = read.location or copied.location
        symbols: dict[str, Symbol] = {read.source: everything[read.source]}
        symbols |= {variable.name: variable for variable in own}
        definition = WrittenDefinition(
            target=tuple(own),
            value=Expression(value, symbols, location),
            symbols={reader.name: reader, **symbols},
            location=location,
        )
        reader.written.append(definition)
        return reader

    def single(term: Term) -> Term | None:
        if not isinstance(term, Read) or term.source == copied.name:
            return None
        if first.setdefault(term.source, term.indices) == term.indices:
            return None
        key = term.source, term.indices
        if key not in further:
            further[key] = read_through(term)
        return replace(term, source=further[key].name)

    for at, written in enumerate(copied.written):
        node = rewrite(written.value.node, single)
        known = {**written.symbols, **{reader.name: reader for reader in further.values()}}
        value = {name: known[name] for name in _names(node)}
        symbols: dict[str, Symbol] = {copied.name: copied, **value}
        for part in written.target:
            symbols |= part.symbols
        copied.written[at] = replace(
            written,
            value=Expression(node, value, written.value.location),
            symbols=symbols,
        )
    return copied


def _names(value: Expr) -> Iterator[str]:
    """The names in an expression, in the order in which it is written."""
    for term in walk(value):
        match term:
            case Read(source=name) | Index(name=name) | Parameter(name=name):
                yield name


def _read_inside(func: ScheduledFunc) -> set[str]:
    """The inputs of the Funcs that a reduction starts from, which become part of its own loads."""
    if len(func.written) < 2:
        return set()
    funcs = [each for each in func.written[0].value.symbols.values() if each is not func]
    inside: set[str] = set()
    for other in needed_funcs([each for each in funcs if isinstance(each, ScheduledFunc)]):
        for written in other.written:
            symbols = written.value.symbols.items()
            inside |= {name for name, each in symbols if isinstance(each, ImageParam)}
    return inside


def check_without_directives(design: object) -> tuple[ScheduledFunc, ...]:
    """The outputs of a design; ``UserError`` if it has directives."""
    outputs = tuple(design) if isinstance(design, tuple | list) else (design,)
    for func in outputs:
        if not isinstance(func, ScheduledFunc):
            problem, location = "a search needs a Func", user_location()
            raise refused(problem, "a Func with a sum", repr(func), location)
    for needed in needed_funcs(outputs):
        if needed.plan:
            first = needed.plan[0]
            raise refused(
                f"{needed.name} has directives already",
                "a definition without directives: a search writes them",
                first.text,
                first.location,
                "t2s.cycles counts the cycles of a design with directives",
            )
    return outputs


def only_output(outputs: Sequence[ScheduledFunc]) -> ScheduledFunc:
    """The output of a design that is no recurrence; ``UserError`` if there are several."""
    if len(outputs) > 1:
        raise refused(
            f"{outputs[0].name} is one of {len(outputs)} outputs, which are no recurrence",
            "one Func, or outputs of Funcs that read one another at neighbors",
            ", ".join(output.name for output in outputs),
            outputs[1].location,
            "search each of them alone",
        )
    return outputs[0]


def contraction_of(func: ScheduledFunc, constants: Mapping[str, int]) -> Contraction:
    """The contraction that a Func defines; ``UserError`` if it does not define one."""
    program = freeze(func, constants)
    function = program.function(func.name)
    if len(function.updates) > 1:
        raise refused(
            f"{func.name} is not one reduction over a box",
            f"one update, such as {func.name}[...] += term, over an RDom",
            f"{len(function.updates)} updates",
            func.location,
        )
    computed = [other.name for other in program.functions if other.updates]
    if computed not in ([], [func.name]):
        raise refused(
            f"{func.name} needs other Funcs with hardware of their own",
            "one Func with an update; the Funcs that it reads without any",
            ", ".join(name for name in computed if name != func.name),
            func.location,
            "search each of them alone",
        )
    written = function.updates[0] if function.updates else function.definitions[0]
    operator, term = _update(written) if function.updates else (None, written.value)
    loops = [
        _loop(func, dimension.name, dimension.interval.constant, written)
        for dimension in written.domain
    ]
    initial = _initial(func, program, written.location) if function.updates else ()
    pure = {d.name for d in written.domain if not d.reduction}
    return Contraction(
        name=func.name,
        type=function.type,
        outputs=tuple(loop for loop in loops if loop.name in pure),
        reductions=tuple(loop for loop in loops if loop.name not in pure),
        operator=operator,
        operands=tuple(_operands(func, term, program, written.location)),
        initial=tuple(initial),
        term=term,
        definition=text_of(program),
        stored=tuple(index.name if isinstance(index, Index) else None for index in written.target),
    )


def _initial(
    func: ScheduledFunc, program: TemporalProgram, location: SourceLocation
) -> Iterator[SearchedOperand]:
    """What the value reads that a reduction starts from; through Funcs, which are part of it."""
    own = program.function(func.name).definitions[0].value
    sources = {read.source for read in reads(own)}
    for operand in _operands(func, _inlined(own, program), program, location):
        yield replace(operand, stored=operand.name in sources)


def _inlined(value: Expr, program: TemporalProgram) -> Expr:
    """A value with those of the Funcs that it reads in their place."""

    def inline(term: Term) -> Term | None:
        for function in program.functions:
            if isinstance(term, Read) and term.source == function.name:
                arguments = dict(zip(function.arguments, term.indices, strict=True))
                return _inlined(substitute(function.initial.value, arguments), program)
        return None

    return rewrite(value, inline)


def text_of(program: TemporalProgram) -> str:
    """The definitions, domains and types of a program, without the places they were written."""
    lines = [f"{array.name}: {array.type}{list(array.shape)}" for array in program.inputs]
    lines += [f"{scalar.name}: {scalar.type}" for scalar in program.parameters]
    for function in program.functions:
        for written in function.definitions:
            domain = ", ".join(
                f"{d.name} from {show(d.minimum)} over {show(d.extent)}" for d in written.domain
            )
            target = ", ".join(map(show, written.target))
            value = show(written.value)
            lines.append(f"{function.name}[{target}] = {value} as {function.type} for {domain}")
    return "\n".join(lines)


def _update(update: Definition) -> tuple[Op | None, Expr]:
    """By which operator an element and a term are combined; ``None`` and all of another step."""
    if not update.reductions:
        raise refused(
            f"the update of {update.function} has no RDom",
            "one definition, or an update over an RDom",
            f"{update.function}[{', '.join(map(show, update.target))}] = {show(update.value)}",
            update.location,
            "write both definitions as one",
        )
    match update.value:
        case Apply(operator=operator, operands=(left, right)):
            sides = [(left, right)]
            if OPERATORS[operator].commutative:
                sides.append((right, left))
            for own, term in sides:
                if _is_target(own, update) and not _reads_itself(term, update):
                    return operator, term
    for read in reads(update.value):
        if read.source == update.function and not _is_target(read, update):
            raise refused(
                f"{update.function} is not a reduction over a box",
                f"an update of the same element, such as {update.function}[...] += term",
                f"a read of {show(read)}",
                update.location,
                "design those by hand; t2s.cycles counts the cycles of each design",
            )
    return None, update.value


def _is_target(value: Expr, update: Definition) -> bool:
    return (
        isinstance(value, Read)
        and value.source == update.function
        and value.indices == update.target
    )


def _reads_itself(term: Expr, update: Definition) -> bool:
    return any(read.source == update.function for read in reads(term))


def _loop(
    func: ScheduledFunc, name: str, constant: tuple[int, int] | None, update: Definition
) -> SearchedLoop:
    if constant is None:
        raise refused(
            f"the loop {name} of {func.name} has bounds that depend on other loops",
            "constant bounds for each loop of a searched Func",
            f"{name} with other loops in its bounds",
            update.location,
            "compute the whole rectangle, or fold a triangle into one, as examples/syrk does",
        )
    return SearchedLoop(name=name, minimum=constant[0], extent=constant[1])


def _operands(
    func: ScheduledFunc, value: Expr, program: TemporalProgram, location: SourceLocation
) -> Iterator[SearchedOperand]:
    conditions = conditions_of(value)
    for read in dict.fromkeys(reads(value)):
        if read.source == func.name:
            continue  # a step from one value to the next
        inside = next((inner for index in read.indices for inner in reads(index)), None)
        if inside is not None:
            raise refused(
                f"{func.name} reads {read.source} at places that {inside.source} has",
                "subscripts of loops and constants",
                f"{read.source}[{', '.join(map(show, read.indices))}]",
                location,
                "for sparse tensors see t2s.sparse.search",
            )
        stored = all(read.source != function.name for function in program.functions)
        condition = conditions[read.source, read.indices]
        yield SearchedOperand(
            name=read.source,
            type=read.type,
            varies=frozenset().union(*map(index_names, read.indices)),
            adjacent=adjacent_loops(read, program),
            indices=read.indices,
            stored=stored,
            distinct=stored and has_distinct_elements(read),
            condition=condition,
            loaded=conjunction(condition, _loaded(read, program)),
        )


def conditions_of(
    value: Expr, outer: Expr | None = None
) -> dict[tuple[str, tuple[Expr, ...]], Expr | None]:
    """What has to hold of the loops for each read of a value; ``None`` if nothing has to."""
    match value:
        case Read(source=source, indices=indices):
            return {(source, indices): outer}
        case Select(condition=condition, if_true=first, if_false=second) if not reads(condition):
            other = apply(Op.NOT, condition)
            branches = [(first, conjunction(outer, condition)), (second, conjunction(outer, other))]
        case _:
            branches = [(child, outer) for child in children(value) if isinstance(child, Expr)]
    found: dict[tuple[str, tuple[Expr, ...]], Expr | None] = {}
    for branch, inside in branches:
        for read, holds in conditions_of(branch, inside).items():
            before = found.setdefault(read, holds)
            if before is not None and before != holds:
                found[read] = None if holds is None else any_holds(before, holds)
    return found


def _loaded(read: Read, program: TemporalProgram) -> Expr | None:
    """What has to hold for a Func to load what it reads; never where its reads differ in that."""
    for function in program.functions:
        if function.name == read.source:
            arguments = dict(zip(function.arguments, read.indices, strict=True))
            value = substitute(function.initial.value, arguments)
            conditions = conditions_of(value)
            loaded = {
                conjunction(conditions[inner.source, inner.indices], _loaded(inner, program))
                for inner in reads(value)
            }
            return const(False, BOOL) if len(loaded) > 1 else next(iter(loaded), None)
    return None


def adjacent_loops(read: Read, program: TemporalProgram) -> frozenset[str]:
    """The loops along which one element that is read follows on the other in memory."""
    names = frozenset().union(*map(index_names, read.indices))
    for function in program.functions:
        if function.name == read.source:
            arguments = dict(zip(function.arguments, read.indices, strict=True))
            value = substitute(function.initial.value, arguments)
            return names.intersection(*(adjacent_loops(inner, program) for inner in reads(value)))
    *outer, last = read.indices
    apart = frozenset().union(*map(index_names, outer))
    return frozenset(name for name in names - apart if _step(last, name) == 1)


def has_distinct_elements(read: Read) -> bool:
    """Whether each loop has a subscript of its own."""
    forms = [linear_form(index) for index in read.indices]
    names = [tuple(form[0]) if form is not None else ("", "") for form in forms]
    alone = [loop for loops in names for loop in loops]
    return all(len(loops) <= 1 for loops in names) and len(set(alone)) == len(alone)


def _step(subscript: Expr, loop: str) -> int | None:
    """How much a subscript grows in an iteration of a loop; ``None`` if that depends."""
    form = linear_form(subscript)
    if form is not None:
        return form[0].get(loop, 0)
    if loop not in index_names(subscript):
        return 0
    match subscript:
        case Apply(operator=Op.ADD, operands=(left, right)):
            steps = _step(left, loop), _step(right, loop)
            return None if None in steps else sum(step for step in steps if step is not None)
    return None


def refused(
    problem: str,
    expected: str,
    given: str,
    location: SourceLocation | None,
    hint: str | None = None,
) -> UserError:
    return UserError(problem, location=location, expected=expected, given=given, hint=hint)
