"""Mistakes in the definitions of a Func."""

from __future__ import annotations

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, UInt, Var
from tests.errors.refusal import refused

i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
A = ImageParam(Int(32), 2, name="A")


def test_reading_an_undefined_func() -> None:
    first = Func("first")
    second = Func("second")
    with refused("""
            Func first is used before it is defined
              --> second[i] = first[i] + 1
              expected: a definition such as first[i, j] = ... above this line
              note:     Func first was made here
              --> first = Func("first")
              hint:     an accumulation needs an initial value, C[i, j] = 0.0 before +=; for a
                        recurrence declare the type: Func('first', type=...)
            """):
        second[i] = first[i] + 1


def test_accumulating_into_an_undefined_func() -> None:
    total = Func("total")
    with refused("""
            Func total is used before it is defined
              --> total[i] += A[i, k]
              expected: a definition such as total[i, j] = ... above this line
              note:     Func total was made here
              --> total = Func("total")
              hint:     an accumulation needs an initial value, C[i, j] = 0.0 before +=; for a
                        recurrence declare the type: Func('total', type=...)
            """):
        total[i] += A[i, k]


def test_lowering_an_undefined_func() -> None:
    empty = Func("empty")
    with refused("""
            Func empty has no definition
              --> empty = Func("empty")
              expected: for example empty[i, j] = ...
            """):
        t2s.lower(empty)


def test_the_same_var_twice() -> None:
    f = Func("f")
    with refused("""
            the same Var i is used twice on the left side of f
              --> f[i, i] = 0
              expected: a different Var for each dimension
              given:    f[i, i]
            """):
        f[i, i] = 0


def test_the_same_var_twice_in_an_update() -> None:
    f = Func("f")
    f[i, j] = 0
    f[i, i] += 1
    f.bound(i, 0, 4).bound(j, 0, 4)
    with refused("""
            the same Var i is used twice on the left side of f
              --> f[i, i] += 1
              expected: a different Var for each dimension
              given:    f[i, i]
            """):
        t2s.lower(f)


def test_expression_on_the_left_of_an_initial_definition() -> None:
    f = Func("f")
    with refused("""
            the initial definition of f needs a plain Var for each dimension
              --> f[i, j + 1] = 0
              expected: for example f[i, j] = ...
              given:    f[i, j + 1]
              hint:     start with a definition for all elements, then update some of them
            """):
        f[i, j + 1] = 0


def test_number_on_the_left_of_an_initial_definition() -> None:
    f = Func("f")
    with refused("""
            the initial definition of f needs a plain Var for each dimension
              --> f[0] = 1
              expected: for example f[i, j] = ...
              given:    f[0]
              hint:     start with a definition for all elements, then update some of them
            """):
        f[0] = 1


def test_reduction_variable_in_an_initial_definition() -> None:
    f = Func("f")
    with refused("""
            the initial definition of f uses the reduction variable k
              --> f[i] = A[i, k]
              expected: only Vars; reductions belong into updates
              hint:     write f[...] = 0 first, then f[...] += ...
            """):
        f[i] = A[i, k]


def test_reduction_variable_on_the_left_of_an_initial_definition() -> None:
    f = Func("f")
    with refused("""
            the initial definition of f uses the reduction variable k
              --> f[k] = 0
              expected: only Vars; reductions belong into updates
              hint:     write f[...] = 0 first, then f[...] += ...
            """):
        f[k] = 0


def test_var_that_is_not_on_the_left() -> None:
    f = Func("f")
    with refused("""
            the Var j is not an argument of f
              --> f[i] = A[i, j]
              expected: one of i
              given:    j
              hint:     a variable that is summed over is an RDom
            """):
        f[i] = A[i, j]


def test_var_that_is_not_on_the_left_of_an_update() -> None:
    f = Func("f")
    f[i] = 0
    f[i] += A[i, j]
    f.bound(i, 0, 4)
    with refused("""
            the Var j is not on the left side of this definition of f
              --> f[i] += A[i, j]
              expected: one of i
              given:    j
              hint:     to reduce over it: j = RDom(0, extent, name="j")
            """):
        t2s.lower(f)


def test_initial_definition_that_reads_itself() -> None:
    f = Func("f")
    with refused("""
            Func f is used before it is defined
              --> f[i] = f[i]
              expected: a definition such as f[i, j] = ... above this line
              note:     Func f was made here
              --> f = Func("f")
              hint:     an accumulation needs an initial value, C[i, j] = 0.0 before +=; for a
                        recurrence declare the type: Func('f', type=...)
            """):
        f[i] = f[i]


def test_wrong_number_of_dimensions_in_an_update() -> None:
    f = Func("f")
    f[i, j] = 0
    with refused("""
            Func f has 2 dimensions
              --> f[i] = 1
              expected: 2 subscripts
              given:    1: [i]
            """):
        f[i] = 1


def test_update_of_another_type() -> None:
    f = Func("f")
    f[i] = A[i, 0]
    with refused("""
            this definition gives f values of another type
              --> f[i] = t2s.cast(Float(32), A[i, 1])
              expected: int32
              given:    float32
              note:     f got the type int32 here
              --> f[i] = A[i, 0]
              hint:     cast the value with t2s.cast, or declare Func('f', type=...)
            """):
        f[i] = t2s.cast(Float(32), A[i, 1])


def test_definition_against_the_declared_type() -> None:
    f = Func("f", Int(16))
    with refused("""
            this definition gives f values of another type
              --> f[i] = A[i, 0] + 1
              expected: int16
              given:    int32
              note:     f got the type int16 here
              --> f = Func("f", Int(16))
              hint:     cast the value with t2s.cast, or declare Func('f', type=...)
            """):
        f[i] = A[i, 0] + 1


def test_initial_value_that_does_not_fit() -> None:
    pixels, f = ImageParam(UInt(8), 1, name="pixels"), Func("f")
    f[i] = -1
    f[i] += pixels[i + k]
    f.bound(i, 0, 4)
    with refused("""
            the number -1 does not fit into uint8
              --> f[i] = -1
              expected: 0 to 255
              given:    -1
              hint:     a wider type may hold it: t2s.cast(t2s.Int(32), x)
            """):
        t2s.lower(f)


def test_two_inputs_of_one_name_in_two_definitions() -> None:
    f, g = t2s.funcs("f g")
    twin = ImageParam(Int(32), 2, name="A")
    f[i] = A[i, 0]
    g[i] = f[i] + twin[i, 0]
    with refused("""
            two different objects of one program are named A
              --> g[i] = f[i] + twin[i, 0]
              note:     ImageParam A was made here
              --> A = ImageParam(Int(32), 2, name="A")
              note:     ImageParam A was made here
              --> twin = ImageParam(Int(32), 2, name="A")
              hint:     give one of them another name
            """):
        t2s.lower(g.bound(i, 0, 4))


def test_a_loop_with_the_name_of_an_input_of_another_func() -> None:
    f, g = t2s.funcs("f g")
    index = Var("A")
    f[i] = A[i, 0]
    g[index] = f[index]
    with refused("""
            two different objects of one program are named A
              --> g[index] = f[index]
              note:     ImageParam A was made here
              --> A = ImageParam(Int(32), 2, name="A")
              note:     Var A was made here
              --> index = Var("A")
              hint:     give one of them another name
            """):
        t2s.lower(g.bound(index, 0, 4))
