"""Channels without a depth from the user: no design waits for itself, whatever its PEs pass on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Var
from t2s.errors import UserError
from t2s.func.expressions import Expression
from t2s.simulator.report.errors import DeadlockError
from t2s.spatial.analysis.capacity import HOP
from tests.spatial.agreement import agree
from tests.spatial.programs import LoopVar, random_inputs

PROFILE = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def along_the_sum(rows: int, pes: int, steps: int, depth: int | None = None) -> Func:
    """PE k sums over l and hands its sum to PE k + 1; D[l] goes from PE to PE along k."""
    A, D, i = ImageParam(Int(32), 3, name="A"), ImageParam(Int(32), 1, name="D"), Var("i")
    k, l = RDom(0, pes, 0, steps, name="k l")  # noqa: E741
    C, loader = t2s.funcs("C loader")
    C[i] = 0
    C[i] += A[i, k, l] * D[l]
    C.bound(i, 0, rows).unroll(k).isolate_producer(D, loader)
    return C.forward(loader, k, depth=depth)


@pytest.mark.parametrize(("rows", "pes", "steps"), [(4, 2, 2), (4, 2, 3), (4, 3, 4), (2, 4, 16)])
def test_operands_wait_for_sums(rows: int, pes: int, steps: int) -> None:
    """Each PE starts ``steps`` cycles after the one before, and then works in every cycle."""
    func = along_the_sum(rows, pes, steps)
    graph = agree(func)
    assert graph.channel("D_along_k").capacity == steps - 1 + 2 + HOP
    node = t2s.simulate(graph, random_inputs(graph, 1), progress=False).nodes["C"]
    assert node.first_firing is not None
    assert node.last_firing is not None
    assert node.last_firing - node.first_firing + 1 == rows * steps + (pes - 1) * steps


def test_sums_that_take_long_do_not_stall_what_is_passed_on() -> None:
    """On an FPGA a sum takes the cycles of a multiplication and an addition to the next PE."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="B")
    i, it, k = *t2s.variables("i it"), RDom(0, 4, name="k")
    C, loader = t2s.funcs("C loader")
    C[i] = 0.0
    C[i] += A[i, k] * B[i]
    C.bound(i, 0, 256).split(i, i, it, 64).reorder(k, it, i).unroll(k)
    C.isolate_producer(B, loader).forward(loader, k)
    node = t2s.simulate(C, random_inputs_of(C), device="arria10", progress=False).nodes["C"]
    assert node.first_firing is not None
    assert node.last_firing is not None
    assert node.last_firing - node.first_firing + 1 == 256 + 3 * 9


def test_one_token_less_than_the_bound_blocks() -> None:
    """The bound of the proof is tight: a sum of 4 steps needs 4 tokens."""
    agree(along_the_sum(2, 2, 4, depth=4))
    with pytest.raises(DeadlockError, match="'D_along_k' 3 -> 4"):
        t2s.simulate(along_the_sum(2, 2, 4, depth=3), random_inputs_of(along_the_sum(2, 2, 4)))


def random_inputs_of(func: Func) -> dict[str, object]:
    return random_inputs(t2s.lower(func), 1)


def test_more_room_than_a_channel_may_have_is_asked_for() -> None:
    with pytest.raises(UserError, match="start 99999 firings one after the other") as refused:
        t2s.lower(along_the_sum(2, 2, 100_000))
    assert "depth=100031" in str(refused.value.hint)
    assert t2s.lower(along_the_sum(2, 2, 100_000, depth=100_031)) is not None


@dataclass
class Draft:
    """A design in the making, and the lines that made it."""

    func: Func
    loops: dict[str, LoopVar]
    lines: list[str] = field(default_factory=list)

    def variable(self, loop: str) -> str:
        """The variable of the definition that a loop is, or is a part of."""
        return loop[0]


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """A sum of two loops, each perhaps split; in any order, some in space; operands passed on."""
    I, J, K, L = (draw(st.integers(1, 4)) for _ in range(4))  # noqa: E741
    i, j = Var("i"), Var("j")
    k, l = RDom(0, K, 0, L, name="k l")  # noqa: E741
    arrays = {
        "ikl": ImageParam(Int(32), 3, name="A"),
        "jk": ImageParam(Int(32), 2, name="B"),
        "l": ImageParam(Int(32), 1, name="D"),
        "il": ImageParam(Int(32), 2, name="E"),
    }
    loops: dict[str, LoopVar] = {"i": i, "j": j, "k": k, "l": l}
    chosen = draw(st.lists(st.sampled_from(sorted(arrays)), min_size=1, max_size=3, unique=True))
    C = Func("C")
    C[i, j] = 0
    term: Expression | int = 1
    for names in chosen:
        term = arrays[names][tuple(loops[name] for name in names)] * term
    C[i, j] += term
    C.bound(i, 0, I).bound(j, 0, J)
    draft = Draft(func=C, loops=loops, lines=[f"{I} {J} {K} {L} {chosen}"])
    for name in draw(st.sets(st.sampled_from("ijkl"), max_size=3).map(sorted)):
        inner, factor = Var(name * 2), draw(st.integers(1, 3))
        C.split(loops[name], loops[name], inner, factor)
        loops[name * 2] = inner
        draft.lines.append(f"split {name} by {factor}")
    order = draw(st.permutations(sorted(loops)))
    C.reorder(*(loops[name] for name in order))
    space = draw(st.lists(st.sampled_from(order), min_size=1, max_size=3, unique=True))
    C.unroll(*(loops[name] for name in space))
    draft.lines += [f"reorder {order}", f"unroll {space}"]
    for names in chosen:
        _isolated(draw, draft, arrays[names], names, space)
    return draft


def _isolated(
    draw: st.DrawFn, draft: Draft, array: ImageParam, names: str, space: list[str]
) -> None:
    """A loader, perhaps with a feeder behind it that scatters, and hops from PE to PE."""
    loader, feeder = Func(f"{array.name}_loader"), Func(f"{array.name}_feeder")
    own = [loop for loop in space if draft.variable(loop) in names]
    scatter = bool(own) and draw(st.booleans())
    draft.func.isolate_producer_chain(array, *([loader, feeder] if scatter else [loader]))
    draft.lines.append(f"isolate {array.name}, scatter {scatter}")
    for loop in draw(st.permutations([loop for loop in space if loop not in own])):
        if draw(st.integers(0, 5)):
            draft.func.forward(feeder if scatter else loader, draft.loops[loop])
            draft.lines.append(f"forward {array.name} along {loop}")
    if scatter:
        loop, reverse = draw(st.sampled_from(own)), draw(st.booleans())
        feeder.scatter(loader, draft.loops[loop], reverse=reverse)
        draft.lines.append(f"scatter {array.name} along {loop}, reverse {reverse}")


@pytest.mark.slow
@PROFILE
@given(drafts())
def test_no_design_waits_for_itself(draft: Draft) -> None:
    note("\n".join(draft.lines))
    graph = t2s.lower(draft.func)
    inputs = random_inputs(graph, 1)
    result = t2s.simulate(graph, inputs, progress=False)
    np.testing.assert_array_equal(result.outputs["C"], t2s.interpret(draft.func, inputs))
