"""Wrong arguments of Var, RDom, ImageParam, Param and Func."""

from __future__ import annotations

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var
from tests.errors.refusal import refused


def test_var_without_a_proper_name() -> None:
    with refused("""
            a Var needs a name that is a Python identifier
              --> Var("2nd")
              expected: a name such as i or A_loader
              given:    '2nd'
            """):
        Var("2nd")


def test_var_named_by_a_number() -> None:
    with refused("""
            a Var needs a name that is a Python identifier
              --> Var(3)  # type: ignore[arg-type]
              expected: a name such as i or A_loader
              given:    3
            """):
        Var(3)  # type: ignore[arg-type]


def test_func_without_a_proper_name() -> None:
    with refused("""
            a Func needs a name that is a Python identifier
              --> Func("my func")
              expected: a name such as i or A_loader
              given:    'my func'
            """):
        Func("my func")


def test_func_with_a_type_that_is_none() -> None:
    with refused("""
            the type of Func f is not an element type
              --> Func("f", "float32")  # type: ignore[arg-type]
              expected: for example Func("f", type=Float(32))
              given:    'float32'
            """):
        Func("f", "float32")  # type: ignore[arg-type]


def test_image_param_without_a_type() -> None:
    with refused("""
            ImageParam A needs an element type and a number of dimensions
              --> ImageParam(2, 2, name="A")  # type: ignore[arg-type]
              expected: for example ImageParam(Float(32), 2, name="A")
              given:    2, 2
            """):
        ImageParam(2, 2, name="A")  # type: ignore[arg-type]


def test_image_param_without_dimensions() -> None:
    with refused("""
            ImageParam A needs an element type and a number of dimensions
              --> ImageParam(Float(32), 0, name="A")
              expected: for example ImageParam(Float(32), 2, name="A")
              given:    float32, 0
            """):
        ImageParam(Float(32), 0, name="A")


def test_image_param_with_a_shape_of_another_rank() -> None:
    with refused("""
            the shape of ImageParam A is not one of 2 dimensions
              --> ImageParam(Float(32), 2, name="A", shape=(4,))
              expected: 2 positive integers
              given:    (4,)
            """):
        ImageParam(Float(32), 2, name="A", shape=(4,))


def test_image_param_with_an_empty_shape() -> None:
    with refused("""
            the shape of ImageParam A is not one of 2 dimensions
              --> ImageParam(Float(32), 2, name="A", shape=(4, 0))
              expected: 2 positive integers
              given:    (4, 0)
            """):
        ImageParam(Float(32), 2, name="A", shape=(4, 0))


def test_param_without_a_type() -> None:
    with refused("""
            Param p needs an element type
              --> Param(3, name="p")  # type: ignore[arg-type]
              expected: for example Param(Float(32), name="alpha")
              given:    3
            """):
        Param(3, name="p")  # type: ignore[arg-type]


def test_rdom_without_bounds() -> None:
    with refused("""
            an RDom needs a minimum and an extent for each dimension
              --> RDom(name="k")
              expected: for example RDom(0, 64, name="k")
              given:    0 bounds
            """):
        RDom(name="k")


def test_rdom_with_one_bound() -> None:
    with refused("""
            an RDom needs a minimum and an extent for each dimension
              --> RDom(8, name="k")
              expected: for example RDom(0, 64, name="k")
              given:    1 bounds
            """):
        RDom(8, name="k")


def test_rdom_with_too_few_names() -> None:
    with refused("""
            an RDom of 3 dimensions needs as many names
              --> RDom(0, 3, 0, 5, 0, 7, name="y x")
              expected: for example RDom(0, 3, 0, 5, name="y x")
              given:    'y x'
            """):
        RDom(0, 3, 0, 5, 0, 7, name="y x")


def test_rdom_with_too_many_names() -> None:
    with refused("""
            an RDom of 1 dimension needs as many names
              --> RDom(0, 3, name="y x")
              expected: for example RDom(0, 3, 0, 5, name="y x")
              given:    'y x'
            """):
        RDom(0, 3, name="y x")


def test_rdom_with_a_float() -> None:
    with refused("""
            a bound of an RDom has to be an integer
              --> RDom(0, 2.5, name="k")
              expected: an integer, an integer Param or an affine expression
              given:    2.5 of type float32
            """):
        RDom(0, 2.5, name="k")


def test_rdom_with_two_equal_names() -> None:
    with refused("""
            two dimensions of an RDom are named k
              --> RDom(0, 3, 0, 5, name="k k")
              expected: a different name for each dimension
              given:    'k k'
            """):
        RDom(0, 3, 0, 5, name="k k")


def test_type_of_unknown_width() -> None:
    with refused("""
            int types cannot have this width
              --> Int(12)
              expected: an int type of 8 or 16 or 32 or 64 bits
              given:    12
            """):
        Int(12)
    with refused("""
            bfloat types cannot have this width
              --> t2s.BFloat(32)
              expected: a bfloat type of 16 bits
              given:    32
            """):
        t2s.BFloat(32)
