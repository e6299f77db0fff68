"""Runs inside of a simulator: sources and sinks of cocotbext-axi around a design with streams.

``STREAMS`` is the JSON file of the streams, ``WORDS`` one with the packets of each stream for
every seed, and ``CYCLES`` those of a run without pauses.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from tests.backends.cocotb_pauses import pauses


@cocotb.test()  # type: ignore[misc,untyped-decorator]
async def values_with_pauses(dut: Any) -> None:
    streams = json.loads(Path(os.environ["STREAMS"]).read_text())
    seeds = json.loads(Path(os.environ["WORDS"]).read_text())
    cocotb.start_soon(Clock(dut.clock, 10, "ns").start())
    ends: dict[str, Any] = {}
    for name, stream in streams.items():
        kind = AxiStreamSource if stream["direction"] == "to the design" else AxiStreamSink
        ends[name] = kind(AxiStreamBus.from_prefix(dut, name), dut.clock, dut.reset)
    dut.reset.value = 1
    await ClockCycles(dut.clock, 4)
    dut.reset.value = 0
    for seed, packets in enumerate(seeds):
        for name, end in ends.items():
            if seed:
                end.set_pause_generator(pauses(f"{seed} {name}"))
        for name, end in ends.items():
            if streams[name]["direction"] == "to the design":
                await end.send(AxiStreamFrame(bytes(packets[name])))
        for name, end in ends.items():
            if streams[name]["direction"] != "to the design":
                frame = await end.recv()
                assert list(frame.tdata) == packets[name], (seed, name)
        if not seed:
            await ClockCycles(dut.clock, 100)
            assert int(dut.cycles.value) == int(os.environ["CYCLES"])
