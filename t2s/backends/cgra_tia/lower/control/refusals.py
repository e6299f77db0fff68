"""Machines that cannot become cells: every error text, with the block and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE
from t2s.backends.cgra_tia.lower.control.flat_blocks import EMPTY_TAG
from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.core.expr import BitOperator, Expr, Parameter
from t2s.core.location import SourceLocation
from t2s.core.printer import show
from t2s.core.types import BOOL, INT32, Float, Int, Kind, Type
from t2s.core.walk import walk
from t2s.graph.body import Load, Statement, Store, by_lanes
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Machine, Search
from t2s.graph.verify_machine import accesses_of

WORDS_OF_BLOCKS = (Float(64), Int(64), INT32, BOOL)

_WORDS = "words of this CGRA are float64, int64 and int32"


class BlockRefusals:
    """Refuses a machine, or a part of it, with the name of the block and the user's line."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def refuse(self, why: str, location: SourceLocation | None = None) -> NoReturn:
        refuse(f"block {self.machine.name!r}", why, location or self.machine.location)

    def check_machine(self, graph: Graph) -> None:
        """Refuse what is unsupported before the rules are read."""
        machine, core = self.machine, EXTENDED_CORE
        for step in machine.statements():
            if isinstance(step, Load | Store) and by_lanes(step.indices):
                self.refuse(
                    f"it accesses {step.tensor!r} by a vector of indices, and cells load and store "
                    "one word at a time: access it by one index"
                )
        check_memory(machine, graph)
        if machine.interval > 1 or machine.latency:
            self.refuse(
                "it has an interval or a latency of its own, and cells fire every cycle: store "
                "tensors without blocks"
            )
        if machine.memories:
            self.refuse(
                f"it keeps the points {machine.memories[0].name!r} in a sorted memory, and cells "
                "have none: order the loops so that the sum is the innermost one (reorder)"
            )
        if machine.space:
            self.refuse(
                f"it is an array of {machine.place_count} machines, and one machine becomes "
                "cells: put the blocks one by one"
            )
        files = [register for register in machine.registers if register.shape]
        if files:
            self.refuse(
                f"it has a register file {files[0].name!r} of {list(files[0].shape)}, and a cell "
                f"has {core.registers} registers: leave out what needs it (a window, lanes)"
            )
        if len(machine.heads) > core.inputs:
            self.refuse(
                f"it looks at {len(machine.heads)} streams, and a cell has {core.inputs} inputs: "
                "split it, as an intersection of many sides into several of two"
            )
        for register in machine.registers:
            self.check_type(register.type, f"keeps {register.type}")
        for channel in (*graph.inputs_of(machine.name), *graph.outputs_of(machine.name)):
            self.check_type(channel.stream.element, f"has a stream of {channel.stream.element}")
            if channel.shape:
                self.refuse(
                    f"its channel {channel.name!r} is an array of {list(channel.shape)}, and nets "
                    "of blocks are single: put the blocks one by one"
                )
        for node in walk(machine):
            if isinstance(node, BitOperator):
                self.refuse(
                    f"it computes {show(node)}, and cells have no operators on the bits of words: "
                    "store levels of bits (b, t) compressed (s)"
                )
            if isinstance(node, Parameter):
                self.refuse(
                    f"it uses the parameter {node.name!r}, and only PEs take scalars: give it as "
                    "a number, or as a dense tensor of one element"
                )

    def check_type(self, type: Type, does: str) -> None:
        """Refuse types that are not words of a cell."""
        if type.lanes > 1:
            self.refuse(f"it {does}, and words of this CGRA are scalars: drop vectorize")
        if type.kind is Kind.UINT:
            self.refuse(
                f"it {does}, and {_WORDS}: store levels of bits (b, t) compressed (s), and values "
                'as type="int64"'
            )
        if type not in WORDS_OF_BLOCKS:
            self.refuse(f'it {does}, and {_WORDS}: use type="float64" or type="int64"')

    def check_heads(self, heads: Sequence[str]) -> None:
        """Refuse waits for more heads than an instruction can check."""
        most = EXTENDED_CORE.checks
        if len(heads) > most:
            self.refuse(
                f"it waits for {len(heads)} streams at once, and an instruction checks {most}: "
                "split it, as a union of many sides into several of two"
            )

    def check_tag(self, tag: int) -> None:
        """Refuse stops of levels that have no tag."""
        if tag >= EMPTY_TAG:
            self.refuse(
                f"it puts the stop of level {tag - 1}, and tags tell stops of levels 0 to "
                f"{EMPTY_TAG - 2} apart: use fewer levels"
            )

    def too_many_states(self, count: int) -> NoReturn:
        self.refuse(
            f"its modes and flags are more than {count - 1} states, and 7 predicates number "
            f"{count - 1}: use smaller extents, or fewer levels"
        )

    def depends(self, what: str, rule: str) -> NoReturn:
        self.refuse(
            f"{what} depends on values in its rule {rule!r}, and instructions put tags that are "
            "fixed: streams that are played (play) and recorded have such tags"
        )

    def index_of(self, graph: Graph, statement: Load | Store) -> Expr:
        """The position in the row-major array; refused for vectors and arrays of other types."""
        tensor = graph.tensor(statement.tensor)
        self.check_type(tensor.type, f"uses {tensor.name!r} of {tensor.type}")
        index = statement.indices[0]
        for extent, inner in zip(tensor.allocated[1:], statement.indices[1:], strict=True):
            index = index * extent + inner
        return index

    def statement(self, statement: Statement) -> NoReturn:
        """Refuse a statement that no cell carries out."""
        match statement:
            case Search(tensor=tensor):
                self.refuse(
                    f"it searches in {tensor!r}, and stream units read at addresses: store that "
                    "operand dense, or let both sides be scanned and intersected"
                )
            case _:
                self.refuse(
                    f"its statement {type(statement).__name__} has no instruction: use blocks "
                    "of streams that t2s has"
                )

    def operator(self, what: str, hint: str) -> NoReturn:
        """Refuse an operator of its expressions."""
        self.refuse(f"it computes {what}, and no cell can: {hint}")

    def too_large(self, parts: Sequence[tuple[str, int, int]]) -> None:
        """Refuse a cell that exceeds a resource; ``parts`` are name, needed and available count."""
        over = [(what, count, most) for what, count, most in parts if count > most]
        if not over:
            return
        needs = ", ".join(f"{count} {what} (a cell has {most})" for what, count, most in over)
        self.refuse(
            f"its cell would need {needs}: use fewer levels, fewer operands in one block, or a "
            "format whose coordinates are dense"
        )


def check_memory(machine: Machine, graph: Graph) -> None:
    """Refuse shared banks, and a block that loads what it stores (two blocks never do that)."""
    for name in sorted(accesses_of(machine)):
        if graph.tensor(name).place is MemorySpace.SHARED:
            BlockRefusals(machine).refuse(
                f"{name!r} is{graph.tensor(name).place_text}, and cells have none: give it "
                "MemorySpace.MEMORY"
            )
    stored = {s.tensor for s in machine.statements() if isinstance(s, Store)}
    for statement in machine.statements():
        if isinstance(statement, Load | Search) and statement.tensor in stored:
            name = statement.tensor
            kind = "the open tensor" if graph.tensor(name).open else "the tensor"
            BlockRefusals(machine).refuse(
                f"it reads fibers of {kind} {name!r} while it writes them, and stream units do "
                "not wait for one another: write a compressed level (write_compressed) instead"
            )
