"""How much hardware there is: blocks of a step, fused lanes, units of machines and of structure."""

from __future__ import annotations

from typing import NoReturn

from t2s.core.errors import UserError
from t2s.driver.product.product_schedule import Duty, ProductSchedule
from t2s.reduction.carry import Target
from t2s.sparse_repr.representation.chain_layout import BlockJob, units_of
from t2s.sparse_repr.representation.chain_words import MatrixDimension
from t2s.sparse_repr.representation.hardware.product import NodeName
from t2s.sparse_repr.representation.product_definition import ProductDefinition, unsupported
from t2s.sparse_repr.representation.storage import Storage
from t2s.spatial.directive import Directive
from t2s.spatial.sparse_directives import LoadStructure

MOST_MULTIPLIERS = 256
"""Multipliers of a design: each is a unit of its own, with a channel to it from each of many."""


def check_size(definition: ProductDefinition, machines: int, block: int) -> None:
    """Refuse designs that are too large to be built."""
    if machines * block > MOST_MULTIPLIERS:
        scheduling = definition.matrix.chain.layout.schedule
        assert scheduling is not None
        each = f" of {block} multipliers each" if block > 1 else ""
        unsupported(
            scheduling.location,
            f"{definition.func.name} has too many multipliers",
            f"at most {MOST_MULTIPLIERS} of all machines together",
            f"{machines} machines{each}",
        )


MOST_WAYS = 1024
"""Multipliers times banks: every step passes all banks."""


def banks_of(schedule: ProductSchedule, machines: int, block: int) -> int:
    """Banks of the dense operand; 0 is a copy for each multiplier."""
    directive = schedule.banked
    if directive is None:
        return 0
    definition = schedule.definition
    if definition.side is not None:
        unsupported(
            directive.location,
            f"{directive.text} is not possible for several right-hand sides",
            f"a product of one vector, or buffer({directive.operand})",
            f"{definition.width} right-hand sides",
        )
    if machines * block * directive.banks > MOST_WAYS:
        unsupported(
            directive.location,
            f"{directive.text} has too many banks for so many multipliers",
            f"at most {MOST_WAYS // (machines * block)} banks",
            f"{machines * block} multipliers",
        )
    return directive.banks


