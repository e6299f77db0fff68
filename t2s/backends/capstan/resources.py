"""What a program of patterns takes of the chip: PCU, PMU, MC and shuffle networks.

The chip is that of [Stardust, sec. 8]: 200 pattern compute units (PCU) of 6 stages and 16
lanes, 200 pattern memory units (PMU) of 65536 words, 80 memory controllers (MC) and 16 shuffle
networks.  The rules, with "copies" as the product of the factors of the patterns around that have
patterns or transfers inside; the factor of an innermost pattern is lanes of a vector:

* MC: one for each copy of a transfer, and one for each port of a sparse DRAM.
* Shuf: one for each partition of the partitioned sparse SRAMs that an outermost pattern reaches;
  the most of any of them, as they follow one another.  There are never more than 16, which more
  partitions share.
* PMU: one for each copy of a memory on the chip and each 65536 words, two if it is declared inside
  of a pattern (the next iteration fills one while this one reads the other); one for each
  partition, for each port of a sparse DRAM (requests under way), and for each copy of a queue.
  Bits that a loop takes word by word pass through without one.
* PCU: for each copy of a body one for six operations, each different one once, without the
  addresses of dense SRAMs, which memory units compute.  A body with patterns or transfers inside
  takes at least one.  It is cut where it waits for words of a sparse DRAM: operations on them are
  in other units.  A reduction adds the tree of its lanes and an accumulator, a stage each; results
  of copies are added by one more operation for each.  A block transfer takes one for its commands
  and one for its words, one more if it begins anywhere in a burst, and one more for the answers to
  stores.

MC and Shuf are exact for the published kernels, up to what docs/capstan.md says.  PMU and PCU are
estimates: nobody has published how the tools cut bodies into units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from t2s.backends.capstan.chip_picture import chip_picture
from t2s.backends.capstan.unit_count import CHIP, ChipUnit, OwnedUnits, owned_units
from t2s.core.notebook import NotebookCard, NotebookDisplay
from t2s.core.svg import SvgPicture
from t2s.core.tables import Table
from t2s.core.walk import Term
from t2s.patterns.ir import PatternProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipUse(Term):
    """How many units of a kind a program takes, and how many there are."""

    unit: ChipUnit
    used: int
    available: int

    @property
    def share(self) -> float:
        """The part of the units that is used: above 1 if there are too few."""
        return self.used / self.available


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipResources(Term, NotebookDisplay):
    """What a program takes of the chip, a row for each kind of unit; ``[unit]`` finds a row.

    ``outer_par`` is the environment's factor of outermost patterns; ``owned`` says what the units
    of a row are for.
    """

    program: str
    outer_par: int
    rows: tuple[ChipUse, ...]
    owned: tuple[OwnedUnits, ...]

    def __iter__(self) -> Iterator[ChipUse]:
        return iter(self.rows)

    def __getitem__(self, unit: ChipUnit | str) -> ChipUse:
        for row in self.rows:
            if unit in (row.unit, row.unit.value):
                return row
        raise KeyError(unit)

    @property
    def limiting(self) -> ChipUse:
        """The unit of which the greatest part is used."""
        return max(self.rows, key=lambda row: row.share)

    @property
    def fits(self) -> bool:
        """Whether the chip has all units."""
        return all(row.used <= row.available for row in self.rows)

    @property
    def table(self) -> Table:
        """Used and available units, the share in percent, and a mark at the limiting one."""
        limit = self.limiting.unit
        rows = tuple(
            (
                row.unit.value,
                str(row.used),
                str(row.available),
                f"{row.share:.0%}",
                _mark(row, row.unit is limit),
            )
            for row in self.rows
        )
        return Table(
            title=f"{self.program}: units of the chip, outer_par {self.outer_par}",
            headers=("unit", "used", "available", "share", ""),
            rows=rows,
            left=frozenset({0, 4}),
        )

    @property
    def owned_table(self) -> Table:
        """What the units are for: an array, a transfer, or the body of a pattern."""
        rows = tuple(
            (one.owner, one.unit.value, f"{one.used:,}", f"{one.used / CHIP[one.unit]:.1%}")
            for one in self.owned
        )
        return Table(
            title=f"{self.program}: what the units are for",
            headers=("of", "unit", "used", "share"),
            rows=rows,
            left=frozenset({0, 1}),
        )

    def picture(self) -> SvgPicture:
        """The chip with the units in the color of what they are for; their places are schematic."""
        return chip_picture(self.program, self.owned)

    def __str__(self) -> str:
        return self.table.text()

    def __rich__(self) -> Any:
        return self.table.rich()

    def _card(self) -> NotebookCard:
        """The units that are used of those that there are, and the chip with them."""
        return NotebookCard(title=f"{self.program} on the chip", parts=(self.table, self.picture()))


def _mark(row: ChipUse, limits: bool) -> str:
    if row.used > row.available:
        return "too many"
    return "limits" if limits else ""


def count_resources(program: PatternProgram) -> ChipResources:
    """The units that a program takes, by the rules above; it may take more than there are."""
    owned = owned_units(program)
    used = Counter[ChipUnit]()
    for one in owned:
        used[one.unit] += one.used
    return ChipResources(
        program=program.name,
        outer_par=dict(program.environment).get("bp", 1),
        rows=tuple(ChipUse(unit=unit, used=used[unit], available=CHIP[unit]) for unit in ChipUnit),
        owned=owned,
    )
