"""Parts of an expression that are first assigned to a workspace: by ``precompute``, and inner sums.

A sum over variables that only the part has moves with it if everything between the two is linear in
the part: factors can be moved out of a sum, terms or divisors cannot.  Otherwise the workspace
keeps these variables, and the sum stays.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TypeGuard

from t2s.core.errors import UserError
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import Term, children, rebuild, rewrite, walk
from t2s.sparse_repr.concrete.ir import Rescan
from t2s.sparse_repr.concrete.order import LevelPath, choose_order
from t2s.sparse_repr.concrete.schedule import Precompute, Schedule
from t2s.sparse_repr.formats import Format, csf
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Assignment,
    Combine,
    Expression,
    Negative,
    Sum,
    TensorDeclaration,
    accesses,
    all_variables,
    free_variables,
    print_expression,
    seen_patterns,
    variables_of,
)
from t2s.sparse_repr.notation.legality import make_assignment
from t2s.sparse_repr.notation.support import vanishes
from t2s.sparse_repr.semiring import PLUS_TIMES


def precompute(
    assignment: Assignment, schedule: Schedule
) -> tuple[tuple[Assignment, Precompute | None], ...]:
    """The assignments to workspaces, in order, with their directives, and the remaining one."""
    done: list[tuple[Assignment, Precompute | None]] = [(assignment, None)]
    for wanted in schedule.directives:
        if isinstance(wanted, Precompute):
            _check_outside_of_stored(assignment.value, wanted)
            at = _place_of(wanted, [step for step, _ in done])
            source, directive = done[at]
            workspace, left = _take_out(source, wanted)
            done[at : at + 1] = [(workspace, wanted), (left, directive)]
            tensor = workspace.tensor(wanted.workspace)
            done = [(_declaring(step, tensor), directive) for step, directive in done]
    return tuple(done)


def _check_outside_of_stored(value: Expression, directive: Precompute) -> None:
    """Refuse parts of ``stored(f(...))``: the workspace might store other elements."""
    for term in seen_patterns(value):
        inside = walk(_gathered(term.value, directive.value))
        if any(inner == directive.value for inner in inside):
            raise UserError(
                f"precompute takes a part of {print_expression(term)}, whose value depends on"
                " what is stored",
                location=directive.location,
                expected="a part that has all of stored(...), or nothing of it",
                given=print_expression(directive.value),
            )


def _declaring(assignment: Assignment, tensor: TensorDeclaration) -> Assignment:
    if tensor in assignment.tensors:
        return assignment
    return replace(assignment, tensors=(*assignment.tensors, tensor))


def _place_of(directive: Precompute, assignments: Sequence[Assignment]) -> int:
    """The assignment that contains the part."""
    counts = [
        sum(term == directive.value for term in walk(_gathered(assignment.value, directive.value)))
        for assignment in assignments
    ]
    if sum(counts) != 1:
        text = print_expression(directive.value)
        raise UserError(
            f"the expression has {text} {'twice' if sum(counts) else 'nowhere'}",
            location=directive.location,
            expected="a part of the expression, or factors of one product, that is there once",
            given="; ".join(print_expression(assignment.value) for assignment in assignments),
        )
    if any(tensor.name == directive.workspace for tensor in assignments[0].tensors):
        raise UserError(
            f"there is a tensor {directive.workspace} already",
            location=directive.location,
            expected="a new name for the workspace",
        )
    return counts.index(1)


def _terms(value: Expression) -> list[Expression]:
    """The terms that the additions at the top of an expression join."""
    match value:
        case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
            return [*_terms(left), *_terms(right)]
        case Negative(value=inner):
            return _terms(inner)
    return [value]


def _factors(value: Expression) -> list[Expression]:
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            return [*_factors(left), *_factors(right)]
    return [value]


def _gathered(value: Expression, part: Expression) -> Expression:
    """The expression with the factors of a part made adjacent: ``C*D`` in ``B*C*D``."""
    wanted = _factors(part)

    def visit(term: Term) -> Term:
        if term == part or not isinstance(term, Combine) or term.operator is not Op.MULTIPLY:
            return rebuild(term, visit) if term != part else term
        if any(inner == part for inner in walk(term)):
            return rebuild(term, visit)
        rest = _factors(term)
        first = next((at for at, factor in enumerate(rest) if factor in wanted), 0)
        for factor in wanted:
            if factor not in rest:
                return rebuild(term, visit)
            rest.remove(factor)
        rest.insert(min(first, len(rest)), part)
        return _product(rest)

    result: Expression = visit(value) if len(wanted) > 1 else value  # type: ignore[assignment]
    return result


def _take_out(assignment: Assignment, directive: Precompute) -> tuple[Assignment, Assignment]:
    value = _gathered(assignment.value, directive.value)
    outside = _variables_outside(value, directive.value)
    needed = {*assignment.result.variables, *outside, *_sums_that_stay(value, directive.value)}
    inside = variables_of(directive.value)
    bound = {n for term in walk(directive.value) if isinstance(term, Sum) for n in term.variables}
    free = tuple(v for v in all_variables(assignment) if v in inside and v not in bound)
    variables = tuple(v for v in free if v in needed)
    if directive.over is not None:
        _check_over(directive, variables, free)
        variables = directive.over
        needed |= set(directive.over)
    result = Access(tensor=directive.workspace, variables=variables, location=directive.location)
    format = csf(len(variables)) if directive.format is None else directive.format.off_chip
    _check_format(directive, format, variables)
    declared = TensorDeclaration(
        name=directive.workspace, format=format, location=directive.location
    )
    left = _replaced(value, directive.value, result, set(needed))
    tensors = (*assignment.tensors, declared)
    taken = tuple(name for name in free_variables(directive.value) if name not in needed)
    part = directive.value
    if taken and _joins_terms(part):  # otherwise each of its terms would be summed separately
        part = Sum(variables=taken, value=part)
    workspace = make_assignment(result, part, tensors, assignment.location)
    workspace = replace(workspace, semiring=assignment.semiring)
    return workspace, replace(assignment, value=left, tensors=tensors)


def _check_over(directive: Precompute, needed: tuple[str, ...], inside: tuple[str, ...]) -> None:
    """Check that the user's variables are those that the workspace needs, and that the part has."""
    assert directive.over is not None
    over = set(directive.over)
    fits = set(needed) <= over <= set(inside) and len(over) == len(directive.over)
    if not fits:
        raise UserError(
            f"{directive.workspace}({','.join(directive.over)}) does not hold"
            f" {print_expression(directive.value)}",
            location=directive.location,
            expected=f"the variables {', '.join(needed) or 'of a scalar'}, each once"
            + (f", and perhaps others of {', '.join(inside)}" if inside != needed else ""),
            given=", ".join(directive.over) or "no variables",
        )


