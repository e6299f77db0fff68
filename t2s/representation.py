"""Representations of sparse matrices, and reports on products with them.

A chain from the dense matrix to streams of values (``dense_matrix().pack(...).schedule(...)``, or
one of the ``gallery``) has its inverse map derived from it, so that a ``Func`` that reads the
values of a ``MatrixParam`` is written as if the matrix were dense [Sparse T2S, sec. 3].
"""

from __future__ import annotations

from t2s.driver.lower import structure
from t2s.driver.representation_search import RepresentationSearchResult, search
from t2s.driver.simulate import product_report
from t2s.reduction.carry import MaybeDifferentTarget, SameTarget
from t2s.reduction.circuits import LinearArray, Tree
from t2s.sparse_repr.representation import gallery
from t2s.sparse_repr.representation.chain import Chain, Representation, dense_matrix
from t2s.sparse_repr.representation.chain_layout import (
    ASAP,
    Columns,
    Diagonals,
    Index,
    Length,
    Longest,
    LongestFirst,
    Policy,
    RoundRobin,
    Rows,
    Whole,
    Zero,
)
from t2s.sparse_repr.representation.parameter import MatrixParam, read_matrix, write_matrix
from t2s.sparse_repr.representation.storage import Storage

__all__ = [
    "ASAP",
    "Chain",
    "Columns",
    "Diagonals",
    "Index",
    "Length",
    "LinearArray",
    "Longest",
    "LongestFirst",
    "MatrixParam",
    "MaybeDifferentTarget",
    "Policy",
    "Representation",
    "RepresentationSearchResult",
    "RoundRobin",
    "Rows",
    "SameTarget",
    "Storage",
    "Tree",
    "Whole",
    "Zero",
    "dense_matrix",
    "gallery",
    "product_report",
    "read_matrix",
    "search",
    "structure",
    "write_matrix",
]
