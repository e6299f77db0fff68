"""Place and route: what nextpnr reports of area, speed and the slowest path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from t2s.backends.verilog.flow.families import Counted, Tools
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


def counted(used: Mapping[str, int], cells: Counted) -> int:
    """How many of some kind of cell are used, as that kind is counted."""
    return ceil(sum(used.get(name, 0) * weight for name, weight in cells.items()))


def place_and_route(
    part: Part,
    tools: Tools,
    netlist: str,
    folder: Path,
    *,
    pins: bool,
    clock_mhz: float,
    seed: int,
    time_limit: float,
) -> Routed:
    """Place and route a netlist in a folder, which gets the result and ``report.json``.

    ``pins`` says whether the file of constraints is there.  A design that misses its
    clock is routed all the same.
    """
    placed = tools.constrained if pins else tools.unconstrained or ()
    arguments = [*part.options, "--json", netlist, *placed, *tools.routed]
    arguments += ["--report", "report.json", "--freq", f"{clock_mhz:g}", "--seed", str(seed)]
    arguments += ["--timing-allow-fail", "--quiet"]
    run_tool(tools.placer, arguments, folder, time_limit)
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
