"""Bursts of firings on spans of tokens: the same bits, firings and errors as one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse

from benchmarks.random_streams import bursts, differing_values
from t2s import sparse
from t2s.core.ops import Op
from t2s.core.types import INT32, Float
from t2s.errors import CycleLimitError, ProtocolError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from t2s.simulator.values import emit_machine, machine_values
from t2s.simulator.values.spans import Carried, spans_of
from t2s.sparse_repr.streams import Streams

QUICK, SLOW = 10, 150
ONE_BY_ONE = 1 << 62


def differences(seeds: range) -> dict[int, str]:
    """What bursts change, by seed; every fifth case is an expression or a random graph."""
    found = {seed: differing_values(seed, drawn=seed % 5 == 0) for seed in seeds}
    assert sum(difference is not None for difference in found.values()) > len(seeds) / 2
    return {seed: difference for seed, difference in found.items() if difference}


@pytest.mark.filterwarnings("ignore")
def test_random_streams() -> None:
    assert differences(range(QUICK)) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_many_random_streams() -> None:
    assert differences(range(QUICK, QUICK + SLOW)) == {}


def run(text: str, formats: dict[str, str], inputs: dict[str, object], after: int) -> SimResult:
    """A run of a product by rows, with bursts after so many firings."""
    with bursts(after):
        kernel = sparse.compile(sparse.parse(text, formats), "reorder(i,k,j)")
        (stage,) = kernel.simulate(inputs).stages
    return stage


def gathered(f: int, type: type[np.generic] = np.float64) -> tuple[str, dict[str, str], dict]:
    """A product of rows that are gathered; some rows of the result are empty."""
    A = scipy.sparse.random(90, 60, density=0.03, format="csr", random_state=1, dtype=type)
    X = np.random.default_rng(0).standard_normal((60, f)).astype(type)
    return "Y(i,j) = A(i,k)*X(k,j)", {"A": "ds"}, {"A": A, "X": X}


def same(found: SimResult, expected: SimResult) -> None:
    """Outputs bit for bit, cycles and firings."""
    for name, values in expected.outputs.items():
        assert found.outputs[name].tobytes() == values.tobytes()
    assert found.cycles == expected.cycles
    assert found.machine_trace is not None
    assert expected.machine_trace is not None
    for instance, codes in expected.machine_trace.codes.items():
        here = found.machine_trace.codes[instance]
        np.testing.assert_array_equal(here.expanded, codes.expanded)


@pytest.mark.parametrize("f", [1, 5, 13, 300, 5000])
@pytest.mark.parametrize("type", [np.float32, np.float64])
def test_rows_of_any_length(f: int, type: type[np.generic]) -> None:
    """Shorter than a vector, longer than the data ring of a channel, and in between."""
    case = gathered(f, type)
    found = run(*case, after=0)
    same(found, run(*case, after=ONE_BY_ONE))
    Y = case[2]["A"].astype(np.float64) @ case[2]["X"].astype(np.float64)
    (values,) = found.outputs.values()
    np.testing.assert_allclose(values.reshape(90, f), Y, rtol=1e-4, atol=1e-5)


def test_everything_in_a_row_product_bursts() -> None:
    """All machines that see every element do; all their channels carry spans."""
    result = run(*gathered(300), after=0)
    graph, longest = result.program.graph, 20_000
    assert result.machine_trace is not None
    codes = result.machine_trace.codes.values()
    busy = {m.name for m, c in zip(graph.machines, codes, strict=True) if len(c) > longest}
    spans = spans_of(graph)
    assert len(busy) > 10
    assert busy <= spans.bursts.keys()
    between = [c for c in graph.channels if c.source in busy and c.sink in busy]
    assert {c.name for c in between} <= spans.carried.keys()
    forms = {c.stream.kind.value: spans.carried[c.name] for c in between}
    assert forms["value"] is Carried.ARRAY
    assert forms["reference"] is Carried.LINEAR


def test_equal_coordinates_are_joined_in_bursts() -> None:
    """Two dense rows that meet in an intersection, and the sum of their products."""
    generator = np.random.default_rng(0)
    inputs = {name: generator.standard_normal((20, 70)) for name in "DE"}
    inputs["B"] = scipy.sparse.random(20, 20, 0.2, format="csr", random_state=1)
    parsed = sparse.parse("Y(i,j) = B(i,j)*D(i,k)*E(j,k)", {"B": "ds", "Y": "ds"})
    kernel = sparse.compile(parsed, "locate(D,i), locate(E,j)")
    stages = []
    for after in 0, ONE_BY_ONE:
        with bursts(after):
            stages += kernel.simulate(inputs).stages
    same(*stages)
    found = spans_of(stages[0].program.graph).bursts
    assert {"match"} <= {burst.path.rule.name for burst in found["intersect_k"]}
    assert [burst.path.rule.name for burst in found["reduce_k"]] == ["add"]


@pytest.mark.parametrize("after", [500, 5000])
def test_bursts_that_begin_during_a_run(after: int) -> None:
    case = gathered(300)
    same(run(*case, after=after), run(*case, after=ONE_BY_ONE))


@pytest.mark.parametrize(
    ("text", "schedule", "worth"),
    [("A(i,k)*X(k,j)", "reorder(i,k,j)", True), ("A(i,j)+x(j)", "", False)],
)
def test_bursts_are_chosen_where_their_tokens_stay_together(
    text: str, schedule: str, worth: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A union takes tokens one by one, so that scanners of long rows gain nothing before it."""
    chosen: list[frozenset[str]] = []
    ask = machine_values._Running.worth_bursts

    def asked(running: machine_values._Running) -> frozenset[str]:
        chosen.append(ask(running))
        return chosen[-1]

    monkeypatch.setattr(machine_values._Running, "worth_bursts", asked)
    generator = np.random.default_rng(0)
    dense = {"A": (90, 90), "X": (90, 90), "x": (90,)}
    inputs = {name: generator.random(shape) for name, shape in dense.items() if name in text}
    kernel = sparse.compile(sparse.parse(f"Y(i,j) = {text}", {}), schedule)
    with bursts(after=50_000):
        kernel.simulate(inputs)
    assert [bool(machines) for machines in chosen] == [worth]


