"""Schedules: fused loops, vectors, lanes, skipping and words change time, never values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s.sparse import Kernel, Schedule, bcsr, compile, parse
from t2s.sparse_repr.lowering.diagram import block_counts
from t2s.sparse_repr.notation.ir import Assignment, accesses
from tests.sampling import sampled

Inputs = dict[str, Any]


def inputs_of(assignment: Assignment, part: float = 0.5, **extents: int) -> Inputs:
    generator = np.random.default_rng(8)
    found = {}
    for access in accesses(assignment.value):
        shape = tuple(extents[name] for name in access.variables)
        found[access.tensor] = generator.integers(1, 9, shape) * (generator.random(shape) < part)
    return found


def right(kernel: Kernel, inputs: Inputs, *, native: bool = False) -> int:
    """Every way to compute agrees with numpy; the cycles."""
    expected = kernel.interpret(inputs)
    for level in ("loops", "blocks"):
        assert np.array_equal(kernel.interpret(inputs, level=level), expected), level
    plain = kernel.simulate(inputs, engine="python")
    assert np.array_equal(plain.output, expected)
    if native:
        other = kernel.simulate(inputs)
        assert np.array_equal(other.output, expected)
        assert other.cycles == plain.cycles
    return plain.cycles


def test_lanes_of_fused_loops_share_entries_whatever_the_rows_are() -> None:
    assignment = parse("X(i,j)=B(i,j)*(C(i,k)*D(j,k))", ["B:ds", "X:ss"])
    order = Schedule().locate("C", "i").locate("D", "j")
    B = np.zeros((9, 6))
    B[:, 3], B[5], B[7] = 1, 2, 0  # rows of one entry, a long and an empty one
    inputs = {"B": B, "C": np.arange(54.0).reshape(9, 6), "D": np.arange(36.0).reshape(6, 6)}
    fused = Kernel(assignment, order.fuse("i", "j", "f").parallelize("f", 3))
    assert "for j:  # fused with the loop around it: f; locate D; 3 lanes" in str(fused)
    counts = block_counts(fused.diagrams)
    assert (counts["flatten"], counts["regroup"], counts["parallelizer"]) == (1, 1, 1)
    rows = Kernel(assignment, order.parallelize("j", 3))
    assert right(fused, inputs, native=True) < 0.75 * right(rows, inputs)


@sampled(
    ("text", "formats", "schedule"),
    [
        ("y(i)=A(i,j)*x(j)", "A:ss x:s y:s", Schedule().fuse("i", "j", "f")),
        ("y(i)=A(i,j)*x(j)", "A:ds", Schedule().fuse("i", "j", "f").parallelize("f", 3)),
        ("X(i,j)=A(i,j)+B(i,j)", "A:ss B:ss X:ss", Schedule().fuse("i", "j", "f")),
        (
            "X(i,k)=A(i,j,l)*B(l,k)",
            "A:ssd B:ds X:ss",
            Schedule()
            .reorder("f l k")
            .fuse("i", "j", "f")
            .split("f", "g", "h", 2)
            .parallelize("g", 2),
        ),
        ("X(i,j)=A(i,k)*B(k,j)", "A:dd", Schedule().reorder("f j").fuse("i", "k", "f")),
        ("X(j)=A(i,k)*B(k,j)", "A:dd", Schedule().reorder("i k j").fuse("k", "j", "f")),
    ],
    quick=3,
)
def test_fused_loops(text: str, formats: str, schedule: Schedule) -> None:
    assignment = parse(text, formats.split())
    for extents in ({"i": 3, "j": 4, "k": 2, "l": 2}, {"i": 1, "j": 2, "k": 3, "l": 1}):
        right(Kernel(assignment, schedule), inputs_of(assignment, **extents))


@sampled(
    ("text", "formats", "order"),
    [
        ("y(i)=A(i,j)*x(j)", "A:dd", "i j"),
        ("y(i)=b(i)+A(i,j)*x(j)", "A:ss b:s x:s y:s", "i j"),
        ("X(i,j)=A(i,k)*B(k,j)", "A:ds", "i k j"),
        ("X(i,j)=A(i,k)*B(k,j)", "A:ds X:ss", "i j k"),
        ("y(j)=b(j)+A(k,j)", "", "j k"),
        ("y(j)=b(j)+A(k,j)", "", "k j"),
        ("y(j)=b(j)-2", "y:s", "j"),
    ],
    quick=2,
)
def test_vectors(text: str, formats: str, order: str) -> None:
    assignment = parse(text, formats.split())
    schedule = Schedule().reorder(order).transpose()
    kernel = Kernel(assignment, schedule.vectorize("j", 4))
    assert "for j_lane:  # 4 at once" in str(kernel)
    for ragged in (8, 6):
        inputs = inputs_of(assignment, 0.8, i=3, j=ragged, k=3)
        cycles = right(kernel, inputs, native=text.startswith("X") and ragged == 8)
        assert cycles < Kernel(assignment, schedule).simulate(inputs, engine="python").cycles


def test_vectors_in_blocks_that_are_stored() -> None:
    """The lanes of BCSR blocks are vectors as they are."""
    assignment = parse("y(i)=A(i,j)*x(j)", {"A": bcsr(2, 4)})
    schedule = Schedule().split("i", "i0", "i1", 2).vectorize("j", 4).reorder("i0 j i1")
    kernel = Kernel(assignment, schedule)
    inputs = inputs_of(assignment, 0.2, i=6, j=12)
    right(kernel, inputs)
    binding = kernel.bind(inputs)
    view = next(view for view in kernel.program.views if view.source == "A")
    assert binding.tensors[view.name].values is binding.given["A"].values


@sampled("operator", ["*", "+"], quick=1)
@pytest.mark.parametrize("letters", ["bb", "db"])
def test_bitvectors_are_joined_as_words(operator: str, letters: str) -> None:
    text = f"X(i,j)=A(i,j){operator}B(i,j){operator}C(i,j)"
    words = parse(text, [f"A:{letters}", f"B:{letters}", "C:ds"])
    names = [type(wired.block).__name__ for wired in Kernel(words).diagrams[0].blocks]
    assert "ScanJoin" in names
    inputs = inputs_of(words, 0.1, i=3, j=150)
    cycles = right(Kernel(words), inputs, native=letters == "bb")
    lists = parse(text, ["A:ds", "B:ds", "C:ds"])
    if operator == "*":
        assert cycles < Kernel(lists).simulate(inputs, engine="python").cycles


def test_skipping_takes_fewer_cycles() -> None:
    assignment = parse("x(i)=B(i)*C(i)", ["B:s", "C:s", "x:s"])
    B, C = np.zeros(60), np.zeros(60)
    B[:30], C[30:], C[5] = 1, 2, 3
    inputs = {"B": B, "C": C}
    plain, skipping = Kernel(assignment), Kernel(assignment, Schedule().skip("i"))
    assert "for i:  # skip" in str(skipping)
    assert right(skipping, inputs, native=True) < 0.7 * right(plain, inputs)
    assert (
        skipping.simulate(inputs, capacity=2, engine="python").output.tolist() == (B * C).tolist()
    )


LANES = [
    ("y(i)=A(i,j)*x(j)", "A:ds x:s y:s", "i j", "i"),
    ("X(i,j)=A(i,j)*B(i,k)", "A:ss B:ds X:ss", "i j k", "j"),
    ("X(i,j)=A(i,k)*B(k,j)", "A:ss B:ss X:ss", "i k j", "i"),
    ("y(i)=A(i,k,l)*x(l)", "A:sss x:s y:s", "i k l", "k"),
]


@sampled(("text", "formats", "order", "variable"), LANES, quick=2)
def test_lanes_store_what_plain_loops_store(
    text: str, formats: str, order: str, variable: str
) -> None:
    """No zeros for what came to nothing, and also where a lane gets nothing of a row."""
    assignment = parse(text, formats.split())
    schedule = Schedule().reorder(order)
    plain, lanes = (
        Kernel(assignment, schedule),
        Kernel(assignment, schedule.parallelize(variable, 3)),
    )
    for extent in (1, 2, 7):
        inputs = inputs_of(assignment, 0.3, i=extent, j=4, k=extent, l=3)
        right(lanes, inputs)
        one, other = (kernel.simulate(inputs, engine="python").tensor for kernel in (plain, lanes))
        assert np.array_equal(one.values, other.values)
        for ours, theirs in zip(other.levels, one.levels, strict=True):
            assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    ("expression", "part", "workspace"),
    [
        ("X=B(i)*(c*A(j))", "c*A(j)", "W"),
        ("X=c*(b-A(i))", "A(i)", "W(i)"),
        ("X=c/(b+A(i)*B(i))", "A(i)*B(i)", "W(i)"),
        ("X(i)=D(i,j)*(c/(1*A(j)))", "1*A(j)", "W(j)"),
        ("X(i)=D(i,j)*(c/(1*A(j)))", "c/(1*A(j))", "W(j)"),
    ],
)
def test_sums_go_into_workspaces_of_factors_only(
    expression: str, part: str, workspace: str
) -> None:
    """A sum over a term or a divisor is not the term or divisor of a sum."""
    formats = [f"{name}:{levels}" for name, levels in (("A", "s"), ("B", "d"), ("D", "ds"))]
    used = [text for text in formats if f"{text[0]}(" in expression]
    kernel = compile(parse(expression, used), f"precompute({part}, W)")
    assert str(kernel).startswith(f"{workspace} is stored as ")
    values = np.array([2.0, 4.0, 8.0])
    inputs: Inputs = {"A": values, "B": values, "D": np.eye(3), "b": 5.0, "c": 16.0}
    names = {access.tensor for access in accesses(parse(expression, used).value)}
    right(kernel, {name: inputs[name] for name in names})


def test_infinities_of_workspaces_meet_what_is_stored_only() -> None:
    assignment = parse("X(i)=(1/A(i))*B(i)", ["A:d", "B:s", "X:s"])
    inputs: Inputs = {"A": np.array([0.0, 0.0, 2.0]), "B": np.array([0.0, 3.0, 3.0])}
    for schedule in (None, "precompute(1/A(i), W)"):
        found = compile(assignment, schedule).simulate(inputs, engine="python").output
        assert np.array_equal(found, [0, np.inf, 1.5])
