"""The algorithms of a list such as that of the TACO website: read, given inputs, run, compared."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.sparse import Format, Kernel, Schedule, SparseTensor, from_coordinates, from_dense, parse
from t2s.sparse_repr.levels import CompressedNonUnique, Dense
from t2s.sparse_repr.notation.ir import Assignment, accesses, all_variables

Array = np.ndarray[Any, Any]

EXTENTS = (4, 3, 2, 3)
"""Extents of variables, in turn, as long as the loops have not more than ``ITERATIONS``."""

ITERATIONS = 256

INPUT = "ill-formed: an operand in levels that cannot be stored"
RESULT = "ill-formed: a result of several coordinates in a singleton level"
TWICE = "ill-formed: a variable twice in the result"

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
    """What became of an algorithm: ``ok``, ``wrong``, or the class of its error.

    ``reasons`` are what the compiler did besides, ``stages`` the graphs one after the other.
    """

    algorithm: Algorithm
    kind: str
    text: str = ""
    cycles: int = 0
    reasons: tuple[str, ...] = ()
    stages: int = 1
    seconds: float = 0.0


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


def extents_for(assignment: Assignment, iterations: int = ITERATIONS) -> dict[str, int]:
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
        while size > 1 and total * size**members > iterations:
            size -= 1
        total *= size**members
        sizes[name] = size
    return {name: sizes[group[name]] for name in variables}


def random_inputs(
    assignment: Assignment, extents: dict[str, int], kind: str, seed: int
) -> dict[str, SparseTensor]:
    """Small integers as floats, so that sums are exact in any order, as the formats store them."""
    generator = np.random.default_rng(seed)
    inputs: dict[str, SparseTensor] = {}
    first = accesses(assignment.value)[0].tensor if accesses(assignment.value) else ""
    for access in accesses(assignment.value):
        shape = tuple(extents[name] for name in access.variables)
        empty = kind == "empty operand" and access.tensor == first
        density = 0.6 if len(shape) < 3 else 0.4
        array = generator.integers(1, 5, shape) * (generator.random(shape) < density)
        if kind == "empty rows" and shape:
            array[generator.integers(shape[0])] = 0
        dense = np.asarray(array * (not empty), np.float64)
        format = assignment.tensor(access.tensor).format
        try:
            inputs[access.tensor] = from_dense(dense, format)
        except UserError:
            inputs[access.tensor] = one_in_each(shape, format, generator, empty=empty)
    return inputs


def one_in_each(
    shape: tuple[int, ...], format: Format, generator: np.random.Generator, *, empty: bool
) -> SparseTensor:
    """A tensor with just one coordinate in each fiber of its singleton levels.

    Below such a level no fiber is empty, so that an ``empty`` tensor may store zeros.
    Raises ``UserError`` if the levels cannot be stored at all.
    """
    if not format.plain:
        raise ValueError("a list has no formats with blocks")
    found: list[tuple[int, ...]] = [()]
    below = False
    for level, mode in zip(format.levels, format.modes, strict=True):
        extent, below = shape[mode], below or level.branchless
        density = 0.0 if empty and not below else 0.6
        longer = []
        for start in found:
            chosen = np.arange(extent)
            if level.branchless:
                chosen = generator.integers(0, extent, 1)
            elif isinstance(level, CompressedNonUnique):
                chosen = generator.integers(0, extent, round(extent * density))
            elif not isinstance(level, Dense):
                chosen = chosen[generator.random(extent) < density]
            if below and not len(chosen):
                chosen = generator.integers(0, extent, 1)
            longer += [(*start, int(coordinate)) for coordinate in chosen]
        found = longer
    levels = np.array(sorted(set(found)), np.int64).reshape(-1, len(shape))
    coordinates = np.empty_like(levels)
    coordinates[:, list(format.modes)] = levels
    values = np.where(empty, 0.0, generator.integers(1, 5, len(coordinates)))
    return from_coordinates(coordinates, values, shape, format)


def run(
    algorithm: Algorithm,
    engine: str = "native",
    iterations: int = ITERATIONS,
    kinds: Sequence[str] = KINDS,
) -> Outcome:
    """Compile an algorithm, run it on inputs of all kinds and compare with numpy.

    ``engine`` is one of the simulator's, or ``"blocks"``: values without machines and cycles.
    """
    start = time.process_time()
    outcome = _run(algorithm, engine, iterations, kinds)
    outcome.seconds = time.process_time() - start
    return outcome


def assignment_of(
    algorithm: Algorithm, iterations: int = ITERATIONS
) -> tuple[Assignment, dict[str, int]]:
    """The algorithm as it is written, and extents of its variables."""
    assignment = parse(algorithm.expression, algorithm.formats)
    extents = extents_for(assignment, iterations)
    shape = tuple(extents[name] for name in assignment.result.variables)
    shapes = {assignment.result.tensor: shape}
    return parse(algorithm.expression, algorithm.formats, shapes), extents


def _run(algorithm: Algorithm, engine: str, iterations: int, kinds: Sequence[str]) -> Outcome:
    try:
        assignment, extents = assignment_of(algorithm, iterations)
        kernel = Kernel(assignment, Schedule().scan().transpose())
        cycles = 0
        for kind in kinds:
            try:
                inputs = random_inputs(assignment, extents, kind, KINDS.index(kind))
            except UserError as error:
                return Outcome(algorithm=algorithm, kind=INPUT, text=str(error))
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


def _class_of(error: UserError) -> str:
    if "has the variable" in error.message:
        return TWICE
    if "holds exactly one coordinate" in error.message:
        return RESULT
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
