"""Estimates of chips beside synthesis: ``python -m benchmarks.chip_estimates [NAME ...]``.

Each design is synthesized for an ECP5 as it is, without memories around it, and its cells are
counted.  The rules of the estimate were made after the designs of ``chip_designs``, and ``DRAWN``
and ``FLOATS`` of ``chip_estimate_designs``; those of ``CHECKED`` and ``FLOATS_CHECKED`` were
measured afterwards.  A name selects the designs that begin with it.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import t2s
from benchmarks.chip_designs import DESIGNS
from benchmarks.chip_estimate_designs import CHECKED, DRAWN, FLOATS, FLOATS_CHECKED
from t2s.backends.verilog.emit import chip_files
from t2s.backends.verilog.flow.parts import PARTS
from t2s.backends.verilog.flow.toolchain import run_yosys
from t2s.backends.verilog.technology import find_technology
from t2s.backends.verilog.top import top_of
from t2s.core.logic import Logic
from t2s.driver.device_times import device_times
from t2s.driver.logic import logic_of
from t2s.graph.graph import Graph
from t2s.simulator.devices import DEVICES
from t2s.simulator.program.build import build_program

PART = PARTS["ecp5-85k"]
DEVICE = DEVICES[PART.name]
SETS = (
    ("checked", CHECKED),
    ("drawn", DRAWN),
    ("known", DESIGNS),
    ("checked floats", FLOATS_CHECKED),
    ("floats", FLOATS),
)
COLUMNS = ("luts", "flip_flops", "carry_cells", "small_rams")


def estimated(graph: Graph) -> tuple[Logic, float]:
    """The estimate of a design, and the seconds of the processor that it took.

    What was done before has left its garbage behind, whose collection is not counted.
    """
    gc.collect()
    begun = time.process_time()
    logic = logic_of(build_program(graph, DEVICE, None, {}))
    assert logic is not None, graph.name
    return logic.total, time.process_time() - begun


def synthesized(graph: Graph) -> tuple[Logic, int]:
    """The cells of a design after synthesis, and its multipliers."""
    technology = find_technology(PART.technology)
    times = device_times(build_program(graph, DEVICE, None, {}))
    files = chip_files(graph, times, technology)
    top = top_of(graph, times, technology).chip
    with tempfile.TemporaryDirectory(prefix="t2s-estimate-") as temporary:
        folder = Path(temporary)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        read = f"read_slang --top {top} {' '.join(files)}"
        passes = [read, *PART.family.synthesis_of(top), "tee -q -o cells.json stat -json"]
        run_yosys(passes, folder, 900)
        text = (folder / "cells.json").read_text(encoding="utf-8")
    cells: Mapping[str, int] = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
    logic = Logic(
        luts=cells.get("LUT4", 0),
        flip_flops=cells.get("TRELLIS_FF", 0),
        carry_cells=cells.get("CCU2C", 0),
        small_rams=cells.get("TRELLIS_DPR16X4", 0),
    )
    return logic, cells.get("MULT18X18D", 0)


def main() -> None:
    """Print all designs, and the median and the worst error of each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    names = tuple(parser.parse_args().names)
    print("multipliers, ".rjust(43) + ", ".join(COLUMNS) + ": estimated / synthesized")
    for title, designs in SETS:
        errors: dict[str, list[float]] = {column: [] for column in COLUMNS}
        for name, make in designs.items():
            if names and not name.startswith(names):
                continue
            graph = t2s.lower(make())
            (estimate, seconds), (measured, multipliers) = estimated(graph), synthesized(graph)
            dsp_blocks = t2s.resources(graph, device=DEVICE).dsp_blocks
            line = f"{name:<33}  {dsp_blocks:>3} /{multipliers:>3}"
            for column in COLUMNS:
                guess, found = getattr(estimate, column), getattr(measured, column)
                error = (guess - found) / found if found else float(guess != 0)
                errors[column].append(error)
                line += f"  {guess:>5,} /{found:>6,} {error:>+6.1%}"
            print(f"{line}  {seconds * 1000:>4.0f} ms", flush=True)
        for column, found_errors in errors.items():
            if found_errors:
                sizes = sorted(map(abs, found_errors))
                median, worst = statistics.median(sizes), sizes[-1]
                print(f"{title}: {column} median {median:.1%}, worst {worst:.1%}")


if __name__ == "__main__":
    main()
