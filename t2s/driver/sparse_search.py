"""``sparse.search``: the fastest order of loops, formats, lanes and directives, by exact runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.errors import InternalError, T2SError, UserError
from t2s.core.location import user_location
from t2s.core.names import counted
from t2s.core.progress import ProgressBar
from t2s.core.validate import as_int, checked_seconds
from t2s.driver.assignment_design import assignment_of
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.simulate import simulate
from t2s.driver.sparse_bound import Bounds
from t2s.driver.sparse_search_result import RANKS, Measurement, SparsePoint, SparseSearchResult
from t2s.driver.sparse_space import (
    CompiledPoint,
    SparseSpace,
    checked_directives,
    letters_of_input,
    letters_of_result,
    with_formats,
)
from t2s.sparse_repr.binding import check_names
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.unsupported import refuse_blocks
from t2s.sparse_repr.formats import Format, csf
from t2s.sparse_repr.notation.ir import Assignment, accesses, seen_patterns
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.parse import parse_assignment, parse_format
from t2s.sparse_repr.notation.symbols import Tensor
from t2s.sparse_repr.tensors.interchange import tensor
from t2s.sparse_repr.tensors.tensor import SparseTensor, from_coordinates
from t2s.sparse_repr.tensors.tensor_files import read

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram

LONG_RUN = 10**7
"""Cycles of a full run from which on points are ranked by samples."""

FINALISTS, FINALIST_FACTOR = 5, 1.5
"""After a ranking by samples: the fewest points run in full, and how far behind they may be."""

SAMPLE_SHARE, LEAST_SAMPLE = 16, 64
"""A sample has one coordinate in so many, and at least so many coordinates."""

FEW_CYCLES = 300
"""Runs that are cut after so many cycles are interpreted: native code takes longer to compile."""

LARGEST_CHECKED = 1 << 27
"""Elements of a dense array up to which values are compared with numpy."""


def search(
    expression: str | Tensor | Assignment,
    inputs: Mapping[str, Any],
    *,
    formats: Mapping[str, Format | str] | Sequence[str] = (),
    fixed: Sequence[str] = (),
    levels: str = "ds",
    directives: Sequence[str] = ("skip", "scan", "precompute"),
    lanes: int = 4,
    blocks: int | None = None,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    seconds: float | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> SparseSearchResult:
    """Find the order of loops, the formats, the lanes and the directives that take least cycles.

    Points are run on the inputs in the order of a lower bound, which the coordinates of the inputs
    give, each until it ends or has taken as many cycles as the best one so far; those whose bound
    is not below that are not run.  So the winner is the minimum of the space, in exact cycles.  If
    full runs take more than ten million cycles, points are ranked by a sample instead, and the best
    are run in full: at least 5, and all within 1.5 times the best sample.  A sample has 1/16 of the
    coordinates of one variable, in all tensors, drawn evenly from rows sorted by length, with the
    longest row.
    The values of the winner are compared with numpy.

    Parameters
    ----------
    expression: text, an assignment of ``parse``, or the result tensor of an assignment.
    inputs: tensors by name, as for ``simulate``, or paths of files for ``sparse.read``.
    formats: declared formats of an expression in text, as for ``parse``.  An input without one has
        the format in which it comes, a result without one is dense.
    fixed: names of tensors that stay as declared.  The levels of the others are chosen from
        ``levels``, in the order in which the loops walk them; formats that would store more than 2
        positions for each entry are not tried, and sparse levels not for inputs of which more than
        half of the elements are stored.
    levels: letters of level formats, such as ``"dsb"``.
    directives: kinds of directives of which a point may have one besides order and lanes:
        ``"skip"`` (intersect by skipping), ``"scan"`` (dense levels are scanned where they would
        be located into), ``"precompute"`` (a product of two factors first), ``"split"`` (of the
        outermost loop, by 8 and 32).
    lanes: the most lanes of the outermost loop; 1, 2, 4, ... are tried.
    blocks: the most blocks that a point may have.
    device, memory: as for ``simulate``.
    seconds: after these no further point is run.  Results depend on the machine then.
    seed: of the sample.
    progress: ``True`` always, ``False`` never, ``None`` for long searches.

    After ``seconds`` and at Ctrl-C the result is the best so far, with ``finished`` ``False``.
    Raises ``UserError`` for bad arguments and inputs, and for a space without a legal point.
    """
    started = time.monotonic(), time.process_time()
    limit = None if seconds is None else checked_seconds("seconds=", seconds)
    most = as_int(lanes)
    if most is None or most < 1:
        raise _wrong("lanes= must be a positive integer", "1, 2, 4, ...", lanes)
    budget = None if blocks is None else as_int(blocks)
    if blocks is not None and (budget is None or budget < 1):
        raise _wrong("blocks= must be a positive integer", "the most blocks, or None", blocks)
    draw = as_int(seed)
    if draw is None or draw < 0:
        raise _wrong("seed= must be an integer from 0 on", "such as 0", seed)
    kinds = checked_directives(directives)
    loaded = {
        name: read(value) if isinstance(value, str | Path) else value
        for name, value in named_inputs(inputs).items()
    }
    sources = {
        name: ("-i", f"{name}={value}")
        for name, value in named_inputs(inputs).items()
        if isinstance(value, str | Path)
    }
    assignment = _declared(expression, formats, loaded)
    space, tensors = _space(assignment, loaded, fixed, levels, kinds, most, budget)
    from t2s.simulator.devices import find_device

    target = find_device(device)
    if memory is not None:
        target.with_memory(memory)
    task = _Search(
        space=space,
        inputs=tensors,
        options={"device": device, "memory": memory, "progress": False},
        seed=draw,
        deadline=None if limit is None else started[0] + limit,
    )
    with _PointBar(progress) as bar:
        task.show = bar.show
        return task.result(device, memory, sources, started[1])


def _wrong(message: str, expected: str, given: object) -> UserError:
    return UserError(message, location=user_location(), expected=expected, given=repr(given)[:200])


def _declared(
    expression: object,
    formats: Mapping[str, Format | str] | Sequence[str],
    inputs: Mapping[str, Any],
) -> Assignment:
    """The assignment with the declared formats, and of inputs without one those they come in."""
    if isinstance(expression, Tensor | Assignment):
        if formats:
            raise UserError(
                "the tensors of this expression have formats already",
                location=user_location(),
                expected="formats= with an expression in text only",
                given=repr(formats)[:200],
            )
        return assignment_of(expression)
    if not isinstance(expression, str):
        raise UserError(
            "a search takes an expression",
            location=user_location(),
            expected='a text such as "y(i)=A(i,j)*x(j)", or what t2s.sparse.parse returns',
            given=repr(expression)[:200],
        )
    where = user_location()
    if not isinstance(formats, Mapping):
        formats = dict(parse_format(option, location=where) for option in formats)
    assignment = parse_assignment(expression, formats, location=where)
    check_names(tuple(dict.fromkeys(a.tensor for a in accesses(assignment.value))), inputs)
    stored: dict[str, Format] = {}
    for access in accesses(assignment.value):
        if access.tensor not in formats:
            own = tensor(inputs[access.tensor]).format
            plain = own.plain and not own.coordinate_list
            if own.order == len(access.variables):
                stored[access.tensor] = own if plain else csf(own.order)
    return with_formats(assignment, stored)


def _space(
    assignment: Assignment,
    inputs: Mapping[str, Any],
    fixed: Sequence[str],
    levels: str,
    directives: tuple[str, ...],
    lanes: int,
    blocks: int | None,
) -> tuple[SparseSpace, dict[str, Any]]:
    """The space for these inputs, and the inputs as tensors.  Raises ``UserError``."""
    where = user_location()
    refuse_blocks(assignment.tensors, "a search", "chooses the levels of elements")
    read_names = tuple(dict.fromkeys(access.tensor for access in accesses(assignment.value)))
    check_names(read_names, inputs)
    names = (assignment.result.tensor, *(n for n in read_names if n != assignment.result.tensor))
    listed = (fixed,) if isinstance(fixed, str) else tuple(fixed)
    for name in listed:
        if name not in names:
            raise UserError(
                f"fixed= names {name}, which the expression does not have",
                location=where,
                expected=f"some of {', '.join(names)}",
                given=repr(fixed)[:200],
            )
    if not isinstance(levels, str) or not levels:
        raise _wrong("levels= must be letters of level formats", 'such as "ds" or "dsb"', levels)
    csf(1) if set(levels) <= {"d", "s"} else parse_format(f"A:{levels}", location=where)
    tensors = {name: tensor(inputs[name]) for name in read_names}
    extents = extents_of(assignment, {name: operand.shape for name, operand in tensors.items()})
    letters: dict[str, tuple[str, ...]] = {}
    seen = seen_patterns(assignment.value)
    observed = {access.tensor for term in seen for access in accesses(term)}
    for name in names:
        declared = assignment.tensor(name).format
        if name in listed or name in observed:
            letters[name] = ()
        elif name == assignment.result.tensor:
            letters[name] = letters_of_result(declared, len(assignment.result.variables), levels)
        else:
            letters[name] = letters_of_input(declared, tensors[name], levels)
    space = SparseSpace(
        assignment=assignment,
        letters=letters,
        extents=extents,
        lanes=lanes,
        directives=directives,
        blocks=blocks,
    )
    zero = assignment.semiring.zero == 0  # else arrays mean their zeros, and tensors do not
    return space, dict(tensors) if zero else {name: inputs[name] for name in read_names}


class _PointBar(ProgressBar):
    """A progress line with the number of points and the best so far."""

    def show(self, done: int, total: int | None, best: str) -> None:
        """``total`` is ``None`` while points are compiled."""
        what = f"{done:,} compiled" if total is None else f"{done:,} of {total:,} points"
        self._show(done, total, points=what, best=best)

    def _columns(self) -> list[Any]:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

        return [
            TextColumn("search"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[points]}"),
            TextColumn("{task.fields[best]}"),
        ]


class _Stopped(Exception):
    """The time of the search is over."""


@dataclass(kw_only=True)
class _Outcome:
    """The cycles of a point; ``ended`` is ``False`` for a run that was cut after them."""

    cycles: int
    ended: bool


@dataclass(kw_only=True)
class _Search:
    """A search in progress."""

    space: SparseSpace
    inputs: dict[str, Any]
    options: dict[str, Any]
    seed: int
    deadline: float | None
    show: Callable[[int, int | None, str], None] = lambda *_: None
    points: list[CompiledPoint] = field(default_factory=list)
    full: dict[int, _Outcome] = field(default_factory=dict)
    samples: dict[int, _Outcome] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    sampled: str = ""
    simulated: int = 0
    bounds: list[int] = field(default_factory=list)
    ruled_out: int = 0
    default: _Outcome | None = None
    default_text: str = "the declared formats without a schedule"
    _stored: dict[tuple[int, str, Format], Any] = field(default_factory=dict)

    def result(
        self,
        device: str | Device,
        memory: str | Dram | None,
        sources: Mapping[str, Sequence[str]],
        cpu: float,
    ) -> SparseSearchResult:
        """Search, and check the winner."""
        finished, interrupted = True, False
        try:
            self._compile()
            self._measure()
        except (_Stopped, KeyboardInterrupt) as error:
            finished, interrupted = False, isinstance(error, KeyboardInterrupt)
        best = self._best()
        if best is None:
            raise self._nothing(finished)
        checked = self._check(best)
        ranked = self._ranked(best)
        default = self.default
        cut = default is not None and not default.ended
        return SparseSearchResult(
            kernel=self.points[best].kernel,
            points=tuple(point for _, point in ranked),
            refused=dict(self.refused),
            ruled_out=self.ruled_out,
            default_cycles=None if default is None or cut else default.cycles,
            default_text=f"{self.default_text} take more than {default.cycles:,} cycles"
            if default is not None and cut
            else self.default_text,
            simulated_cycles=self.simulated,
            cpu_seconds=time.process_time() - cpu,
            finished=finished,
            interrupted=interrupted,
            sampled=self.sampled,
            checked=checked,
            space=self.space.text,
            device=device,
            memory=memory,
            sources=sources,
            _inputs=self.inputs,
            _compiled={number: self.points[i].kernel for number, (i, _) in enumerate(ranked)},
        )

    def _compile(self) -> None:
        for number, point in enumerate(self.space.compiled(self.refused)):
            self.show(number, None, "")
            self._check_time(compiling=True)
            if point is not None:
                self.points.append(point)
        if not self.points:
            raise self._nothing(finished=True)

    def _check_time(self, *, compiling: bool = False) -> None:
        if self.deadline is None or time.monotonic() < self.deadline:
            return
        if not compiling or self.points:
            raise _Stopped

    def _measure(self) -> None:
        """Run all points in full, or by samples those that a sample does not rule out."""
        self._run_default()
        self._bound()
        order = sorted(range(len(self.points)), key=self._promise)
        sample = None
        if self.default is None or not self.default.ended:
            sample = sample_of(self.space.assignment, self.inputs, self.seed)
        if sample is not None and self._is_long(order, sample):
            order = self._ranked_by_sample(order, sample)
        for done, index in enumerate(order):
            self._run_full(index)
            self._report(done + 1, len(order))

    def _promise(self, index: int) -> tuple[object, ...]:
        """A key that puts promising points first, so that others are ruled out or cut early."""
        bound, candidate = self.bounds[index], self.points[index].candidate
        formats = [format.letters for _, format in candidate.formats[1:]]
        dense_outside = sum(letters[:1] == "d" and "s" in letters for letters in formats)
        unknown = not bound
        return unknown, bound, -candidate.lanes, bool(candidate.extra), -dense_outside, index

    def _bound(self) -> None:
        """The least cycles that each point may take; 0 where nothing is known."""
        bounds = Bounds(inputs=self.inputs, extents=self.space.extents)
        for point in self.points:
            self._check_time(compiling=True)
            try:
                stored = self._all_stored(self.inputs, point.kernel.assignment)
                self.bounds.append(bounds.of(point.kernel, stored))
            except UserError:  # the run says why it is refused
                self.bounds.append(0)

    def _run_default(self) -> None:
        assignment = self.space.assignment
        try:
            kernel = Kernel(assignment, Schedule(), assignment.semiring)
            self.default = self._outcome(kernel, self.inputs, LONG_RUN)
        except T2SError as error:
            self.default_text += f" are refused: {str(error).splitlines()[0]}"

    def _is_long(self, order: list[int], sample: Sample) -> bool:
        """Whether no order of loops seems to end within ``LONG_RUN`` cycles."""
        limit = max(1, LONG_RUN * sample.count // max(1, sample.extent))
        seen: set[tuple[str, ...]] = set()
        for index in order:
            loops = self.points[index].candidate.order
            if loops not in seen:
                seen.add(loops)
                if self._run_sample(index, sample, limit).ended:
                    self.samples.clear()
                    return False
        return True

    def _ranked_by_sample(self, order: list[int], sample: Sample) -> list[int]:
        """The points to run in full, the best sample first."""
        self.sampled = (
            f"{sample.count:,} of the {sample.extent:,} coordinates of {sample.variable}, "
            "with the longest row"
        )
        best: int | None = None
        for done, index in enumerate(order):
            limit = None if best is None else int(best * 4)
            outcome = self._run_sample(index, sample, limit)
            if outcome.ended:
                best = outcome.cycles if best is None else min(best, outcome.cycles)
            self._report(done + 1, len(order))
        ranked = sorted(
            (self.samples[index].cycles, index)
            for index in order
            if index in self.samples and self.samples[index].ended
        )
        return [
            index
            for place, (cycles, index) in enumerate(ranked)
            if place < FINALISTS or cycles <= FINALIST_FACTOR * ranked[0][0]
        ]

    def _run_full(self, index: int) -> None:
        best = self._best()
        limit = None if best is None else self.full[best].cycles
        if limit is not None and self.bounds[index] >= limit:
            self.ruled_out += 1
            return
        outcome = self._guarded(index, self.points[index].kernel, self.inputs, limit)
        if outcome is None:
            return
        if outcome.ended and outcome.cycles < self.bounds[index]:
            raise InternalError(
                f"{self.points[index].candidate.schedule} takes {outcome.cycles:,} cycles, "
                f"below {self.bounds[index]:,}"
            )
        self.full[index] = outcome

    def _run_sample(self, index: int, sample: Sample, limit: int | None) -> _Outcome:
        point = self.points[index]
        stored = with_formats(sample.assignment, dict(point.candidate.formats))
        kernel = point.candidate.kernel(stored)
        outcome = self._guarded(index, kernel, sample.inputs, limit)
        outcome = outcome or _Outcome(cycles=0, ended=False)
        self.samples[index] = outcome
        return outcome

    def _guarded(
        self, index: int, kernel: Kernel, inputs: Mapping[str, Any], limit: int | None
    ) -> _Outcome | None:
        """The outcome of a run; a run that is refused counts as a refused point."""
        self._check_time()
        try:
            return self._outcome(kernel, inputs, limit)
        except UserError as error:
            reason = error.message.splitlines()[0]
            self.refused[reason] = self.refused.get(reason, 0) + 1
            return None

    def _outcome(self, kernel: Kernel, inputs: Mapping[str, Any], limit: int | None) -> _Outcome:
        from t2s.simulator.report.errors import CycleLimitError

        stored = self._all_stored(inputs, kernel.assignment)
        try:
            few = limit is not None and limit <= FEW_CYCLES
            engine = "python" if few else "native"
            cycles = simulate(
                kernel, stored, max_cycles=limit, engine=engine, **self.options
            ).cycles
        except CycleLimitError as error:
            self.simulated += error.result.cycles
            return _Outcome(cycles=error.result.cycles, ended=False)
        self.simulated += cycles
        return _Outcome(cycles=cycles, ended=True)

    def _all_stored(self, inputs: Mapping[str, Any], assignment: Assignment) -> dict[str, Any]:
        return {name: self._as_stored(value, name, assignment) for name, value in inputs.items()}

    def _as_stored(self, value: Any, name: str, assignment: Assignment) -> Any:
        """An input in the format of a kernel, converted once."""
        if not isinstance(value, SparseTensor):
            return value
        key = id(value), name, assignment.tensor(name).format
        if key not in self._stored:
            self._stored[key] = value.convert(key[2])
        return self._stored[key]

    def _best(self) -> int | None:
        """The point with the fewest cycles, then blocks, of those that ended in full."""
        ended = [index for index, outcome in self.full.items() if outcome.ended]
        return min(
            ended, key=lambda i: (self.full[i].cycles, self.points[i].blocks, i), default=None
        )

    def _report(self, done: int, total: int) -> None:
        best = self._best()
        text = "" if best is None else f"best {self.full[best].cycles:,} cycles"
        self.show(done, total, text)

    def _check(self, best: int) -> bool:
        """Compare the values of the winner with numpy."""
        kernel = self.points[best].kernel
        sizes = [
            prod(self.space.extents[variable] for variable in access.variables)
            for access in (kernel.assignment.result, *accesses(kernel.assignment.value))
        ]
        if max(sizes, default=0) > LARGEST_CHECKED:
            return False
        simulated = kernel.simulate(self.inputs, **self.options).output
        expected = kernel.interpret(self.inputs)
        if simulated.dtype.kind == "f":
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
            near = float(np.finfo(simulated.dtype).eps) * 2**20
            same = np.allclose(simulated, expected, rtol=near, atol=near * scale, equal_nan=True)
        else:
            same = np.array_equal(simulated, expected)
        if not same:
            raise InternalError(f"{self.points[best].candidate.schedule} gives other values")
        return True

    def _ranked(self, best: int) -> list[tuple[int, SparsePoint]]:
        """All points that were run: full runs by cycles, then those that were cut, then samples."""
        rows: list[tuple[tuple[object, ...], int, SparsePoint]] = []
        for index, compiled in enumerate(self.points):
            outcome = self.full.get(index) or self.samples.get(index)
            if outcome is None or (not outcome.ended and not outcome.cycles):
                continue
            if index in self.full:
                measured = Measurement.FULL if outcome.ended else Measurement.CUT
            else:
                measured = Measurement.SAMPLE if outcome.ended else Measurement.SAMPLE_CUT
            candidate = compiled.candidate
            point = SparsePoint(
                order=candidate.order,
                formats={name: str(format) for name, format in candidate.formats},
                lanes=candidate.lanes,
                schedule=candidate.schedule,
                blocks=compiled.blocks,
                cycles=outcome.cycles,
                measurement=measured,
            )
            rank = RANKS.index(measured)
            order = -outcome.cycles if measured is Measurement.CUT else outcome.cycles
            rows.append(((index != best, rank, order, compiled.blocks, index), index, point))
        return [(index, point) for _, index, point in sorted(rows, key=lambda row: row[0])]

    def _nothing(self, finished: bool) -> UserError:
        """No point ended: why."""
        if not finished:
            return UserError(
                "the search ended before a point had been run in full",
                location=user_location(),
                expected="more seconds=",
                given=f"{counted(len(self.points), 'point')} compiled",
                hint="raise seconds=, or lower lanes= and name tensors in fixed=",
            )
        reasons = sorted(self.refused.items(), key=lambda item: -item[1])
        return UserError(
            "no point of the space is legal",
            location=user_location(),
            expected="an order of loops, formats and lanes that compile",
            given="; ".join(f"{count:,} points: {reason}" for reason, count in reasons[:5]),
            hint="name fewer tensors in fixed=, or raise blocks= if it is named",
        )


# Samples: some coordinates of one variable, in all tensors.


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Inputs at ``count`` of the ``extent`` coordinates of a variable, renumbered from 0."""

    variable: str
    count: int
    extent: int
    inputs: dict[str, Any]
    assignment: Assignment


