"""Pictures of sparse matrices: the entries, the machines that hold them, and padding.

Large matrices are drawn in cells of many entries, the more opaque the more there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s.core.svg import PALETTE, CellLayer, SvgPicture, raster_chart

Array = np.ndarray[Any, Any]

MOST_VALUES = 4_000_000
"""Values of the largest matrix that is drawn."""

_SIDE, _MACHINES, _POSITIONS = 64, 32, 128
_COLORS = PALETTE[:7]
"""Of machines, in turn; gray is padding."""

_GRAY = PALETTE[7]
_LEVELS = (0.4, 0.6, 0.8, 1.0)
"""How opaque a cell is, by the quarter of its places that have entries."""


def entries_chart(shape: tuple[int, int], rows: Array, columns: Array) -> SvgPicture | None:
    """The entries of a matrix; ``None`` if there are too many to draw."""
    if rows.size > MOST_VALUES:
        return None
    grid = _grid(shape)
    counts = _counts(grid, _cells(rows, shape[0], grid[0]), _cells(columns, shape[1], grid[1]))
    layers = _shaded(counts, _room(shape, grid), PALETTE[0], f"{rows.size:,} entries")
    description = f"{rows.size:,} entries of a matrix of {shape[0]:,} x {shape[1]:,}"
    return raster_chart("entries of the matrix", grid, layers, description=description)


def stored_chart(
    shape: tuple[int, int], rows: Array, columns: Array, entry: Array
) -> SvgPicture | None:
    """The matrix in the colors of the machines that have its entries, its stored zeros gray.

    ``rows`` and ``columns`` (machines x positions) are -1 where nothing of the matrix is, and
    ``entry`` says where its entries are.
    """
    if rows.size > MOST_VALUES:
        return None
    grid = _grid(shape)
    inside = rows >= 0
    down, across = _cells(rows, shape[0], grid[0]), _cells(columns, shape[1], grid[1])
    owner = np.broadcast_to(np.arange(rows.shape[0])[:, None], rows.shape)
    zeros = inside & ~entry
    counts = _counts(grid, down[entry], across[entry])
    most = _owners(grid, down[entry], across[entry], owner[entry])
    layers = [
        CellLayer(
            cells=(_counts(grid, down[zeros], across[zeros]) > 0) & (counts == 0),
            color=_GRAY,
            opacity=0.45,
            said=f"stored zeros: {int(zeros.sum()):,}",
        )
    ]
    room = _room(shape, grid)
    for number, color in enumerate(_COLORS[: rows.shape[0]]):
        mine = np.where((most >= 0) & (most % len(_COLORS) == number), counts, 0)
        others = " and others" if rows.shape[0] > number + len(_COLORS) else ""
        held = int(entry[number :: len(_COLORS)].sum())
        layers += _shaded(mine, room, color, f"machine {number}{others}: {held:,} entries")
    description = (
        f"a matrix of {shape[0]:,} x {shape[1]:,}, {int(entry.sum()):,} entries in the colors "
    )
    description += f"of {rows.shape[0]:,} machines, {int(zeros.sum()):,} stored zeros in gray"
    return raster_chart("which machine has which entries", grid, layers, description=description)


def streams_chart(entry: Array, loads: Array, jobs: Array) -> SvgPicture | None:
    """The stream of values of every machine, from the first position on the left.

    ``entry`` (machines x positions) says where entries are, ``loads`` how many positions of each
    machine belong to its jobs, and ``jobs`` to which one.  Jobs are dark and light in turn; what
    is stored and no entry is gray, light behind the last job.
    """
    if entry.size > MOST_VALUES:
        return None
    machines, positions = entry.shape
    grid = min(machines, _MACHINES), min(positions, _POSITIONS)
    owner = np.broadcast_to(np.arange(machines)[:, None], entry.shape)
    place = np.broadcast_to(np.arange(positions), entry.shape)
    down, across = _cells(owner, machines, grid[0]), _cells(place, positions, grid[1])
    room = np.maximum(1, _counts(grid, down, across))
    behind = place >= loads[:, None]
    share = _counts(grid, down[entry], across[entry]) / room
    late = _counts(grid, down[behind], across[behind]) / room
    turn = np.cumsum(np.diff(jobs, axis=1, prepend=jobs[:, :1]) != 0, axis=1) % 2 == 1
    odd = _counts(grid, down[turn], across[turn]) / room
    colors = _owners(grid, down.reshape(-1), across.reshape(-1), owner.reshape(-1)) % len(_COLORS)
    padding = int((~entry & ~behind).sum()), int((~entry & behind).sum())
    layers = [
        CellLayer(
            cells=(share < 0.5) & (late < 0.5),
            color=_GRAY,
            opacity=0.7,
            said=f"padding: {padding[0]:,}",
        ),
        CellLayer(
            cells=(share < 0.5) & (late >= 0.5),
            color=_GRAY,
            opacity=0.2,
            said=f"padding behind the last job: {padding[1]:,}",
        ),
    ]
    for number, color in enumerate(_COLORS[:machines]):
        for light, opacity in ((False, 1.0), (True, 0.6)):
            mine = (colors == number) & (share >= 0.5) & ((odd >= 0.5) == light)
            description = f"entries of jobs of machine {number}"
            layers.append(CellLayer(cells=mine, color=color, opacity=opacity, said=description))
    description = f"{machines:,} machines x {positions:,} positions: {int(entry.sum()):,} entries, "
    description += (
        f"{padding[0]:,} values of padding, {padding[1]:,} behind the last job of a machine"
    )
    return raster_chart("what each machine reads", grid, layers, description=description, wide=560)


def _grid(shape: tuple[int, int]) -> tuple[int, int]:
    return min(shape[0], _SIDE), min(shape[1], _SIDE)


def _cells(index: Array, extent: int, cells: int) -> Array:
    """The cell of each index."""
    cell_numbers: Array = index.astype(np.int64) * cells // max(1, extent)
    return cell_numbers


def _room(shape: tuple[int, int], grid: tuple[int, int]) -> Array:
    """Elements of the matrix in each cell."""
    counts = []
    for extent, cells in zip(shape, grid, strict=True):
        first = [-(-number * extent // cells) for number in range(cells + 1)] if cells else [0]
        counts.append(np.diff(np.array(first, np.float64)))
    return np.outer(*counts)


def _counts(grid: tuple[int, int], down: Array, across: Array) -> Array:
    flat = (down * grid[1] + across).reshape(-1)
    return np.bincount(flat, minlength=grid[0] * grid[1]).reshape(grid)


def _owners(grid: tuple[int, int], down: Array, across: Array, owner: Array) -> Array:
    """The machine with most values of each cell, the first one of several; -1 for none."""
    owners = np.full(grid[0] * grid[1], -1, np.int64)
    machines = int(owner.max(initial=0)) + 1
    pairs, counts = np.unique((down * grid[1] + across) * machines + owner, return_counts=True)
    order = np.lexsort((-pairs, counts))  # the last one of a cell stays
    owners[pairs[order] // machines] = pairs[order] % machines
    return owners.reshape(grid)


def _shaded(counts: Array, room: Array, color: str, said: str) -> list[CellLayer]:
    """A layer for each opacity; cells without entries are in none."""
    level = np.minimum(4, np.ceil(4 * counts / np.maximum(1, room))).astype(np.int64)
    return [
        CellLayer(cells=level == number, color=color, opacity=opacity, said=said)
        for number, opacity in enumerate(_LEVELS, 1)
    ]
