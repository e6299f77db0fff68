"""The space-time diagram: the state of every PE, in bins of the run and in windows by cycle.

All windows are sampled in one repetition of the run.  If a design has more PEs than the page has
rows, neighboring PEs of a node share a row with the sum of their cycles.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int
from t2s.graph.control.domains import Domain, domains
from t2s.graph.nodes import Machine, PEArray, Role
from t2s.report.page.markup import legend, script_data, tag
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.report.result import SimResult
from t2s.simulator.timeline import NO_CAUSE, PEState, Timeline, Window, checked_window

Integers = NDArray[np.int64]
Windows = Sequence[Window]

MOST_ROWS = 512
MOST_PES = 1 << 18
"""The most PEs of a design that is drawn over time."""

_BINS = 256
_CELLS = 12_000
_LONGEST, _SHORTEST = 128, 16
_EARLY = 20_000
"""A steady window begins before this cycle: a later one would have to simulate skipped
repetitions.
"""

_MOST_WINDOWS = 16
_MOST_EXACT = 1 << 18
"""The most PEs times cycles of a user's window that is drawn cycle by cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTimeRow:
    """A row of the diagram: the number of its node, and the label of its PEs.

    Places of the space domain without a PE are in no row.
    """

    node: int
    label: str
    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringPoints:
    """Loop indices of the firings of a node in a window, row by row.

    ``points`` has shape (loops, firings); ``rules`` are the names of a machine's rules, which its
    only index selects.  ``values`` are texts of the received and sent values, if inputs are given.
    """

    node: int
    loops: tuple[str, ...]
    points: PackedIntegers
    rules: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A window of the diagram.

    ``edges`` are those of a ``Timeline``.  ``cycles`` has the busy, waiting, starved and blocked
    cycles of each row and bin, all others are idle; ``causes`` the channel waited for most, as in a
    ``Timeline``, for rows with one PE; ``before`` the firings of each row before the window.
    """

    name: str
    edges: PackedIntegers
    cycles: PackedIntegers
    causes: PackedIntegers
    before: tuple[int, ...]
    exact: bool
    first: int
    last: int
    points: tuple[FiringPoints, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTimeModel:
    """The diagram: rows, windows (the first one is the whole run), and the names that they use."""

    nodes: tuple[str, ...]
    channels: tuple[str, ...]
    rows: tuple[SpaceTimeRow, ...]
    strips: tuple[Strip, ...]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Timelines of a run: of the whole run and of windows, with their names."""

    program: SimProgram
    whole: Timeline
    windows: tuple[tuple[str, Timeline], ...]

    @property
    def lines(self) -> tuple[tuple[str, Timeline], ...]:
        """All of them."""
        return (("whole run", self.whole), *self.windows)


def checked_windows(windows: object, of_run: int) -> list[Window]:
    """Check the user's windows; ``UserError`` unless they are a list of windows in the run."""
    location = user_location()
    expected = f"windows=[(first, last), ...] with cycles of 1 to {of_run:,}, first <= last"
    given = (
        list(windows) if isinstance(windows, Sequence) and not isinstance(windows, str) else None
    )
    if given is None or len(given) > _MOST_WINDOWS:
        raise UserError(
            "windows= must be a list of (first, last) pairs",
            location=location,
            expected=f"{expected}, {_MOST_WINDOWS} of them at most",
            given=repr(windows)[:200],
        )
    checked: list[Window] = []
    for window in given:
        pair = window if isinstance(window, Sequence) and len(window) == 2 else (None, None)
        first, last = as_int(pair[0]), as_int(pair[1])
        if first is None or last is None or not 1 <= first <= last <= of_run:
            raise UserError(
                "a window of the report is outside the run",
                location=location,
                expected=expected,
                given=repr(window)[:200],
            )
        checked.append((first, last))
    return checked


