"""Reductions over results that are not a box: triangles, bands, parallelograms, any loop order.

What waits between two steps lies in register files and channels whose sizes and addresses follow
from bounds that differ from row to row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.backends.opencl_fpga.emulator import emulator_available
from t2s.backends.verilog.verilator import verilator_available
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from tests.sampling import sampled
from tests.spatial.agreement import results
from tests.spatial.programs import random_inputs

PROFILE = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
INNER = (("k",), ("ko", "ki"), ("k", "m"))
"""Reductions: one loop, one loop that is split, two loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slanted:
    """``C[i, j]`` for ``rows`` values of i from ``first`` on, and j from ``low`` to before ``end``.

    ``low`` and ``end`` are (factor of i, constant); ``order`` lists the loops, outermost first.
    """

    first: int
    rows: int
    low: tuple[int, int]
    end: tuple[int, int]
    order: tuple[str, ...]
    unrolled: str | None = None

    def func(self) -> Func:
        """The definition with its directives; the sum's order does not matter to integers."""
        A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="B")
        i, j, ko, ki = Var("i"), Var("j"), Var("ko"), Var("ki")
        two = "m" in self.order
        reduction = RDom(0, 4, 0, 2, name="k m") if two else RDom(0, 4, name="k")
        k, m = tuple(reduction) if two else (reduction, reduction)
        C = Func("C")
        C[i, j] = i + 1
        C[i, j] += A[i - self.first, k] * (B[k + m] if two else B[k]) + j
        C.bound(i, self.first, self.rows)
        (by, low), (end_by, end) = self.low, self.end
        C.bound(j, by * i + low, (end_by - by) * i + end - low)
        loops: dict[str, Any] = {"i": i, "j": j, "k": k, "m": m, "ko": ko, "ki": ki}
        if "ko" in self.order:
            C.split(k, ko, ki, 2)
        C.reorder(*(loops[name] for name in reversed(self.order)))
        return C if self.unrolled is None else C.unroll(loops[self.unrolled])

    def widths(self) -> list[int]:
        """Elements in each row."""
        (by, low), (end_by, end) = self.low, self.end
        rows = range(self.first, self.first + self.rows)
        return [(end_by - by) * i + end - low for i in rows]


@st.composite
def slanted(draw: st.DrawFn) -> Slanted:
    """A shape whose rows all have an element, an order in which i is outside of j, maybe PEs."""
    names = ["i", "j", *draw(st.sampled_from(INNER))]
    order = draw(st.permutations(names).filter(lambda o: o.index("i") < o.index("j")))
    order = [name for name in order if name != "ki"]
    if "ko" in order:
        order.insert(draw(st.integers(order.index("ko") + 1, len(order))), "ki")
    shape = Slanted(
        first=draw(st.integers(0, 2)),
        rows=draw(st.integers(1, 4)),
        low=(draw(st.integers(-1, 2)), 0),
        end=(draw(st.integers(-1, 2)), 0),
        order=tuple(order),
        unrolled=draw(st.none() | st.sampled_from([name for name in order if name != "j"])),
    )
    rows = range(shape.first, shape.first + shape.rows)
    low = draw(st.integers(0, 2)) - min(0, *(shape.low[0] * i for i in rows), 0)
    least = max((shape.low[0] - shape.end[0]) * i for i in rows) + low
    return Slanted(
        first=shape.first,
        rows=shape.rows,
        low=(shape.low[0], low),
        end=(shape.end[0], least + draw(st.integers(1, 3))),
        order=shape.order,
        unrolled=shape.unrolled,
    )


def computed(shape: Slanted) -> tuple[Graph, dict[str, Any], Any]:
    """The graph, inputs, and what the definition says of them."""
    func = shape.func()
    graph = t2s.lower(func)
    inputs = random_inputs(graph, 1)
    return graph, inputs, t2s.interpret(func, inputs)


@pytest.mark.slow
@PROFILE
@given(slanted())
def test_values(shape: Slanted) -> None:
    graph, inputs, expected = computed(shape)
    for name, result in results(graph, inputs).items():
        np.testing.assert_array_equal(result, expected, err_msg=f"{name} of {shape}")


TRIANGLES = {
    "lower": Slanted(first=0, rows=4, low=(0, 0), end=(1, 1), order=("k", "i", "j")),
    "upper": Slanted(first=0, rows=4, low=(1, 0), end=(0, 4), order=("i", "k", "j")),
    "band": Slanted(first=1, rows=3, low=(1, 0), end=(1, 2), order=("k", "i", "j")),
    "skewed": Slanted(first=2, rows=3, low=(2, -4), end=(1, 3), order=("k", "i", "j")),
    "hops": Slanted(
        first=0, rows=4, low=(0, 0), end=(1, 1), order=("ko", "i", "j", "ki"), unrolled="ki"
    ),
    "sums of PEs": Slanted(
        first=0, rows=4, low=(1, 0), end=(0, 4), order=("ki", "ko", "i", "j"), unrolled="ki"
    ),
}


@sampled("name", TRIANGLES, quick=3)
def test_cycles_of_triangles(name: str) -> None:
    """One firing for each term; a second PE starts when the first one has sums of all elements."""
    shape = TRIANGLES[name]
    graph, inputs, expected = computed(shape)
    result = t2s.simulate(graph, inputs, progress=False)
    np.testing.assert_array_equal(result.outputs["C"], expected)
    node, elements = result.nodes["C"], sum(shape.widths())
    assert node.first_firing is not None
    assert node.last_firing is not None
    assert node.firings == 4 * elements
    pes = 2 if shape.unrolled else 1
    late = (pes - 1) * (elements + 1)
    assert node.last_firing - node.first_firing + 1 <= 4 * elements // pes + late


def test_register_files_hold_the_longest_rows() -> None:
    upper, band = (t2s.lower(TRIANGLES[name].func()).node("C") for name in ("upper", "band"))
    assert isinstance(upper, PEArray)
    assert isinstance(band, PEArray)
    assert [r.shape for r in upper.registers] == [(4,)]  # one row
    assert [r.shape for r in band.registers] == [(3, 2)]  # all rows, each as wide as the band


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="Intel's FPGA emulator is not installed")
@pytest.mark.parametrize("name", TRIANGLES)
def test_emulated(name: str) -> None:
    graph, inputs, expected = computed(TRIANGLES[name])
    np.testing.assert_array_equal(t2s.emulate(graph, inputs)["C"], expected)


@pytest.mark.slow
@pytest.mark.verilator
@pytest.mark.skipif(
    not verilator_available(), reason="Verilator or a C++ compiler is not installed"
)
@pytest.mark.parametrize("name", ["lower", "skewed"])
def test_verilated(name: str) -> None:
    graph, inputs, expected = computed(TRIANGLES[name])
    result = t2s.verilate(graph, inputs)
    np.testing.assert_array_equal(result.outputs["C"], expected)
    assert result.cycles == t2s.simulate(graph, inputs, progress=False).cycles
