"""A whole graph through all passes, collecting what is refused."""

from __future__ import annotations

from t2s.backends.base import Unsupported
from t2s.backends.cgra_tia.lower.assemble import Assembly
from t2s.backends.cgra_tia.lower.cells import CellDraft, draft_cells
from t2s.backends.cgra_tia.lower.control.wiring import netlist_of_machines
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered
from t2s.backends.cgra_tia.lower.passing import passed_on, prune
from t2s.backends.cgra_tia.lower.process import CellProcess, StreamTable
from t2s.backends.cgra_tia.lower.process_reader import ProcessReader
from t2s.backends.cgra_tia.lower.registers import Replay, settle_registers
from t2s.backends.cgra_tia.lower.residents import settle_residents
from t2s.backends.cgra_tia.lower.scalars import settle_scalars
from t2s.backends.cgra_tia.lower.schedule import PointCache, nest_of
from t2s.backends.cgra_tia.lower.sharing import CellSharing, SharedCell
from t2s.backends.cgra_tia.netlist import Netlist
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.semantics import space_points


def lowered(
    graph: Graph, *, contract: bool, interval: int = 1, fma_latency: int = 4
) -> Netlist | list[Unsupported]:
    """The netlist of a graph, or everything that stands in its way."""
    if graph.machines:
        mixed = [_mixed(node, graph.machines[0]) for node in graph.pe_arrays[:1]]
        return mixed or netlist_of_machines(graph, contract=contract)
    problems = _of_memory(graph)
    streams = StreamTable(graph=graph)
    processes: list[CellProcess] = []
    replays: list[Replay] = []
    for node in graph.pe_arrays:
        try:
            found, buffers = _of_node(streams, node)
            processes += found
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
            if made := draft_cells(process, contract=contract):
                drafts.append(made)
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
    for point in space_points(node):
        if not node.has_pe(point):
            continue
        nest = nest_of(node, point, cache)
        if nest is None:
            continue
        process = ProcessReader(streams, node, point, nest).process()
        replays += settle_registers(process, streams)
        processes.append(process)
    return processes, replays


def _of_memory(graph: Graph) -> list[Unsupported]:
    """Arrays that are loaded again after they have been stored: units run on their own."""
    stored = {s.tensor for node in graph.pe_arrays for s in node.body if isinstance(s, Store)}
    found: list[Unsupported] = []
    for node in graph.pe_arrays:
        again = {s.tensor for s in node.body if isinstance(s, Load)} & stored
        for name in sorted(again):
            why = (
                f"it loads {name!r}, which the design stores, and a stream unit does not wait for "
                "another one: take the values through a channel (stream)"
            )
            found.append(
                Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
            )
    return found


def _mixed(node: PEArray, machine: Machine) -> Unsupported:
    """Streams of blocks have tags, and PEs take values alone."""
    why = (
        f"it is a PE array beside the block {machine.name!r}, and a design is made of PE arrays "
        "or of sparse blocks: place the two one by one, and run one after the other"
    )
    return Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
