"""The output of commands: agreement with numpy, results as JSON, and exit codes.

``docs/command_line.md`` has the schemas of ``--json``.  The number of a schema changes when a key
is removed or changes its meaning; keys may be added.  Numbers are those of the result objects,
unrounded, and equal runs print equal texts.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

import t2s
from t2s.core.errors import T2SError, UnsupportedError
from t2s.driver.many import runs_of
from t2s.simulator.report.errors import RunInterrupted
from t2s.simulator.report.result import NodeStatistics, SimResult

if TYPE_CHECKING:
    from t2s.report.comparison import ComparedSide, Comparison


RUN, TENSOR, COMPARE = "t2s.run/1", "t2s.tensor/1", "t2s.compare/1"
SEARCH, TENSOR_SEARCH, CHIP = "t2s.search/1", "t2s.tensor.search/1", "t2s.chip/1"


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """A computed output, and its comparison with numpy."""

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
    """The console of a command, silent if the command prints JSON at its end."""
    return Console(highlight=False, file=io.StringIO() if json else None)


def print_record(schema: str, record: Mapping[str, Any]) -> None:
    """Print a record with its schema."""
    whole = {"schema": schema, "t2s": t2s.__version__, **record}
    typer.echo(json.dumps(whole, indent=2, allow_nan=False))


def result_record(result: Any) -> dict[str, Any]:
    """The cycles of any kind of result, and the records of its stages."""
    runs = runs_of(result, "simulated")
    return {
        "cycles": sum(run.cycles for run in runs),
        "seconds": sum(run.seconds for run in runs),
        "stages": [_stage(run) for run in runs],
    }


def _stage(run: SimResult) -> dict[str, Any]:
    from t2s.report.page.main_limit import limit_of

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
    """The estimate of blocks; ``None`` for a device without blocks or a design without estimate."""
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
    return [sink.record() for sink in outputs]


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """A comparison: its two sides, the causes, and the differences."""
    return {
        "change": comparison.change,
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "causes": [
            {
                "cause": cause.use.text,
                "kind": cause.use.kind.value,
                "channel": cause.use.channel or None,
                "stage": cause.use.stage or None,
                "before": cause.before,
                "after": cause.after,
                "change": cause.change,
            }
            for cause in comparison.causes
        ],
        "nodes": [_difference(node) for node in comparison.nodes],
        "channels": [_difference(channel) for channel in comparison.channels],
    }


def _side(side: ComparedSide) -> dict[str, Any]:
    names = ("label", "design", "device", "cycles", "seconds", "firings", "utilization")
    more = ("compute_pes", "dsp_blocks", "ram_blocks")
    values = {name: getattr(side, name) for name in (*names, *more)}
    return {**values, "ended": side.ending}


def _difference(side: Any) -> dict[str, Any]:
    """A node or a channel; ``None`` for a side that does not have it."""
    before, after = side.before, side.after
    return {
        "name": side.name,
        "before": None if before is None else asdict(before),
        "after": None if after is None else asdict(after),
    }


# Compare an output with numpy: exact, within tolerance, or an error.
#
# Infinities and NaN must be at the same places; finite values may differ by the rounding of another
# order of operations.

Array = np.ndarray[Any, Any]

TOLERANCE = {16: 2e-2, 32: 1e-5, 64: 1e-13}
"""Largest difference, relative to the largest element, by the bits of the type."""


def compare(
    given: Array, expected: Array, *, what: str = "", tolerance: float | None = None
) -> str:
    """One line: whether an output matches numpy, exactly or within a tolerance.

    ``what`` is a prefix; ``tolerance`` defaults to that of the type.  Raises ``T2SError`` for an
    output that does not match.
    """
    prefix = f"{what}: " if what else ""
    floats = expected.dtype.kind not in "iub"
    if np.array_equal(given, expected, equal_nan=floats):
        return f"{prefix}matches numpy exactly"
    if given.shape != expected.shape or not floats:
        raise T2SError(f"{prefix}does not match numpy")
    wide, reference = given.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wide) & np.isfinite(reference)
    same = finite | (wide == reference) | (np.isnan(wide) & np.isnan(reference))
    if not same.all():
        place = tuple(int(at) for at in np.argwhere(~same)[0])
        shown = f" at {place}" if place else ""
        raise T2SError(
            f"{prefix}differs from numpy: {given[place]} where numpy has {expected[place]}{shown}"
        )
    scale = float(np.max(np.abs(reference[finite]), initial=0.0)) or 1.0
    difference = float(np.max(np.abs(wide[finite] - reference[finite]), initial=0.0)) / scale
    allowed = TOLERANCE[expected.dtype.itemsize * 8] if tolerance is None else tolerance
    if difference > allowed:
        raise T2SError(
            f"{prefix}differs from numpy by {difference:.1e} of the largest element, "
            f"allowed {allowed:.0e}"
        )
    return (
        f"{prefix}matches numpy (largest difference {difference:.1e} of the largest element, "
        f"allowed {allowed:.0e})"
    )


# Exit codes: 0, 1 after an error, 130 after Ctrl-C.

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""

_SNIPPET = re.compile(r"  --> |   \d+ \| ")


@contextmanager
def exit_codes(json: bool = False) -> Iterator[None]:
    """Turn errors and Ctrl-C in the block into exit codes; with ``json``, stdout stays empty."""
    try:
        yield
    except RunInterrupted as interrupt:
        typer.echo(str(interrupt), err=json)
        raise typer.Exit(code=INTERRUPTED) from None
    except (T2SError, OSError) as error:
        raise failed(str(error)) from None


def failed(message: str) -> typer.Exit:
    """Print an error, and return the exit of the command."""
    text = f"[bold red]error:[/] {escape(message)}"
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)
    return typer.Exit(code=1)


def without_lines(text: str) -> str:
    """The error without a source line: the user typed a command, not Python."""
    return "\n".join(line for line in text.splitlines() if not _SNIPPET.match(line))
