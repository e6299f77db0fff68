"""The logic of a design on a device whose cells a backend can count, beside its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2s.core.errors import UnsupportedError

if TYPE_CHECKING:
    from t2s.graph.graph import Graph
    from t2s.report.logic import ChipLogic
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device
    from t2s.simulator.program.sim_program import SimProgram


def resources_of(graph: Graph, device: str | Device) -> ResourceReport:
    """What a graph takes of a device, with its logic where that can be estimated.

    Raises as ``estimate_resources`` does.
    """
    from t2s.backends.verilog.flow.parts import PARTS
    from t2s.report.resources import estimate_resources
    from t2s.simulator.program.build import build_program

    report = estimate_resources(graph, device)
    if report.device.name not in PARTS or graph.machines:
        return report
    return report.with_logic(logic_of(build_program(graph, report.device, None, {})))


def logic_of(program: SimProgram, part_name: str | None = None) -> ChipLogic | None:
    """The logic of a program on an FPGA that is called like its device, or like ``part_name``.

    ``None`` for others, and for a design that is no chip.
    """
    from t2s.backends.verilog.estimate import clock_band, logic_of_design
    from t2s.backends.verilog.flow.parts import PARTS
    from t2s.backends.verilog.technology import find_technology
    from t2s.driver.device_times import device_times
    from t2s.report.logic import ChipLogic, ClockBand

    part = PARTS.get(program.device.name if part_name is None else part_name)
    if part is None:
        return None
    try:
        times = device_times(program)
    except UnsupportedError:
        return None
    design = logic_of_design(program.graph, times, find_technology(part.technology))
    if design is None:
        return None
    about, least, most = clock_band(design)
    return ChipLogic(
        nodes=design.nodes,
        clock=ClockBand(about=about, least=least, most=most),
        luts=part.luts,
        flip_flops=part.flip_flops,
    )
