"""``ProductReport``: the cycles of a sparse matrix product, compared with their lower bound.

The bound is the maximum of the steps of the machines (values with padding, divided by the
multipliers) and of the bytes that have to be moved (matrix, structure, operand and result, once)
divided by the device's bandwidth.  The fields of the report name the causes of further cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from t2s.core.display import NotebookCard, NotebookDisplay
from t2s.core.svg import PALETTE, Bar, bar_chart
from t2s.simulator.devices import Device
from t2s.simulator.report.result import SimResult

HOPS = 16
"""Cycles from the last line of the operand on the chip to the first product, at most."""

GOAL = 0.9
"""The fraction of the bound below which a report names the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductFacts:
    """Facts about a design and its matrix, before any run.

    ``padding`` is the fraction of stored values that are padding, ``balance`` the mean load of a
    machine over the largest, ``moved`` the bytes, ``decoded`` the firings that a decoder needs for
    the values.  The others are names of nodes: ``vector`` loads the operand, ``relay`` passes it on
    to the multipliers, ``banks`` are its banks with their firings without conflicts; a decoder and
    reduction circuits are not in every graph.
    """

    padding: float
    balance: float
    moved: int
    decoded: int
    multiplier: str
    decoder: str
    vector: str
    relay: str
    banks: tuple[str, int] | None
    circuits: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductReport(NotebookDisplay):
    """Cycles of a product.

    Attributes
    ----------
    padding, balance: of the stored matrix; 0 and 1 are best.
    steps: firings of each multiplier.
    bound: the least cycles for these steps and bytes on the device.
    cycles: those of the run.  ``latency``, ``x``, ``decoder``, ``waits`` and ``y``, less
        ``overlap``, are those beyond the bound.
    latency: of the first load and of the last store.
    x: until the dense operand is on the chip, so that the first product can be formed.
    decoder: firings of the decoder without a step, because a row is empty.
    waits: other waits of the multipliers; ``waits_for`` is the node at the end of the chain of
        waits.
    y: the adders' latency after the last product, and storing the remaining lines of the result.
    overlap: cycles of the bound in which no product was formed, but bytes were moved.
    conflicts: cycles in which a bank of the operand delayed a step, the mean over all banks.
    stalls: cycles in which a reduction circuit waits for its own additions (part of ``waits``).
    """

    padding: float
    balance: float
    steps: int
    bound: int
    cycles: int
    latency: int
    x: int
    decoder: int
    waits: int
    y: int
    overlap: int
    conflicts: int
    stalls: int
    waits_for: str

    @property
    def fraction(self) -> float:
        """The bound divided by the cycles."""
        return self.bound / max(1, self.cycles)

    @property
    def cause(self) -> str:
        """The main cause of cycles beyond the bound; empty if these are few."""
        if self.fraction >= GOAL:
            return ""
        causes = {
            "latency of memory": self.latency,
            "filling x": self.x,
            "empty rows": self.decoder,
            self.waits_for: self.waits,
            "rest of y": self.y,
            "reduction": self.stalls,
        }
        return max(causes, key=lambda name: causes[name])

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The report as (label, text)."""
        waits = f" ({self.waits_for})" if self.waits else ""
        where = (
            f"{self.latency:,} latency of memory, {self.x:,} filling x, {self.decoder:,} empty"
            f" rows, {self.waits:,} waits{waits}, {self.y:,} rest of y"
        )
        where += f", less {self.overlap:,} that the bound counts" if self.overlap else ""
        cause = f", because of: {self.cause}" if self.cause else ""
        conflicts = (("conflicts", f"{self.conflicts:,} cycles of a bank"),)
        return (
            ("padding", f"{self.padding:.1%} of the stored values"),
            ("balance", f"{self.balance:.1%} = mean load of a machine / largest"),
            ("bound", f"{self.bound:,} cycles; {self.fraction:.1%} of it reached{cause}"),
            ("beyond", where),
            ("reduction", f"{self.stalls:,} cycles of stalls in reduction circuits"),
            *(conflicts if self.conflicts else ()),
        )

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.lines)
        return "\n".join(f"{label.ljust(width)}  {text}" for label, text in self.lines)

    def _card(self) -> NotebookCard:
        causes = (
            ("bound", self.bound), ("latency", self.latency), ("x", self.x),
            ("empty rows", self.decoder), ("waits", self.waits), ("rest of y", self.y),
        )  # fmt: skip
        bars = [
            Bar(
                name=name,
                parts=((PALETTE[0 if name == "bound" else 1], count, f"{name}: {count:,} cycles"),),
                word=f"{count:,}",
            )
            for name, count in causes
        ]
        chart = bar_chart("cycles of the bound, and those beyond it", bars)
        title = f"{self.cycles:,} cycles of a product"
        return NotebookCard(title=title, summary=self.lines, parts=(chart,))


def report_product(facts: ProductFacts, result: SimResult) -> ProductReport | None:
    """The report of a run; ``None`` if it formed no product."""
    nodes, device = result.nodes, result.device
    multiplier = nodes[facts.multiplier]
    first, last = multiplier.first_firing, multiplier.last_firing
    if first is None or last is None or not result.finished:
        return None
    steps = multiplier.firings // multiplier.pe_count
    rate = _rate(device)
    bound = max(steps, int(facts.moved / rate)) if rate is not None else steps
    working = last - first + 1
    idle = max(0, working - bound)
    decoder = nodes.get(facts.decoder)  # diagonals need none
    decoded = decoder.firings // decoder.pe_count if decoder is not None else 0
    conflicts = _conflicts(facts, result)
    load, store = _latencies(facts, result)
    filled = min(first, (nodes[facts.relay].last_firing or 0) + HOPS)
    idle += first - filled
    empty = min(idle, max(0, decoded - facts.decoded))
    return ProductReport(
        padding=facts.padding,
        balance=facts.balance,
        steps=steps,
        bound=bound,
        cycles=result.cycles,
        latency=load + store,
        x=filled - load,
        decoder=empty,
        waits=idle - empty,
        y=result.cycles - last - 1 - store,
        overlap=max(0, bound - working),
        conflicts=conflicts,
        stalls=sum(nodes[name].waiting for name in facts.circuits if name in nodes),
        waits_for="conflicts of banks" if conflicts else _waits_for(facts, result),
    )


def _conflicts(facts: ProductFacts, result: SimResult) -> int:
    if facts.banks is None:
        return 0
    name, needed = facts.banks
    node = result.nodes[name]
    return max(0, node.firings - needed * node.pe_count) // node.pe_count


def _rate(device: Device) -> Fraction | None:
    """The peak bandwidth of a device's memory, in bytes per cycle."""
    if device.memory is not None:
        return device.memory.peak_bytes_per_second / device.clock_hz
    return device.memory_bytes_per_cycle


