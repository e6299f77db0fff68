"""Stationary operands: one token stays in a register of the cell for the whole run.

A buffer of one token that is filled once, and that its readers use in all of their firings, needs
no cell: each reader has an instruction that waits for the token and moves it into a register,
before all others fire.  Scalars of the user are such operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t2s.backends.cgra_tia.lower.cells import CellDraft, Wire
from t2s.backends.cgra_tia.lower.copy_propagation import Aliases
from t2s.backends.cgra_tia.lower.process import (
    CellProcess,
    StreamFacts,
    StreamTable,
    TokenStream,
    check_tensor,
    unit_of,
)
from t2s.backends.cgra_tia.lower.registers import Replay
from t2s.backends.cgra_tia.lower.unit_nests import UnitNest
from t2s.backends.cgra_tia.netlist import AffineSum, UnitKind
from t2s.graph.graph import Graph, Tensor, TensorRole


def settle_residents(
    drafts: Sequence[CellDraft], replays: Sequence[Replay], streams: StreamTable, aliases: Aliases
) -> list[Replay]:
    """Move stationary operands into the cells that use them; returns the remaining buffers."""
    takers: dict[TokenStream, list[tuple[CellDraft, Wire]]] = {}
    for draft in drafts:
        for wire in draft.inputs:
            if isinstance(wire, TokenStream):
                takers.setdefault(aliases.root(wire), []).append((draft, wire))
    elsewhere = {aliases.root(stream) for stream in streams.sinks}
    elsewhere |= {aliases.root(replay.source) for replay in replays}
    remaining: list[Replay] = []
    for replay in replays:
        if replay.shuffle is not None:
            remaining.append(replay)
            continue
        if replay.passes == 1:
            aliases.add(replay.sink, replay.source)
            continue
        mine = takers.get(replay.sink, [])
        fixed = replay.tokens == replay.blocks == 1 and replay.sink not in elsewhere
        if not (fixed and mine and all(_always(draft, wire) for draft, wire in mine)):
            remaining.append(replay)
            continue
        aliases.add(replay.sink, replay.source)
        for draft, wire in mine:
            draft.residents.append(wire)
            draft.actions = [
                replace(action, takes=tuple(other for other in action.takes if other != wire))
                for action in draft.actions
            ]
    return remaining


def _always(draft: CellDraft, wire: Wire) -> bool:
    """Whether every firing of a cell takes a token of the wire, and one of another wire."""
    working = [action for action in draft.actions if not action.idle]
    return all(wire in action.takes and len(action.takes) > 1 for action in working)


# Scalars whose value is given when a design runs: arrays of one element, loaded once.
#
# All PEs that use a scalar take it from one unit.  In each of them it circulates in a virtual
# buffer, which becomes a register of the cell where possible (``settle_residents``).


def scalar_tensors(graph: Graph) -> tuple[Tensor, ...]:
    """An input of shape () for each parameter of a graph."""
    return tuple(
        Tensor(
            name=parameter.name,
            type=parameter.type,
            shape=(),
            role=TensorRole.INPUT,
            location=parameter.location,
        )
        for parameter in graph.parameters
    )


def settle_scalars(processes: Sequence[CellProcess], streams: StreamTable) -> list[Replay]:
    """Add units for the scalars that processes use; returns a buffer for each use."""
    tensors = {tensor.name: tensor for tensor in scalar_tensors(streams.graph)}
    replays: list[Replay] = []
    for process in processes:
        for name, sink in process.parameters.items():
            tensor = tensors[name]
            check_tensor(tensor, process.nest.subject, process.nest.location)
            source = TokenStream(array=name)
            streams.facts.setdefault(name, StreamFacts(capacity=1, location=tensor.location))
            if source not in streams.sources:
                once = UnitNest(loops=(), address=AffineSum())
                streams.sources[source] = unit_of(source, UnitKind.LOAD, tensor, once)
            firings = len(process.classes.codes) * process.classes.outer * process.classes.inner
            replays.append(
                Replay(
                    name=f"{process.name}.{name}",
                    source=source,
                    sink=sink,
                    tokens=1,
                    passes=firings,
                    blocks=1,
                    origin=process.origin,
                )
            )
    return replays
