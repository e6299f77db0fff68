"""Programs whose results are streamed or recomputed: the same tensors, fewer cycles and words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import t2s
from t2s import sparse
from t2s.errors import UserError
from t2s.sparse_repr.notation.ir import all_variables
from tests.models import MODELS, adjacency, gcn, sage
from tests.random_programs import RandomProgram, random_programs
from tests.sampling import sampled

LAYER = """
    T(i,j) = A(i,k)*X(k,j)
    L(i,h) = T(i,j)*W(j,h)
    H(i,h) = relu(L(i,h) + b(h))
"""
FORMATS = {"A": "ds", "W": "ds"}


def layer(nodes: int = 9, entries: int = 25, features: int = 6) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(nodes)
    return {
        "A": adjacency(generator, nodes, entries),
        "X": generator.normal(size=(nodes, features)),
        "W": generator.normal(size=(features, 4)) * (generator.random((features, 4)) < 0.5),
        "b": generator.normal(size=4),
    }


@sampled("name", list(MODELS), quick=4)
def test_all_fusions_give_the_same_tensors(name: str) -> None:
    model = MODELS[name]()
    program = sparse.program(model.text, model.formats)
    results = [program.fuse(one).simulate(model.inputs) for one in ("none", "layer", "all")]
    for result in results:
        for tensor in result.tensors:
            expected = model.expected.get(tensor, results[0][tensor])
            np.testing.assert_allclose(result[tensor], expected, rtol=1e-10, atol=1e-12)
    stored, layered, fused = results
    assert len(stored.runs) >= len(layered.runs) >= len(fused.runs)
    assert layered.cycles <= stored.cycles


def test_additions_in_the_same_order_give_the_same_bits() -> None:
    inputs = layer()
    program = sparse.program(LAYER, FORMATS)
    one, other = (program.fuse(name).simulate(inputs)["H"] for name in ("none", "layer"))
    assert one.tobytes() == other.tobytes()


def test_graphs_and_their_cycles() -> None:
    """What one graph computes takes the cycles of its busiest statement, or a few more."""
    nodes, features = 200, 50
    generator = np.random.default_rng(3)
    inputs = layer(nodes, 1000, features)
    inputs["A"] = (generator.random((nodes, nodes)) < 0.03) * 1.0
    program = sparse.program(LAYER, FORMATS)
    apart, fused = program.simulate(inputs), program.stream("T", "L").simulate(inputs)
    assert [run.name for run in fused.runs] == ["H"]
    assert [passing.tensor for passing in fused.runs[0].passed] == ["T", "L"]
    slowest = max(run.cycles for run in apart.runs)
    assert slowest <= fused.cycles <= 1.01 * slowest + 2 * features + 200
    assert t2s.cycles(program.stream("T", "L"), inputs) == fused.cycles
    assert fused.table.rows[0][0] == "H(i,h) = relu(L(i,h) + b(h)), of T, L"


def test_recomputation_costs_more_than_it_saves() -> None:
    model = gcn(40, 250, features=20)
    program = sparse.program(model.text, model.formats)
    stored, layered, fused = (
        program.fuse(name).simulate(model.inputs).cycles for name in ("none", "layer", "all")
    )
    assert layered < stored
    assert fused > layered


def test_what_is_streamed_is_neither_stored_nor_loaded() -> None:
    inputs = layer()
    inputs["A"] = np.eye(9) + np.roll(np.eye(9), 1, axis=1)
    program = sparse.program(LAYER, FORMATS)
    apart, fused = program.simulate(inputs).words, program.fuse("layer").simulate(inputs).words
    assert set(apart) - set(fused) == {"T", "L"}
    for name in ("A", "X", "H"):
        assert fused[name] == apart[name]


@pytest.mark.parametrize("name", ["T", "L", "both"])
def test_words_that_streaming_saves(name: str) -> None:
    """All words of what is streamed, and no others; twice its size if each element is read once."""
    inputs = layer()
    inputs["A"] = np.eye(9) + np.roll(np.eye(9), 1, axis=1)
    program = sparse.program(LAYER, FORMATS)
    names = ("T", "L") if name == "both" else (name,)
    apart, fused = program.simulate(inputs), program.stream(*names).simulate(inputs)
    saved = {one: words for one, words in apart.words.items() if one in names}
    assert {**saved, **fused.words} == apart.words
    assert not set(names) & fused.words.keys()
    for one in names:
        assert saved[one].stored == apart[one].size
    if "L" in names:
        assert saved["L"].loaded + saved["L"].stored == 2 * apart["L"].size
    if "T" in names:  # once for each weight in the row that it is multiplied with
        weights = np.count_nonzero(inputs["W"])
        assert saved["T"].loaded == inputs["A"].shape[0] * weights
    inputs["A"][3] = 0  # readers do not come to a row that is empty
    apart, fused = program.simulate(inputs), program.stream(*names).simulate(inputs)
    for one, words in fused.words.items():
        assert words.loaded <= apart.words[one].loaded
        assert words.stored <= apart.words[one].stored


def test_a_row_for_a_reader_that_is_computed_again() -> None:
    """Q is computed again for every t, and so is its operand."""
    program = sparse.program(
        """
        Q1(h,s,d) = N(s,e) * WQ(e,h,d)
        Q(h,s,d) = Q1(h,s,d) + bQ(h,d)
        P(h,s,t) = Q(h,s,d) * K(h,t,d)
        Y(h,s,t) = M(s,t) * P(h,s,t)
        """,
        {"M": "ds"},
    ).schedule("Q1", "reorder(h,s,e,d) transpose(WQ)")
    fused = program.stream("P", "Q1").recompute("Q")
    generator = np.random.default_rng(0)
    shapes = {"N": (3, 4), "WQ": (4, 2, 3), "bQ": (2, 3), "K": (2, 3, 3)}
    inputs = {name: generator.random(size) for name, size in shapes.items()} | {"M": np.eye(3)}
    expected = program.interpret(inputs)["Y"]
    np.testing.assert_allclose(fused.simulate(inputs)["Y"], expected, rtol=1e-12)


def test_a_result_that_is_not_stored() -> None:
    program = sparse.program(LAYER, FORMATS).stream("T")
    result = program.simulate(layer())
    assert set(result.tensors) == {"L", "H"}
    with pytest.raises(UserError, match="T is not stored: it is streamed in the graph of L") as one:
        result["T"]
    assert 'hint:     program.store("T") stores it' in str(one.value)
    gathered = sparse.program(LAYER + "Y(i,h) = A(i,k)*H(k,h)", FORMATS).recompute("H")
    with pytest.raises(UserError, match="H is not stored: it is recomputed in the graph of Y"):
        gathered.simulate(layer())["H"]


def test_what_is_said_goes_before_fuse() -> None:
    model = sage()
    program = sparse.program(model.text, model.formats)
    for fused in (program.store("X1").fuse("all"), program.fuse("all").store("X1")):
        result = fused.simulate(model.inputs)
        assert [run.name for run in result.runs] == ["X1", "X2"]
        np.testing.assert_allclose(result["X2"], model.expected["X2"], rtol=1e-12)
    again = program.fuse("all").fuse("none").simulate(model.inputs)
    assert again.cycles == program.simulate(model.inputs).cycles


def test_the_loops_of_a_program_say_what_is_passed_on() -> None:
    loops = sparse.program(LAYER, FORMATS).fuse("layer").print_loop_nest()
    assert loops.startswith(
        "T(i,j) = sum(k, A(i,k)*X(k,j))  # streamed\nL(i,h) = sum(j, T(i,j)*W(j,h))  # streamed\n"
        "H(i,h) = relu(L(i,h) + b(h))  # stored as dd:0,1, by default\nfor i:\n  with T(j):\n"
    )


def test_schedules_of_statements_in_one_graph() -> None:
    program = sparse.program(LAYER, {"A": "ds", "W": "ds:1,0"})
    with pytest.raises(UserError, match="T cannot be streamed into L") as caught:
        program.stream("T")
    assert 'L with reorder("i j h") and transpose("W")' in str(caught.value)
    turned = program.schedule("L", "reorder(i,j,h), transpose(W)").stream("T")
    inputs = layer()
    expected = np.maximum(inputs["A"] @ inputs["X"] @ inputs["W"] + inputs["b"], 0)
    np.testing.assert_allclose(turned.simulate(inputs)["H"], expected)


ATTENTION = """
    P(q,k) = M(q,k)*Q(q,d)*K(k,d)
    S(q,k) = stored(softmax(k; P(q,k)))
    O(q,d) = S(q,k)*V(k,d)
