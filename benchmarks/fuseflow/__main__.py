"""``python -m benchmarks.fuseflow``: cycles of whole models beside those that FuseFlow publishes.

Runs the models, writes their counts to ``counts.json`` and the table to ``README.md``, both in this
folder.  Counts of points that do not run this time stay.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from benchmarks.fuseflow.models import BATCH, DENSITY_OF_IMAGES, copies
from benchmarks.fuseflow.published import IMAGES, LANES, Lanes, Point, points
from benchmarks.fuseflow.running import Result, run

README = Path(__file__).parent / "README.md"
COUNTS = Path(__file__).parent / "counts.json"

MOST = 2e11
"""Cycles of the largest programs that run: all but one, which repeats the digits of another."""

FAST = 3e8
"""The same for ``--fast``."""

HEAD = """# Models of FuseFlow

Cycles of whole models beside those that FuseFlow publishes [FuseFlow, Figure 12], with random
graphs and masks that have the nodes, entries, walks and blocks of the data sets. `python -m
benchmarks.fuseflow --jobs 2` runs the models, two at a time, and writes this page, `--fast` only
those below 3e8 cycles.

Points marked *excluded* have counts that contradict others, for the reason given; they are no
measure of either simulator. Nothing here was fitted to any of them. Counts of GPT-3 are twelve
times that of one decoder, since all twelve are equal.

| model | data | fusion | published | here | ratio | verdict |
|---|---|---|---|---|---|---|
"""

HEAD_OF_LANES = """
Attention of GPT-3 in one graph on its own, with copies of what is in its loops over rows and heads
[FuseFlow, Figure 15]: scores at all pairs, blocks of 64 in the mask.

| lanes for rows | lanes for heads | published | here | ratio |
|---|---|---|---|---|
"""


def size(point: Point | Lanes) -> float:
    """About how many cycles the program of a point takes."""
    if isinstance(point, Lanes):
        return point.cycles
    if point.model == "autoencoder":
        images = IMAGES[point.data]
        return 2 * BATCH * DENSITY_OF_IMAGES * images.pixels * images.hidden
    return point.cycles / copies(point.model)


def page(counts: Mapping[str, int]) -> str:
    """The table, with these counts by the names of points."""
    rows = [_row(point, counts.get(point.name)) for point in points()]
    lanes = [_row_of_lanes(point, counts.get(point.name)) for point in LANES]
    return HEAD + "".join(f"{row}\n" for row in rows) + HEAD_OF_LANES + "\n".join(lanes) + "\n"


def _row_of_lanes(point: Lanes, found: int | None) -> str:
    ours, ratio = _found(point, found, digits=5)
    return f"| {point.rows} | {point.heads} | {point.cycles:,} | {ours} | {ratio} |"


def _row(point: Point, found: int | None) -> str:
    ours, ratio = _found(point, found, digits=3)
    verdict = f"{'*excluded*: ' if point.excluded else ''}{point.why}"
    return (
        f"| {point.model} | {point.data} | {point.fusion} | {point.cycles:,} | {ours} | {ratio} "
        f"| {verdict} |"
    )


def _found(point: Point | Lanes, found: int | None, *, digits: int) -> tuple[str, str]:
    """Our count and its ratio to the published one."""
    if found is not None:
        return f"{found:,}", f"{found / point.cycles:.{digits}f}"
    return ("not run: more than 2e11 cycles" if size(point) > MOST else "not run"), ""


def stored_counts() -> dict[str, int]:
    """The counts of the last runs, by the names of points."""
    counts: dict[str, int] = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    return counts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fast", action="store_true", help="only the points below 3e8 cycles")
    parser.add_argument("--only", default="", help="a part of the names of the points to run")
    parser.add_argument("--jobs", type=int, default=1, help="points that run at the same time")
    arguments = parser.parse_args()
    most = FAST if arguments.fast else MOST
    counts = stored_counts()
    everything = [*points(), *LANES]
    wanted = [one for one in everything if size(one) <= most and arguments.only in one.name]
    wanted.sort(key=size, reverse=arguments.jobs > 1)  # the longest one is not the last to begin
    for point, found, spent, peak in results(wanted, arguments.jobs):
        counts[point.name] = found
        print(
            f"{point.name:30}{found:18,}{found / point.cycles:8.3f}{spent:8.1f} s, "
            f"at most {peak:.1f} GB so far",
            flush=True,
        )
        in_order = {one.name: counts[one.name] for one in everything if one.name in counts}
        COUNTS.write_text(json.dumps(in_order, indent=1) + "\n")
        README.write_text(page(counts))


def results(wanted: Sequence[Point | Lanes], jobs: int) -> Iterator[Result]:
    """What ``run`` returns, so many points at a time."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as processes:
        runs = [processes.submit(run, point) for point in wanted]
        for done in as_completed(runs):
            yield done.result()


if __name__ == "__main__":
    main()
