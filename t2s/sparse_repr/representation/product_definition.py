"""Analysis of the definition of a product, ``y[i] += A.values[p, q] * x[j]``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Apply, Const, Expr, Index, Local, Parameter, Read, const, evaluate
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite, walk
from t2s.func.expressions import Symbol
from t2s.func.func import ImageParam, Param, RVar, TemporalFunc, Var, index_name, typed_value
from t2s.sparse_repr.representation import parameter as sparse
from t2s.sparse_repr.representation.hardware.product import MATRIX, VECTOR
from t2s.sparse_repr.representation.storage import Storage

AnyFunc = TemporalFunc[Any]


@dataclass(frozen=True, kw_only=True)
class ProductDefinition:
    """The parts of ``y[r] = start; y[i] += term``.

    ``side`` is the Var of the right-hand sides, if any, ``start`` is ``None`` for 0, ``scalars``
    are the Params of both, ``sizes`` the sizes of the matrix that they use, by name.
    """

    func: AnyFunc
    matrix: sparse.MatrixParam
    vector: ImageParam
    term: Expr
    machine: str
    position: str
    side: str | None
    width: int
    start: Start | None
    scalars: tuple[Param, ...]
    sizes: Mapping[str, sparse.MatrixExtent]
    location: SourceLocation

    def sized(self, expression: Expr, storage: Storage) -> Expr:
        """An expression with the sizes of the matrix as numbers."""
        shapes = {self.matrix: storage.shape, self.matrix.values: storage.values.shape}

        def rule(node: Term) -> Term | None:
            if isinstance(node, Parameter) and node.name in self.sizes:
                size = self.sizes[node.name]
                return const(shapes[size.owner][size.dimension], node.type)
            return None

        return rewrite(expression, rule)


def definition_of(func: AnyFunc) -> ProductDefinition:
    """Analyze the definition of a product; ``UserError`` if it is not one."""
    if len(func.written) != 2:
        unsupported(
            func.written[-1].location,
            f"{func.name} is not a product of a sparse matrix",
            f"{func.name}[r] = 0, then {func.name}[i] += A.values[p, q] * x[j]",
            f"{len(func.written)} definitions",
        )
    first, update = func.written
    matrices = {
        symbol.matrix
        for symbol in update.symbols.values()
        if isinstance(symbol, sparse.Values | sparse.DecodedCoordinate)
    }
    value = typed_value(func, update).node
    location = update.location
    if len(matrices) != 1:
        unsupported(location, f"{func.name} reads several sparse matrices", "one", "several")
    matrix = matrices.pop()
    row = update.target[0].node
    if not (isinstance(row, Read) and row.source == matrix.row.name):
        unsupported(
            location,
            f"the left side of {func.name} is not a row of {matrix.name}",
            f"{func.name}[i] with i, j = {matrix.name}.inverse_map(p, q)",
            f"{func.name}[{', '.join(map(repr, update.target))}]",
        )
    machine, position = (part.name for part in row.indices if isinstance(part, Index))
    _all_positions(matrix, update.symbols[position], location)
    itself = Read(source=func.name, indices=tuple(p.node for p in update.target), type=value.type)
    term = _term(func, value, itself, location)
    side = index_name(update.target[1]) if len(update.target) == 2 else None
    _sides_only(func, matrix, side)
    vector = _vector(func, matrix, term, update.symbols, location)
    begin = typed_value(func, first).node
    start = start_of(func.name, begin, func.arguments, first.symbols, first.location)
    symbols = _symbols(func)
    sizes = {name: each for name, each in symbols.items() if isinstance(each, sparse.MatrixExtent)}
    for expression, where in ((begin, first.location), (term, location)):
        _own_sizes(func, matrix, expression, sizes, where)
    return ProductDefinition(
        func=func,
        matrix=matrix,
        vector=vector,
        term=_localized(func, matrix, vector, term, row, side, location),
        start=start,
        scalars=scalars_in((begin, term), symbols),
        sizes=sizes,
        machine=machine,
        position=position,
        side=side,
        width=_width(func, side, location),
        location=location,
    )


def _symbols(func: AnyFunc) -> dict[str, object]:
    """The symbols of both definitions; ``UserError`` if a name means two things."""
    symbols: dict[str, Symbol] = {}
    for written in func.written:
        for name, symbol in written.symbols.items():
            known = symbols.setdefault(name, symbol)
            if known is not symbol and not isinstance(symbol, Var | RVar | sparse.MatrixExtent):
                raise UserError(
                    f"two different things are named {name} in the definitions of {func.name}",
                    location=written.location,
                    expected="one object for each name",
                    given=f"a {known.kind} and a {symbol.kind}",
                    notes=((known.location, "the first one"), (symbol.location, "the second one")),
                )
    return dict(symbols)


def _own_sizes(
    func: AnyFunc,
    matrix: sparse.MatrixParam,
    expression: Expr,
    sizes: Mapping[str, sparse.MatrixExtent],
    location: SourceLocation,
) -> None:
    """Check that all sizes are those of the product's matrix: no others are known."""
    for node in walk(expression):
        if isinstance(node, Parameter) and node.name in sizes:
            owner = sizes[node.name].owner
            if owner is not matrix and owner is not matrix.values:
                unsupported(
                    location,
                    f"{func.name} uses a size of another matrix",
                    f"sizes of {matrix.name}",
                    show(node),
                )


