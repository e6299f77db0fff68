"""``ResourceReport``: the DSP and RAM blocks that a design takes of a device, node by node.

An estimate before synthesis, by the rules of ``report.arithmetic`` and ``report.memory``.  Logic
elements are not estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.notebook import NotebookCard, NotebookDisplay
from t2s.core.tables import Table
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Place
from t2s.graph.kept import KeptFor
from t2s.graph.machine import Machine, Search
from t2s.graph.nodes import Node, Role
from t2s.report.blocks_of_pe import dsp_blocks, fifo_blocks, register_blocks, unit_blocks
from t2s.simulator.devices import DEVICES, Device, find_device
from t2s.simulator.fabric import Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResources:
    """What all PEs of a node take.

    ``memory_blocks`` are the RAM blocks of its register files and buffers, ``fifo_blocks`` those of
    the channels it receives from, ``unit_blocks`` those of its load and store units.
    """

    name: str
    role: Role
    location: SourceLocation | None
    pe_count: int
    dsp_blocks: int
    memory_blocks: int
    fifo_blocks: int
    unit_blocks: int

    @property
    def ram_blocks(self) -> int:
        return self.memory_blocks + self.fifo_blocks + self.unit_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """A kind of block of which the device has too few, and the node that takes most of them."""

    blocks: str
    needed: int
    available: int
    largest: NodeResources
    largest_takes: int
    hint: str

    @property
    def excess(self) -> int:
        return self.needed - self.available

    def __str__(self) -> str:
        return (
            f"{self.needed:,} {self.blocks} blocks are needed and {self.available:,} are there, "
            f"{self.excess:,} too few; {self.largest.name} takes {self.largest_takes:,}: "
            f"{self.hint}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceReport(NotebookDisplay):
    """The blocks of a design on a device, by node in graph order; ``report["C"]`` is one node."""

    design: str
    device: Device
    nodes: tuple[NodeResources, ...]

    def __iter__(self) -> Iterator[NodeResources]:
        return iter(self.nodes)

    def __getitem__(self, node: str) -> NodeResources:
        for row in self.nodes:
            if row.name == node:
                return row
        raise KeyError(node)

    @property
    def dsp_blocks(self) -> int:
        return sum(node.dsp_blocks for node in self.nodes)

    @property
    def ram_blocks(self) -> int:
        return sum(node.ram_blocks for node in self.nodes)

    @property
    def dsp_fraction(self) -> float | None:
        """The share of the device's DSP blocks; ``None`` if the device does not say."""
        return _fraction(self.dsp_blocks, self.device.dsp_blocks)

    @property
    def ram_fraction(self) -> float | None:
        """The share of the device's RAM blocks; ``None`` if the device does not say."""
        return _fraction(self.ram_blocks, self.device.ram_blocks)

    @property
    def fits(self) -> bool:
        """Whether the device has enough of both kinds of block."""
        return not self.overruns

    @property
    def overruns(self) -> tuple[Overrun, ...]:
        """What the device has too few of; empty if the design fits."""
        found: list[Overrun] = []
        dsps = [(node.dsp_blocks, node) for node in self.nodes]
        found += _overrun("DSP", dsps, self.device.dsp_blocks, _fewer_operators)
        rams = [(node.ram_blocks, node) for node in self.nodes]
        found += _overrun("RAM", rams, self.device.ram_blocks, _less_memory)
        return tuple(found)

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The totals as (label, text)."""
        lines = [
            ("DSP blocks", _of(self.dsp_blocks, self.device.dsp_blocks)),
            ("RAM blocks", _of(self.ram_blocks, self.device.ram_blocks)),
            ("fits", "yes" if self.fits else "no"),
        ]
        return (*lines, *(("over budget", str(overrun)) for overrun in self.overruns))

    @property
    def table(self) -> Table:
        """One row per node."""
        rows = tuple(
            (
                node.name,
                node.role.value,
                f"{node.pe_count:,}",
                f"{node.dsp_blocks:,}",
                f"{node.memory_blocks:,}",
                f"{node.fifo_blocks:,}",
                f"{node.unit_blocks:,}",
                f"{node.ram_blocks:,}",
            )
            for node in self.nodes
        )
        headers = ("node", "role", "PEs", "DSP", "memories", "FIFOs in", "memory units", "RAM")
        return Table(
            title="blocks by node (RAM = memories + FIFOs in + memory units)",
            headers=headers,
            rows=rows,
            left=frozenset({0, 1}),
        )

    @property
    def _title(self) -> str:
        return f"{self.design} on {self.device.name}: estimated blocks"

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.summary)
        head = [f"{label.ljust(width)}  {text}" for label, text in self.summary]
        return "\n".join([self._title, *head, "", self.table.text()])

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        head = "\n".join(f"{label:12} {text}" for label, text in self.summary)
        return Group(Text(f"{self._title}\n{head}"), self.table.rich())

    def _card(self) -> NotebookCard:
        return NotebookCard(title=self._title, summary=self.summary, parts=(self.table,))


_REPORTS: KeptFor[Device, ResourceReport] = KeptFor()


def estimate_resources(graph: Graph, device: str | Device = "arria10") -> ResourceReport:
    """Estimate the DSP and RAM blocks of a graph.

    Raises ``UserError`` for an unknown device and for one without blocks, such as ``ideal``, and
    ``UnsupportedError`` for machines with memories whose size depends on data.
    """
    target = find_device(device)
    fabric = target.fabric
    if fabric is None:
        counted = ", ".join(name for name, other in DEVICES.items() if other.fabric is not None)
        raise UserError(
            f"the device {target.name} has no DSP and RAM blocks to count",
            location=user_location(),
            expected=f"one of {counted}, or a Device with a fabric",
            given=target.name,
        )
    return _REPORTS.get(graph, target, lambda: _estimated(graph, target, fabric))


def _estimated(graph: Graph, device: Device, fabric: Fabric) -> ResourceReport:
    for machine in graph.machines:
        _check_memories(graph, machine)
    nodes = tuple(_node_resources(graph, node, fabric) for node in graph.nodes)
    return ResourceReport(design=graph.name, device=device, nodes=nodes)


def _check_memories(graph: Graph, machine: Machine) -> None:
    """All that the machine keeps on the chip has a size that is known before the run."""
    kept = [f"the sorted memory {memory.name!r}" for memory in machine.memories]
    for statement in machine.statements():
        match statement:
            case Load(tensor=name) | Search(tensor=name) | Store(tensor=name):
                if graph.tensor(name).place is not Place.MEMORY:
                    kept.append(f"{name!r}, which is{graph.tensor(name).place_text}")
    if kept:
        raise UnsupportedError(
            f"the blocks of {machine.name!r} cannot be estimated",
            location=machine.location,
            expected="memories on the chip whose sizes do not depend on data",
            given=kept[0],
        )


def _node_resources(graph: Graph, node: Node, fabric: Fabric) -> NodeResources:
    return NodeResources(
        name=node.name,
        role=node.role,
        location=node.location,
        pe_count=node.pe_count,
        dsp_blocks=ceil(node.pe_count * dsp_blocks(node, fabric)),
        memory_blocks=node.pe_count * register_blocks(node, fabric),
        fifo_blocks=sum(fifo_blocks(channel, fabric) for channel in graph.inputs_of(node.name)),
        unit_blocks=node.pe_count * unit_blocks(node, fabric),
    )


def _overrun(
    blocks: str,
    taken: Iterable[tuple[int, NodeResources]],
    available: int | None,
    hint: Callable[[NodeResources], str],
) -> list[Overrun]:
    rows = list(taken)
    needed = sum(count for count, _ in rows)
    if available is None or needed <= available:
        return []
    most, largest = max(rows, key=lambda row: row[0])
    return [
        Overrun(
            blocks=blocks,
            needed=needed,
            available=available,
            largest=largest,
            largest_takes=most,
            hint=hint(largest),
        )
    ]


def _fewer_operators(node: NodeResources) -> str:
    return "unroll fewer PEs, use fewer lanes or a narrower type"


def _less_memory(node: NodeResources) -> str:
    part = max(node.memory_blocks, node.fifo_blocks, node.unit_blocks)
    if part == node.memory_blocks:
        return "make the tile smaller, or buffer fewer loops"
    if part == node.fifo_blocks:
        return "make the channels less deep, or order the loops so that fewer tokens wait"
    return "load and store in fewer PEs"


def _fraction(needed: int, available: int | None) -> float | None:
    return needed / available if available else None


def _of(needed: int, available: int | None) -> str:
    if not available:
        return f"{needed:,}"
    return f"{needed:,} of {available:,} ({needed / available:.1%})"
