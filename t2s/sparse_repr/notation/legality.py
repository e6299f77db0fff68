"""The rules of index notation, with their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.walk import Term, children, rebuild, walk
from t2s.sparse_repr.notation.blocks import check_blocks
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    EXTREMES,
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Extent,
    Negative,
    Number,
    OfRow,
    RowFunction,
    Sum,
    TensorDeclaration,
    Unary,
    accesses,
    free_variables,
    next_named,
    print_expression,
    with_sums,
)
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


def make_assignment(
    result: Access,
    value: Expression,
    tensors: tuple[TensorDeclaration, ...],
    location: SourceLocation | None,
) -> Assignment:
    """An assignment with all sums explicit.  Raises ``UserError`` if it is not valid."""
    text = f"{print_expression(result)} = {print_expression(value)}"
    _check_result(result, text, location)
    _check_orders(result, value, tensors, text, location)
    _check_sums(result, value, text, location)
    _check_scalars(result, value, text, location)
    _check_conditions(value, text, location)
    check_blocks(result, value, {tensor.name: tensor.format for tensor in tensors}, location)
    summed = with_sums(value, result.variables)
    return Assignment(result=result, value=summed, tensors=tensors, location=location)


def _check_conditions(value: Expression, text: str, location: SourceLocation | None) -> None:
    """Check that conditions depend on tensors."""
    for term in walk(value):
        if isinstance(term, Choice) and not accesses(term.condition):
            raise UserError(
                f"the condition of {print_expression(term)} is a constant",
                location=location,
                expected="a condition that reads a tensor, as in where(M(i,j), A(i,j), 0)",
                given=text,
            )


def _check_scalars(
    result: Access, value: Expression, text: str, location: SourceLocation | None
) -> None:
    """Refuse scalars named like a loop variable, whose value notation cannot use."""
    occurrences = (result, *accesses(value))
    variables = {name for access in occurrences for name in access.variables}
    for access in occurrences:
        if not access.variables and access.tensor in variables:
            name = access.tensor
            called = [
                term.function.value
                for term in walk(value)
                if isinstance(term, Unary) and term.value == access
            ]
            raise UserError(
                f"{name} is a loop variable and a scalar in {text}",
                location=location,
                expected="another name for the scalar",
                given=name,
                hint=f"{called[0]} is a function: a tensor named {called[0]} needs another name"
                if called
                else f"to compute with the coordinate, give it as a tensor over {name} that holds "
                "np.arange of its extent",
            )


def check_sums_are_clear(
    result: Access,
    value: Expression,
    location: SourceLocation | None,
    *,
    extremes: bool = False,
    operand: Expression | None = None,
    kept: tuple[str, ...] = (),
) -> None:
    """Refuse sums that may be meant inside or outside of a function, which nobody wrote.

    ``relu(A(i,k)*B(k,j) + b(j))`` is such a function of a sum over k, and with ``extremes`` so are
    ``min``, ``max`` and divisors.  A variable that the rest of the term has too is clear:
    ``exp(A(i,k))*B(k,j)`` is summed as a whole, and so is ``stored(exp(A(i,k)))``, which has no
    sums inside.  Given an ``operand`` of a function of a row in the expression, the sums are those
    in it over variables that are not ``kept``.
    """

    def visit_terms(term: Expression) -> None:
        match term:
            case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
                visit_terms(left)
                visit_terms(right)
            case Negative(value=inner):
                visit_terms(inner)
            case _:
                visit(term, term, ())

    def visit(part: Term, term: Expression, bound: tuple[str, ...]) -> None:
        """A part of a ``term``, inside of sums over the variables ``bound``."""
        match part:
            case OfRow():
                return  # its operand is a statement of its own
            case Unary(stored=True):
                return  # it has no sums inside
            case Sum(variables=variables):
                bound = (*bound, *variables)
            case Unary(value=inner):
                check(part, free_variables(inner), term, bound)
            case Choice():
                check(part, free_variables(part), term, bound)
            case Combine(operator=operator) if extremes and operator in EXTREMES:
                check(part, free_variables(part), term, bound)
            case Combine(operator=Op.DIVIDE, right=right) if extremes:
                without = free_variables(with_part(term, right, Number(value=0)))
                names = tuple(name for name in free_variables(right) if name not in without)
                check(part, names, term, bound)
        for child in children(part):
            visit(child, term, bound)

    def check(
        part: Unary | Choice | Combine,
        names: tuple[str, ...],
        term: Expression,
        bound: tuple[str, ...],
    ) -> None:
        known = (*result.variables, *kept, *bound)
        outside = free_variables(with_part(term, part, Number(value=0)))
        hidden = tuple(name for name in names if name not in (*known, *outside))
        if not hidden:
            return
        inside: Expression = rebuild(part, lambda child: _with_sums_in(child, known))
        lines = (
            f"{print_expression(result)} = {print_expression(with_part(value, part, choice))}"
            for choice in (inside, Sum(variables=hidden, value=part))
        )
        raise UserError(
            f"the sum over {', '.join(hidden)} may be meant inside of {print_expression(part)} "
            "or around it",
            location=location,
            expected="a sum that is written where it is meant",
            given=written,
            hint=" or ".join(lines),
        )

    written = f"{print_expression(result)} = {print_expression(value)}"
    _check_scalars(result, value, written, location)
    visit_terms(value if operand is None else operand)


def _with_sums_in(child: Term, kept: tuple[str, ...]) -> Term:
    expression: Expression = child  # type: ignore[assignment]
    return with_sums(expression, kept)


def with_part(value: Expression, part: Expression, choice: Expression) -> Expression:
    """The expression with the first occurrence of a part replaced."""

    def visit(term: Term) -> Term:
        return choice if term is part else rebuild(term, visit)

    replaced: Expression = visit(value)  # type: ignore[assignment]
    return replaced


def stored_only(value: Expression, location: SourceLocation | None) -> Unary | OfRow:
    """A function where its operand stores values, and zero elsewhere: ``stored(exp(A(i,j)))``.

    Raises ``UserError`` for other expressions, and for sums, which do not say where they store.
    """
    shown = print_expression(value)
    if isinstance(value, OfRow):
        if value.function in (RowFunction.MEAN, RowFunction.LAYERNORM):
            raise UserError(
                f"stored({shown}) has no meaning: a mean is one of all elements",
                location=location,
                expected="max, min or softmax of what is stored, or a function of one value",
                given=shown,
            )
        return replace(value, stored=True)
    if not isinstance(value, Unary):
        raise UserError(
            f"stored({shown}) is not of a function",
            location=location,
            expected="a function of one value, as in stored(exp(A(i,j)))",
            given=shown,
        )
    if any(isinstance(term, Sum | OfRow) for term in walk(value)):
        raise UserError(
            f"stored({shown}) is of a sum, which may store zeros or not",
            location=location,
            expected="a function of tensors, such as T in stored(exp(T(i,j)))",
            given=shown,
            hint="assign the sum to a tensor first, whose format says what it stores",
        )
    return replace(value, stored=True)


def _check_sums(
    result: Access, value: Expression, text: str, location: SourceLocation | None
) -> None:
    """Check that explicit sums are over variables of their terms and not of the result."""
    for term in walk(value):
        if not isinstance(term, Sum):
            continue
        shown = print_expression(term)
        twice = [name for name in term.variables if term.variables.count(name) > 1]
        if twice or not term.variables:
            raise UserError(
                f"{shown} does not name what it sums over",
                location=location,
                expected="variables, each once, as in sum(k, A(i,k)*x(k))",
                given=text,
            )
        for name in term.variables:
            if name in result.variables:
                raise UserError(
                    f"{shown} sums over {name}, a variable of the result",
                    location=location,
                    expected=f"another variable than {', '.join(result.variables)}",
                    given=text,
                )
            free = free_variables(term.value)
            if name not in free:
                raise UserError(
                    f"nothing in {shown} has the variable {name}",
                    location=location,
                    expected=f"one of {', '.join(free)}" if free else f"a tensor with {name}",
                    given=text,
                )


def with_semiring(assignment: Assignment, semiring: Semiring) -> Assignment:
    """The assignment over a semiring.  Raises ``UserError`` for operators it does not have, and
    for functions of rows, which take several statements.
    """
    for term in walk(assignment.value):
        if isinstance(term, OfRow | Extent):
            shown = print_expression(term)
            written = print_expression(assignment.result)
            raise UserError(
                f"{shown} is computed in statements of its own",
                location=assignment.location,
                expected="a program of statements",
                given=f"{written} = {print_expression(assignment.value)}",
                hint="t2s.sparse.program takes them as a text, or as a list of assigned tensors",
            )
        lost = isinstance(term, Combine) and term.operator in (Op.SUBTRACT, Op.DIVIDE)
        if semiring != PLUS_TIMES and (lost or isinstance(term, Negative | Unary | Choice)):
            lacking = (
                f"no {term.function.value}"
                if isinstance(term, Unary)
                else "no where"
                if isinstance(term, Choice)
                else "no differences and no quotients"
            )
            raise UserError(
                f"a semiring has {lacking}",
                location=assignment.location,
                expected="sums and products, min and max",
                given=print_expression(assignment.value),
            )
    return replace(assignment, semiring=semiring)


def _check_result(result: Access, text: str, location: SourceLocation | None) -> None:
    twice = sorted({name for name in result.variables if result.variables.count(name) > 1})
    if twice:
        raise UserError(
            f"the result of {text} has the variable {twice[0]} twice",
            location=location,
            expected="different variables, so that every element of the result is defined",
            given=print_expression(result),
            hint=f"write the diagonal to a tensor of order {len(set(result.variables))}",
        )


def _check_orders(
    result: Access,
    value: Expression,
    tensors: tuple[TensorDeclaration, ...],
    text: str,
    location: SourceLocation | None,
) -> None:
    orders: dict[str, Access] = {}
    for access in (result, *accesses(value)):
        first = orders.setdefault(access.tensor, access)
        if len(first.variables) != len(access.variables):
            raise UserError(
                f"{access.tensor} occurs with two different orders in {text}",
                location=location,
                expected="the same number of variables wherever a tensor occurs",
                given=f"{print_expression(first)} and {print_expression(access)}",
            )
    for name, access in orders.items():
        tensor = next_named(tensors, name)
        if tensor.format.order != len(access.variables):
            raise UserError(
                f"the format of {name} does not fit {print_expression(access)}",
                location=location,
                expected=f"a format of {len(access.variables)} levels",
                given=str(tensor.format),
            )


def extents_of(assignment: Assignment, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """The extent of every variable, from the shapes of the tensors that are given.

    Raises ``UserError`` if two tensors disagree, or none determines an extent.
    """
    known: dict[str, tuple[int, Access]] = {}
    declared = {
        tensor.name: tensor.shape for tensor in assignment.tensors if tensor.shape is not None
    }
    missing: list[Access] = []
    for access in (*assignment.reads, assignment.result):
        shape = shapes.get(access.tensor, declared.get(access.tensor))
        if shape is None:
            missing.append(access)
            continue
        _check_shape(assignment, access, shape)
        for name, extent in zip(access.variables, shape, strict=True):
            before = known.setdefault(name, (extent, access))
            if before[0] != extent:
                raise UserError(
                    f"the variable {name} has two extents",
                    location=access.location or assignment.location,
                    expected=f"{before[0]}, as in {_shown(before[1], shapes, declared)}",
                    given=f"{extent}, in {_shown(access, shapes, declared)}",
                )
    for access in missing:
        for name in access.variables:
            if name not in known:
                raise UserError(
                    f"the extent of {name} is unknown",
                    location=access.location or assignment.location,
                    expected=f"an input with {name}, or the shape of {access.tensor}",
                    given=print_expression(access),
                )
    return {name: extent for name, (extent, _) in known.items()}


def _check_shape(assignment: Assignment, access: Access, shape: tuple[int, ...]) -> None:
    if len(shape) != len(access.variables):
        raise UserError(
            f"{access.tensor} is given with order {len(shape)}",
            location=access.location or assignment.location,
            expected=f"order {len(access.variables)}, for {print_expression(access)}",
            given=f"shape {' x '.join(map(str, shape)) or 'of a scalar'}",
        )
    declared = assignment.tensor(access.tensor)
    if declared.shape is not None and tuple(declared.shape) != tuple(shape):
        raise UserError(
            f"{access.tensor} is given with another shape than it is declared with",
            location=declared.location or assignment.location,
            expected=f"shape {' x '.join(map(str, declared.shape)) or 'of a scalar'}",
            given=f"shape {' x '.join(map(str, shape))}",
            hint="leave the shape out of the declaration to take inputs of any size",
        )


def _shown(
    access: Access,
    shapes: Mapping[str, tuple[int, ...]],
    declared: Mapping[str, tuple[int, ...] | None],
) -> str:
    shape = shapes.get(access.tensor, declared.get(access.tensor)) or ()
    return f"{print_expression(access)} of shape {' x '.join(map(str, shape))}"
