"""Register files that are neither rings nor virtual buffers: a cell with a scratchpad.

The cell stores values in the order in which they are written, one word after the other, and loads
them in the order in which they are read.  Both orders are known, so a ``seq`` unit says what comes
next: a store, or a load and how far it is from the one before.  Each takes two instructions, one
for the address, so the cell works in every second cycle.

In go the orders; out come a program and its tags.  Refused: more words at once than a scratchpad
has, and loads at more distances than a cell has instructions for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE
from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.register_flow import RegisterFlow
from t2s.backends.cgra_tia.lower.schedule import LoopNest
from t2s.backends.cgra_tia.lower.unit_nests import SequenceNest, tag_nest
from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    TagCheck,
    ToOutputs,
    ToRegister,
    Trigger,
)
from t2s.core.ops import Array

VALUES, TAGS = 0, 1
"""The inputs of the cell."""

_SECOND, _LOADS = 1, 2
"""Bits of predicates: the second instruction is to come, it is that of a load."""

_STORED_AT, _LOADED_AT = FromRegister(0), FromRegister(1)


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """A cell that gives tokens in another order than they come, and what its tags are."""

    program: CellProgram
    nest: SequenceNest


@dataclass(frozen=True, kw_only=True)
class _ScratchpadWalk:
    """Addresses one after the other: the last of them, the steps between them, and their order.

    ``steps`` has each distance once; ``codes`` says which of them comes next.  Before the first
    step the address is the last one, so that an order that comes again takes no further step.
    """

    last: int
    steps: list[int]
    codes: Array


def shuffle_of(nest: LoopNest, name: str, flow: RegisterFlow) -> Shuffle:
    """The cell for the values of a register file of this name."""
    written_before = np.searchsorted(flow.written_at, flow.read_at, side="left")
    words = int((written_before - flow.order).max())
    most = EXTENDED_CORE.scratchpad_words
    if words > most:
        refuse(
            nest.subject,
            f"the elements of {name!r} are read in an order for which {words:,} of them have to "
            f"wait in a scratchpad, and a cell has {most} words: use smaller tiles",
            nest.location,
        )
    ways = [(_walk(np.arange(len(flow.written_at)) % words), _walk(flow.order % words))]
    if max(flow.written_to.max(), flow.read_from.max()) < most:
        ways.append((_walk(flow.written_to), _walk(flow.read_from)))
    stores, loads = min(ways, key=lambda way: sum(len(walk.steps) for walk in way))
    program = _program(name, stores, loads)
    count = len(program.instructions)
    if count > EXTENDED_CORE.instructions:
        refuse(
            nest.subject,
            f"the elements of {name!r} are written and read with {count - 2} different steps from "
            f"one to the next, for which a cell would need {count} instructions, and it has "
            f"{EXTENDED_CORE.instructions}",
            nest.location,
        )
    tags = _merged(flow, stores.codes, loads.codes + len(stores.steps))
    return Shuffle(program=program, nest=tag_nest(nest, tags, 1, 1))


def _walk(addresses: Array) -> _ScratchpadWalk:
    distances = addresses - np.roll(addresses, 1)
    found, first, codes = np.unique(distances, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.argsort(order)
    return _ScratchpadWalk(last=int(addresses[-1]), steps=found[order].tolist(), codes=rank[codes])


def _merged(flow: RegisterFlow, stores: Array, loads: Array) -> Array:
    """All tags in the order of firings; a load comes before the store of its firing."""
    when = np.concatenate([2 * flow.read_at, 2 * flow.written_at + 1])
    tags: Array = np.concatenate([loads, stores])[np.argsort(when, kind="stable")]
    return tags


def _program(name: str, stores: _ScratchpadWalk, loads: _ScratchpadWalk) -> CellProgram:
    """An instruction for each step of an address, one that stores and one that loads."""
    instructions: list[Instruction] = []
    for walk, register, kind in ((stores, _STORED_AT, 0), (loads, _LOADED_AT, _LOADS)):
        for step in walk.steps:
            distance = Immediate(step % (1 << EXTENDED_CORE.immediate_width))
            check = TagCheck(channel=TAGS, tag=len(instructions))
            instructions.append(
                Instruction(
                    trigger=Trigger(zeros=_SECOND | _LOADS, checks=(check,)),
                    opcode=Opcode.ADD,
                    destination=ToRegister(register.number),
                    sources=(register, distance),
                    sets=_SECOND | kind,
                )
            )
    first_load = len(stores.steps)
    store = Instruction(  # the tag is that of no load, which the predicates say already
        trigger=Trigger(
            ones=_SECOND,
            zeros=_LOADS,
            checks=(
                TagCheck(channel=TAGS, tag=first_load, equal=False),
                TagCheck(channel=VALUES, tag=0),
            ),
        ),
        opcode=Opcode.SSW,
        sources=(FromChannel(VALUES), _STORED_AT),
        takes=(VALUES, TAGS),
        clears=_SECOND,
    )
    load = Instruction(
        trigger=Trigger(
            ones=_SECOND | _LOADS, checks=(TagCheck(channel=TAGS, tag=0, equal=False),)
        ),
        opcode=Opcode.LSW,
        destination=ToOutputs(channels=(0,), tag=0),
        sources=(_LOADED_AT,),
        takes=(TAGS,),
        clears=_SECOND | _LOADS,
    )
    initial = ((_STORED_AT.number, stores.last), (_LOADED_AT.number, loads.last))
    return CellProgram(
        label=name,
        initial=tuple(pair for pair in initial if pair[1]),
        instructions=(*instructions, store, load),
    )