def _check_format(directive: Precompute, format: Format, variables: tuple[str, ...]) -> None:
    if format.order != len(variables) or not format.plain:
        raise UserError(
            f"the format of {directive.workspace} does not fit"
            f" {directive.workspace}({','.join(variables)})",
            location=directive.location,
            expected=f"a format of {len(variables)} levels, one for each variable",
            given=str(format),
        )


def _joins_terms(value: Expression) -> bool:
    """Whether additions at the top of an expression join terms."""
    match value:
        case Combine(operator=operator):
            return operator in ADDITIVE
        case Negative(value=inner):
            return _joins_terms(inner)
        case _:
            return False


def _variables_outside(value: Expression, part: Expression) -> set[str]:
    """The variables of accesses outside of a part."""
    variables: set[str] = set()

    def visit(term: Term) -> None:
        if term == part:
            return
        if isinstance(term, Access):
            variables.update(term.variables)
        for child in children(term):
            visit(child)

    visit(value)
    return variables


def _sums_that_stay(value: Expression, part: Expression) -> set[str]:
    """The variables of sums around a part that is not a factor of their terms."""
    staying: set[str] = set()

    def visit(term: Term, around: tuple[str, ...]) -> None:
        """``around`` are the variables of sums with only factors in between."""
        match term:
            case _ if term == part:
                staying.difference_update(around)
            case Sum(variables=variables, value=inner):
                staying.update(variables)
                visit(inner, (*around, *variables))
            case Negative() | Combine(operator=Op.MULTIPLY):
                for child in children(term):
                    visit(child, around)
            case _:
                for child in children(term):
                    visit(child, ())

    visit(value, ())
    return staying


