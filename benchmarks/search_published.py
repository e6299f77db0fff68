"""Searches beside hand designs at published sizes: ``python -m benchmarks.search_published``.

Each row is a design of the examples, at its published size (GBMV and SYRK: at the largest of the
file), and ``t2s.search`` of its definition with its DSP blocks, and with all and a half of its RAM
blocks.  Hand designs are within 0.01 % of the steps of their PEs there, so a search can hardly be
faster; it should be equal within 0.1 %, in 60 s, with as little RAM.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import t2s
from benchmarks.published import load
from t2s import Func
from t2s.errors import T2SWarning
from tests.design_space.contractions import (
    banded_in_blocks,
    capsules,
    convolution,
    folded,
    gemm,
    mttkrp,
    ttm,
    ttmc,
)

MOST_ABOVE = 0.001
"""How many more cycles than the hand design may be found."""

DEVICE = "arria10"


@dataclass(frozen=True, kw_only=True)
class Published:
    """A hand design of a file, its result and sizes there, and the definition to search.

    ``define`` takes the extents of the result and those of the reductions.
    """

    module: str
    sizes: str
    define: Callable[[tuple[int, ...], tuple[int, ...]], Func]
    reductions: tuple[int, ...]
    function: str = "design"

    @cached_property
    def hand(self) -> Func:
        module = load(self.module)
        design: Func = getattr(module, self.function)(getattr(module, self.sizes))
        return design

    @cached_property
    def blocks(self) -> tuple[int, int]:
        """DSP and RAM blocks of the hand design."""
        report = t2s.resources(self.hand, device=DEVICE)
        return report.dsp_blocks, report.ram_blocks

    @cached_property
    def cycles(self) -> int:
        return t2s.cycles(self.hand, device=DEVICE)

    def definition(self) -> Func:
        return self.define(self.hand.lower().tensor(self.hand.name).shape, self.reductions)


ROWS = {
    "gemm": Published(
        module="examples/gemm/systolic.py",
        function="gemm",
        sizes="ARRIA10",
        define=lambda shape, sums: gemm(*shape, *sums),
        reductions=(16_384,),
    ),
    "mttkrp": Published(
        module="examples/mttkrp/mttkrp.py",
        sizes="PUBLISHED",
        define=lambda shape, sums: mttkrp(shape[0], shape[1], (sums[0], sums[1])),
        reductions=(256, 512),
    ),
    "ttm": Published(
        module="examples/ttm/ttm.py",
        sizes="PUBLISHED",
        define=lambda shape, sums: ttm((shape[0], shape[1], shape[2]), *sums),
        reductions=(1024,),
    ),
    "ttmc": Published(
        module="examples/ttmc/ttmc.py",
        sizes="PUBLISHED",
        define=lambda shape, sums: ttmc((shape[0], shape[1], shape[2]), (sums[0], sums[1])),
        reductions=(128, 128),
    ),
    "convolution": Published(
        module="examples/convolution/convolution.py",
        sizes="ARRIA10",
        define=lambda shape, sums: convolution((shape[0], shape[1], shape[2], shape[3]), *sums),
        reductions=(3, 256),
    ),
    "capsule": Published(
        module="examples/capsule/capsule.py",
        sizes="ARRIA10",
        define=lambda shape, sums: capsules(shape[0], shape[1], shape[2], (sums[0], shape[4])),
        reductions=(32,),
    ),
    "gbmv": Published(
        module="examples/gbmv/gbmv.py",
        sizes="SMALL",
        define=lambda shape, sums: banded_in_blocks(shape[0] // 16, 16, *sums),
        reductions=(1056,),
    ),
    "syrk": Published(
        module="examples/syrk/syrk.py",
        sizes="SMALL",
        define=lambda shape, sums: folded(2 * shape[0], shape[2], *sums),
        reductions=(256,),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", T2SWarning)
    print(f"{'':12}{'cycles':>15}{'to hand':>10}{'DSP':>6}{'RAM':>6}{'gap':>9}{'CPU s':>7}{'s':>6}")
    for name in arguments.names or ROWS:
        row = ROWS[name]
        (dsp, ram), by_hand = row.blocks, row.cycles
        print(f"{name:12}{by_hand:15,}{'':10}{dsp:6}{ram:6}")
        for most in (ram, ram // 2):
            began, spent = time.monotonic(), time.process_time()
            found = t2s.search(
                row.definition(), dsp=dsp, ram=most, seconds=arguments.seconds, progress=False
            )
            spent, passed = time.process_time() - spent, time.monotonic() - began
            above = found.cycles / by_hand - 1
            print(
                f"  RAM <= {most:<3}{found.cycles:15,}{above:+10.3%}{found.best.dsp:6}"
                f"{found.best.ram:6}{found.gap:9.3%}{spent:7.1f}{passed:6.0f}"
                f"{'' if above <= MOST_ABOVE else '  above'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
