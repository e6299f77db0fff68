"""The interpreter of profile A against records of the public simulator, cycle by cycle.

A record is the number of a program of ``recorded_programs.py``, how many instructions fired in its
first cycles in all, and a digest of which one fired in each cycle in each PE, and of the memory.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from t2s.backends.cgra_tia.fabric import PUBLIC_CORE
from t2s.backends.cgra_tia.machine.profile_a import PublicArray, public_array
from t2s.backends.cgra_tia.text.parser import parse_programs
from tests.backends.cgra.recorded_programs import recorded_program

CYCLES = 121

RECORDS = [
    (39, 363, "38588e767a4c"),
    (105, 1093, "5e873d2c3386"),
    (115, 854, "a36b4a44574e"),
    (310, 726, "5ec0196aaf69"),
    (355, 848, "f4c3d8e154fa"),
    (452, 984, "3eded0707d51"),
    (515, 363, "c6232a82530b"),
    (521, 1464, "d7778d02c818"),
    (548, 847, "0a45b4ea146e"),
    (607, 1214, "81b760f56a42"),
    (635, 968, "21ac60787d43"),
    (733, 484, "aa5c74e6e257"),
    (760, 848, "04beaf513b4f"),
    (860, 726, "357350e2fba8"),
    (862, 484, "fbedaff24dd4"),
    (890, 1352, "3989f4e8f08b"),
    (962, 985, "8be3f06793f5"),
    (989, 363, "094073d78f9f"),
    (1070, 726, "4ba77e99aeb6"),
    (1087, 242, "7c68fc16c5f8"),
    (1132, 484, "cc3f5f7076f1"),
    (1185, 726, "56f5b1af815e"),
    (1196, 242, "9cfa560389e7"),
    (1324, 371, "cce5c255a51c"),
    (1327, 1094, "d3529a62a036"),
    (1348, 484, "12c3e7482dc4"),
    (1379, 242, "d454935d8b0d"),
    (1401, 121, "060a3714ae1a"),
    (1419, 121, "f748ff03d4db"),
    (1477, 121, "da5206686b7c"),
    (1478, 121, "808996e19272"),
    (1484, 242, "39932fd97299"),
    (1485, 121, "226a23e36628"),
    (1488, 121, "764d4011c2ee"),
    (1492, 121, "94a7cca0373e"),
    (1493, 121, "f3b94f082939"),
    (1495, 484, "21cc2c57f343"),
    (1497, 251, "ccee9e6d1277"),
]


def next_cycle(array: PublicArray, memory: list[int]) -> list[int]:
    """Which instruction each element fires; then links, ports and FIFOs, in this order."""
    fired = [element.step() for element in array.elements]
    for link in array.links:
        link.step()
    for read in array.reads:
        read.step(memory)
    for write in array.writes:
        write.step(memory)
    for fifo in array.changes:
        fifo.commit()
    array.changes.clear()
    return fired


@pytest.mark.parametrize(("seed", "firings", "digest"), RECORDS)
def test_every_cycle_is_that_of_the_public_simulator(seed: int, firings: int, digest: str) -> None:
    program = recorded_program(seed)
    core = replace(PUBLIC_CORE, channel_depth=program.depth)
    array = public_array(parse_programs(program.text, core), core, program.shape)
    memory = list(program.memory)
    fired = [number for _ in range(CYCLES) for number in next_cycle(array, memory)]
    text = "|".join(",".join(map(str, numbers)) for numbers in (fired, memory))
    assert sum(element.retired for element in array.elements) == firings
    assert sha256(text.encode()).hexdigest()[:12] == digest
