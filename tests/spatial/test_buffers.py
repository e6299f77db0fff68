"""remove and buffer: operands are loaded once and sent again from on-chip memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.sampling import sampled
from tests.spatial.agreement import agree
from tests.spatial.programs import random_inputs
from tests.spatial.test_random import PROFILE


def tiled(*, unrolled_late: bool = False) -> tuple[Func, dict[str, Var | Func]]:
    """A product of 8 x 8 matrices on 2 x 2 PEs, each with a tile of 4 x 2 results."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 6, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 8).bound(j, 0, 8)
    ii, jj, it, jt = t2s.variables("ii jj it jt")
    A_loader, A_feeder, B_loader = t2s.funcs("A_loader A_feeder B_loader")
    C.tile(j, i, jt, it, 2, 4).reorder(jt, it, k, j, i).split(i, i, ii, 2).split(j, j, jj, 2)
    if not unrolled_late:
        C.unroll(ii, jj)
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer(B, B_loader)
    if unrolled_late:
        C.unroll(ii, jj)
    C.forward(A_feeder, jj).forward(B_loader, ii)
    names: dict[str, Var | Func] = {v.name: v for v in (i, j, ii, jj, it, jt)}
    return C, names | {"k": k, "A_loader": A_loader, "A_feeder": A_feeder}


@pytest.mark.parametrize("double", [True, False])
@sampled(("removed", "loop"), [("jt", "k"), ("jt", "it"), ("jt", "j"), ("j", "i")], quick=1)
def test_values_and_loads(removed: str, loop: str, double: bool) -> None:
    C, v = tiled()
    v["A_loader"].remove(v[removed])
    v["A_feeder"].buffer(v["A_loader"], v[loop], double=double)
    graph = agree(C)
    inputs = random_inputs(graph, 0)
    firings = t2s.simulate(graph, inputs).nodes["A_loader"].firings
    extent = {"jt": 2, "j": 2}[removed]
    assert firings == 2 * (1 * 2 * 6 * 4 * 2) // extent  # 2 PEs, the loops i, j, k, it, jt


def test_several_loops_and_both_kinds_of_feeder() -> None:
    for late in (False, True):
        C, v = tiled(unrolled_late=late)
        v["A_loader"].remove(v["jt"], v["j"])
        v["A_feeder"].buffer(v["A_loader"], v["i"])
        graph = agree(C)
        (register,) = graph.node("A_feeder").registers
        # two banks of one tile column of A for every k; a serial feeder holds those of both PEs
        assert register.shape == ((2, 2, 6, 4) if late else (2, 6, 4))


def test_a_double_buffer_hides_its_filling() -> None:
    """Per iteration of k: W = 4 values of A are filled while R = 8 are sent.

    The array needs 96 values, one per cycle.  With the double buffer the first one is there after
    the W cycles that fill it; a single buffer adds the W cycles of each of the 12 periods.
    """
    cycles = {}
    for kind in ("none", "double", "single"):
        C, v = tiled()
        if kind != "none":
            v["A_loader"].remove(v["jt"])
            v["A_feeder"].buffer(v["A_loader"], v["k"], double=kind == "double")
        cycles[kind] = t2s.cycles(C)
    assert cycles["double"] == cycles["none"] + 4
    assert cycles["single"] == cycles["none"] + 4 * 12


def test_a_buffer_may_be_filled_in_another_order() -> None:
    C, v = tiled()
    v["A_loader"].reorder(v["it"], v["jt"])
    v["A_feeder"].buffer(v["A_loader"], v["k"])
    agree(C)


def chains(
    split: dict[str, int],
    order: str,
    space: str,
    removed: str,
    loop: str,
    *,
    double: bool = True,
    forwarded: str = "",
) -> Func:
    """A recurrence along ``i`` whose operand is the same for all ``h``, with ragged splits."""
    D, M, out = ImageParam(Int(32), 2, name="D"), Func("M", type=Int(32)), Func("out")
    v = {name: Var(name) for name in ["r", "h", "i", "rr", "hh", "ii"]}
    r, h, i = (v[name] for name in "rhi")
    M[r, h, i] = D[r, i] * (h + 1) + 3 * t2s.select(i > 0, M[r, h, i - 1], 1)
    out[r, h] = M[r, h, 4]
    out.bound(r, 0, 3).bound(h, 0, 5)
    M.bound(i, 0, 5)
    for name, factor in split.items():
        M.split(v[name], v[name], v[name * 2], factor)
    M.reorder(*(v[name] for name in reversed(order.split())))
    if space:
        M.space_time_transform(*(v[name] for name in space.split()))
    loader, feeder = t2s.funcs("loader feeder")
    M.isolate_producer_chain(D, loader, feeder)
    if forwarded:
        M.forward(feeder, v[forwarded])
    loader.remove(*(v[name] for name in removed.split()))
    feeder.buffer(loader, v[loop], double=double)
    return out


