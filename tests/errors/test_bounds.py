"""Mistakes in bounds, and reads outside of them."""

from __future__ import annotations

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var
from t2s.errors import UnsupportedError
from tests.errors.refusal import refused

i, j = Var("i"), Var("j")
A = ImageParam(Int(32), 1, name="A")


def test_output_without_bounds() -> None:
    f = Func("f")
    f[i, j] = A[i] + j
    with refused("""
            the range of j in f is not known
              --> f = Func("f")
              expected: f.bound(j, minimum, extent)
              hint:     the output, and a Func read at data-dependent places, need bounds
            """):
        t2s.lower(f.bound(i, 0, 4))


def test_func_read_at_places_that_depend_on_data() -> None:
    table, f = t2s.funcs("table f")
    table[j] = j * j
    f[i] = table[A[i]]
    with refused("""
            the range of j in table is not known
              --> table, f = t2s.funcs("table f")
              expected: table.bound(j, minimum, extent)
              hint:     the output, and a Func read at data-dependent places, need bounds
            """):
        t2s.interpret(f.bound(i, 0, 4), {})


def test_empty_bound() -> None:
    f = Func("f")
    f[i] = A[i]
    f.bound(i, 0, 0)
    with refused("""
            bound(i) on f is empty
              --> f.bound(i, 0, 0)
              expected: an extent of at least 1
              given:    0
            """):
        t2s.lower(f)


def test_bound_of_an_unknown_variable() -> None:
    f = Func("f")
    f[i] = A[i]
    f.bound(j, 0, 4)
    with refused("""
            bound(j) on f: f has no such argument
              --> f.bound(j, 0, 4)
              expected: one of i
              given:    j
            """):
        t2s.lower(f)


def test_bound_of_one_variable_twice() -> None:
    f, i = Func("f"), Var("i")
    f[i] = 1
    f.bound(i, 0, 4)
    with refused("""
            bound(i) on f is given twice
              --> f.bound(i, 0, 8)
              expected: one bound for each dimension
              note:     i was bounded here
              --> f.bound(i, 0, 4)
            """):
        f.bound(i, 0, 8)


def test_bound_by_name() -> None:
    f = Func("f")
    f[i] = A[i]
    with refused("""
            bound on f needs a Var as its first argument
              --> f.bound("i", 0, 4)  # type: ignore[arg-type]
              expected: for example f.bound(i, 0, 32)
              given:    'i'
            """):
        f.bound("i", 0, 4)  # type: ignore[arg-type]


def test_bound_by_a_float() -> None:
    f = Func("f")
    f[i] = A[i]
    with refused("""
            bound(i) on f needs integers
              --> f.bound(i, 0, 4.0)
              expected: a minimum and an extent
              given:    4.0 of type float32
            """):
        f.bound(i, 0, 4.0)


def test_bound_that_depends_on_an_inner_argument() -> None:
    f = Func("f")
    f[i, j] = A[i] + j
    f.bound(i, 0, j + 1).bound(j, 0, 4)
    with refused("""
            bound(i) on f uses j, which is not an argument before i
              --> f.bound(i, 0, j + 1).bound(j, 0, 4)
              expected: numbers, integer Params
              given:    j + 1
            """):
        t2s.lower(f)


def test_bound_that_depends_on_another_var() -> None:
    f, k = Func("f"), Var("k")
    f[i, j] = A[i] + j
    f.bound(i, 0, 4).bound(j, k, 4)
    with refused("""
            bound(j) on f uses k, which is not an argument before j
              --> f.bound(i, 0, 4).bound(j, k, 4)
              expected: numbers, integer Params, and i with constant factors
              given:    k
            """):
        t2s.lower(f)


def test_bound_that_is_not_affine() -> None:
    f = Func("f")
    f[i, j] = A[i] + j
    f.bound(i, 0, 4).bound(j, 0, i * i + 1)
    with refused("""
            bound(j) on f is not affine
              --> f.bound(i, 0, 4).bound(j, 0, i * i + 1)
              expected: numbers, integer Params, and i with constant factors
              given:    i * i + 1
            """):
        t2s.lower(f)


def test_bound_that_is_empty_for_all_rows() -> None:
    f = Func("f")
    f[i, j] = A[i] + j
    f.bound(i, 0, 4).bound(j, 0, i - 3)
    with refused("""
            bound(j) on f is empty
              --> f.bound(i, 0, 4).bound(j, 0, i - 3)
              expected: an extent of at least 1 for some values of i
              given:    i - 3
            """):
        t2s.lower(f)


def test_read_outside_of_a_triangle() -> None:
    f, g = t2s.funcs("f g")
    f[i, j] = A[i] + j
    g[i] = f[i, 0]
    f.bound(i, 0, 4).bound(j, i, 4 - i)
    with refused("""
            f[i, 0] is outside of the bounds of f
              --> g[i] = f[i, 0]
              expected: j from i, 4 - i values
              given:    i=1, j=0
              hint:     widen f.bound(...), or guard the access with t2s.select
            """):
        t2s.lower(g.bound(i, 0, 4))


