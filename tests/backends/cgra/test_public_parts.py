"""Nests of addresses, states as predicates, and room in a PE: the parts of compiled designs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2s.backends.cgra_tia.lower.process import TokenStream
from t2s.backends.cgra_tia.profile_a.control import END
from t2s.backends.cgra_tia.profile_a.threads import (
    WORD_MASK,
    AddressLoop,
    AddressWire,
    HeadOf,
    NoRoom,
    PublicThread,
    StateCodes,
    TaggedAddress,
    ThreadRegister,
    ToTest,
    ToWires,
    address_thread,
    check_room,
    moving_thread,
    rolled,
    unrolled,
    unrolled_nests,
)
from t2s.backends.cgra_tia.program import Opcode

STREAM = TokenStream(array="loads")


@st.composite
def nests(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Addresses of a nest of loops, tags that depend on some of them, and lanes."""
    extents = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    lanes = draw(st.integers(1, 2))
    strides = [[draw(st.integers(-3, 9)) for _ in extents] for _ in range(lanes)]
    chosen = draw(st.integers(0, len(extents) - 1))
    addresses, tags, of = [], [], []
    for point in np.ndindex(*extents):
        for lane in range(lanes):
            addresses.append(100 + 50 * lane + int(np.dot(point, strides[lane])))
            tags.append(int(point[chosen] == extents[chosen] - 1))
            of.append(lane)
    return addresses, tags, of


@given(nests())
def test_nests_are_found_and_have_the_same_addresses(
    nest: tuple[list[int], list[int], list[int]],
) -> None:
    found = rolled(*map(np.array, nest))
    expected = [TaggedAddress(*each) for each in zip(*nest, strict=True)]
    assert list(unrolled(found)) == expected
    for more in unrolled_nests(found):
        assert list(unrolled(more)) == expected


def test_a_matrix_is_a_few_loops() -> None:
    rows = np.array([4 * i + k for i in range(8) for _ in range(3) for k in range(4)])
    tags = np.array([int(k == 3) for _ in range(24) for k in range(4)])
    row = (AddressLoop(3, (1,), (TaggedAddress(0, 0),)), TaggedAddress(3, 1))
    assert rolled(rows, tags) == (AddressLoop(8, (4,), (AddressLoop(3, (0,), row),)),)


@given(nests(), st.integers(0, 8), st.booleans())
def test_threads_send_the_addresses_of_their_nests(
    nest: tuple[list[int], list[int], list[int]], which: int, ends: bool
) -> None:
    items = list(unrolled_nests(rolled(*map(np.array, nest))))[which]
    thread = address_thread(AddressWire(STREAM), items, sends_end=ends, comment="")
    sent, firings = _stepped(thread)
    expected = [(address.address, address.tag) for address in unrolled(items)]
    assert sent == [*expected, (0, END)] if ends else expected
    assert firings == thread.firings


def _stepped(thread: PublicThread) -> tuple[list[tuple[int, int]], int]:
    """What a thread of addresses sends, word and tag, and how often it fires."""
    state, test, firings = 0, False, 0
    registers = dict(thread.slots)
    sent: list[tuple[int, int]] = []
    while state != thread.done:
        (step,) = (s for s in thread.steps if s.state == state and s.test in (None, test))
        words = [
            registers[part] if isinstance(part, ThreadRegister) else part.pattern
            for part in step.operands
            if not isinstance(part, HeadOf)
        ]
        match step.opcode:
            case Opcode.ADD:
                result = words[0] + words[1] & WORD_MASK
            case Opcode.SUB:
                result = words[0] - words[1] & WORD_MASK
            case Opcode.EQ:
                result = int(words[0] == words[1])
            case Opcode.MOV:
                result = words[0]
            case _:
                result = 0
        match step.target:
            case ToWires(tag=tag):
                sent.append((result, tag))
            case ThreadRegister() as register:
                registers[register] = result
            case ToTest():
                test = bool(result)
        if not isinstance(step.target, ToTest):
            test = False
        state, firings = step.next, firings + 1
    return sent, firings


def test_states_have_codes_of_their_own() -> None:
    items = (AddressLoop(3, (5,), (AddressLoop(4, (1,), (TaggedAddress(0, 0),)),)),)
    thread = address_thread(AddressWire(STREAM), items, sends_end=True, comment="")
    codes = StateCodes.of_thread(thread)
    assert codes.code[0] == 0
    used: list[int] = []
    for state, code in codes.code.items():
        used += [code, code | codes.test] if state in codes.tested else [code]
    assert len(set(used)) == len(used)
    assert max(used) < 1 << codes.width


def test_room_is_counted() -> None:
    thread = moving_thread(STREAM, (0, 1, 2), tokens=5, hands_on_end=True, comment="")
    check_room([thread] * 3)
    with pytest.raises(NoRoom, match=r"17 instructions \(mover of loads, .*\), and it has 16"):
        check_room([thread] * 4)
