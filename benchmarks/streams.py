"""Block firings per second of the stream engine: ``python benchmarks/streams.py`` from the root.

Sparse elementwise products and sums, matrix products in three orders, SDDMM and MTTKRP run with
values and times.  All numbers are processor time, the least of several runs, with the compiled code
in the cache.  Since other work on the machine slows this one down, the clock is measured too, as
far as this process gets it: the published simulators were timed at 3.2 GHz.  The last columns are
the ratios to that of the Sparse Abstract Machine and to DAM, scaled to the clock found.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from stream_designs import (
    Arrays,
    compressed,
    elementwise,
    inner_product,
    mttkrp,
    outer_product,
    row_product,
    sddmm,
)

from t2s.core.ops import Op
from t2s.graph.graph import Graph
from t2s.simulator.build import build_program
from t2s.simulator.engine import Limits
from t2s.simulator.engine_native import NativeEngine, retime
from t2s.simulator.native.module import compile_module
from t2s.simulator.native.stream_trace import trace_of
from t2s.simulator.native.stream_values import stream_values

RUNS = 9
REFERENCE_GHZ = 3.2
UNBOUNDED = 1 << 30

SAM_MS = {("*", 2000): 2390, ("+", 2000): 2980, ("*", 4000): 19200}
"""The published simulator, which has channels without bounds, on that processor."""

DAM_MS = {
    ("*", 2000): {2: 100, 16: 40, 256: 30},
    ("+", 2000): {2: 170, 16: 120, 256: 90},
    ("*", 4000): {2: 380, 16: 140, 256: 120},
    ("+", 4000): {2: 650, 16: 380, 256: 320},
}
"""DAM with one worker, by depth of the channels, on that processor."""

_CHAIN = """
define i64 @chain(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %x = phi i64 [1, %entry], [%y, %loop]
  %product = mul i64 %x, %x
  %y = add i64 %product, %i
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %leave
leave:
  ret i64 %y
}
"""
_CHAIN_CYCLES = 4


def least(run: Callable[[], object], runs: int = RUNS) -> float:
    """Milliseconds of processor time of the fastest run."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def gigahertz() -> float:
    """The clock, as far as this process gets it: from multiplications that wait for each other."""
    engine = compile_module(_CHAIN)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    chain = prototype(engine.get_function_address("chain"))
    steps = 2_000_000
    return _CHAIN_CYCLES * steps / least(lambda: chain(steps), 5) / 1e6


@dataclass(frozen=True, slots=True)
class Measured:
    """A design: milliseconds of its parts and of a whole run."""

    cycles: int
    firings: int
    values: float
    times: float
    whole: float
    clock: float

    @property
    def nanoseconds(self) -> float:
        """Of a whole run, per firing."""
        return self.whole * 1e6 / self.firings


def measure(graph: Graph, inputs: Arrays) -> Measured:
    program = build_program(graph, "ideal", inputs)
    engine = NativeEngine()
    result = engine.run(program, Limits())
    values = stream_values(graph, inputs, {})
    trace = trace_of(program, values, None)
    return Measured(
        cycles=result.cycles,
        firings=result.firings,
        values=least(lambda: stream_values(graph, inputs, {})),
        times=least(lambda: retime(program, trace)),
        whole=least(lambda: engine.run(program, Limits())),
        clock=gigahertz(),
    )


def matrix(shape: tuple[int, ...], density: float, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 9, shape)
    return np.where(generator.random(shape) < density, values, 0)


HEADER = (
    f"{'design':24} {'depth':>6} {'cycles':>9} {'firings':>10} {'values':>8} {'times':>8} "
    f"{'both, ms':>8} {'ns':>6} {'M/s':>6} {'retime':>7} {'GHz':>5}"
)


def line(name: str, depth: int, found: Measured) -> str:
    shown = "none" if depth == UNBOUNDED else str(depth)
    return (
        f"{name:24} {shown:>6} {found.cycles:9,} {found.firings:10,} {found.values:8.2f} "
        f"{found.times:8.2f} {found.whole:8.2f} {found.nanoseconds:6.1f} "
        f"{1e3 / found.nanoseconds:6.1f} {found.times * 1e6 / found.firings:7.1f} "
        f"{found.clock:5.2f}"
    )


def elementwise_rows(sizes: tuple[int, ...]) -> None:
    """The designs that the published simulators were timed on."""
    print(HEADER, f"{'SAM':>6} {'DAM':>5}")
    for size in sizes:
        inputs = {
            key: array
            for seed, name in enumerate("BC")
            for key, array in compressed(name, "ij", matrix((size, size), 0.02, seed)).items()
        }
        for operator in (Op.MULTIPLY, Op.ADD):
            sign = "*" if operator is Op.MULTIPLY else "+"
            for depth in (2, 16, 256):
                found = measure(elementwise(operator, depth), inputs)
                here = found.whole * found.clock / REFERENCE_GHZ
                sam = SAM_MS.get((sign, size))
                ratio = f"{sam / here:6.0f}" if sam else "     -"
                dam = DAM_MS[sign, size][depth] / here
                print(line(f"{sign}, {size} x {size}", depth, found), ratio, f"{dam:5.1f}")


def product_rows(depths: tuple[int, ...]) -> None:
    """Matrix products on the inputs of papers/001, Figs. 11 and 12, or of their statistics."""
    print(HEADER)
    b, c = matrix((250, 100), 0.05, 0), matrix((100, 250), 0.05, 1)
    wide, deep = np.ones((250, 100)), np.ones((100, 100))
    cube = matrix((100, 60, 60), 0.02, 2)
    factors = {"C_vals": matrix((60, 32), 1, 3), "D_vals": matrix((60, 32), 1, 4)}
    floats = {name: array.reshape(-1).astype(np.float32) for name, array in factors.items()}
    dense = {"C_vals": wide.reshape(-1), "D_vals": deep.reshape(-1)}
    dense = {name: array.astype(np.float32) for name, array in dense.items()}
    for depth in depths:
        for name, graph, inputs in (
            (
                "ijk",
                inner_product(depth),
                {**compressed("B", "ik", b), **compressed("C", "jk", c.T)},
            ),
            ("ikj", row_product(depth), {**compressed("B", "ik", b), **compressed("C", "kj", c)}),
            (
                "kij",
                outer_product(depth),
                {**compressed("B", "ki", b.T), **compressed("C", "kj", c)},
            ),
            ("SDDMM, K = 100", sddmm(250, 100, 100, depth), {**compressed("B", "ij", b), **dense}),
            ("MTTKRP", mttkrp(60, 60, 32, depth), {**compressed("B", "ikl", cube), **floats}),
        ):
            print(line(name, depth, measure(graph, inputs)))


def main() -> None:
    sizes = (2000,) if "--quick" in sys.argv else (2000, 4000)
    elementwise_rows(sizes)
    print()
    product_rows((UNBOUNDED, 16, 2))


if __name__ == "__main__":
    main()