def test_read_of_a_triangle_at_places_that_depend_on_data() -> None:
    f, g = t2s.funcs("f g")
    f[i, j] = i + j
    g[i] = f[i, A[i]]
    f.bound(i, 0, 4).bound(j, i, 4 - i)
    with refused("""
            f[i, A[i]] cannot be proved to stay inside of the bounds of f
              --> g[i] = f[i, A[i]]
              expected: j from i, 4 - i values
              given:    the subscript A[i]
              hint:     widen f.bound(...), or guard the access with t2s.select
            """):
        t2s.interpret(g.bound(i, 0, 4), {})


def test_update_of_a_triangle_outside_of_it() -> None:
    f = Func("f")
    f[i, j] = 0
    f[i, 0] = 1
    f.bound(i, 0, 4).bound(j, i, 4 - i)
    with refused("""
            f[i, 0] is outside of the bounds of f
              --> f[i, 0] = 1
              expected: j from i, 4 - i values
              given:    i=1, j=0
              hint:     widen f.bound(...), or guard the access with t2s.select
            """):
        t2s.interpret(f, {})


def test_update_of_a_triangle_with_rows_that_depend_on_data() -> None:
    f = Func("f")
    f[i, j] = 0
    f[A[i], j] = 1
    f.bound(i, 0, 4).bound(j, i, 4 - i)
    with refused(
        """
            the range of j in this update of f depends on other subscripts
              --> f[A[i], j] = 1
              expected: Vars for the arguments that the bounds of j use
              given:    f[A[i], j]
            """,
        UnsupportedError,
    ):
        t2s.interpret(f, {})


def test_param_in_a_bound_without_a_value() -> None:
    f, size = Func("f"), Param(Int(32), name="N")
    f[i] = A[i]
    f.bound(i, 0, size)
    with refused("""
            the Param N is used in a bound and has no value
              --> f.bound(i, 0, size)
              expected: a number for it, as in t2s.lower(func, N=64)
              hint:     hardware has a fixed size; interpret and simulate take it among the inputs
            """):
        t2s.lower(f)


def test_param_in_a_reduction_domain_without_a_value() -> None:
    f, size = Func("f"), Param(Int(32), name="N")
    k = RDom(0, size, name="k")
    f[i] = 0
    f[i] += A[i + k]
    f.bound(i, 0, 4)
    with refused("""
            the Param N is used in a bound and has no value
              --> k = RDom(0, size, name="k")
              expected: a number for it, as in t2s.lower(func, N=64)
              hint:     hardware has a fixed size; interpret and simulate take it among the inputs
            """):
        t2s.lower(f)


def test_unknown_constant() -> None:
    f, size = Func("f"), Param(Int(32), name="N")
    f[i] = A[i]
    f.bound(i, 0, size)
    with refused("""
            the program has no Param M
              --> t2s.lower(f, {"N": 4, "M": 5})
              expected: one of N
              given:    M=5
            """):
        t2s.lower(f, {"N": 4, "M": 5})


def test_constant_that_is_no_integer() -> None:
    f, size = Func("f"), Param(Int(32), name="N")
    f[i] = A[i]
    f.bound(i, 0, size)
    with refused("""
            the Param N cannot have this value when the design is lowered
              --> t2s.lower(f, {"N": 4.5})  # type: ignore[arg-type]
              expected: -2147483648 to 2147483647
              given:    N=4.5
              note:     Param N was made here
              --> f, size = Func("f"), Param(Int(32), name="N")
            """):
        t2s.lower(f, {"N": 4.5})  # type: ignore[arg-type]


def test_read_outside_of_an_input() -> None:
    f = Func("f")
    f[i] = A[i - 1]
    f.bound(i, 0, 4)
    with refused("""
            A[i - 1] is outside of the input A
              --> f[i] = A[i - 1]
              expected: subscript 0 from 0 to 2
              given:    -1 to 2
              hint:     guard the access with t2s.select(condition, inside, outside)
            """):
        t2s.lower(f)


def test_selected_subscript_outside_of_a_declared_shape() -> None:
    f, short = Func("f"), ImageParam(Int(32), 1, name="short", shape=(5,))
    f[i] = short[t2s.select(i < 2, i, 6 - i)]
    f.bound(i, 0, 8)
    with refused("""
            short[select(i < 2, i, 6 - i)] is outside of the input short
              --> f[i] = short[t2s.select(i < 2, i, 6 - i)]
              expected: subscript 0 from 0 to 4
              given:    -1 to 4
              hint:     guard the access with t2s.select(condition, inside, outside)
            """):
        t2s.lower(f)


def test_read_outside_of_a_declared_shape() -> None:
    f, small = Func("f"), ImageParam(Int(32), 1, name="small", shape=(4,))
    f[i] = small[2 * i]
    f.bound(i, 0, 4)
    with refused("""
            small[2 * i] is outside of the input small
              --> f[i] = small[2 * i]
              expected: subscript 0 from 0 to 3
              given:    0 to 6
              hint:     guard the access with t2s.select(condition, inside, outside)
            """):
        t2s.lower(f)


