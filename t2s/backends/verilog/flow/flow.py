"""The flow from a design to a bitstream: synthesis, place and route, packing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from time import perf_counter

from t2s.backends.base import DeviceTimes, Unsupported, refusal
from t2s.backends.verilog.data_types import identifier
from t2s.backends.verilog.emit import NAME, chip_files
from t2s.backends.verilog.flow.axi import LIBRARY as AXI_LIBRARY
from t2s.backends.verilog.flow.axi import AxiDesign, axi_design, narrowest_bus, not_by_masters
from t2s.backends.verilog.flow.board_top import LIBRARY as BOARD_LIBRARY
from t2s.backends.verilog.flow.board_top import TOP, board_top, pins_of
from t2s.backends.verilog.flow.families import BITSTREAM
from t2s.backends.verilog.flow.parts import Board, Part
from t2s.backends.verilog.flow.routing import Routed, place_and_route
from t2s.backends.verilog.flow.self_test import LIBRARY, memory_images, self_test, unsupported
from t2s.backends.verilog.flow.streams import LIBRARY as STREAMS_LIBRARY
from t2s.backends.verilog.flow.streams import (
    StreamedDesign,
    description,
    not_streamed,
    streamed_design,
)
from t2s.backends.verilog.flow.tiny_tapeout import LIBRARY as PINS_LIBRARY
from t2s.backends.verilog.flow.tiny_tapeout import pins_module
from t2s.backends.verilog.flow.toolchain import check_tools, run_tool, run_yosys
from t2s.backends.verilog.flow.wishbone import LIBRARY as SLAVE_LIBRARY
from t2s.backends.verilog.flow.wishbone import header, not_on_a_bus, wishbone_slave
from t2s.backends.verilog.machine_ranges import UNKNOWN, Ranges
from t2s.backends.verilog.technology import Technology, find_technology
from t2s.backends.verilog.top import Top, top_of
from t2s.backends.verilog.verilog_ast import print_modules
from t2s.core.ops import Array
from t2s.graph.graph import Graph

_LIBRARY = Path(__file__).parent / "library"
NETLIST = "netlist.json"


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a flow has made, and how long each of its steps took.

    ``names`` are those of the design in the files, ``cells`` the numbers of cells after synthesis
    by their kinds.  ``routed`` is ``None`` where no tool places and routes.
    """

    names: Top
    cells: Mapping[str, int]
    routed: Routed | None
    bitstream: str | None
    seconds: Mapping[str, float]


class Memory(Enum):
    """What is around a design: a self test in block RAM, memories behind a bus, or streams."""

    BRAM = "bram"
    WISHBONE = "wishbone"
    AXI_STREAM = "axi-stream"


