"""Columns of numbers: shapes and families, their loop nests, and what they cost, a row each.

``space.py`` computes them, for hundreds of thousands of rows at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, prod
from typing import Any, overload

import numpy as np

from t2s.core.expr import Expr, Parameter, evaluate
from t2s.core.walk import walk
from t2s.design_space.point import Drain, Feed

Columns = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits on the DSP and RAM blocks of a design; ``None`` for no limit."""

    dsp: int | None
    ram: int | None

    def allows(self, dsp: int, ram: int) -> bool:
        """Whether a design with so many blocks fits."""
        fits = self.dsp is None or dsp <= self.dsp
        return fits and (self.ram is None or ram <= self.ram)


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """Arrays of PEs with tiles and vectors, a row each.

    ``pes`` has a column for each loop that may be in space, 1 for those in time, ``tiles`` one for
    each output loop.
    """

    pes: Columns
    tiles: Columns
    lanes: Columns

    def __len__(self) -> int:
        return len(self.lanes)


@dataclass(frozen=True, kw_only=True)
class Ways:
    """How the operands of a contraction reach the PEs, and how its results leave."""

    feeds: tuple[Feed, ...]
    drain: Drain


@dataclass(frozen=True, kw_only=True)
class Family:
    """PEs along each loop, the vector length and the ways: designs with any tiles.

    ``bound`` is a bound for all of them, ``estimate`` what the best of them may take.
    """

    pes: tuple[int, ...]
    lanes: int
    ways: Ways
    bound: int
    estimate: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Families(Sequence[Family]):
    """Families as columns, a row each, those with the least bound first.

    ``way`` is the place of a family among ``ways``.  ``dsp``, ``ram`` and ``bytes`` are the least
    of its designs.
    """

    ways: tuple[Ways, ...]
    way: Columns
    pes: Columns
    lanes: Columns
    bound: Columns
    estimate: np.ndarray[Any, np.dtype[np.float64]]
    dsp: Columns
    ram: Columns
    bytes: Columns

    def __len__(self) -> int:
        return len(self.bound)

    @overload
    def __getitem__(self, at: int) -> Family: ...

    @overload
    def __getitem__(self, at: slice) -> list[Family]: ...

    def __getitem__(self, at: int | slice) -> Family | list[Family]:
        if isinstance(at, slice):
            return [self[row] for row in range(*at.indices(len(self)))]
        return Family(
            pes=tuple(self.pes[at].tolist()),
            lanes=int(self.lanes[at]),
            ways=self.ways[self.way[at]],
            bound=int(self.bound[at]),
            estimate=float(self.estimate[at]),
        )


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Of points, a row each: lower bounds in cycles, blocks, bytes moved, and which are legal.

    ``bytes`` are those of the elements that are loaded and stored, ``traffic`` those of the lines
    of a DRAM that they are in, as far as a point tells.
    """

    bound: Columns
    dsp: Columns
    ram: Columns
    bytes: Columns
    traffic: Columns
    legal: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Nest:
    """The loop nests of shapes.

    Of the ``array`` of PEs those at the ``ends`` of the reductions in space have the results, after
    ``chain`` PEs each.  ``padded`` has the iterations of each loop, ``steps`` a column for each
    reduction in time, ``sums`` their product and ``step`` the cycles of one of them; a sum is there
    for the next one after ``carried`` cycles, and ``next_block`` are the cycles of the last one.  A
    sum is in the last PE of a chain ``through`` cycles after it was in the first one; ``held`` is
    what a PE holds at once, ``bits`` and ``bytes`` those of a result, ``after`` the cycles from the
    last step to the end.
    """

    pes: Columns
    tiles: Columns
    lanes: Columns
    padded: Columns
    array: Columns
    ends: Columns
    chain: Columns
    blocks: Columns
    results: Columns
    steps: Columns
    sums: Columns
    step: Columns
    next_block: Columns
    through: Columns
    held: Columns
    bits: Columns
    bytes: Columns
    after: Columns
    carried: Columns
    masks: np.ndarray[Any, np.dtype[np.bool_]]
    any_tiles: bool


@dataclass(frozen=True, kw_only=True)
class LoadCosts:
    """What an operand costs; ``widest`` are the bytes of one access.

    Of its ``bytes`` a DRAM moves at least ``least``, and is expected to move ``lines``.
    Before the first step of all PEs ``first`` bytes are loaded in ``fill`` cycles, before that of
    the first one ``alone`` in ``begun``; the last PE begins ``skew`` cycles after the first one;
    ``streamed`` are the cycles from the first load to the last step, and ``stalls`` those in which
    feeders wait, since tokens reach a chain of them less often than once in a cycle.
    """

    bytes: Columns
    widest: Columns
    least: Columns
    lines: Columns
    first: Columns
    fill: Columns
    alone: Columns
    begun: Columns
    skew: Columns
    streamed: Columns
    stalls: Columns
    dsp: Columns
    ram: Columns
    legal: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class DrainCosts:
    """What results cost; ``widest`` are the bytes of one access.

    The last ones leave ``tail`` cycles after they are computed; those of each block before stall
    the PEs for ``stalls`` cycles; ``streamed`` are the cycles in which they leave one by one, and
    ``hops`` the units that the results of the last PE pass.
    """

    bytes: Columns
    widest: Columns
    lines: Columns
    tail: Columns
    stalls: Columns
    streamed: Columns
    hops: Columns
    ram: Columns
    legal: np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class LoadUnit:
    """What loads an operand, computed if it is a Func: its blocks and widths.

    Each token has so many ``bits``, for which ``bytes`` are loaded, ``widest`` of them at once.
    """

    dsp: Fraction
    ram: int
    bits: int
    bytes: int
    widest: int


@dataclass(frozen=True, kw_only=True)
class Datapath:
    """A PE: its DSP blocks, halves of which two multipliers share, its latencies, and its loads.

    ``padded`` are the blocks where a reduction in space is longer than the sum: terms beyond the
    end are masked, which may part a sum from its products.  ``latency`` is that from operands to a
    result, ``carried`` that from a partial result to the next one.
    """

    pe: Fraction
    padded: Fraction
    latency: int
    carried: int
    loads: Mapping[str, LoadUnit]


_MOST_COUNTED = 1 << 22
"""Iterations for which conditions are counted."""


@lru_cache(maxsize=64)
def counts_of(condition: Expr, ranges: tuple[tuple[str, int, int], ...]) -> Columns | None:
    """In how many of the first iterations of loops a condition holds, for each number of them.

    ``ranges`` are (loop, minimum, extent); ``None`` if that is not known.
    """
    extents = [extent for _, _, extent in ranges]
    if (
        any(isinstance(term, Parameter) for term in walk(condition))
        or prod(extents) > _MOST_COUNTED
    ):
        return None
    axes = np.ix_(*(np.arange(low, low + extent, dtype=np.int32) for _, low, extent in ranges))
    names = [name for name, _, _ in ranges]
    with np.errstate(all="ignore"):
        holds = evaluate(condition, dict(zip(names, axes, strict=True)))
    counts = np.zeros([extent + 1 for extent in extents], np.int64)
    counts[(slice(1, None),) * len(extents)] = holds
    for axis in range(len(extents)):
        np.cumsum(counts, axis=axis, out=counts)
    return counts


def smallest_tiles(extent: int) -> list[int]:
    """For each number of blocks the smallest tile that covers the extent, in rising order."""
    return sorted({ceil(extent / blocks) for blocks in range(1, extent + 1)})


def step_of(results: Columns, carried: Columns, chain: Columns) -> Columns:
    """The cycles of a step: all firings of a PE are as far apart as its partial results demand."""
    apart = results * np.maximum(1, -(-carried // results))
    step: Columns = np.where(chain > 1, np.maximum(results, carried), apart)
    return step
