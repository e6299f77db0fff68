"""The result of a program of statements: its tensors, and the graphs of every statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2s.core.display import NotebookCard, NotebookDisplay, Table
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.names import clipped, counted, did_you_mean
from t2s.driver.assignment_design import SparseResult
from t2s.driver.design import Array
from t2s.driver.page_writer import write_stages
from t2s.driver.words import Words, total_words
from t2s.sparse_repr.concrete.fusion import PassOn, Way
from t2s.sparse_repr.notation.program import Statement, print_statement
from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.simulator.report.result import SimResult

MOST_LETTERS = 60
"""Letters of a statement in a table."""


@dataclass(frozen=True, kw_only=True)
class StatementRun:
    """A statement and the run of its graphs.

    ``passed`` are the results of other statements that its graph computes and does not store.
    """

    statement: Statement
    result: SparseResult
    passed: tuple[PassOn, ...] = ()

    @property
    def name(self) -> str:
        """The tensor that the statement assigns."""
        return self.statement.name

    @property
    def cycles(self) -> int:
        """Cycles of the statement's graphs, one after the other."""
        return self.result.cycles

    @property
    def words(self) -> Mapping[str, Words]:
        """The words that the statement's graphs load and store, by tensor."""
        return self.result.words


@dataclass(frozen=True, kw_only=True, repr=False)
class ProgramResult(NotebookDisplay):
    """The result of a program: ``result["H"]`` is an array, and ``tensors`` are as stored.

    Attributes
    ----------
    tensors: what every statement assigned, by name.
    runs: the statements in the order in which they ran, with their graphs.
    """

    tensors: Mapping[str, SparseTensor]
    runs: tuple[StatementRun, ...]

    def __getitem__(self, name: str) -> Array:
        """The values of a tensor that a statement assigned, as a dense array."""
        for run in self.runs:
            if name in (passing.tensor for passing in run.passed):
                raise _not_stored(name, run)
        if name not in self.tensors and any(run.name == name for run in self.runs):
            raise UserError(
                f"the values of {name} were not computed, as no cycle depends on them",
                location=user_location(),
                expected=f"one of {', '.join(self.tensors)}",
                given=repr(name),
                hint="simulate computes all values, and cycles those on which times depend",
            )
        if name not in self.tensors:
            raise UserError(
                f"no statement assigns {name}",
                location=user_location(),
                expected=f"one of {', '.join(self.tensors)}",
                given=repr(name),
                hint=did_you_mean(str(name), self.tensors),
            )
        return self.tensors[name].to_dense()

    def __repr__(self) -> str:
        return f"<ProgramResult {', '.join(self.tensors)}, {self.cycles} cycles>"

    @property
    def cycles(self) -> int:
        """Cycles of all graphs, one after the other."""
        return sum(run.cycles for run in self.runs)

    @property
    def stages(self) -> tuple[SimResult | HardwareResult, ...]:
        """The runs of all graphs, one after the other."""
        return tuple(stage for run in self.runs for stage in run.result.stages)

    @property
    def equal(self) -> dict[str, str]:
        """The statements whose graphs did in each cycle what those of another one did before.

        By the tensors that both assign.  Their times are those of the other one, and their values
        were computed without it (see ``driver/equal_graphs.py``).
        """
        first: dict[int, str] = {}
        found: dict[str, str] = {}
        for run in self.runs:
            other = first.setdefault(id(run.result.stages[0]), run.name)
            if other != run.name:
                found[run.name] = other
        return found

    @property
    def output(self) -> Array:
        """The values of the last statement, as a dense array."""
        return self[self.runs[-1].name]

    @property
    def words(self) -> dict[str, Words]:
        """The words that all graphs load and store, by tensor."""
        return total_words(run.words for run in self.runs)

    @property
    def table(self) -> Table:
        """A row for every graph: its cycles, its busiest block, and the words that it moves."""
        rows, equal = [], self.equal
        for run in self.runs:
            stages = run.result.stages
            for number, stage in enumerate(stages):
                rows.append(
                    (
                        _shown(run) if not number else "",
                        f"{number + 1} of {len(stages)}",
                        f"{stage.cycles:,}",
                        *_busiest(stage, equal.get(run.name)),
                        *_moved(run.result, number),
                    )
                )
        return Table(
            title=f"{counted(self.cycles, 'cycle')} of {counted(len(rows), 'graph')}"
            f"{self._timed_once()}",
            headers=("statement", "graph", "cycles", "busiest block", "busy", "loaded", "stored"),
            rows=tuple(rows),
            left=frozenset({0, 3}),
        )

    def _timed_once(self) -> str:
        """How many graphs were timed, if some are equal."""
        timed = len({id(stage) for stage in self.stages})
        return f", of which {timed} are timed: others are equal" if timed < len(self.stages) else ""

    def __str__(self) -> str:
        return self.table.text()

    def _card(self) -> NotebookCard:
        summary = (("cycles", f"{self.cycles:,}"), ("tensors", ", ".join(self.tensors)))
        return NotebookCard(title="Program", summary=summary, parts=(self.table,))

    def report(
        self,
        path: str | Path,
        *,
        windows: Sequence[tuple[int, int]] = (),
        depths: Any = None,
    ) -> Path:
        """Write a page with all graphs, one after the other, equal ones once.

        See ``SimResult.report``.

        Raises ``UserError`` for graphs that ran as hardware, which counts no stalls.
        """
        each_once = tuple({id(stage): stage for stage in self.stages}.values())
        return write_stages(self, each_once, path, windows, depths)


def _shown(run: StatementRun) -> str:
    """A statement, after the results that its graph passes on to it."""
    text = clipped(print_statement(run.statement), MOST_LETTERS)
    names = ", ".join(passing.tensor for passing in run.passed)
    return f"{text}, of {names}" if names else text


def _not_stored(name: str, run: StatementRun) -> UserError:
    passing = next(passing for passing in run.passed if passing.tensor == name)
    how = {Way.STREAM: "streamed", Way.RECOMPUTE: "recomputed"}[passing.way]
    return UserError(
        f"{name} is not stored: it is {how} in the graph of {run.name}",
        location=user_location(),
        expected="a tensor that is stored",
        given=repr(name),
        hint=f'program.store("{name}") stores it',
        notes=[(passing.location, f"{name} is {how} here")],
    )


def _busiest(stage: SimResult | HardwareResult, equal: str | None) -> tuple[str, str]:
    """The block that was taken for most cycles, by firings and the intervals behind them, and for
    how many; hardware does not count that.

    Instead of the block, the statement to whose graphs those of this one are ``equal``.
    """
    from t2s.simulator.report.result import SimResult

    if not isinstance(stage, SimResult) or not stage.nodes:
        return "", ""
    taken = {name: node.busy + node.waiting for name, node in stage.nodes.items()}
    name = max(taken, key=lambda name: taken[name])
    return name if equal is None else f"as for {equal}", f"{taken[name]:,}"


def _moved(result: SparseResult, stage: int) -> tuple[str, str]:
    """The words that a graph loads and stores, as far as they were counted."""
    try:
        words = sum(result.words_of_stage(stage).values(), Words())
    except UserError:
        return "", ""
    return f"{words.loaded:,}", f"{words.stored:,}"