def test_read_outside_of_the_bounds_of_a_func() -> None:
    f, g = t2s.funcs("f g")
    f[i] = A[i]
    g[i] = f[i] + f[i + 1]
    f.bound(i, 0, 4)
    with refused("""
            f[i + 1] is outside of the bounds of f
              --> g[i] = f[i] + f[i + 1]
              expected: i from 0 to 3
              given:    1 to 4
              hint:     widen f.bound(i, ...), or guard the access with t2s.select
            """):
        t2s.lower(g.bound(i, 0, 4))


def test_recurrence_outside_of_its_own_bounds() -> None:
    f, k = Func("f"), RDom(0, 4, name="k")
    f[i] = A[i]
    f[k] += f[k - 1]
    f.bound(i, 0, 4)
    with refused("""
            f[k - 1] is outside of the bounds of f
              --> f[k] += f[k - 1]
              expected: i from 0 to 3
              given:    -1 to 2
              hint:     widen f.bound(i, ...), or guard the access with t2s.select
            """):
        t2s.lower(f)


def test_write_outside_of_the_bounds() -> None:
    f, k = Func("f"), RDom(0, 4, name="k")
    f[i] = 0
    f[k + 1] = 5
    f.bound(i, 0, 4)
    with refused("""
            f[k + 1] is outside of the bounds of f
              --> f[k + 1] = 5
              expected: i from 0 to 3
              given:    1 to 4
              hint:     widen f.bound(i, ...), or guard the access with t2s.select
            """):
        t2s.lower(f)


def test_input_that_is_only_read_at_places_that_depend_on_data() -> None:
    f, lookup = Func("f"), ImageParam(Float(32), 1, name="lookup")
    f[i] = lookup[A[i]]
    f.bound(i, 0, 4)
    with refused("""
            the shape of ImageParam lookup is not known in dimension 0
              --> f, lookup = Func("f"), ImageParam(Float(32), 1, name="lookup")
              expected: an affine subscript, or a declared shape
              hint:     declare it: ImageParam(type, rank, name='lookup', shape=(...))
            """):
        t2s.lower(f)


def test_empty_reduction_domain() -> None:
    f, k = Func("f"), RDom(0, 0, name="k")
    f[i] = 0
    f[i] += k
    f.bound(i, 0, 4)
    with refused("""
            RDom k is empty
              --> f, k = Func("f"), RDom(0, 0, name="k")
              expected: an extent of at least 1
              given:    0
            """):
        t2s.lower(f)


def test_reduction_bounds_of_unknown_variables() -> None:
    f = Func("f")
    k = RDom(0, j + 1, name="k")
    f[i] = 0
    f[i] += A[k]
    f.bound(i, 0, 4)
    with refused("""
            the bounds of RDom k use j, which is not an outer dimension of this definition
              --> k = RDom(0, j + 1, name="k")
              expected: only i
              note:     used by the definition here
              --> f[i] += A[k]
            """):
        t2s.lower(f)


def test_reduction_bounds_that_are_not_affine() -> None:
    f = Func("f")
    k = RDom(0, i * i + 1, name="k")
    f[i] = 0
    f[i] += A[k]
    f.bound(i, 0, 4)
    with refused("""
            a bound of RDom k is not affine
              --> k = RDom(0, i * i + 1, name="k")
              expected: sums of integers, Vars and outer dimensions, with constant factors
              given:    i * i + 1
            """):
        t2s.lower(f)


def test_reduction_bounds_that_depend_on_data() -> None:
    f = Func("f")
    k = RDom(0, A[i], name="k")
    f[i] = 0
    f[i] += k
    f.bound(i, 0, 4)
    with refused("""
            a bound of RDom k is not affine
              --> k = RDom(0, A[i], name="k")
              expected: sums of integers, Vars and outer dimensions, with constant factors
              given:    A[i]
            """):
        t2s.lower(f)


def test_reduction_that_is_empty_for_some_element_in_hardware() -> None:
    f, k = Func("f"), RDom(0, i, name="k")
    f[i] = 0
    f[i] += A[k]
    f.bound(i, 0, 4)
    with refused(
        """
            the reduction over k in f is empty for i=0
              --> f[i] += A[k]
              expected: at least one step for every element
              hint:     start the reduction one step earlier, with a neutral term
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_constant_for_a_param_of_floats() -> None:
    f, scale = Func("f"), Param(Float(32), name="scale")
    f[i] = t2s.cast(Float(32), A[i]) * scale
    f.bound(i, 0, 4)
    with refused("""
            the Param scale cannot have this value when the design is lowered
              --> t2s.lower(f, {"scale": 2})
              expected: a Param of integer type
              given:    scale of type float32
              note:     Param scale was made here
              --> f, scale = Func("f"), Param(Float(32), name="scale")
            """):
        t2s.lower(f, {"scale": 2})
