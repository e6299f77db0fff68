"""``python -m benchmarks.fuseflow``: cycles of whole models beside those that FuseFlow publishes.

Runs all points whose published count is below ``--most`` cycles, and writes the table to README.md
in this folder.  Every other point is listed with its verdict.
"""

from __future__ import annotations

import argparse
import time
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.fuseflow.models import TEXTS, inputs, program
from benchmarks.fuseflow.published import Point, points

README = Path(__file__).parent / "README.md"

HEAD = """# Models of FuseFlow

Cycles of whole models beside those that FuseFlow publishes [FuseFlow, Figure 12], with random
graphs that have the nodes, entries and walks of the data sets. `python -m benchmarks.fuseflow`
writes this page.

Points marked *excluded* have counts that contradict others, for the reason given; they are no
measure of either simulator. Nothing here was fitted to any of them.

| model | data | fusion | published | here | ratio | verdict |
|---|---|---|---|---|---|---|
"""


def measured(point: Point) -> int:
    """The cycles of a point."""
    return program(point.model).fuse(point.fusion).cycles(_inputs(point.model, point.data))


@cache
def _inputs(model: str, data: str) -> dict[str, Any]:
    return inputs(model, data)


def row(point: Point, found: int | None) -> str:
    """A line of the table."""
    ours = "not run" if found is None else f"{found:,}"
    ratio = "" if found is None else f"{found / point.cycles:.3f}"
    verdict = f"{'*excluded*: ' if point.excluded else ''}{point.why}"
    return (
        f"| {point.model} | {point.data} | {point.fusion} | {point.cycles:,} | {ours} | {ratio} "
        f"| {verdict} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--most", type=float, default=2e8, help="published cycles of the points run"
    )
    parser.add_argument("--only", default="", help="a part of the names of the points to run")
    arguments = parser.parse_args()
    rows = []
    for point in points():
        runs = point.model in TEXTS and point.cycles <= arguments.most
        found = None
        if runs and arguments.only in point.name:
            began = time.process_time()
            found = measured(point)
            spent = time.process_time() - began
            print(
                f"{point.name:24}{found:16,}{found / point.cycles:8.3f}{spent:8.1f} s", flush=True
            )
        rows.append(row(point, found))
    if not arguments.only:
        README.write_text(HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
