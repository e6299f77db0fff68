"""The algorithms that users gave to the TACO website: ``python benchmarks/sam/website.py LIST``.

``LIST`` is a file with one algorithm per line: how often it was given, in how many spellings, and
one command line (expression, ``-f`` formats), separated by tabs; ``#`` starts a comment.  Each is
compiled, run on three random inputs (a plain one, one with empty rows, one whose first operand is
empty) and compared with numpy.  Algorithms that mean nothing are listed by class, with the reason.

Sparse tensors that the loops cannot walk are transposed first, and the table says how many.
Operands whose singleton levels hold one coordinate in each fiber get inputs of that kind.
Schedules (``-s``) are not applied.

The whole list takes a while: ``--log FILE`` keeps what became of each algorithm, and the same
command goes on from there; ``--seconds`` ends a slice.  For inputs as small as these the Python
engine is the quickest of those that count cycles.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from algorithms import ITERATIONS, Algorithm, Outcome, read_list, run
from rich.console import Console
from rich.table import Table

EVERY = 100
"""After so many algorithms the command says how far it is."""


@dataclass(kw_only=True)
class Totals:
    """Counts over a list."""

    distinct: Counter[str] = field(default_factory=Counter)
    weighted: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Outcome] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.distinct[outcome.kind] += 1
        self.seconds += outcome.seconds
        self.weighted[outcome.kind] += outcome.algorithm.count
        self.reasons.update(outcome.reasons)
        if outcome.stages > 1:
            self.reasons["several stages"] += 1
        self.examples.setdefault(outcome.kind, outcome)


@dataclass(frozen=True, kw_only=True)
class Log:
    """What became of algorithms, a line of JSON for each; other engines and sizes are others."""

    path: Path | None
    engine: str
    iterations: int

    def known(self) -> dict[Algorithm, Outcome]:
        """What the file has of this engine and size."""
        if self.path is None or not self.path.exists():
            return {}
        found = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if (entry.pop("engine"), entry.pop("iterations")) != (self.engine, self.iterations):
                continue
            given = entry.pop("algorithm")
            algorithm = Algorithm(**given | {"formats": tuple(given["formats"])})
            reasons = tuple(entry.pop("reasons"))
            found[algorithm] = Outcome(algorithm=algorithm, reasons=reasons, **entry)
        return found

    def add(self, outcome: Outcome) -> None:
        """Append an outcome."""
        if self.path is None:
            return
        entry = {"engine": self.engine, "iterations": self.iterations, **asdict(outcome)}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def outcomes(
    algorithms: Iterable[Algorithm], engine: str, iterations: int, jobs: int
) -> Iterator[Outcome]:
    """What becomes of the algorithms, in their order."""
    one = partial(run, engine=engine, iterations=iterations)
    if jobs == 1:
        yield from map(one, algorithms)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield from pool.map(one, algorithms)
    finally:
        pool.shutdown(cancel_futures=True)


def show(totals: Totals, missing: int) -> None:
    """Print the table."""
    console = Console(width=130)
    table = Table("outcome", "distinct", "all", "for example", title="TACO website")
    for kind, count in totals.distinct.most_common():
        example = totals.examples[kind].algorithm.command
        table.add_row(kind, str(count), str(totals.weighted[kind]), example[:90])
    table.add_row("sum", str(totals.distinct.total()), str(totals.weighted.total()), "")
    console.print(table)
    how = Table("of those that run", "distinct")
    for reason, count in totals.reasons.most_common():
        how.add_row(reason, str(count))
    console.print(how)
    each = totals.seconds / max(1, totals.distinct.total())
    console.print(f"{totals.seconds:.0f} s of processor time, {each:.2f} s each")
    if missing:
        console.print(f"{missing} algorithms are left: the same command goes on with them")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("--engine", default="native", help="native, python, or blocks: no cycles")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of all loops, at most")
    parser.add_argument("--every", type=int, default=1, help="only every n-th algorithm")
    parser.add_argument("--first", type=int, default=0, help="leave out the ones before")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--log", type=Path, help="keep the outcomes in this file, and go on from it"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    algorithms = list(read_list(options.list.read_text(encoding="utf-8").splitlines()))
    chosen = algorithms[options.first :: options.every]
    log = Log(path=options.log, engine=options.engine, iterations=options.iterations)
    known, totals, start = log.known(), Totals(), time.monotonic()
    for algorithm in chosen:
        if algorithm in known:
            totals.add(known[algorithm])
    left = [algorithm for algorithm in chosen if algorithm not in known]
    missing = len(left)
    for outcome in outcomes(left, options.engine, options.iterations, options.jobs):
        totals.add(outcome)
        log.add(outcome)
        missing -= 1
        if outcome.kind == "wrong":
            print(outcome.algorithm.command, outcome.text, sep="\n", flush=True)
        if missing % EVERY == 0:
            counts = ", ".join(f"{count} {kind}" for kind, count in totals.distinct.most_common())
            print(f"{len(chosen) - missing} of {len(chosen)}: {counts}", flush=True)
        if time.monotonic() - start > options.seconds:
            break
    show(totals, missing)


if __name__ == "__main__":
    main()
