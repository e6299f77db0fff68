"""Pauses of what is around a design, inside of a simulator."""

from __future__ import annotations

import random
from collections.abc import Iterator


def pauses(seed: str) -> Iterator[bool]:
    """Whether an end of a channel or stream pauses, cycle by cycle."""
    drawn = random.Random(seed)
    one_in = drawn.choice((2, 3, 5))
    while True:
        yield drawn.randrange(one_in) == 0
