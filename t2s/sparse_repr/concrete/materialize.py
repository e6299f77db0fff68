"""Materialize views: tensors in the form that a stage reads, and the result from a written view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from t2s.sparse_repr.concrete.access import Stored
from t2s.sparse_repr.concrete.ir import View
from t2s.sparse_repr.formats import Format, Part, csf
from t2s.sparse_repr.levels import Array, Compressed, Dense
from t2s.sparse_repr.tensors.coordinates import chosen, inside, rises
from t2s.sparse_repr.tensors.tensor import (
    SparseTensor,
    as_stored,
    from_columns,
    in_order_of,
    part_of,
    whole_modes,
)


def view_shape(view: View, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a view of a tensor of that shape."""
    return tuple(min(part.extent(shape[part.mode]) for part in parts) for parts in view.parts)


def read_tensor_view(view: View, source: SparseTensor) -> SparseTensor:
    """The view of a tensor; shares its arrays where the levels are the same."""
    shape = view_shape(view, source.shape)
    singles = all(len(parts) == 1 for parts in view.parts)
    stored = tuple(view.parts[mode][0] for mode in view.format.modes)
    same = Format(levels=view.format.levels, parts=stored, block=source.format.block)
    if singles and same == source.format:
        return as_stored(shape, view.format, source.levels, source.values, fill=source.fill)
    if source.format.is_array and view.format.is_array and _turns(view, len(source.shape)):
        turned = in_order_of([part.mode for part in stored], source)
        return as_stored(shape, view.format, ({},) * len(shape), turned, fill=source.fill)
    columns, values = source.entries_as_stored()
    in_view = np.ones(len(values), bool)
    shown: list[Array] = []
    for parts in view.parts:
        column = part_of(columns, parts[0])
        for other in parts[1:]:
            in_view = in_view & (part_of(columns, other) == column)
        shown.append(column)
    shown_columns, values = chosen(in_view, shown, values)
    return from_columns(shown_columns, values, shape, view.format, fill=source.fill)


def source_columns(view: View, columns: Sequence[Array]) -> tuple[Array, ...]:
    """Coordinates of points of a view in the tensor that it shows: an array for each mode."""
    return whole_modes(
        (part, column)
        for column, parts in zip(columns, view.parts, strict=True)
        for part in dict.fromkeys(parts)
    )


def written_tensor(
    view: View, written: SparseTensor, shape: Sequence[int], format: Format
) -> SparseTensor:
    """The user's result from the view that a stage wrote."""
    if shape == written.shape and format == written.format and _trivial(view):
        return as_stored(shape, format, written.levels, written.values, fill=written.fill)
    if written.format.is_array and format.is_array and _turns(view, len(shape)):
        modes = [parts[0].mode for parts in view.parts]
        turned = in_order_of([modes.index(mode) for mode in format.modes], written)
        return as_stored(shape, format, ({},) * len(shape), turned, fill=written.fill)
    points, values = written.columns()
    columns = source_columns(view, points)
    if columns:
        columns, values = chosen(inside(columns, shape), columns, values)
    if _has_zeros_of_lanes(written.format):
        columns, values = chosen(values != written.fill, columns, values)
    return from_columns(columns, values, shape, format, fill=written.fill)


def _has_zeros_of_lanes(format: Format) -> bool:
    """Whether zeros are stored that only the lanes of a block added."""
    some = not all(level.full for level in format.levels)
    return some and format.elements.levels[-1].full


def _turns(view: View, order: int) -> bool:
    """Whether a view has the modes of a tensor of that order in another order."""
    shown = [parts[0].mode for parts in view.parts]
    whole = all(parts == (Part(mode=parts[0].mode),) for parts in view.parts)
    return whole and sorted(shown) == list(range(order))


def _trivial(view: View) -> bool:
    return all(parts == (Part(mode=mode),) for mode, parts in enumerate(view.parts))


def as_blocks_need_it(tensor: SparseTensor) -> SparseTensor:
    """The tensor, converted if blocks cannot scan it directly.

    That is the case if a level below a non-dense one has an empty fiber, or if a list of
    coordinates is not sorted.
    """
    if tensor.format.coordinate_list:
        columns, values = tensor.columns()
        in_order = tuple(columns[mode] for mode in tensor.format.modes)
        return tensor if rises(in_order, len(values)) else _packed_again(tensor)
    count, above = 1, None
    for level, arrays, extent in zip(
        tensor.format.levels, tensor.levels, tensor.extents, strict=True
    ):
        inner = above is not None and not level.full and not above.full
        if inner and not level.all_filled(arrays, count, extent):
            return _packed_again(tensor)
        count, above = level.positions(arrays, count, extent), level
    return tensor


def _packed_again(tensor: SparseTensor) -> SparseTensor:
    """The tensor without empty fibers, its coordinates in order."""
    columns, values = tensor.columns()
    return from_columns(columns, values, tensor.shape, tensor.format, fill=tensor.fill)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The storage of the result of the last stage."""

    stored: Stored


def written_result(
    target: Stored,
    order: Sequence[str],
    covered: Sequence[str],
    *,
    read_too: bool,
    lane: str = "",
    gaps: bool = True,
) -> Written:
    """The storage of a result with these levels, written by loops in this order.

    ``covered`` are the outermost loops that visit all coordinates of their variables, ``lane`` is
    the variable over the lanes of vectors, the innermost one.  ``read_too``: the expression reads
    the values that the result had before.  ``gaps``: memory that nothing is stored into is right.
    """
    if read_too:
        reason = "the expression reads the values from before"
        target = replace(target, reasons=(*target.reasons, reason))
    placed = gaps or set(target.variables) <= set(covered)
    if target.all_dense and placed and (lane or len(target.reasons) == read_too):
        return Written(stored=target)
    in_order = [name for name in order if name in target.variables]
    leading = _leading_dense(target.format)
    walked = list(target.levels) == in_order and list(covered[:leading]) == in_order[:leading]
    if walked and _have_writers(target.format) and len(target.reasons) == read_too:
        return Written(stored=target)
    reasons = list(target.reasons)
    if list(target.levels) != in_order:
        reasons.append(f"written in the order of the loops, {', '.join(in_order)}")
    if any(level.full for level in target.format.levels):
        reasons.append("dense levels are filled in afterwards")
    elif not _have_writers(target.format):
        titles = dict.fromkeys(
            level.title for level in target.format.levels if type(level) is not Compressed
        )
        reasons.append(f"{', '.join(titles)} levels are made afterwards")
    modes = tuple(target.variables.index(name) for name in in_order)
    format = walked_format(modes, in_lanes=lane in in_order)
    stored = Stored(
        variables=target.variables, parts=target.parts, format=format, reasons=tuple(reasons)
    )
    return Written(stored=stored)


def walked_format(modes: Sequence[int], *, in_lanes: bool) -> Format:
    """Compressed levels in the order of the loops, and a dense one for the lanes of vectors."""
    levels = csf(len(modes)).levels
    if in_lanes:
        levels = (*levels[:-1], Dense())
    return Format(levels=levels, parts=tuple(Part(mode=mode) for mode in modes))


def _have_writers(format: Format) -> bool:
    """Whether blocks write the format in the order of its levels.

    A list of coordinates, or levels with a writer below dense ones.
    """
    if format.coordinate_list:
        return True
    dropping = enumerate(format.levels[_leading_dense(format) :])
    return all(level.has_writer(number) for number, level in dropping)


def _leading_dense(format: Format) -> int:
    """Number of dense levels above all others."""
    count = 0
    for level in format.levels:
        if not level.full:
            break
        count += 1
    return count
