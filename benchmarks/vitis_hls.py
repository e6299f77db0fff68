"""Random graphs as Vitis HLS C++: ``python -m benchmarks.vitis_hls [--graphs N] [--machines N]``.

Each is compiled by g++ and run with streams as deep as on the chip; its values must be those of the
interpreter, bit for bit, and a run that cannot end must be the simulator's kind of error.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np

import t2s
from benchmarks.random_graphs import random_graph
from benchmarks.random_machines import random_machines
from benchmarks.referee import random_inputs
from t2s.backends.vitis_hls import BACKEND, SimulationError, emulate
from t2s.errors import T2SWarning, UserError
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph, record_graph


class Verdict(Enum):
    """How a graph ended."""

    EQUAL = "equal"
    ROOMIER = "equal, where the simulator deadlocks: FIFOs in a function have the depth they need"
    DEADLOCK = "the same deadlock"
    LEFT = "tokens left over in both"
    REFUSED = "refused"
    WRONG = "WRONG"


def judge(graph: Graph, inputs: Mapping[str, Any] | None = None) -> tuple[Verdict, str]:
    """What became of a graph, and why."""
    problems = BACKEND.supports(graph)
    if problems:
        return Verdict.REFUSED, problems[0].why
    given = random_inputs(graph) if inputs is None else inputs
    without_end = _error_of(lambda: interpret_graph(graph, given))
    left = any(record_graph(graph, given).tokens.values())
    simulated = _error_of(lambda: t2s.simulate(graph, given, progress=False))
    try:
        found = emulate(graph, given, exact_depths=True)
    except SimulationError as error:
        text = str(error)
        if "deadlock" in text and "deadlock" in f"{without_end} {simulated}":
            return Verdict.DEADLOCK, text
        if "tokens left" in text and left and without_end is None:
            return Verdict.LEFT, text
        return Verdict.WRONG, f"{text}, where the simulator says {simulated}"
    if without_end is not None or left:
        return Verdict.WRONG, f"it ended, where the simulator says {simulated}"
    for name, values in interpret_graph(graph, given).items():
        if not np.array_equal(found[name], values, equal_nan=values.dtype.kind == "f"):
            return Verdict.WRONG, f"{name} is {found[name]} and not {values}"
    return (Verdict.EQUAL, "") if simulated is None else (Verdict.ROOMIER, simulated)


def _error_of(run: Callable[[], object]) -> str | None:
    try:
        run()
    except UserError as error:
        return str(error)
    return None


def cases(graphs: int, machines: int) -> Iterator[tuple[str, Graph, Mapping[str, Any] | None]]:
    """Graphs of PEs, then those of machines, with the kind of each."""
    for seed in range(graphs):
        yield "graphs of PEs", random_graph(seed), None
    for seed in range(machines):
        yield "machines", *random_machines(seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--machines", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore", T2SWarning)
    start = time.perf_counter()
    verdicts: Counter[tuple[str, Verdict]] = Counter()
    reasons: Counter[str] = Counter()
    for kind, graph, inputs in cases(options.graphs, options.machines):
        verdict, why = judge(graph, inputs)
        verdicts[kind, verdict] += 1
        if verdict is Verdict.WRONG:
            print(f"{graph.name}: {why}", flush=True)
        if verdict is Verdict.REFUSED:
            reasons[why] += 1
    for (kind, verdict), count in sorted(verdicts.items(), key=lambda item: item[0][0]):
        print(f"{kind:15} {verdict.value:25} {count:5}")
    for why, count in reasons.most_common():
        print(f"refused {count:4}: {why}")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
