"""Functions of rows as statements: maxima, means, softmax and layer normalization.

A maximum is a sum over the semiring whose addition is the maximum.  Its zero is what is not stored,
so a row that counts absent elements as zeros is stored densely first.

``softmax`` subtracts the maximum, so that no exponential overflows; ``layernorm`` subtracts the
mean before it squares, so that no digits of the variance cancel.  Where a row has only what is
stored, the maximum is subtracted over the semiring of maxima too, whose product is the addition of
what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import Term, rebuild
from t2s.sparse_repr.formats import Format, dense
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Extent,
    Number,
    OfRow,
    RowFunction,
    Sum,
    TensorDeclaration,
    Unary,
    accesses,
    free_variables,
    print_expression,
    with_sums,
)
from t2s.sparse_repr.notation.legality import check_sums_are_clear, with_part
from t2s.sparse_repr.notation.usual_format import is_sparse, usual_format
from t2s.sparse_repr.semiring import MAX_PLUS, MIN_PLUS, PLUS_TIMES, Semiring

_EXTREMES = {RowFunction.MAXIMUM: MAX_PLUS, RowFunction.MINIMUM: MIN_PLUS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece(Term):
    """A statement, and the format of its result if that follows from its meaning.

    ``like`` is the tensor whose pattern the result has then.
    """

    result: Access
    value: Expression
    semiring: Semiring = PLUS_TIMES
    format: Format | None = None
    like: str = ""


def pieces_of(
    result: Access,
    value: Expression,
    names: NameSupply,
    known: Mapping[str, TensorDeclaration],
    location: SourceLocation | None,
) -> tuple[Piece, ...]:
    """The statements that compute a statement, which is the last one of them.

    ``known`` are the tensors of the statements before.  Raises ``UserError`` for functions of rows
    without the variables that they are along.
    """
    expansion = _Expansion(result, value, names, known, location)
    return expansion.pieces()


@dataclass
class _Expansion:
    """The pieces so far of a statement."""

    result: Access
    value: Expression
    names: NameSupply
    known: Mapping[str, TensorDeclaration]
    location: SourceLocation | None
    done: list[Piece] = field(default_factory=list)

    def pieces(self) -> tuple[Piece, ...]:
        match self.value:
            case OfRow(function=function) if function in _EXTREMES and (
                set(free_variables(self.value)) >= set(self.result.variables)
            ):
                row = self._operand(self.value, (), not self.value.stored)
                return (*self.done, _extreme(self.value, row, self.result))
        left: Expression = self._visit(self.value, ())  # type: ignore[assignment]
        return (*self.done, Piece(result=self.result, value=left))

    def _visit(self, term: Term, bound: tuple[str, ...]) -> Term:
        match term:
            case OfRow():
                return self._of_row(term, bound)
            case Sum(variables=variables):
                bound = (*bound, *variables)
        return rebuild(term, lambda child: self._visit(child, bound))

    def _of_row(self, term: OfRow, bound: tuple[str, ...]) -> Expression:
        match term.function:
            case RowFunction.MAXIMUM | RowFunction.MINIMUM:
                row = self._operand(term, bound, not term.stored)
                return self._largest(term, row)
            case RowFunction.MEAN:
                inner, kept = self._inner(term, bound)
                return _divided(with_sums(inner, kept), term.variables)
            case RowFunction.SOFTMAX:
                return self._softmax(term, bound)
            case RowFunction.LAYERNORM:
                return self._layernorm(term, bound)

    def _largest(self, term: OfRow, row: Access) -> Access:
        what = "min" if term.function is RowFunction.MINIMUM else "max"
        piece = _extreme(term, row, self._rest_of(row, term, what))
        self.done.append(piece)
        return piece.result

    def _softmax(self, term: OfRow, bound: tuple[str, ...]) -> Expression:
        row = self._operand(term, bound, not term.stored)
        format = self._format_of(row)
        largest = self._largest(term, row)
        if is_sparse(format):
            # 0.0 makes floats of integers, which may not hold what is subtracted
            below = Combine(operator=Op.SUBTRACT, left=Number(value=0.0), right=largest)
            low = self._new("low", largest.variables, below)
            # over (max, +), so this is the sum where the row stores something
            moved = Combine(operator=Op.MULTIPLY, left=row, right=low)
            shifted = self._new("shifted", row.variables, moved, format, row.tensor, MAX_PLUS)
            value = Unary(function=Function.EXPONENTIAL, value=shifted, stored=True)
        else:
            moved = Combine(operator=Op.SUBTRACT, left=row, right=largest)
            value = Unary(function=Function.EXPONENTIAL, value=moved)
        like = row.tensor if is_sparse(format) else ""
        powers = self._new("exp", row.variables, value, format, like)
        total = self._rest_of(row, term, "sum")
        self.done.append(Piece(result=total, value=Sum(variables=term.variables, value=powers)))
        return Combine(operator=Op.DIVIDE, left=powers, right=total)

    def _layernorm(self, term: OfRow, bound: tuple[str, ...]) -> Expression:
        row = self._operand(term, bound, True)
        mean = self._rest_of(row, term, "mean")
        self.done.append(Piece(result=mean, value=_divided(row, term.variables)))
        difference = Combine(operator=Op.SUBTRACT, left=row, right=mean)
        centered = self._new("centered", row.variables, difference)
        square = Combine(operator=Op.MULTIPLY, left=centered, right=centered)
        variance = self._rest_of(row, term, "variance")
        self.done.append(Piece(result=variance, value=_divided(square, term.variables)))
        moved = Combine(operator=Op.ADD, left=variance, right=Number(value=term.epsilon))
        scale = Unary(function=Function.RECIPROCAL_SQUARE_ROOT, value=moved)
        return Combine(operator=Op.MULTIPLY, left=centered, right=scale)

    def _operand(self, term: OfRow, bound: tuple[str, ...], all_elements: bool) -> Access:
        """The tensor of the rows: the operand if it is one, or a new one that it is assigned to.

        With ``all_elements`` it stores all of them.
        """
        inner, kept = self._inner(term, bound)
        match inner:
            case Access(variables=read) if len(set(read)) == len(read) and set(read) <= set(kept):
                if not (all_elements and is_sparse(self._format_of(inner))):
                    return inner
        variables = tuple(name for name in kept if name in free_variables(inner))
        if all_elements:
            return self._new("row", variables, inner, dense(len(variables)))
        declared = {**self.known, **{p.result.tensor: self._declared(p) for p in self.done}}
        target = Access(tensor="", variables=variables)
        format, like = usual_format(target, with_sums(inner, kept), declared)
        sparse = [a for a in accesses(inner) if is_sparse(declared[a.tensor].format)]
        if sparse and not like:
            raise UserError(
                f"what {print_expression(inner)} stores is not what one of its tensors stores",
                location=self.location,
                expected="the pattern of a tensor, such as the mask M in stored(softmax(k; "
                "M(i,k)*S(i,k)))",
                given=print_expression(term),
                hint="assign it to a tensor first, whose format says what it stores",
            )
        return self._new("row", variables, inner, format, like)

    def _inner(self, term: OfRow, bound: tuple[str, ...]) -> tuple[Expression, tuple[str, ...]]:
        """The operand of a function, and the variables over which it is not summed."""
        along = term.variables
        shown = print_expression(term)
        free = free_variables(term.value)
        wrong = next((name for name in along if name not in free), None)
        if not along or wrong is not None or len(set(along)) < len(along):
            raise UserError(
                f"nothing in {shown} has the variable {wrong}"
                if wrong is not None
                else f"{shown} does not name what it is along",
                location=self.location,
                expected=f"variables of {print_expression(term.value)}, each once: "
                f"{', '.join(free) or 'none'}",
                given=", ".join(along) or "no variables",
            )
        taken = [name for name in along if name in (*self.result.variables, *bound)]
        if term.function.reduces and taken:
            raise UserError(
                f"{shown} is along {taken[0]}, a variable around it",
                location=self.location,
                expected=f"another variable than {', '.join((*self.result.variables, *bound))}",
                given=f"{print_expression(self.result)} = {print_expression(self.value)}",
                hint=f"rename {taken[0]} inside of it",
            )
        kept = tuple(dict.fromkeys((*self.result.variables, *bound, *along)))
        hidden = [name for name in free if name not in kept]
        outside = free_variables(with_part(self.value, term, Number(value=0)))
        unclear = [name for name in hidden if name in outside]
        if unclear:
            raise UserError(
                f"the sum over {unclear[0]} may be meant inside of {shown} or around it",
                location=self.location,
                expected=f"sum({unclear[0]}, ...) where it is meant",
                given=f"{print_expression(self.result)} = {print_expression(self.value)}",
            )
        check_sums_are_clear(
            self.result,
            self.value,
            self.location,
            extremes=True,
            operand=term.value,
            kept=kept,
        )
        inner: Expression = self._visit(term.value, (*bound, *along))  # type: ignore[assignment]
        return inner, kept

    def _new(
        self,
        what: str,
        variables: tuple[str, ...],
        value: Expression,
        format: Format | None = None,
        like: str = "",
        semiring: Semiring = PLUS_TIMES,
    ) -> Access:
        """A new tensor of a statement."""
        tensor = self.names.fresh(f"{self.result.tensor}_{what}")
        result = Access(tensor=tensor, variables=variables, location=self.location)
        piece = Piece(result=result, value=value, semiring=semiring, format=format, like=like)
        self.done.append(piece)
        return result

    def _rest_of(self, row: Access, term: OfRow, what: str) -> Access:
        """A new tensor at the variables of rows that a function is not along."""
        return Access(
            tensor=self.names.fresh(f"{self.result.tensor}_{what}"),
            variables=tuple(name for name in row.variables if name not in term.variables),
            location=self.location,
        )

    def _format_of(self, access: Access) -> Format:
        for piece in self.done:
            if piece.result.tensor == access.tensor:
                return self._declared(piece).format
        return self.known[access.tensor].format

    def _declared(self, piece: Piece) -> TensorDeclaration:
        name, order = piece.result.tensor, len(piece.result.variables)
        return TensorDeclaration(name=name, format=piece.format or dense(order))


def _extreme(term: OfRow, row: Access, result: Access) -> Piece:
    """The largest or smallest elements of rows."""
    function = RowFunction.MINIMUM if term.function is RowFunction.MINIMUM else RowFunction.MAXIMUM
    value = Sum(variables=term.variables, value=row)
    return Piece(result=result, value=value, semiring=_EXTREMES[function])


def _divided(value: Expression, along: tuple[str, ...]) -> Expression:
    """The mean of a value along variables."""
    extents: list[Expression] = [Extent(variable=name) for name in along]
    count = reduce(lambda a, b: Combine(operator=Op.MULTIPLY, left=a, right=b), extents)
    total = Sum(variables=along, value=value)
    return Combine(operator=Op.DIVIDE, left=total, right=count)
