"""Channels that have to hold more than the fabric's can: in pieces, with cells between them.

In goes a netlist, out comes one in which no channel has to hold more than ``most_depth`` tokens.
Where one had to, control cells move its tokens on from piece to piece, one per cycle, with their
tags.  Each of them adds latency to the channel, as any cell does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from t2s.backends.cgra_tia.fabric import CellKind, CgraFabric
from t2s.backends.cgra_tia.netlist import (
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    Provenance,
    StreamUnit,
)
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    Instruction,
    TagCheck,
    ToOutputs,
    Trigger,
)


def with_movers(netlist: Netlist, fabric: CgraFabric) -> Netlist:
    """The netlist with movers in channels that are too long; itself if there are none."""
    long = [net for net in netlist.nets if any(s.tokens > fabric.most_depth for s in net.sinks)]
    if not long:
        return netlist
    parts: dict[str, NetCell | StreamUnit] = {cell.name: cell for cell in netlist.cells}
    parts |= {unit.name: unit for unit in netlist.units}
    cells = list(netlist.cells)
    nets: list[Net] = []
    for net in netlist.nets:
        sinks = []
        for number, sink in enumerate(net.sinks):
            if sink.tokens <= fabric.most_depth:
                sinks.append(sink)
                continue
            tags = sorted(set(_tags(parts[net.source.part], net.source.port)))
            first, movers, pieces = _in_pieces(net, number, sink, tags, fabric.most_depth)
            sinks.append(first)
            cells += movers
            nets += pieces
        nets.append(replace(net, sinks=tuple(sinks)))
    return replace(netlist, cells=tuple(cells), nets=tuple(nets))


def _in_pieces(
    net: Net, number: int, sink: NetSink, tags: list[int], most: int
) -> tuple[NetSink, list[NetCell], list[Net]]:
    """A branch in pieces: where its first one ends, the movers, and the nets behind them."""
    count = -(-sink.tokens // most)
    tokens = -(-sink.tokens // count)
    names = [f"{net.name}.mover{number}_{at}" for at in range(1, count)]
    origin = Provenance(node=net.group, location=net.location)
    movers = [
        NetCell(name=name, kind=CellKind.CONTROL, program=_mover(name, tags), origin=origin)
        for name in names
    ]
    piece = NetSink(end=sink.end, tokens=tokens, circulating=0)
    ends = [
        *(replace(piece, end=Endpoint(part=name)) for name in names),
        replace(piece, circulating=sink.tokens_of_circle),
    ]
    pieces = [
        Net(
            name=f"{net.name}.piece{number}_{at}",
            group=f"{net.group}.piece{number}_{at}",
            source=Endpoint(part=name),
            sinks=(end,),
            location=net.location,
        )
        for at, (name, end) in enumerate(zip(names, ends[1:], strict=True), start=1)
    ]
    return ends[0], movers, pieces


def _mover(name: str, tags: list[int]) -> CellProgram:
    """Takes a token and sends it on: an instruction for each tag that it may have."""
    moves = (
        Instruction(
            trigger=Trigger(checks=(TagCheck(channel=0, tag=tag),)),
            opcode=Opcode.MOV,
            destination=ToOutputs(channels=(0,), tag=tag),
            sources=(FromChannel(0),),
            takes=(0,),
        )
        for tag in tags
    )
    return CellProgram(label=name, instructions=tuple(moves))


def _tags(part: NetCell | StreamUnit, port: int) -> Iterator[int]:
    """The tags that tokens of an output may have."""
    if isinstance(part, StreamUnit):
        yield from (0, *(case.tag for case in part.tags))
        return
    for instruction in part.program.instructions:
        match instruction.destination:
            case ToOutputs(channels=channels, tag=tag) if port in channels:
                yield tag
