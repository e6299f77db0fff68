"""Every kind of level that blocks scan, read by a kernel as it is stored."""

from __future__ import annotations

import numpy as np

from t2s.sparse import Kernel, Schedule, bcsr, parse
from tests.sampling import sampled

PAIRS = ("db", "bs", "st", "tb", "dl", "ls")


@sampled(("outer", "inner"), PAIRS, quick=2)
def test_a_matrix_times_a_vector(outer: str, inner: str) -> None:
    generator = np.random.default_rng(ord(outer) * 128 + ord(inner))
    shape = (70, 5) if outer in "bt" else (4, 70) if inner in "bt" else (4, 5)
    A = generator.integers(1, 9, shape) * (generator.random(shape) < 0.1)
    x = generator.integers(1, 9, shape[1]) * (generator.random(shape[1]) < 0.5)
    assignment = parse("y(i)=A(i,j)*x(j)", {"A": outer + inner, "x": "s", "y": "s"})
    kernel = Kernel(assignment)
    assert not kernel.program.views
    result = kernel.simulate({"A": A, "x": x})
    assert np.array_equal(result.output, A @ x)


@sampled("letters", ["u", "uq", "ucq", "dq", "sq", "duq", "usd", "us"], quick=2)
def test_levels_that_repeat_coordinates(letters: str) -> None:
    order = len(letters)
    shape = (3, 4, 5)[:order]
    generator = np.random.default_rng(order)
    A = generator.integers(1, 9, shape) * (generator.random(shape) < 0.4)
    if letters in ("dq", "sq"):
        A = np.eye(*shape, dtype=int)[:, ::-1] * 7
        A[0, 0] = 0
    variables = "ijk"[:order]
    text = f"y=A({','.join(variables)})*A({','.join(variables)})"
    kernel = Kernel(parse(text, {"A": letters}))
    converted = any(
        "in place" in reason for view in kernel.program.views for reason in view.reasons
    )
    assert converted == (letters in ("duq", "usd", "us"))
    result = kernel.simulate({"A": A})
    assert result.output == (A * A).sum()


def test_blocks_are_walked_by_split_loops() -> None:
    generator = np.random.default_rng(2)
    A = generator.integers(1, 9, (6, 8)) * (generator.random((6, 8)) < 0.3)
    x = generator.integers(1, 9, 8)
    assignment = parse("y(i)=A(i,j)*x(j)", {"A": bcsr(2, 4)})
    schedule = Schedule().split("i", "i0", "i1", 2).split("j", "j0", "j1", 4)
    kernel = Kernel(assignment, schedule.reorder("i0 j0 i1 j1"))
    views = {view.source: view for view in kernel.program.views}
    assert views["A"].reasons == ("its levels by the parts of variables",)
    binding = kernel.bind({"A": A, "x": x})
    assert binding.tensors[views["A"].name].values is binding.given["A"].values
    assert np.array_equal(kernel.simulate({"A": A, "x": x}).output, A @ x)
    plain = Kernel(assignment)
    assert np.array_equal(plain.simulate({"A": A, "x": x}).output, A @ x)
