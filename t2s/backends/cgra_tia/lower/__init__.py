"""From a graph to a netlist: a program for each cell, without loop counters.

The input is a ``Graph``, the output a ``Netlist`` with a program for each cell, stream units in
place of loads, stores and loop counters, and nets in place of channels.  The passes, in order:

* ``process``: reads each PE on its own: its iterations grouped into classes that do the same
  (``schedule``), its body as a graph of operations (``values``), its memory accesses as stream
  units (``unit_nests``);
* ``registers``: register files become rings, virtual buffers or scratchpads;
* ``stationary_operands``: scalars and operands that never change stay in registers of cells;
* ``copy_propagation``: operands that PEs only hand on become multicast nets;
* ``cells``: one cell for each operation, whose actions in the classes are selected by tags;
* ``time_multiplexing``: on request, several operations take turns in a cell;
* ``assemble``: instructions, within the limits of a cell; nets; units that send tags.

Graphs of machines (sparse stream blocks) go through ``control`` instead.

Refused, with the user's node and line: vectors, types other than float64, int64 and int32,
operators that no cell has, guards by parameters, arrays that are stored and loaded again, accesses
that are not nests of at most 8 loops, register files that are neither rings nor buffers and do not
fit into a scratchpad, and PEs that are too large for a cell.
"""

from __future__ import annotations

from t2s.backends.base import Unsupported, refusal
from t2s.backends.cgra_tia.lower.assemble import Assembly
from t2s.backends.cgra_tia.lower.cells import CellDraft, draft_cells
from t2s.backends.cgra_tia.lower.control.wiring import netlist_of_machines
from t2s.backends.cgra_tia.lower.copy_propagation import passed_on, prune
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered
from t2s.backends.cgra_tia.lower.process import CellProcess, ProcessReader, StreamTable
from t2s.backends.cgra_tia.lower.registers import Replay, settle_registers
from t2s.backends.cgra_tia.lower.schedule import PointCache, nest_of
from t2s.backends.cgra_tia.lower.stationary_operands import settle_residents, settle_scalars
from t2s.backends.cgra_tia.lower.time_multiplexing import CellSharing, SharedCell
from t2s.backends.cgra_tia.netlist import Netlist
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.semantics import pe_points


def lower_to_netlist(
    graph: Graph, *, contract: bool = True, interval: int = 1, fma_latency: int = 4
) -> Netlist:
    """The design as cells, units and nets.

    With ``contract``, a product that is only used in a sum is fused with it and rounded once.  Up
    to ``interval`` operations of a PE share a cell, which performs each of them once in that many
    cycles; with 1 every operation has its own cell.  ``fma_latency`` determines how far operations
    that share a cell run ahead of one another.  Raises ``UnsupportedError`` if ``unsupported`` is
    not empty.
    """
    result = lowered(graph, contract=contract, interval=interval, fma_latency=fma_latency)
    if isinstance(result, Netlist):
        return result
    raise refusal("cgra_tia", graph, result)


def unsupported(graph: Graph, *, contract: bool = True) -> list[Unsupported]:
    """Every reason why a graph cannot be lowered; empty if it can."""
    result = lowered(graph, contract=contract)
    return [] if isinstance(result, Netlist) else result


# A whole graph through all passes, collecting what is refused.


def lowered(
    graph: Graph, *, contract: bool, interval: int = 1, fma_latency: int = 4
) -> Netlist | list[Unsupported]:
    """The netlist of a graph, or every reason why there is none."""
    if graph.machines:
        mixed = [_mixed(node, graph.machines[0]) for node in graph.pe_arrays[:1]]
        return mixed or netlist_of_machines(graph, contract=contract)
    problems = _of_memory(graph)
    streams = StreamTable(graph=graph)
    processes: list[CellProcess] = []
    replays: list[Replay] = []
    for node in graph.pe_arrays:
        try:
            node_processes, buffers = _of_node(streams, node)
            processes += node_processes
            replays += buffers
        except NotLowered as refused:
            problems.append(refused.problem)
    if problems:
        return problems
    replays += settle_scalars(processes, streams)
    aliases = passed_on(processes, streams)
    replays = prune(processes, replays, streams, aliases)
    drafts: list[list[CellDraft]] = []
    refused_nodes: set[str] = set()
    for process in processes:
        if process.origin.node in refused_nodes:
            continue
        try:
            if process_cells := draft_cells(process, contract=contract):
                drafts.append(process_cells)
        except NotLowered as refused:
            problems.append(refused.problem)
            refused_nodes.add(process.origin.node)
    if problems:
        return problems
    replays = settle_residents([d for group in drafts for d in group], replays, streams, aliases)
    assembly = Assembly(streams, aliases)
    sharing = CellSharing(
        interval=interval, fma_latency=fma_latency, aliases=aliases, replays=replays
    )
    for group, cells in zip(drafts, sharing.shared(drafts), strict=True):
        if group[0].process.origin.node in refused_nodes:
            continue
        try:
            for index, cell in enumerate(cells):
                if isinstance(cell, SharedCell):
                    assembly.add_shared(cell, index)
                else:
                    assembly.add_cell(cell, index)
        except NotLowered as refused:
            problems.append(refused.problem)
            refused_nodes.add(group[0].process.origin.node)
    if problems:
        return problems
    try:
        for replay in replays:
            assembly.add_buffer(replay)
        return assembly.netlist(graph.name, graph.location)
    except NotLowered as refused:
        return [refused.problem]


def _of_node(streams: StreamTable, node: PEArray) -> tuple[list[CellProcess], list[Replay]]:
    """The PEs of a node, and the buffers behind their register files."""
    processes: list[CellProcess] = []
    replays: list[Replay] = []
    cache = PointCache()
    for point in pe_points(node):
        nest = nest_of(node, point, cache)
        if nest is None:
            continue
        process = ProcessReader(streams, node, point, nest).process()
        replays += settle_registers(process, streams)
        processes.append(process)
    return processes, replays


def _of_memory(graph: Graph) -> list[Unsupported]:
    """Refuse arrays that are stored and loaded again: stream units do not wait for one another."""
    stored = {s.tensor for node in graph.pe_arrays for s in node.body if isinstance(s, Store)}
    problems: list[Unsupported] = []
    for node in graph.pe_arrays:
        again = {s.tensor for s in node.body if isinstance(s, Load)} & stored
        for name in sorted(again):
            why = (
                f"it loads {name!r}, which the design stores, and a stream unit does not wait for "
                "another one: take the values through a channel (stream)"
            )
            problems.append(
                Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
            )
    return problems


def _mixed(node: PEArray, machine: Machine) -> Unsupported:
    """The refusal of a graph with both: streams of blocks have tags, and PEs take plain values."""
    why = (
        f"it is a PE array beside the block {machine.name!r}, and a design is made of PE arrays "
        "or of sparse blocks: place the two one by one, and run one after the other"
    )
    return Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
