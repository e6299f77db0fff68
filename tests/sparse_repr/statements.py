"""Statements of a program as text, their graphs, and graphs with isolated nodes to run them on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import t2s
from t2s import sparse
from t2s.core.location import user_location
from t2s.driver.assignment_design import Compiled
from t2s.sparse_repr.concrete.fusion import (
    PassOn,
    ScheduledAssignment,
    StatementGroup,
    Way,
    groups_of,
)
from t2s.sparse_repr.concrete.schedule import Schedule

Array = np.ndarray

STREAM, RECOMPUTE, STORE = Way.STREAM, Way.RECOMPUTE, Way.STORE


def graphs_of(
    lines: str,
    formats: Mapping[str, str],
    ways: Mapping[str, Way] | Sequence[tuple[str, Way]],
    schedules: Mapping[str, Schedule] | None = None,
) -> tuple[StatementGroup, ...]:
    """The graphs of statements, one a line; a schedule for those whose result it names."""
    given = ways.items() if isinstance(ways, Mapping) else ways
    here = user_location()
    statements = []
    for line in filter(None, map(str.strip, lines.splitlines())):
        used = set(re.findall(r"\w+", line))
        assignment = sparse.parse(line, {n: made for n, made in formats.items() if n in used})
        schedule = (schedules or {}).get(assignment.result.tensor, Schedule())
        statements.append(ScheduledAssignment(assignment=assignment, schedule=schedule))
    return groups_of(
        statements, [PassOn(tensor=name, way=way, location=here) for name, way in given]
    )


def kernel_of(
    lines: str,
    formats: Mapping[str, str],
    ways: Mapping[str, Way],
    schedules: Mapping[str, Schedule] | None = None,
) -> Compiled:
    """The kernel of statements that are one graph."""
    (group,) = graphs_of(lines, formats, ways, schedules)
    return Compiled.of_group(group)


def check(kernel: Compiled, given: Mapping[str, Any], expected: Array, **options: Any) -> int:
    """Compare all levels and both engines with numpy; returns the cycles."""
    read = {tensor.name for tensor in kernel.assignment.tensors}
    inputs = {name: value for name, value in given.items() if name in read}
    for level in ("notation", "loops", "blocks"):
        found = kernel.interpret(inputs, level=level)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=level)
    runs = [t2s.simulate(kernel, inputs, engine=name, **options) for name in ("python", "native")]
    for run in runs:
        np.testing.assert_allclose(run.output, expected, rtol=1e-12)
    assert runs[0].cycles == runs[1].cycles
    return int(runs[0].cycles)


def some(generator: np.random.Generator, *shape: int, density: float = 1.0) -> Array:
    """Small integers, as floats, some of them zero."""
    values = generator.integers(1, 4, shape) * generator.choice([-1.0, 1.0], shape)
    return values * (generator.random(shape) < density)


def adjacency(generator: np.random.Generator, nodes: int, entries: int) -> Array:
    """A directed graph with self loops and isolated nodes: the first, the last, and some inside."""
    matrix = np.zeros((nodes, nodes))
    matrix.flat[generator.choice(nodes * nodes, entries, replace=False)] = 1.0
    matrix[[0, nodes // 2, nodes - 1]] = 0.0
    return matrix
