"""vload and vstore: the innermost loop becomes lanes."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, UInt, Var
from t2s.core.expr import ReduceLanes
from t2s.core.types import Type
from t2s.core.walk import walk
from tests.errors.designs import product
from tests.spatial.agreement import agree, body, nest, results
from tests.spatial.programs import random_inputs

i, j, ii, jj, kk = Var("i"), Var("j"), Var("ii"), Var("jj"), Var("kk")


def transposed(type: Type) -> tuple[Func, ImageParam, ImageParam]:
    """A matrix product with both operands contiguous along k."""
    A, B, C = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B"), Func("C")
    k = RDom(0, 8, name="k")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, 2).bound(j, 0, 4).split(k, k, kk, 4)
    return C, A, B


def lanes(func: Func) -> dict[str, int]:
    """Lanes of every channel."""
    return {channel.name: channel.stream.element.lanes for channel in t2s.lower(func).channels}


@pytest.mark.parametrize("type", [Int(32), UInt(8), Int(64)], ids=str)
def test_a_dot_product(type: Type) -> None:
    C, A, B = transposed(type)
    C.vload(A, B)
    assert nest(C)[-1] == "vector kk in 0..3"
    graph = agree(C)
    assert any(isinstance(part, ReduceLanes) for part in walk(graph.node("C")))
    assert lanes(C) == {"C_load_A_to_C": 4, "C_load_B_to_C": 4, "C_to_C_store": 1}


def test_a_dot_product_is_summed_as_a_tree() -> None:
    """((a0 b0 + a1 b1) + (a2 b2 + a3 b3)) for each vector, then added to the sum."""
    C, A, B = transposed(Float(32))
    C.vload(A, B)
    graph = t2s.lower(C)
    inputs = random_inputs(graph, 1, real=True)
    products = (inputs["A"][:, None] * inputs["B"][None]).reshape(2, 4, 2, 4)
    pairs = products[..., ::2] + products[..., 1::2]
    sums = pairs[..., 0] + pairs[..., 1]
    expected = sums[..., 0] + sums[..., 1]
    for name, result in results(graph, inputs).items():
        np.testing.assert_array_equal(result, expected, err_msg=name)
    np.testing.assert_allclose(expected, t2s.interpret(C, inputs), rtol=1e-5)


def factored(type: Type, operator: str = "+") -> Func:
    """A sum over lanes whose term has two factors that do not vary along them."""
    A, B, C = ImageParam(type, 2, name="A"), ImageParam(type, 1, name="B"), Func("C")
    D, E = ImageParam(type, 2, name="D"), ImageParam(type, 1, name="E")
    k = RDom(0, 8, name="k")
    C[i, j] = 0
    term = B[i] * A[i, k] * E[j] * D[j, k]
    C[i, j] = C[i, j] + term if operator == "+" else t2s.max(C[i, j], term)
    C.bound(i, 0, 2).bound(j, 0, 4).split(k, k, kk, 4).vload(A, D)
    return C


@pytest.mark.parametrize("type", [Int(32), UInt(8)], ids=str)
def test_factors_that_are_the_same_in_all_lanes_multiply_the_sum(type: Type) -> None:
    graph = agree(factored(type))
    assert f"C: {type} = previous + B * E * reduce_lanes('+', A * D)" in body(graph, "C")


def test_factors_stay_inside_of_a_maximum() -> None:
    graph = agree(factored(Int(32), "max"))
    (step,) = (line for line in body(graph, "C") if line.startswith("C:"))
    assert step.endswith("reduce_lanes('max', broadcast(B, 4) * A * broadcast(E, 4) * D))")


@pytest.mark.parametrize("operator", ["max", "min"])
def test_the_largest_and_the_smallest_of_lanes(operator: str) -> None:
    A, f, k = ImageParam(Float(32), 2, name="A"), Func("f"), RDom(0, 6, name="k")
    f[i] = 0.5
    f[i] = getattr(t2s, operator)(f[i], A[i, k])
    agree(f.bound(i, 0, 3).split(k, k, kk, 3).vload(A), real=True)


def test_an_odd_number_of_lanes() -> None:
    A, f, k = ImageParam(Int(32), 2, name="A"), Func("f"), RDom(0, 15, name="k")
    f[i] = 3
    f[i] += A[i, k]
    agree(f.bound(i, 0, 2).split(k, k, kk, 5).vload(A))


def test_operands_that_do_not_vary_stay_single_values() -> None:
    A, X, f = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="X"), Func("f")
    k = RDom(0, 8, name="k")
    f[i] = 0
    f[i] += A[i, k] * X[i]
    f.bound(i, 0, 3).split(k, k, kk, 4).vload(A)
    graph = agree(f)
    assert lanes(f)["f_load_X_to_f"] == 1
    assert graph.node("f_load_X").loops[-1].name == "k"


def test_lanes_of_results() -> None:
    A, B, f = ImageParam(Int(32), 1, name="A"), ImageParam(Int(32), 1, name="B"), Func("f")
    f[i] = A[i] * 2 + B[i + 1]
    f.bound(i, 0, 12).split(i, i, ii, 4).vload(A, B).vstore(f)
    graph = agree(f)
    assert set(lanes(f).values()) == {4}
    assert body(graph, "f_store")[-1].startswith("store(f[i * 4], ")


def test_lanes_of_reductions_side_by_side() -> None:
    """Four sums at once: partial results are vectors."""
    p = product()
    p.C.split(p.j, p.j, jj, 3).reorder(jj, p.k, p.j, p.i).vload(p.B).vstore(p.C)
    graph = agree(p.C)
    assert lanes(p.C) == {"C_load_A_to_C": 1, "C_load_B_to_C": 3, "C_to_C_store": 3}
    (register,) = graph.node("C").registers
    assert register.type.lanes == 3


def test_select_between_vectors() -> None:
    A, B, f = ImageParam(Int(32), 1, name="A"), ImageParam(Int(32), 1, name="B"), Func("f")
    f[i] = t2s.select(A[i] > B[i], A[i] - B[i], 7)
    agree(f.bound(i, 0, 8).split(i, i, ii, 4).vload(A, B).vstore(f))


def test_a_cast_of_vectors() -> None:
    A, f = ImageParam(UInt(8), 1, name="A"), Func("f")
    f[i] = t2s.cast(Int(32), A[i]) * 1000
    agree(f.bound(i, 0, 8).split(i, i, ii, 4).vload(A).vstore(f))


def test_chains_widen() -> None:
    C, A, B = transposed(Int(32))
    loader, feeder, unloader = t2s.funcs("loader feeder unloader")
    C.isolate_producer_chain(A, loader, feeder).vload(A, B).isolate_consumer(unloader)
    assert lanes(C) == {
        "loader_to_feeder": 4,
        "feeder_to_C": 4,
        "C_load_B_to_C": 4,
        "C_to_unloader": 1,
    }
    agree(C)


def test_isolating_after_vload() -> None:
    C, A, B = transposed(Int(32))
    loader, feeder = t2s.funcs("loader feeder")
    C.vload(A, B).isolate_producer_chain(A, loader, feeder)
    assert lanes(C)["feeder_to_C"] == 4
    agree(C)


def test_a_producer_may_be_named_instead_of_the_input() -> None:
    C, A, B = transposed(Int(32))
    loader = Func("loader")
    C.isolate_producer(A, loader).vload(loader, B)
    agree(C)


def test_consumers_of_vectors() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    drain, unloader = t2s.funcs("drain unloader")
    f[i] = A[i] + 1
    f.bound(i, 0, 8).split(i, i, ii, 4).vload(A).vstore(f).isolate_consumer_chain(drain, unloader)
    assert set(lanes(f).values()) == {4}
    agree(f)


def test_vstore_on_a_consumer_of_vectors() -> None:
    A, f, unloader = ImageParam(Int(32), 1, name="A"), Func("f"), Func("unloader")
    f[i] = A[i] + 1
    f.bound(i, 0, 8).split(i, i, ii, 4).vload(A).isolate_consumer(unloader)
    unloader.vstore(f)
    agree(f)


@pytest.mark.parametrize("early", [False, True])
def test_a_computed_operand_loads_vectors(early: bool) -> None:
    """The Func that is loaded as a vector is computed from vectors of its own inputs."""
    A, B = ImageParam(Int(32), 1, name="A"), ImageParam(Int(32), 1, name="B")
    scaled, f, loader = t2s.funcs("scaled f loader")
    scaled[j] = A[j] * 3 + B[j]
    f[i] = scaled[i] + 1
    f.bound(i, 0, 8).split(i, i, ii, 4)
    if early:
        f.vload(scaled).isolate_producer(scaled, loader)
    else:
        f.isolate_producer(scaled, loader).vload(scaled)
    f.vstore(f)
    assert set(lanes(f).values()) == {4}
    agree(f)


def test_an_inlined_func_is_loaded_as_vectors() -> None:
    A, scaled, f = ImageParam(Int(32), 1, name="A"), Func("scaled"), Func("f")
    scaled[j] = A[j] * 3
    f[i] = scaled[i] + 1
    agree(f.bound(i, 0, 8).split(i, i, ii, 4).vload(A).vstore(f))


def test_vectors_in_an_array_of_pes() -> None:
    C, A, B = transposed(Int(32))
    A_feeder, B_feeder, unloader = t2s.funcs("A_feeder B_feeder unloader")
    C.unroll(i, j).vload(A, B)
    C.isolate_producer(A, A_feeder).isolate_producer(B, B_feeder)
    C.forward(A_feeder, j).forward(B_feeder, i).isolate_consumer(unloader)
    graph = agree(C)
    assert graph.channel("A_along_j").stream.element.lanes == 4


def test_vectors_and_partial_results_from_pe_to_pe() -> None:
    A, f, k = ImageParam(Int(32), 2, name="A"), Func("f"), RDom(0, 16, name="k")
    f[i] = 0
    f[i] += A[i, k]
    f.bound(i, 0, 3).split(k, k, kk, 4).unroll(k).vload(A)
    agree(f)


def test_a_guard_that_is_the_same_for_all_lanes() -> None:
    A, f = ImageParam(Int(32), 2, name="A"), Func("f")
    f[i, j] = t2s.select(i > 0, A[i - 1, j], 5)
    agree(f.bound(i, 0, 3).bound(j, 0, 8).split(j, j, jj, 4).vload(A).vstore(f))


def test_minimum_other_than_zero() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    f[i] = A[i - 2] + A[i]
    agree(f.bound(i, 3, 4).vload(A).vstore(f))
