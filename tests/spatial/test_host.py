"""Functions on the host: arrays that are in memory in the order in which they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Place, RDom, Var
from t2s.graph.arrays import pack, unpack
from t2s.graph.graph import Graph, Layout
from t2s.graph.nodes import Role
from tests.spatial.agreement import agree, body
from tests.spatial.programs import random_inputs

A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
i, j, k = Var("i"), Var("j"), RDom(0, 8, name="k")
ii, jj, kk, iii, jjj, kkk = t2s.variables("ii jj kk iii jjj kkk")


def on_host(name: str) -> Func:
    return Func(name, place=Place.HOST)


def product() -> Func:
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    return C.bound(i, 0, 8).bound(j, 0, 12)


def layout_of(graph: Graph, tensor: str) -> Layout:
    layout = graph.tensor(tensor).layout
    assert layout is not None
    return layout


def systolic() -> Func:
    """Tiles of 4 x 6 results on 2 x 2 PEs, with vectors along k and buffers for both operands."""
    C = product().split(k, k, kk, 4).split(kk, kk, kkk, 2)
    C.split(i, i, ii, 4).split(ii, ii, iii, 2).split(j, j, jj, 6).split(jj, jj, jjj, 2)
    C.reorder(kkk, jjj, iii, jj, ii, kk, k, j, i).unroll(iii, jjj)
    A_serializer, B_serializer = t2s.funcs("A_serializer B_serializer", place=Place.HOST)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C.isolate_producer_chain(A, A_serializer, A_loader, A_feeder)
    C.isolate_producer_chain(B, B_serializer, B_loader, B_feeder)
    C.isolate_consumer_chain(Func("C_drainer"), Func("C_unloader"), on_host("C_deserializer"))
    C.forward(A_feeder, jjj).forward(B_feeder, iii).vload(A, B)
    A_serializer.remove(jj, j)
    B_serializer.remove(ii, i)
    A_loader.remove(jj)
    A_feeder.buffer(A_loader, k)
    B_loader.remove(ii)
    B_feeder.buffer(B_loader, k)
    return C


def test_a_systolic_array() -> None:
    graph = agree(systolic())
    layout = layout_of(graph, "A_serializer")
    assert layout.array == "A"
    assert layout.loops == ("i", "k", "kk", "ii", "iii", "kkk")
    assert layout.extents == (2, 2, 2, 2, 2, 2)
    # the loader reads it again for every j
    assert [loop.name for loop in graph.node("A_loader").loops] == ["i", "j", "k", "kk", "ii"]
    assert body(graph, "A_loader")[0] == (
        "A_serializer_element: int32x2 = load(A_serializer[i, k, kk, ii, iii, 0])"
    )
    assert [tensor.name for tensor in graph.tensors] == [
        "A_serializer",
        "B_serializer",
        "C_deserializer",
    ]
    assert layout_of(graph, "C_deserializer").array == "C"


def test_what_is_printed() -> None:
    text = t2s.print_loop_nest(systolic())
    first, second, *_ = text.split("\n\n")
    assert first.splitlines()[0] == "A_serializer: on the host"
    assert [line.split("#")[0].strip() for line in first.splitlines()[1:]] == [
        "for i in 0..1:",
        "for k in 0..1:",
        "for kk in 0..1:",
        "for ii in 0..1:",
        "for iii in 0..1:",
        "vector kkk in 0..1:",
        "put A[i * 4 + (ii * 2 + iii), k * 4 + (kk * 2 + kkk)] into memory for A_loader",
    ]
    assert second.splitlines()[0] == "A_loader: load, 2 PEs"
    assert "A = next from memory, by A_serializer" in second
    assert "C_unloader: store, 4 PEs" in text
    assert "put C_result into memory for C_deserializer" in text
    assert "C_result = next from memory, by C_unloader" in text


def test_consecutive_addresses() -> None:
    """Without reuse, the loader reads one address after the other."""
    C, S, L = product(), on_host("S"), Func("L")
    C.tile(j, i, jj, ii, 6, 4).isolate_producer_chain(A, S, L)
    S.remove(j, jj)
    graph = agree(C)
    assert graph.tensor("S").allocated == (2, 4, 8)
    assert graph.tensor("S").shape == (8, 8)


def test_reuse_that_stays_is_in_memory_again() -> None:
    C, S = product(), on_host("S")
    C.isolate_producer_chain(A, S, Func("L"))
    graph = agree(C)
    assert graph.tensor("S").allocated == (8, 12, 8)


def test_a_transposed_operand_loaded_as_vectors() -> None:
    C, S = product(), on_host("S")
    C.split(k, k, kk, 4).isolate_producer_chain(B, S, Func("L")).vload(A, B)
    S.remove(i)
    graph = agree(C)
    assert body(graph, "L")[0] == "S_element: int32x4 = load(S[j, k, 0])"
    assert [t.name for t in graph.tensors] == ["A", "C", "S"]


def test_results_stored_as_vectors_across_rows() -> None:
    C = product().reorder(i, k, j)
    C.isolate_producer_chain(A, on_host("S"), Func("L"))
    C.isolate_consumer_chain(Func("U"), on_host("D"))
    C.vload(A).vstore(C)
    graph = agree(C)
    assert body(graph, "U")[-1] == "store(D[j, 0], C_result)"


def test_isolating_further_into_the_host() -> None:
    C, S, L = product(), on_host("S"), Func("L")
    U, D = Func("U"), on_host("D")
    C.isolate_producer(A, L).isolate_consumer(U)
    L.isolate_producer(A, S)
    U.isolate_consumer(D)
    graph = agree(C)
    assert (graph.node("L").role, graph.node("U").role) == (Role.LOAD, Role.STORE)


def test_one_array_in_two_orders() -> None:
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * A[j, k]
    C.bound(i, 0, 4).bound(j, 0, 4)
    left, right = on_host("left"), on_host("right")
    C.isolate_producer_chain(A[i, k], left, Func("L")).isolate_producer_chain(
        A[j, k], right, Func("R")
    )
    left.remove(j)
    right.remove(i)
    graph = agree(C)
    assert [(t.name, t.array) for t in graph.tensors] == [
        ("C", "C"),
        ("left", "A"),
        ("right", "A"),
    ]


def test_one_array_in_order_and_as_it_is() -> None:
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * A[j, k]
    C.bound(i, 0, 4).bound(j, 0, 4)
    C.isolate_producer_chain(A[i, k], on_host("left"), Func("L"))
    graph = agree(C)
    assert [t.name for t in graph.tensors] == ["A", "C", "left"]


def test_loops_that_do_not_begin_at_zero() -> None:
    f, x = Func("f"), ImageParam(Int(32), 1, name="x")
    f[i] = x[i - 2] + 1
    f.bound(i, 2, 5)
    f.isolate_producer_chain(x, on_host("S"), Func("L"))
    f.isolate_consumer_chain(Func("U"), on_host("D"))
    agree(f)


def test_a_fused_loop() -> None:
    C, ij = product(), Var("ij")
    C.fuse(j, i, ij).isolate_producer_chain(A, on_host("S"), Func("L"))
    C.isolate_consumer_chain(Func("U"), on_host("D"))
    graph = agree(C)
    assert graph.tensor("D").allocated == (96,)


def test_a_loader_with_more_space() -> None:
    C, S, L = product(), on_host("S"), Func("L")
    C.isolate_producer_chain(A, S, L)
    L.unroll(i)
    graph = agree(C)
    assert body(graph, "L")[0] == "S_element: int32 = load(S[i, j, k])"


def test_the_users_arrays_keep_their_shapes() -> None:
    graph = t2s.lower(systolic())
    with pytest.raises(t2s.errors.UserError, match="the input A has the wrong shape"):
        t2s.simulate(graph, {"A": np.zeros((2, 2), np.int32), "B": np.zeros((8, 12), np.int32)})
    with pytest.raises(t2s.errors.UserError, match="the program has no input A_serializer"):
        t2s.simulate(graph, {"A_serializer": np.zeros((2, 2), np.int32)})


def test_packing_is_undone_by_unpacking() -> None:
    graph = t2s.lower(systolic())
    tensor = graph.tensor("C_deserializer")
    array: Any = np.arange(96, dtype=np.int32).reshape(8, 12)
    memory = pack(tensor, array)
    assert memory.shape == tensor.allocated
    assert memory.flags.c_contiguous
    np.testing.assert_array_equal(unpack(tensor, memory), array)
    assert memory[1, 0, 1, 2, 0, 1] == array[4 + 2, 2 * 2 + 1]  # i, j, ii, jj, iii, jjj


@pytest.mark.slow
@pytest.mark.emulator
def test_on_the_emulator() -> None:
    from t2s.backends.opencl_fpga import emulator_available

    if not emulator_available():
        pytest.skip("the emulator is not installed")
    C = systolic()
    inputs = random_inputs(t2s.lower(C), 5)
    np.testing.assert_array_equal(t2s.emulate(C, inputs)["C"], t2s.interpret(C, inputs))
