"""From the actions of a cell to its program, within the sizes of a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, CellKind
from t2s.backends.cgra_tia.lower.cells import CellAction, CellDraft, Wire
from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.backends.cgra_tia.lower.values import WordLiteral
from t2s.backends.cgra_tia.opcodes import ON_FMA, Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    Destination,
    FromChannel,
    FromRegister,
    Immediate,
    Instruction,
    Source,
    TagCheck,
    ToOutputs,
    ToPredicate,
    ToRegister,
    Trigger,
)

_PHASE, _HOLDS = 1, 2
"""Predicates of a cell that chooses: bits of 'a comparison was made', and of its result."""

_FIRST_RESIDENT = 4
"""The predicate of the first token that stays; the others follow."""


@dataclass(frozen=True, kw_only=True)
class CellPorts:
    """The ports of a cell: inputs by wire, outputs by wire, and that of the tags, if it has one."""

    inputs: Mapping[Wire, int]
    outputs: Mapping[Wire, int]
    tags: int | None


def ports_of(draft: CellDraft, actions: Sequence[CellAction], *, tagged: bool) -> CellPorts:
    """Numbers for all that comes in and goes out; wires that always go together share an output."""
    inputs: dict[Wire, int] = {}
    for wire in draft.inputs:
        if wire in draft.residents or any(wire in action.takes for action in actions):
            inputs[wire] = len(inputs)
    outputs: dict[Wire, int] = {}
    shared: dict[tuple[bool, ...], int] = {}
    for wire in dict.fromkeys(wire for action in actions for wire in action.outputs):
        used = tuple(wire in action.outputs for action in actions)
        outputs[wire] = shared.setdefault(used, len(shared))
    ports = CellPorts(inputs=inputs, outputs=outputs, tags=len(inputs) if tagged else None)
    core = EXTENDED_CORE
    for what, count, most in (
        ("input channels", len(inputs) + tagged, core.inputs),
        ("output channels", len(shared), core.outputs),
    ):
        if count > most:
            _too_many(draft, count, what, most)
    return ports


def program_of(
    draft: CellDraft, actions: Sequence[CellAction], ports: CellPorts
) -> tuple[CellProgram, CellKind]:
    """The program of a cell whose action number ``n`` is chosen by tag ``n``."""
    writer = _Writer(draft, ports)
    for number, action in enumerate(actions):
        writer.action(number, action)
    core = EXTENDED_CORE
    for what, count, most in (
        ("different things to do, told apart by tags", len(actions), core.tags),
        ("instructions", len(writer.instructions), core.instructions),
        ("registers", len(writer.registers), core.registers),
    ):
        if count > most:
            _too_many(draft, count, what, most)
    fma = any(instruction.opcode in ON_FMA for instruction in writer.instructions)
    program = CellProgram(
        label=draft.name,
        initial=tuple(
            (number, held) for held, number in writer.registers.items() if isinstance(held, int)
        ),
        instructions=tuple(writer.instructions),
    )
    return program, CellKind.FMA if fma else CellKind.CONTROL


def _too_many(draft: CellDraft, count: int, what: str, most: int) -> None:
    point = list(draft.process.origin.point)
    where = f" at {point}" if point else ""
    less = ", or take a smaller interval" if " and " in draft.operator else ""
    refuse(
        draft.process.nest.subject,
        f"the cell of its {draft.operator!r}{where} would need {count} {what}, and a cell has "
        f"{most}: give it fewer operands, or fewer conditions on loops{less}",
        draft.process.nest.location,
    )


class _Writer:
    def __init__(self, draft: CellDraft, ports: CellPorts) -> None:
        self._draft = draft
        self._ports = ports
        self.instructions: list[Instruction] = []
        self.registers: dict[int | Wire, int] = {}
        self._there = 0
        for wire in draft.residents:
            self._settle(wire)

    def _settle(self, wire: Wire) -> None:
        """An instruction that keeps the only token of a wire."""
        bit = _next_bit(self._there) if self._there else _FIRST_RESIDENT
        assert bit < 1 << EXTENDED_CORE.predicates, "an operator has three operands at most"
        port = self._ports.inputs[wire]
        number = self.registers.setdefault(wire, len(self.registers))
        self.instructions.append(
            Instruction(
                trigger=Trigger(
                    ones=self._there, zeros=bit, checks=(TagCheck(channel=port, tag=0),)
                ),
                opcode=Opcode.MOV,
                destination=ToRegister(number),
                sources=(FromChannel(port),),
                takes=(port,),
                sets=bit,
            )
        )
        self._there |= bit

    def action(self, number: int, action: CellAction) -> None:
        """The instructions of one action."""
        checks = []
        if self._ports.tags is not None:
            checks.append(TagCheck(channel=self._ports.tags, tag=number))
        takes = [self._ports.inputs[wire] for wire in action.takes]
        checks += [TagCheck(channel=port, tag=0) for port in takes]
        assert len(checks) <= EXTENDED_CORE.checks, "an operator has three operands at most"
        if self._ports.tags is not None:
            takes.append(self._ports.tags)
        channels = tuple(sorted({self._ports.outputs[wire] for wire in action.outputs}))
        target = ToOutputs(channels=channels, tag=0)
        if action.recipe is None or not channels:
            self._add(Opcode.NOP, None, (), tuple(checks), tuple(takes))
        elif action.recipe.chooses:
            self._choose(action, target, tuple(checks), tuple(takes))
        else:
            sources = self._sources(action.operands)
            self._add(action.recipe.opcode, target, sources, tuple(checks), tuple(takes))

    def _choose(
        self,
        action: CellAction,
        target: ToOutputs,
        checks: tuple[TagCheck, ...],
        takes: tuple[int, ...],
    ) -> None:
        assert action.recipe is not None
        first, second, yes, no = action.operands
        before = Trigger(ones=self._there, zeros=_PHASE, checks=checks)
        self.instructions.append(
            Instruction(
                trigger=before,
                opcode=action.recipe.opcode,
                destination=ToPredicate(_HOLDS.bit_length() - 1),
                sources=self._sources((first, second)),
                sets=_PHASE,
            )
        )
        for value, ones, zeros in ((yes, _PHASE | _HOLDS, 0), (no, _PHASE, _HOLDS)):
            self.instructions.append(
                Instruction(
                    trigger=Trigger(ones=ones | self._there, zeros=zeros, checks=checks),
                    opcode=Opcode.MOV,
                    destination=target,
                    sources=self._sources((value,)),
                    takes=takes,
                    clears=_PHASE,
                )
            )

    def _add(
        self,
        opcode: Opcode,
        target: Destination,
        sources: tuple[Source, ...],
        checks: tuple[TagCheck, ...],
        takes: tuple[int, ...],
    ) -> None:
        self.instructions.append(
            Instruction(
                trigger=Trigger(ones=self._there, checks=checks),
                opcode=opcode,
                destination=target,
                sources=sources,
                takes=takes,
            )
        )

    def _sources(self, operands: Sequence[WordLiteral | Wire]) -> tuple[Source, ...]:
        """The operands; one number may be an immediate, all others wait in registers."""
        found: list[Source] = []
        immediate = False
        for operand in operands:
            if not isinstance(operand, WordLiteral) and operand in self._draft.residents:
                found.append(FromRegister(self.registers[operand]))
                continue
            if not isinstance(operand, WordLiteral):
                found.append(FromChannel(self._ports.inputs[operand]))
                continue
            pattern = operand.pattern
            small = not operand.type.is_float or pattern == 0
            if small and _fits(pattern) and not immediate:
                immediate = True
                found.append(Immediate(pattern % (1 << EXTENDED_CORE.immediate_width)))
            else:
                number = self.registers.setdefault(pattern, len(self.registers))
                found.append(FromRegister(number))
        return tuple(found)


def _next_bit(bits: int) -> int:
    return 1 << bits.bit_length()


def _fits(pattern: int) -> bool:
    """Whether a word is an immediate, sign-extended."""
    half = 1 << (EXTENDED_CORE.immediate_width - 1)
    return pattern < half or pattern >= (1 << EXTENDED_CORE.word_width) - half
