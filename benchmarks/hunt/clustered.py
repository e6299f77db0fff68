"""Sorted, clustered and strided coordinates, wherever addresses decide what a run takes.

Matrices and tensors as data have them: bands, blocks, a few long rows, popular columns, strides of
powers of two, runs of neighbors, triangles, empty rows.  Kernels run as streams with a DRAM, and on
Capstan with its network, banks, controllers and DRAM.  Values are numpy's, both engines agree to
the cycle, a run timed again with another memory is a run with that memory, no memory is faster than
the ideal one or its peak, bursts are at least those of the operands, and coordinates that are
spread regularly are served as fast as random ones, but for twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.hunt.choices import Choices
from benchmarks.hunt.judge import same
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict, Wrong
from t2s import sparse
from t2s.simulator.memory.spec import MEMORIES
from t2s.sparse import Schedule
from tests.simulator.memory.plain_memories import independent_memories

WORD = 4
CAPSTAN_MEMORIES = ("hbm2e-1800", "ddr4-2133x4")
CROWDED = 2.0
"""How many times as long as random columns regular ones may take."""
START = 200
"""Cycles that do not count there."""

EXPRESSIONS = {
    "y(i) = A(i,j)*x(j)": {"A": "ds"},
    "Y(i,j) = A(i,j)+B(i,j)": {"A": "ds", "B": "ds", "Y": "ds"},
    "Y(i,j) = A(i,j)*B(i,j)": {"A": "ds", "B": "ds", "Y": "ds"},
    "y(i) = b(i)-A(i,j)*x(j)": {"A": "ds"},
    "z(j) = A(i,j)*w(i)": {"A": "ds"},
    "Y(i,j) = A(i,j)*C(i,k)*D(k,j)": {"A": "ds", "Y": "ds"},
    "Y(i,k) = A(i,j)*E(j,k)": {"A": "ds"},
    "Y(i,j) = A(i,j)+B(i,j)+G(i,j)": {"A": "ds", "B": "ds", "G": "ds", "Y": "ds"},
}
NUMPY = {
    "y(i) = A(i,j)*x(j)": lambda v: v["A"] @ v["x"],
    "Y(i,j) = A(i,j)+B(i,j)": lambda v: v["A"] + v["B"],
    "Y(i,j) = A(i,j)*B(i,j)": lambda v: v["A"] * v["B"],
    "y(i) = b(i)-A(i,j)*x(j)": lambda v: v["b"] - v["A"] @ v["x"],
    "z(j) = A(i,j)*w(i)": lambda v: v["A"].T @ v["w"],
    "Y(i,j) = A(i,j)*C(i,k)*D(k,j)": lambda v: v["A"] * (v["C"] @ v["D"]),
    "Y(i,k) = A(i,j)*E(j,k)": lambda v: v["A"] @ v["E"],
    "Y(i,j) = A(i,j)+B(i,j)+G(i,j)": lambda v: v["A"] + v["B"] + v["G"],
}


@dataclass(slots=True)
class Case:
    """A kernel, its inputs, and the machine that runs it."""

    text: str
    inputs: dict[str, Any]
    form: str
    memory: str
    partitions: int = 0
    """Of Capstan; 0 says that the kernel runs as streams."""
    plain: bool = False
    """Whether the plain engine runs it, too."""

    def __str__(self) -> str:
        arrays = "\n".join(
            f"{name} = np.zeros({value.shape}, np.int32)\n"
            f"{name}[{', '.join(str(axis.tolist()) for axis in np.nonzero(value))}] = "
            f"{value[np.nonzero(value)].tolist()}"
            for name, value in self.inputs.items()
        )
        names = ", ".join(f"{name!r}: {name}" for name in self.inputs)
        machine = (
            f"Schedule().environment(outer_par={self.partitions}), target='capstan'"
            if self.partitions
            else "'transpose()'"
        )
        return (
            f"# {self.form}\n{arrays}\n"
            f"kernel = sparse.compile(sparse.parse({self.text!r}, {EXPRESSIONS[self.text]}), "
            f"{machine})\nkernel.simulate({{{names}}}, memory={self.memory!r})"
        )

    @property
    def compiled(self) -> Any:
        """The kernel."""
        assignment = sparse.parse(self.text, EXPRESSIONS[self.text])
        if not self.partitions:
            return sparse.compile(assignment, "transpose()")
        schedule = Schedule().environment(outer_par=self.partitions)
        return sparse.compile(assignment, schedule, target="capstan")


def band(c: Choices, generator: Any, there: Any) -> None:
    """Diagonals near the main one."""
    rows, columns = there.shape
    for shift in range(-c.below(4), c.between(1, 6)):
        at = np.arange(rows) * columns // max(rows, 1) + shift
        inside = (at >= 0) & (at < columns)
        there[np.arange(rows)[inside], at[inside]] = True


def blocks(c: Choices, generator: Any, there: Any) -> None:
    """Dense blocks, some of them on the diagonal."""
    rows, columns = there.shape
    size = c.one_of([4, 16, 8, 3])
    for _ in range(c.between(1, 8)):
        row, column = generator.integers(0, rows), generator.integers(0, columns)
        there[row : row + size, column : column + 4 * size] = True


def strided(c: Choices, generator: Any, there: Any) -> None:
    """Every 2nd, 16th, 64th ... column, from a first one that rows have in common or not."""
    rows, columns = there.shape
    stride = c.one_of([16, 2, 32, 64, 17, 3, 128])
    for row in range(rows):
        there[row, (row if c.below(2) else 0) % stride : columns : stride] = True


def popular(c: Choices, generator: Any, there: Any) -> None:
    """Some columns, and some rows, have most entries, as in graphs."""
    rows, columns = there.shape
    count = c.between(1, 6) * max(rows, columns)
    row = (rows * generator.random(count) ** 3).astype(int)
    column = (columns * generator.random(count) ** c.one_of([3, 1])).astype(int)
    there[row, column] = True


def runs(c: Choices, generator: Any, there: Any) -> None:
    """Runs of neighbors in each row."""
    rows, columns = there.shape
    for row in range(rows):
        for _ in range(c.below(3)):
            first = generator.integers(0, columns)
            there[row, first : first + c.one_of([16, 5, 40, 100])] = True


def triangle(c: Choices, generator: Any, there: Any) -> None:
    """A share of what is below the diagonal."""
    rows, columns = there.shape
    below = np.arange(rows)[:, None] * columns // max(rows, 1) >= np.arange(columns)
    there |= below & (generator.random(there.shape) < c.one_of([0.1, 0.3, 0.02]))


def long_rows(c: Choices, generator: Any, there: Any) -> None:
    """A few full rows, and few entries elsewhere."""
    there |= generator.random(there.shape) < 0.01
    there[generator.integers(0, there.shape[0], c.between(1, 3))] = True


def uniform(c: Choices, generator: Any, there: Any) -> None:
    """Entries anywhere."""
    there |= generator.random(there.shape) < c.one_of([0.05, 0.2, 0.4, 0.005])


FORMS = (band, blocks, strided, popular, runs, triangle, long_rows, uniform)
REGULAR = (strided, runs, band)
"""Forms whose rows have each column once, and no column that most rows share."""


def matrix(c: Choices, generator: Any, rows: int, columns: int, form: Any) -> Any:
    """A matrix of small numbers with entries of a form; now and then with empty rows."""
    there = np.zeros((rows, columns), bool)
    form(c, generator, there)
    if c.chance(4):
        there[generator.random(rows) < 0.4] = False
    return np.where(there, generator.integers(1, 9, there.shape), 0).astype(np.int32)


def generate(c: Choices) -> Case:
    """Draw a case."""
    text = c.one_of(tuple(EXPRESSIONS))
    generator = np.random.default_rng(c.below(1 << 20))
    partitions = c.one_of([0, 16, 4, 1, 8, 2])
    rows, columns = c.one_of([24, 7, 40, 1]), c.one_of([60, 200, 17, 450])
    form = c.one_of(FORMS)
    extents = {"i": rows, "j": columns, "k": c.one_of([4, 16, 20, 1])}
    inputs: dict[str, Any] = {}
    first = matrix(c, generator, rows, columns, form)
    for name, variables in _operands(text):
        shape = tuple(extents[v] for v in variables)
        if name == "A":
            inputs[name] = first
        elif name in "BG":
            alike = np.roll(first, c.between(0, 2), 1)
            other = c.one_of(FORMS)
            inputs[name] = alike if c.below(2) else matrix(c, generator, rows, columns, other)
        else:
            inputs[name] = generator.integers(1, 9, shape).astype(np.int32)
    memories = CAPSTAN_MEMORIES if partitions else ("ddr4-2133", "hbm2e")
    entries = int(np.count_nonzero(first)) * (extents["k"] if "k" in text else 1)
    return Case(
        text=text,
        inputs=inputs,
        form=form.__name__,
        memory=c.one_of(memories),
        partitions=partitions,
        plain=entries < 600 and not c.below(3),
    )


def _operands(text: str) -> list[tuple[str, str]]:
    """The operands of an expression, with their variables."""
    parts = text.split("= ")[1].replace(")", "").replace("*", " ").replace("+", " ")
    found = [part.split("(") for part in parts.replace("-", " ").split()]
    return [(name, variables.replace(",", "")) for name, variables in found]


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Draw a case and judge it."""
    case = generate(choices)
    return str(case), guarded(lambda: _judge(case))


