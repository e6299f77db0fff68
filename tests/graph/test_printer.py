"""The two texts of a graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from t2s.core.expr import Parameter
from t2s.core.types import INT32
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.nodes import SpaceDimension
from t2s.graph.printer import firings_per_pe, print_graph, show_space, summarize_graph
from tests.graph.changes import (
    pipeline,
    with_channel,
    with_loops,
    with_node,
    with_register,
    with_statement,
)
from tests.hand_graphs import index, loop, systolic_gemm

PIPELINE = """\
graph prefix_sum
  input X: int32[8]
  output Y: int32[8]
  parameter n: int32
  region outer: range i

  load load_X
    for i in range(8):
      value: int32 = load(X[i])
      send(to_sum, value)

  compute sum, region outer
    register sofar: int32[1], distance 1
    for i in range(8):
      x: int32 = receive(to_sum)
      previous: int32 = sofar[0]
      total: int32 = previous + x
      sofar[0] = total
      send(from_sum, total)

  store store_Y
    for i in range(8):
      value: int32 = receive(from_sum)
      store(Y[i], value)

  channel to_sum: int32
    load_X -> sum
    capacity 2, latency 1
  channel from_sum: int32
    sum -> store_Y
    capacity 2, latency 1
"""

GEMM_ARRAY = """\
  compute C space [ii: 3, jj: 2]
    register accumulator: int32[2, 2], distance 4
    for k in range(5):
      for ti in range(2):
        for tj in range(2):
          a0: int32x4 = receive(A_in) if jj == 0
          a1: int32x4 = receive(A_pass) if jj > 0
          a: int32x4 = select(jj == 0, a0, a1)
          b0: int32x4 = receive(B_in) if ii == 0
          b1: int32x4 = receive(B_pass) if ii > 0
          b: int32x4 = select(ii == 0, b0, b1)
          send(A_pass, a) if jj < 1
          send(B_pass, b) if ii < 2
          previous: int32 = accumulator[ti, tj]
          total: int32 = select(k == 0, 0, previous) + reduce_lanes('+', a * b)
          accumulator[ti, tj] = total
          send(C_out, total) if k == 4
"""

GEMM_CHANNEL = """\
  channel A_pass[3, 2]: int32x4
    C at [ii, jj + 1] -> C at [ii, jj]
    capacity 2, latency 1
"""

GEMM_SUMMARY = """\
gemm: 17 PEs (6 compute) in 4 nodes, 23 FIFOs in 5 channels, 592 bytes of FIFO, 96 bytes of register

node     role     PEs  loops               firings per PE
A_load   load       3  k: 5, ti: 2, tj: 2              20
B_load   load       2  k: 5, ti: 2, tj: 2              20
C        compute    6  k: 5, ti: 2, tj: 2              20
C_store  store      6  ti: 2, tj: 2                     4

channel  from -> to    elements  type     depth
A_in     A_load -> C          3  int32x4      2
B_in     B_load -> C          2  int32x4      2
A_pass   C -> C               6  int32x4      2
B_pass   C -> C               6  int32x4      2
C_out    C -> C_store         6  int32        2
"""


def test_print_a_pipeline() -> None:
    assert print_graph(pipeline()) == PIPELINE


def test_print_an_array() -> None:
    text = print_graph(systolic_gemm(3, 2, 5, tile_rows=2, tile_columns=2, lanes=4))
    assert GEMM_ARRAY in text
    assert GEMM_CHANNEL in text


def test_summary_of_an_array() -> None:
    # FIFO bytes: 2 tokens x (3 + 2 + 6 + 6) x 16 bytes + 2 x 6 x 4 = 592; registers: 6 x 4 x 4
    graph = systolic_gemm(3, 2, 5, tile_rows=2, tile_columns=2, lanes=4)
    assert summarize_graph(graph) == GEMM_SUMMARY


def test_conditions_and_loop_minimums() -> None:
    graph = with_statement(pipeline(), "sum", 3, condition=index("i") < index("j"))
    triangle = (
        loop("i", 8),
        replace(loop("j", 4), minimum=index("i")),
        loop("k", 4, minimum=2),
    )
    text = print_graph(with_loops(graph, "sum", *triangle))
    assert "for j in range(i, i + 4):\n" in text
    assert "for k in range(2, 6):\n" in text
    assert "          sofar[0] = total if i < j\n" in text


def test_a_node_without_loops_is_indented_all_the_same() -> None:
    text = print_graph(with_loops(pipeline(), "store_Y"))
    assert "  store store_Y\n    value: int32 = receive(from_sum)\n" in text


def test_registers_of_rank_zero_have_no_brackets() -> None:
    graph = with_register(pipeline(), shape=())
    graph = with_statement(graph, "sum", 1, indices=())
    text = print_graph(with_statement(graph, "sum", 3, indices=()))
    assert "    register sofar: int32, distance 1\n" in text
    assert "      previous: int32 = sofar\n" in text
    assert "      sofar = total\n" in text


def test_streams_that_are_not_dense_values() -> None:
    stream = StreamType(element=INT32, kind=StreamKind.CONTROL, nesting=2)
    text = print_graph(with_channel(pipeline(), "to_sum", stream=stream))
    assert "  channel to_sum: control int32 nesting 2\n" in text


def test_space_shows_a_minimum_other_than_zero() -> None:
    space = (
        SpaceDimension(name="ii", minimum=0, extent=4),
        SpaceDimension(name="jj", minimum=1, extent=2),
    )
    graph = with_node(pipeline(), "sum", space=space)
    assert show_space(graph.node("sum")) == "[ii: 4, jj: 2 from 1]"


@pytest.mark.slow
def test_firings_per_pe() -> None:
    def firings(*extents: object) -> int | str | None:
        loops = (replace(loop(f"l{n}", 1), extent=extent) for n, extent in enumerate(extents))
        return firings_per_pe(with_loops(pipeline(), "sum", *loops).node("sum"))

    five = loop("x", 5).extent
    assert firings() == 1
    assert firings(five, five + five) == 50
    assert firings(five, loop("x", -1).extent) == 0
    assert firings(five, index("l0") + five) == 5 + 6 + 7 + 8 + 9
    assert firings(Parameter(name="n", type=INT32)) is None


def test_the_summary_says_where_firings_vary() -> None:
    graph = with_loops(
        pipeline(), "sum", loop("i", 8), replace(loop("j", 1), extent=index("i") + index("i"))
    )
    assert "sum      compute    1  i: 8, j: i + i          varies\n" in summarize_graph(graph)
