"""Random runs of stream graphs for the kernels of times: ragged rows, joins, unions, lanes, skips.

A few kernels of every kind run on random data, so that a run takes milliseconds; now and then an
expression of the hunt, or a random graph of machines, is drawn.  Latencies and intervals are random
too.  ``differing`` compares times by runs with those of the kernel that runs ahead, and
``differing_values`` values and firings in bursts and vectors with those one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np

from benchmarks.hunt import clustered
from benchmarks.hunt import sparse as expressions
from benchmarks.hunt.choices import Choices
from benchmarks.random_machines import random_machines
from t2s import sparse
from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Graph
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import retime
from t2s.simulator.program.codes import Codes, codes_of_parts
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.assemble import assemble
from t2s.simulator.report.counters import FOREVER
from t2s.simulator.report.errors import DeadlockError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from t2s.simulator.times import machine_times
from t2s.simulator.times.rounds import FEWEST_FIRINGS, rounds_of, without_rounds
from t2s.simulator.times.runs import RunTimes, runs_of
from t2s.simulator.times.windows import all_codes
from t2s.simulator.values import machine_values

KERNELS = (
    ("Y(i,j) = A(i,k)*X(k,j)", {"A": "ds"}, "reorder(i,k,j)"),
    ("Y(i,j) = A(i,k)*X(k,j)", {"A": "ds"}, "reorder(i,k,j), parallelize(i,3)"),
    ("Y(i,j) = X(i,k)*W(k,j)", {"W": "ds"}, "reorder(i,k,j)"),
    ("Y(i,j) = X(i,k)*W(k,j)", {}, "reorder(i,k,j)"),
    ("Y(i,j) = A(i,k)*B(k,j)", {"A": "ss", "B": "ds", "Y": "ss"}, "reorder(i,k,j)"),
    ("Y(i,j) = A(i,k)*B(k,j)", {"A": "ds", "B": "ds:1,0", "Y": "ss"}, "reorder(i,j,k)"),
    ("Y(i,j) = A(i,j)*C(i,k)*D(j,k)", {"A": "ds", "Y": "ds"}, "locate(C,i), locate(D,j)"),
    ("Y(i,j) = A(i,j)+B(i,j)", {"A": "ds", "B": "uq", "Y": "ds"}, ""),
    ("Y(i,j) = A(i,j)+B(i,j)", {"A": "ss", "B": "db", "Y": "ss"}, ""),
    ("Y(i,j) = A(i,j)*B(i,j)", {"A": "ds", "B": "ds", "Y": "ds"}, "skip(j)"),
    ("y(i) = A(i,j)*x(j)", {"A": "ds"}, "parallelize(j,2)"),
    ("y(i) = b(i)+A(i,j)*x(j)", {"A": "ss"}, ""),
)
"""Expressions, formats and directives."""

PRODUCTS = 5
"""The first of them, which add up rows of one matrix by those of another."""

EXTENTS = ({"i": 9, "j": 40, "k": 30}, {"i": 50, "j": 3, "k": 17}, {"i": 1, "j": 70, "k": 1})

SHORT_ROWS = (
    {"i": 50, "j": 3, "k": 17},
    {"i": 90, "j": 12, "k": 6},
    {"i": 64, "j": 33, "k": 4},
    {"i": 70, "j": 18, "k": 1},
)

_NEVER = 1 << 62
UNBOUNDED = 1 << 30
"""A capacity that no run needs."""


def random_runs(seed: int, *, drawn: bool = False, repeating: bool = False) -> Iterator[SimResult]:
    """The results of the graphs of a random case, of ``KERNELS`` or otherwise drawn.

    If ``repeating``, it is a product of matrices with many short rows, a few of which come again
    and again, so that machines make the same rounds.
    """
    c = Choices(seed)
    if repeating:
        number = c.below(PRODUCTS)
        inputs = _inputs(c, KERNELS[number][0], c.one_of(SHORT_ROWS))
        repeated = {name: _repeating(c, values) for name, values in inputs.items()}
        yield from sparse.simulate(_kernel(number), repeated).stages
    elif not drawn:
        number = c.below(len(KERNELS))
        kernel, extents = _kernel(number), c.one_of(EXTENTS)
        yield from sparse.simulate(kernel, _inputs(c, KERNELS[number][0], extents)).stages
    elif c.below(2):
        graph, inputs = random_machines(seed)
        try:
            yield simulate(graph, inputs, progress=False)
        except DeadlockError:
            return
    else:
        case = expressions.generate(c)
        try:
            yield from sparse.simulate(case.compiled(), case.inputs).stages
        except UserError:  # an operand that no kernel takes
            return


@cache
def _kernel(number: int) -> sparse.Kernel:
    text, formats, directives = KERNELS[number]
    return sparse.compile(sparse.parse(text, formats), directives or None)


def _inputs(c: Choices, text: str, extents: Mapping[str, int]) -> dict[str, Array]:
    """Matrices with entries as data have them, some of them with empty rows, or empty."""
    generator = np.random.default_rng(c.below(1 << 20))
    type = c.one_of([np.float32, np.float64])
    inputs: dict[str, Array] = {}
    for name, variables in re.findall(r"(\w)\(([\w,]+)\)", text.split("=")[1]):
        shape = tuple(extents[v] for v in variables.split(","))
        if len(shape) == 1 or name in "CDX":
            inputs[name] = generator.standard_normal(shape).astype(type)
            continue
        there = clustered.matrix(c, generator, *shape, c.one_of(clustered.FORMS))
        values = there * generator.standard_normal(shape)
        inputs[name] = values.astype(type) * (not c.chance(12))
    return inputs


def _repeating(c: Choices, values: Array) -> Array:
    """Values whose first few rows come again and again, with the last ones as they are."""
    rows = np.arange(len(values))
    again = rows < len(rows) - c.below(1 + len(rows) // 4)
    return values[np.where(again, rows % (1 + c.below(2)), rows)]


@contextmanager
def bursts(after: int) -> Iterator[None]:
    """Machines that fire one by one so many times, and in bursts from then on."""
    with patch.object(machine_values, "_TRIAL", after):
        yield


@contextmanager
def some_bursts(seed: int) -> Iterator[None]:
    """Random machines that fire in bursts from the beginning on, and others one by one."""

    def chosen(graph: Graph) -> frozenset[str]:
        c = Choices(seed)
        return frozenset(machine.name for machine in graph.machines if c.chance(2))

    with patch.object(machine_values, "at_first", chosen), bursts(after=_NEVER):
        yield


@contextmanager
def fastest_code() -> Iterator[None]:
    """Optimized code, with vectors of firings, from the beginning on."""
    with (
        patch.object(machine_values, "_PREPARED", GraphCache()),
        patch.object(machine_values, "_FIRINGS_A_CHARACTER", -1),
    ):
        yield


@contextmanager
def first_code() -> Iterator[None]:
    """The code of new graphs, which fires one by one, to the end."""
    with (
        patch.object(machine_values, "_PREPARED", GraphCache()),
        patch.object(machine_values, "_FIRINGS_A_CHARACTER", _NEVER),
        patch.object(machine_values, "is_compiled", lambda text: False),
    ):
        yield


def differing_values(seed: int, *, drawn: bool = False) -> str | None:
    """What machines do differently in a random case if they fire one by one.

    "" if nothing is different, ``None`` if nothing runs.  For odd seeds only some machines fire in
    bursts.
    """
    with first_code(), bursts(after=_NEVER):
        expected = list(random_runs(seed, drawn=drawn))
    different: list[str] = []
    for way in some_bursts(seed) if seed % 2 else bursts(after=0), bursts(after=_NEVER):
        with fastest_code(), way:
            found = list(random_runs(seed, drawn=drawn))
        if len(found) != len(expected):
            return "stages"
        different += [n for two in zip(found, expected, strict=True) for n in _differing(*two)]
    return ", ".join(different) if expected else None


def _differing(found: SimResult, expected: SimResult) -> Iterator[str]:
    for name, values in expected.outputs.items():
        if found.outputs[name].tobytes() != values.tobytes():
            yield f"values of {name}"
    if found.cycles != expected.cycles:
        yield "cycles"
    here, there = found.machine_trace, expected.machine_trace
    if here is None or there is None:
        return
    for instance, codes in there.codes.items():
        if not np.array_equal(here.codes[instance].expanded, codes.expanded):
            yield f"firings of machine {instance}"
    if not np.array_equal(here.sent, there.sent):
        yield "tokens sent"
    if not np.array_equal(here.received, there.received):
        yield "tokens received"


def differing(run: SimResult, seed: int) -> str | None:
    """What times by runs and ahead of time say differently of a run with random latencies.

    "" if nothing does, ``None`` if times do not follow from runs.
    """
    program, trace = run.program, run.machine_trace
    assert isinstance(program, SimProgram)
    assert trace is not None
    if trace.unfinished or trace.limit is not None:
        return None
    c = Choices(seed)
    names = [timing.channel.name for timing in program.channels]
    changed = program.with_capacities(dict.fromkeys(names, UNBOUNDED)).with_latencies(
        {name: c.one_of([1, 1, 2, 9]) for name in names}
    )
    nodes = tuple(slow_node(node) if c.chance(9) else node for node in changed.nodes)
    changed = replace(changed, nodes=nodes)
    applied = changed.traced(trace)
    tables = runs_of(applied)
    if tables is None:
        return None
    codes, most = all_codes(changed, trace.codes), c.one_of([2, 2, 8, 1024])
    fewest = c.one_of([4, 16, 64, FEWEST_FIRINGS])
    few_pieces = c.one_of([0, 2, 16])
    times = RunTimes(applied, tables, most_runs=most, few_pieces=few_pieces)
    known: list[Array | None] = [None] * len(codes)
    evenly = c.one_of([None, 2, 5, 30])
    for part in in_windows(codes, c):
        traces = [
            rounds_of(single, fewest, evenly if before is None else before)
            or without_rounds(single)
            for single, before in zip(part, known, strict=True)
        ]
        known = [trace.known for trace in traces]
        times.extend(traces)
        while times.advance():
            pass
    times.check_finished()
    tally = times.tally(interrupted=False)
    found = assemble(applied, tally, {}, "native", kernel="runs")
    expected = run_ahead(changed, trace)
    fields = ("cycles", "ending", "nodes", "tokens_left", "deadlock")
    return ", ".join(name for name in fields if getattr(found, name) != getattr(expected, name))


def in_windows(codes: Sequence[Codes], c: Choices) -> Iterator[list[Codes]]:
    """The codes of all nodes as they are, or in parts that end anywhere."""
    count = c.one_of([1, 1, 2, 7])
    ends = [sorted(c.one_of(range(len(one) + 1)) for _ in range(count - 1)) for one in codes]
    for number in range(count):
        part: list[Codes] = []
        for one, cuts in zip(codes, ends, strict=True):
            begin, end = [0, *cuts][number], [*cuts, len(one)][number]
            whole = (begin, end) == (0, len(one))
            part.append(one if whole else codes_of_parts(one.type, [one.expanded[begin:end]]))
        yield part


def run_ahead(program: SimProgram, trace: Trace) -> SimResult:
    """A run that is timed by the kernel that runs ahead, which makes one firing after the other."""
    nothing = {"_by_runs": lambda *arguments: None, "_stepped": lambda *arguments: None}
    with patch.multiple(machine_times, **nothing):
        found = retime(program, trace, limits=Limits(max_cycles=FOREVER // 4))
    assert found.kernel == "run-ahead"
    return found


def slow_node(node: NodeTiming) -> NodeTiming:
    """The node with an interval of 3 cycles."""
    return replace(node, interval=replace(node.interval, cycles=3))
