"""Flat blocks as programs of cells.

A block that is too large for a cell is split by its outputs: two cells see the same heads and make
the same choices, and each sends half of the outputs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, CellKind
from t2s.backends.cgra_tia.lower.cells import FLOATS, INTEGERS
from t2s.backends.cgra_tia.lower.control import flat_blocks as flat
from t2s.backends.cgra_tia.lower.control.control_states import (
    TEST,
    CellStep,
    PlaceOption,
    meets,
    merged,
    place_count,
    program_of_places,
    with_fewer,
    within_others,
)
from t2s.backends.cgra_tia.lower.control.refusals import BlockRefusals
from t2s.backends.cgra_tia.lower.values import pattern_of
from t2s.core.expr import Apply, Cast, Const, Expr, Local, const
from t2s.core.ops import Op
from t2s.core.types import INT32, Int

Checks = tuple[tuple[str, int], ...]
"""Heads that are known to be there, and their tags."""


@dataclass(frozen=True, kw_only=True)
class BlockCell:
    """A cell of a block: its program, and the ports of its channels.

    Channels that always carry the same share a port, so ``outputs`` has the first of them only.
    ``loops`` are channels from the cell to itself: output and input port.
    """

    name: str
    kind: CellKind
    program: isa.CellProgram
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    loops: tuple[tuple[int, int], ...]


def cells_of(block: flat.FlatBlock, refusals: BlockRefusals, *, contract: bool) -> list[BlockCell]:
    """The cells of a block; raises ``NotLowered`` if it does not fit."""
    return _fitting(block, list(dict.fromkeys(flat.alike(block).values())), refusals, contract, "")


def _fitting(
    block: flat.FlatBlock, outputs: list[str], refusals: BlockRefusals, contract: bool, suffix: str
) -> list[BlockCell]:
    for alone in (False, True):
        writer = _BlockWriter(block, outputs, refusals, contract, alone=alone)
        cell, sizes = writer.cell(f"{block.name}{suffix}")
        fits = all(count <= most for _, count, most in sizes)
        if fits or not block.ties:
            break
    asks = any(flat.asks_of(tree) for tree in block.trees.values())
    if fits or len(outputs) < 2 or asks:
        refusals.too_large(sizes)
        return [cell]
    half = len(outputs) // 2
    parts = outputs[:half], outputs[half:]
    return [
        part
        for number, own in enumerate(parts, 1)
        for part in _fitting(block, own, refusals, contract, f"{suffix}.{number}")
    ]


class _BlockWriter:
    def __init__(
        self,
        block: flat.FlatBlock,
        outputs: Sequence[str],
        refusals: BlockRefusals,
        contract: bool,
        *,
        alone: bool,
    ) -> None:
        self._same = flat.alike(block)
        own = set(outputs)
        narrowed = {
            s: flat.changed(t, lambda part: _only(part, own)) for s, t in block.trees.items()
        }
        own_block = replace(block, trees=narrowed)
        self._needed: flat.NeededBlock = flat.needed(
            flat.without_ties(own_block) if alone else own_block
        )
        self._block = self._needed.block
        self._refusals = refusals
        self._cell = CellContext(refusals=refusals, contract=contract, loose=block.loose)
        self._places: dict[Hashable, list[PlaceOption]] = {}
        self._waiting: list[tuple[Hashable, flat.Tree, flat.ControlState, Checks]] = []

    # ---------------------------------------------------------------------------------- cell

    def cell(self, name: str) -> tuple[BlockCell, list[tuple[str, int, int]]]:
        """The cell, and its use of each limited resource: name, number used, number available."""
        cell, block = self._cell, self._block
        self._settle()
        start: Hashable = ("state", block.first)
        initial = self._needed.live[block.first] & self._needed.summed
        if initial:
            start = self._start(sorted(initial), start)
        for state, tree in block.trees.items():
            self._places[("state", state)] = self._options(tree, state, (), ())
        while self._waiting:
            place, tree, state, known = self._waiting.pop()
            if place not in self._places:
                self._places[place] = []
                self._places[place] = self._options(tree, state, known, ())
        reached = within_others(self._reached(start))
        tags = EXTENDED_CORE.tags
        places = {n: with_fewer(o, tags) for n, o in merged(reached, start).items()}
        constants = {number: pattern for (pattern, _), number in cell.constants.items()}
        program = program_of_places(places, constants, name)
        fma = any(i.opcode in isa.ON_FMA for i in program.instructions)
        checks = max((len(i.trigger.checks) for i in program.instructions), default=0)
        core = EXTENDED_CORE
        sizes = [
            ("instructions", len(program.instructions), core.instructions),
            ("registers", cell.registers, core.registers),
            ("inputs", len(cell.inputs), core.inputs),
            ("outputs", len(cell.outputs), core.outputs),
            ("heads to check at once", checks, core.checks),
            ("places of its program", place_count(places), 1 << TEST),
        ]
        block_cell = BlockCell(
            name=name,
            kind=CellKind.FMA if fma else CellKind.CONTROL,
            program=program,
            inputs={n: p for n, p in cell.inputs.items() if n in block.heads},
            outputs={n: p for n, p in cell.outputs.items() if n in block.outputs},
            loops=tuple(cell.loops.values()),
        )
        return block_cell, sizes

    def _settle(self) -> None:
        """Assign ports to the heads and ports or registers to the registers of the block."""
        cell, block = self._cell, self._block
        for head in block.heads:
            cell.sources[block.values[head]] = isa.FromChannel(cell.input(head))
        used = frozenset[str]().union(*self._needed.live.values())
        for name in block.registers:
            if name in self._needed.summed:
                cell.sources[name] = isa.FromChannel(cell.loop(name)[1])
            elif name in used:
                cell.sources[name] = isa.FromRegister(cell.new_register())

    def _start(self, registers: Sequence[str], then: Hashable) -> Hashable:
        """Places before the first one, at which sums start with zero."""
        place = then
        for name in reversed(registers):
            output, _ = self._cell.loop(name)
            zero = const(0.0, self._block.registers[name])
            step = CellStep(
                opcode=isa.Opcode.MOV,
                destination=isa.ToOutputs((output,), flat.VALUE_TAG),
                sources=(self._cell.literal(zero, immediate=True),),
            )
            self._places["start", name] = [PlaceOption(step=step, holds=None, after=place)]
            place = "start", name
        return place

    def _reached(self, start: Hashable) -> dict[Hashable, list[PlaceOption]]:
        reached: dict[Hashable, list[PlaceOption]] = {}
        waiting = [start]
        while waiting:
            place = waiting.pop()
            if place in reached:
                continue
            reached[place] = self._places[place]
            waiting += [o.after for o in reversed(self._places[place]) if o.after is not None]
        return reached

    # ------------------------------------------------------------------------------- options

    def _options(
        self,
        tree: flat.Tree,
        state: flat.ControlState,
        known: Checks,
        checks: Checks,
        holds: bool | None = None,
    ) -> list[PlaceOption]:
        """What can fire at a place; ``checks`` are what the first step of each option waits for."""
        match tree:
            case flat.HeadWait(heads=heads, cases=cases):
                options: list[PlaceOption] = []
                for tags, below in cases:
                    exact = tuple(zip(heads, tags, strict=True))
                    if any(not meets(dict(known).get(head, tag), tag) for head, tag in exact):
                        continue
                    seen = zip(heads, _tags_of(below, cases), strict=True)
                    both = tuple(dict((*known, *seen)).items())
                    all_checks = tuple(dict((*checks, *exact)).items())
                    options += self._options(below, state, both, all_checks, holds)
                return options
            case flat.ValueTest():
                return self._test(tree, state, known, checks, holds)
            case flat.Ask(asks=asks, answers=answers, index=index, then=then):
                steps = self._steps(known)
                steps.compute(index, isa.ToOutputs((self._cell.output(asks),), flat.VALUE_TAG))
                wait = flat.HeadWait(heads=(answers,), cases=(((flat.VALUE_TAG,), then),))
                return self._chain(steps, self._place(wait, state, known), checks, holds)
            case flat.Firing():
                return self._firing(tree, state, known, checks, holds)
        raise AssertionError(f"{type(tree).__name__} is left")

    def _place(self, tree: flat.Tree, state: flat.ControlState, known: Checks) -> Hashable:
        place = ("tree", tree, state, known)
        self._waiting.append((place, tree, state, known))
        return place

    def _steps(self, known: Checks) -> FiringSteps:
        inputs = self._cell.inputs
        return FiringSteps(cell=self._cell, tags={inputs[name]: tag for name, tag in known})

    def _test(
        self,
        test: flat.ValueTest,
        state: flat.ControlState,
        known: Checks,
        checks: Checks,
        holds: bool | None,
    ) -> list[PlaceOption]:
        steps = self._steps(known)
        condition = test.condition
        if isinstance(condition, Local):
            zero = const(0, condition.type)
            condition = Apply(
                operator=Op.NOT_EQUAL, operands=(condition, zero), type=condition.type
            )
        steps.compute(condition, isa.ToPredicate(TEST))
        place = ("test", test.yes, test.no, state, known)
        if place not in self._places:
            self._places[place] = []
            self._places[place] = [
                *self._options(test.yes, state, known, (), True),
                *self._options(test.no, state, known, (), False),
            ]
        return self._chain(steps, place, checks, holds)

    # ------------------------------------------------------------------------------- firings

    def _firing(
        self,
        firing: flat.Firing,
        state: flat.ControlState,
        known: Checks,
        checks: Checks,
        holds: bool | None,
    ) -> list[PlaceOption]:
        steps = self._steps(known)
        for (value, tag), channels in _grouped(firing.puts).items():
            ports = {self._cell.output(self._same[channel]) for channel in channels}
            zero = const(0, self._block.outputs[channels[0]]) if value is None else value
            steps.compute(zero, isa.ToOutputs(tuple(sorted(ports)), tag))
        self._keep(steps, firing.writes)
        takes = {self._cell.input(head) for head in firing.takes}
        takes |= {p for p in self._sums_taken(firing, state) if not steps.take_where_read(p)}
        if firing.after is None:
            _end(steps)
        elif not steps.steps and takes:
            steps.add(isa.Opcode.NOP)
        if not steps.steps:
            assert firing.after is not None
            place = ("state", firing.after)
            steps.add(isa.Opcode.NOP)
            return self._chain(steps, place, checks, holds)
        self._take_last(steps, takes)
        after: Hashable = None if firing.after is None else ("state", firing.after)
        return self._chain(steps, after, checks, holds)

    def _keep(self, steps: FiringSteps, writes: Sequence[tuple[str, Expr]]) -> None:
        """Write registers, each after those whose new value depends on its old one."""
        plain: dict[str, Expr] = {}
        for name, value in writes:
            if name in self._needed.summed:
                output, _ = self._cell.loop(name)
                steps.compute(value, isa.ToOutputs((output,), flat.VALUE_TAG))
            else:
                plain[name] = value
        saved: list[tuple[str, int]] = []
        while plain:
            free = [
                n
                for n in plain
                if all(n not in flat.local_names(v) for o, v in plain.items() if o != n)
            ]
            name = free[0] if free else next(iter(plain))
            value = plain.pop(name)
            if free:
                steps.compute(value, self._register(name))
                continue
            # a cycle: no order is right, so the new value waits in a temporary
            saved.append((name, steps.temporary()))
            steps.compute(value, isa.ToRegister(saved[-1][1]))
        for name, number in saved:
            steps.add(isa.Opcode.MOV, self._register(name), (isa.FromRegister(number),))

    def _register(self, name: str) -> isa.ToRegister:
        source = self._cell.sources[name]
        assert isinstance(source, isa.FromRegister)
        return isa.ToRegister(source.number)

    def _sums_taken(self, firing: flat.Firing, state: flat.ControlState) -> set[int]:
        """The loops whose token is consumed: its value is replaced, or no longer needed."""
        live_sums = self._needed.live[state] & self._needed.summed
        written = {name for name, _ in firing.writes}
        later = self._needed.live[firing.after] if firing.after is not None else frozenset()
        return {
            self._cell.loop(name)[1] for name in live_sums if name in written or name not in later
        }

    def _take_last(self, steps: FiringSteps, takes: set[int]) -> None:
        """Let the last step take the heads."""
        last = steps.steps[-1]
        all_takes = tuple(sorted({*last.takes, *takes}))
        checks = dict(last.checks) | {port: steps.tags.get(port, 0) for port in all_takes}
        steps.steps[-1] = replace(last, takes=all_takes, checks=tuple(sorted(checks.items())))

    def _chain(
        self, steps: FiringSteps, after: Hashable, checks: Checks, holds: bool | None
    ) -> list[PlaceOption]:
        """Steps as a chain of places; the first step waits for the heads that its path has seen."""
        first, *rest = steps.steps
        waits = dict(first.checks) | {self._cell.inputs[name]: tag for name, tag in checks}
        first = replace(first, checks=tuple(sorted(waits.items())))
        place = after
        for step in reversed(rest):
            known = ("chain", step, place)
            self._places[known] = [PlaceOption(step=step, holds=None, after=place)]
            place = known
        return [PlaceOption(step=first, holds=holds, after=place)]


def _tags_of(tree: flat.Tree, cases: Sequence[tuple[tuple[int, ...], flat.Tree]]) -> list[int]:
    """The tag of each head for which a tree follows; a negated tag where several lead to it."""
    columns = zip(*(tags for tags, below in cases if below == tree), strict=True)
    result: list[int] = []
    for column in columns:
        tags = set(column)
        other = next(tag for tag in range(len(tags) + 1) if tag not in tags)
        result.append(tags.pop() if len(tags) == 1 else ~other)
    return result


def _only(part: flat.Tree, outputs: set[str]) -> flat.Tree:
    """A firing with only its puts into some outputs."""
    if not isinstance(part, flat.Firing):
        return part
    return replace(part, puts=tuple(put for put in part.puts if put.channel in outputs))


def _grouped(puts: Sequence[flat.FlatPut]) -> dict[tuple[Expr | None, int], list[str]]:
    """The channels that get the same token; tokens without a value come last."""
    groups: dict[tuple[Expr | None, int], list[str]] = {}
    for put in puts:
        groups.setdefault((put.value, put.tag), []).append(put.channel)
    return dict(sorted(groups.items(), key=lambda item: item[0][0] is None))


def _end(steps: FiringSteps) -> None:
    """Halt with the last step: ``halt`` sends zero, so it can replace a move of zero."""
    if steps.steps:
        last = steps.steps[-1]
        zero = last.opcode is isa.Opcode.MOV and getattr(last.sources[0], "pattern", 1) == 0
        if zero and isinstance(last.destination, isa.ToOutputs):
            steps.steps[-1] = replace(last, opcode=isa.Opcode.HALT, sources=())
            return
    steps.add(isa.Opcode.HALT)


# Expressions as steps: one instruction for each operator.
#
# Intermediate results stay in registers; those of an FMA go through a channel from the cell to
# itself, because a register would be busy.  ``a + b * c`` is one operator.

_WORD = Int(64)
_TEXTS = {
    Op.DIVIDE: "a quotient",
    Op.FLOOR_DIVIDE: "// of data",
    Op.MODULO: "% of data",
}


@dataclass(kw_only=True)
class CellContext:
    """The allocation of a cell: registers, input and output ports.

    ``sources`` says for each local, by name, which register or input port holds it.
    """

    refusals: BlockRefusals
    contract: bool
    loose: frozenset[str] = frozenset()
    sources: dict[str, isa.Source] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    loops: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The channels from the cell to itself: output and input port."""
    registers: int = 0
    constants: dict[tuple[int, bool], int] = field(default_factory=dict)

    def new_register(self) -> int:
        self.registers += 1
        return self.registers - 1

    def input(self, name: str) -> int:
        """The number of an input port."""
        return self.inputs.setdefault(name, len(self.inputs))

    def output(self, name: str) -> int:
        """The number of an output port."""
        return self.outputs.setdefault(name, len(self.outputs))

    def loop(self, name: str) -> tuple[int, int]:
        """The ports of a channel from the cell to itself."""
        if name not in self.loops:
            self.loops[name] = (self.output(f"{name}.out"), self.input(f"{name}.in"))
        return self.loops[name]

    def literal(self, value: Const, *, immediate: bool) -> isa.Source:
        """A constant, as an immediate or in a register that holds it from the start."""
        pattern = pattern_of(value.value, value.type)
        small = -(1 << 31) <= (pattern ^ 1 << 63) - (1 << 63) < 1 << 31
        if immediate and small and not (value.type.is_float and pattern):
            return isa.Immediate(pattern & (1 << 32) - 1)
        key = (pattern, value.type.is_float)
        if key not in self.constants:
            self.constants[key] = self.new_register()
        return isa.FromRegister(self.constants[key])


