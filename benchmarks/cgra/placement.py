"""Placement and routing of the shapes of kernels: ``python -m benchmarks.cgra.placement``.

Prints for each the cells, the half perimeters of the nets beside the goal, the wires, the hops, the
relays, the rate that channels allow, and the seconds of the processor.  The goals are those of the
acceptance for products, with two tracks; of the others what a prototype reached, without relays.
``--seeds N`` places each N times, with N seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

from t2s.backends.cgra_tia.fabric import FABRICS, CellKind
from t2s.backends.cgra_tia.files.summary import figures_of
from t2s.backends.cgra_tia.netlist import Netlist
from t2s.backends.cgra_tia.place import place_netlist
from tests.backends.cgra.netlists import chain, gemm, mttkrp, polynomial, ttm, ttmc

TRACKS = 2

DESIGNS: tuple[tuple[str, Callable[[], Netlist], str, int | None], ...] = (
    ("chain of 12", lambda: chain(12), "cgra8", 22),
    ("polynomial of degree 12", lambda: polynomial(12), "cgra8", None),
    ("GEMM 2, 2, 4", lambda: gemm(2, 2, 4), "cgra8", 95),
    ("GEMM 4, 4, 4", lambda: gemm(4, 4, 4), "cgra16", 570),
    ("GEMM 8, 8, 4", lambda: gemm(8, 8, 4), "cgra32", 3_170),
    ("TTM 4, 4, 4, 4", ttm, "cgra32", 2_254),
    ("MTTKRP 4, 4, 4, 2", mttkrp, "cgra32", 2_230),
    ("TTMc 2, 2, 2, 4, 4", ttmc, "cgra32", 2_001),
    ("TTMc 3, 3, 3, 3, 3", lambda: ttmc((3,) * 5, shared=True), "cgra32", 2_155),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    seeds: int = parser.parse_args().seeds
    heads = ("fma/ctl/io", "goal", "boxes", "wires", "hops", "relays", "rate", "seconds")
    print(f"{'design':24}{'fabric':8}" + "".join(f"{head:>12}" for head in heads))
    for name, made, fabric, goal in DESIGNS:
        for seed in range(seeds):
            netlist = made()
            start = time.process_time()
            design = place_netlist(netlist, replace(FABRICS[fabric], tracks=TRACKS), seed=seed)
            seconds = time.process_time() - start
            figures = figures_of(design)
            limit = figures.limit
            columns = (
                "/".join(str(figures.used[kind]) for kind in CellKind),
                "" if goal is None else f"{goal:,}",
                f"{figures.half_perimeter:,}",
                f"{figures.wires:,}",
                f"{float(figures.mean_hops):.1f}/{figures.most_hops}",
                str(len(design.netlist.cells) - len(netlist.cells)),
                "100 %" if limit is None else f"{float(limit.rate):.0%}",
                f"{seconds:.2f}",
            )
            print(f"{name:24}{fabric:8}" + "".join(f"{column:>12}" for column in columns))


if __name__ == "__main__":
    main()
