"""The ten kernels of [Stardust], from ``examples/stardust``, and what its tables 4 and 6 say."""

from __future__ import annotations

import ast
import runpy
from dataclasses import dataclass, replace
from pathlib import Path

from t2s.backends.capstan.resources import CHIP, ChipUnit
from t2s.sparse import CapstanKernel, Schedule
from t2s.sparse_repr.concrete.pattern_directives import SetEnvironment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "stardust"


@dataclass(frozen=True, kw_only=True)
class PublishedKernel:
    """A kernel as published.

    Attributes
    ----------
    input_lines, spatial_lines: table 4: what the user writes, and what is emitted.
    outer_par, pcu, pmu, controllers, shuffles: table 6, the units of the chip.
    """

    name: str
    input_lines: int
    spatial_lines: int
    outer_par: int
    pcu: int
    pmu: int
    controllers: int
    shuffles: int

    @property
    def units(self) -> dict[ChipUnit, int]:
        """Table 6."""
        used = self.pcu, self.pmu, self.controllers, self.shuffles
        return dict(zip(ChipUnit, used, strict=True))

    @property
    def limiting(self) -> ChipUnit:
        """The unit with the highest percentage in table 6 (its marks are lost in the text)."""
        return max(self.units, key=lambda unit: self.units[unit] / CHIP[unit])

    @property
    def file(self) -> Path:
        """The example."""
        return EXAMPLES / f"{self.name.lower()}.py"

    def kernel(self) -> CapstanKernel:
        """The example's kernel, at the published ``outer_par``."""
        found = runpy.run_path(str(self.file))["kernel"]
        assert isinstance(found, CapstanKernel)
        return found

    def fitted(self) -> CapstanKernel:
        """The same kernel with the largest ``outer_par`` that fits the chip."""
        return self.with_outer_par("fit")

    def with_outer_par(self, factor: int | str) -> CapstanKernel:
        """The same kernel with another ``outer_par``; ``UserError`` if it does not fit."""
        example = runpy.run_path(str(self.file))
        schedule = example.get("schedule", Schedule()).env("bp", factor)
        *kept, told = schedule.directives
        kept = [one for one in kept if not (isinstance(one, SetEnvironment) and one.name == "bp")]
        return CapstanKernel(
            example["kernel"].assignment, replace(schedule, directives=(*kept, told))
        )

    def said(self) -> int:
        """Lines of formats, algorithm, schedule and compilation in the example."""
        lines = 0
        for statement in ast.parse(self.file.read_text(encoding="utf-8")).body:
            match statement:
                case ast.Import() | ast.ImportFrom() | ast.If() | ast.Expr(value=ast.Constant()):
                    continue
            assert statement.end_lineno is not None
            lines += statement.end_lineno - statement.lineno + 1
        return lines


def _row(name: str, *numbers: int) -> PublishedKernel:
    said, spatial, outer_par, pcu, pmu, controllers, shuffles = numbers
    return PublishedKernel(
        name=name,
        input_lines=said,
        spatial_lines=spatial,
        outer_par=outer_par,
        pcu=pcu,
        pmu=pmu,
        controllers=controllers,
        shuffles=shuffles,
    )


PAPER = (
    _row("SpMV", 10, 44, 16, 44, 41, 35, 16),
    _row("Plus3", 8, 91, 8, 55, 100, 58, 8),
    _row("SDDMM", 17, 62, 12, 163, 90, 61, 0),
    _row("MatTransMul", 13, 50, 16, 47, 66, 36, 16),
    _row("Residual", 9, 48, 16, 43, 65, 36, 16),
    _row("TTV", 13, 73, 16, 93, 91, 67, 16),
    _row("TTM", 11, 83, 12, 161, 89, 70, 0),
    _row("MTTKRP", 15, 86, 8, 140, 70, 58, 0),
    _row("InnerProd", 11, 115, 8, 53, 155, 80, 0),
    _row("Plus2", 6, 163, 1, 10, 23, 14, 2),
)
"""Tables 4 and 6: lines; outer_par, PCU, PMU, MC, shuffle networks."""
