"""The command: ``python -m benchmarks.hunt HUNT [--count N] [--seed S] [--keep FILE]``."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.hunt.choices import Choices
from benchmarks.hunt.run import HUNTS, Kind, kept, outcomes, shrunk, table, tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hunt", choices=HUNTS)
    parser.add_argument("--count", type=int, default=1000, help="cases in all")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=Path, help="a file of outcomes; a run goes on where it ended"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a case")
    parser.add_argument("--hardware", type=int, default=0, help="Verilator and emulator, one in N")
    parser.add_argument("--shrink", type=int, default=0, help="tries to make a failure small")
    parser.add_argument("--show", type=int, help="print one case and its verdict, and end")
    options = parser.parse_args()
    if options.show is not None:
        case, verdict = tried(
            options.hunt, Choices(f"{options.seed}:{options.show}"), options.hardware > 0
        )
        print(case, verdict.kind.value, verdict.detail, verdict.text, sep="\n")
        return int(verdict.kind.bad)
    found = kept(options.keep) if options.keep else []
    done = {outcome.number for outcome in found}
    numbers = (n for n in range(options.first, options.first + options.count) if n not in done)
    begun, shown = time.monotonic(), set()
    log = options.keep.open("a", encoding="utf-8") if options.keep else None
    for count, outcome in zip(
        itertools.count(1),
        outcomes(
            options.hunt,
            numbers,
            seed=options.seed,
            processes=options.processes,
            limit=options.limit,
            hardware_every=options.hardware,
        ),
        strict=False,
    ):
        found.append(outcome)
        if log is not None:
            log.write(json.dumps(asdict(outcome)) + "\n")
            log.flush()
        if Kind(outcome.kind).bad and (outcome.kind, outcome.detail) not in shown:
            shown.add((outcome.kind, outcome.detail))
            small = outcome
            if options.shrink:
                small = shrunk(
                    options.hunt,
                    outcome,
                    limit=options.limit,
                    hardware=options.hardware > 0,
                    tries=options.shrink,
                )
            print(f"\n=== case {outcome.number}: {outcome.kind}: {outcome.detail}")
            print(small.case, small.text, sep="\n", flush=True)
        if sys.stderr.isatty() and count % 20 == 0:
            rate = count / (time.monotonic() - begun)
            print(f"\r{len(found):,} cases, {rate:.1f}/s ", end="", file=sys.stderr, flush=True)
    print(f"\n{options.hunt}, seed {options.seed}: {len(found):,} cases")
    print(table(found))
    return int(any(Kind(outcome.kind).bad for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
