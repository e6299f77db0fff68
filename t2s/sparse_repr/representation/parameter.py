"""``MatrixParam``: a sparse matrix as an input of a program.

``A.values[p, q]`` is value q of the stream of machine p, and ``A.inverse_map(p, q)`` are its row
and its column.  Both are element reads like those of any input, but of virtual arrays: values are
streamed from memory, and rows and columns are decoded.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Parameter as ScalarParameter
from t2s.core.files import write_file
from t2s.core.location import user_location
from t2s.core.types import INT32, Int, Type
from t2s.func.expressions import Expression, Symbol
from t2s.func.func import ImageParam, RVar, Var
from t2s.sparse_repr.representation.chain import Chain, Representation, check_chain, dense_matrix
from t2s.sparse_repr.representation.chain_layout import MatrixDimension
from t2s.sparse_repr.representation.encode import build_storage
from t2s.sparse_repr.representation.inverse_map import InverseMap, inverse_map
from t2s.sparse_repr.representation.storage import Storage
from t2s.sparse_repr.tensors.coordinates import Coordinates
from t2s.sparse_repr.tensors.foreign import coordinates_of, to_csr
from t2s.sparse_repr.tensors.matrix_market import check_path, market_text, read_market


class MatrixParam(Symbol):
    """A matrix in a representation: ``A = MatrixParam(Float(32), 2, CISR, name="A")``.

    ``representation`` is a ``Representation``, which may be defined later, or a chain.
    """

    kind = "MatrixParam"

    def __init__(
        self, type: Type, dimensions: int, representation: Representation | Chain, *, name: str
    ) -> None:
        super().__init__(name)
        if isinstance(type, Type) and type.is_bool:
            raise UserError(
                f"MatrixParam {name} has elements of type bool, which have no products and sums",
                location=self.location,
                expected='numbers, for example MatrixParam(Float(32), 2, CISR, name="A")',
                given=f"{type}",
                hint="UInt(8) has 0 and 1: a minimum is their and, a maximum their or",
            )
        if not isinstance(type, Type) or dimensions != 2:
            raise UserError(
                f"MatrixParam {name} needs an element type and two dimensions",
                location=self.location,
                expected='for example MatrixParam(Float(32), 2, CISR, name="A")',
                given=f"{type}, {dimensions}",
            )
        if not isinstance(representation, Representation):
            check_chain(f"MatrixParam {name}", representation, self.location)
        self.type = type
        self.representation = representation
        self.values = Values(self)
        self.row = DecodedCoordinate(self, MatrixDimension.ROWS)
        self.column = DecodedCoordinate(self, MatrixDimension.COLUMNS)

    @property
    def chain(self) -> Chain:
        """The chain of this matrix; raises ``UserError`` if it is not defined yet."""
        if isinstance(self.representation, Representation):
            return self.representation.chain
        return self.representation

    def dense(self) -> Chain:
        """The dense representation, where the chain of this matrix starts."""
        return dense_matrix()

    @property
    def decoder(self) -> InverseMap:
        """The inverse map of the chain; ``print`` shows it."""
        return inverse_map(self.chain.layout)

    def inverse_map(self, machine: Var, position: RVar) -> tuple[Expression, Expression]:
        """Row and column of the value of a machine at a position of its stream."""
        location = user_location()
        assert self.chain.layout.schedule is not None
        if not isinstance(machine, Var) or not isinstance(position, RVar):
            raise UserError(
                f"the inverse map of {self.name} needs a machine and a position",
                location=location,
                expected="a Var over machines and an RDom over positions",
                given=f"inverse_map({machine!r}, {position!r})",
            )
        return self.row[machine, position], self.column[machine, position]

    def extent(self, dimension: int) -> Expression:
        """The number of rows (0) or columns (1), known once a matrix is given."""
        return _extent(self, self.name, dimension, ("rows", "columns"))

    def store(self, matrix: object) -> Storage:
        """The arrays of a matrix in this representation.

        ``matrix`` is a matrix of scipy.sparse or pydata/sparse, a numpy array, a ``SparseTensor``
        or a ``Storage``, with elements of exactly the type of the parameter.  Entries at one place
        are added up.  Raises ``UserError`` for indices out of range, and for representations that
        are too large.
        """
        layout = self.chain.layout
        if isinstance(matrix, Storage) and (matrix.layout, matrix.type) == (layout, self.type):
            return matrix
        entries = matrix_of(matrix, self.type, f"the matrix for {self.name}")
        return build_storage(layout, entries, self.type, f"MatrixParam {self.name}")


class Values(ImageParam):
    """The streams of values of a matrix: machines x positions."""

    def __init__(self, matrix: MatrixParam) -> None:
        super().__init__(matrix.type, 2, name=f"{matrix.name}_values")
        self.matrix = matrix

    def extent(self, dimension: int) -> Expression:
        """The number of machines (0), or of positions (1), known once a matrix is given."""
        return _extent(self, self.matrix.name, dimension, ("machines", "positions"))


class DecodedCoordinate(ImageParam):
    """The row or the column of every value."""

    def __init__(self, matrix: MatrixParam, dimension: MatrixDimension) -> None:
        what = dimension.value.lower().removesuffix("s")
        super().__init__(Int(32), 2, name=f"{matrix.name}_{what}")
        self.matrix = matrix
        self.dimension = dimension


class MatrixExtent(Symbol):
    """A size that depends on the matrix: extent ``dimension`` of ``owner``."""

    kind = "extent"

    def __init__(self, name: str, owner: Symbol, dimension: int) -> None:
        super().__init__(name)
        self.owner = owner
        self.dimension = dimension


def _extent(owner: Symbol, matrix: str, dimension: int, names: tuple[str, str]) -> Expression:
    if dimension not in (0, 1):
        raise UserError(
            f"{matrix} has no dimension {dimension!r}",
            location=user_location(),
            expected="0 or 1",
            given=repr(dimension),
        )
    symbol = MatrixExtent(f"{matrix}_{names[dimension]}", owner, dimension)
    node = ScalarParameter(name=symbol.name, type=INT32)
    return Expression(node, {symbol.name: symbol}, symbol.location)


# Matrices for representations: checks of type and size, and Matrix Market files.

MOST_ROWS = 2**27
"""Rows, and columns, of a matrix: operands and results are kept on the chip, whose indices, those
of diagonals and of all right-hand sides too, are of 32 bits."""


def matrix_of(matrix: object, type: Type | None, what: str) -> Coordinates:
    """The entries of a matrix of any supported class, with duplicates added up.

    Raises ``UserError`` for other things, another element type than ``type``, indices out of range,
    and sizes that the indices of hardware, int32, cannot count.
    """
    entries = coordinates_of(matrix, what)
    if entries is None:
        raise UserError(
            f"{what} is not a matrix",
            location=user_location(),
            expected="a matrix of scipy.sparse or pydata/sparse, or a two-dimensional array",
            given=f"{matrix.__class__.__name__}",
            hint="t2s.representation.read_matrix reads a Matrix Market file",
        )
    if len(entries.shape) != 2:
        raise UserError(
            f"{what} must have two dimensions",
            location=user_location(),
            expected="two dimensions",
            given=f"{len(entries.shape)}",
        )
    if type is not None and entries.values.dtype != type.numpy:
        raise UserError(
            f"{what} has elements of another type",
            location=user_location(),
            expected=str(type),
            given=str(entries.values.dtype),
            hint=None
            if entries.values.dtype.kind == "c"
            else f"convert it: matrix.astype(numpy.{type.numpy})",
        )
    if max(entries.shape) > MOST_ROWS:
        raise UserError(
            f"{what} is too large for hardware",
            location=user_location(),
            expected=f"at most {MOST_ROWS} rows and columns",
            given=f"{entries.shape[0]} x {entries.shape[1]}",
        )
    return entries


def read_matrix(path: str | Path, type: Type) -> Any:
    """Read a Matrix Market file as a ``scipy.sparse.csr_array`` of elements of ``type``.

    Reads all real variants: coordinate and array, real, integer and pattern (ones), general,
    symmetric and skew-symmetric, also compressed by gzip or bzip2.  Duplicate entries are added up.
    Raises ``UserError`` for complex matrices, for elements that ``type`` cannot represent
    (fractions as integers, numbers out of range), and for files that are damaged or too large.
    """
    location = user_location()
    check_path(path, "read_matrix")
    if not isinstance(type, Type):
        raise UserError(
            "read_matrix needs an element type",
            location=location,
            expected="for example read_matrix(path, Float(32))",
            given=repr(type),
        )
    what = f"the Matrix Market file {Path(path).name}"
    matrix = matrix_of(read_market(path, what), None, what)
    with np.errstate(all="ignore"):
        values = matrix.values.astype(type.numpy) if matrix.values.dtype.kind != "c" else None
    if values is None or (type.is_integer and not (values == matrix.values).all()):
        raise UserError(
            f"{what} has elements that do not fit {type}",
            location=location,
            expected=f"elements that can be converted to {type}",
            given="complex elements" if values is None else "fractions, or numbers too large",
        )
    return to_csr(replace(matrix, values=values))


def write_matrix(path: str | Path, matrix: Any) -> None:
    """Write a matrix, or a ``Storage``, to a Matrix Market file, whose name ends in ``.mtx``.

    Raises ``UserError`` for matrices that ``store`` refuses, and if the file cannot be written.
    """
    check_path(path, "write_matrix")
    what = "the matrix to write"
    text = market_text(matrix_of(matrix, None, what), what)
    name = os.fspath(path)
    write_file(Path(name if name.endswith(".mtx") else f"{name}.mtx"), text)
