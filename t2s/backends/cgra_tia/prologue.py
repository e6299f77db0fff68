"""What a cell does before it comes to the state that it stays in.

A cell that keeps a value in a register first fires an instruction that takes the value, and sets a
predicate, so that this one never fires again.  All such instructions, one after the other, are its
*prologue*; those of the state that no instruction leaves are *steady*.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.cgra_tia.program import Instruction

_Instructions = tuple[Instruction, ...]


def prologue_of(instructions: Sequence[Instruction]) -> tuple[_Instructions, _Instructions]:
    """The instructions that fire once, one after the other, and those of the state that stays.

    The latter are empty if there is no such state.
    """
    predicates, prologue = 0, list[Instruction]()
    while len(prologue) <= len(instructions):
        there = tuple(i for i in instructions if i.trigger.matches(predicates))
        if not any(i.sets & ~predicates or i.clears & predicates for i in there):
            return tuple(prologue), there
        if len(there) != 1:
            break
        predicates = predicates & ~there[0].clears | there[0].sets
        prologue.append(there[0])
    return (), ()
