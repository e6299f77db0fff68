"""Twelve equal decoders beside one: ``python -m benchmarks.equal_decoders [--large]``.

Decoders of one structure, each with weights of its own, one after the other.  ``cycles`` times one,
and computes no values of the others, on which no cycle depends: at most 1.2 times that of one.
``simulate`` computes the values of all.  Seconds are those of a processor, the least of three runs
after one that compiles.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.fuseflow.models import (
    DECODER,
    FORMATS_OF_DECODERS,
    ORDERS_OF_DECODERS,
    STORED_OF_DECODERS,
    Decoder,
    inputs_of_decoder,
)
from t2s import sparse

COUNT = 12
MOST = 1.2
"""Times of one decoder that ``cycles`` of all may take."""

SMALL = Decoder(sequence=64, width=32, heads=2, inner=64), 8
LARGE = Decoder(sequence=256, width=128, heads=4, inner=512), 16
"""Decoders, and the blocks of their masks."""

SHARED = "M"


def _named(tensor: str, number: int) -> str:
    """A tensor of a decoder: the mask is that of all, and X the result of the one before."""
    if tensor == "X":
        return f"Y{number - 1}" if number > 1 else tensor
    return tensor if tensor == SHARED else f"{tensor}_{number}" if tensor != "Y" else f"Y{number}"


def decoders(count: int, fusion: str) -> sparse.Program:
    """Decoders one after the other, fused as those of the figure."""
    read = dict.fromkeys(re.findall(r"\b(b?[A-Z]\w*|b[12])\(", DECODER))
    text, formats, orders, stored = "", {SHARED: FORMATS_OF_DECODERS[SHARED]}, {}, []
    for number in range(1, count + 1):
        names = {tensor: _named(tensor, number) for tensor in read}
        text += re.sub(r"\b(b?[A-Z]\w*|b[12])\(", lambda m, n=names: f"{n[m[1]]}(", DECODER)
        formats |= {names[tensor]: form for tensor, form in FORMATS_OF_DECODERS.items()}
        orders |= {names[tensor]: order for tensor, order in ORDERS_OF_DECODERS.items()}
        stored += [names[tensor] for tensor in STORED_OF_DECODERS[fusion]]
        stored += [names["Y"]] if number < count else []
    made = sparse.program(text, formats=formats)
    for tensor, order in orders.items():
        made = made.schedule(tensor, f"reorder({order})")
    return (made.store(*stored) if stored else made).fuse(fusion)


def inputs(count: int, size: Decoder, block: int) -> dict[str, Any]:
    """Weights for each decoder, and a mask of a band and of the first blocks."""
    at = np.arange(size.sequence // block)
    kept = (abs(at[:, None] - at) <= 1) | (at < 1)
    one = inputs_of_decoder(size, np.kron(kept, np.ones((block, block), np.float32)))
    return {
        _named(tensor, number): value if number == 1 else value * np.float32(1 + number / 64)
        for number in range(1, count + 1)
        for tensor, value in one.items()
        if tensor != "X" or number == 1
    }


def seconds(run: Callable[[], object]) -> float:
    """Of a processor, the least of three runs."""
    found = []
    for _ in range(3):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def main(arguments: list[str]) -> int:
    """Print how many times one decoder all of them take; 1 if ``cycles`` take too many."""
    missed = 0
    for title, (size, block) in {"small": SMALL, "large": LARGE}.items():
        if title == "large" and "--large" not in arguments:
            continue
        for fusion in ("none", "layer"):
            taken: dict[str, list[float]] = {}
            for count in (1, COUNT):
                program, given = decoders(count, fusion), inputs(count, size, block)
                program.cycles(given)
                for verb in (program.cycles, program.simulate):
                    taken.setdefault(verb.__name__, []).append(seconds(partial(verb, given)))
            ratios = {verb: all_of_them / one for verb, (one, all_of_them) in taken.items()}
            missed += ratios["cycles"] > MOST
            shown = ", ".join(
                f"{verb} {taken[verb][0]:.3f} and {taken[verb][1]:.3f} s: {ratio:.2f} x"
                for verb, ratio in ratios.items()
            )
            print(f"{title:6}{fusion:6}1 and {COUNT} decoders: {shown}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
