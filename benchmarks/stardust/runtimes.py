"""Run times of the kernels on Capstan: ``python -m benchmarks.stardust.runtimes [--quick]``.

Table 7 of [Stardust] gives run times relative to those with HBM2E; published numbers are in
brackets.  One set of parameters for all kernels and data, nothing tuned.  *Ideal* is an ideal
network and an ideal memory, as there; *bytes* are those of DRAM bursts beside all words of the
operands and the result once; ``bounds.py`` has what no run may beat, and the command ends with
an error if one does.  Dense extents, which the paper does not give, are 256 for
SDDMM and 32 for TTM and MTTKRP.  A second table has SpMV in the style of the one that was written
by hand there, with x in every partition.  ``--sensitivity`` times each run again with each latency
of ours, the depth of queues and the bursts that controllers know, halved and doubled.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import t2s
from benchmarks.stardust.bounds import broken_bounds, least_vectors, least_words
from benchmarks.stardust.data import (
    MATRICES,
    RANDOM_MATRICES,
    RANDOM_TENSORS,
    TENSORS,
    DataSet,
    rotated,
)
from benchmarks.stardust.paper import PAPER, PublishedKernel
from t2s import sparse
from t2s.driver.capstan_result import CapstanResult
from t2s.simulator.memory.spec import MEMORIES
from t2s.sparse import CapstanKernel, Schedule, Tensor, csr, dense

HBM, DDR, IDEAL = "hbm2e-1800", "ddr4-2133x4", "ideal"
OURS = ("hop", "memory_access", "dram_path", "queue_words")
"""Latencies that are not published, and the depth of queues, which is."""
KEPT = "open_bursts"
"""Of the memory: what each controller knows."""
SLACK = 0.05
"""Of the bounds of a tenth of the data."""
QUICK = 0.1
WORD = 4
MEAN_DDR, MEAN_IDEAL = 7.09, 0.52
"""The geometric means of table 7 over ten kernels."""

HAND = 0.65
"""Table 7: SpMV written by hand, beside the compiled one."""
HAND_TITLE = "SpMV with x in every partition, no network, outer_par 32: published in brackets"


@dataclass(frozen=True, kw_only=True)
class TimedKernel:
    """A kernel with its data, and what table 7 says: DDR4 and ideal beside HBM2E.

    ``part`` is the share of the data's size that is simulated, where all of it takes too long.
    """

    name: str
    data: tuple[DataSet, ...]
    operands: Callable[[Any], dict[str, Any]]
    ddr: float
    ideal: float | None = None
    part: float = 1.0

    @property
    def published(self) -> PublishedKernel:
        """The kernel."""
        return next(row for row in PAPER if row.name == self.name)


def numbers(*shape: int) -> Any:
    """A dense array of small integers."""
    return np.random.default_rng(sum(shape)).integers(1, 5, shape).astype(np.int32)


def _matrix_operands(*vectors: str) -> Callable[[Any], dict[str, Any]]:
    scalars = {"alpha": np.int32(2), "beta": np.int32(3)}
    return lambda a: {"A": a, **scalars, **{name: numbers(a.shape[0]) for name in vectors}}


def _only(names: str, operands: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    return lambda data: {name: operands(data)[name] for name in names.split()}


TIMED = (
    TimedKernel(
        name="SpMV",
        data=MATRICES,
        operands=_only("A x", _matrix_operands("x")),
        ddr=12.13,
        ideal=0.77,
    ),
    TimedKernel(
        name="MatTransMul",
        data=MATRICES,
        operands=_matrix_operands("x", "z"),
        ddr=12.31,
        ideal=0.78,
    ),
    TimedKernel(
        name="Residual",
        data=MATRICES,
        operands=_only("A x b", _matrix_operands("x", "b")),
        ddr=12.06,
        ideal=0.75,
    ),
    TimedKernel(
        name="SDDMM",
        data=MATRICES,
        operands=lambda b: {"B": b, "C": numbers(b.shape[0], 256), "D": numbers(256, b.shape[1])},
        ddr=8.33,
        part=0.05,
    ),
    TimedKernel(
        name="TTV", data=TENSORS, operands=lambda b: {"B": b, "c": numbers(b.shape[2])}, ddr=4.92
    ),
    TimedKernel(
        name="TTM",
        data=TENSORS,
        operands=lambda b: {"B": b, "C": numbers(32, b.shape[2])},
        ddr=9.80,
        part=0.1,
    ),
    TimedKernel(
        name="MTTKRP",
        data=TENSORS,
        operands=lambda b: {"B": b, "C": numbers(b.shape[1], 32), "D": numbers(b.shape[2], 32)},
        ddr=7.76,
        part=0.1,
    ),
    TimedKernel(
        name="Plus3",
        data=RANDOM_MATRICES,
        operands=lambda b: {"B": b, "C": rotated(b, 1), "D": rotated(b, 2)},
        ddr=10.07,
    ),
    TimedKernel(
        name="InnerProd",
        data=RANDOM_TENSORS,
        operands=lambda b: {"B": b, "C": rotated(b, 1, even=True)},
        ddr=3.28,
    ),
    TimedKernel(
        name="Plus2",
        data=RANDOM_TENSORS,
        operands=lambda b: {"B": b, "C": rotated(b, 1, even=True)},
        ddr=1.72,
    ),
)
"""The ten kernels: those with scans last.  SpMV-like ones come first."""


@dataclass(frozen=True, kw_only=True)
class TimedRun:
    """A kernel on a data set: with HBM2E, with DDR4 and with ideal memory.

    ``once`` are the bytes of a matrix, the dense vectors and the result; 0 with other operands.
    ``words`` and ``vectors`` are the least that it has to read and to compute.
    """

    kernel: TimedKernel
    data: DataSet
    part: float
    hbm: CapstanResult
    ddr: CapstanResult
    ideal: CapstanResult
    once: int
    words: int
    vectors: int

    def broken(self, slack: float = 0.0) -> list[str]:
        """The bounds that do not hold; see ``bounds.py``."""
        return broken_bounds(
            {IDEAL: self.ideal, HBM: self.hbm, DDR: self.ddr},
            words=self.words,
            vectors=self.vectors,
            partitions=self.kernel.published.outer_par,
            once=self.once,
            slack=slack,
        )

    @property
    def moved(self) -> str:
        """Bytes of DRAM bursts beside those of all words once, with HBM2E and DDR4."""
        return " / ".join(
            f"{one.dram_bytes / self.once:.2f}" for one in (self.hbm, self.ddr) if self.once
        )

    @property
    def slower(self) -> float:
        """DDR4 beside HBM2E."""
        return self.ddr.cycles / self.hbm.cycles

    @property
    def faster(self) -> float:
        """Ideal memory beside HBM2E."""
        return self.ideal.cycles / self.hbm.cycles


def timed(kernel: TimedKernel, data: DataSet, part: float) -> TimedRun:
    """Run a kernel once, and time it with the other memories."""
    inputs = kernel.operands(data.make(part))
    hbm = kernel.published.kernel().simulate(inputs, memory=HBM)
    again = [hbm.retime(memory=memory) for memory in (DDR, IDEAL)]
    once = WORD * (_words(inputs) + len(hbm.tensor.values)) if kernel.data is MATRICES else 0
    return TimedRun(
        kernel=kernel,
        data=data,
        part=part,
        hbm=hbm,
        ddr=again[0],
        ideal=again[1],
        once=once if kernel.name != "SDDMM" else 0,
        words=least_words(kernel.name, inputs),
        vectors=least_vectors(kernel.name, inputs),
    )


def _words(inputs: dict[str, Any]) -> int:
    """Of a matrix its positions, coordinates and values, of vectors their elements."""
    return sum(
        2 * one.nnz + len(one.indptr) if hasattr(one, "indptr") else one.size
        for one in inputs.values()
    )


def all_runs(part: float, names: tuple[str, ...] = ()) -> Iterator[TimedRun]:
    """The runs of all kernels, of a share of the size of their data."""
    for kernel in TIMED:
        for data in kernel.data:
            if not names or kernel.name in names:
                yield timed(kernel, data, part * kernel.part)


def by_hand() -> CapstanKernel:
    """SpMV with a copy of x in every partition: no network, so there may be 32 of them."""
    i, j = t2s.Var("i"), t2s.Var("j")
    a, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = a[i, j] * x[j]
    schedule = Schedule().environment(outer_par=32).parallel(j, "reduction", 16)
    schedule = schedule.precompute(x[j], Tensor("x_on", dense(1).on_chip), over=(j,))
    return sparse.compile(y, schedule, target="capstan")


def hand_table(runs: list[TimedRun]) -> Table:
    """SpMV with x in every partition, beside the compiled one."""
    table = Table("data", "cycles HBM2E", "beside compiled", "bound", title=HAND_TITLE)
    kernel, found = by_hand(), []
    for run in (one for one in runs if one.kernel.name == "SpMV"):
        hand = kernel.simulate(run.kernel.operands(run.data.make(run.part)), memory=HBM)
        found.append(hand.cycles / run.hbm.cycles)
        bound = f"{hand.parts.bound.value} {hand.parts.share(hand.parts.bound):.0%}"
        table.add_row(str(run.data), f"{hand.cycles:,}", f"{found[-1]:.2f}", bound)
    table.add_row("geometric mean", "", f"{mean(found):.2f} ({HAND:.2f})", "")
    return table


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def table_7(runs: list[TimedRun]) -> Table:
    """A row for each run, and for the mean of each kernel's."""
    headers = (
        *("kernel", "data", "size", "cycles HBM2E", "DDR4", "ideal", "bound", "of peak"),
        "bytes HBM2E / DDR4",
    )
    table = Table(*headers, title="Table 7: beside HBM2E = 1, published in brackets")
    for kernel in TIMED:
        found = [run for run in runs if run.kernel is kernel]
        for run in found:
            parts = run.hbm.parts
            table.add_row(
                kernel.name,
                str(run.data),
                f"{run.part:.0%}",
                f"{run.hbm.cycles:,}",
                f"{run.slower:.2f}",
                f"{run.faster:.2f}",
                f"{parts.bound.value} {parts.share(parts.bound):.0%}",
                f"{run.hbm.share_of_peak:.0%}",
                run.moved,
            )
        if found:
            slower, faster = mean([r.slower for r in found]), mean([r.faster for r in found])
            ideal = "" if kernel.ideal is None else f" ({kernel.ideal:.2f})"
            cells = f"{slower:.2f} ({kernel.ddr:.2f})", f"{faster:.2f}{ideal}"
            table.add_row(
                kernel.name, "geometric mean", "", "", *cells, "", "", "", end_section=True
            )
    if {run.kernel.name for run in runs} == {kernel.name for kernel in TIMED}:
        slower, faster = (
            mean([mean([value(r) for r in runs if r.kernel is kernel]) for kernel in TIMED])
            for value in (lambda r: r.slower, lambda r: r.faster)
        )
        cells = f"{slower:.2f} ({MEAN_DDR:.2f})", f"{faster:.2f} ({MEAN_IDEAL:.2f})"
        table.add_row("all", "geometric mean", "", "", *cells, "", "", "")
    return table


