"""Equal graphs of a program: timed once, with the values of each."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from t2s import Float, sparse
from t2s.driver.equal_graphs import EqualGraphs
from t2s.errors import UserError
from t2s.sparse_repr import binding
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
        patched.setattr(EqualGraphs, "result_of", lambda *arguments: None)
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
