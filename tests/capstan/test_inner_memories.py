"""Memories that a loop declares, writes, and reads or stores in the same iteration."""

from __future__ import annotations

import numpy as np

import t2s
from t2s.sparse import Schedule, Tensor, compile, dense, make_format
from tests.capstan.test_simulated_kernels import same
from tests.sampling import sampled

i, j = t2s.Var("i"), t2s.Var("j")


@sampled(("rows", "columns"), [(5, 20), (0, 3), (2, 0)], quick=2)
def test_rows_of_a_dense_result(rows: int, columns: int) -> None:
    """Each row is collected in a memory and stored behind its loop, in three partitions."""
    result, d, e = (Tensor(name, dense(2)) for name in "RDE")
    result[i, j] = d[i, j] * e[j, i] + d[i, j]
    kernel = compile(result, Schedule().environment(outer_par=3), target="capstan")
    generator = np.random.default_rng(0)
    inputs = {
        "D": generator.integers(0, 9, (rows, columns)).astype(np.int32),
        "E": generator.integers(0, 9, (columns, rows)).astype(np.int32),
    }
    stored = kernel.run_patterns(inputs)
    runs = [kernel.simulate(inputs, engine=engine) for engine in ("native", "python")]
    assert all(same(run.tensor, stored) for run in runs)
    assert len({run.cycles for run in runs}) == 1


def test_a_workspace_for_each_row() -> None:
    """Compressed, with segments that are written in the loop that declares it."""
    a, b, c, d = (Tensor(name, "ds") for name in "ABCD")
    a[i, j] = b[i, j] + (c[i, j] + d[i, j])
    workspace = Tensor("W", make_format("s").on_chip)
    schedule = Schedule().precompute(c[i, j] + d[i, j], workspace, over=(j,))
    kernel = compile(a, schedule, target="capstan")
    generator = np.random.default_rng(0)
    inputs = {
        name: (generator.random((4, 30)) < 0.3).astype(np.int32) * (number + 1)
        for number, name in enumerate("BCD")
    }
    np.testing.assert_array_equal(kernel.interpret(inputs), sum(inputs.values()))
    assert same(kernel.simulate(inputs).tensor, kernel.run_patterns(inputs))