def _all_positions(matrix: sparse.MatrixParam, position: object, location: SourceLocation) -> None:
    """Check that the product runs over all positions: the extent of its ``RDom`` is that of the
    streams.
    """
    assert isinstance(position, RVar)
    extent = position.extent
    symbol = extent.symbols.get(extent.node.name) if isinstance(extent.node, Parameter) else None
    whole = (
        getattr(position.minimum.node, "value", None) == 0
        and isinstance(symbol, sparse.MatrixExtent)
        and symbol.owner is matrix.values
        and symbol.dimension == 1
    )
    if not whole:
        low, count = show(position.minimum.node), show(extent.node)
        raise UnsupportedError(
            f"{position.name} does not run over the positions of {matrix.name}",
            location=location,
            expected=f"RDom(0, {matrix.name}.values.extent(1)), the positions of all machines",
            given=f"RDom({low}, {count})",
            notes=((position.location, f"{position.name} is made here"),),
        )


def _sides_only(func: AnyFunc, matrix: sparse.MatrixParam, side: str | None) -> None:
    """Check that only right-hand sides have bounds: the matrix decides all others."""
    for bound in func.bounds:
        if bound.variable != side:
            unsupported(
                bound.location,
                f"{bound.variable} of {func.name} has a bound",
                f"bounds of right-hand sides only: {matrix.name} decides the other extents",
                f"bound({bound.variable}, ...)",
            )


def _term(func: AnyFunc, value: Expr, itself: Expr, location: SourceLocation) -> Expr:
    match value:
        case Apply(operator=Op.ADD, operands=(left, right)) if left == itself:
            return right
        case Apply(operator=Op.ADD, operands=(left, right)) if right == itself:
            return left
        case Apply(operator=Op.SUBTRACT, operands=(left, right)) if left == itself:
            return -right
    unsupported(
        location, f"the update of {func.name} is not a sum", f"{func.name}[i] += ...", show(value)
    )


def _vector(
    func: AnyFunc,
    matrix: sparse.MatrixParam,
    term: Expr,
    symbols: Mapping[str, object],
    location: SourceLocation,
) -> ImageParam:
    """The one dense operand."""
    own = {matrix.values.name, matrix.row.name, matrix.column.name}
    names = {node.source for node in walk(term) if isinstance(node, Read)} - own
    vectors = [symbols[name] for name in sorted(names)]
    if len(vectors) != 1 or not isinstance(vectors[0], ImageParam):
        unsupported(
            location,
            f"{func.name} needs one dense operand",
            f"one ImageParam indexed by the column of {matrix.name}",
            ", ".join(sorted(names)) or "none",
        )
    return vectors[0]