def _replaced(value: Expression, part: Expression, access: Access, needed: set[str]) -> Expression:
    """The expression with the part replaced, and sums over variables of the part alone dropped."""

    def visit(term: Term) -> Term:
        if term == part:
            return access
        new = rebuild(term, visit)
        if isinstance(new, Sum) and new is not term:
            left = tuple(name for name in new.variables if name in needed)
            return replace(new, variables=left) if left else new.value
        return new

    result: Expression = visit(value)  # type: ignore[assignment]
    return result


def hoist_sums(
    assignment: Assignment,
    names: NameSupply,
    free: Set[str] = frozenset(),
    apart: Set[Sum] = frozenset(),
) -> tuple[Assignment, ...]:
    """The assignments to workspaces, and the remaining assignment.

    ``sum(j,f, A(i,j)*X(j,f)*W(f,k))`` as one nest adds up ``X(j,f)*W(f,k)`` for every i again.  A
    sum of factors that not all loops change is computed once: first those of few variables.  So are
    factors that join sparse operands, as ``B(s,j) + C(s,j)``, inside of a loop that they lack.  Of
    the sums ``apart`` what is multiplied with a factor that is scanned again and again is one too.
    The levels of temporaries that are ``free`` come in the order of the loops.
    """
    before: list[Assignment] = []
    tensors = list(assignment.tensors)
    order = all_variables(assignment)
    loops = _loops(assignment, free)

    def hoisted(term: Sum) -> Expression:
        factors, summed, count = _factors(term.value), list(term.variables), len(tensors)
        while True:
            now = replace(assignment, tensors=tuple(tensors))
            hoistable = min(
                (group for name in reversed(summed) if (group := _invariant(factors, name))),
                key=lambda group: len(_variables(group)),
                default=None,
            ) or next(
                (group for factor in factors if (group := _joined(factors, factor, loops, now))),
                None,
            )
            if hoistable is None and apart:
                left = Sum(variables=tuple(summed), value=_product(factors))
                rescan = _rescan(left, now, free) if left in apart else None
                hoistable = None if rescan is None else list(rescan.first)
            if hoistable is None:
                break
            rest = [factor for factor in factors if factor not in hoistable]
            outside = {*assignment.result.variables, *_variables(rest)}
            private = tuple(n for n in summed if n in _variables(hoistable) and n not in outside)
            result_names = _variables(hoistable) - set(private)
            result = Access(
                tensor=names.fresh("part"),
                variables=tuple(name for name in order if name in result_names),
                location=assignment.location,
            )
            tensors.append(
                TensorDeclaration(
                    name=result.tensor, format=csf(len(result_names)), location=assignment.location
                )
            )
            part = _product(hoistable)
            part = Sum(variables=private, value=part) if private else part
            before.append(replace(assignment, result=result, value=part, tensors=tuple(tensors)))
            at = factors.index(hoistable[0])
            factors = [factor for factor in factors[:at] if factor not in hoistable]
            factors += [result, *(factor for factor in rest if factor not in factors)]
            summed = [name for name in summed if name not in private]
        if len(tensors) == count:
            return term
        value = _product(factors)
        return Sum(variables=tuple(summed), value=value) if summed else value

    def visit(value: Expression) -> Expression:
        match value:
            case Sum():
                return hoisted(value) if len(_factors(value.value)) > 1 else value
            case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
                return replace(value, left=visit(left), right=visit(right))
            case Negative(value=inner):
                return Negative(value=visit(inner))
        return value

    value = visit(assignment.value)
    return (*before, replace(assignment, value=value, tensors=tuple(tensors)))


def _invariant(factors: Sequence[Expression], name: str) -> list[Expression] | None:
    """The factors whose product can be summed over a variable separately.

    These are the factors with the variable, and all whose variables those have, which only make the
    product sparser.  ``None`` if no loop is saved.
    """
    inside = _variables([factor for factor in factors if name in variables_of(factor)])
    group = [
        factor for factor in factors if variables_of(factor) and {*variables_of(factor)} <= inside
    ]
    distinct = len(set(factors)) == len(factors)
    return group if distinct and _variables(factors) - inside else None


