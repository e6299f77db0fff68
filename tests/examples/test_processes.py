"""The examples of processes written by hand."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

import t2s

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "processes"


def test_a_server_answers_two_clients() -> None:
    found = runpy.run_path(str(EXAMPLES / "service.py"))
    graph, inputs, native = found["graph"], found["inputs"], found["result"]
    plain = t2s.simulate(graph, inputs, engine="python")
    assert plain.cycles == native.cycles
    for number in range(2):
        x = inputs[f"x{number}"]
        for result in (plain, native):
            np.testing.assert_array_equal(result.outputs[f"y{number}"], x * x)
