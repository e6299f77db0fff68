"""The rules of names, regions, tensors and loops: the whole text of each error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from t2s.core.errors import UserError
from t2s.core.expr import (
    Parameter,
    const,
    equals,
)
from t2s.core.types import INT32, WEAK_INT, Float
from t2s.graph.body import Let
from t2s.graph.graph import Graph, Region, RegionKind
from t2s.graph.nodes import SpaceDimension
from t2s.graph.verify import verify_graph
from tests.graph.changes import (
    at,
    local,
    pipeline,
    with_body,
    with_channel,
    with_loops,
    with_node,
    with_register,
    with_statement,
    with_tensor,
)
from tests.graph.refusal import DISTINCT, FRESH, SCOPE, STATIC, refuse
from tests.hand_graphs import index, loop, systolic_gemm

F32 = Float(32)
V4 = INT32.with_lanes(4)


def test_correct_graphs_pass() -> None:
    verify_graph(pipeline())
    verify_graph(systolic_gemm(1, 1, 1))
    verify_graph(systolic_gemm(3, 2, 4, tile_rows=2, tile_columns=3))
    verify_graph(systolic_gemm(2, 2, 2, lanes=4, element=F32))


def test_triangular_loops_parameters_and_conditions_pass() -> None:
    graph = with_loops(
        pipeline(),
        "sum",
        loop("i", 8),
        replace(loop("j", 1), minimum=index("i"), extent=index("i") + 1),
        replace(loop("k", 1), extent=Parameter(name="n", type=INT32)),
    )
    verify_graph(with_statement(graph, "sum", 0, condition=equals(index("j"), index("k"))))


def test_numbers_of_channels_fit_64_bits() -> None:
    for what in ("capacity", "latency"):
        wrong = f"channel 'to_sum': the {what} is above 4611686018427387903"
        with pytest.raises(UserError, match=re.escape(wrong)):
            verify_graph(with_channel(pipeline(), "to_sum", **{what: 1 << 62}))


def test_a_graph_error_is_a_user_error() -> None:
    with pytest.raises(UserError, match=re.escape("channel 'to_sum': the capacity is below 1")):
        verify_graph(with_channel(pipeline(), "to_sum", capacity=0))


class TestNames:
    @pytest.mark.parametrize(
        ("kind", "field", "line"),
        [
            ("node", "nodes", 1),
            ("channel", "channels", 4),
            ("tensor", "tensors", 6),
            ("parameter", "parameters", 8),
        ],
    )
    def test_twice_in_a_graph(self, kind: str, field: str, line: int) -> None:
        graph = pipeline()
        first = getattr(graph, field)[0]
        twin = replace(first, location=at(33))
        refuse(
            replace(graph, **{field: (*getattr(graph, field), twin)}),
            f"{kind} {first.name!r}: the name is taken by another {kind}",
            "  --> design.py:33",
            f"  expected: every {kind} of a graph to have a name of its own",
            f"  given:    two {kind}s named {first.name!r}",
            f"  note:     the first {kind} of that name is made here",
            f"  --> design.py:{line}",
            FRESH,
        )

    @pytest.mark.parametrize(
        ("change", "name", "given"),
        [
            (
                lambda g: with_node(
                    g, "sum", space=(SpaceDimension(name="i", minimum=0, extent=2),)
                ),
                "i",
                "a space dimension and a loop",
            ),
            (
                lambda g: with_loops(g, "sum", loop("i", 2), loop("i", 4)),
                "i",
                "a loop and a loop",
            ),
            (
                lambda g: with_register(g, name="x"),
                "x",
                "a register and a local",
            ),
            (
                lambda g: with_body(g, "sum", Let(target="x", value=const(1))),
                "x",
                "a local and a local",
            ),
            (
                lambda g: with_body(g, "sum", Let(target="n", value=const(1))),
                "n",
                "a parameter and a local",
            ),
        ],
    )
    def test_twice_in_a_node(self, change: Callable[[Graph], Graph], name: str, given: str) -> None:
        refuse(
            change(pipeline()),
            f"node 'sum': the name {name!r} is used twice",
            "  --> design.py:2",
            DISTINCT,
            f"  given:    {given} named {name!r}",
            FRESH,
        )


class TestRegions:
    @staticmethod
    def region(name: str, parent: str | None) -> Region:
        return Region(name=name, index="i", kind=RegionKind.RANGE, parent=parent)

    def test_name_twice(self) -> None:
        graph = pipeline()
        refuse(
            replace(graph, regions=graph.regions * 2),
            "region 'outer': the name is taken by another region",
            "  --> design.py:9",
            "  expected: every region of a graph to have a name of its own",
            "  given:    2 regions named 'outer'",
        )

    def test_unknown_parent(self) -> None:
        graph = pipeline()
        refuse(
            replace(graph, regions=(*graph.regions, self.region("inner", "middle"))),
            "region 'inner': the parent region does not exist",
            "  --> design.py:9",
            "  expected: one of inner, outer",
            "  given:    'middle'",
        )

    def test_cycle(self) -> None:
        regions = (self.region("outer", "inner"), self.region("inner", "outer"))
        refuse(
            replace(pipeline(), regions=regions),
            "region 'outer': the region lies inside itself",
            "  --> design.py:9",
            "  expected: parents that lead to an outermost region",
            "  given:    outer in inner in outer",
        )

    def test_unknown_region_of_a_node(self) -> None:
        refuse(
            with_node(pipeline(), "sum", region="inner"),
            "node 'sum': the region does not exist",
            "  --> design.py:2",
            "  expected: one of outer",
            "  given:    'inner'",
        )


class TestTensorsAndParameters:
    def test_extent(self) -> None:
        refuse(
            with_tensor(pipeline(), "X", shape=(8, 0)),
            "tensor 'X': the shape has an extent below 1",
            "  --> design.py:6",
            "  expected: extents of at least 1",
            "  given:    (8, 0)",
        )

    @pytest.mark.parametrize("padded", [(7,), (8, 8)])
    def test_padding(self, padded: tuple[int, ...]) -> None:
        verify_graph(with_tensor(pipeline(), "X", padded=(9,)))
        refuse(
            with_tensor(pipeline(), "X", padded=padded),
            "tensor 'X': the padded shape does not hold the shape",
            "  --> design.py:6",
            "  expected: the same rank, and no extent below that of (8,)",
            f"  given:    {padded}",
        )

    def test_order(self) -> None:
        verify_graph(with_tensor(pipeline(), "X", ascending="X"))
        refuse(
            with_tensor(pipeline(), "X", ascending="Y"),
            "tensor 'X': it ascends between positions that are not inputs",
            "  --> design.py:6",
            "  expected: two inputs of one dimension",
            "  given:    int32[8] between 'Y'",
        )

    def test_vector_elements(self) -> None:
        refuse(
            with_tensor(pipeline(), "X", type=V4),
            "tensor 'X': the type is a vector",
            "  --> design.py:6",
            "  expected: the type of one element, int32",
            "  given:    int32x4",
            "  hint:     vectors are loaded and stored as several contiguous elements",
        )

    def test_weak_parameter(self) -> None:
        graph = pipeline()
        refuse(
            replace(graph, parameters=(replace(graph.parameters[0], type=WEAK_INT),)),
            "parameter 'n': the type is weak",
            "  --> design.py:8",
            "  expected: a type with a fixed width",
            "  given:    weak int32",
            "  hint:     Type.strengthened() gives int32",
        )


class TestLoopsAndSpace:
    def test_space_extent(self) -> None:
        space = (SpaceDimension(name="ii", minimum=0, extent=0),)
        refuse(
            with_node(pipeline(), "sum", space=space),
            "node 'sum': the space domain has an extent below 1",
            "  --> design.py:2",
            "  expected: extents of at least 1",
            "  given:    (0,)",
        )

    def test_bound_that_depends_on_an_inner_loop(self) -> None:
        loops = (replace(loop("j", 8), minimum=index("i")), loop("i", 8))
        refuse(
            with_loops(pipeline(), "sum", *loops),
            "node 'sum': the minimum of loop 'j': the index 'i' is not in scope",
            "  --> design.py:2",
            "  expected: nothing: there are none",
            "  given:    'i'",
            SCOPE,
        )

    def test_bound_that_depends_on_the_loop_itself(self) -> None:
        loops = (loop("i", 8), replace(loop("j", 8), extent=index("j") + 1))
        refuse(
            with_loops(pipeline(), "sum", *loops),
            "node 'sum': the extent of loop 'j': the index 'j' is not in scope (in j + 1)",
            "  --> design.py:2",
            "  expected: one of i",
            "  given:    'j'",
            SCOPE,
        )

    def test_bound_that_depends_on_data(self) -> None:
        refuse(
            with_loops(pipeline(), "sum", replace(loop("i", 8), extent=local("x"))),
            "node 'sum': the extent of loop 'i': the expression is not static",
            "  --> design.py:2",
            "  expected: loop and space indices, parameters and literals only",
            "  given:    the local 'x'",
            STATIC,
        )

    def test_bound_that_is_no_integer(self) -> None:
        refuse(
            with_loops(pipeline(), "sum", replace(loop("i", 8), extent=const(8.0, F32))),
            "node 'sum': the extent of loop 'i' is not an integer",
            "  --> design.py:2",
            "  expected: a scalar integer",
            "  given:    8.0 of type float32",
        )
