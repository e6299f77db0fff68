"""The algorithms that users gave to the TACO website: ``python benchmarks/sam/website.py LIST``.

``LIST`` is a file with one algorithm per line: how often it was given, in how many spellings, and
one command line (expression, ``-f`` formats), separated by tabs; ``#`` starts a comment.  Each is
compiled, run on three random inputs (a plain one, one with empty rows, one whose first operand is
empty) and compared with numpy.  Algorithms that mean nothing are listed by class, with the reason.

Sparse tensors that the loops cannot walk are transposed first, and the table says how many.
Schedules (``-s``) are not applied.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from t2s.core.errors import UserError
from t2s.sparse import Kernel, Schedule, parse
from t2s.sparse_repr.notation.ir import Assignment, accesses, all_variables

Array = np.ndarray[Any, Any]

EXTENTS = (4, 3, 2, 3)
"""Extents of variables, in turn, as long as the loops have not more than ``ITERATIONS``."""

ITERATIONS = 256

KINDS = ("plain", "empty rows", "empty operand")


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A line of the list."""

    count: int
    expression: str
    formats: tuple[str, ...]

    @property
    def command(self) -> str:
        """What the user wrote."""
        return " ".join([f'"{self.expression}"', *(f"-f={option}" for option in self.formats)])


@dataclass(kw_only=True)
class Outcome:
    """What became of an algorithm: ``ok``, ``wrong``, or the class of its error."""

    algorithm: Algorithm
    kind: str
    text: str = ""
    cycles: int = 0
    reasons: tuple[str, ...] = ()
    stages: int = 1
    seconds: float = 0.0


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


def read_list(lines: Iterable[str]) -> Iterator[Algorithm]:
    """The algorithms of a list."""
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        count, _, command = line.rstrip("\n").split("\t")
        match = re.fullmatch(r'"([^"]*)"(.*)', command)
        if match is None:
            raise ValueError(f"not a command: {command}")
        formats = re.findall(r"-f=(\S+)", match[2])
        yield Algorithm(count=int(count), expression=match[1], formats=tuple(formats))


def extents_for(assignment: Assignment) -> dict[str, int]:
    """Different extents for variables that nothing ties together; 1 for the last of very many."""
    variables = all_variables(assignment)
    group = {name: name for name in variables}
    places: dict[tuple[str, int], str] = {}
    for access in (assignment.result, *accesses(assignment.value)):
        for place, name in enumerate(access.variables):
            other = places.setdefault((access.tensor, place), name)
            old, new = group[name], group[other]
            group = {key: new if value == old else value for key, value in group.items()}
    sizes: dict[str, int] = {}
    total = 1
    for number, name in enumerate(dict.fromkeys(group[name] for name in variables)):
        members = sum(value == name for value in group.values())
        size = EXTENTS[number % len(EXTENTS)]
        while size > 1 and total * size**members > ITERATIONS:
            size -= 1
        total *= size**members
        sizes[name] = size
    return {name: sizes[group[name]] for name in variables}


def random_inputs(
    assignment: Assignment, extents: dict[str, int], kind: str, seed: int
) -> dict[str, Array]:
    """Small integers as floats, so that sums are exact in any order."""
    generator = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for access in accesses(assignment.value):
        shape = tuple(extents[name] for name in access.variables)
        density = 0.6 if len(shape) < 3 else 0.4
        array = generator.integers(1, 5, shape) * (generator.random(shape) < density)
        if kind == "empty rows" and shape:
            array[generator.integers(shape[0])] = 0
        if kind == "empty operand" and access.tensor == accesses(assignment.value)[0].tensor:
            array = array * 0
        inputs[access.tensor] = np.asarray(array, np.float64)
    return inputs


def run(algorithm: Algorithm, engine: str = "native") -> Outcome:
    """Compile an algorithm, run it on all inputs and compare with numpy."""
    try:
        assignment = parse(algorithm.expression, algorithm.formats)
        extents = extents_for(assignment)
        shape = tuple(extents[name] for name in assignment.result.variables)
        shapes = {assignment.result.tensor: shape}
        assignment = parse(algorithm.expression, algorithm.formats, shapes)
        kernel = Kernel(assignment, Schedule().transpose())
        cycles = 0
        for seed, kind in enumerate(KINDS):
            inputs = random_inputs(assignment, extents, kind, seed)
            expected = kernel.interpret(inputs)
            if engine == "blocks":
                output = kernel.interpret(inputs, level="blocks")
            else:
                result = kernel.simulate(inputs, engine=engine)
                output, cycles = result.output, cycles + result.cycles
            if not np.allclose(output, expected, equal_nan=True):
                return Outcome(algorithm=algorithm, kind="wrong", text=f"{kind}: {kernel}")
    except UserError as error:
        return Outcome(algorithm=algorithm, kind=_class_of(error), text=str(error))
    program = kernel.program
    reasons = {_reason(reason) for view in program.views for reason in view.reasons}
    return Outcome(
        algorithm=algorithm,
        kind="ok",
        cycles=cycles,
        reasons=tuple(sorted(reasons)),
        stages=len(program.stages),
    )


def outcomes(algorithms: Iterable[Algorithm], engine: str, jobs: int) -> Iterator[Outcome]:
    """What becomes of the algorithms, in their order."""
    timed = partial(_timed, engine=engine)
    if jobs == 1:
        yield from map(timed, algorithms)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(timed, algorithms)


def _timed(algorithm: Algorithm, engine: str) -> Outcome:
    start = time.process_time()
    outcome = run(algorithm, engine)
    outcome.seconds = time.process_time() - start
    return outcome


def _class_of(error: UserError) -> str:
    if "has the variable" in error.message:
        return "ill-formed: a variable twice in the result"
    if "holds exactly one coordinate" in error.message:
        return "ill-formed: a singleton level for fibers of several coordinates"
    return f"refused: {error.message}"


def _reason(reason: str) -> str:
    for start in ("levels in the order", "written in the order", "compressed levels in place"):
        if reason.startswith(start):
            return {
                "levels in the order": "an input is transposed",
                "written in the order": "the result is transposed",
                "compressed levels in place": "non-unique or singleton levels become compressed",
            }[start]
    return reason


def show(totals: Totals, seconds: float) -> None:
    """Print the table."""
    console = Console()
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
    console.print(f"{seconds:.0f} s; of processor time {totals.seconds:.0f} s, {each:.2f} s each")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("--engine", default="native", help="native, python, or blocks: no cycles")
    parser.add_argument("--every", type=int, default=1, help="only every n-th algorithm")
    parser.add_argument("--first", type=int, default=0, help="leave out the ones before")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--log", type=Path, help="append the outcome of each to this file")
    options = parser.parse_args()
    algorithms = list(read_list(options.list.read_text(encoding="utf-8").splitlines()))
    totals = Totals()
    start = time.perf_counter()
    chosen = algorithms[options.first :: options.every]
    for outcome in outcomes(chosen, options.engine, options.jobs):
        totals.add(outcome)
        command = outcome.algorithm.command
        if options.log is not None:
            with options.log.open("a", encoding="utf-8") as log:
                log.write(f"{outcome.kind}\t{outcome.cycles}\t{outcome.seconds:.2f}\t{command}\n")
        if outcome.kind == "wrong":
            print(command, outcome.text, sep="\n", flush=True)
    show(totals, time.perf_counter() - start)


if __name__ == "__main__":
    main()
