"""Programs of statements: their values, cycles and words, by text and by operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import t2s
from t2s import Float, sparse
from t2s.errors import UserError
from t2s.sparse import Tensor
from tests.models import MODELS, Model, gcn
from tests.random_programs import RandomProgram, random_programs


def program_of(model: Model) -> sparse.Program:
    return sparse.program(model.text, model.formats)


@pytest.mark.parametrize("name", MODELS)
def test_values_of_models(name: str) -> None:
    model = MODELS[name]()
    program = program_of(model)
    result, reference = program.simulate(model.inputs), program.interpret(model.inputs)
    for tensor, expected in model.expected.items():
        np.testing.assert_allclose(result[tensor], expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(reference[tensor], expected, rtol=1e-12, atol=1e-12)
    assert set(result.tensors) == set(reference) == set(program.graphs(model.inputs))
    for tensor in result.tensors:
        np.testing.assert_allclose(result[tensor], reference[tensor], rtol=1e-12, atol=1e-12)


def test_engines_give_the_same_bits_and_cycles() -> None:
    for name in ("gcn", "decoder"):
        model = MODELS[name]()
        program = program_of(model)
        native = program.simulate(model.inputs)
        python = program.simulate(model.inputs, engine="python")
        assert native.cycles == python.cycles == t2s.cycles(program, model.inputs)
        for tensor, value in native.tensors.items():
            assert value.to_dense().tobytes() == python[tensor].tobytes(), tensor


def test_single_precision() -> None:
    model = gcn(9, 24)
    inputs = {name: value.astype(np.float32) for name, value in model.inputs.items()}
    result = program_of(model).simulate(inputs)
    assert {value.dtype for value in result.tensors.values()} == {np.dtype(np.float32)}
    np.testing.assert_allclose(result["Z"], model.expected["Z"], rtol=1e-4)
    wide = program_of(model).simulate(inputs, type=Float(64))
    assert wide["Z"].dtype == np.float64


def test_a_statement_takes_the_cycles_that_it_takes_alone() -> None:
    model = MODELS["decoder"]()
    program = program_of(model)
    result = program.simulate(model.inputs)
    known = {**model.inputs, **result.tensors}
    lines = [line.strip() for line in model.text.strip().splitlines()]
    alone = [line for line in lines if "softmax" not in line and "layernorm" not in line]
    assert len(alone) == 8
    for line in alone:
        name = line.split("(")[0]
        written = {other: value for other, value in known.items() if f"{other}(" in line}
        read = {other: value for other, value in written.items() if other != name}
        formats = {
            other: value.format
            for other, value in written.items()
            if isinstance(value, sparse.SparseTensor)
        }
        formats |= {other: form for other, form in model.formats.items() if other in read}
        run = next(run for run in result.runs if run.name == name)
        cycles = sparse.simulate(sparse.parse(line, formats), read).cycles
        assert cycles == run.cycles, line
    assert result.cycles == sum(run.cycles for run in result.runs)


def test_text_and_operators_are_the_same_program() -> None:
    i, j, k, h, c = (t2s.Var(name) for name in "ijkhc")
    A, X, W1, W2 = Tensor("A", "ds"), Tensor("X", "dd"), Tensor("W1", "ds"), Tensor("W2", "ds")
    b1, b2, T, H = Tensor("b1", "d"), Tensor("b2", "d"), Tensor("T", "dd"), Tensor("H", "dd")
    U, Z = Tensor("U", "dd"), Tensor("Z", "dd")
    T[i, j] = A[i, k] * X[k, j]
    H[i, h] = sparse.relu(sparse.summation(T[i, j] * W1[j, h], j) + b1[h])
    U[i, h] = A[i, k] * H[k, h]
    Z[i, c] = sparse.softmax(U[i, h] * W2[h, c] + b2[c], c)
    model = gcn(9, 24)
    by_text, by_tensors = program_of(model), sparse.program([Z, H, U, T])
    one, other = by_text.simulate(model.inputs), by_tensors.simulate(model.inputs)
    assert one.cycles == other.cycles
    assert one["Z"].tobytes() == other["Z"].tobytes()
    assert [run.name for run in other.runs] == [run.name for run in one.runs]
    statements = [line.split("  #")[0] for line in by_text.statements]
    assert [line.split("  #")[0] for line in by_tensors.statements] == statements
    np.testing.assert_allclose(t2s.interpret(by_tensors, model.inputs)["Z"], one["Z"], rtol=1e-12)


def test_a_program_prints_its_statements_and_loops() -> None:
    program = sparse.program(
        """
        P(i,j) = M(i,j) * Q(i,d) * K(j,d)  # scores
        S(i,j) = stored(softmax(j;
                     P(i,j)))

        # values
        O(i,d) = S(i,j) * V(j,d)
        """,
        {"M": "ds", "O": "dd"},
    )
    expected = """\
