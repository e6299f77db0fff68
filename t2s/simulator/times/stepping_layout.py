"""The state of the code that steps through cycles, and what that code depends on."""

from __future__ import annotations

from dataclasses import dataclass

(
    CYCLE,
    QUIET,
    LONGEST,
    CHOOSING,
    STEADY,
    GROUPS,
    GROUP_COUNT,
    NODES,
    NODE_COUNT,
    SEEN,
    _,
    HELD,
    READY,
    CAPACITY,
    STALLS,
    MOVES,
    WINDOW,
    HISTORY,
    HISTORY_MASK,
    DELAYS,
    DELAY_COUNT,
) = range(21)
"""Words of the state: cycles done, how many of the last ones moved nothing, after how many that
will stay so; addresses and numbers of the records below; lanes of the nodes that have fired;
addresses of the counts (tokens and those under way; tokens; capacities), of the totals by lane, of
what moved in the cycles of a window; of what was put in the last cycles, and of the delays."""

STATE_WORDS = 21

CODE, ROWS = range(2)
"""Words of a choosing node: the address of its next code, and of the rows."""

GROUP_NODES = 4
"""Choosing nodes in a group; their words follow those of the lanes that they wait for first."""

FIRST, LAST, LANES = range(3)
"""Words of a node: cycles of its first and last firing, and the lanes that it uses."""

AWAKE = -(1 << 63)
"""A lane that is never full, in the last word: a group that waits for it is looked at."""

WINDOW_CYCLES = 255
"""Cycles until counts of eight bits are added to the totals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShape:
    """What the code depends on.

    Attributes
    ----------
    lanes: 32 or 64.
    count_bits: of the counts of tokens: 8, 16 or 32.
    delayed: whether some tokens take more than a cycle.
    choosing, steady: the nodes outside of groups.
    """

    lanes: int
    count_bits: int
    delayed: bool
    choosing: int
    steady: int

    @property
    def words(self) -> int:
        """Words for what is received and what is sent: with 32 lanes both are in one."""
        return self.lanes // 32
