"""``representation.search``: the representation of a matrix whose product takes least cycles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted, Table
from t2s.core.errors import InternalError, UserError
from t2s.core.location import user_location
from t2s.core.names import counted
from t2s.core.types import Float, Type
from t2s.core.validate import as_int, checked_seconds
from t2s.driver.func import Func
from t2s.driver.lower import resources
from t2s.driver.product import bytes_moved, product_of
from t2s.driver.simulate import cycles, simulate
from t2s.func.expressions import type_of_dtype
from t2s.func.func import ImageParam, RDom, Var
from t2s.sparse_repr.representation import gallery
from t2s.sparse_repr.representation.chain import Chain
from t2s.sparse_repr.representation.parameter import MatrixParam, matrix_of, read_matrix
from t2s.sparse_repr.representation.storage import Storage
from t2s.sparse_repr.tensors.coordinates import Coordinates

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram

PARAMETERS: Mapping[str, tuple[dict[str, int], ...]] = {
    "cisr": ({},),
    "csr": ({},),
    "dcsr": ({},),
    "coo": ({},),
    "csc": ({},),
    "row_blocks": tuple({"factor": factor} for factor in (2, 4, 8)),
    "sliced_ell": tuple({"slice_rows": rows} for rows in (2, 4, 8, 16)),
    "ell": ({},),
    **{
        name: tuple(
            {"block_rows": rows, "block_columns": columns}
            for rows, columns in ((1, 2), (2, 1), (2, 2), (4, 4))
        )
        for name in ("blocked_csr", "blocked_csc")
    },
    "dia": ({},),
}
"""The parameters of each representation of the gallery that are tried."""

LEFT_OUT = "banks of x, several values of a machine in a step, other reduction circuits"

SHOWN_POINTS = 10


@dataclass(frozen=True, kw_only=True)
class RepresentationPoint:
    """A representation that was timed.

    Attributes
    ----------
    name, parameters: the function of ``t2s.representation.gallery`` and its arguments.
    chain: what it makes.
    cycles: of one product y = A x, exact.
    lower_bound: that the stored matrix alone gave before.
    dsp, ram: blocks; ``None`` on a device that has none.
    padding: the share of stored values that are padding.
    """

    name: str
    parameters: Mapping[str, int]
    chain: Chain
    cycles: int
    lower_bound: int
    dsp: int | None
    ram: int | None
    padding: float

    @property
    def text(self) -> str:
        """``gallery.cisr(machines=8)``."""
        return f"gallery.{self.name}({', '.join(f'{k}={v}' for k, v in self.parameters.items())})"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RepresentationSearchResult(NotebookDisplay):
    """The result of ``representation.search``.

    Attributes
    ----------
    points: those that were timed and fit the budget, the best first.
    design: the product y = A x in the best representation; all verbs take it, with ``A`` and ``x``.
    lower_bound: no point of the space within the budget takes fewer cycles.
    device: the device whose cycles they are.
    ruled_out: points that were not run, because their bounds are not below the best cycles.
    stored: points for which the matrix was stored to compute a bound.
    over_budget: points that take more blocks than the budget.
    refused: points that the compiler refused, by the first line of its error.
    finished: whether nothing better is left in the space; ``False`` after Ctrl-C and ``seconds``.
    space: the space in words, and what it leaves out.
    """

    points: tuple[RepresentationPoint, ...]
    design: Func
    lower_bound: int
    device: str
    ruled_out: int
    stored: int
    over_budget: int
    refused: Mapping[str, int]
    finished: bool
    interrupted: bool
    cpu_seconds: float
    space: str
    type: Type

    @property
    def best(self) -> RepresentationPoint:
        """The winner."""
        return self.points[0]

    @property
    def cycles(self) -> int:
        """The exact cycles of the winner."""
        return self.best.cycles

    @property
    def chain(self) -> Chain:
        """The representation of the winner, for a ``MatrixParam``."""
        return self.best.chain

    @property
    def front(self) -> tuple[RepresentationPoint, ...]:
        """The points that take fewer RAM or DSP blocks than all that are faster."""
        front: list[RepresentationPoint] = []
        for point in self.points:
            dsp, ram = point.dsp or 0, point.ram or 0
            if all(dsp < (faster.dsp or 0) or ram < (faster.ram or 0) for faster in front):
                front.append(point)
        return tuple(front)

    @property
    def spent(self) -> str:
        """What the search cost, and what bounds saved."""
        return (
            f"{counted(len(self.points), 'point')} run, {self.stored:,} stored for a bound, "
            f"{self.ruled_out:,} ruled out by bounds, {self.over_budget:,} over budget"
        )

    def program(self) -> str:
        """The Python text that makes the winner, as ``y``."""
        kind = f"{self.type.kind.value.capitalize()}({self.type.bits})"
        name = kind.split("(")[0]
        return (
            f"from t2s import {', '.join(sorted({name, 'Func', 'ImageParam', 'RDom', 'Var'}))}\n"
            "from t2s.representation import MatrixParam, gallery\n\n"
            f'A = MatrixParam({kind}, 2, {self.best.text}, name="A")\n'
            f'x = ImageParam({kind}, 1, name="x")\n'
            'machine, row = Var("machine"), Var("row")\n'
            'position = RDom(0, A.values.extent(1), name="position")\n'
            "i, j = A.inverse_map(machine, position)\n"
            'y = Func("y")\n'
            "y[row] = 0\n"
            "y[i] += A.values[machine, position] * x[j]\n"
            f'# t2s.cycles(y, {{"A": matrix, "x": vector}}, device="{self.device}") '
            f"is {self.cycles}\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write ``program()`` to a file."""
        file = Path(path)
        file.write_text(self.program(), encoding="utf-8")
        return file

    @property
    def table(self) -> Table:
        """The first points, the best first."""
        rows = tuple(
            (
                str(number),
                point.text,
                f"{point.padding:.0%}",
                "-" if point.dsp is None else f"{point.dsp:,}",
                "-" if point.ram is None else f"{point.ram:,}",
                f"{point.lower_bound:,}",
                f"{point.cycles:,}",
            )
            for number, point in enumerate(self.points[:SHOWN_POINTS], 1)
        )
        headers = ("", "representation", "padding", "DSP", "RAM", "bound", "cycles")
        return Table(title=self._title, headers=headers, rows=rows, left=frozenset({1}))

    @property
    def _title(self) -> str:
        ended = "" if self.finished else "; the space was not finished"
        return (
            f"y = A x on {self.device}: {self.cycles:,} cycles, "
            f"no point below {self.lower_bound:,}{ended}"
        )

    def __repr__(self) -> str:
        return f"<RepresentationSearchResult {self._title}>"

    def __str__(self) -> str:
        lines = [self.table.text(), f"space: {self.space}", f"spent: {self.spent}"]
        reasons = sorted(self.refused.items(), key=lambda item: -item[1])
        lines += [f"refused {count:,}: {reason}" for reason, count in reasons]
        return "\n".join(lines)

    def _card(self) -> NotebookCard:
        program = Preformatted(title="The best as a program", text=self.program())
        summary = (("cycles", f"{self.cycles:,}"), ("spent", self.spent), ("space", self.space))
        return NotebookCard(title=self._title, summary=summary, parts=(self.table, program))


