"""Funcs in memory, barriers, parameters, and the depth of channels."""

from __future__ import annotations

import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var
from t2s.core.printer import show
from t2s.graph.graph import StreamKind, TensorRole
from tests.errors.designs import product
from tests.spatial.agreement import agree, body

i, j = Var("i"), Var("j")
A = ImageParam(Int(32), 1, name="A")


def prefix() -> Func:
    """``sums[i]`` is a sum of A that other Funcs read."""
    sums, k = Func("sums"), RDom(0, 3, name="k")
    sums[i] = 0
    sums[i] += A[i + k]
    return sums


def test_a_func_with_a_reduction_is_kept_in_memory() -> None:
    sums, f = prefix(), Func("f")
    f[i] = sums[i] * 2
    graph = agree(f.bound(i, 0, 4))
    assert graph.tensor("sums").role is TensorRole.INTERMEDIATE
    assert graph.tensor("f").role is TensorRole.OUTPUT


def test_a_barrier_lies_between_the_store_and_the_load() -> None:
    sums, f = prefix(), Func("f")
    f[i] = sums[i] * 2
    graph = agree(f.bound(i, 0, 4))
    stored = graph.channel("sums_complete_stored")
    assert stored.stream.kind is StreamKind.CONTROL
    assert (stored.source, stored.sink) == ("sums_store", "sums_complete")
    assert body(graph, "sums_complete") == [
        "stored: bool = receive(sums_complete_stored) if step < 1",
        "send(sums_complete_released, True) if step >= 1",
    ]
    assert body(graph, "f_load_sums")[0] == (
        "complete: bool = receive(sums_complete_released) if i == 0"
    )


def test_barriers_between_arrays_of_units() -> None:
    sums, f = prefix(), Func("f")
    f[i] = sums[i] * 2 + sums[i + 1]
    sums.unroll(i)
    f.bound(i, 0, 4).unroll(i)
    graph = agree(f)
    assert graph.channel("sums_complete_stored").shape == (5,)
    assert graph.channel("sums_complete_2_released").shape == (4,)


def test_barriers_with_triangular_loops() -> None:
    sums, f, k = Func("sums"), Func("f"), RDom(0, i + 1, name="k")
    sums[i] = 0
    sums[i] += A[k]
    m = RDom(0, j + 1, name="m")
    f[j] = 0
    f[j] += sums[m]
    agree(f.bound(j, 0, 4))


def test_a_func_in_memory_whose_bounds_start_below_zero() -> None:
    sums, f, k = Func("sums"), Func("f"), RDom(0, 2, name="k")
    sums[i] = i
    sums[i] += A[i + k + 2]
    f[j] = sums[j - 2] - sums[j]
    graph = agree(f.bound(j, 0, 4))
    assert graph.tensor("sums").shape == (6,)
    loads = body(graph, "f_load_sums") + body(graph, "f_load_sums_2")
    assert "sums_element: int32 = load(sums[j])" in loads
    assert "sums_element: int32 = load(sums[j + 2])" in loads


def test_three_stages() -> None:
    first, second, third = t2s.funcs("first second third")
    k = RDom(0, 2, name="k")
    first[i] = 0
    first[i] += A[i + k]
    second[i] = 1
    second[i] += first[i + k] * 2
    third[i] = second[i] - first[i]
    agree(third.bound(i, 0, 3))


def test_scheduling_a_func_in_memory() -> None:
    sums, f, loader, unloader = prefix(), *t2s.funcs("f loader unloader")
    f[i] = sums[i] * 2
    ii = Var("ii")
    sums.split(i, i, ii, 2).unroll(ii).isolate_producer(A, loader).isolate_consumer(unloader)
    agree(f.bound(i, 0, 4).unroll(i))


def test_isolating_the_load_of_a_func_in_memory() -> None:
    sums, f, loader, feeder = prefix(), *t2s.funcs("f loader feeder")
    f[i, j] = sums[i] * j
    f.bound(i, 0, 4).bound(j, 0, 3).unroll(j)
    f.isolate_producer_chain(sums, loader, feeder).forward(feeder, j)
    graph = agree(f)
    assert [s for s in body(graph, "loader") if "load(sums[i])" in s]


def test_parameters_are_given_when_the_design_runs() -> None:
    f, scale, shift = Func("f"), Param(Int(32), name="scale"), Param(Int(32), name="shift")
    f[i] = t2s.select(A[i] > shift, A[i] * scale, shift)
    graph = agree(f.bound(i, 0, 6))
    assert [parameter.name for parameter in graph.parameters] == ["shift", "scale"]


