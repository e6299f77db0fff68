"""The cells of one process: one for each operation, and movers for values that are only moved.

An operation has the same cell in all classes.  What the cell does in a class is a ``CellAction``; a
cell with several actions gets tags from a ``seq`` unit.  With ``contract``, a product that is only
used in a sum is computed by the cell of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from t2s.backends.cgra_tia.lower.process import CellProcess, ClassStep, Resolved, Taken, TokenStream
from t2s.backends.cgra_tia.lower.values import Operation, Special, WordLiteral
from t2s.backends.cgra_tia.program import Opcode
from t2s.core.ops import Op
from t2s.core.types import INT32, Type

# Instruction selection: most operations are one instruction.
#
# A choice between two values by data takes two: one writes a predicate, and the next one moves the
# chosen value.  Such a cell fires every second cycle.

T = TypeVar("T")

_SIGN = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One opcode applied to operands.

    With ``chooses`` it compares the first two operands; the result is the third operand where the
    comparison holds, and the fourth elsewhere.
    """

    opcode: Opcode
    chooses: bool = False


MOVE = Recipe(opcode=Opcode.MOV)


FLOATS = {
    Op.ADD: Opcode.FADD,
    Op.SUBTRACT: Opcode.FSUB,
    Op.MULTIPLY: Opcode.FMUL,
    Op.EQUAL: Opcode.FEQ,
    Op.NOT_EQUAL: Opcode.FNE,
    Op.LESS: Opcode.FLT,
    Op.LESS_EQUAL: Opcode.FLE,
    Op.GREATER: Opcode.FGT,
    Op.GREATER_EQUAL: Opcode.FGE,
}

INTEGERS = {
    Op.ADD: Opcode.ADD,
    Op.SUBTRACT: Opcode.SUB,
    Op.MULTIPLY: Opcode.LMUL,
    Op.EQUAL: Opcode.EQ,
    Op.NOT_EQUAL: Opcode.NE,
    Op.LESS: Opcode.SLT,
    Op.LESS_EQUAL: Opcode.SLE,
    Op.GREATER: Opcode.SGT,
    Op.GREATER_EQUAL: Opcode.SGE,
    Op.AND: Opcode.BAND,
    Op.OR: Opcode.BOR,
    Op.XOR: Opcode.BXOR,
    Op.SHIFT_LEFT: Opcode.SL,
    Op.SHIFT_RIGHT: Opcode.ASR,
}


def recipe_of(
    operation: Operation, operands: Sequence[T]
) -> tuple[Recipe, tuple[T | WordLiteral, ...]]:
    """The recipe of an operation, and its operands; three operands of ADD are ``a + b * c``."""
    type = operation.operands[-1].type
    table = FLOATS if type.is_float else INTEGERS
    match operation.operator:
        case Op.ADD if len(operands) == 3:
            return Recipe(opcode=Opcode.FMAC if type.is_float else Opcode.MAC), tuple(operands)
        case Op.FUSED_MULTIPLY_ADD:
            first, second, third = operands
            return Recipe(opcode=Opcode.FMAC), (third, first, second)
        case Op.MINIMUM | Op.MAXIMUM as operator:
            first, second = operands
            less = table[Op.LESS if operator is Op.MINIMUM else Op.GREATER]
            return Recipe(opcode=less, chooses=True), (second, first, second, first)
        case Special.PICK:
            test, yes, no = operands
            return Recipe(opcode=Opcode.NE, chooses=True), (test, _zero(INT32), yes, no)
        case Special.CONVERT:
            return _converted(operation, operands[0])
        case Op.NEGATE:
            return Recipe(opcode=Opcode.BXOR), (operands[0], WordLiteral(pattern=_SIGN, type=type))
        case Op.ABSOLUTE:
            return Recipe(opcode=Opcode.BAND), (
                operands[0],
                WordLiteral(pattern=_SIGN - 1, type=type),
            )
        case Op.NOT:
            ones = WordLiteral(pattern=1 if type.is_bool else (1 << 64) - 1, type=type)
            return Recipe(opcode=Opcode.BXOR), (operands[0], ones)
        case operator:
            assert isinstance(operator, Op)
            return Recipe(opcode=table[operator]), tuple(operands)


def _zero(type: Type) -> WordLiteral:
    return WordLiteral(pattern=0, type=type)


