"""``SparseSearchResult``: the points of a search, the best as a program, and why others lost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted, Table
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.names import counted
from t2s.core.validate import as_int
from t2s.driver.assignment_design import SparseResult
from t2s.driver.compiled_kernel import Kernel
from t2s.sparse_repr.notation.ir import print_assignment

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram

SHOWN_POINTS = 10


class Measurement(Enum):
    """What the cycles of a point are of."""

    FULL = "full run"
    SAMPLE = "sample"
    CUT = "cut"
    SAMPLE_CUT = "sample, cut"


RANKS = (Measurement.FULL, Measurement.CUT, Measurement.SAMPLE, Measurement.SAMPLE_CUT)


@dataclass(frozen=True, kw_only=True)
class SparsePoint:
    """A legal point of the space.

    Attributes
    ----------
    order: the loops, outermost first.
    formats: of all tensors, as text.
    lanes: of the outermost loop.
    schedule: all directives as text, for ``sparse.compile``.
    blocks: the number of blocks of its diagrams.
    cycles: of a full run; of the sample; or the number after which a run was cut, because a point
        was known by then that takes no more.
    measurement: which of these.
    """

    order: tuple[str, ...]
    formats: Mapping[str, str]
    lanes: int
    schedule: str
    blocks: int
    cycles: int
    measurement: Measurement

    @property
    def cycles_text(self) -> str:
        """The cycles with what they are: ``1,204``, ``> 1,204``, ``1,204 (sample)``."""
        match self.measurement:
            case Measurement.FULL:
                return f"{self.cycles:,}"
            case Measurement.CUT:
                return f"> {self.cycles:,}"
            case Measurement.SAMPLE:
                return f"{self.cycles:,} (sample)"
            case Measurement.SAMPLE_CUT:
                return f"> {self.cycles:,} (sample)"

    @property
    def formats_text(self) -> str:
        """The formats in one line."""
        return " ".join(f"{name}:{format}" for name, format in self.formats.items())


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SparseSearchResult(NotebookDisplay):
    """The result of ``sparse.search``.

    Attributes
    ----------
    kernel: the compiled winner; all verbs take it with the inputs of the search.
    points: all that were tried, the winner first; see ``SparsePoint.measurement``.
    refused: how many points the compiler refused, by the first line of its error.
    ruled_out: how many points were not run, because a lower bound showed that they are no better.
    default_cycles: of the declared formats without a schedule; ``None`` if these do not fit each
        other, or take more than ten million cycles, as ``saved`` says then.
    simulated_cycles: of all runs of the search.
    cpu_seconds: of the search.
    finished: whether all of the space was tried; ``False`` after Ctrl-C and ``seconds``.
    interrupted: whether Ctrl-C ended the search.
    sampled: what the samples were of, in words; empty if all runs were of all data.
    checked: whether the values of the winner were compared with numpy; they are unless an array
        is too large to be dense.
    space: the space in words.
    """

    kernel: Kernel
    points: tuple[SparsePoint, ...]
    refused: Mapping[str, int]
    ruled_out: int
    default_cycles: int | None
    default_text: str
    simulated_cycles: int
    cpu_seconds: float
    finished: bool
    interrupted: bool
    sampled: str
    checked: bool
    space: str
    device: str | Device = "ideal"
    memory: str | Dram | None = None
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _inputs: Mapping[str, Any] = field(default_factory=dict)
    _compiled: Mapping[int, Kernel] = field(default_factory=dict)

    @property
    def best(self) -> SparsePoint:
        """The winner."""
        return self.points[0]

    @property
    def cycles(self) -> int:
        """The cycles of the winner, of a run on all data."""
        return self.best.cycles

    @property
    def schedule(self) -> str:
        """The directives of the winner as text."""
        return self.best.schedule

    @property
    def formats(self) -> Mapping[str, str]:
        """The formats of the winner."""
        return self.best.formats

    @property
    def tried(self) -> int:
        """The number of legal points that were run."""
        return len(self.points)

    @property
    def front(self) -> tuple[SparsePoint, ...]:
        """The fully run points with fewer blocks than all that are faster, the fastest first."""
        front: list[SparsePoint] = []
        for point in self.points:
            full = point.measurement is Measurement.FULL
            if full and (not front or point.blocks < front[-1].blocks):
                front.append(point)
        return tuple(front)

    @property
    def spent(self) -> str:
        """What the search cost, and what bounds and cut runs saved of it."""
        full = sum(point.measurement is Measurement.FULL for point in self.points)
        return (
            f"{counted(self.tried, 'point')} run, {full:,} to the end; {self.ruled_out:,} ruled "
            f"out by a bound; {self.simulated_cycles:,} cycles simulated"
        )

    @property
    def saved(self) -> str:
        """What the declared formats would take without a schedule."""
        if self.default_cycles is None:
            return self.default_text
        ratio = self.default_cycles / max(1, self.cycles)
        return (
            f"{self.default_text}: {self.default_cycles:,} cycles, {ratio:.2f} times those of the "
            "best"
        )

    def program(self) -> str:
        """The Python text that makes the winner, as ``kernel``."""
        formats = ", ".join(f'"{name}": "{format}"' for name, format in self.formats.items())
        keywords = "".join(f', {name}="{value}"' for name, value in self._machine.items())
        return (
            "import t2s\n"
            "from t2s import sparse\n\n"
            f'assignment = sparse.parse("{print_assignment(self.kernel.assignment)}", '
            f"{{{formats}}})\n"
            f'kernel = sparse.compile(assignment, "{self.schedule}")\n'
            f"# t2s.cycles(kernel, inputs{keywords}) is {self.cycles}\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write ``program()`` to a file."""
        file = Path(path)
        file.write_text(self.program(), encoding="utf-8")
        return file

    @property
    def command(self) -> str:
        """The ``t2s tensor`` line that runs the winner.

        Inputs that came as files are named; others are ``NAME.mtx``, or ``NAME.npy`` and
        ``NAME.tns`` if they are no matrices, which ``sparse.write`` makes.
        """
        words = ["t2s", "tensor", print_assignment(self.kernel.assignment)]
        for name, format in self.formats.items():
            words += ["-f", f"{name}:{format}"] if format != "scalar" else []
        for name, value in self._inputs.items():
            suffix = {1: ".npy", 2: ".mtx"}.get(getattr(value, "order", 0), ".tns")
            words += self.sources.get(name, ("-i", f"{name}={name}{suffix}"))
        words += ["-s", self.schedule] if self.schedule else []
        for name, text in self._machine.items():
            words += [f"--{name}", text]
        return shlex.join(words)

    @property
    def _machine(self) -> dict[str, str]:
        """The device and the memory by their names, where they are not the usual ones."""
        parts = {"device": self.device, "memory": self.memory}
        names = {
            key: getattr(part, "name", part) for key, part in parts.items() if part is not None
        }
        return {key: str(name) for key, name in names.items() if (key, name) != ("device", "ideal")}

    def why(self, number: int) -> str:
        """Why point ``number`` (1 is the winner, 2 the runner-up) lost, from a run of each.

        Raises ``UserError`` if there is no such point.
        """
        from t2s.report.comparison import cycle_changes

        index = as_int(number)
        if index is None or not 2 <= index <= len(self.points):
            raise UserError(
                "why() takes the number of a point behind the winner",
                location=user_location(),
                expected=f"2 to {len(self.points)}" if len(self.points) > 1 else "another point",
                given=repr(number),
            )
        point, best = self.points[index - 1], self.best
        runs = [self._run(0), self._run(index - 1)]
        stages = [tuple(run.stages) for run in runs]
        several = max(map(len, stages)) > 1
        by_kind: dict[str, int] = {}
        for change in cycle_changes(*stages, several=several):  # type: ignore[arg-type]
            by_kind[change.use.kind.value] = by_kind.get(change.use.kind.value, 0) + change.change
        kind, most = max(by_kind.items(), key=lambda item: abs(item[1]), default=("nothing", 0))
        cycles = [run.cycles for run in runs]
        share = f" ({(cycles[1] - cycles[0]) / cycles[0]:+.1%})" if cycles[0] else ""
        lines = [
            f"{index}: {cycles[1]:,} cycles, {cycles[1] - cycles[0]:+,}{share}",
            f"  differs in {'; '.join(_differences(best, point))}",
            f"  busiest block: {_busiest(runs[1])}; of the best: {_busiest(runs[0])}",
            f"  largest change of the compute blocks' cycles: {kind}, {most:+,}",
        ]
        return "\n".join(lines)

    def _run(self, index: int) -> SparseResult:
        return self._compiled[index].simulate(
            self._inputs, device=self.device, memory=self.memory, progress=False
        )

    @property
    def table(self) -> Table:
        """The first points, the best first."""
        rows = tuple(
            (
                str(number),
                " ".join(point.order),
                point.formats_text,
                str(point.lanes),
                point.schedule,
                f"{point.blocks:,}",
                point.cycles_text,
            )
            for number, point in enumerate(self.points[:SHOWN_POINTS], 1)
        )
        headers = ("", "loops", "formats", "lanes", "schedule", "blocks", "cycles")
        return Table(title=self._title, headers=headers, rows=rows, left=frozenset({1, 2, 4}))

    @property
    def _title(self) -> str:
        ended = "" if self.finished else "; the space was not finished"
        return f"{print_assignment(self.kernel.assignment)}: {self.cycles:,} cycles{ended}"

    @property
    def _lines(self) -> tuple[str, ...]:
        lines = [f"space: {self.space}", f"spent: {self.spent}", f"saved: {self.saved}"]
        if self.sampled:
            lines.append(f"ranked by samples: {self.sampled}")
        if not self.checked:
            lines.append("values not compared with numpy: dense arrays would be too large")
        reasons = sorted(self.refused.items(), key=lambda item: -item[1])
        lines += [f"refused {count:,}: {reason}" for reason, count in reasons]
        return (*lines, self.command)

    def __repr__(self) -> str:
        return f"<SparseSearchResult {self._title}, {self.tried} points>"

    def __str__(self) -> str:
        return "\n".join((self.table.text(), *self._lines))

    def _card(self) -> NotebookCard:
        """The numbers, the best points, and the program of the winner."""
        summary = (("cycles", f"{self.cycles:,}"), ("spent", self.spent), ("saved", self.saved))
        program = Preformatted(title="The best as a program", text=self.program())
        return NotebookCard(title=self._title, summary=summary, parts=(self.table, program))


def _differences(best: SparsePoint, point: SparsePoint) -> list[str]:
    """The choices in which two points differ."""
    differences = []
    if best.order != point.order:
        differences.append(f"the order {' '.join(point.order)} in place of {' '.join(best.order)}")
    differences += [
        f"{name}:{format} in place of {best.formats[name]}"
        for name, format in point.formats.items()
        if best.formats[name] != format
    ]
    if best.lanes != point.lanes:
        differences.append(f"{point.lanes} lanes in place of {best.lanes}")
    if not differences:
        differences.append(f"{point.schedule} in place of {best.schedule}")
    return differences


def _busiest(run: SparseResult) -> str:
    """The node that fires most often, relative to its PEs."""
    nodes = [node for stage in run.stages for node in getattr(stage, "nodes", {}).values()]
    node = max(nodes, key=lambda node: node.firings / max(1, node.pe_count))
    return f"{node.name}, {node.firings // max(1, node.pe_count):,} firings"
