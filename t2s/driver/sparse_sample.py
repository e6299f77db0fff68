"""Samples for ``sparse.search``: some coordinates of one variable, in all tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.sparse_repr.notation.ir import Assignment, accesses
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates

if TYPE_CHECKING:
    pass

SAMPLE_SHARE, LEAST_SAMPLE = 16, 64
"""A sample has one coordinate in so many, and at least so many coordinates."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Inputs at ``count`` of the ``extent`` coordinates of a variable, renumbered from 0."""

    variable: str
    count: int
    extent: int
    inputs: dict[str, Any]
    assignment: Assignment


def sample_of(assignment: Assignment, inputs: Mapping[str, Any], seed: int) -> Sample | None:
    """A sample of the rows of the largest tensor; ``None`` if there are too few rows to sample.

    Rows are sorted by their number of entries, and one is drawn from each of equal groups; the
    longest is always there.
    """
    if not inputs or not all(isinstance(tensor, SparseTensor) for tensor in inputs.values()):
        return None
    read = [access for access in accesses(assignment.value) if access.variables]
    if not read:
        return None
    largest = max(read, key=lambda access: inputs[access.tensor].nnz)
    variable = largest.variables[0]
    rows = inputs[largest.tensor].entries().modes[0]
    extent = inputs[largest.tensor].shape[0]
    count = max(LEAST_SAMPLE, -(-extent // SAMPLE_SHARE))
    if count >= extent:
        return None
    chosen = stratified(np.bincount(rows, minlength=extent), count, seed)
    position = np.full(extent, -1)
    position[chosen] = np.arange(count)
    taken: dict[str, Any] = {}
    for access in read:
        whole = inputs[access.tensor]
        modes = [m for m, name in enumerate(access.variables) if name == variable]
        if not modes or access.tensor in taken:
            taken.setdefault(access.tensor, whole)
            continue
        table, values = whole.coordinates()
        table = table.copy()
        inside = values != whole.fill
        for mode in modes:
            table[:, mode] = position[table[:, mode]]
            inside &= table[:, mode] >= 0
        shape = tuple(count if m in modes else size for m, size in enumerate(whole.shape))
        taken[access.tensor] = from_coordinates(
            table[inside], values[inside], shape, whole.format, fill=whole.fill
        )
    taken |= {name: tensor for name, tensor in inputs.items() if name not in taken}
    return Sample(
        variable=variable,
        count=count,
        extent=extent,
        inputs=taken,
        assignment=_without_extent(assignment, variable, count),
    )


def stratified(lengths: np.ndarray[Any, Any], count: int, seed: int) -> np.ndarray[Any, Any]:
    """Indices of ``count`` rows, in order: the longest, and one of each of equal groups."""
    order = np.argsort(lengths, kind="stable")
    groups = np.array_split(order[:-1], count - 1)
    draw = np.random.default_rng(seed)
    chosen = [int(group[draw.integers(len(group))]) for group in groups]
    return np.sort(np.array([*chosen, int(order[-1])]))


def _without_extent(assignment: Assignment, variable: str, count: int) -> Assignment:
    """The assignment with ``count`` as the extent of a variable in declared shapes."""
    every = (assignment.result, *accesses(assignment.value))
    variables = {access.tensor: access.variables for access in every}
    tensors = tuple(
        declared
        if declared.shape is None
        else replace(
            declared,
            shape=tuple(
                count if name == variable else size
                for name, size in zip(variables[declared.name], declared.shape, strict=True)
            ),
        )
        for declared in assignment.tensors
    )
    return replace(assignment, tensors=tensors)
