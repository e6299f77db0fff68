"""Running a mapping on arrays: loops over fixed variables and tiles, views, and copies.

Operands are never written: a function that overwrites one gets a copy in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from t2s.capability.conditions import Mode, mode_extent, mode_name
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.operands import rows_of, slice_of, suited, suits, window_of
from t2s.capability.tiles import TileOf
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import OPERATORS
from t2s.libraries.calling import (
    CallFrame,
    call,
    call_hardware,
    described_note,
    returned_numbers,
    status_failure,
)
from t2s.libraries.compiled_calls import LoopedCalls, LoopedMapping, looped_mapping, view_order
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.interchange import filled_tensor, tensor
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored

Array = np.ndarray[Any, Any]
Operand = Array | SparseTensor


@dataclass
class CallTally:
    """Counters of a run: calls, and bytes of operands that had to be copied.

    For hardware, ``cycles`` of all calls.  ``partial`` are bytes of partial results that are added
    up outside of the function, which took ``summing`` seconds.
    """

    calls: int = 0
    copied: int = 0
    cycles: int = 0
    partial: int = 0
    summing: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOfMapping:
    """A mapping with its operands, by the names of the capability, of the type ``kind``.

    Extents must be positive.  ``tiles`` are those of the tiled modes.  ``in_loops`` makes many
    calls by address in compiled loops, and returns the status of one that failed.
    """

    mapping: PartMapping
    operands: Mapping[str, Operand]
    kind: np.dtype[Any]
    semiring: Semiring = PLUS_TIMES
    tiles: tuple[TileOf, ...] = ()
    location: SourceLocation | None = None
    tally: CallTally = field(default_factory=CallTally)
    in_loops: Callable[[LoopedCalls], int | None] | None = None


def operand_extents(mapping: PartMapping, operands: Mapping[str, Operand]) -> dict[str, int]:
    """The extents of the variables of a mapping, from the shapes of its operands."""
    return {
        name: extent
        for tensor, access in mapping.reads
        for name, extent in zip(access.variables, operands[tensor].shape, strict=True)
    }


def run_mapping(run: RunOfMapping) -> Operand:
    """The result, with a mode for each of ``mapping.variables``; sparse if the function says so."""
    return _MappingRun(run).result()


class _MappingRun:
    def __init__(self, run: RunOfMapping) -> None:
        self.run = run
        self.extents = operand_extents(run.mapping, run.operands)
        self.mapping = run.mapping
        self.function = run.mapping.function
        self.capability = self.function.capability
        self.result_name = self.capability.result.tensor
        self.sizes = {tile.mode: tile for tile in run.tiles}
        self.shapes = {operand.name: self._shape(operand) for operand in run.mapping.operands}

    def result(self) -> Operand:
        mapping, run = self.mapping, self.run
        needs = self.capability.needs_of(self.result_name)
        if needs.formats and not all(level.full for level in needs.formats[0].levels):
            return self._sparse_result()
        fixed = [self.extents[name] for name in mapping.fixed_free]
        shape = [mode_extent(mode, self.extents) for mode in mapping.result]
        target = np.full((*fixed, *shape), run.semiring.zero, run.kind)
        if run.in_loops is not None and self._in_loops(target, run.in_loops):
            return target.reshape([self.extents[name] for name in mapping.variables])
        loops = [range(self.extents[name]) for name in mapping.fixed]
        sums = bool(mapping.fixed_sums)
        for numbers in product(*loops):
            at = dict(zip(mapping.fixed, numbers, strict=True))
            views = {operand.name: self._seen(operand, at) for operand in mapping.operands}
            place = tuple(at[name] for name in mapping.fixed_free)
            self._tiles(views, target[_index(place)], sums=sums)
        return target.reshape([self.extents[name] for name in mapping.variables])

    def _in_loops(self, target: Array, make: Callable[[LoopedCalls], int | None]) -> bool:
        """Make all calls in compiled loops, if that is possible; returns whether it was."""
        run = self.run
        looped = looped_mapping(
            LoopedMapping(
                mapping=self.mapping,
                operands=run.operands,
                extents=self.extents,
                tiles=run.tiles,
                target=target,
                semiring=run.semiring,
                location=run.location,
            )
        )
        for calls in looped or ():
            status = make(calls)
            if status is not None:
                raise status_failure(self.function, status, run.location)
            run.tally.calls += calls.calls
            run.tally.copied += calls.copied
        return looped is not None

    def _sparse_result(self) -> SparseTensor:
        views = {operand.name: self._seen(operand, {}) for operand in self.mapping.operands}
        returned = self._called(self._handed(views), self._whole_extents())
        format = self.capability.needs_of(self.result_name).formats[0]
        shape = tuple(mode_extent(mode, self.extents) for mode in self.mapping.result)
        zero = self.run.semiring.zero
        result = filled_tensor(tensor(returned), zero, as_array=isinstance(returned, np.ndarray))
        if result.shape != shape:
            raise self._misshapen(result.shape, shape)
        values = result.values.astype(self.run.kind, copy=False)
        result = as_stored(result.shape, result.format, result.levels, values, fill=result.fill)
        return result.convert(format)

    def _misshapen(self, returned: tuple[int, ...], shape: tuple[int, ...]) -> UserError:
        return UserError(
            f"{self.function.name} returned a result of another shape",
            location=self.run.location,
            expected=f"shape {' x '.join(map(str, shape)) or 'of a scalar'}",
            given=f"shape {' x '.join(map(str, returned)) or 'of a scalar'}",
            notes=described_note(self.function),
        )

    def _shape(self, operand: OperandView) -> tuple[list[int], list[int]]:
        """The permutation of an operand's unfixed modes, and the shape after fusing them."""
        names = [name for name in operand.access.variables if name not in self.mapping.fixed]
        wanted = [name for mode in operand.modes for name in mode]
        return view_order(names, wanted), [
            mode_extent(mode, self.extents) for mode in operand.modes
        ]

    def _seen(self, operand: OperandView, at: Mapping[str, int]) -> Operand:
        """The operand as the function sees it: sliced, permuted, with fused and promoted modes."""
        value = self.run.operands[operand.name]
        if isinstance(value, SparseTensor):
            fixed = {
                mode: at[name] for mode, name in enumerate(operand.access.variables) if name in at
            }
            return _read_only(slice_of(value, fixed) if fixed else value)
        index = tuple(at.get(name, slice(None)) for name in operand.access.variables)
        order, shape = self.shapes[operand.name]
        view: Array = value[_index(index)].transpose(order)
        seen = view.reshape(shape)
        if seen.size and not np.may_share_memory(seen, view):
            self.run.tally.copied += seen.nbytes
        return seen

    def _tiles(self, views: Mapping[str, Operand], target: Array, *, sums: bool) -> None:
        """Call the function for every tile; with ``sums``, results are added to the target."""
        modes = list(
            dict.fromkeys(mode for operand in self.mapping.operands for mode in operand.modes)
        )
        cut = [mode for mode in modes if mode_name(mode) in self.sizes and mode]
        summed = set(self.mapping.summed)
        more = sums or any(self.sizes[mode_name(mode)].count > 1 for mode in cut if mode in summed)
        ranges = [list(_pieces(self.sizes[mode_name(mode)])) for mode in cut]
        for pieces in product(*ranges):
            at = dict(zip(cut, pieces, strict=True))
            parts = {
                operand.name: self._piece(operand, views[operand.name], at)
                for operand in self._operands()
            }
            self._one(parts, target[_slices(self.mapping.result, at)], at, more=more)

    def _operands(self) -> tuple[OperandView, ...]:
        return self.mapping.operands

    def _piece(
        self, operand: OperandView, view: Operand, at: Mapping[Mode, tuple[int, int, int]]
    ) -> Operand:
        """A tile of an operand, padded with zeros if necessary."""
        if isinstance(view, SparseTensor):
            rows = rows_of(view.format)
            if rows is None or operand.modes[rows] not in at:
                return view
            return window_of(view, rows, at[operand.modes[rows]])
        part = view[_slices(operand.modes, at)] if at else view
        shape = _padded_shape(operand.modes, part.shape, at)
        if shape == part.shape:
            return part
        buffer = np.full(shape, self.run.semiring.zero, part.dtype)
        buffer[tuple(slice(0, extent) for extent in part.shape)] = part
        self.run.tally.copied += buffer.nbytes
        return buffer

    def _one(
        self,
        parts: Mapping[str, Operand],
        target: Array,
        at: Mapping[Mode, tuple[int, int, int]],
        *,
        more: bool,
    ) -> None:
        """Make a call, and write its result into the target or add it."""
        result = self.mapping.result
        shape = _padded_shape(result, target.shape, at)
        needs = self.capability.needs_of(self.result_name)
        adds = self.capability.accumulates
        direct = shape == target.shape and (adds or not more) and suits(target, needs.strides)
        if direct:
            place = target
        else:
            place = suited(np.full(shape, self.run.semiring.zero, self.run.kind), needs.strides)
            self.run.tally.copied += place.nbytes
        handed = self._handed(parts)
        if self.capability.overwritten is not None:
            place[...] = handed[self.result_name]
        handed[self.result_name] = place
        self._call(handed, place, at)
        if not direct:
            inner = place[tuple(slice(0, extent) for extent in target.shape)]
            if more or adds:
                begun = perf_counter()
                inner = OPERATORS[self.run.semiring.add].evaluate(target, inner)
                self.run.tally.partial += place.nbytes
                self.run.tally.summing += perf_counter() - begun
            target[...] = inner

    def _handed(self, parts: Mapping[str, Operand]) -> dict[str, Any]:
        """The operands of a call, read-only, with strides that the function takes."""
        handed: dict[str, Any] = dict(parts)
        for name, part in parts.items():
            if isinstance(part, np.ndarray):
                array = suited(part, self.capability.needs_of(name).strides)
                if array is not part:
                    self.run.tally.copied += part.nbytes
                handed[name] = _locked(array)
        return handed

    def _call(
        self, handed: Mapping[str, Any], place: Array, at: Mapping[Mode, tuple[int, int, int]]
    ) -> None:
        extents = self._whole_extents()
        for name, mode in self.mapping.images:
            if mode in at:
                extents[name] = at[mode][2]
        returned = self._called(handed, extents)
        if self.function.call is not None:
            returns = self.function.call.returns is not None and self.function.status is None
        else:
            returns = self.result_name not in self.function.parameters
        if returns:
            value = returned_numbers(self.function, returned, self.run.location)
            if value.shape != place.shape:
                raise self._misshapen(value.shape, place.shape)
            place[...] = value

    def _whole_extents(self) -> dict[str, int]:
        return {name: mode_extent(mode, self.extents) for name, mode in self.mapping.images}

    def _called(self, handed: Mapping[str, Any], extents: Mapping[str, int]) -> Any:
        """One call; what it returns."""
        tally, hardware = self.run.tally, self.function.hardware
        tally.calls += 1
        frame = self._frame(handed, extents)
        if hardware is None:
            return call(frame)
        value, cycles = call_hardware(hardware, frame)
        tally.cycles += cycles
        return value

    def _frame(self, handed: Mapping[str, Any], extents: Mapping[str, int]) -> CallFrame:
        lists = {name: len(modes) for name, modes in self.mapping.lists}
        run = self.run
        return CallFrame(self.function, handed, extents, run.location, run.semiring, lists)


