"""The verb ``synthesize``: a design as a chip, with open tools, and what is known of it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import user_location
from t2s.core.progress import ProgressBar
from t2s.core.validate import as_int, checked_folder, checked_seconds
from t2s.driver.built_for import (
    BuiltFor,
    built_for,
    check_inputs,
    placed,
)
from t2s.driver.chip_run import chip_run, chip_stage, megahertz, with_own_memory
from t2s.driver.device_times import device_times
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.graph import Graph

if TYPE_CHECKING:
    from t2s.backends.base import DeviceTimes
    from t2s.backends.verilog.flow.critical import CriticalPath
    from t2s.backends.verilog.flow.flow import Memory
    from t2s.backends.verilog.flow.parts import Board, Part
    from t2s.backends.verilog.verilator import HardwareModel, HardwareResult
    from t2s.report.logic import ChipLogic
    from t2s.simulator.devices import Device
    from t2s.simulator.random_stalls import RandomStalls
    from t2s.simulator.report.result import SimResult

MEMORIES = ("bram", "wishbone", "axi-stream")
_OF_HOSTS = {"wishbone": "a slave of a bus has", "axi-stream": "streams have"}

_NOT_PLACED = (
    "no tool of the flow places it; Vivado takes the SystemVerilog in the folder, and "
    "t2s.chips.rtl_kernel makes a kernel"
)

_LEAST_SHARE = 0.75
"""What a design takes of an estimate of its logic at least."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The netlist of a chip beside the simulator, on the same inputs.

    ``differences`` are in words; there are none if cycles, firings, their first and last cycles,
    and outputs are the same.
    """

    netlist: HardwareResult
    simulated: SimResult
    differences: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def __str__(self) -> str:
        if self.equal:
            return f"the netlist does what the simulator says: {self.simulated.cycles:,} cycles"
        return "\n".join(("the netlist differs from the simulator:", *self.differences))


@dataclass(frozen=True, kw_only=True, repr=False)
class Chip:
    """A design as cells of an FPGA, placed and routed, with a self test around it.

    Attributes
    ----------
    name, part, board: the design, the FPGA, and the board or ``None``.
    luts, flip_flops, dsps, rams: used of the FPGA after routing: LUTs of four inputs (with those of
        carry chains and small memories), flip-flops, multipliers, block RAMs.  Of a part of AMD,
        which no tool of the flow places, after synthesis, and LUTs of six inputs.
    cells: cells after synthesis, by their kinds in the library of the vendor.
    clock_mhz, fmax_mhz: the clock that was asked for, and the fastest one that the tools promise.
    critical: the path that limits it.  Both are ``None`` for a part of AMD.
    run: a run of the self test, in the simulator.
    estimate: the logic and the clock of the design by itself, as ``t2s.resources`` has them; what
        is around it is not in them.  ``None`` where they are not estimated.
    seconds: of each step of the flow, as time passed.
    directory: the folder with all files; ``bitstream`` is the one for the board, if there is one.
    """

    name: str
    graph: Graph
    device: Device
    part: Part
    board: Board | None
    luts: int
    flip_flops: int
    dsps: int
    rams: int
    cells: Mapping[str, int]
    clock_mhz: float
    fmax_mhz: float | None
    critical: CriticalPath | None
    run: SimResult
    estimate: ChipLogic | None
    seconds: Mapping[str, float]
    directory: Path
    bitstream: Path | None
    time_limit: float
    built_for: BuiltFor

    @property
    def cycles(self) -> int:
        """Of the run, as the simulator counts them and the self test shows them."""
        return self.run.cycles

    @cached_property
    def times(self) -> DeviceTimes:
        """The times that it is built with."""
        return device_times(self.run.program)

    @property
    def meets_clock(self) -> bool:
        """Whether the tools promise the clock that was asked for."""
        return self.fmax_mhz is not None and self.fmax_mhz >= self.clock_mhz

    def __repr__(self) -> str:
        clock = "not routed" if self.fmax_mhz is None else f"{self.fmax_mhz:.0f} MHz"
        return f"<Chip {self.name} on {self.part.name}: {clock}>"

    def __str__(self) -> str:
        part = self.part
        rows = [
            ("LUTs", self.luts, part.luts),
            ("flip-flops", self.flip_flops, part.flip_flops),
            *((("multipliers", self.dsps, part.dsps),) if part.dsps else ()),
            ("block RAMs", self.rams, part.rams),
        ]
        lines = [f"{self.name} on {part.name if self.board is None else self.board.description}"]
        lines += [f"  {what:<12}{used:>8,} of {there:,}" for what, used, there in rows]
        if self.estimate is not None:
            logic = self.estimate.total
            lines.append(
                f"  estimate    {logic.lut_places:>8,} LUTs and {logic.flip_flops:,} flip-flops "
                f"without what is around the design, {self.estimate.clock}"
            )
        tools, critical = part.family.tools, self.critical
        if tools is None or critical is None:
            lines.append(f"  clock        unknown: {_NOT_PLACED}")
            lines.append(f"  cycles      {self.cycles:>8,}")
            return "\n".join(lines)
        met = "" if self.meets_clock else f", which misses {self.clock_mhz:g} MHz"
        lines.append(f"  clock       {self.fmax_mhz:>8.1f} MHz{met}")
        if tools.caution:
            lines.append(f"    {tools.caution}")
        lines.append(f"  cycles      {self.cycles:>8,}")
        lines.append(f"  slowest     {critical}")
        if not self.meets_clock:
            if critical.location is not None:
                lines.append(f"    --> {critical.location}")
            lines.append(f"    {critical.advice}")
        if self.bitstream is not None:
            lines.append(f"  bitstream   {self.bitstream}")
        return "\n".join(lines)

    def report(
        self, path: str | Path, *, windows: Sequence[tuple[int, int]] = (), depths: Any = None
    ) -> Path:
        """Write an HTML page about the run, with what was estimated beside what was routed.

        The options are those of ``SimResult.report``.
        """
        from t2s.driver.page_writer import write_page
        from t2s.report.logic import RoutedChip

        routed = None
        if self.fmax_mhz is not None:
            routed = RoutedChip(
                estimate=self.estimate,
                luts=self.luts,
                flip_flops=self.flip_flops,
                dsp_blocks=self.dsps,
                ram_blocks=self.rams,
                clock_mhz=self.fmax_mhz,
            )
        return write_page(
            self.name, (self.run,), path, windows=windows, depths=depths, routed=routed
        )

    def verify(
        self, inputs: Mapping[str, Any], *, stalls: RandomStalls | None = None
    ) -> Verification:
        """Run the cells after synthesis in Verilator, and compare them with the simulator.

        The testbench is that of ``t2s.verilate``, with the same stalls.  ``inputs`` are those of
        the design.  The first call builds the simulation, in half a minute for an array of 16 PEs.
        Raises ``ChipError`` and ``VerilationError`` if a tool is missing or fails.
        """
        from t2s.backends.base import Stalling
        from t2s.driver.simulate import simulate
        from t2s.simulator.random_stalls import check_stalls

        check_stalls(stalls)
        stalling = None if stalls is None else Stalling(seed=stalls.seed, one_in=stalls.one_in)
        inputs = self.built_for.inputs_of(self.graph, inputs)
        simulated = simulate(self.graph, inputs, device=self.device, stalls=stalls)
        self.built_for.check_results(self.graph, simulated.outputs)
        arrays, scalars = check_graph_inputs(self.graph, inputs, _scalars(self.graph, inputs))
        netlist = self._netlist.run(
            self.times,
            arrays,
            scalars,
            stalling=stalling,
            time_limit=self.time_limit,
        )
        return Verification(
            netlist=netlist,
            simulated=simulated,
            differences=tuple(differences(netlist, simulated)),
        )

    @cached_property
    def _netlist(self) -> HardwareModel:
        """The simulation of the netlist, in a folder that lasts as long as the chip does."""
        from t2s.backends.verilog.flow.netlist import netlist_model

        folder = Path(tempfile.mkdtemp(prefix="t2s-netlist-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return netlist_model(
            self.graph, self.times, self.part, folder, self.time_limit, self.built_for.ranges
        )


def synthesize(
    design: object,
    part: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    memory: str = "bram",
    board: str | None = None,
    clock_mhz: float | None = None,
    directory: str | Path = "chip",
    device: str | Device | None = None,
    seed: int = 1,
    time_limit: float = 1800.0,
    progress: bool | None = None,
) -> Chip:
    """Make a chip of a design with open tools: synthesis, place and route, a bitstream.

    Parameters
    ----------
    part: an FPGA, ``"ecp5-25k"``, ``"ecp5-45k"``, ``"ecp5-85k"``, ``"gw2a-18"``,
        ``"ccgm1a1"``, ``"xc7a35t"`` or ``"xc7a100t"``; needed unless ``board`` has one.
        ``gw2a-18`` and ``ccgm1a1`` need a board, since their tools place no pins by themselves; the
        last two, of AMD, are synthesized only, without a clock and a bitstream.
    inputs: what is in its memories; without, integers that are made up, always the same ones.
    memory: ``"bram"``, block RAM of the FPGA: a self test, which compares all results with those of
        the simulator and shows the cycles of its run; ``"wishbone"``, block RAM that a host
        fills and reads over a Wishbone bus, on which it starts the design, too; or
        ``"axi-stream"``, no memory but an AXI4-Stream for each load and store unit.
    board: ``"ulx3s"``, ``"colorlight-i5"``, ``"tang-nano-20k"`` or ``"gatemate-evb"``: pins,
        lights, a serial port, and a bitstream.
    clock_mhz: what place and route aims for; 150 without.
    directory: the folder for all files; nothing is left there if a step fails.
    device: the latencies that the chip is built with; without, those of the device that is called
        like the part.  Its bandwidth is no limit: each unit has a block RAM.
    seed: of the placement, whose speed varies by some percent.
    time_limit: seconds for each tool.
    progress: show the steps: ``True``, ``False``, or ``None`` for a terminal.

    Needs the extra ``t2s-spatial[chips]``, ``t2s-spatial[chips-gowin]`` for FPGAs of Gowin, and
    ``t2s-spatial[chips-gatemate]`` for those of Cologne Chip.
    Raises ``UserError`` for unknown names, ``UnsupportedError`` for what cannot be built and for a
    design that does not fit, and ``ChipError`` for a tool that is missing, fails, or is not done in
    time.
    """
    from t2s.backends.base import refusal
    from t2s.backends.verilog.chip import unbounded
    from t2s.backends.verilog.emit import NAME
    from t2s.backends.verilog.flow.critical import critical_path
    from t2s.backends.verilog.flow.flow import ChipJob, Memory, build, without_memory
    from t2s.backends.verilog.flow.machine_memories import block_rams
    from t2s.backends.verilog.flow.parts import BOARDS
    from t2s.backends.verilog.flow.routing import counted
    from t2s.backends.verilog.technology import find_technology
    from t2s.driver.logic import logic_of
    from t2s.simulator.devices import DEVICES, find_device
    from t2s.simulator.program.build import build_program

    on_board, fpga = _target(part, board)
    clock = 150.0 if clock_mhz is None else megahertz(clock_mhz)
    folder = checked_folder("the directory of synthesize", directory)
    checked_seconds("time_limit", time_limit)
    if memory not in MEMORIES:
        raise UserError(
            f"unknown memory {memory!r}",
            location=user_location(),
            expected=", ".join(MEMORIES),
            given=repr(memory),
            hint="t2s.chips.rtl_kernel writes a design with masters of AXI4, for FPGAs of AMD",
        )
    if memory in _OF_HOSTS and board is not None:
        raise UserError(
            f"{_OF_HOSTS[memory]} no pins of a board",
            location=user_location(),
            expected="part= alone: the files in the folder are for a system with a host, as LiteX "
            "makes",
            given=f"board={board!r}",
        )
    tools = fpga.family.tools
    if on_board is None and tools is not None and tools.unconstrained is None:
        boards = ", ".join(each.name for each in BOARDS.values() if each.part == fpga.name)
        raise UserError(
            f"{fpga.name} takes pins for all ports, and a design alone has none",
            location=user_location(),
            expected=f"board= one of {boards}, with memory='bram'",
            given=f"part={fpga.name!r}, memory={memory!r}",
        )
    number = as_int(seed)
    if number is None or number < 0:
        raise UserError(
            "seed must be an integer of at least 0", location=user_location(), given=repr(seed)
        )
    around = Memory(memory)
    chosen = chip_stage(design, inputs, "synthesize", partial(without_memory, memory=around))
    stage, in_block_rams = placed(chosen)
    graph = stage.graph
    target = _with_blocks(DEVICES[fpga.name] if device is None else find_device(device), fpga)
    # what machines take is known after synthesis only
    logic = None
    if not graph.machines:
        logic = logic_of(build_program(graph, target, None, {}), fpga.name)
        _check_fits(graph, target, fpga, logic, around)
    if problems := unbounded(graph):
        raise refusal(NAME, graph, problems)
    check_inputs(graph, inputs)
    run = chip_run(stage, inputs, target)
    technology = find_technology(fpga.technology)
    fits = built_for(design, stage, run.arrays, run.times, technology, in_block_rams)
    if graph.machines and target.fabric is not None:
        rams = block_rams(graph, fits.sizes.lengths, target.fabric.ram_cost)
        _check_room(graph, fpga, [("block RAMs", rams, "rams", "tiles, each a run, take fewer")])
    job = ChipJob(
        graph=graph,
        times=run.times,
        arrays=run.arrays,
        ranges=fits.ranges,
        parameters=run.parameters,
        memory=around,
        part=fpga,
        board=on_board,
        clock_mhz=clock,
        seed=number,
        time_limit=time_limit,
    )
    with _emptied(folder) as place, _Steps(progress) as steps:
        built = build(job, place, steps.begin)
    routed, kinds = built.routed, fpga.family
    used = built.cells if routed is None else routed.used
    return Chip(
        name=graph.name,
        graph=graph,
        device=target,
        part=fpga,
        board=on_board,
        luts=counted(used, kinds.luts),
        flip_flops=counted(used, kinds.flip_flops),
        dsps=counted(used, kinds.dsps),
        rams=counted(used, kinds.rams),
        cells=built.cells,
        clock_mhz=clock,
        fmax_mhz=None if routed is None else routed.fmax_mhz,
        critical=None if routed is None else critical_path(built.names, routed.slowest),
        run=run.simulated,
        estimate=logic,
        seconds=built.seconds,
        directory=folder,
        bitstream=None if built.bitstream is None else folder / built.bitstream,
        time_limit=time_limit,
        built_for=fits,
    )


def _target(part: str | None, board: str | None) -> tuple[Board | None, Part]:
    """The board and the FPGA; raises ``UserError`` for unknown names, and for two that differ."""
    from t2s.backends.verilog.flow.parts import PARTS, find_board, find_part

    on_board = None if board is None else find_board(board)
    if part is None:
        if on_board is None:
            raise UserError(
                "synthesize needs an FPGA",
                location=user_location(),
                expected=f"part= one of {', '.join(PARTS)}, or board=",
            )
        return on_board, PARTS[on_board.part]
    found = find_part(part)
    if on_board is not None and on_board.part != found.name:
        raise UserError(
            f"board {on_board.name!r} has another FPGA than {found.name!r}",
            location=user_location(),
            expected=f"{on_board.part}, or no part",
            given=repr(part),
        )
    return on_board, found


def _with_blocks(device: Device, part: Part) -> Device:
    """The device with the blocks of the FPGA, and with block RAM, which serves every unit."""
    from t2s.simulator.devices import DEVICES

    blocks = DEVICES[part.name]
    return replace(
        with_own_memory(device),
        fabric=blocks.fabric,
        dsp_blocks=blocks.dsp_blocks,
        ram_blocks=blocks.ram_blocks,
    )


def _check_fits(
    graph: Graph, device: Device, part: Part, logic: ChipLogic | None, memory: Memory
) -> None:
    """Raise ``UnsupportedError`` for a design that takes more than the FPGA has.

    Of LUTs that is sure only where fewer than are estimated are too many.
    """
    from t2s.backends.verilog.flow.flow import Memory
    from t2s.backends.verilog.flow.self_test import words_of_units
    from t2s.report.resources import estimate_resources

    fabric = device.fabric
    assert fabric is not None, "the devices of chips have one"
    estimate = estimate_resources(graph, device)
    rams = estimate.ram_blocks
    if memory is not Memory.AXI_STREAM:
        for words, bits, loads in words_of_units(graph):
            # what is loaded is in block RAM even if it is small
            rams += max(int(loads), fabric.ram_cost(words, bits))
    wanted = [
        ("multipliers", estimate.dsp_blocks, "dsps", "unroll fewer loops"),
        ("block RAMs", rams, "rams", "fewer load units, and smaller tensors, take fewer"),
    ]
    if logic is not None:
        luts, flip_flops = logic.total.lut_places, logic.total.flip_flops
        less = "unroll fewer loops, or use narrower types and channels that are less deep"
        wanted += [
            ("LUTs", int(luts * _LEAST_SHARE), "luts", less),
            ("flip-flops", int(flip_flops * _LEAST_SHARE), "flip_flops", less),
        ]
    _check_room(graph, part, wanted)


def _check_room(graph: Graph, part: Part, wanted: Iterable[tuple[str, int, str, str]]) -> None:
    """Raise ``UnsupportedError`` for what an FPGA has too few of.

    That is, for each kind: its name, how many are needed, the attribute of the part with those that
    there are, and a hint.
    """
    from t2s.backends.verilog.flow.parts import PARTS

    for what, needed, there, hint in wanted:
        limit = getattr(part, there)
        if needed > limit:
            enough = [p for p in PARTS.values() if getattr(p, there) >= needed]
            # of the same family, or at least one that takes a bitstream
            enough = [p for p in enough if p.family is part.family or p.family.tools is not None]
            enough.sort(key=lambda p: p.family is not part.family)
            raise UnsupportedError(
                f"{graph.name} needs {needed:,} {what}, and {part.name} has {limit:,}",
                location=graph.location,
                expected=f"at most {limit:,} {what}",
                given=f"{needed:,}",
                hint=f"{enough[0].name} has enough" if enough else hint,
            )


def _scalars(graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {p.name: inputs[p.name] for p in graph.parameters if p.name in inputs}


@contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files are those of ``folder`` at the end, if all went well."""
    from t2s.core.files import write_files

    with tempfile.TemporaryDirectory(prefix="t2s-chip-") as temporary:
        place = Path(temporary)
        yield place
        files = {path.name: path.read_bytes() for path in sorted(place.iterdir())}
        write_files(folder, files, user_location())