def _converted(operation: Operation, value: T) -> tuple[Recipe, tuple[T | WordLiteral, ...]]:
    source, target = operation.operands[0].type, operation.type
    if target.is_bool:
        test = Opcode.FNE if source.is_float else Opcode.NE
        return Recipe(opcode=test), (value, _zero(source))
    if target.is_float:
        return Recipe(opcode=Opcode.ITF), (value,)
    assert source.is_float
    return Recipe(opcode=Opcode.FTI), (value,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """The wire on which an operation sends its result to other cells of its process."""

    process: str
    operation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenAgain:
    """The tokens of a wire a second time, for a later turn of a shared cell."""

    wire: Wire
    turn: int


Wire = TokenStream | CellResult | TakenAgain
"""What comes into a port of a cell or leaves it."""

Operand = WordLiteral | Wire


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAction:
    """What a cell does in one firing: a recipe on operands, its outputs, and what it takes."""

    recipe: Recipe | None
    operands: tuple[Operand, ...] = ()
    outputs: tuple[Wire, ...] = ()
    takes: tuple[Wire, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing happens."""
        return not self.takes and not self.outputs


@dataclass(kw_only=True)
class CellDraft:
    """A cell: its inputs, and its action in each class.

    ``residents`` are inputs of which it takes one token, first of all, and keeps it.
    """

    name: str
    process: CellProcess
    operator: str
    inputs: list[Wire] = field(default_factory=list)
    actions: list[CellAction] = field(default_factory=list)
    residents: list[Wire] = field(default_factory=list)


def draft_cells(process: CellProcess, *, contract: bool) -> list[CellDraft]:
    """All cells of a process, those of operations first."""
    return _CellDrafting(process, contract).cells()


@dataclass(kw_only=True)
class _Work:
    """One class: the operations that are active in it, and the values that are sent."""

    step: ClassStep
    active: dict[int, tuple[Recipe, tuple[Resolved, ...]]] = field(default_factory=dict)
    sends: dict[TokenStream, Resolved] = field(default_factory=dict)


class _CellDrafting:
    def __init__(self, process: CellProcess, contract: bool) -> None:
        self._process = process
        self._contract = contract
        self._operations: dict[int, Operation] = {}
        self._work = [self._resolved_step(step) for step in process.steps]
        users = self._users()
        for work in self._work:
            self._activate(work, users)

    # ------------------------------------------------------------------------ what is computed

    def _resolved_step(self, step: ClassStep) -> _Work:
        return _Work(
            step=step, sends={stream: step.resolved(value) for stream, value in step.sends.items()}
        )

    def _users(self) -> dict[int, set[int | TokenStream]]:
        """The users of each operation, in any class: operations and streams."""
        users: dict[int, set[int | TokenStream]] = {}
        for work in self._work:
            waiting: list[tuple[Resolved, int | TokenStream]] = [
                (value, stream) for stream, value in work.sends.items()
            ]
            seen: set[int] = set()
            while waiting:
                value, user = waiting.pop()
                if not isinstance(value, Operation):
                    continue
                self._operations[value.number] = value
                users.setdefault(value.number, set()).add(user)
                if value.number not in seen:
                    seen.add(value.number)
                    waiting += [(work.step.resolved(v), value.number) for v in value.operands]
        return users

    def _activate(self, work: _Work, users: dict[int, set[int | TokenStream]]) -> None:
        waiting = [value for value in work.sends.values() if isinstance(value, Operation)]
        while waiting:
            operation = waiting.pop()
            if operation.number in work.active:
                continue
            operands = [work.step.resolved(value) for value in operation.operands]
            exact = self._contract or operation.type.is_integer
            fused = self._fused(work, operation, operands, users) if exact else None
            recipe = fused or recipe_of(operation, operands)
            work.active[operation.number] = recipe
            waiting += [operand for operand in recipe[1] if isinstance(operand, Operation)]

    def _fused(
        self,
        work: _Work,
        operation: Operation,
        operands: Sequence[Resolved],
        users: dict[int, set[int | TokenStream]],
    ) -> tuple[Recipe, tuple[Resolved, ...]] | None:
        """A sum fused with a product that has no other use."""
        if operation.operator is not Op.ADD:
            return None
        for at in (1, 0):
            product, other = operands[at], operands[1 - at]
            if not isinstance(product, Operation) or product.operator is not Op.MULTIPLY:
                continue
            if users[product.number] != {operation.number} or other == product:
                continue
            factors = [work.step.resolved(value) for value in product.operands]
            return recipe_of(operation, [other, *factors])
        return None

    # ----------------------------------------------------------------------------- who does it

    def cells(self) -> list[CellDraft]:
        numbers = sorted({number for work in self._work for number in work.active})
        hosts = self._hosts()
        plans = [
            (self._operations[number].operator.name.lower(), self._operation_plans(number, hosts))
            for number in numbers
        ]
        plans += [
            ("mov", [self._move_plan(work, streams) for work in self._work])
            for streams in self._moved(hosts)
        ]
        return self._drafts(plans)

    def _hosts(self) -> dict[TokenStream, int]:
        """The operation whose cell sends each stream; streams without one are sent by movers."""
        hosts: dict[TokenStream, int] = {}
        for stream in self._streams():
            values = [work.sends[stream] for work in self._work if stream in work.sends]
            numbers = {value.number for value in values if isinstance(value, Operation)}
            if len(numbers) != 1:
                continue
            (number,) = numbers
            others = [
                work
                for work in self._work
                if stream in work.sends and not isinstance(work.sends[stream], Operation)
            ]
            if all(number not in work.active for work in others) and self._agree(
                number, stream, hosts
            ):
                hosts[stream] = number
        return hosts

    def _agree(self, number: int, stream: TokenStream, hosts: dict[TokenStream, int]) -> bool:
        """Whether the cell of an operation would move at most one value in each class."""
        mine = [*(other for other, host in hosts.items() if host == number), stream]
        for work in self._work:
            if number in work.active:
                continue
            moved = {work.sends[other] for other in mine if other in work.sends}
            if len(moved) > 1:
                return False
        return True

    def _streams(self) -> list[TokenStream]:
        return list(dict.fromkeys(stream for work in self._work for stream in work.sends))

    def _moved(self, hosts: dict[TokenStream, int]) -> list[list[TokenStream]]:
        """Streams without an operation, grouped where one mover can send them one at a time."""
        groups: list[list[TokenStream]] = []
        for stream in self._streams():
            if stream in hosts:
                continue
            for group in groups:
                if self._share(group, stream):
                    group.append(stream)
                    break
            else:
                groups.append([stream])
        return groups

    def _share(self, group: list[TokenStream], stream: TokenStream) -> bool:
        sources: list[set[Resolved]] = [set(), set()]
        for work in self._work:
            moved = {work.sends[other] for other in (*group, stream) if other in work.sends}
            if len(moved) > 1:
                return False
            sources[0] |= {work.sends[other] for other in group if other in work.sends}
            sources[1] |= {work.sends[stream]} if stream in work.sends else set()
        return bool(sources[0] & sources[1])

    def _operation_plans(self, number: int, hosts: dict[TokenStream, int]) -> list[_Plan]:
        plans: list[_Plan] = []
        mine = [stream for stream, host in hosts.items() if host == number]
        for work in self._work:
            outputs: list[Wire] = [stream for stream in mine if stream in work.sends]
            if number not in work.active:
                values = [work.sends[stream] for stream in mine if stream in work.sends]
                plans.append(
                    _Plan(recipe=MOVE, operands=(values[0],), outputs=outputs)
                    if values
                    else _Plan(recipe=None, operands=(), outputs=[])
                )
                continue
            recipe, operands = work.active[number]
            if self._used_inside(work, number, hosts):
                outputs.append(CellResult(process=self._process.name, operation=number))
            plans.append(_Plan(recipe=recipe, operands=operands, outputs=outputs))
        return plans

    def _used_inside(self, work: _Work, number: int, hosts: dict[TokenStream, int]) -> bool:
        """Whether another cell of the process takes the result."""
        operation = self._operations[number]
        if any(operation in operands for _, operands in work.active.values()):
            return True
        return any(
            value is operation for stream, value in work.sends.items() if stream not in hosts
        )

    def _move_plan(self, work: _Work, streams: list[TokenStream]) -> _Plan:
        sent = [stream for stream in streams if stream in work.sends]
        if not sent:
            return _Plan(recipe=None, operands=(), outputs=[])
        return _Plan(recipe=MOVE, operands=(work.sends[sent[0]],), outputs=list(sent))

    # -------------------------------------------------------------------------------- drafts

    def _drafts(self, plans: list[tuple[str, list[_Plan]]]) -> list[CellDraft]:
        drafts: list[CellDraft] = []
        for suffix, steps in plans:
            name = self._process.name if len(plans) == 1 else f"{self._process.name}.{suffix}"
            known = sum(1 for draft in drafts if draft.operator == suffix)
            name = f"{name}{known + 1}" if known else name
            draft = CellDraft(name=name, process=self._process, operator=suffix)
            for plan in steps:
                for operand in plan.operands:
                    wire = self._operand(operand)
                    if not isinstance(wire, WordLiteral) and wire not in draft.inputs:
                        draft.inputs.append(wire)
            drafts.append(draft)
        for at, work in enumerate(self._work):
            put = {wire for _, steps in plans for wire in steps[at].outputs}
            for draft, (_, steps) in zip(drafts, plans, strict=True):
                draft.actions.append(self._action(draft, work, steps[at], put))
        return drafts

    def _action(self, draft: CellDraft, work: _Work, plan: _Plan, put: set[Wire]) -> CellAction:
        taken = work.step.taken
        return CellAction(
            recipe=plan.recipe,
            operands=tuple(self._operand(operand) for operand in plan.operands),
            outputs=tuple(plan.outputs),
            takes=tuple(
                wire
                for wire in draft.inputs
                if wire in (taken if isinstance(wire, TokenStream) else put)
            ),
        )

    def _operand(self, value: Resolved) -> Operand:
        match value:
            case Taken(stream):
                return stream
            case Operation(number=number):
                return CellResult(process=self._process.name, operation=number)
        return value


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What a cell does in a class, before its takes are decided."""

    recipe: Recipe | None
    operands: tuple[Resolved, ...]
    outputs: list[Wire]