def block_of(schedule: ProductSchedule, storage: Storage, continuous: bool) -> tuple[int, int]:
    """Values that a machine handles in a step, and their rows, from a tile of the positions."""
    definition = schedule.definition
    for name, directive in schedule.tiles.items():
        (loop,), (inner,), (factor,) = directive.loops, directive.inners, directive.factors
        if loop != definition.position:
            continue
        if inner not in schedule.unrolled.get(name, set()):
            unsupported(
                directive.location,
                f"{directive.text} on {name} leaves {inner} in time",
                f"unroll({inner}): a multiplier for each",
                directive.text,
            )
        if storage.layout.rows_of_values:
            values, rows, where = _slots_of_a_job(storage), 1, ", Length(b)) in the chain"
        else:
            values, rows = _rows_of_a_unit(storage)
            rows, where = 1 if continuous else rows, ") before pack"
        at_once = max(1, factor // values)
        if values % factor and not (factor == values * at_once and rows % at_once == 0):
            several = f", or {values} for each of a divisor of {rows} rows" if rows > 1 else ""
            raise UserError(
                f"{directive.text} on {name}: a row may end inside of a block of {factor} values",
                location=directive.location,
                expected=f"a divisor of {values}, the values of a block of"
                f" {definition.matrix.name}{several}",
                given=str(factor),
                hint=f"block(Columns, {factor}, Zero{where} makes such blocks",
            )
        return factor, at_once
    return 1, 1


def _slots_of_a_job(storage: Storage) -> int:
    """How many values of a row always follow one another."""
    layout = storage.layout
    job = layout.schedule.job if layout.schedule is not None else None
    return job.slots if isinstance(job, BlockJob) else layout.block_slots


def _rows_of_a_unit(storage: Storage) -> tuple[int, int]:
    """Values of a row that follow one another in a unit, and rows next to each other that do."""
    values = 1
    for digit in reversed(units_of(storage.layout, storage.shape).digits):
        if digit.dimension is MatrixDimension.ROWS and digit.extent > 1:
            return values, digit.extent if digit.stride == 1 else 1
        values *= digit.extent
    return values, 1


def combined_of(schedule: ProductSchedule, machines: int, continuous: bool) -> bool:
    """Whether machines are combined; checks all ``combine_reduction``."""
    definition = schedule.definition
    inner = {
        tile.inners[0] for tile in schedule.tiles.values() if tile.loops[0] == definition.position
    }
    found = False
    for loop, directive in schedule.combined.items():
        if loop in inner and directive.target is Target.SAME:
            continue  # the adder tree
        if loop == definition.machine and not continuous:
            _needs_continuous(schedule, directive)
        if loop == definition.machine and machines == 2 and not found:
            found = directive.target is Target.MAYBE_DIFFERENT
        if not found:
            unsupported(
                directive.location,
                f"{directive.text} is not possible here",
                f"SameTarget for the elements of a block, MaybeDifferentTarget for"
                f" {definition.machine} over two machines",
                f"{machines} machines",
            )
    return found


def _needs_continuous(schedule: ProductSchedule, directive: Directive) -> NoReturn:
    """Machines whose values are of rows in no order share nothing but the sums at the end."""
    definition = schedule.definition
    unsupported(
        directive.location,
        f"{directive.text} on {definition.func.name} needs the values of a row one after the other",
        "a chain of rows, or is_continuous_reduction where the matrix allows it",
        repr(definition.matrix.chain),
    )


def fused_of(schedule: ProductSchedule, machines: int, combined: bool, continuous: bool) -> int:
    """Lanes of one reduction circuit, from a tile of the machines."""
    definition = schedule.definition
    directive = schedule.tiles.get(definition.func.name)
    if directive is None or directive.loops[0] != definition.machine:
        return 1
    (inner,), (factor,) = directive.inners, directive.factors
    if machines % factor or combined:
        raise UserError(
            f"{directive.text} on {definition.func.name} does not divide the machines",
            location=directive.location,
            expected=f"a divisor of {machines}, without combining machines",
            given=str(factor),
        )
    if inner in schedule.unrolled.get(definition.func.name, set()):
        return 1
    if not continuous:
        _needs_continuous(schedule, directive)
    return factor


def check_structure(schedule: ProductSchedule) -> None:
    """All parts of the structure that the decoder reads are loaded, and no others."""
    matrix = schedule.definition.matrix
    needed = matrix.decoder.streams()
    loaded: dict[str, LoadStructure] = {}
    for name, directive in schedule.loads:
        for part in directive.parts:
            if part not in needed:
                raise UserError(
                    f"{directive.text} on {name}: the inverse map of {matrix.name} does not use"
                    f" {part}",
                    location=directive.location,
                    expected=f"parts of {', '.join(needed)}",
                    given=part,
                )
            loaded[part] = directive
            if schedule.duties.get(name) is not Duty.LOAD_MATRIX:
                schedule.structure[part] = NodeName(name=name, location=directive.location)
    missing = [part for part in needed if part not in loaded]
    if loaded and missing:
        last = schedule.loads[-1][1]
        raise UserError(
            f"nothing loads {missing[0]}, which the inverse map of {matrix.name} needs",
            location=last.location,
            expected=f"load_structure({', '.join(needed)})",
            given=last.text,
        )


def check_unrolled(schedule: ProductSchedule) -> None:
    """Machines are hardware: where a part has directives, its loop over machines is in space."""
    definition = schedule.definition
    for duty in (Duty.LOAD_MATRIX, Duty.MULTIPLY):
        part = schedule.parts.get(duty)
        if part is None or definition.machine in schedule.unrolled.get(part.name, set()):
            continue
        if duty is Duty.MULTIPLY or Duty.MULTIPLY not in schedule.parts:
            raise UserError(
                f"{part.name} is one unit for all machines",
                location=part.location,
                expected=f"{part.name}.unroll({definition.machine}): a unit for each machine",
                given=f"no unroll({definition.machine}) on {part.name}",
            )