def _blocks(point: RepresentationPoint) -> tuple[int, int]:
    return point.ram or 0, point.dsp or 0


def search(
    matrix: object,
    *,
    machines: int = 16,
    device: str | Device = "arria10",
    memory: str | Dram | None = None,
    dsp: int | None = None,
    ram: int | None = None,
    seconds: float | None = None,
    progress: bool | None = None,
) -> RepresentationSearchResult:
    """Find the representation in which the product of a matrix and a vector takes least cycles.

    The space is the ``gallery`` with its parameters on 1, 2, 4, ... machines.  The values of a
    representation that each machine steps through, and the dense operand that it waits for, bound
    the cycles from below; points are run in the order of that bound until no other one is below the
    best cycles, so the winner is the minimum of the space.  Its values are compared with scipy's.

    Parameters
    ----------
    matrix: what ``MatrixParam.store`` accepts, or the path of a Matrix Market file, read as
        float32.
    machines: the most machines; powers of two up to it are points.
    device, memory: as for ``t2s.simulate``.
    dsp, ram: the most blocks that a point may take; by default those of the device.
    seconds: after these no further point is run.
    progress: ``True`` always, ``False`` never, ``None`` for long searches.

    After ``seconds`` and at Ctrl-C the result is the best so far, with ``finished`` ``False``.
    Raises ``UserError`` for bad arguments, and if no point fits the budget.
    """
    from t2s.explore.parallel import Steps

    cpu = time.process_time()
    limit = None if seconds is None else checked_seconds("seconds=", seconds)
    most = as_int(machines)
    if most is None or most < 1:
        raise UserError(
            "machines= must be a positive integer",
            location=user_location(),
            expected="the most machines, such as 16",
            given=repr(machines)[:200],
        )
    from t2s.simulator.devices import find_device

    target = find_device(device)
    target = target if memory is None else target.with_memory(memory)
    if isinstance(matrix, str | Path):
        matrix = read_matrix(matrix, Float(32))
    entries = matrix_of(matrix, None, "the matrix")
    task = _Search(
        matrix=matrix,
        entries=entries,
        type=type_of_dtype(entries.values.dtype),
        device=target,
        budget=(_limit("dsp", dsp, target.dsp_blocks), _limit("ram", ram, target.ram_blocks)),
        machines=tuple(1 << power for power in range(most.bit_length()) if 1 << power <= most),
        deadline=None if limit is None else time.monotonic() + limit,
    )
    with Steps("searching representations", progress) as steps:
        return task.result(lambda done, text: steps.told(done, None, text), cpu)


