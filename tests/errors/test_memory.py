"""Errors about memories."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Var
from t2s.errors import UnsupportedError, UserError
from t2s.representation import structure
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import MEMORIES, Coordinate, Timing, Units
from t2s.simulator.values import machine_values
from tests.errors.refusal import refused
from tests.graph.machines import copying

DDR4 = MEMORIES["ddr4-2133"]
IDEAL = DEVICES["ideal"]


def test_unknown_name() -> None:
    with refused(
        """
        unknown memory 'ddr5'
          --> IDEAL.with_memory("ddr5")
          expected: one of ideal, ddr4-2133, ddr4-2133x2, ddr4-2133x4, hbm2e, hbm2e-1800, or a Dram
          given:    'ddr5'
          hint:     dataclasses.replace(MEMORIES['ddr4-2133'], ...) describes a variant
        """
    ):
        IDEAL.with_memory("ddr5")


def test_not_a_dram() -> None:
    with refused(
        """
        device 'ideal': memory is not a DRAM
          --> replace(IDEAL, memory=cast(Any, "hbm2e"))
          expected: a Dram, or None for constant latency and bandwidth
          given:    'hbm2e'
          hint:     device.with_memory('ddr4-2133') takes names
        """
    ):
        replace(IDEAL, memory=cast(Any, "hbm2e"))


def test_time_below_its_least() -> None:
    timing: Timing = replace(DDR4.timing, tRCD=0)
    with refused(
        """
        memory 'ddr4-2133': tRCD is out of range
          --> replace(DDR4, timing=timing)
          expected: an integer from 1 to 1048575
          given:    0
        """
    ):
        replace(DDR4, timing=timing)


def test_time_that_is_no_integer() -> None:
    half = replace(DDR4.timing, tWR=cast(Any, 7.5))
    with refused(
        """
        memory 'ddr4-2133': tWR is out of range
          --> replace(DDR4, timing=half)
          expected: an integer from 1 to 1048575
          given:    7.5
        """
    ):
        replace(DDR4, timing=half)


def test_no_request_at_all() -> None:
    with refused(
        """
        memory 'ddr4-2133': outstanding is out of range
          --> replace(DDR4, units=Units(outstanding=0))
          expected: an integer from 1 to 1048575
          given:    0
        """
    ):
        replace(DDR4, units=Units(outstanding=0))


def test_channels_that_are_no_power_of_two() -> None:
    with refused(
        """
        memory 'ddr4-2133': number of channels is out of range
          --> replace(DDR4, channels=3)
          expected: a power of two
          given:    3
        """
    ):
        replace(DDR4, channels=3)


def test_burst_without_bytes() -> None:
    with refused(
        """
        memory 'ddr4-2133': burst_bytes is out of range
          --> replace(DDR4, burst_bytes=0)
          expected: an integer from 1 to 1048575
          given:    0
        """
    ):
        replace(DDR4, burst_bytes=0)


def test_clock_that_stands() -> None:
    with refused(
        """
        memory 'ddr4-2133': clock_hz is out of range
          --> replace(DDR4, clock_hz=Fraction(0))
          expected: an integer or a Fraction from 1 to 1,000,000,000,000
          given:    Fraction(0, 1)
        """
    ):
        replace(DDR4, clock_hz=Fraction(0))


def test_mapping_that_misses_channels() -> None:
    with refused(
        """
        memory 'ddr4-2133': mapping is out of range
          --> replace(DDR4, channels=2)
          expected: 1 bits of channel for 2 of them
          given:    0 bits
        """
    ):
        replace(DDR4, channels=2)


def test_mapping_with_a_bit_too_many() -> None:
    longer = (*DDR4.mapping, (Coordinate.ROW, 1))
    with refused(
        """
        memory 'ddr4-2133': mapping is out of range
          --> replace(DDR4, mapping=longer)
          expected: 16 bits of row for 65536 of them
          given:    17 bits
        """
    ):
        replace(DDR4, mapping=longer)


def test_refresh_without_end() -> None:
    always = replace(DDR4.timing, tREFI=400)
    with refused(
        """
        memory 'ddr4-2133': tREFI is out of range
          --> replace(DDR4, timing=always)
          expected: more than 490 clocks, or 0 for no refresh
          given:    400
        """
    ):
        replace(DDR4, timing=always)


def test_clocks_without_a_simple_ratio() -> None:
    odd = replace(IDEAL, clock_hz=2_147_483_659)
    with refused(
        """
        the clocks of device 'ideal' and memory 'ddr4-2133' have no simple ratio
          --> odd.with_memory("ddr4-2133")
          expected: numerator and denominator below 2147483648
          given:    3200000000/6442450977
          hint:     round clock_hz to a multiple of 1000
        """
    ):
        odd.with_memory("ddr4-2133")


def test_tensors_that_do_not_fit() -> None:
    A, i, copied = ImageParam(Int(32), 1, name="A"), Var("i"), Func("copied")
    copied[i] = A[i]
    copied.bound(i, 0, 1 << 20)
    small = replace(DDR4, name="small", rows=16, mapping=(*DDR4.mapping[:-1], (Coordinate.ROW, 4)))
    with refused(
        """
        the tensors of 'copied' do not fit into memory 'small'
          --> A, i, copied = ImageParam(Int(32), 1, name="A"), Var("i"), Func("copied")
          expected: at most 2,097,152 bytes
          given:    8,388,608 bytes
          hint:     simulate a smaller problem, or describe a larger memory
        """
    ):
        t2s.cycles(copied, memory=small)


def test_hardware_with_a_dram() -> None:
    A, i, copied = ImageParam(Int(32), 1, name="A"), Var("i"), Func("copied")
    copied[i] = A[i]
    copied.bound(i, 0, 4)
    device = DEVICES["arria10"].with_memory("ddr4-2133")
    with refused(
        """
        device 'arria10' has a DRAM, which the testbench does not model
          --> t2s.verilate(copied, device=device)
          expected: memory of constant latency and bandwidth
          given:    memory 'ddr4-2133'
          hint:     verilate on device.with_memory('ideal'); t2s.cycles counts with a DRAM
        """,
        UnsupportedError,
    ):
        t2s.verilate(copied, device=device)


def test_machines_on_a_dram() -> None:
    """A graph that says that its arrays are on the chip would load and store for free."""
    kernel = t2s.sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
    arrays = {"A": np.eye(3, dtype=np.float32), "x": np.ones(3, np.float32)}
    graph = t2s.lower(kernel, arrays)
    with refused(
        """
        'scan_A_j' accesses 'A_crd1' on the chip, for which it needs no memory
          --> kernel = t2s.sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
          expected: inputs and outputs in memory 'ddr4-2133'
          given:    A_crd1: int32[any] on the chip
          hint:     simulate the design instead of its graph, or give its tensors MemorySpace.MEMORY
        """,
        UnsupportedError,
    ):
        t2s.simulate(
            graph,
            structure(kernel, arrays),
            device=DEVICES["arria10"].with_memory("ddr4-2133"),
        )


@pytest.mark.parametrize("engine", ["python", "native"])
def test_no_room_for_an_open_tensor(engine: str) -> None:
    small = replace(DDR4, rows=1, mapping=DDR4.mapping[:-1])
    with refused(
        """
        'x' of 'copying' does not fit into memory 'ddr4-2133'
          --> t2s.simulate(
          expected: at most 65,536 bytes, what all other tensors leave to it
          given:    more
          hint:     simulate a smaller problem, or describe a larger memory
        """,
        UserError,
    ):
        t2s.simulate(
            copying(),
            {"x": np.append(np.ones(20_000, np.int32), np.int32(0))},
            device=DEVICES["ideal"].with_memory(small),
            engine=engine,
        )


FIELDS: dict[str, list[object]] = {
    "name": [3, None, "", "a\nb"],
    "description": [3, None, "a\nb"],
    "rotate_banks": ["yes", 2, None],
    "timing": [None, 3, "x", replace],
    "units": [None, {}],
    "mapping": [None, 3, [], "abc", ((1, 2),), ((None, 2),), ((Coordinate.ROW, "1"),)],
    "clock_hz": [float("nan"), 1e9, True, "x", 10**400, Fraction(1, 10**300)],
    "burst_bytes": [True, 2.0, 10**30],
    "write_queue": [-1, 2.0, True, "x", 1 << 20],
    "read_queue": [-1, 2.0, True, "x", 1 << 20],
    "controllers": [-1, 2.0, True, "x", 1 << 20],
    "open_bursts": [-1, 2.0, True, "x", 1 << 20, 4],
    "write_batch": [1, -1, None],
    "burst_clocks": [True, 10**30, 1.5, None],
    "channels": [1.0, True, None, "2"],
    "rows": [-1, 2.0, 10**9, 1 << 60],
}


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_fields_of_another_kind(field: str) -> None:
    for value in FIELDS[field]:
        kind = f"memory .*{field.removesuffix('s')}s? is out of range"
        with pytest.raises(UserError, match=kind):
            replace(DDR4, **{field: value})


def test_a_write_batch_that_is_no_part_of_its_queue() -> None:
    with refused(
        """
        memory 'ddr4-2133': write_batch is out of range
          --> replace(DDR4, write_queue=8, write_batch=9)
          expected: an integer from 1 to the write_queue, 8
          given:    9
        """
    ):
        replace(DDR4, write_queue=8, write_batch=9)


@pytest.mark.parametrize("by", [-1, True, 2.0, "1", 10**9])
def test_pieces_of_a_mapping(by: object) -> None:
    (which, _), *others = DDR4.mapping
    with pytest.raises(UserError, match="mapping is out of range"):
        replace(DDR4, mapping=((which, by), *others))


def test_fields_of_numpy() -> None:
    """A description is plain Python afterwards, so that no arithmetic with it can wrap around."""
    found = replace(DDR4, rows=np.int32(DDR4.rows), timing=replace(DDR4.timing, CL=np.int8(15)))
    assert type(found.rows) is int
    assert type(found.timing.CL) is int


def test_too_many_addresses_of_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = copying()
    device = DEVICES["ideal"].with_memory("ddr4-2133")
    monkeypatch.setattr(machine_values, "MOST_ADDRESSES", 3)
    with refused(
        """
        'source' accesses memory too often to list its addresses
          --> t2s.simulate(graph, {"x": np.arange(9, -1, -1, np.int32)}, device=device)
          expected: at most 3 addresses of one machine array
          given:    more
          hint:     simulate a smaller problem, or with memory="ideal"
        """
    ):
        t2s.simulate(graph, {"x": np.arange(9, -1, -1, np.int32)}, device=device)