def _localized(
    func: AnyFunc,
    matrix: sparse.MatrixParam,
    vector: ImageParam,
    term: Expr,
    row: Read,
    side: str | None,
    location: SourceLocation,
) -> Expr:
    """The term, over the values that a multiplier receives."""
    column = Read(source=matrix.column.name, indices=row.indices, type=row.type)
    subscripts: tuple[Expr, ...] = (column, *([Index(name=side)] if side is not None else []))
    value = Read(source=matrix.values.name, indices=row.indices, type=matrix.type)
    element = Read(source=vector.name, indices=subscripts, type=vector.type)

    def rule(node: Term) -> Term | None:
        if node == value:
            return Local(name=MATRIX, type=matrix.type)
        if node == element:
            return Local(name=VECTOR, type=vector.type)
        return None

    result = rewrite(term, rule)
    for node in walk(result):
        if isinstance(node, Read | Index):
            unsupported(
                location,
                f"the term of {func.name} uses {show(node)}",
                f"{show(value)}, {show(element)}, Params and numbers only",
                show(term),
            )
    return result


def _width(func: AnyFunc, side: str | None, location: SourceLocation) -> int:
    """The number of right-hand sides, from the bound of their Var."""
    if side is None:
        return 1
    for bound in func.bounds:
        low, extent = (
            getattr(bound.minimum.node, "value", 0),
            getattr(bound.extent.node, "value", 0),
        )
        if bound.variable == side and low == 0 and extent:
            return int(extent)
    raise UserError(
        f"the number of right-hand sides of {func.name} is not known",
        location=location,
        expected=f"{func.name}.bound({side}, 0, n) with a number n",
        given=f"no such bound of {side}",
    )


def unsupported(location: SourceLocation | None, what: str, expected: str, given: str) -> NoReturn:
    raise UnsupportedError(what, location=location, expected=expected, given=given)


# The start value of a product: the definition ``y[r] = ...``, to which sums are added.
#
# It may read inputs at indices computed from the row (and the right-hand side), scalars, and the
# sizes of the matrix: ``y[r] = beta * z[r]``, ``y[r] = (1 - d) / A.extent(0)``.

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Start:
    """``y[r, n] = value``.

    Attributes
    ----------
    row, side: the Vars of the left side; ``side`` only where there are right-hand sides.
    operands: the inputs that the value reads, by their names.
    """

    value: Expr
    row: str
    side: str | None
    operands: Mapping[str, ImageParam]
    location: SourceLocation

    @property
    def reads(self) -> tuple[Read, ...]:
        """Every different read, in the order of the expression."""
        return tuple(dict.fromkeys(node for node in walk(self.value) if isinstance(node, Read)))


def start_of(
    func: str, value: Expr, target: Sequence[str], symbols: Mapping[str, object],
    location: SourceLocation,
) -> Start | None:  # fmt: skip
    """The start value; ``None`` if it is 0, which hardware has for nothing."""
    if isinstance(value, Const) and value.value == 0:
        return None
    operands: dict[str, ImageParam] = {}
    for node in walk(value):
        if isinstance(node, Read):
            symbol = symbols[node.source]
            inner = [part for at in node.indices for part in walk(at)]
            if not isinstance(symbol, ImageParam) or type(symbol) is not ImageParam:
                _refuse(
                    func, node, "ImageParams, numbers, Params and sizes of the matrix", location
                )
            scalars = [symbols.get(part.name) for part in inner if isinstance(part, Parameter)]
            if any(isinstance(part, Read) for part in inner) or any(
                isinstance(symbol, Param) for symbol in scalars
            ):
                expected = f"places that follow from {', '.join(target)} and numbers"
                _refuse(func, node, expected, location)
            operands[node.source] = symbol
    side = target[1] if len(target) == 2 else None
    return Start(value=value, row=target[0], side=side, operands=operands, location=location)