"""


def test_attention_is_driven_by_its_mask() -> None:
    size, width = 64, 16
    generator = np.random.default_rng(2)
    mask = (generator.random((size, size)) < 0.3) * 1.0
    inputs = {name: generator.normal(size=(size, width)) for name in "QKV"} | {"M": mask}
    program = sparse.program(ATTENTION, {"M": "ds"})
    plain, fused = program.simulate(inputs), program.fuse("layer").simulate(inputs)
    entries = np.count_nonzero(mask)
    assert [run.name for run in fused.runs] == ["O"]
    assert entries * (width + 1) <= fused.cycles <= 1.05 * entries * (width + 1)
    np.testing.assert_allclose(fused["O"], plain["O"], rtol=1e-12)
    for lanes in (2, 4):
        dealt = program.schedule("O", f"parallelize(q,{lanes})").fuse("layer").simulate(inputs)
        assert dealt["O"].tobytes() == fused["O"].tobytes()
        assert dealt.cycles <= fused.cycles / (0.8 * lanes)


def test_lanes_of_a_loop_that_is_not_around() -> None:
    program = sparse.program(ATTENTION, {"M": "ds"}).schedule("O", "parallelize(d,2)")
    assert "for d:  # 2 lanes" in program.fuse("layer").print_loop_nest()
    text = "T(i,j) = A(i,k)*X(k,j)\nH(i,h) = relu(sum(j, T(i,j)*W(j,h)))"
    inner = sparse.program(text, FORMATS).schedule("H", "parallelize(j,2)")
    with pytest.raises(UserError, match="parallelize names j, which is not a loop around H") as one:
        inner.stream("T")
    assert "expected: one of i, h" in str(one.value)


def test_fused_programs_take_the_verbs() -> None:
    inputs = layer()
    program = sparse.program(LAYER, FORMATS).fuse("layer")
    ((graph,),) = program.graphs(inputs).values()
    assert t2s.lower(program, inputs=inputs) == graph
    bounded = program.simulate(inputs, capacity=2)
    assert bounded["H"].tobytes() == program.simulate(inputs, engine="python")["H"].tobytes()
    np.testing.assert_allclose(t2s.interpret(program, inputs)["H"], bounded["H"])


def test_single_precision_in_one_graph() -> None:
    inputs = {name: value.astype(np.float32) for name, value in layer().items()}
    result = sparse.program(LAYER, FORMATS).fuse("layer").simulate(inputs)
    expected = np.maximum(inputs["A"] @ inputs["X"] @ inputs["W"] + inputs["b"], 0)
    assert result["H"].dtype == np.float32
    np.testing.assert_allclose(result["H"], expected, rtol=1e-4, atol=1e-5)


def _masked() -> dict[str, np.ndarray]:
    """Rows with many, one and no elements; scores far from zero."""
    generator = np.random.default_rng(4)
    mask = (generator.random((6, 8)) < 0.5) * 1.0
    mask[2], mask[4] = 0, np.eye(8)[3]
    scores = generator.normal(size=(6, 8)) * 300
    scores[0] = -700.0
    scores[1, :2] = 700.0, -700.0
    return {"M": mask, "N": mask.T, "X": scores}


ROWS = {
    "Z(i,c) = softmax(c; X(i,c))": 3,
    "Z(i,c) = stored(softmax(c; M(i,c)*X(i,c)))": 6,
    "Z(i,c) = softmax(c; M(i,c)*X(i,c))": 4,
    "Z(i,c) = layernorm(c; X(i,c)/300)": 3,
    "Z(i,c) = X(i,c) - max(k; X(i,k)) - min(k; X(i,k)) - mean(k; X(i,k))": 2,
    "Z(i) = max(c; relu(X(i,c)))": 1,
    "Z(i,c) = softmax(c; M(i,k)*N(k,c))": 4,
    "Z(c) = min(i; M(i,c))": 1,
    "Z(i) = max(c; M(i,c) - 2*M(i,c))": 1,
}


@pytest.mark.parametrize("line", ROWS)
def test_functions_of_rows_in_one_graph(line: str) -> None:
    program = sparse.program(line, {name: "ds" for name in "MN" if f"{name}(" in line})
    inputs = {n: v for n, v in _masked().items() if f"{n}(" in line}
    apart, fused = program.simulate(inputs), program.fuse("layer").simulate(inputs)
    assert len(fused.runs[0].passed) >= ROWS[line]
    assert [run.name for run in fused.runs] == ["Z"]
    np.testing.assert_allclose(fused["Z"], apart["Z"], rtol=1e-12, atol=1e-300)
    bounded = program.fuse("layer").simulate(inputs, capacity=2, engine="python")
    assert bounded["Z"].tobytes() == fused["Z"].tobytes()


def test_what_is_read_twice_again_and_again() -> None:
    """Residual layers: a graph of all of them would read its input 2^30 times."""
    layers = range(30)
    lines = [f"X{n + 1}(i,j) = X{n}(i,j) + sum(k, X{n}(i,k)*W(k,j))" for n in layers]
    program = sparse.program("\n".join(lines))
    with pytest.raises(UserError, match="the graph of X30 reads its inputs in too many") as caught:
        program.stream(*(f"X{n + 1}" for n in layers[:-1]))
    assert "such as X29, X28, X27" in str(caught.value)
    fused = program.fuse("layer").simulate({"X0": np.ones((2, 3)), "W": np.eye(3) / 10})
    assert 1 < len(fused.runs) < 6
    np.testing.assert_allclose(fused["X30"], 1.1**30)


@given(random_programs())
@settings(max_examples=6, deadline=None, phases=[Phase.generate])
def test_random_programs_in_fewer_graphs(case: RandomProgram) -> None:
    program = sparse.program(case.text, case.formats)
    for statement in program.program.statements:
        program = program.schedule(statement.name, "transpose()")
    expected = program.interpret(case.inputs)
    for kind in ("layer", "all"):
        result = program.fuse(kind).simulate(case.inputs, engine="python")
        for name in result.tensors:
            found = result[name]
            np.testing.assert_allclose(
                found, expected[name], rtol=1e-7, atol=1e-9, err_msg=str(case)
            )


@given(random_programs(), st.data())
@settings(max_examples=6, deadline=None, phases=[Phase.generate])
def test_random_orders_of_loops_in_fewer_graphs(case: RandomProgram, data: st.DataObject) -> None:
    program = sparse.program(case.text, case.formats)
    for statement in program.program.statements:
        order = data.draw(st.permutations(all_variables(statement.assignment)))
        program = program.schedule(statement.name, f"reorder({','.join(order)}), transpose()")
    expected = program.interpret(case.inputs)
    for kind in ("layer", "all"):
        fused = program.fuse(kind)
        result = fused.simulate(case.inputs, engine="python")
        for name in result.tensors:
            np.testing.assert_allclose(
                result[name], expected[name], rtol=1e-7, atol=1e-9, err_msg=str(fused)
            )


def test_a_row_inside_of_a_loop_that_computes_its_reader_again() -> None:
    """S2 makes X1 for every h, so the row of S1 in X1 is made for every h, too."""
    model = MODELS["sage"]()
    program = sparse.program(model.text, formats=model.formats)
    for name in ("S2", "X1"):
        program = program.schedule(name, "reorder(i,h,j)")
    fused = program.stream("S2", "N2").recompute("X1")
    for each in (fused.stream("S1"), fused):
        found = each.simulate(model.inputs)["X2"]
        np.testing.assert_allclose(found, model.expected["X2"], atol=1e-12)
    whole = fused.schedule("S1", "reorder(j,i,h), transpose()")
    with pytest.raises(UserError, match="S1 cannot be streamed into X1, which is computed again"):
        whole.stream("S1")


@pytest.mark.parametrize("name", ["N_row", "N_mean", "N_centered", "N_variance", "N", "O"])
@pytest.mark.parametrize("kind", ["layer", "all"])
def test_any_result_is_stored_whatever_fuse_has_chosen(kind: str, name: str) -> None:
    """If a mean is stored, two graphs read its rows, which ``fuse`` chose to stream to one."""
    program = sparse.program(
        "N(i,j) = layernorm(j; A(i,j))\nO(i,d) = N(i,j)*B(j,d)\nn(i) = min(d; O(i,d))", {"A": "ds"}
    )
    generator = np.random.default_rng(4)
    inputs = {"A": generator.normal(size=(5, 4)), "B": generator.normal(size=(4, 3))}
    stored = program.fuse(kind).store(name)
    result = stored.simulate(inputs)
    assert name in result.tensors
    assert len(result.runs) < len(program.statements)
    np.testing.assert_allclose(result["n"], program.interpret(inputs)["n"], rtol=1e-12)


def test_integers_have_no_extremes_in_a_graph() -> None:
    program = sparse.program("m(i) = max(c; X(i,c))\nZ(i,c) = X(i,c) - m(i)").stream("m")
    integers = {"X": np.arange(6).reshape(2, 3)}
    with pytest.raises(UserError, match="m is of integers, and its graph passes results on"):
        program.simulate(integers)
    values = program.simulate(integers, type=t2s.Float(64))["Z"]
    assert values.tolist() == [[-2, -1, 0], [-2, -1, 0]]
    row = sparse.program("m(i) = max(c; X(i,c)*X(i,c))").fuse("layer")
    with pytest.raises(UserError, match='hint:     store\\("m_row"\\), or type=Float'):
        row.simulate(integers)
    assert row.store("m_row").simulate(integers)["m"].tolist() == [4, 25]


@pytest.mark.parametrize("type", ["int8", "uint8", "int64", "bool"])
def test_extremes_of_integers_in_a_graph_of_floats(type: str) -> None:
    scores = np.array([[100, 0, 120], [0, 4, 1]]).astype(type)
    program = sparse.program("S(i,c) = softmax(c; X(i,c))\nm(i) = max(c; X(i,c)/2)")
    alone = program.simulate({"X": scores})
    fused = program.fuse("layer").simulate({"X": scores})
    assert len(fused.runs) < len(alone.runs)
    np.testing.assert_allclose(fused["S"], alone["S"], rtol=1e-12)
    np.testing.assert_array_equal(fused["m"], alone["m"])


def test_bools_in_a_graph_with_an_extreme_leave_its_type_alone() -> None:
    program = sparse.program("Y(i,j) = A(i,j)*X(i,j)\nm(i) = max(j; Y(i,j))").fuse("layer")
    inputs = {"A": np.eye(3, dtype=np.bool_), "X": np.full((3, 3), 0.1, np.float32)}
    found = program.simulate(inputs)["m"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, program.interpret(inputs)["m"])


OTHER_TYPES: dict[str, tuple[str, np.ndarray, object]] = {
    "T is of bool, and the graph that passes it on computes in float64": (
        "T(i) = A(i,k)",
        np.ones((2, 3), np.bool_),
        1.5,
    ),
    "T is of int8, and the graph that passes it on computes in int64": (
        "T(i) = A(i,k)*A(i,k)",
        np.full((2, 3), 20, np.int8),
        np.int64(3),
    ),
    "T is of uint8, and the graph that passes it on computes in float32": (
        "T(i) = min(A(i,i), 7) - A(i,i)",
        np.full((2, 2), 9, np.uint8),
        np.float32(3),
    ),
    "T is of float16, and the graph that passes it on computes in float64": (
        "T(i) = A(i,k)",
        np.full((2, 3), 4e4, np.float16),
        1e-4,
    ),
}


@pytest.mark.filterwarnings("ignore:the sum T")
@pytest.mark.parametrize("text", OTHER_TYPES)
def test_a_result_that_the_type_of_its_graph_would_change_is_not_passed_on(text: str) -> None:
    line, array, factor = OTHER_TYPES[text]
    program = sparse.program(f"{line}\nY(i) = T(i)*s").fuse("layer")
    inputs = {"A": array, "s": factor}
    for run in (program.simulate, program.cycles, program.graphs):
        with pytest.raises(UserError, match=text) as caught:
            run(inputs)
    assert 'hint:     store("T"), or type=Float(64)' in str(caught.value)
    stored = program.store("T").simulate(inputs)["Y"]
    np.testing.assert_array_equal(stored, program.interpret(inputs)["Y"])
    exact = program.interpret(inputs, type=t2s.Float(64))["Y"]
    np.testing.assert_array_equal(program.simulate(inputs, type=t2s.Float(64))["Y"], exact)
    assert not np.array_equal(exact, stored)


def test_a_constant_is_not_passed_on_to_integers() -> None:
    """Alone it is of float64, and so is what reads it."""
    program = sparse.program("c = 5\nY(i) = c*X(i)").fuse("layer")
    inputs = {"X": np.array([100], np.int8)}
    with pytest.raises(UserError, match="c is of float64, and the graph that passes it on"):
        program.simulate(inputs)
    assert program.store("c").simulate(inputs)["Y"] == 500
    assert program.simulate({"X": np.array([100.0])})["Y"] == 500


def test_a_result_of_another_type_with_the_same_values_is_passed_on() -> None:
    masks = np.array([[1, 0, 1], [0, 1, 1]], np.bool_)
    lines = "M(i,j) = A(i,j)*B(i,j)\nN(i,j) = max(M(i,j), A(i,j))\nY(i,j) = N(i,j)*X(i,j)"
    program = sparse.program(lines).fuse("layer")
    inputs = {"A": masks, "B": masks[:, ::-1], "X": np.arange(6.0).reshape(2, 3)}
    result = program.simulate(inputs)
    assert len(result.runs) == 1
    np.testing.assert_array_equal(result["Y"], program.interpret(inputs)["Y"])


Program = sparse.Program
WRONG: dict[str, tuple[Callable[[Program], Program], str]] = {
    "stream names no result": (lambda p: p.stream(), 'expected: such as stream("T")'),
    "store takes the names of results": (lambda p: p.store(1), "given:    1"),
    "no statement computes X": (lambda p: p.stream("X"), "expected: one of T, L"),
    "H is a result of the program": (lambda p: p.stream("H"), "note:     H is computed here"),
    "T is to be stored, and to be streamed": (
        lambda p: p.stream("T").store("T"),
        "note:     the first time is here",
    ),
    "T is to be streamed twice": (lambda p: p.stream("T", "T"), "given:    stream('T')"),
    "T is not gathered": (lambda p: p.recompute("T"), "hint:     stream T, or store it"),
    "this is not a kind of fusion": (
        lambda p: p.fuse("most"),
        "expected: one of none, layer, all\n",
    ),
    "this directive for L changes loops": (
        lambda p: p.schedule("L", "parallelize(i,2)").stream("T", "L"),
        "hint:     store T and L",
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said_at_the_line(message: str) -> None:
    change, text = WRONG[message]
    with pytest.raises(UserError, match=message) as caught:
        change(sparse.program(LAYER, FORMATS))
    assert text in str(caught.value)
    assert caught.value.location is not None
    assert "test_program_fusion.py" in str(caught.value.location)
