"""Milliseconds in which tiles are found, beside their calls, and those that the largest tile makes.

A mapping has tiles where its condition does not hold of whole operands [Mosaic, sec. 6.3,
which asks for the largest tile].  Each search has 100 ms.
"""

from __future__ import annotations

import time
from math import prod

from t2s.capability.ir import parse_condition
from t2s.capability.tiles import tiles_of

LIMIT = 100.0
"""Milliseconds for a search."""

# a condition, extents, and the fewest calls
CASES: list[tuple[str, dict[str, int], int]] = [
    ("i == 8", {"i": 8}, 1),
    ("i == 8", {"i": 10}, 2),
    ("i == 8", {"i": 4}, 1),
    ("i*j < 65536", {"i": 256, "j": 255}, 1),
    ("i*j < 65536", {"i": 256, "j": 256}, 2),
    ("i*j < 65536", {"i": 1000, "j": 1000}, 16),
    ("i*j*k*l < 65536", {"i": 20, "j": 20, "k": 20, "l": 20}, 3),
    ("i*j*k < 65536", {"i": 100, "j": 70, "k": 50}, 6),
]
LARGEST = {"i*j < 65536 of 1000, 1000": 24, "i*j*k*l < 65536 of 20, 20, 20, 20": 8}


def main() -> None:
    print(f"{'condition':40} {'calls':>6} {'largest tile':>13} {'ms':>7} {'limit':>6}")
    for condition, extents, calls in CASES:
        parsed = parse_condition(condition)
        begun = time.process_time()
        found = tiles_of(parsed, extents)
        taken = 1e3 * (time.process_time() - begun)
        assert found is not None
        assert prod(tile.count for tile in found) == calls
        shown = f"{condition} of {', '.join(map(str, extents.values()))}"
        print(f"{shown:40} {calls:>6} {LARGEST.get(shown, '-'):>13} {taken:7.1f} {LIMIT:6.0f}")


if __name__ == "__main__":
    main()
