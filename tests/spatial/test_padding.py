"""Splits whose factor does not divide: the domain is padded, and nobody sees it in the values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom
from t2s.backends.opencl_fpga.emulator import emulator_available
from t2s.graph.graph import Graph
from t2s.graph.printer import print_graph, summarize_graph
from tests.errors.designs import product, triangle
from tests.sampling import sampled
from tests.spatial.agreement import agree, body, nest
from tests.spatial.programs import random_inputs

i, j, ii, jj, kk, i2, f = t2s.variables("i j ii jj kk i2 f")


def padded(graph: Graph) -> dict[str, tuple[int, ...]]:
    """The arrays that are larger in memory, with their shapes there."""
    return {t.name: t.padded for t in graph.tensors if t.padded is not None}


def test_a_pure_loop() -> None:
    p = product()
    p.C.split(p.j, p.j, jj, 4)
    assert nest(p.C) == ["for i in 0..3", "for j in 0..1", "for jj in 0..3", "for k in 0..7"]
    graph = agree(p.C)
    assert padded(graph) == {"B": (8, 8), "C": (4, 8)}
    assert body(graph, "C")[-1] == "send(C_to_C_store, C) if k == 7"
    assert "B[k, j * 4 + jj]" in body(graph, "C_load_B")[0]


def test_a_reduction_keeps_its_partial_result_in_padded_steps() -> None:
    p = product()
    p.C.split(p.k, p.k, kk, 3)
    graph = agree(p.C)
    assert padded(graph) == {"A": (4, 9), "B": (9, 6)}
    assert "C: int32 = previous + select(k * 3 + kk < 8, A, 0) * B" in body(graph, "C")


def test_the_loop_nest_says_what_is_padded() -> None:
    p = product()
    p.C.tile(p.k, p.j, p.i, kk, jj, ii, 5, 4, 4).unroll(jj)
    text = t2s.print_loop_nest(p.C).split("\n\n")
    loops = [line.split("#")[1].strip() for line in text[2].splitlines() if "#" in line]
    by = "by tile(k, j, i, kk, jj, ii, 5, 4, 4)"
    assert loops == [
        "one PE each by unroll(jj), j: 6 padded to 8",
        f"outer part of i {by}",
        f"outer part of j {by}",
        f"outer part of k {by}, k: 8 padded to 10",
        f"inner part of i {by}",
        f"inner part of k {by}",
    ]
    assert "C = C + A * B where k * 5 + kk < 8, starting from 0" in text[2]
    assert "padded" not in text[3].replace("j: 6 padded to 8", "")


def test_the_graph_and_the_result_say_what_is_padded() -> None:
    p = product()
    p.C.split(p.j, p.j, jj, 4)
    graph = p.C.lower()
    assert "  input B: int32[8, 6] padded to [8, 8]\n" in print_graph(graph)
    assert "\noutput C: int32[4, 6] padded to [4, 8]\n" in summarize_graph(graph)
    text = str(t2s.simulate(graph, random_inputs(graph, 1)))
    assert "\npadded       B: int32[8, 6] padded to [8, 8]\n" in text
    result = t2s.simulate(graph, random_inputs(graph, 1))
    assert (result.nodes["C"].firings, result.nodes["C"].slots) == (4 * 6 * 8, 4 * 8 * 8)
    assert (result.nodes["C_store"].firings, result.nodes["C_store"].slots) == (4 * 6, 4 * 8)
    assert result.utilization == 4 * 6 * 8 / result.cycles


def test_a_split_that_divides_pads_nothing() -> None:
    p = product()
    p.C.split(p.j, p.j, jj, 3)
    graph = p.C.lower()
    assert padded(graph) == {}
    assert "padded" not in t2s.print_loop_nest(p.C)
    assert "padded" not in str(t2s.simulate(graph, random_inputs(graph, 1)))


def test_a_factor_larger_than_the_extent() -> None:
    p = product()
    p.C.split(p.i, p.i, ii, 9).split(p.k, p.k, kk, 20)
    assert padded(agree(p.C)) == {"A": (9, 20), "B": (20, 6), "C": (9, 6)}


def test_a_split_of_an_outer_part_pads_further() -> None:
    p = product()
    p.C.split(p.j, p.j, jj, 4).split(p.j, p.j, i2, 3)
    assert nest(p.C)[1:4] == ["for j in 0..0", "for i2 in 0..2", "for jj in 0..3"]
    assert "j: 6 padded to 12" in t2s.print_loop_nest(p.C)
    assert padded(agree(p.C))["C"] == (4, 12)


def test_fused_loops() -> None:
    p = product()
    p.C.fuse(p.j, p.i, f).split(f, f, ii, 5)
    graph = agree(p.C)
    assert padded(graph) == {"A": (5, 8), "C": (5, 6)}
    p = product()
    p.C.split(p.j, p.j, jj, 4).fuse(p.j, p.i, f).reorder(p.k, f, jj)
    assert padded(agree(p.C)) == {"B": (8, 8), "C": (4, 8)}


def test_a_fused_loop_that_is_split_twice() -> None:
    """24 iterations, padded to 25 and to 30: the second end reaches no further than the first."""
    p = product()
    p.C.fuse(p.j, p.i, f).split(f, f, ii, 5).split(f, f, i2, 3)
    assert padded(agree(p.C)) == {"A": (5, 8), "C": (5, 6)}
    p = product()
    p.C.fuse(p.j, p.i, f).split(f, f, ii, 5).tile(f, ii, i2, jj, 3, 1)
    assert padded(agree(p.C)) == {"A": (5, 8), "C": (5, 6)}


def test_spatial_reduction_with_a_padded_end() -> None:
    """The partial result crosses PEs that have nothing to add."""
    p = product()
    p.C.split(p.k, p.k, kk, 3).unroll(kk)
    agree(p.C)
    p = product()
    p.C.split(p.k, p.k, kk, 3).unroll(p.k)
    agree(p.C)


def test_a_systolic_array_with_forwarding_and_buffers() -> None:
    p = product(Float(32))
    a_load, a_feed, b_load, b_feed, drain, save = t2s.funcs(
        "a_load a_feed b_load b_feed drain save"
    )
    p.C.tile(p.k, p.j, p.i, kk, jj, ii, 3, 4, 3).unroll(ii, jj)
    p.C.isolate_producer_chain(p.A, a_load, a_feed).isolate_producer_chain(p.B, b_load, b_feed)
    p.C.forward(a_feed, jj).forward(b_feed, ii).isolate_consumer_chain(drain, save)
    agree(p.C, real=True)
    p = product(Float(32))
    a_load, a_feed, save = t2s.funcs("a_load a_feed save")
    p.C.tile(p.k, p.j, p.i, kk, jj, ii, 3, 4, 3).reorder(kk, ii, jj, p.k, p.j, p.i).unroll(ii)
    p.C.isolate_producer_chain(p.A, a_load, a_feed).isolate_consumer(save)
    a_load.remove(jj)
    a_feed.buffer(a_load, p.k)
    graph = agree(p.C, real=True)
    assert padded(graph) == {"A": (6, 9), "B": (9, 8), "C": (6, 8)}


def test_isolated_functions_can_be_padded_alike() -> None:
    p, load = product(), Func("load")
    p.C.isolate_producer(p.A, load).isolate_producer(p.B, Func("b"))
    p.C.split(p.k, p.k, kk, 3)
    load.split(p.k, p.k, kk, 3)
    p.C.isolated[1].split(p.k, p.k, kk, 3)
    agree(p.C)


def shifted(read: Callable[[ImageParam], t2s.Expression]) -> Func:
    """``y[i]`` for 7 values of i, in tiles of 4, from reads of an input of 9."""
    x, y = ImageParam(Int(32), 1, name="x", shape=(9,)), Func("y")
    y[i] = read(x)
    y.bound(i, 0, 7).split(i, i, ii, 4)
    return y


def test_reads_beyond_the_end_pad_the_input() -> None:
    graph = agree(shifted(lambda x: x[i + 2] + x[i]))
    assert padded(graph) == {"x": (10,), "y": (8,)}


def test_guarded_reads_stay_guarded() -> None:
    graph = agree(shifted(lambda x: t2s.select(i > 0, x[i - 1], 0)))
    assert padded(graph) == {"y": (8,)}
    graph = agree(shifted(lambda x: t2s.select(i < 6, x[i + 2], 7)))
    assert padded(graph) == {"y": (8,)}
    graph = agree(shifted(lambda x: t2s.select(x[i] > 4, x[i + 2], 7)))
    assert padded(graph) == {"x": (10,), "y": (8,)}


def test_reads_before_the_front_are_not_made() -> None:
    graph = agree(shifted(lambda x: x[6 - i]))
    assert body(graph, "y_load_x") == [
        "x_element: int32 = load(x[6 - (i * 4 + ii)]) if i * 4 + ii < 7",
        "send(y_load_x_to_y, x_element)",
    ]
    assert padded(graph) == {"y": (8,)}
    text = t2s.print_loop_nest(shifted(lambda x: x[6 - i]))
    assert "send x[6 - (i * 4 + ii)] to y, but 0 in padded iterations\n" in text
    assert "but 0" not in t2s.print_loop_nest(shifted(lambda x: x[i + 2]))


def test_reads_at_places_that_are_not_affine_are_made_inside_of_the_domain_only() -> None:
    graph = agree(shifted(lambda x: x[i * i // 5]))
    assert "if i * 4 + ii < 7" in body(graph, "y_load_x")[0]
    clamped = agree(shifted(lambda x: x[t2s.min(i + 5, 8)]))
    assert body(clamped, "y_load_x")[0].endswith("load(x[min(i * 4 + ii + 5, 8)])")  # in range


def test_mirrored_vectors() -> None:
    A, y, k = ImageParam(Int(32), 2, name="A"), Func("y"), RDom(0, 5, name="k")
    y[i, j] = 0
    y[i, j] += A[4 - k, j]
    y.bound(i, 0, 2).bound(j, 0, 7)
    y.split(k, k, kk, 3).split(j, j, jj, 4).reorder(jj, kk, k, j, i).vload(A).vstore(y)
    graph = agree(y)
    assert padded(graph) == {"A": (5, 8), "y": (2, 8)}
    assert "if j * 4 < 7 and k * 3 + kk < 5" in body(graph, "y_load_A")[0]


@pytest.mark.parametrize("lanes", [2, 3, 4, 9])
def test_vectors_of_results_run_past_the_end(lanes: int) -> None:
    p = product()
    p.C.reorder(p.j, p.k, p.i).split(p.j, p.j, jj, lanes).reorder(jj, p.k, p.j, p.i)
    p.C.vload(p.B).vstore(p.C)
    agree(p.C)


def test_a_triangle_grows_with_its_padding() -> None:
    t = triangle()
    t.T.split(t.i, t.i, ii, 3).unroll(ii)
    assert nest(t.T) == ["parallel ii in 0..2", "for i in 0..1", "for k in 0..i * 3 + ii"]
    assert padded(agree(t.T)) == {"A": (6,), "T": (6,)}


def test_bounds_that_do_not_start_at_zero() -> None:
    x, y, k = ImageParam(Int(32), 1, name="x"), Func("y"), RDom(-1, 3, name="k")
    y[i] = 0
    y[i] += x[i + k] * t2s.cast(Int(32), k + 5)
    y.bound(i, 2, 5).split(i, i, ii, 4).split(k, k, kk, 2)
    assert padded(agree(y)) == {"x": (12,), "y": (8,)}


def test_a_param_in_a_bound() -> None:
    x, y, n = ImageParam(Int(32), 1, name="x"), Func("y"), Param(Int(32), name="n")
    y[i] = x[i] + 1
    y.bound(i, 0, n).split(i, i, ii, 4)
    assert padded(agree(y, n=6)) == {"x": (8,), "y": (8,)}
    assert padded(agree(y, n=8)) == {}


def test_a_function_in_memory_is_padded_by_its_writer_and_its_readers() -> None:
    x, k = ImageParam(Int(32), 2, name="x"), RDom(0, 3, name="k")
    first, second, m = Func("first"), Func("second"), RDom(0, 5, name="m")
    first[i, j] = 0
    first[i, j] += x[i, k] * x[j, k]
    second[i] = 1
    second[i] += first[i, m]
    second.bound(i, 0, 5)
    first.split(i, i, ii, 3)
    second.split(m, m, kk, 4)
    graph = agree(second)
    assert padded(graph) == {"x": (6, 3), "first": (6, 8)}


def test_results_depend_on_the_index_itself() -> None:
    y = shifted(lambda x: x[i] // t2s.cast(Int(32), 7 - i))
    assert padded(agree(y)) == {"y": (8,)}


def test_logical_shapes_go_in_and_come_out() -> None:
    y = shifted(lambda x: x[i + 2])
    outputs = t2s.simulate(y, {"x": np.arange(9, dtype=np.int32)}).outputs
    assert outputs["y"].tolist() == [2, 3, 4, 5, 6, 7, 8]
    assert outputs["y"].flags.c_contiguous
    with pytest.raises(t2s.errors.UserError, match="wrong shape"):
        t2s.simulate(y, {"x": np.arange(10, dtype=np.int32)})


@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
class TestEmulated:
    @staticmethod
    def check(func: Func) -> None:
        graph = agree(func)
        inputs = random_inputs(graph, 1)
        given = t2s.emulate(func, inputs)[func.name]
        np.testing.assert_array_equal(given, t2s.interpret(func, inputs))

    def test_tiles_of_pes(self) -> None:
        p = product(Float(32))
        p.C.bounds.clear()
        p.C.bound(i, 0, 2).bound(j, 0, 3).tile(p.k, p.j, kk, jj, 3, 2).unroll(jj)
        p.C.isolate_producer(p.A, Func("load")).forward(p.A, jj)
        self.check(p.C)

    @pytest.mark.parametrize("lanes", [3, 4])
    def test_lanes_past_the_end_of_a_product(self, lanes: int) -> None:
        A, y, k = ImageParam(Int(32), 2, name="A"), Func("y"), RDom(0, 5, name="k")
        y[i] = 2
        y[i] *= A[i, k]
        y.bound(i, 0, 2).split(k, k, kk, lanes).vload(A)
        self.check(y)

    def test_reads_before_the_front(self) -> None:
        self.check(shifted(lambda x: x[6 - i] + x[i + 2]))


@sampled("engine", ["python", "native", "table", "array"], quick=2)
def test_schedules_whose_time_is_over_in_padded_iterations(engine: str) -> None:
    """Padded places have no iteration in time: none, and not fewer than none."""
    x = ImageParam(Int(32), 1, name="x")
    i, j, a, b, p, t = t2s.variables("i j a b p t")
    F = Func("F", type=Int(32))
    F[i, j] = t2s.select(j == 0, i, F[i, j - 1] - x[i])
    F.bound(i, 1, 3).bound(j, 0, 2)
    F.split(i, i, a, 2).split(i, i, b, 3).reorder(a, j, b, i).unroll(i)
    F.space_time_transform([j, a], {p: j, t: j + a})
    inputs = {"x": np.arange(4, dtype=np.int32)}
    found = t2s.simulate(F, inputs, engine=engine, progress=False).outputs["F"]
    assert np.array_equal(found, [[1, 0], [2, 0], [3, 0]])