def _joined(
    factors: Sequence[Expression], base: Expression, loops: Sequence[str], assignment: Assignment
) -> list[Expression] | None:
    """The factors at the variables of one, if an outer loop repeats their sparse join."""
    inside = set(variables_of(base))
    group = [
        factor for factor in factors if variables_of(factor) and {*variables_of(factor)} <= inside
    ]
    sparse = [
        access
        for factor in group
        for access in accesses(factor)
        if not all(level.full for level in assignment.tensor(access.tensor).format.levels)
    ]
    around = set(loops[: max(map(loops.index, inside), default=0)]) - inside
    repeated = around & _variables(factors)
    distinct = len(set(factors)) == len(factors)
    if len(sparse) < 2 or not repeated or not distinct:
        return None
    return group if vanishes(_product(group), assignment.semiring) else None


def _loops(assignment: Assignment, free: Set[str]) -> tuple[str, ...]:
    """The order of an assignment's loops that its stored levels allow."""
    paths = []
    for access in (*dict.fromkeys(accesses(assignment.value)), assignment.result):
        format = assignment.tensor(access.tensor).format
        path = LevelPath(
            tensor=access.tensor,
            variables=tuple(dict.fromkeys(access.variables[part.mode] for part in format.parts)),
            free=access.tensor in free or all(level.full for level in format.levels),
            text=access.tensor,
        )
        paths.append(path)
    return choose_order(all_variables(assignment), paths)


def rescanned_sums(
    assignment: Assignment, inputs: Set[str], free: Set[str] = frozenset()
) -> tuple[Rescan, ...]:
    """The sums of inputs in which a fiber is scanned again for every coordinate of a loop.

    ``sum(j, A(i,j)*y(j))`` intersects each row of A with all of y.
    """
    sums = [term for term in walk(assignment.value) if isinstance(term, Sum)]
    known = (t for t in sums if inputs >= {access.tensor for access in accesses(t)})
    rescans = (_rescan(term, assignment, free) for term in known)
    return tuple(rescan for rescan in rescans if rescan is not None)


def _rescan(term: Sum, assignment: Assignment, free: Set[str]) -> Rescan | None:
    """The repeated scan in a sum of a product of tensors, which no other loop saves.

    It is copied first, to be looked up; but if its rows have all variables of the result, the
    others are summed first, row by row, and their sum is looked up at what this mask stores.
    """
    factors = _factors(term.value)
    inner_sums = any(isinstance(part, Sum) for part in walk(term.value))
    if inner_sums or len(set(factors)) < len(factors) or assignment.semiring != PLUS_TIMES:
        return None
    order = tuple(name for name in _loops(assignment, free) if name in variables_of(term.value))
    for part in factors:
        rest = [other for other in factors if other != part]
        stored = [access for access in accesses(part) if _compressed_variables(access, assignment)]
        if len(stored) != 1 or set(variables_of(part)) != set(stored[0].variables):
            continue
        factor = stored[0]
        format = assignment.tensor(factor.tensor).format
        if not format.plain or format.coordinate_list:
            continue
        levels = [factor.variables[mode] for mode in format.modes]
        at = next(n for n, level in enumerate(format.levels) if not level.full)
        inner = levels[at]
        places = [order.index(name) for name in levels]
        scans = any(
            inner in _compressed_variables(other, assignment)
            for other in rest
            if isinstance(other, Access)
        )
        again = order[places[at - 1] + 1 if at else 0 : places[at]]
        if places != sorted(set(places)) or not scans or not again:
            continue
        covers = {*levels} >= {*assignment.result.variables}
        masks = part == factor and covers and 0 < at == len(levels) - 1
        first = tuple(rest) if masks else (part,)
        term = replace(term, value=_product(factors))
        return Rescan(term=term, factor=factor, level=at, first=first, again=again[-1], order=order)
    return None


def _compressed_variables(access: Access, assignment: Assignment) -> set[str]:
    format = assignment.tensor(access.tensor).format
    pairs = zip(format.levels, format.parts, strict=True)
    return {access.variables[part.mode] for level, part in pairs if not level.full}


