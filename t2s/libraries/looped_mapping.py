"""A mapping as compiled loops: its fixed variables and tiles are loops around calls by address.

Tiles of one mode are two groups of calls: those of the whole size, and the last one if that is
smaller or padded.  Each group is a nest of loops; values are added up in the order of single calls,
or there are no loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from t2s.capability.conditions import Mode, mode_extent, mode_name
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.tiles import TileOf
from t2s.core.location import SourceLocation
from t2s.libraries.by_address import FixedCalls, FixedOperand, LoopedCalls, looped_calls
from t2s.sparse_repr.semiring import Semiring

Array = np.ndarray[Any, Any]

FEWEST_CALLS = 8
"""Fewer calls are made one by one, so that no loops have to be compiled for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopedMapping:
    """A mapping on dense operands; ``target`` has the fixed variables of the result first."""

    mapping: PartMapping
    operands: Mapping[str, Any]
    extents: Mapping[str, int]
    tiles: tuple[TileOf, ...]
    target: Array
    semiring: Semiring
    location: SourceLocation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGroup:
    """Tiles of a mode: the first one's start, how many, how much of each is there, its size."""

    mode: Mode
    start: int
    count: int
    real: int
    size: int


def looped_mapping(given: LoopedMapping, fewest: int = FEWEST_CALLS) -> list[LoopedCalls] | None:
    """The loops, one nest behind the other; ``None`` where calls are made one by one.

    Writes what a function overwrites into the target, and nothing else.
    """
    mapping = given.mapping
    if not all(isinstance(one, np.ndarray) for one in given.operands.values()):
        return None
    groups = [list(_groups(tile, mode)) for mode, tile in _cut(given)]
    loops = [given.extents[name] for name in mapping.fixed]
    if prod([*loops, *(sum(one.count for one in found) for found in groups)]) < fewest:
        return None
    summed = [found for found in groups if found[0].mode in mapping.summed]
    repeated = [found for found in summed if sum(one.count for one in found) > 1]
    split = any(len(found) > 1 for found in repeated)
    if split and (len(repeated) > 1 or mapping.fixed_sums):
        return None  # sums would be in another order
    sums = bool(mapping.fixed_sums or repeated)
    made = []
    for chosen in product(*groups):
        looped = looped_calls(_fixed_calls(given, {one.mode: one for one in chosen}, sums=sums))
        if looped is None:
            return None
        made.append(looped)
    overwritten = mapping.function.capability.overwritten
    if overwritten is not None:
        given.target[...] = _placed(given, mapping.operand(overwritten))
    return made


def _cut(given: LoopedMapping) -> list[tuple[Mode, TileOf]]:
    """The modes with tiles, in the order of their loops."""
    tiles = {tile.mode: tile for tile in given.tiles}
    modes = dict.fromkeys(mode for one in given.mapping.operands for mode in one.modes)
    return [(mode, tiles[mode_name(mode)]) for mode in modes if mode and mode_name(mode) in tiles]


def _groups(tile: TileOf, mode: Mode) -> Iterator[TileGroup]:
    whole, rest = divmod(tile.extent, tile.size)
    if whole:
        yield TileGroup(mode=mode, start=0, count=whole, real=tile.size, size=tile.size)
    if rest:
        size = tile.size if tile.padded else rest
        yield TileGroup(mode=mode, start=whole * tile.size, count=1, real=rest, size=size)


def view_order(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Where each wanted variable is; a variable that is there twice is taken in order."""
    left = list(enumerate(names))
    found = []
    for name in wanted:
        at = next(number for number, (_, one) in enumerate(left) if one == name)
        found.append(left.pop(at)[0])
    return found


def _fixed_calls(
    given: LoopedMapping, chosen: Mapping[Mode, TileGroup], *, sums: bool
) -> FixedCalls:
    mapping = given.mapping
    operands = {one.name: _operand(given, one, chosen) for one in mapping.operands}
    free = mapping.fixed_free
    moves = dict(zip(free, given.target.strides, strict=False))
    index: tuple[Any, ...] = (*([0] * len(free)), ...)
    first = given.target[index]
    loops = {name: given.extents[name] for name in mapping.fixed}
    loops |= {_tile_loop(mode): one.count for mode, one in chosen.items()}
    extents = {name: mode_extent(mode, given.extents) for name, mode in mapping.images}
    for name, mode in mapping.images:
        if mode in chosen:
            extents[name] = chosen[mode].size
    return FixedCalls(
        function=mapping.function,
        loops=loops,
        operands=operands,
        target=_tiled(given.target, first, moves, mapping.result, chosen),
        extents=extents,
        sums=sums,
        semiring=given.semiring,
        location=given.location,
    )


def _tile_loop(mode: Mode) -> str:
    return f"tile of {mode_name(mode)}"


def _operand(
    given: LoopedMapping, one: OperandView, chosen: Mapping[Mode, TileGroup]
) -> FixedOperand:
    """An operand in the first call of a group, and what moves it."""
    whole, names, fixed = given.operands[one.name], one.access.variables, given.mapping.fixed
    moves = {
        name: sum(step for step, own in zip(whole.strides, names, strict=True) if own == name)
        for name in fixed
        if name in names
    }
    index = tuple(0 if name in fixed else slice(None) for name in names)
    left = [name for name in names if name not in fixed]
    order = view_order(left, [name for mode in one.modes for name in mode])
    shape = [mode_extent(mode, given.extents) for mode in one.modes]
    seen = (whole[(*index, ...)] if index else whole).transpose(order).reshape(shape)
    return _tiled(whole, seen, moves, one.modes, chosen)


def _tiled(
    whole: Array,
    seen: Array,
    moves: Mapping[str, int],
    modes: Sequence[Mode],
    chosen: Mapping[Mode, TileGroup],
) -> FixedOperand:
    """The first tile of a group."""
    slices: list[Any] = []
    shape, moved = list(seen.shape), dict(moves)
    for axis, mode in enumerate(modes):
        one = chosen.get(mode)
        if one is None:
            slices.append(slice(None))
            continue
        slices.append(slice(one.start, one.start + one.real))
        shape[axis] = one.size
        name = _tile_loop(mode)
        moved[name] = moved.get(name, 0) + one.size * seen.strides[axis]
    return FixedOperand(whole=whole, seen=seen[(*slices, ...)], moves=moved, shape=tuple(shape))


def _placed(given: LoopedMapping, one: OperandView) -> Array:
    """An operand with the fixed variables of the result first, then as the function sees it."""
    whole, names, fixed = given.operands[one.name], one.access.variables, given.mapping.fixed
    free = given.mapping.fixed_free
    left = [at for at, name in enumerate(names) if name not in fixed]
    order = view_order([names[at] for at in left], [name for mode in one.modes for name in mode])
    kept = [names.index(name) for name in free if name in names]
    view = whole.transpose([*kept, *(left[at] for at in order)])
    shape = [given.extents[name] if name in names else 1 for name in free]
    placed = view.reshape([*shape, *(mode_extent(mode, given.extents) for mode in one.modes)])
    return np.asarray(placed)
