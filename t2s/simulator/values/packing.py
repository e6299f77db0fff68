"""From the codes of firings to runs of equal ones (see ``program/codes.py``).

``pack`` is in the subset of Python that ``llvm/kernels`` compiles.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from t2s.core.ops import Array
from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument, Signed, Unsigned, Word
from t2s.simulator.program.codes import Codes, Runs, about_runs_of, most_in_run

_STRETCH = 1 << 18
_WORD = 8
_SHORT = 16
"""Runs that are shorter on average take more memory than their codes, or not much less."""


def runs_of_trace(trace: Array, length: int) -> Runs | None:
    """The first codes of a trace, of whole words, as runs; ``None`` if these are hardly shorter."""
    if _SHORT * about_runs_of(trace[:length]) > length:
        return None
    bits, state = 8 * trace.itemsize, np.zeros(2, np.int64)
    runs = np.empty(length // _SHORT, np.int32)
    most = most_in_run(bits)
    words = trace.view(np.uint64)
    written = _packing(runs, state, words, length, bits, bits, most)
    if written == len(runs):
        return None
    runs[written] = state[1] << bits | state[0]
    return runs[: written + 1].copy()


def runs_of_codes(codes: Codes) -> Runs:
    """The codes of a machine as runs."""
    none = np.zeros(0, np.int32)
    known = (p if p.dtype == np.int32 else packed(p, codes.bits) for p in codes.parts)
    return np.concatenate([none, *known])


def packed(codes: Array, bits: int) -> Runs:
    """The codes of firings as runs, ``count << bits | code``; several words for a long one."""
    found: list[Runs] = []
    runs, state = np.empty(_STRETCH + 2, np.int32), np.zeros(2, np.int64)
    most = most_in_run(bits)
    for begin in range(0, len(codes), _STRETCH):
        part = codes[begin : begin + _STRETCH]
        words = np.zeros(-(-part.nbytes // _WORD), np.uint64)
        words.view(codes.dtype)[: len(part)] = part
        written = _packing(runs, state, words, len(part), 8 * codes.itemsize, bits, most)
        found.append(runs[:written].copy())
    code, count = state.tolist()
    last = np.array([count << bits | code] if count else [], np.int32)
    return np.concatenate([*found, last])


def pack(
    runs: Runs,
    state: Signed,
    words: Unsigned,
    length: Word,
    width: Word,
    bits: Word,
    most: Word,
) -> Word:
    """Turn codes into runs of at most ``most`` firings; return how many runs are written.

    ``words`` holds ``length`` codes of ``width`` bits each, and a run has ``bits`` bits for its
    code.  ``state`` is the code that comes last, and how often so far, at most ``most`` times: its
    run is written when it ends.  Gives up when ``runs`` is full, which takes as many words as there
    are codes, and two.
    """
    code, count, written, number = state[0], state[1], np.int64(0), np.int64(0)
    lanes, shift = 64 // width, np.uint64(width)
    mask = (np.uint64(1) << shift) - np.uint64(1) if width < 64 else ~np.uint64(0)
    whole, end = length // lanes, -(-length // lanes)
    while number < end:
        same, begin = np.uint64(code) * (~np.uint64(0) // mask), number
        while number < whole and words[number] == same:
            number += 1
        count += (number - begin) * lanes
        if number == end:
            break
        word, left = words[number], min(lanes, length - number * lanes)
        while left > 0:
            following = np.int64(word & mask)
            if following != code:
                while count > 0:
                    if written == len(runs):
                        return written
                    part = min(count, most)
                    runs[written] = part << bits | code
                    written += 1
                    count -= part
                code = following
            word = word >> shift
            count += 1
            left -= 1
        number += 1
    while count > most and written < len(runs):
        runs[written] = most << bits | code
        written += 1
        count -= most
    state[0], state[1] = code, count
    return written


_packing = CompiledKernel(
    module="t2s.simulator.values.packing",
    name="pack",
    sources=(Path(__file__),),
    arguments=(
        *(Argument.INT32_ARRAY, Argument.INT64_ARRAY, Argument.UINT64_ARRAY),
        *(Argument.INT64,) * 4,
    ),
)