def observe(result: SimResult, windows: Windows) -> Observed | None:
    """Sample the whole run in bins, and windows by cycle; ``None`` if that is not possible.

    That is the case for a run without cycles, for machines on the reference engine or in a run so
    long that their trace is not kept, and for more than ``MOST_PES`` PEs.
    """
    program, count = result.program, result.program.pe_count
    if not (program.is_recorded and result.cycles and 0 < count <= MOST_PES):
        return None
    most = (
        _BINS if result.kernel != "array" else _BINS // 2
    )  # half of the budget suffices for repetitions
    named = [*_chosen(result), *((f"cycles {a:,} to {b:,}", (a, b)) for a, b in windows)]
    fitting = max(1, (1 << 21) // count)
    asked = [checked_window(None, result.cycles, bins=min(most, fitting), pe_count=count)]
    for _, (first, last) in named:
        length = last - first + 1
        bins = length if length * count <= _MOST_EXACT and length <= 4096 else min(most, fitting)
        asked.append(checked_window((first, last), result.cycles, bins=bins, pe_count=count))
    lines = result.timelines(asked)
    names = [name for name, _ in named]
    return Observed(
        program=program,
        whole=lines[0],
        windows=tuple(zip(names, lines[1:], strict=True)),
    )


def _chosen(result: SimResult) -> list[tuple[str, Window]]:
    """The default windows: the begin, the steady state and the end of a run; a short run is shown
    whole.

    A very short run has a bin for each cycle.
    """
    cycles = result.cycles
    if cycles <= min(_BINS, (1 << 21) // result.program.pe_count):
        return []
    length = max(_SHORTEST, min(_LONGEST, _CELLS // result.program.pe_count))
    if cycles <= 3 * length:
        return [("every cycle", (1, cycles))]
    begin = _computes_from(result)
    begin = 1 if begin <= length else min(begin - length // 4, cycles - length + 1)
    middle = max(begin + length, min((cycles - length) // 2, _EARLY))
    middle = min(middle, cycles - length + 1)
    return [
        ("fill", (begin, begin + length - 1)),
        ("steady", (middle, middle + length - 1)),
        ("drain", (cycles - length + 1, cycles)),
    ]


FiringTexts = Mapping[tuple[int, int], str]
"""The values that a PE received and sent in a cycle."""


def _computes_from(result: SimResult) -> int:
    """The cycle of the first firing of a compute node; 1 if there is none."""
    nodes = (node for node in result.nodes.values() if node.role is Role.COMPUTE)
    return min((node.first_firing for node in nodes if node.first_firing is not None), default=1)


def space_time_of(observed: Observed, values: FiringTexts) -> SpaceTimeModel:
    """The diagram, with the texts of firings in ``values``."""
    program = observed.program
    rows = _rows(program)
    shared = any(row.count > 1 for row in rows)
    strips = []
    for name, line in observed.lines:
        strip = _strip(name, line, rows)
        if strip.exact and not shared:
            points = _points(line, values)
            strip = replace(strip, points=points)
        strips.append(strip)
    return SpaceTimeModel(
        nodes=tuple(timing.node.name for timing in program.nodes),
        channels=tuple(timing.channel.name for timing in program.channels),
        rows=rows,
        strips=tuple(strips),
    )


def _rows(program: SimProgram) -> tuple[SpaceTimeRow, ...]:
    share = max(1, -(-program.pe_count // MOST_ROWS))
    rows: list[SpaceTimeRow] = []
    for number, timing in enumerate(program.nodes):
        present = np.flatnonzero(timing.node.there) + timing.first
        for at in range(0, len(present), share):
            pes = present[at : at + share].tolist()
            label = program.pe_label(pes[0])
            if len(pes) > 1:
                label += f" to {program.pe_label(pes[-1])}"
            rows.append(SpaceTimeRow(node=number, label=label, first=pes[0], count=len(pes)))
    return tuple(rows)


def _strip(name: str, line: Timeline, rows: Sequence[SpaceTimeRow]) -> Strip:
    starts = [row.first for row in rows]
    cycles = np.add.reduceat(line.cycles[: PEState.IDLE], starts, axis=1)
    causes = np.where(np.array([[row.count] for row in rows]) == 1, line.causes[starts], NO_CAUSE)
    return Strip(
        name=name,
        edges=packed(line.edges),
        cycles=packed(cycles),
        causes=packed(causes),
        before=tuple(int(n) for n in np.add.reduceat(line.before, starts)),
        exact=line.is_exact,
        first=line.first,
        last=line.last,
    )


def _points(line: Timeline, values: FiringTexts) -> tuple[FiringPoints, ...]:
    """The loop indices of all busy cells, without empty slots."""
    program = line.program
    fires = line.cycles[PEState.BUSY] > 0
    points: list[FiringPoints] = []
    for number, timing in enumerate(program.nodes):
        places = FiringPlaces.of(program, timing)
        parts = [
            places.indices(place, line.slots[pe, :-1][fires[pe]])
            for place, pe in enumerate(range(timing.first, timing.instances.stop))
            if fires[pe].any()
        ]
        if not parts or not places.names:
            continue
        node = timing.node
        texts = _texts(line, fires, timing.instances, values)
        rules = tuple(path.rule.name for path in node.paths()) if isinstance(node, Machine) else ()
        points.append(
            FiringPoints(
                node=number,
                loops=places.names,
                points=packed(np.concatenate(parts, axis=1)),
                rules=rules,
                values=texts,
            )
        )
    return tuple(points)


def _texts(
    line: Timeline, fires: NDArray[np.bool_], pes: slice, values: FiringTexts
) -> tuple[str, ...]:
    """The texts of the firings of a node, in the order of their points; none if one is missing."""
    cells = np.argwhere(fires[pes]) + np.array([pes.start, line.first])
    texts = [values.get((pe, cycle)) for pe, cycle in cells.tolist()]
    known = tuple(text for text in texts if text is not None)
    return known if len(known) == len(texts) else ()


# Loop indices of single firings, by the number of a firing.
#
# For a machine, the index is the number of its rule.  Values of firings are in ``model.py``.

RULE = "rule"
"""The name of the index of a machine's rule."""


@dataclass(frozen=True, kw_only=True)
class FiringPlaces:
    """Finds the loop indices of firings, which count from 0, of the PEs of one node."""

    program: SimProgram
    timing: NodeTiming
    found: tuple[Domain, ...]

    @staticmethod
    def of(program: SimProgram, timing: NodeTiming) -> FiringPlaces:
        """For the PEs of a node; a machine has rules in place of loops."""
        parts: tuple[Domain, ...] = ()
        if isinstance(timing.node, PEArray):
            parts = domains(timing.node, program.parameters, divided=True)
        return FiringPlaces(program=program, timing=timing, found=parts)

    @property
    def names(self) -> tuple[str, ...]:
        """The loops, the outermost first."""
        if isinstance(self.timing.node, Machine):
            return (RULE,)
        return tuple(loop.name for loop in self.timing.node.loops)

    def indices(self, place: int, firings: Integers) -> Integers:
        """The indices of firings of the PE at a place of the node; shape (names, firings)."""
        if isinstance(self.timing.node, Machine):
            return self._rules(place)[firings][None, :]
        domain = next(part for part in self.found if 0 <= place - part.first_pe < part.pe_count)
        names = domain.at(place - domain.first_pe, firings)
        rows = [np.broadcast_to(names[x.name], firings.shape) for x in self.timing.node.loops]
        return np.array(rows, np.int64).reshape(len(rows), len(firings))

    def _rules(self, place: int) -> Integers:
        trace = self.program.trace
        codes = None if trace is None else trace.codes.get(self.timing.first + place)
        return np.asarray(() if codes is None else codes.expanded, np.int64)


# Arrays of integers as text for a page: differences, planes of bytes, deflated, in base64.
#
# Runs are repetitive, so neighboring columns are similar and most differences are zero.  The page
# unpacks them with the browser's ``DecompressionStream``; ``unpacked`` does the same in Python.

_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedIntegers:
    """An array of 64-bit integers, packed as differences along the last axis."""

    shape: tuple[int, ...]
    text: str

    def to_json(self) -> dict[str, object]:
        """What the page's script reads."""
        return {"shape": list(self.shape), "data": self.text}


def packed(values: Integers) -> PackedIntegers:
    """Pack an array; equal numbers give the same text."""
    numbers = np.asarray(values, np.int64)
    steps = np.diff(numbers, axis=-1, prepend=0) if numbers.size else numbers
    planes = np.ascontiguousarray(steps).astype("<i8").view(np.uint8).reshape(-1, _BYTES).T
    return PackedIntegers(
        shape=numbers.shape, text=deflated(np.ascontiguousarray(planes).tobytes())
    )


def unpacked(text: str, shape: tuple[int, ...]) -> Integers:
    """The array that ``packed`` encoded."""
    planes = np.frombuffer(inflated(text), np.uint8).reshape(_BYTES, -1)
    steps = np.ascontiguousarray(planes.T).view("<i8").astype(np.int64).reshape(shape)
    return np.asarray(np.cumsum(steps, axis=-1), np.int64) if steps.size else steps


def deflated(content: bytes) -> str:
    """Bytes as compressed text."""
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def inflated(text: str) -> bytes:
    """The bytes of a text of ``deflated``."""
    return zlib.decompress(base64.b64decode(text))


# The space-time diagram: PEs down, cycles across; the script draws it from packed counters.


def space_time_view(model: SpaceTimeModel, identity: str) -> str:
    """The diagram with its buttons; ``identity`` tells the diagrams of a page apart."""
    whole = model.strips[0]
    windows = [
        tag("button", text=strip.name, type="button", data_strip=number)
        for number, strip in enumerate(model.strips)
    ]
    moves = [
        tag("button", text=text, type="button", data_move=move, aria_label=label)
        for text, move, label in (
            ("+", "in", "zoom in"),
            ("−", "out", "zoom out"),
            ("◀", "left", "earlier"),
            ("▶", "right", "later"),
        )
    ]
    label = (
        f"Space-time diagram: {len(model.rows):,} rows of PEs, cycles {whole.first:,} to "
        f"{whole.last:,}. Arrow keys move the cell, plus and minus zoom, Home shows the whole run."
    )
    canvas = tag("canvas", tabindex=0, role="img", aria_label=label, height=360)
    status = tag("p", class_="status", aria_live="polite", text="Point at a cell, or use the keys.")
    return tag(
        "div",
        legend(),
        tag("div", *windows, *moves, class_="tools", role="group", aria_label="windows and zoom"),
        canvas,
        status,
        script_data(f"{identity}-data", space_time_json(model)),
        class_="space-time",
        id=identity,
        data_source_of=f"{identity}-data",
    )


def space_time_json(model: SpaceTimeModel) -> dict[str, object]:
    """What the script reads, and what tests read back."""
    return {
        "nodes": model.nodes,
        "channels": model.channels,
        "rows": [[row.node, row.label, row.count] for row in model.rows],
        "strips": [_strip_json(strip) for strip in model.strips],
    }


def _strip_json(strip: Strip) -> dict[str, object]:
    return {
        "name": strip.name,
        "exact": strip.exact,
        "first": strip.first,
        "last": strip.last,
        "before": strip.before,
        "edges": strip.edges.to_json(),
        "cycles": strip.cycles.to_json(),
        "causes": strip.causes.to_json(),
        "points": [
            {
                "node": point.node,
                "loops": point.loops,
                "points": point.points.to_json(),
                "rules": point.rules,
                "values": deflated(json.dumps(point.values).encode()) if point.values else "",
            }
            for point in strip.points
        ],
    }