def _read_only(tensor: SparseTensor) -> SparseTensor:
    """A read-only tensor over the same arrays."""
    levels = [{name: _locked(array) for name, array in level.items()} for level in tensor.levels]
    return as_stored(tensor.shape, tensor.format, levels, _locked(tensor.values), fill=tensor.fill)


def _locked(array: Array) -> Array:
    """A read-only view that cannot be made writable."""
    return np.asarray(memoryview(array).toreadonly())  # type: ignore[arg-type]


def _index(place: Sequence[Any]) -> Any:
    """An index that yields a view, even of a single element."""
    return (*place, ...)


def _pieces(tile: TileOf) -> Iterator[tuple[int, int, int]]:
    """The start, the end and the extent in the call of every tile."""
    for start in range(0, tile.extent, tile.size):
        end = min(start + tile.size, tile.extent)
        yield start, end, tile.size if tile.padded else end - start


def _slices(modes: Sequence[Mode], at: Mapping[Mode, tuple[int, int, int]]) -> tuple[Any, ...]:
    slices = [slice(*at[mode][:2]) if mode in at else slice(None) for mode in modes]
    return (*slices, ...)


def _padded_shape(
    modes: Sequence[Mode], shape: Sequence[int], at: Mapping[Mode, tuple[int, int, int]]
) -> tuple[int, ...]:
    return tuple(
        at[mode][2] if mode in at else extent for mode, extent in zip(modes, shape, strict=True)
    )


def bytes_of(value: Operand) -> int:
    """The bytes of an array, or of all arrays of a sparse tensor."""
    if isinstance(value, SparseTensor):
        arrays = sum(array.nbytes for level in value.levels for array in level.values())
        return int(arrays + value.values.nbytes)
    return int(prod(value.shape) * value.itemsize)
