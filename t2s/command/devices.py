"""``t2s devices``: the devices and memories that designs are simulated on."""

from __future__ import annotations

from textwrap import fill

from rich.console import Console

from t2s.core.display import Table
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.memory.spec import MEMORIES

_WIDTH = 100


def devices() -> None:
    """List the devices and the memories with their properties."""
    console = Console(highlight=False)
    console.out(_devices().text())
    console.out()
    for name, device in DEVICES.items():
        text = f"{name}: {device.description}"
        console.out(fill(text, _WIDTH, subsequent_indent="  "))
    console.out(f"\n{_memories().text()}")
    console.out(
        "\n--device NAME and --memory NAME choose them; in Python device= and memory= take a "
        "Device and a Dram of your own."
    )


def _devices() -> Table:
    headers = ("device", "clock", "memory", "load", "store", "DSP blocks", "RAM blocks", "banks")
    return Table(
        title="devices (latencies of loads and stores in cycles)",
        headers=headers,
        rows=tuple(_row(device) for device in DEVICES.values()),
    )


def _row(device: Device) -> tuple[str, ...]:
    rate, banked = device.memory_bytes_per_second, device.banked
    return (
        device.name,
        f"{device.clock_hz / 1e6:g} MHz",
        "unlimited" if rate is None else f"{float(rate) / 1e9:g} GB/s",
        str(device.load_latency),
        str(device.store_latency),
        "-" if device.dsp_blocks is None else f"{device.dsp_blocks:,}",
        "-" if device.ram_blocks is None else f"{device.ram_blocks:,}",
        "-" if banked is None else f"{banked.ports} x {banked.banks}",
    )


def _memories() -> Table:
    rows = tuple(
        (name, f"{float(dram.peak_bytes_per_second) / 1e9:g} GB/s", f"{dram.line_bytes} bytes")
        for name, dram in MEMORIES.items()
    )
    return Table(
        title="memories in place of a device's own; ideal: constant latency and bandwidth",
        headers=("memory", "peak", "line"),
        rows=rows,
    )
