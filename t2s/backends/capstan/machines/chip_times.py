"""Capstan's clock and latencies: what no program and no data set changes.

Published are the clock of 1 GHz of every public configuration, 16 lanes, 6 stages of a compute
unit, queues of 16 vectors, and 4 at each input of a unit ([Stardust, sec. 8], and the
parameters of PIR, the public compiler for the chip).  The cycles of a
hop of the network, of an access to a memory unit, and of the way to a memory controller are not
published: they are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class CapstanTimes(Term):
    """Cycles and sizes of the chip.

    Attributes
    ----------
    lanes: words of a vector.
    stages: operations of a compute unit, one cycle each.
    queue_words: words in a queue: 16 vectors, or as many scalars as are in them.
    input_queue: vectors, or scalars, that wait at an input of a unit; scalars of a sparse DRAM that
        a port has asked for have their places there.
    hop: cycles from one unit to the next (ours).
    memory_access: cycles of a read of a memory unit (ours).
    dram_path: cycles between a unit and the DRAM, there and back together (ours): a hop to a memory
        controller and one from there to the channel of a burst, each way.
    block_buffers: blocks of one memory that are loaded or read at a time.
    burst_bytes: what a port of a sparse DRAM asks for in a cycle.
    bit_windows: windows of a bit vector that wait in front of a scanner: 4096 words.
    """

    lanes: int = 16
    stages: int = 6
    queue_words: int = 256
    input_queue: int = 4
    hop: int = 6
    memory_access: int = 3
    dram_path: int = 24
    block_buffers: int = 2
    burst_bytes: int = 64
    bit_windows: int = 256

    def room(self, lanes: int) -> int:
        """Tokens of so many lanes between two units: in the queue, at the input, on the links.

        A link to the queue and one from there move a token in a cycle each, so they have as many
        under way as they take cycles.
        """
        return self.queue_words // lanes + self.input_queue + 2 * self.hop

    @property
    def sizes(self) -> dict[str, int]:
        """What decides what units do; the others decide only when."""
        return {
            "lanes": self.lanes,
            "input_queue": self.input_queue,
            "block_buffers": self.block_buffers,
            "burst_bytes": self.burst_bytes,
        }


TIMES = CapstanTimes()