@dataclass(kw_only=True)
class FiringSteps:
    """The steps of one firing, in order; ``tags`` are the known tags at the input ports."""

    cell: CellContext
    tags: Mapping[int, int]
    steps: list[CellStep] = field(default_factory=list)
    _free: list[int] = field(default_factory=list)
    _used: set[int] = field(default_factory=set)
    _loops: int = 0

    def compute(self, expr: Expr, destination: isa.Destination) -> None:
        """Add the steps that compute an expression into a destination."""
        opcode, operands = self._operation(expr)
        sources = self._operands(operands)
        takes = tuple(sorted({port for s in sources for port in _temporary_port(s, self.cell)}))
        self.add(opcode, destination, sources, takes)
        for source in sources:
            if isinstance(source, isa.FromRegister) and source.number in self._used:
                self._used.discard(source.number)
                self._free.append(source.number)

    def take_where_read(self, port: int) -> bool:
        """Let the last step that reads a port take from it; returns whether there is one."""
        reading = [
            at for at, step in enumerate(self.steps) if isa.FromChannel(port) in step.sources
        ]
        if reading:
            step = self.steps[reading[-1]]
            self.steps[reading[-1]] = replace(step, takes=tuple(sorted({*step.takes, port})))
        return bool(reading)

    def add(
        self,
        opcode: isa.Opcode,
        destination: isa.Destination = None,
        sources: tuple[isa.Source, ...] = (),
        takes: tuple[int, ...] = (),
    ) -> None:
        """Add a step, with the checks of what it reads and takes."""
        ports = {s.number for s in sources if isinstance(s, isa.FromChannel)} | set(takes)
        self.steps.append(
            CellStep(
                opcode=opcode,
                destination=destination,
                sources=sources,
                takes=takes,
                checks=tuple((port, self.tags.get(port, 0)) for port in sorted(ports)),
            )
        )

    def temporary(self) -> int:
        """A register that is free in this firing."""
        number = self._free.pop() if self._free else self._fresh()
        self._used.add(number)
        return number

    def _fresh(self) -> int:
        """All firings use the same registers for their temporaries."""
        count = len(self._used) + len(self._free)
        name = f"?temporary{count}"
        if name not in self.cell.sources:
            self.cell.sources[name] = isa.FromRegister(self.cell.new_register())
        source = self.cell.sources[name]
        assert isinstance(source, isa.FromRegister)
        return source.number

    def _operands(self, operands: tuple[Expr, ...]) -> tuple[isa.Source, ...]:
        sources: list[isa.Source] = []
        for operand in operands:
            if isinstance(operand, Const):
                immediate = not any(isinstance(source, isa.Immediate) for source in sources)
                sources.append(self.cell.literal(operand, immediate=immediate))
            elif isinstance(operand, Local):
                sources.append(self.cell.sources[operand.name])
            else:
                sources.append(self._between(operand))
        return tuple(sources)

    def _between(self, operand: Expr) -> isa.Source:
        """An operand that only the next step needs."""
        opcode, _ = self._operation(operand)
        if opcode in isa.ON_FMA:
            self._loops += 1
            output, into = self.cell.loop(f"?result{self._loops}")
            self.compute(operand, isa.ToOutputs((output,), 0))
            return isa.FromChannel(into)
        number = self.temporary()
        self.compute(operand, isa.ToRegister(number))
        return isa.FromRegister(number)

    def _operation(self, expr: Expr) -> tuple[isa.Opcode, tuple[Expr, ...]]:
        """The operator at the root of an expression, and its operands."""
        match expr:
            case Const() | Local():
                return isa.Opcode.MOV, (expr,)
            case Cast():
                return self._converted(expr)
            case Apply(operator=Op.ADD, operands=(left, right)):
                for product, other in ((right, left), (left, right)):
                    product = _same_word(product)
                    if isinstance(product, Apply) and product.operator is Op.MULTIPLY:
                        if expr.type.is_integer:
                            return isa.Opcode.MAC, self._plain(other, *product.operands)
                        if self.cell.contract:
                            return isa.Opcode.FMAC, self._plain(other, *product.operands)
            case Apply(operator=Op.NOT, operands=(value,)):
                if expr.type.is_bool:
                    return isa.Opcode.EQ, self._plain(value, const(0, _WORD))
                return isa.Opcode.BXOR, self._plain(value, const(-1, _WORD))
            case Apply(operator=Op.FUSED_MULTIPLY_ADD, operands=(left, right, start)):
                return isa.Opcode.FMAC, self._plain(start, left, right)
            case Apply(operator=Op.FLOOR_DIVIDE | Op.MODULO, operands=(left, Const() as by)) if (
                _is_power_of_two(by)
            ):
                number = int(by.value)
                shift = const(number.bit_length() - 1, _WORD)
                if expr.operator is Op.FLOOR_DIVIDE:
                    return isa.Opcode.ASR, self._numbers(left, shift)
                return isa.Opcode.BAND, self._plain(left, const(number - 1, _WORD))
        if isinstance(expr, Apply):
            table = FLOATS if expr.operands[0].type.is_float else INTEGERS
            if expr.operator in table:
                sensitive = expr.operator is Op.SHIFT_RIGHT or expr.type.is_bool
                operands_of = self._numbers if sensitive else self._plain
                return table[expr.operator], operands_of(*expr.operands)
            what = _TEXTS.get(expr.operator, expr.operator.name.lower())
            self.cell.refusals.operator(what, "compute that on the host")
        self.cell.refusals.operator(type(expr).__name__.lower(), "leave it out")

    def _plain(self, *operands: Expr) -> tuple[Expr, ...]:
        return tuple(_same_word(operand) for operand in operands)

    def _numbers(self, *operands: Expr) -> tuple[Expr, ...]:
        """Operands for operators that read the whole word of an int32."""
        numbers: list[Expr] = []
        for operand in self._plain(*operands):
            loose = operand.type == INT32 and bool(flat.local_names(operand) & self.cell.loose)
            wide = Cast(value=operand, type=_WORD)
            numbers.append(Cast(value=wide, type=INT32) if loose else operand)
        return tuple(numbers)

    def _converted(self, cast: Cast) -> tuple[isa.Opcode, tuple[Expr, ...]]:
        source, target = cast.value.type, cast.type
        if target.is_float and (source.is_integer or source.is_bool):
            return isa.Opcode.ITF, self._numbers(cast.value)
        if target.is_bool:
            return isa.Opcode.FNE, (cast.value, const(0.0, source))
        if source.is_float:
            return isa.Opcode.FTI, (cast.value,)
        plain = _same_word(cast)
        if plain is not cast:
            (number,) = self._numbers(plain) if cast.type != plain.type else (plain,)
            return self._operation(number)
        by = const(_WORD.bits - target.bits, _WORD)
        high = Cast(value=cast.value, type=_WORD) << by
        return isa.Opcode.ASR, (high, by)


def _same_word(expr: Expr) -> Expr:
    """An expression without conversions that do not change its word."""
    while isinstance(expr, Cast) and not expr.type.is_float and not expr.value.type.is_float:
        if expr.type.is_bool or expr.type.bits < expr.value.type.bits:
            break
        expr = expr.value
    return expr


def _is_power_of_two(by: Const) -> bool:
    number = int(by.value)
    return by.type.is_integer and number > 0 and number & number - 1 == 0


def _temporary_port(source: isa.Source, cell: CellContext) -> list[int]:
    """The input port of an intermediate result, if a source is one."""
    if not isinstance(source, isa.FromChannel):
        return []
    loops = [ports[1] for name, ports in cell.loops.items() if name.startswith("?")]
    return [port for port in loops if port == source.number]