def _judge(case: Case) -> None:
    kernel = case.compiled
    expected = NUMPY[case.text](case.inputs)
    result = kernel.simulate(case.inputs, memory=case.memory)
    same("values", result.output, expected)
    ideal = kernel.simulate(case.inputs, memory="ideal")
    same("values with ideal memory", ideal.output, expected)
    if result.cycles < ideal.cycles:
        raise Wrong(f"{result.cycles} cycles with {case.memory}, {ideal.cycles} with ideal memory")
    if case.plain:
        with independent_memories():
            plain = kernel.simulate(case.inputs, memory=case.memory, engine="python")
        same("values of the plain engine", plain.output, expected)
        if plain.cycles != result.cycles:
            raise Wrong(f"cycles of native: {result.cycles}, plain engine {plain.cycles}")
    for run in [result.run] if case.partitions else result.stages:
        _within_the_peak(run, case.memory)
    if case.partitions:
        if case.plain:
            _timed_again(case, kernel, result)
        _moved(case, result)
        if case.text == "y(i) = A(i,j)*x(j)" and case.form in {f.__name__ for f in REGULAR}:
            _spread(case, kernel, result.cycles)


def _timed_again(case: Case, kernel: Any, result: Any) -> None:
    for memory in set(CAPSTAN_MEMORIES) - {case.memory}:
        again = result.retime(memory=memory).cycles
        at_once = kernel.simulate(case.inputs, memory=memory).cycles
        if again != at_once:
            raise Wrong(f"timed again with {memory}: {again} cycles, {at_once} at once")


