"""The logic of a chip before synthesis: tables, flip-flops, carry cells, node by node.

The modules are those that synthesis would read.  ``cells.py`` counts what one PE of each class
takes, and what is between PEs; ``fifo_cells.py`` the FIFOs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from t2s.backends.base import DeviceTimes
from t2s.backends.text.expressions import Literal
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.arrays import ArrayModules
from t2s.backends.verilog.cells import Counted, Library, ModuleCells, ModuleLogic, NotCounted
from t2s.backends.verilog.chip import chip_module, problems_of
from t2s.backends.verilog.counted_nests import CountedNest, nests_of
from t2s.backends.verilog.data_types import signal_names
from t2s.backends.verilog.fifo_cells import fifo_cells
from t2s.backends.verilog.gates import ONE, ZERO
from t2s.backends.verilog.interfaces import Interface
from t2s.backends.verilog.technology import Technology
from t2s.backends.verilog.top import LIBRARY, Top, top_of
from t2s.core.errors import UnsupportedError
from t2s.core.logic import Logic
from t2s.graph.graph import Graph
from t2s.graph.nodes import Machine

LIBRARIES: Mapping[str, Library] = MappingProxyType(
    {"ecp5": Library(shortest_chain=5, part_of_product=18)}
)
"""The technologies whose cells are known."""

_MOST_PLACES = 4
"""PEs of a class that are counted each by itself, where they differ by their place alone."""

_NS_OF_REGISTERS = 1.4
_NS_OF_WIRES, _NS_OF_WIRES_PER_LUT = 5.2, 0.0002
_BAND = 0.2
"""After what nextpnr reached of 18 designs of 400 to 7,000 LUTs, each with seed 1 and with its self
test: the slowest path is one through the tables and carry cells of a PE, or one between PEs, whose
wires are longer the more there is to place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignLogic:
    """The logic of a design by node, and the ns between the registers of its slowest PE.

    A node's logic has the FIFOs of the channels it receives from; that of the module that starts
    the design is the first node's.
    """

    nodes: Mapping[str, Logic]
    slowest: float


def logic_of_design(graph: Graph, times: DeviceTimes, technology: Technology) -> DesignLogic | None:
    """The logic of a design.

    ``None`` for a technology and for parts of a design whose cells are not known, as those of
    machines, and for a design that is no chip: what the technology cannot build.
    """
    library = LIBRARIES.get(technology.name)
    if library is None or any(isinstance(node, Machine) for node in graph.nodes):
        return None
    nests = nests_of(graph)
    if isinstance(nests, list) or problems_of(graph, times):
        return None
    try:
        return _Design(graph, times, top_of(graph, times, technology), nests, library).logic()
    except (NotCounted, UnsupportedError):
        return None


def clock_band(design: DesignLogic) -> tuple[float, float, float]:
    """The clock in MHz that place and route may reach: about, at least, at most."""
    places = sum(logic.lut_places for logic in design.nodes.values())
    between = _NS_OF_WIRES + _NS_OF_WIRES_PER_LUT * places
    about = 1000 / max(design.slowest + _NS_OF_REGISTERS, between)
    return about, about * (1 - _BAND), about * (1 + _BAND)


class _Design:
    """Counts the cells of a design."""

    def __init__(
        self,
        graph: Graph,
        times: DeviceTimes,
        top: Top,
        nests: Mapping[str, CountedNest],
        library: Library,
    ) -> None:
        self.graph, self.times, self.top = graph, times, top
        self.nests, self.library = nests, library
        taken = {names.module for _, names in top.nodes}
        self.modules = signal_names((*LIBRARY, top.module, top.chip, *taken))
        self.widths: dict[str, int] = {channel.name: 0 for channel in graph.channels}
        """The bits of each channel that are not the same in all tokens."""
        self.elements = {c.name: set(range(c.element_count)) for c in graph.channels}
        """The elements of each channel that have both ends; synthesis removes the others."""

    def logic(self) -> DesignLogic:
        """That of all nodes."""
        found: dict[str, Logic] = {}
        slowest = 0.0
        for interface, names in self.top.nodes:
            modules = self._modules(interface, names.module)
            parts = (each.logic * count for each, count in modules)
            found[interface.node.name] = sum(parts, Logic())
            slowest = max([slowest, *(each.slowest for each, _ in modules)])
        for channel in self.graph.channels:
            found[channel.sink] += self._fifo(channel.name) * len(self.elements[channel.name])
        inside = ast.HardwareModule(name=self.top.module, about=(), ports=self.top.ports, items=())
        known = {self.top.module: Counted(module=inside, cells=ModuleLogic())}
        around = ModuleCells(chip_module(self.top), self.library, {}, known).count()
        found[self.graph.nodes[0].name] += around.logic
        return DesignLogic(nodes=found, slowest=slowest)

    def _modules(self, interface: Interface, name: str) -> list[tuple[ModuleLogic, int]]:
        """The modules of a node, and how many there are of each."""
        array = ArrayModules(
            self.top, interface, name, self.nests.get(interface.node.name), self.modules
        )
        *modules, whole = array.build()
        for channel, ends in (*array.taken.items(), *array.sent.items()):
            if ends is not None:
                self.elements[channel] &= {end for end in ends if end is not None}
        found: list[tuple[ModuleLogic, int]] = []
        counted: dict[str, Counted] = {}
        for module, of in zip(modules, array.classes, strict=True):
            for parameters, pes in _parameters(whole, module.name, len(of.places)):
                cells = ModuleCells(module, self.library, parameters).count()
                counted[module.name] = Counted(module=module, cells=cells)
                found.append((cells, pes))
                for sending in interface.sending:
                    word = cells.outputs.get(sending.value, ())
                    width = len(set(word) - {ZERO, ONE})
                    channel = sending.channel.name
                    self.widths[channel] = max(self.widths[channel], width)
        if any(isinstance(item, ast.AlwaysComb) for item in whole.items):
            found.append((ModuleCells(whole, self.library, {}, counted).count(), 1))
        return found

    def _fifo(self, name: str) -> Logic:
        source, times = self.graph.channel(name).source, self.times.channels[name]
        late = next(
            interface.plan.late.get(name, 0)
            for interface, _ in self.top.nodes
            if interface.node.name == source
        )
        fills = name not in self.top.never_full
        return fifo_cells(self.widths[name], self.top.capacity(name), times.latency, late, fills)


def _parameters(
    array: ast.HardwareModule, module: str, pes: int
) -> list[tuple[Mapping[str, int], int]]:
    """The parameters of some PEs of a class, and how many PEs each of them stands for.

    A parameter is where the PE is in its array: what is computed from it differs from place to
    place.
    """
    each = [
        {name: int(value.text) for name, value in item.parameters if isinstance(value, Literal)}
        for item in array.items
        if isinstance(item, ast.Instance) and item.module == module
    ]
    if not any(each):
        return [({}, pes)]
    count = len(each)
    groups = min(count, _MOST_PLACES)
    ends = [count * group // groups for group in range(groups + 1)]
    return [(each[(begin + end) // 2], end - begin) for begin, end in pairwise(ends)]
