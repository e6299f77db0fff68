"""Operands that never change: one token for the whole run stays in a register of the cell.

A buffer of one token that is filled once, and whose takers use it in all of their firings, needs no
cell: every taker has an instruction that waits for the token and moves it into a register, and all
others fire after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t2s.backends.cgra_tia.lower.cells import CellDraft, Wire
from t2s.backends.cgra_tia.lower.passing import Aliases
from t2s.backends.cgra_tia.lower.process import StreamTable, TokenStream
from t2s.backends.cgra_tia.lower.registers import Replay


def settle_residents(
    drafts: Sequence[CellDraft], replays: Sequence[Replay], streams: StreamTable, aliases: Aliases
) -> list[Replay]:
    """Put what never changes into the cells that use it; returns the buffers that are left."""
    takers: dict[TokenStream, list[tuple[CellDraft, Wire]]] = {}
    for draft in drafts:
        for wire in draft.inputs:
            if isinstance(wire, TokenStream):
                takers.setdefault(aliases.root(wire), []).append((draft, wire))
    elsewhere = {aliases.root(stream) for stream in streams.sinks}
    elsewhere |= {aliases.root(replay.source) for replay in replays}
    left: list[Replay] = []
    for replay in replays:
        if replay.shuffle is not None:
            left.append(replay)
            continue
        if replay.passes == 1:
            aliases.add(replay.sink, replay.source)
            continue
        mine = takers.get(replay.sink, [])
        fixed = replay.tokens == replay.blocks == 1 and replay.sink not in elsewhere
        if not (fixed and mine and all(_always(draft, wire) for draft, wire in mine)):
            left.append(replay)
            continue
        aliases.add(replay.sink, replay.source)
        for draft, wire in mine:
            draft.residents.append(wire)
            draft.actions = [
                replace(action, takes=tuple(other for other in action.takes if other != wire))
                for action in draft.actions
            ]
    return left


def _always(draft: CellDraft, wire: Wire) -> bool:
    """Whether every firing of a cell takes a token of the wire, and another one besides."""
    working = [action for action in draft.actions if not action.idle]
    return all(wire in action.takes and len(action.takes) > 1 for action in working)
