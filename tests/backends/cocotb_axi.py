"""Runs inside of a simulator: memories and a master of cocotbext-axi around a kernel.

``KERNEL`` is a JSON file: the registers, the tensors with their addresses, and for every seed the
bytes before and after a run.  ``CYCLES`` are those of the design in each of them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiRamRead,
    AxiRamWrite,
    AxiReadBus,
    AxiWriteBus,
)

from tests.backends.cocotb_pauses import pauses


@cocotb.test()  # type: ignore[misc,untyped-decorator]
async def values_with_pauses(dut: Any) -> None:
    told = json.loads(Path(os.environ["KERNEL"]).read_text())
    cocotb.start_soon(Clock(dut.ap_clk, 10, "ns").start())
    reset = {"reset": dut.ap_rst_n, "reset_active_level": False}
    host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi_control"), dut.ap_clk, **reset)
    channels = {"host": host.write_if.aw_channel, "host data": host.write_if.w_channel}
    channels |= {"host answers": host.write_if.b_channel, "host reads": host.read_if.ar_channel}
    channels["host read"] = host.read_if.r_channel
    rams: dict[str, Any] = {}
    for name, tensor in told["tensors"].items():
        if tensor["read"]:
            bus = AxiReadBus.from_prefix(dut, tensor["port"])
            rams[name] = ram = AxiRamRead(bus, dut.ap_clk, size=2**16, **reset)
            ends = {"ar": ram.ar_channel, "r": ram.r_channel}
        else:
            bus = AxiWriteBus.from_prefix(dut, tensor["port"])
            rams[name] = ram = AxiRamWrite(bus, dut.ap_clk, size=2**16, **reset)
            ends = {"aw": ram.aw_channel, "w": ram.w_channel, "b": ram.b_channel}
        channels |= {f"{name} {channel}": end for channel, end in ends.items()}
    dut.ap_rst_n.value = 0
    await ClockCycles(dut.ap_clk, 4)
    dut.ap_rst_n.value = 1
    await ClockCycles(dut.ap_clk, 2)
    registers = told["registers"]
    for name, tensor in told["tensors"].items():
        await host.write_qword(registers[f"ADDRESS_{name}"], tensor["address"])
    for seed, run in enumerate(told["runs"]):
        for name, channel in channels.items():
            if seed:
                channel.set_pause_generator(pauses(f"{seed} {name}"))
        for name, tensor in told["tensors"].items():
            rams[name].write(tensor["address"], bytes(run["before"][name]))
        await host.write_dword(registers["CONTROL"], 1)
        while not await host.read_dword(registers["CONTROL"]) & 2:
            pass
        for name, tensor in told["tensors"].items():
            after = run["after"][name]
            assert list(rams[name].read(tensor["address"], len(after))) == after, (seed, name)
        assert await host.read_dword(registers["CYCLES"]) == int(os.environ["CYCLES"])
        assert await host.read_dword(registers["WRONG"]) == 0
