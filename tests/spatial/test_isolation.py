"""isolate_producer and isolate_consumer: who loads, who passes on, who stores."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.graph.nodes import Role
from tests.errors.designs import product
from tests.spatial.agreement import agree, body, nest

i, j = Var("i"), Var("j")
A, B = ImageParam(Int(32), 1, name="A"), ImageParam(Int(32), 1, name="B")


def roles(func: Func) -> dict[str, Role]:
    return {node.name: node.role for node in t2s.lower(func).nodes}


def test_load_and_store_units_are_made_for_what_is_not_isolated() -> None:
    p = product()
    assert roles(p.C) == {
        "C_load_A": Role.LOAD,
        "C_load_B": Role.LOAD,
        "C": Role.COMPUTE,
        "C_store": Role.STORE,
    }
    agree(p.C)


def test_a_chain_of_producers() -> None:
    p = product()
    first, second, third = t2s.funcs("first second third")
    p.C.isolate_producer_chain(p.A, first, second, third)
    assert list(roles(p.C).items())[:3] == [
        ("first", Role.LOAD),
        ("second", Role.RELAY),
        ("third", Role.RELAY),
    ]
    graph = agree(p.C)
    assert body(graph, "first") == [
        "A_element: int32 = load(A[i, k])",
        "send(first_to_second, A_element)",
    ]
    assert body(graph, "second") == [
        "A: int32 = receive(first_to_second)",
        "send(second_to_third, A)",
    ]


def test_isolating_from_an_isolated_func() -> None:
    p = product()
    loader, memory = t2s.funcs("loader memory")
    p.C.isolate_producer(p.A, loader)
    loader.isolate_producer(p.A, memory)
    assert roles(p.C)["memory"] is Role.LOAD
    agree(p.C)


def test_a_chain_of_consumers() -> None:
    p = product()
    first, second = t2s.funcs("first second")
    p.C.isolate_consumer_chain(first, second)
    assert list(roles(p.C).items())[-2:] == [("first", Role.RELAY), ("second", Role.STORE)]
    assert nest(p.C, "second") == ["for i in 0..3", "for j in 0..5"]
    agree(p.C)


def test_isolating_from_an_isolated_consumer() -> None:
    p = product()
    first, second = t2s.funcs("first second")
    p.C.isolate_consumer(first)
    first.isolate_consumer(second)
    assert roles(p.C)["first"] is Role.RELAY
    agree(p.C)


def test_producers_have_the_loops_of_that_moment() -> None:
    p, ii, loader = product(), Var("ii"), Func("loader")
    p.C.isolate_producer(p.A, loader)
    p.C.split(p.i, p.i, ii, 2)
    assert nest(p.C, "loader") == ["for i in 0..3", "for j in 0..5", "for k in 0..7"]
    assert nest(p.C, "C")[:2] == ["for i in 0..1", "for ii in 0..1"]
    agree(p.C)


def test_producers_may_be_parallel_while_the_function_is_not() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.A, loader)
    loader.unroll(p.i)
    graph = agree(p.C)
    assert graph.channel("loader_to_C").shape == (4,)


def test_the_value_that_starts_a_reduction() -> None:
    start, k = ImageParam(Int(32), 2, name="D"), RDom(0, 3, name="k")
    f, loader = t2s.funcs("f loader")
    f[i, j] = start[i, j]
    f[i, j] += A[i + k] * j
    f.bound(i, 0, 2).bound(j, 0, 4).isolate_producer(start, loader)
    assert nest(f, "loader") == ["for i in 0..1", "for j in 0..3"]
    graph = agree(f)
    assert "D: int32 = receive(loader_to_f) if k == 0" in body(graph, "f")


def test_an_initial_value_and_the_update_read_the_same() -> None:
    f, k = Func("f"), RDom(0, 3, name="k")
    f[i] = A[i]
    f[i] += A[i] * k
    agree(f.bound(i, 0, 4))


def test_a_guarded_operand_is_loaded_only_where_it_is_needed() -> None:
    f, loader = Func("f"), Func("loader")
    f[i] = t2s.select(i > 0, A[i - 1], 7) + B[i]
    f.bound(i, 0, 5).isolate_producer(A, loader)
    graph = agree(f)
    assert body(graph, "loader") == [
        "A_element: int32 = load(A[i - 1]) if i > 0",
        "send(loader_to_f, A_element) if i > 0",
    ]


def test_a_guard_around_an_isolated_func() -> None:
    """The guard belongs to everything that the Func reads."""
    scaled, f, loader = t2s.funcs("scaled f loader")
    scaled[j] = A[j] * 3 + B[j]
    f[i] = t2s.select(i > 0, scaled[i - 1], 7)
    f.bound(i, 0, 5).isolate_producer(scaled, loader)
    graph = agree(f)
    assert "A_element: int32 = load(A[i - 1]) if i > 0" in body(graph, "loader_load_A")
    assert roles(f)["loader"] is Role.COMPUTE


def test_a_guard_inside_of_a_guard() -> None:
    inner, f, loader = t2s.funcs("inner f loader")
    inner[j] = t2s.select(j > 1, A[j - 2], 1)
    f[i] = t2s.select(i < 4, inner[i], 0) + t2s.select(i > 2, B[i], 9)
    f.bound(i, 0, 6).isolate_producer(inner, loader)
    agree(f)


def test_a_guard_that_depends_on_data_only_selects() -> None:
    f = Func("f")
    f[i] = t2s.select((i > 0) & (B[i] > 4), A[i - 1], B[i])
    graph = agree(f.bound(i, 0, 6))
    assert "A_element: int32 = load(A[i - 1]) if i > 0" in body(graph, "f_load_A")


def test_one_element_under_two_guards_is_loaded_under_either() -> None:
    f = Func("f")
    f[i] = t2s.select(i > 0, A[i - 1], 0) + t2s.select(i > 2, A[i - 1], 7)
    graph = agree(f.bound(i, 0, 6))
    assert "A_element: int32 = load(A[i - 1]) if i > 0 or i > 2" in body(graph, "f_load_A")


def test_one_element_under_a_guard_and_without() -> None:
    f = Func("f")
    f[i] = t2s.select(i > 2, A[i] * 2, 0) + A[i]
    graph = agree(f.bound(i, 0, 6))
    assert "A_element: int32 = load(A[i])" in body(graph, "f_load_A")


def test_several_elements_of_one_input() -> None:
    f = Func("f")
    f[i] = A[i] + A[i + 1] * A[i + 2] - A[i]
    graph = agree(f.bound(i, 0, 5))
    assert [node.name for node in graph.nodes] == [
        "f_load_A",
        "f_load_A_2",
        "f_load_A_3",
        "f",
        "f_store",
    ]


def test_an_isolated_func_of_nothing_but_indices() -> None:
    ramp, f, loader = t2s.funcs("ramp f loader")
    ramp[j] = j * j
    f[i] = ramp[i + 1] + A[i]
    f.bound(i, 0, 4).isolate_producer(ramp, loader)
    assert roles(f)["loader"] is Role.COMPUTE
    agree(f)


def test_a_chain_behind_a_computed_producer() -> None:
    scaled, f, first, second = t2s.funcs("scaled f first second")
    scaled[j] = A[j] * 3
    f[i] = scaled[i] + 1
    f.bound(i, 0, 4).isolate_producer_chain(scaled, first, second)
    assert roles(f)["first"] is Role.COMPUTE
    assert roles(f)["second"] is Role.RELAY
    agree(f)
