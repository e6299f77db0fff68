"""Equal graphs of a program: timed once, with the values of each."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, sparse
from t2s.driver.equal_graphs import EqualGraphs, KnownRun, PlannedGroup
from t2s.errors import UserError
from t2s.graph.nameless import nameless_text
from t2s.simulator.report.errors import CycleLimitError
from t2s.sparse_repr import binding
from t2s.sparse_repr.concrete.nameless import without_names
from t2s.sparse_repr.notation.types import check_type
from tests.models import MODELS

LAYER = """
    L{n}(i,h) = T{p}(i,j)*W{n}(j,h)
    T{n}(i,h) = relu(L{n}(i,h) + b{n}(h))
"""
ATTENTION = """
    P{n}(s,t) = M(s,t) * T{p}(s,d) * T{p}(t,d)
    S{n}(s,t) = stored(softmax(t; P{n}(s,t)))
    O{n}(s,e) = S{n}(s,t) * T{p}(t,e)
    T{n}(s,e) = layernorm(e; O{n}(s,e) + T{p}(s,e))
"""


def repeated(text: str, count: int, formats: dict[str, str]) -> sparse.Program:
    lines = "".join(text.format(n=number, p=number - 1) for number in range(1, count + 1))
    return sparse.program(lines, {name: form for name, form in formats.items() if name in lines})


def layers(count: int, width: int = 6) -> tuple[sparse.Program, dict[str, Any]]:
    """Layers whose weights have one pattern and values of their own."""
    generator = np.random.default_rng(0)
    pattern = generator.random((width, width)) < 0.5
    inputs: dict[str, Any] = {"T0": generator.normal(size=(5, width))}
    for number in range(1, count + 1):
        inputs[f"W{number}"] = np.where(pattern, generator.normal(size=(width, width)), 0)
        inputs[f"b{number}"] = generator.normal(size=width)
    formats = {f"W{number}": "ds" for number in range(1, count + 1)}
    return repeated(LAYER, count, formats), inputs


def attention(count: int) -> tuple[sparse.Program, dict[str, Any]]:
    """Layers of masked attention; a row of the mask is empty."""
    generator = np.random.default_rng(1)
    mask = np.tril(generator.random((7, 7)) < 0.6).astype(float)
    mask[3] = 0
    return repeated(ATTENTION, count, {"M": "ds"}), {
        "M": mask,
        "T0": generator.normal(size=(7, 4)),
    }


def timed(result: Any) -> int:
    return len({id(stage) for stage in result.stages})


def all_run(
    program: sparse.Program, inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """The result of a program whose graphs all run."""
    with monkeypatch.context() as patched:
        patched.setattr(EqualGraphs, "add", lambda *arguments: None)
        return program.simulate(inputs)


@pytest.mark.parametrize("fusion", ["none", "layer"])
@pytest.mark.parametrize("make", [layers, attention])
def test_equal_graphs_are_timed_once(
    make: Any, fusion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, inputs = make(4)
    program = program.fuse(fusion)
    result, every = program.simulate(inputs), all_run(program, inputs, monkeypatch)
    one = make(1)[0].fuse(fusion)
    assert timed(result) <= len(one.simulate(inputs_of(one, inputs)).stages)
    assert timed(every) == len(every.stages) == len(result.stages)
    assert [run.cycles for run in result.runs] == [run.cycles for run in every.runs]
    assert program.cycles(inputs) == every.cycles
    assert result.words == every.words
    for name, value in every.tensors.items():
        found = result.tensors[name]
        assert all(
            np.array_equal(a[key], b[key])
            for a, b in zip(found.levels, value.levels, strict=True)
            for key in b
        )
        np.testing.assert_allclose(found.values, value.values, rtol=1e-12, atol=1e-14)


def inputs_of(program: sparse.Program, inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: inputs[name] for name in program.inputs}


def test_other_values_are_equal_and_other_patterns_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, inputs = layers(3)
    before = program.simulate(inputs)
    assert before.equal == {"L2": "L1", "T2": "T1", "L3": "L1", "T3": "T1"}
    place = tuple(np.argwhere(inputs["W2"])[0])
    other = inputs["W2"].copy()
    other[place] *= 3
    after = program.simulate({**inputs, "W2": other})
    assert after.equal == before.equal
    assert not np.array_equal(after["T3"], before["T3"])
    other[place] = 0  # it is not stored then
    changed = program.simulate({**inputs, "W2": other})
    assert changed.equal == {"T2": "T1", "L3": "L1", "T3": "T1"}
    every = all_run(program, {**inputs, "W2": other}, monkeypatch)
    assert changed.cycles == every.cycles < before.cycles
    np.testing.assert_allclose(changed["T3"], every["T3"])


def test_the_table_says_what_is_equal(tmp_path: Any) -> None:
    program, inputs = layers(2)
    result = program.simulate(inputs)
    title, _, _, *rows = str(result).splitlines()
    assert title == f"{result.cycles:,} cycles of 4 graphs, of which 2 are timed: others are equal"
    assert ["as for" in row for row in rows] == [False, False, True, True]
    assert "as for L1" in rows[2]
    assert result.runs[2].words.keys() == {"T1", "W2", "L2"}
    assert result.report(tmp_path / "page.html").exists()


def test_the_other_engine_and_other_sizes_run_all() -> None:
    program, inputs = layers(2)
    assert timed(program.simulate(inputs, engine="python")) == 4
    wider = {**inputs, "W2": np.ones((6, 7)), "b2": np.ones(7)}
    assert timed(program.simulate(wider)) == 4
    singles = {name: value.astype(np.float32) for name, value in inputs.items()}
    result = program.simulate(singles)
    assert timed(result) == 2
    assert result["T2"].dtype == np.float32
    assert timed(program.simulate(singles, type=Float(64))) == 2


def test_a_memory_sees_which_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of a DRAM depend on addresses: other columns are another run there."""
    text = "T{n}(i,j) = A{n}(i,k)*T{p}(k,j)\n"
    program = repeated(text, 2, {"A1": "ds", "A2": "ds"})
    inputs = {"A1": np.eye(64), "A2": np.eye(64)[::-1].copy(), "T0": np.ones((64, 3))}
    assert program.simulate(inputs).equal == {"T2": "T1"}
    on_memory = program.simulate(inputs, device="arria10", memory="ddr4-2133")
    assert on_memory.equal == {}
    same = program.simulate({**inputs, "A2": inputs["A1"]}, device="arria10", memory="ddr4-2133")
    assert same.equal == {"T2": "T1"}