def test_long_runs_are_several_words_of_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit_machine, "most_in_run", lambda bits: 50)
    case = gathered(300)
    same(run(*case, after=0), run(*case, after=ONE_BY_ONE))


@pytest.mark.parametrize("limit", [1, 500, 5000])
def test_runs_cut_short(limit: int) -> None:
    """A limit of cycles bounds the firings of machines, in the middle of a burst as well."""
    text, formats, inputs = gathered(300)
    kernel = sparse.compile(sparse.parse(text, formats), "reorder(i,k,j)")
    found = []
    for after in 0, ONE_BY_ONE:
        with bursts(after), pytest.raises(CycleLimitError) as error:
            kernel.simulate(inputs, max_cycles=limit)
        found.append(error.value.result)
    here, there = found
    assert here.cycles == there.cycles == limit
    assert here.nodes == there.nodes


def test_runs_again() -> None:
    """The memory of a run in bursts is that of the next one, with other data."""
    text, formats, inputs = gathered(300)
    kernel = sparse.compile(sparse.parse(text, formats), "reorder(i,k,j)")
    for scale in 1.0, -2.0:
        given = inputs | {"X": scale * inputs["X"]}
        with bursts(after=0):
            (found,) = kernel.simulate(given).stages
        with bursts(after=ONE_BY_ONE):
            (expected,) = kernel.simulate(given).stages
        same(found, expected)


def errors(streams: Streams, inputs: dict[str, object]) -> Iterator[str]:
    """The texts of a refusal, in bursts and one by one."""
    for after in 0, ONE_BY_ONE:
        with bursts(after), pytest.raises(ProtocolError) as error:
            simulate(streams.graph(), inputs, progress=False)
        yield str(error.value)


