"""Pseudo-random stalls of the units that access memory: the same in every engine and backend.

Real memory is sometimes late: refreshes, other traffic, clock domain crossings.  A design is robust
if such stalls change only its cycle count.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int

WORD = 0xFFFFFFFF
"""All arithmetic of the hash is modulo 2**32."""

SEED_FACTOR, INSTANCE_FACTOR, CYCLE_FACTOR = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35
FIRST_MIX, SECOND_MIX = 0x7FEB352D, 0x846CA68B


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomStalls:
    """Stalls of load and store units, in about one of every ``one_in`` cycles.

    When ``holds`` is true a PE of a node that loads or stores does not fire; if its channels would
    have allowed it, the cycle counts as waiting for memory.  The stalls depend only on ``seed``,
    and are the same in every engine.

    Attributes
    ----------
    seed: 0 to 2**32 - 1; another seed stalls in other cycles.
    one_in: 2 (stalled half of the time) to 2**31 - 1.
    """

    seed: int = 1
    one_in: int = 8

    def __post_init__(self) -> None:
        for what, value, least, most in (
            ("seed", self.seed, 0, WORD),
            ("one_in", self.one_in, 2, 2**31 - 1),
        ):
            number = as_int(value)
            if number is None or not least <= number <= most:
                raise UserError(
                    f"RandomStalls: {what} is out of range",
                    location=user_location(),
                    expected=f"an integer from {least} to {most}",
                    given=repr(value),
                )
            object.__setattr__(self, what, number)

    def holds(self, instance: int, cycle: int) -> bool:
        """Whether the PE with this number, in program order, is stalled in a cycle, from 1."""
        mixed = self.seed * SEED_FACTOR + instance * INSTANCE_FACTOR + cycle * CYCLE_FACTOR
        mixed &= WORD
        mixed ^= mixed >> 16
        mixed = mixed * FIRST_MIX & WORD
        mixed ^= mixed >> 15
        mixed = mixed * SECOND_MIX & WORD
        mixed ^= mixed >> 16
        return mixed % self.one_in == 0


def check_stalls(stalls: object) -> RandomStalls | None:
    """The value of ``stalls=``; ``UserError`` unless it is a ``RandomStalls`` or ``None``."""
    if stalls is None or isinstance(stalls, RandomStalls):
        return stalls
    raise UserError(
        "stalls= must be a t2s.RandomStalls",
        location=user_location(),
        expected="t2s.RandomStalls(seed=1, one_in=8), or None",
        given=repr(stalls),
    )
