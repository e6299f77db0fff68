"""Place and route: what nextpnr reports of area, speed and the slowest path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2s.backends.verilog.flow.parts import Part
from t2s.backends.verilog.flow.toolchain import run_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A part of a path: what it goes through, and nanoseconds.

    ``cell`` is the hierarchical name of a cell, ``wire`` says whether this is the way to it.
    """

    cell: str
    wire: bool
    nanoseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A placed and routed design.

    ``used`` has the numbers of cells by their kinds, ``slowest`` the path that limits the clock.
    """

    fmax_mhz: float
    used: Mapping[str, int]
    slowest: tuple[Hop, ...]


def place_and_route(
    part: Part,
    netlist: str,
    constraints: str | None,
    folder: Path,
    *,
    clock_mhz: float,
    seed: int,
    time_limit: float,
) -> Routed:
    """Place and route a netlist in a folder, which gets ``routed.config`` and ``report.json``.

    A design that misses its clock is routed all the same.
    """
    pins = ["--lpf-allow-unconstrained"] if constraints is None else ["--lpf", constraints]
    arguments = [*part.options, "--json", netlist, *pins, "--textcfg", "routed.config"]
    arguments += ["--report", "report.json", "--freq", f"{clock_mhz:g}", "--seed", str(seed)]
    arguments += ["--timing-allow-fail", "--quiet"]
    run_tool(part.router, arguments, folder, time_limit)
    return read_report(json.loads((folder / "report.json").read_text(encoding="utf-8")))


def read_report(report: Mapping[str, Any]) -> Routed:
    """What a report of nextpnr says of the clock of the design."""
    clocks = {name: each["achieved"] for name, each in report["fmax"].items()}
    slowest = min(clocks, key=lambda name: clocks[name])
    paths = [
        path
        for path in report["critical_paths"]
        if path["from"] == path["to"] and path["from"].endswith(slowest)
    ]
    return Routed(
        fmax_mhz=float(clocks[slowest]),
        used={name: int(each["used"]) for name, each in report["utilization"].items()},
        slowest=tuple(_hops(paths[0]["path"])) if paths else (),
    )


def _hops(path: list[Mapping[str, Any]]) -> Iterator[Hop]:
    for part in path:
        yield Hop(
            cell=part["to"]["cell"],
            wire=part["type"] == "routing",
            nanoseconds=float(part["delay"]),
        )