def test_infinities_and_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    program, inputs = layers(3)
    inputs["W3"][tuple(np.argwhere(inputs["W3"])[0])] = np.inf
    with np.errstate(all="ignore"):
        result, every = program.simulate(inputs), all_run(program, inputs, monkeypatch)
    assert result.cycles == every.cycles
    np.testing.assert_allclose(result["T3"], every["T3"])
    whole = {name: np.round(value * 4).astype(np.int32) for name, value in layers(3)[1].items()}
    result, every = program.simulate(whole), all_run(program, whole, monkeypatch)
    for name in every.tensors:
        assert np.array_equal(result[name], every[name])


@pytest.mark.parametrize("name", ["gcn", "decoder", "perceptron"])
def test_models_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program on the same inputs under other names, in one program."""
    model = MODELS[name]()
    names = {line.split("(")[0].strip() for line in model.text.splitlines() if "=" in line}
    again = re.sub(r"\b(" + "|".join(names) + r")\(", r"\1_again(", model.text)
    program = sparse.program(f"{model.text}\n{again}", model.formats)
    result, every = program.simulate(model.inputs), all_run(program, model.inputs, monkeypatch)
    assert 2 * timed(result) <= len(result.stages)
    assert result.cycles == every.cycles
    for tensor in every.tensors:
        np.testing.assert_allclose(result[tensor], every[tensor], rtol=1e-12, atol=1e-14)


class Computed:
    """Statements of which loops compute the values, by the tensors that they assign."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        values_for = KnownRun.values_for

        def computed(known: KnownRun, planned: PlannedGroup, values: Any) -> Any:
            self.names.append(planned.name)
            return values_for(known, planned, values)

        monkeypatch.setattr(KnownRun, "values_for", computed)