P(i,j) = sum(d, M(i,j)*Q(i,d)*K(j,d))  # stored as ds:0,1, as M is
S_max(i) = stored(max(j; P(i,j)))  # stored as d:0, by default
S_low(i) = 0.0 - S_max(i)  # stored as d:0, by default
S_shifted(i,j) = P(i,j) + S_low(i) where P is stored  # stored as ds:0,1, as P is
S_exp(i,j) = stored(exp(S_shifted(i,j)))  # stored as ds:0,1, as P is
S_sum(i) = sum(j, S_exp(i,j))  # stored as d:0, by default
S(i,j) = S_exp(i,j)/S_sum(i)  # stored as ds:0,1, as S_exp is
O(i,d) = sum(j, S(i,j)*V(j,d))
"""
    assert str(program) == expected
    loops = t2s.print_loop_nest(program)
    assert loops == program.print_loop_nest()
    for statement in expected.splitlines():
        assert statement in loops
    assert "P(i,j) += M(i,j)*Q(i,d)*K(j,d)" in loops
    mean = sparse.program("m(i) = mean(k; X(i,k))").print_loop_nest()
    assert "m(i) = total(i)/extent_k" in mean


def test_words_of_tensors_and_graphs() -> None:
    nodes, features, hidden = 5, 3, 2
    generator = np.random.default_rng(1)
    ring = np.roll(np.eye(nodes), 1, axis=1) + np.eye(nodes)
    program = sparse.program("T(i,j) = A(i,k)*X(k,j)\nL(i,h) = T(i,j)*W(j,h)", {"A": "ds"})
    inputs = {
        "A": ring,
        "X": generator.random((nodes, features)),
        "W": generator.random((features, hidden)),
    }
    result = program.simulate(inputs)
    entries = 2 * nodes
    first, second = (run.words for run in result.runs)
    # both ends of every row, coordinates, and a value again for every feature that it multiplies
    assert first["A"].loaded == 2 * nodes + entries + entries * features
    assert first["X"].loaded == entries * features
    assert first["T"] == sparse.Words(stored=nodes * features)
    products = nodes * features * hidden
    assert second["T"] == sparse.Words(loaded=products)
    assert second["W"].loaded == products
    assert result.words["T"] == sparse.Words(products, nodes * features)
    assert (
        result.runs[0].words
        == sparse.simulate(
            sparse.parse("T(i,j) = A(i,k)*X(k,j)", {"A": "ds"}), {k: inputs[k] for k in "AX"}
        ).words
    )
    with pytest.raises(UserError, match="the words of this run were not counted"):
        assert program.simulate(inputs, engine="python").words


def test_the_table_has_a_row_for_every_graph(tmp_path: object) -> None:
    model = gcn(9, 24)
    result = program_of(model).simulate(model.inputs)
    table = result.table
    graphs = [stage for run in result.runs for stage in run.result.stages]
    assert len(table.rows) == len(graphs) > len(result.runs)
    assert [row[2] for row in table.rows] == [f"{graph.cycles:,}" for graph in graphs]
    assert [row[1] for row in table.rows if row[0].startswith("H(i,h)")] == ["1 of 2"]
    for row, graph in zip(table.rows, graphs, strict=True):
        assert int(row[4].replace(",", "")) == max(node.busy for node in graph.nodes.values())
    assert str(result).startswith(f"{result.cycles:,} cycles of 9 graphs\n")
    page = result.report(f"{tmp_path}/page.html")
    assert "scan_W1_h" in page.read_text("utf-8")


def test_extents_come_from_all_statements() -> None:
    """A variable on the left only goes as far as later statements read."""
    program = sparse.program("B(i,j) = a(i)\nC(i,j) = B(i,j)*X(i,j)")
    result = program.simulate({"a": np.arange(2.0), "X": np.ones((2, 3))})
    assert result["B"].shape == (2, 3)
    assert result["C"].tolist() == [[0, 0, 0], [1, 1, 1]]
    shaped = sparse.program("B(i,j) = a(i)", shapes={"B": (2, 4)})
    assert shaped.simulate({"a": np.arange(2.0)})["B"].shape == (2, 4)


def test_names_of_variables_belong_to_their_statement() -> None:
    program = sparse.program("T(j,i) = X(i,j)\nY(i,j) = T(i,k)*T(j,k)")
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(program.simulate({"X": x})["Y"], x.T @ x)


def test_types_of_statements() -> None:
    program = sparse.program("T(i) = x(i)*x(i)\nE(i) = exp(T(i))\nB(i) = b(i)*b(i)")
    result = program.simulate({"x": np.array([1, 2], np.int32), "b": np.array([True, False])})
    assert [result[name].dtype.name for name in "TEB"] == ["int32", "float64", "bool"]
    np.testing.assert_allclose(result["E"], np.exp([1, 4]), rtol=1e-12)
    total = sparse.program("s = x(i)\nt = s*y")
    with pytest.warns(match="the sum s needs Int"):
        small = total.simulate({"x": np.array([100, 100], np.int8), "y": np.int8(1)})
    assert small["t"] == np.int8(200 - 256)


@pytest.mark.parametrize(
    ("a", "x", "w"),
    [
        ("ds", "dd", "dd"),
        ("ds", "ds", "ds"),
        ("ds", "ss", "ds:1,0"),
        ("ds", "dd:1,0", "ss"),
        ("ss", "ds", "dd"),
        ("ss", "ss", "ss"),
        ("coo", "dd", "ds:1,0"),
        ("coo", "ds", "ds"),
        ("ds:1,0", "ss", "dd"),
    ],
)
def test_formats_of_graphs_features_and_weights(a: str, x: str, w: str) -> None:
    """Of a layer in which some nodes have no edges and others one to themselves."""
    generator = np.random.default_rng(4)
    adjacency = np.eye(6) * (np.arange(6) % 2) + np.eye(6, k=2)
    features = generator.normal(size=(6, 5)) * (generator.random((6, 5)) < 0.5)
    weights = generator.normal(size=(5, 3)) * (generator.random((5, 3)) < 0.5)
    program = sparse.program(
        "T(i,j) = A(i,k)*X(k,j)\nH(i,h) = relu(sum(j, T(i,j)*W(j,h)))",
        {"A": sparse.coo(2) if a == "coo" else a, "X": x, "W": w},
    )
    for name in ("T", "H"):
        program = program.schedule(name, "transpose()")
    inputs = {"A": adjacency, "X": features, "W": weights}
    expected = np.maximum(adjacency @ features @ weights, 0)
    result = program.simulate(inputs)
    np.testing.assert_allclose(result["H"], expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(program.interpret(inputs)["H"], expected, rtol=1e-12, atol=1e-15)


@given(random_programs())
@settings(max_examples=4, deadline=None)
def test_random_programs(case: RandomProgram) -> None:
    check_random_program(case)


@pytest.mark.slow
@given(random_programs())
@settings(max_examples=40, deadline=None)
def test_many_random_programs(case: RandomProgram) -> None:
    check_random_program(case)


def check_random_program(case: RandomProgram) -> None:
    """Every statement agrees with numpy, given the results before it; so do stored patterns."""
    program = sparse.program(case.text, case.formats)
    for statement in program.program.statements:
        program = program.schedule(statement.name, "transpose()")
    result = program.simulate(case.inputs)
    reference = program.interpret(case.inputs)
    for name, expected in reference.items():
        np.testing.assert_allclose(result[name], expected, rtol=1e-9, atol=1e-9, err_msg=str(case))
    known: dict[str, Any] = dict(case.inputs)
    for line, name in zip(case.text.splitlines(), case.names, strict=True):
        read = {other: known[other] for other in known if f"{other}(" in line}
        expected = case.by_numpy(line, read)
        np.testing.assert_allclose(result[name], expected, rtol=1e-9, atol=1e-9, err_msg=str(case))
        known[name] = result[name]


def test_arrays_are_in_the_memory_of_a_device() -> None:
    text = "C(i,j) = A(i,k)*B(k,j)"
    inputs = {"A": np.eye(6), "B": np.arange(24.0).reshape(6, 4)}
    program = sparse.program(f"{text}\nD(i,j) = C(i,j)*2", {"A": "ds"})
    result = program.simulate(inputs, memory="ddr4-2133")
    alone = sparse.simulate(sparse.parse(text, {"A": "ds"}), inputs, memory="ddr4-2133")
    assert result.runs[0].cycles == alone.cycles > program.simulate(inputs).runs[0].cycles


def test_schedules_of_statements() -> None:
    text = "C(i,j) = A(i,k)*B(k,j)\nD(i,j) = C(i,j)*2"
    inputs = {"A": np.eye(4), "B": np.arange(16.0).reshape(4, 4)}
    program = sparse.program(text, {"A": "ds", "B": "ds", "C": "ds"})
    before = program.simulate(inputs)
    lanes = program.schedule("C", "reorder(i,k,j)").schedule(
        "D", sparse.Schedule().split("j", "p", "q", 2)
    )
    after = lanes.simulate(inputs)
    np.testing.assert_array_equal(after["D"], before["D"])
    alone = sparse.parse(text.splitlines()[0], {"A": "ds", "B": "ds", "C": "ds"})
    expected = sparse.simulate(alone, inputs, schedule="reorder(i,k,j)").cycles
    assert after.runs[0].cycles == expected
    assert "j = 2*p + q" in lanes.print_loop_nest()
    with pytest.raises(UserError, match="nothing assigns Q"):
        program.schedule("Q", "reorder(i,k,j)")
    with pytest.raises(UserError, match="C has a schedule already"):
        lanes.schedule("C", "reorder(i,k,j)")
    with pytest.raises(UserError, match="do not walk"):
        program.schedule("C", "reorder(k,j,i)")


def test_patterns_of_results() -> None:
    formats = {"A": "ds", "B": "ds", "M": "ss:1,0", "v": "s"}
    lines = {
        "C(i,j) = A(i,j) + B(i,j)": "ds:0,1",
        "C(i,j) = A(i,j) + X(i,j)": "dd:0,1",
        "C(j,i) = A(i,j)*X(i,j)": "ds:1,0",
        "C(i,j) = M(i,j)*A(j,k)*B(i,k)": "ss:1,0",
        "C(i,j) = A(i,k)*B(k,j)": "dd:0,1",
        "C(h,i,j) = A(i,j)*Y(h)": "dds:0,1,2",
        "C(i,j) = v(i)*X(i,j)": "sd:0,1",
        "C(i,j) = relu(A(i,j)) - 2*B(i,j)": "ds:0,1",
        "C(i,j) = exp(A(i,j))": "dd:0,1",
        "C(i,j) = stored(exp(A(i,j)))*X(i,j)": "ds:0,1",
        "C(i,i2) = A(i,i2)/X(i,i2)": "ds:0,1",
        "C(i) = A(i,j)": "d:0",
    }
    for line, expected in lines.items():
        read = {name: form for name, form in formats.items() if f"{name}(" in line}
        stored = sparse.program(line, read).simulate(
            {
                name: np.eye(3) if name in "ABMX" else np.array([0.0, 1, 2])
                for name in "ABMXYv"
                if f"{name}(" in line
            }
        )
        assert str(stored.tensors["C"].format) == expected, line


@pytest.mark.verilator
@pytest.mark.slow
@pytest.mark.parametrize("fusion", ["none", "layer"])
def test_hardware_of_a_program(fusion: str) -> None:
    """Verilator counts the cycles of the simulator, and gives its bits, graph by graph."""
    program = sparse.program(
        """
        T(i,j) = A(i,k)*X(k,j)
        H(i,h) = relu(sum(j, T(i,j)*W(j,h)) + b(h))
        U(i,h) = H(i,k)*V(k,h)
        Z(i) = max(h; U(i,h))
        """,
        {"A": "ds"},
    ).fuse(fusion)
    generator = np.random.default_rng(0)
    shapes = {"X": (4, 3), "W": (3, 2), "b": (2,), "V": (2, 2)}
    inputs = {name: generator.standard_normal(size, np.float32) for name, size in shapes.items()}
    inputs["A"] = np.diag(np.float32([1, 0, 2, 3]))
    hardware, result = t2s.verilate(program, inputs), program.simulate(inputs)
    assert [run.cycles for run in hardware.runs] == [run.cycles for run in result.runs]
    assert hardware.tensors.keys() == result.tensors.keys()
    for name in result.tensors:
        assert hardware[name].tobytes() == result[name].tobytes()
    assert str(hardware).startswith(f"{result.cycles:,} cycles of {len(result.stages)} graph")
