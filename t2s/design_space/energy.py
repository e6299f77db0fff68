"""The energy of designs: counts of each kind of access, weighted by a table of prices.

Counts follow from a point, as its blocks do: ``counts`` has them as columns of numbers, equal to
what a run of the design counts.  So the dynamic energy of a point is known before it is built, and
only what each cycle costs waits for the exact cycles.  Where loaders compute an operand, what they
do for that is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.design_space.columns import Columns, Families, Nest, Shapes, Ways
from t2s.design_space.contraction import SearchedOperand
from t2s.design_space.point import Drain, Feed
from t2s.design_space.space import Space

CYCLE, DRAM_BYTE, RAM_BYTE, CHANNEL_BYTE = "cycle", "DRAM byte", "RAM byte", "channel byte"

KINDS: Mapping[str, str] = {
    CYCLE: "each cycle of the run, for what is always on",
    DRAM_BYTE: "bytes that loads and stores move",
    RAM_BYTE: "bytes that are written to buffers of operands, and read from them",
    CHANNEL_BYTE: "bytes that pass FIFOs: between loaders, feeders, PEs and unloaders",
    **{op.name.lower(): "each such operation of a PE, for each lane" for op in Op},
}
"""The kinds of access that a table may price, with what is counted."""

Reals = np.ndarray[Any, np.dtype[np.float64]]


def checked_prices(energy: object) -> dict[str, float]:
    """A table of prices, each a positive number or zero; ``UserError`` for anything else."""
    table = dict(energy) if isinstance(energy, Mapping) else {}
    unknown = next((kind for kind in table if kind not in KINDS), None)
    wrong = [k for k, price in table.items() if not _is_price(price)]
    if not table or unknown is not None or wrong or not any(table.values()):
        kinds = ", ".join(repr(kind) for kind in (CYCLE, DRAM_BYTE, RAM_BYTE, CHANNEL_BYTE))
        raise UserError(
            "energy= must map kinds of access to their energy",
            location=user_location(),
            expected=f"numbers of at least 0 for {kinds}, and operations such as 'multiply' "
            "and 'add', not all 0",
            given=repr(unknown if unknown is not None else energy)[:200],
            hint='for example energy={"DRAM byte": 20.0, "RAM byte": 1.2, "multiply": 3.7}',
        )
    return {kind: float(price) for kind, price in table.items()}


def _is_price(price: object) -> bool:
    number = isinstance(price, int | float) and not isinstance(price, bool)
    return number and 0 <= price < float("inf")  # type: ignore[operator]


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Prices of the kinds of access, and the operations of one evaluation by vector length."""

    prices: Mapping[str, float]
    operations: Mapping[int, Mapping[str, int]]

    @property
    def of_cycle(self) -> float:
        return self.prices.get(CYCLE, 0.0)

    def dynamic(self, space: Space, shapes: Shapes, ways: Ways, moved: Columns) -> Reals:
        """The energy of each row without what cycles cost; ``moved`` are its bytes."""
        total = np.zeros(len(shapes))
        for kind, count in counts(self.operations, space, shapes, ways, moved).items():
            total = total + count * self.prices.get(kind, 0.0)
        return total

    def of_families(self, space: Space, families: Families) -> Reals:
        """Lower bounds for all designs of each family: what the least that they cost adds up to."""
        bounds: Reals = self.of_cycle * families.bound.astype(np.float64)
        for at, ways in enumerate(families.ways):
            rows = np.flatnonzero(families.way == at)
            shapes = space.of_one_block(families.pes[rows], families.lanes[rows])
            bounds[rows] += self.dynamic(space, shapes, ways, families.bytes[rows])
        return bounds


def counts(
    operations: Mapping[int, Mapping[str, int]],
    space: Space,
    shapes: Shapes,
    ways: Ways,
    moved: Columns,
) -> dict[str, Columns]:
    """The counts of each kind but cycles; ``moved`` are the bytes of loads and stores."""
    loops, lanes = space.contraction.loops_in_space, shapes.lanes
    nest = space.nest(shapes)
    blocks, array = nest.blocks, nest.array
    steps = blocks * nest.results * nest.sums
    channel = np.zeros(len(shapes), np.int64)
    ram = channel.copy()
    for operand, feed in zip(space.contraction.operands, ways.feeds, strict=True):
        varies = np.array([loop.name in operand.varies for loop in loops], bool)
        own = np.where(varies, shapes.pes, 1).prod(axis=1)
        width = space.vector_of(operand, lanes) * operand.type.bits // 8
        match feed:
            case Feed.DIRECT:
                channel += steps * array * width
            case Feed.FORWARDED:
                channel += steps * array * width
            case Feed.BUFFERED:
                streamed = _streamed(space, operand, nest, own)
                outputs = space.of_outputs(np.where(varies, shapes.pes, 1))
                passed = _scattered(streamed, outputs)
                ram += (streamed + steps * own) * width
                channel += (streamed + passed + steps * array) * width
            case Feed.BUFFERED_APART:  # from a loader for each feeder, past no other feeder
                streamed = _streamed(space, operand, nest, own)
                ram += (streamed + steps * own) * width
                channel += (streamed + steps * array) * width
    stored = blocks * nest.results * nest.ends
    width = nest.bytes
    channel += stored * width
    # sums that pass chains of PEs, and go back to the first one
    handed_on = nest.array * nest.sums - nest.ends
    channel += np.where(nest.chain > 1, blocks * nest.results * handed_on * width, 0)
    for operand in space.contraction.initial:
        channel += stored * space.vector_of(operand, lanes) * operand.type.bits // 8
    if ways.drain is Drain.GATHERED:
        # the last chain passes whole words of the unloader, which fill up from PE to PE
        last = space.stored_vector(shapes.pes) - 1
        pes = space.of_outputs(shapes.pes)
        passed = _scattered(stored, pes) + stored * last - stored * last // 2
        channel += (stored * (pes > 1).sum(axis=1) + passed) * width
    evaluations = _evaluations(space, lanes)
    found = {DRAM_BYTE: moved, RAM_BYTE: ram, CHANNEL_BYTE: channel}
    for kind in {kind for each in operations.values() for kind in each}:
        of_lanes = np.zeros(max(operations) + 1, np.int64)
        for length, each in operations.items():
            of_lanes[length] = each.get(kind, 0)
        found[kind] = evaluations * of_lanes[lanes]
    return found


def _evaluations(space: Space, lanes: Columns) -> Columns:
    """Vectors of the term that PEs evaluate; padding is not evaluated."""
    of_one_pe = np.ones((len(lanes), len(space.contraction.loops_in_space)), np.int64)
    terms = space.steps_of(lanes, of_one_pe).prod(axis=1)
    evaluations: Columns = space.extents_of(lanes).prod(axis=1) * terms
    return evaluations


def _streamed(space: Space, operand: SearchedOperand, nest: Nest, own: Columns) -> Columns:
    """Tokens from the loader of a buffered operand."""
    varies = [loop.name in operand.varies for loop in space.contraction.outputs]
    held = np.where(np.array(varies, bool), nest.tiles, 1).prod(axis=1)
    tokens: Columns = nest.blocks * held * own * space.sums_of(operand, nest)
    return tokens


def _scattered(tokens: Columns, along: Columns) -> Columns:
    """Tokens that units pass on to the next one, half of a chain on average, for each loop."""
    passed: Columns = tokens * (along - 1).sum(axis=1) // 2
    return passed
