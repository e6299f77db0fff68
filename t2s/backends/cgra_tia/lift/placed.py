"""A placed design as a graph: what ``simulate`` runs fast, and what the interpreter agrees with.

Each branch of a net is a channel of the latency and the capacity of its placement, to which the
FMA's pipeline adds where its results leave.  Cells that are alike are one array of PEs; so are
units.  A cell whose firings depend on what it gets is a machine.  All operators take no time of
their own: run the graph on the device ``"ideal"``, or on one that differs in its memory alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.backends.cgra_tia.fabric import CoreParameters
from t2s.backends.cgra_tia.lift.address_units import unit_machine
from t2s.backends.cgra_tia.lift.bodies import array_of
from t2s.backends.cgra_tia.lift.cell_machines import CellMachine, TokenChannel
from t2s.backends.cgra_tia.lift.classes import PartClass, classes_of, is_compute
from t2s.backends.cgra_tia.lift.decisions import states_of
from t2s.backends.cgra_tia.lift.links import Link, NoBundleError, links_of
from t2s.backends.cgra_tia.lift.static_cells import StaticCells
from t2s.backends.cgra_tia.lift.word_kinds import WordKinds
from t2s.backends.cgra_tia.netlist import NetCell, PlacedDesign, StreamUnit
from t2s.backends.cgra_tia.opcodes import ON_FMA
from t2s.backends.cgra_tia.program import ToRegister
from t2s.core.errors import UserError
from t2s.graph.body import Role
from t2s.graph.graph import Graph, Tensor
from t2s.graph.nodes import Machine, Node
from t2s.graph.verify import verify_graph


def lift_placed(design: PlacedDesign, *, fused: bool = True) -> Graph:
    """The graph of a placed design: the same values and cycles as ``run_placed``.

    ``fused`` says whether ``fmac`` rounds once or twice.  Raises ``UserError`` for a program that
    is no process of a Kahn network, and for operators that graphs do not have.
    """
    netlist = design.netlist
    kinds = WordKinds(netlist)
    firings = StaticCells(netlist).firings
    links: tuple[Link, ...]
    try:
        classes = classes_of(netlist, firings, kinds, apart=False)
        links = links_of(design, classes, kinds)
    except NoBundleError:
        classes = classes_of(netlist, firings, kinds, apart=True)
        links = links_of(design, classes, kinds)
    tensors = {tensor.name: tensor for tensor in netlist.tensors}
    core = design.fabric.core
    nodes: list[Node] = []
    for found in classes:
        if found.is_machine:
            nodes.append(machine_of(found, links, kinds, tensors, core, fused=fused))
        else:
            nodes.append(array_of(found, links, kinds, tensors, core, fused=fused))
    channels = [channel for link in links for channel in (link.channel, link.tags) if channel]
    graph = Graph(
        name=netlist.name,
        nodes=tuple(nodes),
        channels=tuple(channels),
        tensors=netlist.tensors,
        location=netlist.location,
    )
    verify_graph(graph)
    return graph


def machine_of(
    found: PartClass,
    links: Sequence[Link],
    kinds: WordKinds,
    tensors: Mapping[str, Tensor],
    core: CoreParameters,
    *,
    fused: bool,
) -> Machine:
    """The node of a cell or a unit whose firings depend on what it gets."""
    cell = found.first
    inputs = {
        link.input: TokenChannel(link.channel.name, link.tags.name if link.tags else "")
        for link in links
        if link.channel.sink == found.name
    }
    outputs: dict[int, list[TokenChannel]] = {}
    for link in links:
        if link.channel.source == found.name:
            tags = link.tags.name if link.tags is not None else ""
            outputs.setdefault(link.output, []).append(TokenChannel(link.channel.name, tags))
    if isinstance(cell, StreamUnit):
        tensor = tensors[cell.tensor or ""]
        return unit_machine(found.name, cell, tensor, inputs, outputs.get(0, ()), found.location)
    _check_registers(cell)
    machine = CellMachine(
        name=found.name,
        label=repr(cell.name),
        program=cell.program,
        states=states_of(cell.program, repr(cell.name), inputs),
        inputs=inputs,
        outputs=outputs,
        core=core,
        input_types={port: kinds.input(cell.name, port) for port in range(core.inputs)},
        output_types={port: kinds.output(cell.name, port) for port in range(core.outputs)},
        register_types={n: kinds.register(cell.name, n) for n in range(core.registers)},
        fused=fused,
        endless=True,
        location=found.location,
    )
    return machine.build(Role.COMPUTE if is_compute(cell) else Role.RELAY)


def _check_registers(cell: NetCell) -> None:
    """Refuse registers that wait for the FMA's pipeline."""
    for instruction in cell.program.instructions:
        if isinstance(instruction.destination, ToRegister) and instruction.opcode in ON_FMA:
            raise UserError(
                f"the cell {cell.name!r} keeps a result of its FMA in a register",
                location=cell.origin.location if cell.origin else None,
                expected="results of the FMA that go to a channel",
                given=f"{instruction.opcode.value} %r{instruction.destination.number}",
                hint="the interpreter runs it",
            )
