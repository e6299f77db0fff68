"""Traces: the firings of machines without their times; and rows for their rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.graph.analysis import path_bytes
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import Machine
from t2s.graph.semantics import PortUse, element_of, space_points
from t2s.simulator.program.codes import Codes

if TYPE_CHECKING:
    from t2s.simulator.memory.machine_accesses import Addresses

Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The firings of all machines of a program, with unbounded channels.

    Times follow from it for any capacities and latencies of channels: an engine that runs a program
    with a trace (``SimProgram.trace``) computes no values.  Of very long runs it is not kept.

    Attributes
    ----------
    codes: of every machine, by instance: the positions of its rules.
    unfinished: machines that have not ended, by instance: the channel elements whose tokens the
        next firing needs, in the order in which it waits, as far as known.
    refusing: those of them that cannot take the tokens at their inputs once all have arrived.
    sent, received: tokens through every channel element, by its two ends.
    refusal: the error of one of the refusing machines.
    limit: the cycle up to which the trace is sufficient; ``None`` if it is complete.
    addresses: for machines that access a DRAM, by instance: the byte offsets of their accesses, as
        the channels of ``with_addresses`` carry them.
    """

    codes: Mapping[int, Codes]
    unfinished: Mapping[int, tuple[int, ...]]
    refusing: frozenset[int]
    sent: Counts
    received: Counts
    refusal: Callable[[int], Exception]
    limit: int | None = None
    addresses: Mapping[int, tuple[Addresses, ...]] = field(default_factory=dict)

    @property
    def is_kept(self) -> bool:
        """Whether it has its codes, and not only how often each came."""
        return all(codes.counted is None for codes in self.codes.values())


LOADS, STORES = 1, 2
"""Bits of ``MachineRow.access`` (and of the column of that name in ``Control.rows``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRow:
    """A rule of one machine.

    ``needs`` are the elements whose tokens it needs, in the order in which it waits, and ``taken``
    marks the tokens that it takes; ``puts`` are the elements that it sends to.
    """

    needs: tuple[int, ...]
    taken: tuple[bool, ...]
    puts: tuple[int, ...]
    moved_bytes: int
    access: int


def machine_rows(
    graph: Graph, node: Machine, parameters: Mapping[str, Array], first_elements: Mapping[str, int]
) -> tuple[tuple[MachineRow, ...], ...]:
    """The rows of every machine of a node, by machine (row-major in space) and rule."""
    return tuple(
        _rows(graph, node, point, parameters, first_elements) for point in space_points(node)
    )


def _rows(
    graph: Graph,
    node: Machine,
    point: tuple[int, ...],
    parameters: Mapping[str, Array],
    first_elements: Mapping[str, int],
) -> tuple[MachineRow, ...]:
    environment = dict(parameters)
    for dimension, value in zip(node.space, point, strict=True):
        environment[dimension.name] = np.int32(value)
    elements: dict[str, int] = {}
    for channel in graph.inputs_of(node.name):
        use = PortUse(channel.name, element_of(channel.sink_index, environment))
        elements[channel.name] = first_elements[channel.name] + _position(node, channel, use)
    outputs: dict[str, int] = {}
    for channel in graph.outputs_of(node.name):
        use = PortUse(channel.name, element_of(channel.source_index, environment))
        outputs[channel.name] = first_elements[channel.name] + _position(node, channel, use)
    rows: list[MachineRow] = []
    for path in node.paths():
        loaded, stored = path_bytes(graph, path)
        rows.append(
            MachineRow(
                needs=tuple(elements[name] for name in path.needs),
                taken=tuple(name in path.rule.takes for name in path.needs),
                puts=tuple(outputs[put.channel] for put in path.rule.puts),
                moved_bytes=loaded + stored,
                access=(LOADS if loaded else 0) | (STORES if stored else 0),
            )
        )
    return tuple(rows)


def _position(node: Machine, channel: Channel, use: PortUse) -> int:
    """The flat position of an element in its channel."""
    for dimension, (index, extent) in enumerate(zip(use.element, channel.shape, strict=True)):
        if not 0 <= index < extent:
            raise UserError(
                f"{node.name!r} uses elements outside of channel {channel.name!r}",
                location=channel.location or node.location,
                expected=f"indices 0 to {extent - 1} in dimension {dimension} of {channel.shape}",
                given=f"index {index}",
                hint="give the channel one element for every pair of machines that it connects",
            )
    return int(np.ravel_multi_index(use.element, channel.shape)) if channel.shape else 0