def _refuse(func: str, node: Read, expected: str, location: SourceLocation) -> NoReturn:
    raise UnsupportedError(
        f"the start value of {func} reads {show(node)}",
        location=location,
        expected=expected,
        given=show(node),
    )


def extents_of(start: Start, rows: int, width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the operands, for so many rows and right-hand sides: what is read of them.

    Raises ``UserError`` where something in front of an operand, or behind its declared shape, is
    read.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    environment = _points(start, rows, width)
    for read in start.reads:
        operand = start.operands[read.source]
        extents: list[int] = []
        for dimension, part in enumerate(read.indices):
            varies = any(isinstance(node, Index) for node in walk(part))
            places = np.asarray(evaluate(part, environment))
            if places.size and int(places.min()) < 0:
                _outside(start, read, "0 or more", f"{int(places.min())}, in dimension {dimension}")
            empty = not rows and varies
            extents.append(0 if empty or not places.size else int(places.max()) + 1)
        known = shapes.get(read.source, (0,) * len(extents))
        shapes[read.source] = tuple(max(pair) for pair in zip(known, extents, strict=True))
        declared = operand.shape
        if declared is not None:
            if any(n > most for n, most in zip(extents, declared, strict=True)):
                _outside(start, read, f"places in the shape {declared}", f"up to {tuple(extents)}")
            shapes[read.source] = declared
    return shapes


def _outside(start: Start, read: Read, expected: str, given: str) -> None:
    raise UserError(
        f"{show(read)} of a start value is outside of {read.source}",
        location=start.location,
        expected=expected,
        given=given,
    )


def _points(start: Start, rows: int, width: int) -> dict[str, Array]:
    """All rows, and all right-hand sides, as arrays that broadcast."""
    row, side = np.arange(rows, dtype=np.int64), np.arange(width, dtype=np.int64)
    if start.side is None:
        return {start.row: row}
    return {start.row: row[:, None], start.side: side[None, :]}


def start_values(
    start: Start, shape: tuple[int, ...], arrays: Mapping[str, Array], scalars: Mapping[str, Array]
) -> Array:
    """The value for every element of the result with numpy; callers hold ``np.errstate``."""
    rows, width = shape[0], shape[1] if len(shape) == 2 else 1
    environment = _points(start, rows, width)
    index_type = {name: points.astype(np.int32) for name, points in environment.items()}
    values: dict[str, Any] = dict(index_type)
    names: dict[Term, str] = {}
    for number, read in enumerate(start.reads):
        places = np.broadcast_arrays(*(evaluate(part, environment) for part in read.indices))
        names[read] = f"read {number}"
        values[f"read {number}"] = arrays[read.source][tuple(places)]
    localized = rewrite(
        start.value,
        lambda node: Local(name=names[node], type=node.type) if isinstance(node, Read) else None,
    )
    return np.broadcast_to(evaluate(*environment_of(localized, values, scalars)), shape)


def environment_of(
    expression: Expr, values: Mapping[str, Any], scalars: Mapping[str, Any]
) -> tuple[Expr, dict[str, Any]]:
    """An expression and its environment, in which no scalar hides a local of the same name."""
    names = {name: f"parameter {name}" for name in scalars}

    def rule(node: Term) -> Term | None:
        if isinstance(node, Parameter):
            return Local(name=names[node.name], type=node.type)
        return None

    return rewrite(expression, rule), {
        **values,
        **{names[name]: value for name, value in scalars.items()},
    }


def scalars_in(expressions: Sequence[Expr], symbols: Mapping[str, object]) -> tuple[Param, ...]:
    """The Params that expressions use, by name."""
    used = {node.name for each in expressions for node in walk(each) if isinstance(node, Parameter)}
    parameters = (symbols[name] for name in sorted(used))
    return tuple(symbol for symbol in parameters if isinstance(symbol, Param))
