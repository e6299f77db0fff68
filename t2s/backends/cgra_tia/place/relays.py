"""Relays: cells that only pass tokens on, where one channel cannot hold as many as have to wait.

In go a netlist and how many relays the ways to some sinks need; out comes a netlist in which the
nets of these sinks go on from relay to relay, and each sink hangs on the last one that it needs.
A relay is a control cell with a ``mov`` for each tag, so it takes nothing from the rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.fabric import CellKind, CgraFabric
from t2s.backends.cgra_tia.netlist import (
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    Provenance,
    Site,
    StreamUnit,
    UnitKind,
)
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.place.sites import parts_of
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    Instruction,
    TagCheck,
    ToOutputs,
    Trigger,
)
from t2s.core.names import NameSupply


@dataclass(frozen=True, kw_only=True)
class RelayedNetlist:
    """A netlist with relays, and for each new cell the parts that it should be near."""

    netlist: Netlist
    near: Mapping[str, tuple[str, ...]]


def with_relays(
    netlist: Netlist, fabric: CgraFabric, wanted: Mapping[tuple[str, int], int]
) -> RelayedNetlist:
    """The netlist with relays; ``wanted`` says how many on the way of a net to a sink, by number.

    Nets whose tokens have more tags than a cell has instructions stay as they are.
    """
    parts = {part.name: part for part in parts_of(netlist)}
    names = NameSupply([*parts, *(net.name for net in netlist.nets)])
    cells, nets, near = list(netlist.cells), list[Net](), dict[str, tuple[str, ...]]()
    for net in netlist.nets:
        levels = [wanted.get((net.name, number), 0) for number in range(len(net.sinks))]
        tags = _tags(parts[net.source.part], net.source.port, fabric)
        if not max(levels, default=0) or len(tags) > fabric.core.instructions:
            nets.append(net)
            continue
        relays = [names.fresh(f"{net.name}.relay") for _ in range(max(levels))]
        origin = parts[net.source.part].origin
        point = () if origin is None else origin.point
        for number, relay in enumerate(relays):
            cells.append(
                NetCell(
                    name=relay,
                    kind=CellKind.CONTROL,
                    program=_passing(tags),
                    origin=Provenance(
                        node=f"{net.group}.relay",
                        point=(*point, number) if len(relays) > 1 else point,
                        location=net.location,
                    ),
                )
            )
            behind = [
                sink.end.part
                for sink, level in zip(net.sinks, levels, strict=True)
                if level > number
            ]
            near[relay] = tuple(dict.fromkeys(behind))
        nets += _chain(net, relays, levels, fabric)
    return RelayedNetlist(netlist=replace(netlist, cells=tuple(cells), nets=tuple(nets)), near=near)


def _passing(tags: Sequence[int]) -> CellProgram:
    """Input 0 goes to output 0, with its tag."""
    return CellProgram(
        instructions=tuple(
            Instruction(
                trigger=Trigger(checks=(TagCheck(channel=0, tag=tag),)),
                opcode=Opcode.MOV,
                destination=ToOutputs((0,), tag),
                sources=(FromChannel(0),),
                takes=(0,),
            )
            for tag in tags
        )
    )


def _tags(part: NetCell | StreamUnit, port: int, fabric: CgraFabric) -> list[int]:
    """The tags that can come from an output."""
    match part:
        case NetCell():
            sent = (item.destination for item in part.program.instructions)
            return sorted(
                {item.tag for item in sent if isinstance(item, ToOutputs) and port in item.channels}
            )
        case StreamUnit(kind=UnitKind.LOAD_AT):
            return list(range(fabric.core.tags))
        case StreamUnit():
            return sorted({0, *(case.tag for case in part.tags)})


def _chain(net: Net, relays: Sequence[str], levels: Sequence[int], fabric: CgraFabric) -> list[Net]:
    """The net, ending at the first relay, and a net from each relay on.

    The tokens that circulate through a sink are spread over the channels on the way to it.
    """
    most = fabric.most_depth + 2  # what a channel over no hops can hold
    left = [sink.tokens for sink in net.sinks]
    found = []
    for number in range(len(relays) + 1):
        sinks = [
            replace(sink, tokens=max(tokens, 1))
            for sink, level, tokens in zip(net.sinks, levels, left, strict=True)
            if level == number
        ]
        if number < len(relays):
            tokens = min(
                most,
                max(tokens for tokens, level in zip(left, levels, strict=True) if level > number),
            )
            left = [max(item - (tokens - 1), 1) for item in left]
            sinks.append(NetSink(end=Endpoint(part=relays[number]), tokens=tokens))
        if number == 0:
            found.append(replace(net, sinks=tuple(sinks)))
        else:
            name = relays[number - 1]
            found.append(
                Net(
                    name=name,
                    group=f"{net.group}.relay{number}",
                    source=Endpoint(part=name),
                    sinks=tuple(sinks),
                    location=net.location,
                )
            )
    return found


def relay_sites(
    near: Mapping[str, tuple[str, ...]], sites: Mapping[str, Site], free: Sequence[Site]
) -> dict[str, Site] | None:
    """A free site for each relay, next to the middle of what it should be near; ``None`` if few."""
    left = list(free)
    found: dict[str, Site] = {}
    if len(near) > len(left):
        return None
    for relay, parts in near.items():
        rows = sorted(sites[part].row for part in parts)
        columns = sorted(sites[part].column for part in parts)
        row, column = rows[len(rows) // 2], columns[len(columns) // 2]
        found[relay] = min(
            left,
            key=lambda site: (
                abs(site.row - row) + abs(site.column - column),
                site.row,
                site.column,
            ),
        )
        left.remove(found[relay])
    return found