def sensitivity(runs: list[TimedRun]) -> Table:
    """How cycles with HBM2E change when a latency of ours is halved, and when it is doubled."""
    kept = MEMORIES[HBM].open_bursts
    table = Table("kernel", "data", *OURS, KEPT, title="cycles with each halved / doubled")
    for run in runs:
        cells = []
        for name in OURS:
            value = getattr(run.hbm.times, name)
            changed = [replace(run.hbm.times, **{name: n}) for n in (-(-value // 2), 2 * value)]
            cycles = [run.hbm.retime(times=times).cycles / run.hbm.cycles for times in changed]
            cells.append(f"{cycles[0]:.2f} / {cycles[1]:.2f}")
        memories = [replace(MEMORIES[HBM], open_bursts=n) for n in (kept // 2, 2 * kept)]
        cycles = [run.hbm.retime(memory=memory).cycles / run.hbm.cycles for memory in memories]
        cells.append(f"{cycles[0]:.2f} / {cycles[1]:.2f}")
        table.add_row(run.kernel.name, str(run.data), *cells)
    return table


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--sensitivity", action="store_true", help="vary the latencies of ours")
    parser.add_argument("--only", nargs="*", default=(), help="names of kernels")
    options = parser.parse_args(arguments)
    runs = list(all_runs(QUICK if options.quick else 1.0, tuple(options.only)))
    console = Console(width=140)
    console.print(table_7(runs))
    if any(run.kernel.name == "SpMV" for run in runs):
        console.print(hand_table(runs))
    if options.sensitivity:
        console.print(sensitivity(runs))
    slack = SLACK if options.quick else 0.0
    broken = [
        f"{run.kernel.name}, {run.data}: {what}" for run in runs for what in run.broken(slack)
    ]
    if broken:
        raise SystemExit("\n".join(["bounds that do not hold", *broken]))


if __name__ == "__main__":
    main()