def test_a_parameter_in_a_guard() -> None:
    f, limit = Func("f"), Param(Int(32), name="limit")
    f[i] = t2s.select(i < limit, A[i], -1)
    graph = agree(f.bound(i, 0, 6))
    assert "A_element: int32 = load(A[i]) if i < limit" in body(graph, "f_load_A")


@pytest.mark.parametrize("name", ["previous", "carried", "A_passed", "arrived", "f_partial"])
def test_a_parameter_may_have_any_name(name: str) -> None:
    """Names of the compiler give way to the user's."""
    f, k, offset = Func("f"), RDom(0, 4, name="k"), Param(Int(32), name=name)
    B = ImageParam(Int(32), 2, name="B")
    f[i] = offset
    f[i] += B[i, k]
    agree(f.bound(i, 0, 3))
    agree(f.unroll(k))


@pytest.mark.parametrize("name", ["C_load_A", "C_store", "A_element", "C_to_C_store"])
def test_a_func_may_have_any_name(name: str) -> None:
    p = product()
    p.C.isolate_producer(p.B, Func(name))
    agree(p.C)


def test_constants_of_bounds() -> None:
    f, size = Func("f"), Param(Int(32), name="N")
    k = RDom(0, size + 1, name="k")
    f[i] = 0
    f[i] += A[i + k] * size
    graph = agree(f.bound(i, 0, 2 * size), N=3)
    assert show(graph.node("f").loops[1].extent) == "4"


def test_a_serial_feeder_of_parallel_pes_does_not_deadlock() -> None:
    """The loader serves one PE after the other, with 8 values for each.

    The PEs need their values together, so the channel has room for all values that come before the
    next PE is served.
    """
    p, loader, feeder = product(), *t2s.funcs("loader feeder")
    p.C.unroll(p.i).isolate_producer(p.A, loader).isolate_producer(p.B, feeder)
    p.C.forward(feeder, p.i)
    graph = agree(p.C)
    assert graph.channel("loader_to_C").capacity == 2
    q, loader, feeder = product(), *t2s.funcs("loader feeder")
    q.C.isolate_producer(q.A, loader).isolate_producer(q.B, feeder)
    q.C.unroll(q.i).forward(feeder, q.i)
    graph = agree(q.C)
    assert graph.channel("loader_to_C").shape == (4,)
    assert graph.channel("loader_to_C").capacity >= 6 * 8


def test_a_parallel_producer_of_a_serial_consumer() -> None:
    p, loader, unloader = product(), Func("loader"), Func("unloader")
    p.C.isolate_producer(p.A, loader).isolate_consumer(unloader).unroll(p.j)
    agree(p.C)


def test_depth_given_by_the_user() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.A, loader)
    loader.depth(17)
    p.C.depth(5)
    graph = agree(p.C)
    assert graph.channel("loader_to_C").capacity == 17
    assert graph.channel("C_to_C_store").capacity == 5


def test_floats_agree_bit_for_bit() -> None:
    p, left, top = product(Float(32)), Func("left"), Func("top")
    p.C.unroll(p.i, p.j).isolate_producer(p.A, left).isolate_producer(p.B, top)
    p.C.forward(left, p.j).forward(top, p.i)
    agree(p.C, real=True)


def sharing(trips: int) -> tuple[Func, Func, Var]:
    """PEs along j share B and get A from a serial loader; k runs over ``i + trips`` values."""
    rows, columns = ImageParam(Int(32), 2, name="B"), ImageParam(Int(32), 2, name="A")
    f, k = Func("f"), RDom(0, i + trips, name="k")
    f[i, j] = 0
    f[i, j] += columns[k, j] * rows[i, k]
    loader, feeder = t2s.funcs("loader feeder")
    f.bound(i, 0, 3).bound(j, 0, 4).isolate_producer(columns, loader).isolate_producer(rows, feeder)
    f.unroll(j).forward(feeder, j)
    return f, loader, j


def test_the_longest_trip_decides_the_depth() -> None:
    """Up to 2 + 5 values in a row for one PE, and one of slack."""
    f, _, _ = sharing(5)
    assert agree(f).channel("loader_to_f").capacity == 8


def test_parts_of_a_loop_choose_the_pe_too() -> None:
    """The loader has split the loop that chooses the PE: jj, inside of it, does not repeat."""
    f, loader, j = sharing(5)
    loader.split(j, j, Var("jj"), 2)
    assert agree(f).channel("loader_to_f").capacity == 8


def test_results_of_a_reduction_are_sent_once() -> None:
    """The loop k, inside of the loop j that the store unit shares out, makes one result."""
    p, unloader = product(), Func("unloader")
    p.C.isolate_consumer(unloader)
    unloader.unroll(p.j)
    assert agree(p.C).channel("C_to_unloader").capacity == 2
