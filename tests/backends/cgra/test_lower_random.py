"""Random programs with random directives: lowered to the same values, or refused."""

from __future__ import annotations

import re
import warnings
from collections import Counter

import numpy as np
import pytest

import t2s
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.dense import executed, generate
from t2s.backends.cgra_tia.lower import lower_to_netlist, unsupported
from t2s.core.ops import Array
from t2s.graph.graph import Graph
from tests.backends.cgra.lowering import ran, whole_numbers

PARTS = 6
EACH = 12


def _words(text: str) -> str:
    """A program in types that words of the machine hold."""

    def word(found: re.Match[str]) -> str:
        if "Float" in found[1]:
            return "Float(64)"
        return "Int(32)" if found[0] == "Int(32)" else "Int(64)"

    return re.sub(r"\b(BFloat|Float|UInt|Int)\((\d*)\)", word, text)


def drawn(seed: int) -> tuple[str, Graph] | None:
    """The longest legal beginning of a program; ``None`` if there is none."""
    program = generate(Choices(f"cgra:{seed}"))
    for count in range(len(program.directives), -1, -1):
        text = _words(program.text(count))
        try:
            return text, t2s.lower(executed(text), program.given)
        except t2s.errors.T2SError:
            continue
    return None


def inputs_of_graph(graph: Graph, seed: int) -> dict[str, Array]:
    scalars = {p.name: p.type.numpy.type(seed % 5) for p in graph.parameters}
    return {**whole_numbers(graph, seed), **scalars}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_have_the_values_of_the_simulator_or_are_refused(part: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(part * EACH, (part + 1) * EACH):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = drawn(seed)
        if found is None:
            continue
        text, graph = found
        problems = unsupported(graph, contract=False)
        kinds["refused" if problems else "run"] += 1
        if problems:
            assert all(problem.location for problem in problems), text
            continue
        inputs = inputs_of_graph(graph, seed)
        expected = t2s.simulate(graph, inputs, progress=False).outputs
        netlist = lower_to_netlist(graph, contract=False)
        run = ran(netlist, inputs, latency=1 + seed % 3, fma_latency=seed % 6)
        for name, array in expected.items():
            assert np.array_equal(run.outputs[name], array, equal_nan=array.dtype.kind == "f"), text
    assert kinds["run"] >= EACH // 4