def test_rows_of_different_lengths_are_refused_at_the_same_token() -> None:
    s = Streams("sum")
    values = []
    for name, size in ("a", 40), ("b", 30):
        _, ref = s.scan_dense(s.root(), size)
        values.append(s.load(ref, s.tensor(name, Float(64))))
    s.write_values(s.compute(Op.ADD, *values), s.output("sum", Float(64)))
    inputs = {name: np.arange(100.0, 140.0) for name in "ab"}
    first, second = errors(s, inputs)
    assert first == second
    assert "130.0" in first


def test_loads_outside_are_refused_at_the_same_token() -> None:
    s = Streams("scan")
    pos, crd = s.tensor("pos", INT32), s.tensor("crd", INT32)
    out, _ = s.scan_compressed(s.root(), pos, crd)
    s.write_singleton(out, s.output("found", INT32))
    inputs = {"pos": np.array([0, 50], np.int32), "crd": np.arange(37, dtype=np.int32)}
    first, second = errors(s, inputs)
    assert first == second
    assert "37 in mode 'run'" in first


def test_machines_with_short_runs_fire_one_by_one_beside_bursts() -> None:
    """A graph that gathers long rows, and adds up short ones behind that."""
    generator = np.random.default_rng(0)
    made = sparse.program(
        "T(i,j) = A(i,k) * X(k,j)\nY(i,h) = T(i,j) * W(j,h)", formats={"A": "ss", "W": "ss"}
    ).fuse("all")
    inputs = {
        "A": scipy.sparse.random(60, 60, 0.06, format="csr", random_state=1),
        "X": generator.standard_normal((60, 700)),
        "W": scipy.sparse.random(700, 9, 0.3, format="csr", random_state=2),
    }
    with bursts(after=ONE_BY_ONE):
        (expected,) = made.simulate(inputs).stages
    (found,) = made.simulate(inputs).stages
    same(found, expected)
    burst = bursting(found)
    assert "load_X" in burst
    assert "load_W" not in burst


def bursting(run: SimResult) -> set[str]:
    """The machines whose traces are runs of equal codes."""
    assert run.machine_trace is not None
    names = [machine.name for machine in run.program.graph.machines]
    codes = dict(zip(names, run.machine_trace.codes.values(), strict=True))
    return {n for n, one in codes.items() if {p.dtype for p in one.parts} == {np.dtype(np.int32)}}


def rows_of_entries(rows: int, columns: int, entries: int, seed: int) -> scipy.sparse.csr_matrix:
    return scipy.sparse.random(rows, columns, entries / columns, format="csr", random_state=seed)


X, Z = np.ones((300, 400)), np.ones((400, 40))


@pytest.mark.parametrize(
    ("text", "formats", "schedule", "inputs", "gains"),
    [
        (  # rows that are gathered, dense or of some forty elements, whose sums are rows
            "Y(i,j) = A(i,k)*X(k,j)",
            {"A": "ds"},
            "reorder(i,k,j)",
            {"A": rows_of_entries(900, 300, 4, 1), "X": X},
            True,
        ),
        ("Y(i,j) = X(i,k)*Z(k,j)", {}, "reorder(i,k,j)", {"X": X[:90], "Z": Z}, True),
        (  # sums of points that lie anywhere, behind machines that fire as one along rows
            "Y(i,j) = A(i,k)*B(k,j)",
            {"A": "ds", "B": "ds", "Y": "ds"},
            "reorder(i,k,j)",
            {"A": rows_of_entries(300, 300, 9, 1), "B": rows_of_entries(300, 900, 90, 2)},
            False,
        ),
        (  # coordinates that are compared one by one
            "Y(i,j) = A(i,j)*B(i,j)",
            {"A": "ds", "B": "ds", "Y": "ds"},
            "",
            {"A": rows_of_entries(600, 400, 200, 1), "B": rows_of_entries(600, 400, 200, 2)},
            False,
        ),
    ],
)
def test_bursts_where_they_are_a_gain(
    text: str, formats: dict[str, str], schedule: str, inputs: dict[str, object], gains: bool
) -> None:
    kernel = sparse.compile(sparse.parse(text, formats), schedule)
    (found,) = kernel.simulate(inputs).stages
    assert bool(bursting(found)) == gains