def _latencies(facts: ProductFacts, result: SimResult) -> tuple[int, int]:
    """The latencies of the first load and of the last store; with a DRAM, the measured first
    load.
    """
    device = result.device
    if device.memory is None:
        return device.load_latency, device.store_latency
    loaded = result.nodes[facts.relay].first_firing or 0
    return loaded - (result.nodes[facts.vector].first_firing or 0), 0


def _waits_for(facts: ProductFacts, result: SimResult) -> str:
    """The node that the multipliers wait for, followed along the channels with most stalls."""
    graph, seen, name = result.program.graph, set[str](), facts.multiplier
    channels = {channel.name: channel for channel in graph.channels}
    while name not in seen:
        seen.add(name)
        node = result.nodes[name]
        if name != facts.multiplier and node.waiting >= max(1, node.starved, node.blocked):
            return f"{name}, which waits for itself"
        counts = {("starved", each): n for each, n in node.starved_by.items()}
        counts |= {("blocked", each): n for each, n in node.blocked_by.items()}
        counts["", ""] = node.starved_by_memory + node.blocked_by_memory
        (verb, channel), most = max(counts.items(), key=lambda item: item[1])
        if not most:
            break
        if not channel:
            return f"bandwidth of memory, at {name}"
        name = channels[channel].source if verb == "starved" else channels[channel].sink
    if name == facts.multiplier:
        return "machines start one after the other"
    return name