def _within_the_peak(run: Any, memory: str) -> None:
    bursts = sum(one.reads + one.writes for one in run.memory.channels)
    dram = MEMORIES[memory]
    least = bursts * dram.burst_bytes / float(dram.peak_bytes_per_second)
    seconds = run.cycles / float(run.device.clock_hz)
    if seconds < least:
        raise Wrong(f"{bursts} bursts in {seconds} s, the peak allows {least} s")


def _moved(case: Case, result: Any) -> None:
    """Capstan reads what its operands store at least once, and at most what any order needs."""
    dram = MEMORIES[case.memory]
    entries = np.count_nonzero(case.inputs["A"])
    rows, columns = case.inputs["A"].shape
    reads = sum(one.reads for one in result.run.memory.channels)
    if case.text in ("y(i) = A(i,j)*x(j)", "y(i) = b(i)-A(i,j)*x(j)"):
        least = 2 * (-(-WORD * entries // dram.burst_bytes))
        whole = sum(-(-WORD * n // dram.burst_bytes) + 1 for n in (rows + 1, columns, rows))
        most = 1.5 * (least + 2 * rows) + whole
        if not least <= reads <= most:
            raise Wrong(f"{reads} bursts read, of {least} to {most}")


def _spread(case: Case, kernel: Any, cycles: int) -> None:
    """Random columns with as many entries in each row take half as long at least."""
    matrix, generator = case.inputs["A"], np.random.default_rng(0)
    shuffled = np.array([generator.permutation(row) for row in matrix])
    random = kernel.simulate({**case.inputs, "A": shuffled}, memory=case.memory).cycles
    if cycles > CROWDED * random + START:
        raise Wrong(f"{cycles} cycles, {random} with the columns of each row anywhere")
