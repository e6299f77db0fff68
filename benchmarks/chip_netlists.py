"""Netlists after synthesis beside the simulator: ``python -m benchmarks.chip_netlists [NAME ...]``.

Each design is synthesized for an ECP5, or for another ``--part``, and built once; the cells run in
Verilator behind the testbench, without stalls, with three kinds of random stalls, and with a memory
of half a byte per cycle, without and with stalls.  Cycles, firings, the first and the last of them,
and all values have to be the simulator's.  A name selects the designs that begin with
it; ``--all`` runs every one.  The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import t2s
from benchmarks.chip_designs import DESIGNS
from t2s.backends.base import Stalling
from t2s.backends.verilog.flow.netlist import netlist_model
from t2s.backends.verilog.flow.parts import PARTS
from t2s.driver.device_times import device_times
from t2s.driver.synthesize import differences
from t2s.graph.graph import Graph, TensorRole
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.program.build import build_program

STALLS = tuple(t2s.RandomStalls(seed=seed, one_in=n) for seed, n in ((1, 8), (2, 2), (3, 4)))
CHOSEN = (
    *("gemm 4x4 int16", "FIR 16 taps", "convolution 5x5", "matrix-vector 8 PEs"),
    *("stencil of 5 points", "reduction tree of 8 lanes"),
)


def settings(own: Device) -> tuple[tuple[Device, t2s.RandomStalls | None], ...]:
    """The devices and the stalls with which each design runs."""
    narrow = replace(own, name="half a byte per cycle", memory_bytes_per_second=own.clock_hz // 2)
    return (
        (own, None),
        *((own, stalls) for stalls in STALLS),
        (narrow, None),
        (narrow, STALLS[2]),
    )


def random_inputs(graph: Graph) -> dict[str, np.ndarray]:
    """All bits of all inputs, always the same."""
    random = np.random.default_rng(7)
    return {
        tensor.array: random.integers(
            -(1 << (tensor.type.bits - 1)), 1 << (tensor.type.bits - 1), tensor.shape
        ).astype(tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }


def compared(name: str, part: str) -> Iterator[str]:
    """What differs in the runs of a design, in words."""
    graph = t2s.lower(DESIGNS[name]())
    inputs = random_inputs(graph)
    device_of_part = DEVICES[part]
    own = build_program(graph, device_of_part, inputs, {})
    cycles = []
    with tempfile.TemporaryDirectory(prefix="t2s-netlist-") as folder:
        model = netlist_model(graph, device_times(own), PARTS[part], Path(folder), 1800)
        for device, stalls in settings(device_of_part):
            program = build_program(graph, device, inputs, {})
            simulated = t2s.simulate(graph, inputs, device=device, stalls=stalls, progress=False)
            stalling = None if stalls is None else Stalling(seed=stalls.seed, one_in=stalls.one_in)
            found = model.run(device_times(program), inputs, {}, stalling=stalling, time_limit=600)
            cycles.append(simulated.cycles)
            for text in differences(found, simulated):
                yield f"{name} on {device.name}, {stalls}: {text}"
    print(f"{name:<32} cycles {', '.join(map(str, cycles))}", flush=True)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--part", choices=PARTS, default="ecp5-85k")
    arguments = parser.parse_args()
    wanted = [
        name
        for name in DESIGNS
        if arguments.all
        or (name.startswith(tuple(arguments.names)) if arguments.names else name in CHOSEN)
    ]
    different = [text for name in wanted for text in compared(name, arguments.part)]
    for text in different:
        print(text)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    runs = len(wanted) * len(settings(DEVICES[arguments.part]))
    print(
        f"{len(wanted)} designs, {runs} runs, {len(different)} differences, "
        f"{used.ru_utime + used.ru_stime:.0f} s of CPU"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