@dataclass(frozen=True, kw_only=True)
class ChipJob:
    """What a chip is built of.

    ``arrays`` are the inputs and the outputs that are expected of them, by the names of a user's
    arrays, ``parameters`` the scalars.  ``ranges`` are those of machines.
    """

    graph: Graph
    times: DeviceTimes
    arrays: Mapping[str, Array]
    parameters: Mapping[str, Array]
    ranges: Ranges = field(default_factory=lambda: UNKNOWN)
    memory: Memory
    part: Part
    board: Board | None
    clock_mhz: float
    seed: int
    time_limit: float


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The files of a chip by name: those that Yosys reads, and all.  ``top`` is the top module."""

    names: Top
    top: str
    read: tuple[str, ...]
    files: Mapping[str, str]


def without_memory(graph: Graph, memory: Memory) -> list[Unsupported]:
    """Why a design has no such memory, with all reasons."""
    match memory:
        case Memory.BRAM:
            return unsupported(graph)
        case Memory.WISHBONE:
            return [*without_ports(graph), *not_on_a_bus(graph)]
        case Memory.AXI_STREAM:
            return without_ports(graph)


def without_ports(graph: Graph) -> list[Unsupported]:
    """Why the loads and stores of a design have no streams or masters of their own."""
    return unsupported(graph, machines=False)


def sources_of(job: ChipJob) -> Sources:
    """The files of a chip.

    Raises ``UnsupportedError`` for designs that have no self test.
    """
    if problems := without_memory(job.graph, job.memory):
        raise refusal(NAME, job.graph, problems)
    match job.memory:
        case Memory.WISHBONE:
            return _slave_sources(job)
        case Memory.AXI_STREAM:
            return _streamed_sources(job)
    technology = find_technology(job.part.technology)
    top = top_of(job.graph, job.times, technology, job.ranges)
    images = memory_images(job.graph, job.arrays)
    test = self_test(top, job.times, images, job.parameters)
    files = _with_border(job.graph, job.times, technology, LIBRARY, test.files, job.ranges)
    module = test.module
    if job.board is not None:
        files |= {name: _text(name) for name in BOARD_LIBRARY}
        files["board.sv"] = print_modules((board_top(job.board, test.module),))
        module = TOP
    read = tuple(files)
    files |= test.images
    if job.board is not None:
        assert job.part.family.tools is not None, "a board is for an FPGA with tools"
        name, written = job.part.family.tools.constraints
        files[name] = written(pins_of(job.board), job.board.clock_mhz)
    return Sources(names=top, top=module, read=read, files=files)


def _slave_sources(job: ChipJob) -> Sources:
    """The files of a chip behind a bus; ``NAME.h`` has the words of its tensors."""
    technology = find_technology(job.part.technology)
    top = top_of(job.graph, job.times, technology)
    slave = wishbone_slave(top, job.times, job.parameters)
    files = _with_border(job.graph, job.times, technology, SLAVE_LIBRARY, slave.files)
    read = tuple(files)
    name = identifier(job.graph.name)
    files[f"{name}.h"] = header(name, slave)
    return Sources(names=top, top=slave.module, read=read, files=files)


def _streamed_sources(job: ChipJob) -> Sources:
    """The files of a chip with streams; ``NAME.json`` has the order of their words."""
    streamed = with_streams(job.graph, job.times, job.parameters, job.part.family.technology)
    files = {**streamed.files, f"{identifier(job.graph.name)}.json": description(streamed.streams)}
    read = tuple(streamed.files)
    return Sources(names=streamed.names, top=streamed.module, read=read, files=files)


def with_streams(
    graph: Graph, times: DeviceTimes, parameters: Mapping[str, Array], technology: str
) -> StreamedDesign:
    """A design with streams, and all files that it needs.

    Raises ``UnsupportedError`` for what no list of words can say.
    """
    if problems := not_streamed(graph, parameters):
        raise refusal(NAME, graph, problems)
    made_of = find_technology(technology)
    streamed = streamed_design(top_of(graph, times, made_of), times, parameters)
    files = _with_border(graph, times, made_of, STREAMS_LIBRARY, streamed.files)
    return replace(streamed, files=files)


def with_masters(
    graph: Graph,
    times: DeviceTimes,
    parameters: Mapping[str, Array],
    technology: str,
    bus_bits: int | None = None,
) -> AxiDesign:
    """A design with masters of AXI4, and all files that it needs.

    Without ``bus_bits`` data are as wide as the words of the units, and 32 bits at least.  Raises
    ``UnsupportedError`` for tensors that no master copies; ``without_ports`` is for the rest.
    """
    wide = narrowest_bus(graph) if bus_bits is None else bus_bits
    if problems := not_by_masters(graph, wide):
        raise refusal(NAME, graph, problems)
    made_of = find_technology(technology)
    mastered = axi_design(top_of(graph, times, made_of), times, parameters, wide)
    files = _with_border(graph, times, made_of, AXI_LIBRARY, mastered.files)
    return replace(mastered, files=files)


def _with_border(
    graph: Graph,
    times: DeviceTimes,
    technology: Technology,
    library: Sequence[str],
    border: Mapping[str, str],
    ranges: Ranges = UNKNOWN,
) -> dict[str, str]:
    """The files of a chip, and of what is around it with its library."""
    return {
        **chip_files(graph, times, technology, ranges),
        **{name: _text(name) for name in library},
        **border,
    }


def with_pins(streamed: StreamedDesign) -> tuple[str, Mapping[str, str]]:
    """The module with the pins of Tiny Tapeout around a design with streams, and all files."""
    name = f"tt_um_{identifier(streamed.names.graph.name)}"
    pins = print_modules((pins_module(name, streamed),))
    library = {each: _text(each) for each in PINS_LIBRARY}
    return name, {**streamed.files, **library, "pins.sv": pins}


def build(job: ChipJob, folder: Path, begin: Callable[[str], None]) -> Built:
    """Run the flow in a folder; ``begin`` hears of each step."""
    tools = job.part.family.tools
    check_tools(["yosys"] if tools is None else ["yosys", tools.placer, tools.packer])
    seconds: dict[str, float] = {}

    def step(name: str) -> None:
        begin(name)
        seconds[name] = perf_counter()

    sources = sources_of(job)
    for name, text in sources.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    step("synthesis")
    run_yosys(synthesis_commands(job.part, sources), folder, job.time_limit)
    cells = _cells(json.loads(_json_of(folder / "cells.json")))
    routed, bitstream = None, None
    if tools is not None:
        step("place and route")
        routed = place_and_route(
            job.part,
            tools,
            NETLIST,
            folder,
            pins=job.board is not None,
            clock_mhz=job.clock_mhz,
            seed=job.seed,
            time_limit=job.time_limit,
        )
        step("bitstream")
        if job.board is not None:
            bitstream = f"{identifier(job.graph.name)}{tools.suffix}"
            packed = [bitstream if each == BITSTREAM else each for each in tools.packs]
            run_tool(tools.packer, [*job.part.packer_options, *packed], folder, job.time_limit)
    ends = [*list(seconds.values())[1:], perf_counter()]
    taken = {name: end - begun for (name, begun), end in zip(seconds.items(), ends, strict=True)}
    return Built(
        names=sources.names, cells=cells, routed=routed, bitstream=bitstream, seconds=taken
    )


def synthesis_commands(part: Part, sources: Sources) -> list[str]:
    """The passes of Yosys: a netlist of the cells of the part, and how many of each there are."""
    defines = " ".join(f"-D {name}" for name in part.family.defines)
    return [
        f"read_slang --top {sources.top} {defines} {' '.join(sources.read)}",
        *part.family.synthesis_of(sources.top),
        *part.family.afterwards,
        f"write_json {NETLIST}",
        "tee -q -o cells.json stat -json",
    ]


def _json_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return text[text.index("{") :]


def _cells(statistics: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, int]:
    found = statistics["design"]["num_cells_by_type"]
    return {name: int(count) for name, count in found.items()}


def _text(name: str) -> str:
    return (_LIBRARY / name).read_text(encoding="utf-8")
