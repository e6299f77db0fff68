"""A placed design as a graph: what ``simulate`` runs fast, and what the interpreter agrees with.

Each branch of a net is a channel of the latency and the capacity of its placement, to which the
FMA's pipeline adds where its results leave.  Cells that are alike are one array of PEs; so are
units.  A cell whose firings depend on what it gets is a machine.  All operators take no time of
their own: run the graph on the device ``"ideal"``, or on one that differs in its memory alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.backends.cgra_tia.fabric import CgraFabric, CoreParameters
from t2s.backends.cgra_tia.lift.address_units import unit_machine
from t2s.backends.cgra_tia.lift.bodies import array_of
from t2s.backends.cgra_tia.lift.cell_machines import CellMachine, TokenChannel
from t2s.backends.cgra_tia.lift.classes import PartClass, classes_of, is_compute
from t2s.backends.cgra_tia.lift.decisions import slow_register, states_of
from t2s.backends.cgra_tia.lift.links import Link, links_of
from t2s.backends.cgra_tia.lift.static_cells import StaticCells
from t2s.backends.cgra_tia.lift.word_kinds import WordKinds
from t2s.backends.cgra_tia.netlist import NetCell, PlacedDesign, StreamUnit
from t2s.core.names import NameSupply
from t2s.graph.body import Role
from t2s.graph.graph import Channel, Graph, StreamType, Tensor
from t2s.graph.nodes import Machine, Node
from t2s.graph.verify import verify_graph


def lift_placed(design: PlacedDesign, *, fused: bool = True) -> Graph:
    """The graph of a placed design: the same values and cycles as ``run_placed``.

    ``fused`` says whether ``fmac`` rounds once or twice.  A result of the FMA that goes to a
    register is a token until it is used.  Raises ``UserError`` for a program that is no process of
    a Kahn network, and for operators that graphs do not have.
    """
    netlist = design.netlist
    kinds = WordKinds(netlist)
    firings = StaticCells(netlist).firings
    classes = classes_of(netlist, firings, kinds)
    links = links_of(design, classes, kinds)
    tensors = {tensor.name: tensor for tensor in netlist.tensors}
    core = design.fabric.core
    nodes: list[Node] = []
    channels = [channel for link in links for channel in (link.channel, link.tags) if channel]
    names = NameSupply([channel.name for channel in channels])
    for found in classes:
        if found.is_machine:
            landings = _landings(found, kinds, design.fabric, names)
            channels += landings.values()
            nodes.append(machine_of(found, links, landings, kinds, tensors, core, fused=fused))
        else:
            nodes.append(array_of(found, links, kinds, tensors, core, fused=fused))
    graph = Graph(
        name=netlist.name,
        nodes=tuple(nodes),
        channels=tuple(channels),
        tensors=netlist.tensors,
        location=netlist.location,
    )
    verify_graph(graph)
    return graph


def parts_of_nodes(design: PlacedDesign) -> dict[str, tuple[str, ...]]:
    """For each node of the graph of a design the cells or units that it stands for, by name."""
    kinds = WordKinds(design.netlist)
    classes = classes_of(design.netlist, StaticCells(design.netlist).firings, kinds)
    return {found.name: tuple(part.name for part in found.parts) for found in classes}


def machine_of(
    found: PartClass,
    links: Sequence[Link],
    landings: Mapping[int, Channel],
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
        scratchpad_type=kinds.scratchpad(cell.name),
        landings={number: channel.name for number, channel in landings.items()},
        fused=fused,
        endless=True,
        location=found.location,
    )
    return machine.build(Role.COMPUTE if is_compute(cell) else Role.RELAY)


def _landings(
    found: PartClass, kinds: WordKinds, fabric: CgraFabric, names: NameSupply
) -> dict[int, Channel]:
    """A channel from a cell to itself for each register that results of its FMA go to."""
    cell = found.first
    if not isinstance(cell, NetCell):
        return {}
    slow = map(slow_register, cell.program.instructions)
    registers = {number for number in slow if number is not None}
    return {
        number: Channel(
            name=names.fresh(f"{found.name}_r{number}"),
            stream=StreamType(element=kinds.register(cell.name, number)),
            source=found.name,
            sink=found.name,
            shape=(),
            source_index=(),
            sink_index=(),
            capacity=2,
            latency=max(1, fabric.fma_latency),
            location=found.location,
        )
        for number in sorted(registers)
    }