def _variables(factors: Sequence[Expression]) -> set[str]:
    return {name for factor in factors for name in variables_of(factor)}


def _product(factors: Sequence[Expression]) -> Expression:
    product = factors[0]
    for factor in factors[1:]:
        product = Combine(operator=Op.MULTIPLY, left=product, right=factor)
    return product


def _joined_sums(term: object) -> Sum | None:
    """Merge directly nested sums."""
    match term:
        case Sum(variables=outer, value=Sum(variables=inner, value=value)):
            return Sum(variables=(*outer, *inner), value=value)
        case _:
            return None


def take_out_sums(
    assignment: Assignment, names: NameSupply, *, sample: bool = False
) -> tuple[Assignment, ...]:
    """The assignments to workspaces, inner ones first, and the remaining assignment.

    Sums that are terms of the expression stay where they are, and with ``sample`` so do those of
    dense operands of which a sparse factor needs some: they are computed in its loops.
    """
    before: list[Assignment] = []
    order = all_variables(assignment)
    tensors = list(assignment.tensors)

    def workspace(term: Expression) -> Access:
        inner = terms(term)
        free = set(free_variables(inner))
        variables = tuple(name for name in order if name in free)
        result = Access(
            tensor=names.fresh("total"), variables=variables, location=assignment.location
        )
        tensors.append(
            TensorDeclaration(
                name=result.tensor, format=csf(len(variables)), location=assignment.location
            )
        )
        before.append(replace(assignment, result=result, value=inner, tensors=tuple(tensors)))
        return result

    def factor(term: Expression) -> Expression:
        rebuilt: Expression = rebuild(term, visit)
        return rebuilt

    def visit(term: Term) -> Term:
        return workspace(term) if is_apart(term) else rebuild(term, visit)

    def is_apart(term: Term) -> TypeGuard[Expression]:
        """Whether a term is a sum, or a sum of sums that share their loops."""
        return isinstance(term, Sum) or (
            isinstance(term, Combine | Negative)
            and sum(isinstance(o, Sum) for o in _terms(term)) > 1
        )

    def term(value: Expression, around: tuple[Expression, ...]) -> Expression:
        """A term that is not a sum, between the factors ``around``."""
        match value:
            case Sum() if sample and _is_sampled(value, around, assignment):
                return value
            case Combine(operator=Op.MULTIPLY, left=left, right=right):
                new_left = term(left, (*around, *_factors(right)))
                return replace(value, left=new_left, right=term(right, (*around, *_factors(left))))
            case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
                sums = [addend for addend in _terms(value) if isinstance(addend, Sum)]
                sampled = sample and all(_is_sampled(addend, around, assignment) for addend in sums)
                if len(sums) < 2 or sampled:
                    return replace(value, left=term(left, around), right=term(right, around))
            case Negative(value=inner):
                return Negative(value=term(inner, around))
        return factor_or_sum(value)

    def terms(value: Expression) -> Expression:
        match value:
            case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
                return replace(value, left=terms(left), right=terms(right))
            case Negative(value=inner):
                return Negative(value=terms(inner))
            case Sum(value=inner):
                return replace(value, value=factor_or_sum(inner))
            case _:
                return term(value, ())

    def factor_or_sum(value: Expression) -> Expression:
        return workspace(value) if is_apart(value) else factor(value)

    value = terms(rewrite(assignment.value, _joined_sums))
    return (*before, replace(assignment, value=value, tensors=tuple(tensors)))


def _is_sampled(term: Sum, around: Sequence[Expression], assignment: Assignment) -> bool:
    """Whether a sum of dense operands is multiplied with a sparse operand that samples it."""
    if any(isinstance(inner, Sum) for inner in walk(term.value)):
        return False
    free = set(free_variables(term))
    dense = all(
        level.full
        for access in accesses(term.value)
        for level in assignment.tensor(access.tensor).format.levels
    )

    def samples(other: Expression) -> bool:
        if not isinstance(other, Access) or not free <= set(other.variables):
            return False
        format = assignment.tensor(other.tensor).format
        pairs = zip(format.levels, format.parts, strict=True)
        return any(not level.full and other.variables[part.mode] in free for level, part in pairs)

    return dense and any(map(samples, around))
