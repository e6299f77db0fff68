"""Construction: the writers of the result, and the arrays of a stage's graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2s.core.names import NameSupply
from t2s.core.types import Type, UInt
from t2s.core.walk import Term
from t2s.sparse_repr.blocks.arrays import StoreValues
from t2s.sparse_repr.blocks.locators import LocateAddress
from t2s.sparse_repr.blocks.repeats import Repeat
from t2s.sparse_repr.blocks.storage import WriteLevel
from t2s.sparse_repr.blocks.writers import WriteValues
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.levels import Array, Arrays, PackingError
from t2s.sparse_repr.lowering.compute import Computed
from t2s.sparse_repr.lowering.diagram import DiagramWire, TokenKind
from t2s.sparse_repr.lowering.scope import Blocks, LoopLevel, NestScope
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, level_extents, misfit


def construct(scope: NestScope, result: Access, computed: Computed) -> None:
    """Write what a stage computes, in the format in which the program stores it."""
    format = scope.program.format_of(result.tensor)
    levels = _looped(program_levels(result, scope.program), computed)
    loops = computed.loops
    region = loops[-1].region if loops else ""
    if not all(level.full for level in format.levels):
        for number, loop in enumerate(loops):
            if format.levels[number].full:  # its loop visits everything
                continue
            written = loop.coordinate
            if format.coordinate_list:
                written = _for_each_entry(scope.blocks, loops[number:])
            block = WriteLevel(
                tensor=result.tensor,
                level=number,
                empty_fibers=number > 0 and format.levels[number - 1].full,
            )
            above = [loops[number - 1].coordinate] if number else []
            scope.blocks.add(block, [written, *above], [], loop.region, result.location)
    elif levels != computed.variables or not all(loop.covered for loop in loops):
        address = _address(scope.blocks, scope.program, result, computed)
        store = StoreValues(tensor=result.tensor)
        scope.blocks.add(store, [address, computed.value], [], region, result.location)
        return
    write = WriteValues(tensor=result.tensor)
    scope.blocks.add(write, [computed.value], [], region, result.location)


def _for_each_entry(blocks: Blocks, loops: Sequence[LoopLevel]) -> DiagramWire:
    """The coordinates of the first loop, once for every coordinate of the innermost one."""
    stream = loops[0].coordinate
    for loop in loops[1:]:
        repeated = blocks.like(stream, loop.coordinate.depth)
        blocks.add(Repeat(), [loop.coordinate, stream], [repeated], loop.region)
        stream = repeated
    return stream


def program_levels(result: Access, program: ConcreteProgram) -> tuple[str, ...]:
    """The variable of every level of a result."""
    return tuple(result.variables[mode] for mode in program.format_of(result.tensor).modes)


def _looped(levels: tuple[str, ...], computed: Computed) -> tuple[str, ...]:
    """The levels without the one over the lanes of vectors, which is the innermost one."""
    return levels[:-1] if computed.value.lanes > 1 else levels


def _address(
    blocks: Blocks, program: ConcreteProgram, result: Access, computed: Computed
) -> DiagramWire:
    """The place of every value in a dense tensor, from the coordinates of its loops."""
    levels = _looped(program_levels(result, program), computed)
    in_order = levels == computed.variables
    address: DiagramWire | None = None
    for loop in computed.loops:
        before, coordinate, variable = address, loop.coordinate, loop.variable
        if before is not None:
            before = blocks.like(before, before.depth + 1)
            assert address is not None
            blocks.add(Repeat(), [coordinate, address], [before], loop.region)
        inner = levels[levels.index(variable) + 1 :]
        if before is None and (in_order or not inner):
            address = coordinate
            continue
        address = blocks.stream(TokenKind.REFERENCE, coordinate.depth, result.tensor)
        block = LocateAddress(
            scale=(variable,) if in_order else (), stride=() if in_order else inner
        )
        given = [coordinate] if before is None else [coordinate, before]
        blocks.add(block, given, [address], loop.region)
    if address is None:
        raise ValueError("a scalar has no address")
    return address


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOf(Term):
    """An array of a tensor: ``array`` of a level, or the values where ``level`` is ``None``."""

    name: str
    tensor: str
    level: int | None
    array: str
    type: Type


class ArrayNames:
    """Hands out the graph's name of every array that a stage uses."""

    def __init__(self, values: Type, index: Type, taken: tuple[str, ...] = ()) -> None:
        self.values = values
        self.index = index
        self.found: dict[tuple[str, int | None, str], ArrayOf] = {}
        self._names = NameSupply(taken)

    def of(self, tensor: str, level: int | None, array: str, *, words: bool = False) -> ArrayOf:
        """The array; the same one every time.  ``words``: it holds words of bits."""
        key = tensor, level, array
        if key not in self.found:
            suffix = array if level is None else f"{array}{level}"
            self.found[key] = ArrayOf(
                name=self._names.fresh(f"{tensor}_{suffix}"),
                tensor=tensor,
                level=level,
                array=array,
                type=self.values if level is None else UInt(64) if words else self.index,
            )
        return self.found[key]


def array_in(tensor: SparseTensor, array: ArrayOf) -> Array:
    """The array of a tensor as the graph takes it; without a copy where the type is right."""
    stored = tensor.values if array.level is None else tensor.levels[array.level][array.array]
    return np.ascontiguousarray(np.asarray(stored).reshape(-1).astype(array.type.numpy, copy=False))


def tensor_of(
    arrays: dict[tuple[int | None, str], Array],
    shape: tuple[int, ...],
    format: Format,
    fill: float | int = 0,
) -> SparseTensor:
    """The tensor that a stage wrote.  Arrays that it left short are filled with ``fill``."""
    levels: list[Arrays] = []
    count = 1
    extents = level_extents(shape, format)
    for number, (level, extent) in enumerate(zip(format.levels, extents, strict=True)):
        stored = {array: found for (at, array), found in arrays.items() if at == number}
        try:
            made = level.written(stored, count, extent)
        except PackingError as error:
            raise misfit(format, level, error) from None
        levels.append(made)
        count = level.positions(made, count, extent)
    values = arrays[None, "vals"]
    if len(values) < count:
        values = np.concatenate([values, np.full(count - len(values), fill, values.dtype)])
    return as_stored(shape, format, levels, values, fill=fill)
