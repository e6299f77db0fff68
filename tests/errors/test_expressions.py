"""Mistakes inside an expression: types, subscripts, truth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Bool, Float, Func, ImageParam, Int, Param, UInt, Var
from tests.errors.refusal import refused

i, j = Var("i"), Var("j")
A = ImageParam(Float(32), 2, name="A")
N = ImageParam(Int(32), 1, name="N")
U = ImageParam(UInt(8), 1, name="U")


def test_types_that_do_not_mix() -> None:
    with refused("""
            the operator + has operands of types that do not mix
              --> N[i] + U[i]
              expected: operands of one type
              given:    N[i] is int32 and U[i] is uint8
              hint:     convert one of them: t2s.cast(t2s.Float(32), x)
            """):
        N[i] + U[i]


def test_float_literal_on_an_integer() -> None:
    with refused("""
            the operator * has operands of types that do not mix
              --> N[i] * 0.5
              expected: operands of one type
              given:    N[i] is int32 and 0.5 is float32
              hint:     convert one of them: t2s.cast(t2s.Float(32), x)
            """):
        N[i] * 0.5


def test_bfloat16_with_float16() -> None:
    half, brain = ImageParam(Float(16), 1, name="H"), ImageParam(t2s.BFloat(), 1, name="B")
    with refused("""
            the operator + has operands of types that do not mix
              --> half[i] + brain[i]
              expected: operands of one type
              given:    H[i] is float16 and B[i] is bfloat16
              hint:     convert one of them: t2s.cast(t2s.Float(32), x)
            """):
        half[i] + brain[i]


def test_select_sides_that_do_not_mix() -> None:
    with refused("""
            select has operands of types that do not mix
              --> t2s.select(i > 0, N[i], U[i])
              expected: operands of one type
              given:    N[i] is int32 and U[i] is uint8
              hint:     convert one of them: t2s.cast(t2s.Float(32), x)
            """):
        t2s.select(i > 0, N[i], U[i])


def test_literal_that_does_not_fit() -> None:
    with refused("""
            the number 300 does not fit into uint8
              --> U[i] + 300
              expected: 0 to 255
              given:    300
              hint:     a wider type may hold it: t2s.cast(t2s.Int(32), x)
            """):
        U[i] + 300


def test_literal_too_large_for_a_float() -> None:
    half = ImageParam(Float(16), 1, name="H")
    with refused("""
            the number 1000000.0 does not fit into float16
              --> half[i] * 1e6
              expected: -65504.0 to 65504.0
              given:    1000000.0
              hint:     a wider type may hold it: t2s.cast(t2s.Float(32), x)
            """):
        half[i] * 1e6


def test_literal_in_a_tree_of_literals() -> None:
    counter, bytes_ = Func("counter"), ImageParam(UInt(8), 1, name="bytes_")
    counter[i] = 1
    with refused("""
            the number 300 does not fit into uint8
              --> counter[i] * 300 + bytes_[i]
              expected: 0 to 255
              given:    300
              hint:     a wider type may hold it: t2s.cast(t2s.Int(32), x)
            """):
        counter[i] * 300 + bytes_[i]


def test_cast_of_a_literal_that_does_not_fit() -> None:
    with refused("""
            the number -1 does not fit into uint8
              --> t2s.cast(UInt(8), -1)
              expected: 0 to 255
              given:    -1
              hint:     a wider type may hold it: t2s.cast(t2s.Int(32), x)
            """):
        t2s.cast(UInt(8), -1)


def test_truth_value_of_an_expression() -> None:
    with refused("""
            the truth value of i > 3 is not known while the program is written
              --> _ = 5 if i > 3 else 7
              hint:     use t2s.select(condition, a, b), and & | ~ instead of and, or, not
            """):
        _ = 5 if i > 3 else 7


def test_and_of_expressions() -> None:
    with refused("""
            the truth value of i > 3 is not known while the program is written
              --> t2s.select((i > 3) and (j > 3), 1, 0)
              hint:     use t2s.select(condition, a, b), and & | ~ instead of and, or, not
            """):
        t2s.select((i > 3) and (j > 3), 1, 0)


def test_iteration_over_an_element() -> None:
    with refused("""
            A[i, j] is one value, not a sequence
              --> list(A[i, j])
            """):
        list(A[i, j])


@pytest.mark.parametrize("use", [list, sum, sorted, tuple, set, max])
@pytest.mark.parametrize("kind", ["ImageParam", "Func", "Func with a definition"])
def test_iteration_over_something_that_has_elements(
    kind: str, use: Callable[[Any], object]
) -> None:
    x: Any = ImageParam(Int(32), 1, name="x") if kind == "ImageParam" else Func("x")
    if kind == "Func with a definition":
        x[i] = N[i]
    with refused(f"""
            {kind.split()[0]} x is not a sequence of values that Python could go through
              --> use(x)
              expected: its elements inside of definitions, as x[i]
              given:    a loop over x, or a function such as list, sum or sorted
              hint:     sum up over an RDom; t2s.interpret and t2s.simulate give arrays
            """):
        use(x)


def test_division_of_integers() -> None:
    with refused("""
            the operator / is not defined on int32
              --> N[i] / 2
              expected: floating-point numbers
              given:    N[i] (int32), 2 (int32)
              hint:     use // for integers, or t2s.cast(t2s.Float(32), x) first
            """):
        N[i] / 2


def test_floor_division_of_floats() -> None:
    with refused("""
            the operator // is not defined on float32
              --> A[i, j] // 2
              expected: integers
              given:    A[i, j] (float32), 2 (int32)
              hint:     use / for floats, or t2s.cast(t2s.Int(32), x) first
            """):
        A[i, j] // 2


def test_square_root_of_an_integer() -> None:
    with refused("""
            the operator sqrt is not defined on int32
              --> t2s.sqrt(N[i])
              expected: floating-point numbers
              given:    N[i] (int32)
              hint:     convert with t2s.cast(t2s.Float(32), x)
            """):
        t2s.sqrt(N[i])


def test_logic_on_floats() -> None:
    with refused("""
            the operator and is not defined on float32
              --> A[i, j] & A[j, i]
              expected: bools or integers
              given:    A[i, j] (float32), A[j, i] (float32)
              hint:     compare first, as in (x > 0) & (y > 0)
            """):
        A[i, j] & A[j, i]


def test_arithmetic_on_bools() -> None:
    flags = ImageParam(Bool(), 1, name="F")
    with refused("""
            the operator + is not defined on bool
              --> flags[i] + flags[j]
              expected: numbers
              given:    F[i] (bool), F[j] (bool)
              hint:     convert with t2s.cast(t2s.Int(32), x)
            """):
        flags[i] + flags[j]


def test_condition_of_select_that_is_no_truth_value() -> None:
    with refused("""
            the condition of select has to be a truth value
              --> t2s.select(N[i], 1, 0)
              expected: bool, for example i > 0
              given:    N[i] of type int32
            """):
        t2s.select(N[i], 1, 0)


def test_cast_without_a_type() -> None:
    with refused("""
            cast needs a type as its first argument
              --> t2s.cast(N[i], Int(32))
              expected: for example t2s.cast(t2s.Float(32), x)
              given:    N[i]
            """):
        t2s.cast(N[i], Int(32))


def test_object_without_a_value() -> None:
    with refused("""
            this cannot be used in a t2s expression
              --> N[i] + A
              expected: a number, a Var, an RDom or an element such as A[i, k]
              given:    ImageParam A, which is of type ImageParam
              hint:     index inputs and Funcs with [...] to get their elements
            """):
        N[i] + A


def test_text_in_an_expression() -> None:
    with refused("""
            this cannot be used in a t2s expression
              --> N[i] + "1"
              expected: a number, a Var, an RDom or an element such as A[i, k]
              given:    '1', which is of type str
              hint:     index inputs and Funcs with [...] to get their elements
            """):
        N[i] + "1"


def test_array_in_an_expression() -> None:
    with refused("""
            this cannot be used in a t2s expression
              --> N[i] + np.arange(3)
              expected: a number, a Var, an RDom or an element such as A[i, k]
              given:    array([0, 1, 2]), which is of type ndarray
              hint:     index inputs and Funcs with [...] to get their elements
            """):
        N[i] + np.arange(3)


def test_too_few_subscripts() -> None:
    with refused("""
            ImageParam A has 2 dimensions
              --> A[i] + 1
              expected: 2 subscripts
              given:    1: [i]
            """):
        A[i] + 1


def test_too_many_subscripts() -> None:
    with refused("""
            ImageParam N has 1 dimension
              --> N[i, j] + 1
              expected: 1 subscript
              given:    2: [i, j]
            """):
        N[i, j] + 1


def test_wrong_number_of_subscripts_of_a_func() -> None:
    f = Func("f")
    f[i, j] = 0
    with refused("""
            Func f has 2 dimensions
              --> f[i] + 1
              expected: 2 subscripts
              given:    1: [i]
            """):
        f[i] + 1


def test_subscript_that_is_a_float() -> None:
    with refused("""
            a subscript of ImageParam N is not an integer
              --> N[A[i, j]] + 1
              expected: an integer expression
              given:    A[i, j] of type float32
              hint:     convert with t2s.cast(t2s.Int(32), x)
            """):
        N[A[i, j]] + 1


def test_subscript_that_is_a_literal_float() -> None:
    with refused("""
            a subscript of ImageParam N is not an integer
              --> N[1.5] + 1
              expected: an integer expression
              given:    1.5 of type float32
              hint:     convert with t2s.cast(t2s.Int(32), x)
            """):
        N[1.5] + 1


def test_two_objects_of_one_name() -> None:
    other = ImageParam(Int(32), 1, name="N")
    with refused("""
            two different objects of one program are named N
              --> N[i] + other[i]
              note:     ImageParam N was made here
              --> N = ImageParam(Int(32), 1, name="N")
              note:     ImageParam N was made here
              --> other = ImageParam(Int(32), 1, name="N")
              hint:     give one of them another name
            """):
        N[i] + other[i]


def test_a_var_and_a_param_of_one_name() -> None:
    scale = Param(Int(32), name="i")
    with refused("""
            two different objects of one program are named i
              --> N[i] * scale
              note:     Var i was made here
              --> i, j = Var("i"), Var("j")
              note:     Param i was made here
              --> scale = Param(Int(32), name="i")
              hint:     give one of them another name
            """):
        N[i] * scale
