"""The emitted OpenCL of the workloads against the lines of a kernel file written by hand.

Counted is what an engineer writes for the same kernels, channels and loops, in the style of Intel's
examples: neither comments nor blank lines, one statement or brace a line, loops around a single
statement without braces.  By hand there is no ``FP_CONTRACT``, no ``loop_coalesce``, no memory
attribute, no helper for a dot product (OpenCL has ``dot``) or for a lane of a vector; wires between
PEs have one element more, so that no condition guards the last one.

The designs of ``test_opencl_text.py`` have their counts there.
"""

from __future__ import annotations

import pytest

from tests.backends.test_opencl_text import lines_of_code
from tests.conftest import GOLDEN

MOST = 1.5
"""Emitted lines for each line by hand."""


def head(structs: int, channels: int) -> int:
    """The extension for channels, then the structs and the channels."""
    return 1 + structs + channels


def unit(loops: int) -> int:
    """A load or store unit of one PE: attribute, signature, loops, one statement, brace."""
    return 2 + loops + 1 + 1


def store(loops: int, space: int) -> int:
    """A store unit of several PEs, or of lanes one by one, for each of which there are two lines.

    The read of the struct, the element, and braces for all loops in space but the innermost, for
    the loops in time and for the kernel.
    """
    return 2 + loops + 1 + 2 * space + 1 + (space - 1) + 2


def load(loops: int, space: int) -> int:
    """As a store unit, but the struct is declared first and written last."""
    return store(loops, space) + 1


def counters(nested: int) -> int:
    """Positions in a buffer whose sizes are not powers of two: declared, stepped, banks flipped."""
    return 2 + 3 * nested


BUFFER = 11
"""One PE: attributes and signature 3, buffer, loop, read into it 2, send 2, braces 2."""

BUFFERS = 19
"""A row of PEs: 5 as above, read 3, struct, loop in space 2, store 2, element, send 2, braces 3."""

SCATTERED = BUFFERS + 4
"""The row passes on what arrives: wires, the value, what goes on 1, and its condition 1."""

DRAIN = 20
"""Signature 3, loops in time 2, wires, loops in space 4, take from this PE or the one before 5,
pass on, send at the end 2, braces 2 (loops in space end where ``digit`` does)."""

COLLECT = 14
"""Signature 3, ``while``, vectors, loop in space 2, three statements, send, braces 3."""

ACCUMULATE = 7
"""The sum, its shift register 3 and newest element, and the condition and send of a result."""


def array(loops: int, reads: int, wires: int, body: int = ACCUMULATE, *, forever: bool) -> int:
    """A grid of PEs with one file of partial sums.

    Signature 3 (2 with arguments), partial sums, ``while``, loops in time, reads; for each wire its
    declaration, the value and what goes on; loops in space 4, the body, and braces 4.
    """
    return 3 + 1 + forever + loops + reads + 3 * wires + 4 + body + 4


