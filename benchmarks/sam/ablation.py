"""What each block is needed for [SAM, Table 2]: ``python benchmarks/sam/ablation.py LIST``.

``LIST`` is that of ``website.py``.  Every algorithm is compiled, and a row counts those whose graph
has a block that the row takes away: they could not be expressed without it.  Two rows take an
intersecter away.  One leaves the locator: there every dense level that may be located into is
(``Schedule.locate``), and an algorithm is lost only if an intersecter is left.  The other takes the
locator away too, so that graphs stay as they are.

The published counts come from the text of expressions and formats for some rows (the operators),
and from that compiler's graphs for others; the last column says where the two must differ.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from algorithms import Algorithm, assignment_of, read_list
from chart import bars, page
from rich.console import Console
from rich.table import Table

from t2s.core.errors import UserError
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite
from t2s.sparse import Kernel, Schedule
from t2s.sparse_repr.blocks.alu import Compute
from t2s.sparse_repr.blocks.draft import BlockKind, StreamBlock
from t2s.sparse_repr.blocks.droppers import CoordinateDropper
from t2s.sparse_repr.blocks.joins import Join
from t2s.sparse_repr.blocks.reducers import ReduceLists, ReducePoints
from t2s.sparse_repr.blocks.repeats import Repeat
from t2s.sparse_repr.blocks.scanners import Count, Scan, WriteLevel
from t2s.sparse_repr.concrete.ir import ConcreteProgram, result_of
from t2s.sparse_repr.levels import Dense
from t2s.sparse_repr.lowering.diagram import Wired
from t2s.sparse_repr.notation.ir import Access, Assignment, accesses

Test = Callable[[ConcreteProgram, StreamBlock], bool]


@dataclass(kw_only=True)
class Uses:
    """The blocks of an algorithm: as it is compiled, and with located levels where that helps."""

    kernel: Kernel
    located: Kernel

    def has(self, test: Test) -> bool:
        """Whether a block of the graphs passes a test."""
        return any(test(self.kernel.program, wired.block) for wired in _wired(self.kernel))

    @property
    def stored(self) -> bool:
        """Whether a stage writes a tensor with levels, dense or not."""
        return any(result_of(stage).variables for stage in self.kernel.program.stages)


def _wired(kernel: Kernel) -> Iterator[Wired]:
    return (wired for diagram in kernel.diagrams for wired in diagram.blocks)


def _compressed(program: ConcreteProgram, block: StreamBlock) -> bool:
    """A scanner of a level that is not dense."""
    if not isinstance(block, Scan):
        return False
    return not isinstance(program.format_of(block.tensor).levels[block.level], Dense)


def _adds(_: ConcreteProgram, block: StreamBlock) -> bool:
    return isinstance(block, Compute) and block.operator in (Op.ADD, Op.SUBTRACT)


def _multiplies(_: ConcreteProgram, block: StreamBlock) -> bool:
    return isinstance(block, Compute) and block.operator is Op.MULTIPLY


def _is(*kinds: type) -> Test:
    return lambda _, block: isinstance(block, kinds)


def joins(kernel: Kernel, kind: BlockKind) -> int:
    """Joiners of a kind with a side that does not come from dense levels alone."""
    found, dense = 0, set()
    for wired in _wired(kernel):
        match wired.block:
            case Scan() as scan if not _compressed(kernel.program, scan):
                dense.add(wired.outputs[0])
            case Count():
                dense.add(wired.outputs[0])
            case Join(sides=sides) as join:
                firsts = accumulate(sides[:-1], initial=0)
                if all(wired.inputs[first] in dense for first in firsts):
                    dense.add(wired.outputs[0])
                elif join.kind is kind:
                    found += 1
    return found


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table: what is taken away, and the published counts of what is lost then."""

    name: str
    unique: int
    all: int
    lost: Callable[[Uses], bool]
    why: str = ""


ROWS = (
    Row(
        name="compressed level scanner", unique=2773, all=19363,
        why="2708 of the list have such a level at all",
        lost=lambda uses: uses.has(_compressed),
    ),
    Row(
        name="all level scanners", unique=3814, all=23713,
        lost=lambda uses: uses.has(_is(Scan, Count)),
    ),
    Row(
        name="repeater", unique=3162, all=19924,
        lost=lambda uses: uses.has(_is(Repeat)),
    ),
    Row(
        name="unioner", unique=600, all=2229, why="also where a constant is added",
        lost=lambda uses: joins(uses.kernel, BlockKind.UNION) > 0,
    ),
    Row(
        name="intersecter, with a locator", unique=720, all=2715,
        lost=lambda uses: joins(uses.located, BlockKind.INTERSECT) > 0,
    ),
    Row(
        name="intersecter and locator", unique=1878, all=15777,
        lost=lambda uses: joins(uses.kernel, BlockKind.INTERSECT) > 0,
    ),
    Row(
        name="adder", unique=1023, all=3118, why="here also subtraction",
        lost=lambda uses: uses.has(_adds),
    ),
    Row(name="multiplier", unique=3220, all=20986, lost=lambda uses: uses.has(_multiplies)),
    Row(
        name="reducer", unique=3008, all=20036,
        lost=lambda uses: uses.has(_is(ReduceLists, ReducePoints)),
    ),
    Row(
        name="coordinate dropper", unique=617, all=2292,
        why="here only where a stored fiber may be empty",
        lost=lambda uses: uses.has(_is(CoordinateDropper)),
    ),
    Row(
        name="compressed level writer", unique=1075, all=5525, why="here also workspaces of stages",
        lost=lambda uses: uses.has(_is(WriteLevel)),
    ),
    Row(name="all level writers", unique=3698, all=23260, lost=lambda uses: uses.stored),
)  # fmt: skip