def test_iterations_that_a_ragged_split_adds() -> None:
    for made in (
        chains({"r": 2}, "rr r i h", "rr", "h", "i"),
        chains({"r": 2}, "rr r i h", "rr", "h", "r", double=False),
        chains({"r": 2}, "r i rr h", "", "h", "r"),
        chains({"r": 2}, "r i rr h", "", "h", "i"),
        chains({"h": 2}, "r h i hh", "", "hh", "i", double=False),
        chains({"h": 2}, "r i h hh", "", "h hh", "i"),
        chains({"h": 2, "r": 2}, "rr hh r i h", "rr hh", "h", "i", forwarded="hh"),
        chains({"h": 2, "r": 2}, "rr hh r i h", "rr", "h", "i"),
        chains({"i": 2}, "r i ii h", "", "h", "r"),
        chains({"i": 2, "r": 2}, "rr r i ii h", "rr", "h", "i", double=False),
    ):
        agree(made)


@pytest.mark.parametrize("double", [True, False])
def test_pes_that_start_in_a_later_iteration_of_a_removed_loop(double: bool) -> None:
    D, M, out = ImageParam(Int(32), 2, name="D"), Func("M", type=Int(32)), Func("out")
    r, h, i = t2s.variables("r h i")
    loader, feeder = t2s.funcs("loader feeder")
    M[i, r, h] = D[h, i] * (r + 1) + 3 * t2s.select(i > 0, M[i - 1, r, h], 1)
    out[r] = M[3, r, 0]
    out.bound(r, 0, 4)
    M.bound(i, 0, 4).bound(h, 0, r + 1)
    M.reorder(h, r, i).space_time_transform(h).isolate_producer_chain(D, loader, feeder)
    loader.remove(r)
    feeder.buffer(loader, i, double=double)
    assert t2s.simulate(agree(out), {"D": np.ones((4, 4), np.int32)}).nodes["loader"].firings == 16


def test_vectors() -> None:
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k, kk, jj = Var("i"), Var("j"), RDom(0, 8, name="k"), Var("kk"), Var("jj")
    C, A_loader, A_feeder = t2s.funcs("C A_loader A_feeder")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, 4).bound(j, 0, 6)
    C.split(k, k, kk, 4).split(j, j, jj, 3).unroll(jj).vload(A, B)
    C.isolate_producer_chain(A, A_loader, A_feeder).forward(A_feeder, jj)
    A_loader.remove(j)
    A_feeder.buffer(A_loader, i)
    graph = agree(C)
    (register,) = graph.node("A_feeder").registers
    assert (register.type.lanes, register.shape) == (4, (2, 2))


@pytest.mark.slow
@PROFILE
@given(
    st.permutations(("it", "jt", "k")),
    st.sampled_from(("i", "j", "it", "jt", "k")),
    st.sets(st.sampled_from(("j", "jt")), min_size=1),
    st.booleans(),
)
def test_random_places(order: list[str], loop: str, removed: set[str], double: bool) -> None:
    """Every buffer is refused, or restores the stream that its consumer expects."""
    A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
    i, j, k = Var("i"), Var("j"), RDom(0, 3, name="k")
    it, jt = t2s.variables("it jt")
    C, A_loader, A_feeder = t2s.funcs("C A_loader A_feeder")
    C[i, j] = 0
    C[i, j] += A[i, k] * x[k]
    C.bound(i, 0, 4).bound(j, 0, 4).tile(j, i, jt, it, 2, 2)
    loops = {"i": i, "j": j, "it": it, "jt": jt, "k": k}
    C.reorder(*(loops[name] for name in order), j, i)
    C.isolate_producer_chain(A, A_loader, A_feeder)
    A_loader.remove(*(loops[name] for name in sorted(removed)))
    A_feeder.buffer(A_loader, loops[loop], double=double)
    nest = ["i", "j", *reversed(order)]
    if any(nest.index(name) <= nest.index(loop) for name in removed):
        text = f"removed from A_loader and is not inside of {loop}"
        with pytest.raises(t2s.errors.UserError, match=text):
            t2s.lower(C)
        return
    graph = t2s.lower(C)
    inputs = random_inputs(graph, 3)
    for engine in ("python", "native"):
        result = t2s.simulate(graph, inputs, engine=engine, progress=False)
        np.testing.assert_array_equal(result.outputs["C"], t2s.interpret(C, inputs))