class _Steps(ProgressBar):
    """The steps of the flow, one after the other."""

    def __init__(self, enabled: bool | None) -> None:
        super().__init__(enabled)
        self._done = 0

    def _columns(self) -> list[Any]:
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        return [SpinnerColumn(), TextColumn("{task.fields[step]}"), TimeElapsedColumn()]

    def begin(self, step: str) -> None:
        """A step begins."""
        self._show(self._done, None, step=step)
        self._done += 1


def differences(found: HardwareResult, simulated: SimResult) -> Iterator[str]:
    """What the hardware did otherwise than the simulator, in words."""
    if found.ending.name != simulated.ending.name:
        why = f": {found.fault}" if found.fault else ""
        yield f"it ends with {found.ending.name}, not {simulated.ending.name}{why}"
    if found.cycles != simulated.cycles:
        yield f"it takes {found.cycles:,} cycles, not {simulated.cycles:,}"
    for timing in simulated.program.nodes:
        node = simulated.nodes[timing.node.name]
        fired = found.firings[timing.instances]
        first, last = found.first[timing.instances], found.last[timing.instances]
        seen = (int(fired.sum()), int(first[fired > 0].min(initial=2**62)), int(last.max()))
        wanted = (node.slots, node.first_firing or 2**62, node.last_firing or 0)
        if seen != wanted:
            yield f"{node.name} fires {seen}, not {wanted} (number, first, last)"
    for name, value in simulated.outputs.items():
        got = found.outputs.get(name)
        if got is None or not np.array_equal(got, value, equal_nan=value.dtype.kind == "f"):
            yield f"other values in {name}"
