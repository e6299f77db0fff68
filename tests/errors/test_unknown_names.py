"""Names that are not there, and what does the same here: directives, functions of numpy, inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, Var
from t2s.func.expressions import HALIDE, NUMPY
from t2s.graph.serialize import graph_from_json, graph_to_json
from tests.errors.refusal import refused

i = Var("i")
x, n = ImageParam(Float(32), 1, name="x"), ImageParam(Int(32), 1, name="n")


def shifted() -> Func:
    F = Func("F")
    F[i] = n[i] + 1
    return F.bound(i, 0, 4)


def test_a_directive_that_is_spelled_wrong() -> None:
    with pytest.raises(AttributeError) as caught:
        shifted().unrol(i)
    assert isinstance(caught.value, t2s.errors.UserError)
    assert str(caught.value).splitlines()[0] == "Func F has no attribute unrol"
    assert caught.value.hint == "did you mean unroll?"
    with pytest.raises(t2s.errors.UserError, match="did you mean isolate_producer"):
        shifted().isolate_prodcer(x, Func("P"))
    assert not hasattr(shifted(), "nothing_like_it")
    assert not hasattr(shifted(), "__array__")


def test_directives_of_halide_name_what_does_it_here() -> None:
    for name in HALIDE:
        assert not hasattr(Func, name)
        with pytest.raises(
            t2s.errors.UserError, match=f"no directive {name}, which is one of Halide"
        ):
            getattr(shifted(), name)
    with pytest.raises(t2s.errors.UserError) as caught:
        shifted().vectorize(i, 4)
    assert "vload(A, B)" in str(caught.value.hint)


def test_the_hint_for_vectorize_works() -> None:
    F, ii = shifted(), Var("ii")
    F.split(i, i, ii, 4).vload(n).vstore(F)
    result = t2s.simulate(F, {"n": np.arange(4, dtype=np.int32)})
    assert result.outputs["F"].tolist() == [1, 2, 3, 4]


def test_functions_of_numpy() -> None:
    with refused("""
            np.exp computes on arrays, not on expressions
              --> np.exp(x[i])
              expected: t2s.exp(x[i])
              given:    np.exp(x[i])
              hint:     write t2s.exp(x[i])
            """):
        np.exp(x[i])
    with pytest.raises(t2s.errors.UserError, match=r"write t2s\.max\(x\[i\], 0\)"):
        np.maximum(x[i], 0)
    with pytest.raises(t2s.errors.UserError, match="operators, and functions of t2s"):
        np.arctan2(x[i], 1.0)
    for here in NUMPY.values():
        assert not here.isidentifier() or hasattr(t2s, here)


def test_numbers_of_numpy_on_both_sides_of_operators() -> None:
    two, three = np.float32(2), np.int32(3)
    assert repr(two * x[i] + two) == "2.0 * x[i] + 2.0"
    assert repr(three * n[i] - three) == "3 * n[i] - 3"
    assert repr(np.float64(2) < x[i]) == "float64(x[i]) > 2.0"
    assert repr(np.int32(3) < n[i]) == "n[i] > 3"
    assert repr(np.int32(3) >= n[i]) == "n[i] <= 3"
    assert repr(np.int32(3) == n[i]) == "n[i] == 3"
    with pytest.raises(t2s.errors.UserError, match="the exponent n"):
        np.int32(2) ** n[i]


def test_an_input_that_is_spelled_wrong() -> None:
    F = shifted()
    given: dict[str, Any] = {"N": np.zeros(4, np.int32)}
    with refused("""
            the program has no input N
              --> t2s.simulate(F, given)
              expected: n
              given:    N
              hint:     did you mean n?
            """):
        t2s.simulate(F, given)


def test_arguments_of_wrong_kinds(tmp_path: Path) -> None:
    F, given = shifted(), {"n": np.zeros(4, np.int32)}
    for memory in ({}, [], 5):
        with pytest.raises(t2s.errors.UserError, match="unknown memory "):
            t2s.simulate(F, given, memory=memory)  # type: ignore[arg-type]
    for text in (None, 5, {}):
        with pytest.raises(t2s.errors.UserError, match="graph_from_json needs the text of a graph"):
            graph_from_json(text)  # type: ignore[arg-type]


def test_a_file_name_with_a_null_character_in_a_graph(tmp_path: Path) -> None:
    """It comes from JSON, and only the lines around it are missing on the page."""
    text = graph_to_json(t2s.lower(shifted())).replace("test_unknown_names.py", "a\\u0000b")
    assert "\\u0000" in text
    result = t2s.simulate(graph_from_json(text), {"n": np.zeros(4, np.int32)})
    assert result.report(tmp_path / "page.html").exists()
