"""A 1-D convolution on six systolic arrays: the same sum, six times placed in space and time.

``Z[i] = sum of x[i + q] * w[q]`` has two loops, the results i and the taps q. A space-time
transform makes one loop p of PEs and one loop t of time of them. The letters of a name stand for x,
w and the sums: b (broadcast: all PEs use the same value at one time), f (forwarded from PE to PE),
s (stays in a PE) and m (moves, for sums).

Run it with ``python examples/convolution_1d/mappings.py``.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Func, ImageParam, Int, RDom, Var


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """Where (p) and when (t) iteration (i, q) is computed, and which operands move along p.

    ``reversed_taps`` adds the taps up from the last one to the first.
    """

    title: str
    place: tuple[int, int]
    time: tuple[int, int]
    moving: str = ""
    reversed_taps: bool = False


MAPPINGS = {
    "bfs": Mapping(title="x to all, w moves, sums stay", place=(1, 0), time=(1, 1), moving="w"),
    "bsm": Mapping(title="x to all, w stays, sums move", place=(0, 1), time=(1, 1)),
    "fbs": Mapping(title="x moves, w to all, sums stay", place=(1, 0), time=(0, 1), moving="x"),
    "ffs": Mapping(title="x and w move, sums stay", place=(1, 0), time=(2, 1), moving="xw"),
    "fsm": Mapping(
        title="x moves, w stays, sums move",
        place=(0, 1),
        time=(1, 1),
        moving="x",
        reversed_taps=True,
    ),
    "sbm": Mapping(title="x stays, w to all, sums move", place=(1, 1), time=(0, 1)),
}


def design(name: str = "bsm", results: int = 16, taps: int = 5) -> Func:
    """The convolution in one of the mappings."""
    chosen = MAPPINGS[name]
    x, w = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="w")
    i, q = Var("i"), RDom(0, taps, name="q")
    Z = Func("Z")
    at = taps - 1 - q if chosen.reversed_taps else q
    Z[i] = 0
    Z[i] += x[i + at] * w[at]
    Z.bound(i, 0, results)

    p, t = t2s.variables("p t")
    Z.space_time_transform([i, q], [p, t], [chosen.place, chosen.time])
    x_loader, w_loader = t2s.funcs("x_loader w_loader")
    Z.isolate_producer(x, x_loader).isolate_producer(w, w_loader)
    for operand, loader in (("x", x_loader), ("w", w_loader)):
        if operand in chosen.moving:
            Z.forward(loader, p)
    return Z


def main() -> None:
    generator = np.random.default_rng(0)
    x, w = (generator.integers(-9, 9, size, np.int32) for size in (20, 5))
    expected = np.convolve(x, w[::-1], "valid")
    print(f"{'':<37}{'PEs':>5}{'compute cycles':>16}{'utilization':>13}{'on arria10':>12}")
    for name, mapping in MAPPINGS.items():
        graph = design(name).lower()
        result = t2s.simulate(graph, {"x": x, "w": w})
        np.testing.assert_array_equal(result.outputs["Z"], expected)
        pes, cycles = graph.node("Z").pe_count, result.compute_cycles
        busy = result.nodes["Z"].firings / (pes * cycles)
        board = t2s.cycles(graph, device="arria10")
        print(f"{name}  {mapping.title:<32}{pes:>5}{cycles:>16}{busy:>13.0%}{board:>12}")
    print("\nutilization = firings / (PEs x cycles from the first to the last firing)")


if __name__ == "__main__":
    main()