@pytest.mark.parametrize("fusion", ["none", "layer"])
@pytest.mark.parametrize("make", [layers, attention])
def test_cycles_compute_no_values_on_which_nothing_depends(
    make: Any, fusion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, inputs = make(5)
    program = program.store(*(f"T{number}" for number in range(1, 5))).fuse(fusion)
    expected = all_run(program, inputs, monkeypatch).cycles
    computed = Computed(monkeypatch)
    assert program.cycles(inputs) == expected
    assert computed.names == []
    assert program.simulate(inputs).cycles == expected
    assert {"T2", "T5"} <= set(computed.names)


@pytest.mark.parametrize("seed", range(4))
def test_values_that_decide_are_computed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros of relu are not stored, so that the pattern of each layer depends on its values."""
    program, inputs = layers(5)
    formats = {name: "ds" for name in (*program.inputs, "T1", "T2", "T3", "T4") if name[0] in "WT"}
    program = repeated(LAYER, 5, formats)
    for number in range(1, 5):
        program = program.schedule(f"T{number}", "drop_zeros()")
    generator = np.random.default_rng(seed)
    inputs = {name: generator.normal(size=value.shape) for name, value in inputs.items()}
    inputs |= {f"W{n}": inputs[f"W{n}"] * (inputs["W1"] > 0) for n in range(1, 6)}
    every = all_run(program, inputs, monkeypatch)
    assert program.cycles(inputs) == every.cycles
    result = program.simulate(inputs)
    assert [run.cycles for run in result.runs] == [run.cycles for run in every.runs]
    for name, value in every.tensors.items():
        np.testing.assert_allclose(result[name], value.to_dense(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("format", ["sd", "ss"])
def test_zeros_of_a_converted_tensor_decide(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a dense level are no entries of a tensor in another order, and stored ones are."""
    text = "T{n}(i,j) = A{n}(i,k)*B(k,j)\nU{n}(j) = S(j,i)*T{n}(i,j)\n"
    formats = {f"{t}{n}": f for t, f in {"T": format, "A": "ss"}.items() for n in (1, 2, 3)}
    program = repeated(text, 3, formats | {"S": "ss"})
    for number in range(1, 4):
        program = program.schedule(f"U{number}", "reorder(j,i), transpose()")
    a, signs = np.ones((6, 6)), np.array([1.0, -1] * 3)
    b = signs[:, None] * np.ones(6)
    inputs = {"A1": a, "A2": a * 3, "A3": a + np.eye(6), "B": b, "S": a}
    every = all_run(program, inputs, monkeypatch)
    counts = [run.cycles for run in every.runs]
    decide = format == "sd"
    assert counts[1] == counts[3]
    assert (counts[3] < counts[5]) == decide  # sums of as many 1 as -1 are 0
    assert program.cycles(inputs) == every.cycles
    result = program.simulate(inputs)
    assert [run.cycles for run in result.runs] == counts
    assert result.equal == {"T2": "T1", "U2": "U1", "T3": "T1"} | ({} if decide else {"U3": "U1"})


@pytest.mark.parametrize("name", MODELS)
def test_names_carry_no_meaning(name: str) -> None:
    """What ``cycles`` relies on: groups that are equal but for names have graphs that are, too."""
    model, generator = MODELS[name](), np.random.default_rng(0)
    words = re.findall(r"\b[A-Za-z]\w*\b(?!\()", model.text)
    assigned = [line.split("(")[0].strip() for line in model.text.splitlines() if "=" in line]
    taken = sorted({*words, *assigned, *model.inputs})
    new = {old: f"{'abcxyz'[int(generator.integers(6))]}{n}" for n, old in enumerate(taken)}
    text = re.sub(r"\b(" + "|".join(taken) + r")\b", lambda found: new[found[0]], model.text)
    one = sparse.program(model.text, model.formats)
    other = sparse.program(text, {new[tensor]: form for tensor, form in model.formats.items()})
    renamed = {new[tensor]: value for tensor, value in model.inputs.items()}
    for fusion in ("layer", "all"):
        programs = one.fuse(fusion), other.fuse(fusion)
        kinds = [list(map(without_names, p.design().groups_of_any_size)) for p in programs]
        assert kinds[0] == kinds[1]
        assert None not in kinds[0]
        texts = [
            [nameless_text(graph) for graphs in p.graphs(given).values() for graph in graphs]
            for p, given in zip(programs, (model.inputs, renamed), strict=True)
        ]
        assert texts[0] == texts[1]


def test_what_makes_groups_different() -> None:
    def kinds(text: str, *schedules: tuple[str, str], formats: Any = None) -> list[Any]:
        program = sparse.program(text, formats or {})
        for name, schedule in schedules:
            program = program.schedule(name, schedule)
        return list(map(without_names, program.design().groups_of_any_size))

    one, other = kinds("Y(i,j) = A(i,k)*B(k,j)\nZ(b,a) = C(b,c)*D(c,a)")
    assert one == other
    assert other.tensors == ("Z", "C", "D")
    one, other = kinds("Y(i,j) = A(i,k)*B(k,j)\nZ(i,j) = A(i,k)*A(k,j)")
    assert one != other
    one, other = kinds("Y(i) = A(i)*1\nZ(i) = B(i)*1.0")
    assert one != other
    one, other = kinds("Y(i) = A(i)\nZ(i) = B(i)", formats={"A": "s"})
    assert one != other
    text = "Y(i,j) = A(i,k)*B(k,j)\nZ(j,i) = C(j,k)*D(k,i)"
    one, other = kinds(text, ("Y", "reorder(i,k,j)"), ("Z", "reorder(j,k,i)"))
    assert one == other
    one, other = kinds(text, ("Y", "reorder(i,k,j)"), ("Z", "reorder(j,i,k) transpose(D)"))
    assert one != other
    assert kinds(text, ("Y", "split(i,a,b,2)"))[0] is None


def test_what_a_limit_leaves_of_values() -> None:
    program, inputs = layers(3)
    total = program.cycles(inputs)
    with pytest.raises(CycleLimitError) as caught:
        t2s.cycles(program, inputs, max_cycles=total - 1)
    done = caught.value.done  # type: ignore[attr-defined]
    assert done["T1"].shape == (5, 6)
    with pytest.raises(UserError, match="the values of T2 were not computed") as refused:
        done["T2"]
    assert "simulate computes all values" in str(refused.value)
    with pytest.raises(CycleLimitError) as caught:
        program.simulate(inputs, max_cycles=total - 1)
    np.testing.assert_array_equal(caught.value.done["T2"], program.simulate(inputs)["T2"])  # type: ignore[attr-defined]


def test_types_of_an_expression_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expression of statements that share a graph is long; what does not fit stays refused."""
    checked = []

    def check(assignment: Any, type: Any) -> None:
        checked.append(type)
        check_type(assignment, type)

    monkeypatch.setattr(binding, "check_type", check)
    kernel = sparse.compile(sparse.parse("y(i) = x(i) + 300"))
    for value in 1.0, 2.0:
        assert kernel.simulate({"x": np.full(3, value)}).output.tolist() == [value + 300] * 3
    assert checked == [Float(64)]
    for _ in "ab":
        with pytest.raises(UserError, match="the number 300 does not fit int8"):
            kernel.simulate({"x": np.ones(3, np.int8)})
