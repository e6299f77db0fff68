"""``resources``: the DSP and RAM blocks that a design takes of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UnsupportedError
from t2s.driver.recognize import design_of
from t2s.graph.graph import Graph

if TYPE_CHECKING:
    from t2s.report.resources import ResourceReport
    from t2s.simulator.devices import Device


def over_budget(graph: Graph, device: Device) -> tuple[str, ...]:
    """One line for each kind of block of which the device has too few."""
    from t2s.report.resources import estimate_resources

    if device.fabric is None:
        return ()
    try:
        overruns = estimate_resources(graph, device).overruns
    except UnsupportedError:  # memories on the chip that depend on data: nobody knows
        return ()
    return tuple(f"does not fit on {device.name}: {overrun}" for overrun in overruns)


def resources(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "arria10",
) -> ResourceReport:
    """An estimate of the DSP and RAM blocks that a design takes of a device, node by node.

    ``report.fits`` says whether the device has enough of them, ``report.overruns`` what is missing.
    ``inputs`` has what the graph depends on: constants, a matrix, the tensors of an assignment.
    The rules are those of ``t2s.report.arithmetic`` and ``t2s.report.memory``.  Raises
    ``UserError`` for a device without such blocks (``ideal``), and ``UnsupportedError`` for state
    machines with memories whose size depends on data, as most blocks of sparse streams have.
    """
    from t2s.report.resources import estimate_resources

    stage = design_of(design).only_stage(inputs, "resources")
    return estimate_resources(stage.graph, device)
