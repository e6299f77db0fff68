"""Wrong arrays and scalars, at ``interpret`` and at ``simulate``."""

from __future__ import annotations

from typing import Any

import numpy as np

import t2s
from t2s import Func, ImageParam, Int, Param, Var
from tests.errors.refusal import refused


def scaled() -> Func:
    """``f[i, j] = A[i, j] * p`` of shape (2, 3)."""
    A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
    i, j, f = Var("i"), Var("j"), Func("f")
    f[i, j] = A[i, j] * p
    return f.bound(i, 0, 2).bound(j, 0, 3)


def array(*shape: int) -> Any:
    return np.zeros(shape, np.int16)


def test_missing_input_of_interpret() -> None:
    with refused("""
            the input A is missing
              --> t2s.interpret(scaled(), {"p": 2})
              expected: A: an int16 array of shape (2, 3)
              given:    p
              note:     A is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     pass it by name: {"A": ...}
            """):
        t2s.interpret(scaled(), {"p": 2})


def test_missing_parameter_of_interpret() -> None:
    with refused("""
            the parameter p is missing
              --> t2s.interpret(scaled(), {"A": array(2, 3)})
              expected: p: an int16 scalar
              given:    A
              note:     p is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     pass it by name: {"p": ...}
            """):
        t2s.interpret(scaled(), {"A": array(2, 3)})


def test_unknown_input_of_interpret() -> None:
    with refused("""
            the program has no input B
              --> t2s.interpret(scaled(), {"A": array(2, 3), "p": 2, "B": array(1)})
              expected: A, p
              given:    A, p, B
            """):
        t2s.interpret(scaled(), {"A": array(2, 3), "p": 2, "B": array(1)})


def test_wrong_shape_of_interpret() -> None:
    with refused("""
            the input A has the wrong shape
              --> t2s.interpret(scaled(), {"A": array(3, 2), "p": 2})
              expected: an int16 array of shape (2, 3)
              given:    shape (3, 2)
              note:     A is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     arrays are row-major: A[i, k] of the definition is array[i, k]; try array.T
            """):
        t2s.interpret(scaled(), {"A": array(3, 2), "p": 2})


def test_wrong_type_of_interpret() -> None:
    with refused("""
            the input A has the wrong element type
              --> t2s.interpret(scaled(), {"A": array(2, 3).astype(np.int32), "p": 2})
              expected: an int16 array of shape (2, 3)
              given:    int32 of shape (2, 3)
              note:     A is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     convert it: array.astype(np.int16)
            """):
        t2s.interpret(scaled(), {"A": array(2, 3).astype(np.int32), "p": 2})


def test_scalar_of_another_type_of_interpret() -> None:
    with refused("""
            the parameter p has the wrong type
              --> t2s.interpret(scaled(), {"A": array(2, 3), "p": 2.5})
              expected: an int16 scalar
              given:    2.5 of type float
              note:     p is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     convert it: np.int16(...)
            """):
        t2s.interpret(scaled(), {"A": array(2, 3), "p": 2.5})


def test_scalar_that_does_not_fit_of_interpret() -> None:
    with refused("""
            the parameter p does not fit into int16
              --> t2s.interpret(scaled(), {"A": array(2, 3), "p": 40_000})
              expected: -32768 to 32767
              given:    40000
              note:     p is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
            """):
        t2s.interpret(scaled(), {"A": array(2, 3), "p": 40_000})


def test_missing_input_of_simulate() -> None:
    with refused("""
            the input A is missing
              --> t2s.simulate(scaled(), {"p": 2})
              expected: A: an int16 array of shape (2, 3)
              given:    p
              note:     A is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     pass it by name: {"A": ...}
            """):
        t2s.simulate(scaled(), {"p": 2})


def test_missing_parameter_of_simulate() -> None:
    with refused("""
            the parameter p is missing
              --> t2s.simulate(scaled(), {"A": array(2, 3)})
              expected: p: an int16 scalar
              given:    A
              note:     p is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     pass it by name: {"p": ...}
            """):
        t2s.simulate(scaled(), {"A": array(2, 3)})


def test_unknown_input_of_simulate() -> None:
    with refused("""
            the program has no input B
              --> t2s.simulate(scaled(), {"A": array(2, 3), "p": 2, "B": array(1)})
              expected: A, p
              given:    A, B, p
            """):
        t2s.simulate(scaled(), {"A": array(2, 3), "p": 2, "B": array(1)})


def test_wrong_shape_of_simulate() -> None:
    with refused("""
            the input A has the wrong shape
              --> t2s.simulate(scaled(), {"A": array(3, 2), "p": 2})
              expected: an int16 array of shape (2, 3)
              given:    shape (3, 2)
              note:     A is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     arrays are row-major: A[i, k] of the definition is array[i, k]; try array.T
            """):
        t2s.simulate(scaled(), {"A": array(3, 2), "p": 2})


def test_wrong_type_of_simulate() -> None:
    with refused("""
            the input A has the wrong element type
              --> t2s.simulate(scaled(), {"A": array(2, 3).astype(np.int32), "p": 2})
              expected: an int16 array of shape (2, 3)
              given:    int32 of shape (2, 3)
              note:     A is declared here
              --> A, p = ImageParam(Int(16), 2, name="A"), Param(Int(16), name="p")
              hint:     convert it: array.astype(np.int16)
            """):
        t2s.simulate(scaled(), {"A": array(2, 3).astype(np.int32), "p": 2})


def test_subscript_out_of_range_when_the_program_runs() -> None:
    i, f = Var("i"), Func("f")
    table = ImageParam(Int(32), 1, name="table", shape=(4,))
    place = ImageParam(Int(32), 1, name="place")
    f[i] = table[place[i]]
    f.bound(i, 0, 3)
    places = np.array([0, 7, 1], np.int32)
    with refused("""
            subscript 0 of table[place[i]] is out of range when the program runs
              --> f[i] = table[place[i]]
              expected: 0 to 3
              given:    7
            """):
        t2s.interpret(f, {"table": np.arange(4, dtype=np.int32), "place": places})
