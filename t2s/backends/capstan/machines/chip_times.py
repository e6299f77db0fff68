"""Capstan's clock, latencies and queue sizes.

The clock of 1 GHz, 16 lanes, 6 stages of a compute unit, queues of 16 vectors, and 4 at each input
of a unit are published ([Stardust, sec. 8], and the parameters of PIR, the public compiler for the
chip).  The latencies of a network hop, of an access to a memory unit, and of the path to a memory
controller are not published: they are our assumptions.
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
    queue_words: words in a queue: 16 vectors, or as many scalars as they hold.
    input_queue: vectors, or scalars, that an input of a unit buffers; a port reserves an entry for
        each scalar that it requests from a sparse DRAM.
    hop: cycles from one unit to the next (ours).
    memory_access: cycles of a read of a memory unit (ours).
    dram_path: cycles between a unit and the DRAM, there and back together (ours): a hop to a memory
        controller and one from there to the channel of a burst, each way.
    block_buffers: blocks of one memory that are loaded or read at the same time.
    burst_bytes: bytes that a port of a sparse DRAM requests in a cycle.
    bit_windows: windows of a bit vector that a scanner's queue holds: 4096 words.
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
        """The capacity of a channel of so many lanes: the queue, the input buffer, and the links.

        The links to and from the queue are pipelined, so each holds as many tokens as it takes
        cycles.
        """
        return self.queue_words // lanes + self.input_queue + 2 * self.hop

    @property
    def sizes(self) -> dict[str, int]:
        """The parameters that change what units do; the others change only when they do it."""
        return {
            "lanes": self.lanes,
            "input_queue": self.input_queue,
            "block_buffers": self.block_buffers,
            "burst_bytes": self.burst_bytes,
        }


TIMES = CapstanTimes()
