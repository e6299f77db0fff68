"""The logic of a design on a device whose cells a backend can count, beside its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2s.core.errors import UnsupportedError

if TYPE_CHECKING:
    from t2s.graph.graph import Graph
    from t2s.report.logic import ChipLogic
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device


def resources_of(graph: Graph, device: str | Device) -> ResourceReport:
    """What a graph takes of a device, with its logic where that can be estimated.

    Raises as ``estimate_resources`` does.
    """
    from t2s.report.resources import estimate_resources

    report = estimate_resources(graph, device)
    return report.with_logic(logic_of(graph, report.device))


def logic_of(graph: Graph, device: Device, part_name: str | None = None) -> ChipLogic | None:
    """The logic of a graph on an FPGA that is called like the device, or like ``part_name``.

    ``None`` for others, and for a design that is no chip.
    """
    from t2s.backends.verilog.estimate import cells_of, clock_band
    from t2s.backends.verilog.flow.parts import PARTS
    from t2s.backends.verilog.technology import find_technology
    from t2s.driver.hardware import device_times
    from t2s.report.logic import ChipLogic, ClockBand, Logic
    from t2s.simulator.program.build import build_program

    part = PARTS.get(device.name if part_name is None else part_name)
    if part is None:
        return None
    try:
        times = device_times(build_program(graph, device, None, {}))
    except UnsupportedError:
        return None
    cells = cells_of(graph, times, find_technology(part.technology))
    if cells is None:
        return None
    nodes = {
        name: Logic(
            luts=each.tables,
            flip_flops=each.flip_flops,
            carry_cells=each.carry_cells,
            small_rams=each.small_rams,
        )
        for name, each in cells.items()
    }
    about, least, most = clock_band(cells, sum(each.lut_places for each in nodes.values()))
    return ChipLogic(
        nodes=nodes,
        clock=ClockBand(about=about, least=least, most=most),
        luts=part.luts,
        flip_flops=part.flip_flops,
    )