BY_HAND = {
    "systolic_gemm": head(1, 7)
    + 2 * (unit(6) + SCATTERED)
    + array(4, 2, 2, forever=True)
    + (DRAIN + COLLECT + unit(5)),
    "capsule": head(1, 7)
    + (unit(7) + SCATTERED + unit(6) + SCATTERED)
    + array(6, 2, 2, forever=True)
    + (DRAIN + COLLECT + unit(5)),
    "convolution": head(1, 7)
    + 2 * (unit(6) + SCATTERED + counters(2))
    + array(5, 2, 2, forever=True)
    + (DRAIN + COLLECT + unit(4)),
    "mttkrp": head(4, 9)
    + (unit(5) + unit(4) + unit(5) + 3 * (SCATTERED + counters(2)))
    + array(4, 3, 3, forever=True)
    + (DRAIN + COLLECT + store(4, 1)),
    "ttm": head(3, 7)
    + (unit(5) + SCATTERED + unit(4) + SCATTERED + counters(2))
    + array(4, 2, 2, forever=True)
    + (DRAIN + COLLECT + store(5, 1)),
    "ttmc": head(3, 9)
    + (unit(4) + BUFFER + counters(2))
    + (unit(3) + SCATTERED + counters(1))
    + (unit(5) + SCATTERED + counters(2))
    + array(4, 3, 4, forever=True)
    + (DRAIN + COLLECT + store(4, 1)),
    # C: arguments instead of autorun; C_in is read at the first step 3, and sent as a struct 1 + 1.
    "syrk": head(2, 6)
    + 2 * (load(3, 1) + BUFFERS)
    + (load(3, 2) + array(4, 2, 2, ACCUMULATE + 3 + 1, forever=False) + store(3, 2)),
    # A_out: signature 2, loops 3, reads 3, result, wire, space 2, body 3, send, braces 3 less 1.
    "ger": head(2, 6)
    + (load(3, 1) + load(2, 1) + BUFFERS + unit(2) + BUFFER)
    + (2 + 3 + 3 + 1 + 1 + 2 + 3 + 1 + 2)
    + store(3, 1),
    # y: signature 2, sums, loops 3, reads 2 + 3, result, wire 3, space 2, sum 6, send 3, braces 3.
    "gbmv": head(2, 5)
    + (load(3, 1) + unit(2) + BUFFER + load(2, 1))
    + (2 + 1 + 3 + 5 + 1 + 3 + 2 + 6 + 3 + 3)
    + store(2, 1),
    # Z: signature 3, state, while, loop, read, result, wires 3, space 4, condition, five members,
    # state, wires 3, result 2, send, braces 5.
    "lu": head(1, 2)
    + load(2, 1)
    + (3 + 1 + 1 + 1 + 1 + 1 + 3 + 4 + 1 + 5 + 1 + 3 + 2 + 1 + 5)
    + store(2, 1),
    # L_loader has no loop in time.  SL: as Z of lu, two members, and L is read once 2.
    "trsm": head(1, 3)
    + (load(1, 1) + 8)
    + (3 + 1 + 1 + 1 + 1 + 3 + 4 + 1 + 2 + 2 + 3 + 2 + 1 + 5)
    + store(1, 1),
    # S: signature 3, state 4, FIFOs and their ends 3, while, loops 2, read 3, nine members,
    # state 4, to the FIFOs 5, from them 2, results 4, braces 2.  R_unloader has a condition.
    "qr": head(0, 3)
    + unit(2)
    + (3 + 4 + 3 + 1 + 2 + 3 + 9 + 4 + 5 + 2 + 4 + 2)
    + (unit(3) + 1)
    + unit(2),
    # x_loader: a PE for each x, under a condition.  Z: signature 3, state 3, loop, space 2, when
    # the PE is at work 1, reads 6, three members, moving on 5, result 2, braces 4.
    "convolution_1d": head(0, 3)
    + (2 + 1 + 2 + 2 + 2)
    + unit(1)
    + (3 + 3 + 1 + 2 + 1 + 6 + 3 + 5 + 2 + 4)
    + 6,
    # Sum: signature 3, state 10, loops 2, space 4, when it is at work 1, reads 6, coordinates 2,
    # four members, least of a row 6, best 7, moving on 3, results 5, braces 3, shift 6, braces 2;
    # coordinates by counters, without division.
    "block_matching": head(0, 5)
    + (2 + 2 + 4 + 1 + 3)
    + (2 + 3 + 4 + 1 + 2 + 2)
    + (3 + 10 + 2 + 4 + 1 + 6 + 2 + 4 + 6 + 7 + 3 + 5 + 3 + 6 + 2)
    + 3 * unit(2),
    # Seven parameters of rows with a buffer for each (shorter by the two lines of ``arrives``),
    # zeta without, haplotypes and lengths.  M: signature 3, columns kept 6, loops 2, reads 9, ten
    # wires 30, length 2, planes 4, columns taken 6, space 4, five members, Last 2, planes 4,
    # result 2, braces 2, columns kept 6 and shifted 9, send 2, braces 2.
    "pairhmm": head(2, 19)
    + 7 * (load(2, 1) + BUFFERS - 2)
    + (unit(2) + 5 + load(2, 1) + unit(1))
    + (3 + 6 + 2 + 9 + 30 + 2 + 4 + 6 + 4 + 5 + 2 + 4 + 2 + 2 + 6 + 9 + 2 + 2)
    + unit(1),
}
"""Lines by hand: the head, what loads and feeds, what computes, what drains and stores."""

COUNTED_ELSEWHERE = {
    "double_buffer",
    "gemm",
    "scatter_gather",
    "serial_feeder",
    "through_memory",
    "triangular_array",
}


MACHINES = {"cisr_decoder", "merging"}
"""State machines, and no workloads: ``test_opencl_machines.py`` has them."""


def test_every_golden_file_is_counted() -> None:
    files = {path.stem for path in (GOLDEN / "opencl_fpga").glob("*.cl")}
    assert files - MACHINES == {*BY_HAND, *COUNTED_ELSEWHERE}


@pytest.mark.parametrize("name", BY_HAND)
def test_not_much_longer_than_by_hand(name: str) -> None:
    emitted = lines_of_code((GOLDEN / "opencl_fpga" / f"{name}.cl").read_text(encoding="utf-8"))
    assert emitted <= MOST * BY_HAND[name]


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand_is_not_counted_too_long(name: str) -> None:
    """A count above what is emitted would say nothing: a person is not longer than the compiler."""
    emitted = lines_of_code((GOLDEN / "opencl_fpga" / f"{name}.cl").read_text(encoding="utf-8"))
    assert BY_HAND[name] < emitted