def distinct(assignment: Assignment) -> Assignment:
    """Every occurrence of an operand under a name of its own: each is located into by itself."""
    seen: Counter[str] = Counter()
    tensors = {tensor.name: tensor for tensor in assignment.tensors}

    def rename(term: Term) -> Term | None:
        if not isinstance(term, Access):
            return None
        seen[term.tensor] += 1
        name = f"{term.tensor}_occurrence_{seen[term.tensor]}"
        tensors[name] = replace(assignment.tensor(term.tensor), name=name)
        return replace(term, tensor=name)

    value = rewrite(assignment.value, rename)
    return replace(assignment, value=value, tensors=tuple(tensors.values()))


def located(assignment: Assignment, kernel: Kernel) -> Kernel:
    """The kernel with dense levels located into, one after the other, where that may be."""
    schedule, assignment = Schedule().scan().transpose(), distinct(assignment)
    candidates = {
        (access.tensor, access.variables[mode])
        for access in accesses(assignment.value)
        for level, mode in zip(
            assignment.tensor(access.tensor).format.levels,
            assignment.tensor(access.tensor).format.modes,
            strict=True,
        )
        if isinstance(level, Dense)
    }
    for tensor, variable in sorted(candidates):
        if not joins(kernel, BlockKind.INTERSECT):
            break
        longer = schedule.locate(tensor, variable)
        try:
            kernel = Kernel(assignment, longer)
        except UserError:
            continue
        schedule = longer
    return kernel


@dataclass(kw_only=True)
class Counts:
    """Algorithms that compile, and those that each row loses: distinct ones, and all."""

    unique: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    compiled: int = 0
    given: int = 0
    refused: int = 0

    def add(self, algorithm: Algorithm) -> None:
        """Compile an algorithm and count it."""
        try:
            assignment, _ = assignment_of(algorithm)
            kernel = Kernel(assignment, Schedule().scan().transpose())
        except UserError:
            self.refused += 1
            return
        uses = Uses(kernel=kernel, located=located(assignment, kernel))
        self.compiled += 1
        self.given += algorithm.count
        for row in ROWS:
            if row.lost(uses):
                self.unique[row.name] += 1
                self.all[row.name] += algorithm.count


def shares(counts: Counts) -> Iterator[tuple[Row, tuple[float, float]]]:
    """Each row with the percentage that it loses, of distinct algorithms and of all."""
    for row in ROWS:
        unique = 100 * counts.unique[row.name] / max(1, counts.compiled)
        yield row, (unique, 100 * counts.all[row.name] / max(1, counts.given))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only every n-th algorithm")
    parser.add_argument("--out", type=Path, default=Path("build/ablation.html"))
    options = parser.parse_args()
    counts = Counts()
    lines = options.list.read_text(encoding="utf-8").splitlines()
    for algorithm in list(read_list(lines))[:: options.every]:
        counts.add(algorithm)
    table = Table("without", "distinct", "published", "%", "published", title="Table 2")
    for heading in ("all", "published", "%", "published", "why"):
        table.add_column(heading)
    here: dict[str, float] = {}
    there: dict[str, float] = {}
    for row, (unique, everyone) in shares(counts):
        published = 100 * row.unique / 3839, 100 * row.all / 23794
        table.add_row(
            row.name, str(counts.unique[row.name]), str(row.unique), f"{unique:.2f}",
            f"{published[0]:.2f}", str(counts.all[row.name]), str(row.all), f"{everyone:.2f}",
            f"{published[1]:.2f}", row.why,
        )  # fmt: skip
        here[row.name], there[row.name] = unique, published[0]
    console = Console(width=160)
    console.print(table)
    console.print(
        f"{counts.compiled} distinct algorithms, given {counts.given} times, compile; "
        f"{counts.refused} are ill-formed"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure = bars("Distinct algorithms lost", {"here": here, "published": there}, up="%")
    page("Ablation", [figure], options.out)
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