def _limit(name: str, limit: int | None, available: int | None) -> int | None:
    if limit is None:
        return available
    number = as_int(limit)
    if number is None or number < 0 or available is None:
        raise UserError(
            f"{name}= must be a number of blocks",
            location=user_location(),
            expected=f"an integer of at least 0, or None for those of the device ({available})",
            given=repr(limit),
        )
    return number


@dataclass(kw_only=True)
class _Search:
    """A search in progress.  ``open_bounds`` are of points that were not run."""

    matrix: object
    entries: Coordinates
    type: Type
    device: Device
    budget: tuple[int | None, int | None]
    machines: tuple[int, ...]
    deadline: float | None
    points: list[RepresentationPoint] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    least_blocks: tuple[int, int] | None = None
    open_bounds: list[int] = field(default_factory=list)
    stored: int = 0
    over_budget: int = 0

    def result(self, show: Callable[[int, str], None], cpu: float) -> RepresentationSearchResult:
        """Search, and check the winner."""
        interrupted = False
        try:
            finished = self._run_in_order_of_bounds(show)
        except KeyboardInterrupt:
            if not self.points:
                raise
            finished, interrupted = False, True
        if not self.points:
            raise self._nothing()
        ranked = sorted(self.points, key=lambda point: (point.cycles, *_blocks(point)))
        design = _product(ranked[0].chain, self.type)
        self._check(design)
        return RepresentationSearchResult(
            points=tuple(ranked),
            design=design,
            lower_bound=min([ranked[0].cycles, *self.open_bounds]),
            device=self.device.name,
            ruled_out=sum(bound >= ranked[0].cycles for bound in self.open_bounds),
            stored=self.stored,
            over_budget=self.over_budget,
            refused=self.refused,
            finished=finished,
            interrupted=interrupted,
            cpu_seconds=time.process_time() - cpu,
            space=f"{', '.join(PARAMETERS)} with their parameters on "
            f"{', '.join(map(str, self.machines))} machines, "
            f"{len(list(self._candidates())):,} points; left out are {LEFT_OUT}",
            type=self.type,
        )

    def _run_in_order_of_bounds(self, show: Callable[[int, str], None]) -> bool:
        """Run the point with the least bound until none is below the best cycles.

        The first bound of a point needs no storage; it is stored when its turn comes, for a better
        one.  ``False`` if time is over before.
        """
        candidates = list(self._candidates())
        queue = [(self._first_bound(*point), number) for number, point in enumerate(candidates)]
        stored: dict[int, Storage] = {}
        heapify(queue)
        self.open_bounds = [bound for bound, _ in queue]
        while queue and ((best := self._best) is None or queue[0][0] < best):
            if best is not None and self.deadline is not None and time.monotonic() > self.deadline:
                return False
            bound, number = queue[0]
            name, parameters = candidates[number]
            try:
                if number not in stored:
                    stored[number], better = self._stored(name, parameters)
                    heapreplace(queue, (max(bound, better), number))
                else:
                    self._run(name, parameters, stored.pop(number), bound)
                    heappop(queue)
                    show(len(self.points), f"best {best:,} cycles" if best is not None else "")
            except UserError as error:
                reason = error.message.splitlines()[0]
                self.refused[reason] = self.refused.get(reason, 0) + 1
                heappop(queue)
            self.open_bounds = [bound for bound, _ in queue]
        return True

    @property
    def _best(self) -> int | None:
        return min((point.cycles for point in self.points), default=None)

    def _candidates(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Names and arguments of functions of the gallery."""
        for machines in reversed(self.machines):
            for name, choices in PARAMETERS.items():
                for parameters in choices:
                    yield name, {"machines": machines, **parameters}

    def _first_bound(self, name: str, parameters: Mapping[str, int]) -> int:
        """The least cycles of any storage of the matrix, which padding may make very large."""
        rows, columns = self.entries.rows, self.entries.columns
        values = rows.size
        if name == "ell":
            values = self.entries.shape[0] * int(np.bincount(rows).max(initial=0))
        elif name == "dia":
            values = self.entries.shape[0] * np.unique(columns.astype(np.int64) - rows).size
        return self._latency + -(-values // parameters["machines"])

    @property
    def _latency(self) -> int:
        """Of the first load and the last store."""
        if self.device.memory is not None:
            return 0
        return self.device.load_latency + self.device.store_latency

    def _stored(self, name: str, parameters: Mapping[str, int]) -> tuple[Storage, int]:
        """The stored matrix, and the least cycles of a product with it.

        Each machine multiplies one value a cycle, after all of x is there.
        """
        self.stored += 1
        chain = getattr(gallery, name)(**parameters)
        storage = MatrixParam(self.type, 2, chain, name="A").store(self.matrix)
        product = product_of(_product(chain, self.type), storage)
        least = product.vector_lines + storage.values.shape[1] + self._latency
        rate = self.device.memory_bytes_per_cycle if self.device.memory is None else None
        return storage, least if rate is None else max(least, int(bytes_moved(product) / rate))

    def _run(self, name: str, parameters: Mapping[str, int], storage: Storage, bound: int) -> None:
        chain = getattr(gallery, name)(**parameters)
        design = _product(chain, self.type)
        dsp: int | None = None
        ram: int | None = None
        if self.device.dsp_blocks is not None:
            report = resources(design, {"A": storage}, device=self.device)
            dsp, ram = report.dsp_blocks, report.ram_blocks
            if any(
                limit is not None and blocks > limit
                for blocks, limit in zip((dsp, ram), self.budget, strict=True)
            ):
                self.over_budget += 1
                if self.least_blocks is None or (dsp, ram) < self.least_blocks:
                    self.least_blocks = dsp, ram
                return
        inputs = {"A": storage, "x": self._vector}
        point = RepresentationPoint(
            name=name,
            parameters=parameters,
            chain=chain,
            cycles=cycles(design, inputs, device=self.device),
            lower_bound=bound,
            dsp=dsp,
            ram=ram,
            padding=storage.padding,
        )
        if point.cycles < bound:
            raise InternalError(f"{point.text} takes {point.cycles} cycles, below {bound}")
        self.points.append(point)

    @property
    def _vector(self) -> np.ndarray[Any, Any]:
        """Small integers, of which sums are exact in any order."""
        drawn = np.random.default_rng(0).integers(1, 4, self.entries.shape[1])
        return drawn.astype(self.type.numpy)

    def _check(self, design: Func) -> None:
        """Compare the values of the winner with numpy."""
        x, kind = self._vector, self.type.numpy
        entries = self.entries
        terms = entries.values * x[entries.columns]
        expected = np.zeros(entries.shape[0], kind)
        np.add.at(expected, entries.rows, terms)
        given = {"A": self.matrix, "x": x}
        y = simulate(design, given, device=self.device, progress=False).outputs["y"]
        if kind.kind == "f":
            bounds = np.zeros(entries.shape[0], kind)
            np.add.at(bounds, entries.rows, np.abs(terms))
            near = np.bincount(entries.rows, minlength=entries.shape[0]) * np.finfo(kind).eps
            same = bool((np.abs(y - expected) <= 2 * near * bounds).all())
        else:
            same = np.array_equal(y, expected)
        if not same:
            raise InternalError("the product that was found has other values")

    def _nothing(self) -> UserError:
        """No point fits: why."""
        reasons = [f"{count:,} points: {reason}" for reason, count in self.refused.items()]
        least = self.least_blocks
        return UserError(
            "no representation of the matrix fits the budget",
            location=user_location(),
            expected="a legal point of the space"
            if least is None
            else f"such as {least[0]:,} DSP and {least[1]:,} RAM blocks",
            given=f"dsp={self.budget[0]}, ram={self.budget[1]}"
            + "".join(f"; {reason}" for reason in reasons[:3]),
        )


def _product(chain: Chain, type: Type) -> Func:
    """y = A x, as ``RepresentationSearchResult.program`` writes it."""
    A, x = MatrixParam(type, 2, chain, name="A"), ImageParam(type, 1, name="x")
    machine, row = Var("machine"), Var("row")
    position = RDom(0, A.values.extent(1), name="position")
    i, j = A.inverse_map(machine, position)
    y = Func("y")
    y[row] = 0
    y[i] += A.values[machine, position] * x[j]
    return y
