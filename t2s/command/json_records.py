"""Results as JSON for scripts: what ``--json`` prints; ``docs/command_line.md`` has the schemas.

A schema has a number.  It changes when a key goes or means something else; keys may be added.
Numbers are those of the result objects, unrounded, and the same run gives the same text.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console

import t2s
from t2s.core.errors import UnsupportedError
from t2s.driver.compare import runs_of
from t2s.simulator.report.node_statistics import NodeStatistics
from t2s.simulator.report.result import SimResult

if TYPE_CHECKING:
    from t2s.report.comparison import Comparison
    from t2s.report.page.data.comparison_model import ComparedSide

RUN, TENSOR, COMPARE = "t2s.run/1", "t2s.tensor/1", "t2s.compare/1"


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """An output that was computed, and what was said of it beside numpy's."""

    name: str
    values: Any
    agreement: str

    def record(self) -> dict[str, Any]:
        """Without the values."""
        array = np.asarray(self.values)
        return {
            "name": self.name,
            "shape": list(array.shape),
            "type": str(array.dtype),
            "agreement": self.agreement,
        }


def console_for(json: bool) -> Console:
    """Where a command prints; nowhere if it prints JSON at its end."""
    return Console(highlight=False, file=io.StringIO() if json else None)


def print_record(schema: str, record: Mapping[str, Any]) -> None:
    """Print a record with its schema."""
    whole = {"schema": schema, "t2s": t2s.__version__, **record}
    typer.echo(json.dumps(whole, indent=2, allow_nan=False))


def result_record(result: Any) -> dict[str, Any]:
    """The cycles of a result of any kind, and the records of its stages."""
    runs = runs_of(result, "simulated")
    return {
        "cycles": sum(run.cycles for run in runs),
        "seconds": sum(run.seconds for run in runs),
        "stages": [_stage(run) for run in runs],
    }


def _stage(run: SimResult) -> dict[str, Any]:
    from t2s.report.page.data.main_limit import limit_of

    limit = limit_of(run)
    return {
        "graph": run.graph,
        "device": run.device.name,
        "clock_hz": run.device.clock_hz,
        "engine": run.engine,
        "kernel": run.kernel,
        "cycles": run.cycles,
        "seconds": run.seconds,
        "utilization": run.utilization,
        "compute_cycles": run.compute_cycles,
        "ended": run.ending.value,
        "limit": {"kind": limit.kind.value, "cycles": limit.cycles, "text": limit.sentence},
        "nodes": [_node(node) for node in run.nodes.values()],
        "channels": [
            {
                "name": timing.channel.name,
                "source": timing.channel.source,
                "sink": timing.channel.sink,
                "fifos": timing.channel.element_count,
                "depth": timing.channel.capacity,
                "latency": timing.latency,
            }
            for timing in run.program.channels
        ],
        "resources": _resources(run),
        "dram": _dram(run),
        "warnings": list(run.warnings),
    }


def _node(node: NodeStatistics) -> dict[str, Any]:
    return {
        "name": node.name,
        "role": node.role.value,
        "pes": node.pe_count,
        "initiation_interval": node.interval.cycles,
        "firings": node.firings,
        "first_firing": node.first_firing,
        "last_firing": node.last_firing,
        "busy": node.busy,
        "starved": node.starved,
        "blocked": node.blocked,
        "waiting": node.waiting,
        "idle": node.idle,
        "starved_by": {name: cycles for name, cycles in node.starved_by.items() if cycles},
        "blocked_by": {name: cycles for name, cycles in node.blocked_by.items() if cycles},
        "starved_by_memory": node.starved_by_memory,
        "blocked_by_memory": node.blocked_by_memory,
    }


def _resources(run: SimResult) -> dict[str, Any] | None:
    """The estimate of blocks; ``None`` on a device without them, and where there is none."""
    from t2s.report.resources import estimate_resources

    if run.device.fabric is None:
        return None
    try:
        report = estimate_resources(run.program.graph, run.device)
    except UnsupportedError:
        return None
    return {
        "dsp_blocks": report.dsp_blocks,
        "ram_blocks": report.ram_blocks,
        "dsp_available": run.device.dsp_blocks,
        "ram_available": run.device.ram_blocks,
    }


def _dram(run: SimResult) -> dict[str, Any] | None:
    if run.memory is None:
        return None
    return {
        "name": run.memory.dram.name,
        "bytes": run.memory.bytes_moved,
        "share_of_peak": run.memory.share_of_peak,
        "row_hits": run.memory.row_hits,
    }


def output_records(outputs: Sequence[OutputRecord]) -> list[dict[str, Any]]:
    """All outputs, in order."""
    return [one.record() for one in outputs]


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """A comparison: its sides, the causes, and what differs."""
    return {
        "change": comparison.change,
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "causes": [
            {
                "cause": one.use.text,
                "kind": one.use.kind.value,
                "channel": one.use.channel or None,
                "stage": one.use.stage or None,
                "before": one.before,
                "after": one.after,
                "change": one.change,
            }
            for one in comparison.causes
        ],
        "nodes": [_difference(one) for one in comparison.nodes],
        "channels": [_difference(one) for one in comparison.channels],
    }


def _side(side: ComparedSide) -> dict[str, Any]:
    names = ("label", "design", "device", "cycles", "seconds", "firings", "utilization")
    more = ("compute_pes", "dsp_blocks", "ram_blocks")
    values = {name: getattr(side, name) for name in (*names, *more)}
    return {**values, "ended": side.ending}


def _difference(one: Any) -> dict[str, Any]:
    """A node or a channel; a side that does not have it is ``None``."""
    before, after = one.before, one.after
    return {
        "name": one.name,
        "before": None if before is None else asdict(before),
        "after": None if after is None else asdict(after),
    }