def sample_of(assignment: Assignment, inputs: Mapping[str, Any], seed: int) -> Sample | None:
    """A sample of the rows of the largest sparse tensor; ``None`` if it has too few rows.

    Rows are sorted by their number of entries, and one is drawn from each of equal groups; the
    longest is always there.
    """
    if not inputs or not all(isinstance(tensor, SparseTensor) for tensor in inputs.values()):
        return None
    read = [access for access in accesses(assignment.value) if access.variables]
    if not read:
        return None
    entries = {access: inputs[access.tensor].nnz for access in read}
    sparse = [a for a in read if 2 * entries[a] <= prod(inputs[a.tensor].shape)]
    largest = max(sparse or read, key=entries.__getitem__)
    variable = largest.variables[0]
    rows = inputs[largest.tensor].entries().modes[0]
    extent = inputs[largest.tensor].shape[0]
    count = max(LEAST_SAMPLE, -(-extent // SAMPLE_SHARE))
    if count >= extent:
        return None
    chosen = stratified(np.bincount(rows, minlength=extent), count, seed)
    position = np.full(extent, -1)
    position[chosen] = np.arange(count)
    taken: dict[str, Any] = {}
    for access in read:
        whole = inputs[access.tensor]
        modes = [m for m, name in enumerate(access.variables) if name == variable]
        if not modes or access.tensor in taken:
            taken.setdefault(access.tensor, whole)
            continue
        table, values = whole.coordinates()
        table = table.copy()
        inside = values != whole.fill
        for mode in modes:
            table[:, mode] = position[table[:, mode]]
            inside &= table[:, mode] >= 0
        shape = tuple(count if m in modes else size for m, size in enumerate(whole.shape))
        taken[access.tensor] = from_coordinates(
            table[inside], values[inside], shape, whole.format, fill=whole.fill
        )
    taken |= {name: tensor for name, tensor in inputs.items() if name not in taken}
    return Sample(
        variable=variable,
        count=count,
        extent=extent,
        inputs=taken,
        assignment=_without_extent(assignment, variable, count),
    )


def stratified(lengths: np.ndarray[Any, Any], count: int, seed: int) -> np.ndarray[Any, Any]:
    """Indices of ``count`` rows, in order: the longest, and one of each of equal groups."""
    order = np.argsort(lengths, kind="stable")
    groups = np.array_split(order[:-1], count - 1)
    draw = np.random.default_rng(seed)
    chosen = [int(group[draw.integers(len(group))]) for group in groups]
    return np.sort(np.array([*chosen, int(order[-1])]))


def _without_extent(assignment: Assignment, variable: str, count: int) -> Assignment:
    """The assignment with ``count`` as the extent of a variable in declared shapes."""
    every = (assignment.result, *accesses(assignment.value))
    variables = {access.tensor: access.variables for access in every}
    tensors = tuple(
        declared
        if declared.shape is None
        else replace(
            declared,
            shape=tuple(
                count if name == variable else size
                for name, size in zip(variables[declared.name], declared.shape, strict=True)
            ),
        )
        for declared in assignment.tensors
    )
    return replace(assignment, tensors=tensors)
