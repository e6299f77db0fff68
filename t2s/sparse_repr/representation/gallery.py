"""Well-known representations, each as one expression.

Every function returns a chain, which can be extended like any other.  ``machines`` is the number of
streams of values; the ``Var`` objects inside name the structure.
"""

from __future__ import annotations

from t2s.func.func import Var
from t2s.sparse_repr.representation.chain import Chain, dense_matrix
from t2s.sparse_repr.representation.chain_layout import (
    ASAP,
    Columns,
    Diagonals,
    Index,
    Length,
    Longest,
    RoundRobin,
    Rows,
    Whole,
    Zero,
)


def csr(machines: int = 1) -> Chain:
    """Compressed sparse rows, assigned round-robin."""
    row_len, col_idx = Var("row_len"), Var("col_idx")
    return (
        dense_matrix()
        .pack(Columns, Length(row_len), Index(col_idx))
        .schedule(Rows, machines, RoundRobin, Zero)
    )


def csc(machines: int = 1) -> Chain:
    """Compressed sparse columns, assigned round-robin."""
    col_len, row_idx = Var("col_len"), Var("row_idx")
    return (
        dense_matrix()
        .pack(Rows, Length(col_len), Index(row_idx))
        .schedule(Columns, machines, RoundRobin, Zero)
    )


def cisr(machines: int = 4) -> Chain:
    """Condensed interleaved sparse rows (Fowers et al.): rows go to the first free machine."""
    row_len, col_idx = Var("row_len"), Var("col_idx")
    return (
        dense_matrix()
        .pack(Columns, Length(row_len), Index(col_idx))
        .schedule(Rows, machines, ASAP, Zero)
    )


def ell(machines: int = 1) -> Chain:
    """ELLPACK: all rows are padded to the longest."""
    col_idx, width = Var("col_idx"), Var("width")
    return (
        dense_matrix()
        .pack(Columns, Index(col_idx))
        .block(Columns, 1, Longest, Length(width))
        .schedule(Rows, machines, RoundRobin, Zero)
    )


def sliced_ell(machines: int = 1, slice_rows: int = 4) -> Chain:
    """Sliced ELLPACK: all rows of a slice are padded to the longest of the slice."""
    col_idx, width, slices = Var("col_idx"), Var("width"), Var("slices")
    return (
        dense_matrix()
        .pack(Columns, Index(col_idx))
        .block(Rows, slice_rows, Zero, Length(slices))
        .block(Columns, 1, Longest, Length(width))
        .schedule(slices, machines, ASAP, Zero)
    )


def blocked_csr(machines: int = 1, block_rows: int = 2, block_columns: int = 2) -> Chain:
    """Compressed rows of dense blocks (BCSR)."""
    row_len, col_idx = Var("row_len"), Var("col_idx")
    return (
        dense_matrix()
        .block(Rows, block_rows, Zero)
        .block(Columns, block_columns, Zero)
        .pack(Columns, Length(row_len), Index(col_idx))
        .schedule(Rows, machines, ASAP, Zero)
    )


def blocked_csc(machines: int = 1, block_rows: int = 2, block_columns: int = 2) -> Chain:
    """Compressed columns of dense blocks."""
    col_len, row_idx = Var("col_len"), Var("row_idx")
    return (
        dense_matrix()
        .block(Rows, block_rows, Zero)
        .block(Columns, block_columns, Zero)
        .pack(Rows, Length(col_len), Index(row_idx))
        .schedule(Columns, machines, ASAP, Zero)
    )


def row_blocks(machines: int = 2, factor: int = 2) -> Chain:
    """Rows split into blocks of values, which are assigned to machines: the second design of
    [Sparse T2S].
    """
    col_idx, blocks = Var("col_idx"), Var("row_blocks")
    return (
        dense_matrix()
        .pack(Columns, Index(col_idx))
        .block(Columns, factor, Zero, Length(blocks))
        .schedule(blocks, machines, ASAP, Zero)
    )


def dcsr(machines: int = 1) -> Chain:
    """Doubly compressed sparse rows: empty rows are left out."""
    row_len, col_idx, row_idx = Var("row_len"), Var("col_idx"), Var("row_idx")
    return (
        dense_matrix()
        .pack(Columns, Length(row_len), Index(col_idx))
        .pack(Rows, Index(row_idx))
        .schedule(Rows, machines, ASAP, Zero)
    )


def coo(machines: int = 1) -> Chain:
    """Coordinates: a row and a column with every value."""
    row_idx, col_idx = Var("row_idx"), Var("col_idx")
    return (
        dense_matrix()
        .pack(Columns, Index(col_idx))
        .pack(Rows, Index(row_idx))
        .schedule(Columns, machines, RoundRobin, Zero)
    )


def dia(machines: int = 1) -> Chain:
    """All nonempty diagonals, stored whole."""
    offset = Var("offset")
    return (
        dense_matrix()
        .skew(Columns)
        .block(Rows, Whole, Zero)
        .pack(Diagonals, Index(offset))
        .schedule(Diagonals, machines, RoundRobin, Zero)
    )
