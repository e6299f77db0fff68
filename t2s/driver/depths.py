"""``fit_depths``: the smallest channel depths that cost no cycle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from t2s.driver.recognize import design_of
from t2s.driver.simulate import device_with

if TYPE_CHECKING:
    from t2s.explore.depth_fit import DepthFit
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram


def fit_depths(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    slack: float = 0.0,
    budget_bytes: int | None = None,
    budget_blocks: int | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> DepthFit:
    """The smallest channel depths that keep the cycle count of a design with unbounded channels.

    The depths are minimal: lowering any single one costs cycles.  Without a shared memory
    bandwidth they are often the least, smaller than all others in every channel; the result says
    which (``minimal``, ``least``).  ``fit.apply(design)`` is the graph with these depths.

    Parameters
    ----------
    design, device, memory: as for ``simulate``.
    inputs: the scalars that loop bounds, conditions and indices depend on.  Arrays are needed only
        where control depends on data, and then the depths are the smallest for these arrays.
    slack: share of the cycles that may be given away, 0.01 for one per cent.
    budget_bytes, budget_blocks: RAM that all FIFOs together may take.  The result then has the
        ``front`` of cycles against RAM, and the depths of its fastest point within the budget.
    workers: runs at once; one for each core if ``None``.
    progress: show the runs: ``True`` always, ``False`` never, ``None`` for long searches.

    Ctrl-C ends the search with the best depths so far.  Raises ``UserError`` for a budget that
    cannot be met, ``DeadlockError`` for a design that does not end however deep its channels are.
    """
    from t2s.explore.depths import fit_depths as fit_graph

    stage = design_of(design).only_stage(inputs, "fit_depths")
    return fit_graph(
        stage.graph,
        None if inputs is None else stage.arrays,
        parameters=stage.scalars,
        device=device_with(device, memory),
        slack=slack,
        budget_bytes=budget_bytes,
        budget_blocks=budget_blocks,
        workers=workers,
        progress=progress,
    )
