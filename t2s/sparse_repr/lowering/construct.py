"""Construction: the writers of the result."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.sparse_repr.blocks.arrays import StoreValues
from t2s.sparse_repr.blocks.locators import LocateAddress
from t2s.sparse_repr.blocks.repeats import Repeat
from t2s.sparse_repr.blocks.storage import WriteLevel
from t2s.sparse_repr.blocks.writers import WriteValues
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.lowering.diagram import DiagramWire, TokenKind
from t2s.sparse_repr.lowering.reduce import Computed
from t2s.sparse_repr.lowering.scope import Blocks, LoopLevel, NestScope
from t2s.sparse_repr.notation.ir import Access


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
