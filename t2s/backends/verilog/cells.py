"""The cells of a module before synthesis: its gates, registers, carry cells and multipliers.

The module is carried out once with gates in place of numbers, so that constants, narrow values and
repeated parts take what they take after synthesis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import inf

from t2s.backends.text.expressions import (
    Binary,
    Call,
    If,
    Literal,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
)
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.float_cells import (
    FLOAT_FUNCTIONS,
    NS_OF_FUNCTION,
    FloatFunction,
    float_module_cells,
)
from t2s.backends.verilog.gates import ONE, ZERO, Gates, Literals, significant
from t2s.backends.verilog.reductions import levels_of
from t2s.core.identity_cache import IdentityCache
from t2s.core.logic import Logic

WORD_BITS = 32
_NUMBER = re.compile(r"(?:(\d+)'(s?)([bdh]))?([0-9a-fA-F]+)")
_BASES = {"b": 2, "d": 10, "h": 16}
_FUNCTION = re.compile(r"operators::(\w+)_([su])(\d+)")
_FLOAT_FUNCTION = re.compile(r"operators::(\w+)_(?:f32|b16)")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

_SHARED = 0.9
"""Tables after synthesis, which restructures logic, beside those of gates that are grouped as they
are."""

Values = dict[str, Literals]


class NotCounted(Exception):
    """Something whose cells are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleLogic:
    """The logic of a module.

    ``slowest`` is the time in ns between its registers, ``outputs`` the literals of its outputs.
    """

    logic: Logic = field(default_factory=Logic)
    slowest: float = 0.0
    outputs: Mapping[str, Literals] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What a technology makes of operators that are not gates.

    Attributes
    ----------
    shortest_chain: the bits of the shortest sum that is made of carry cells.
    part_of_product: the bits of an operand that one multiplier takes.
    """

    shortest_chain: int
    part_of_product: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A module with its cells."""

    module: ast.HardwareModule
    cells: ModuleLogic


class ModuleCells:
    """Carries a module out, and counts.

    ``constants`` are the values of its parameters, ``modules`` those of which it has instances.
    """

    def __init__(
        self,
        module: ast.HardwareModule,
        library: Library,
        constants: Mapping[str, int],
        modules: Mapping[str, Counted] | None = None,
    ) -> None:
        self.module, self.library = module, library
        self.modules = modules or {}
        self.gates = Gates(library.shortest_chain)
        self.signals: dict[str, ast.Signal] = {}
        (self.reset,) = self.gates.incoming(1)
        self.values: Values = {"reset": [self.reset]}
        self.numbers: dict[str, int] = dict(constants)
        self.roots: list[int] = []
        self.moves: dict[str, str] = {}
        self.moved: Values = {}
        self.repeated: set[int] = set()
        self.shapes = IdentityCache[TargetExpression, tuple[int, bool]]()
        self.flip_flops = 0
        self.measured = Logic()
        """What was measured as a whole: it is not in the gates, and takes no part in what they
        share."""
        self.slowest = 0.0

    def count(self) -> ModuleLogic:
        """The cells of the module."""
        outputs = []
        for port in self.module.ports:
            self._declare(port.variable)
            if port.direction is ast.Direction.OUTPUT:
                outputs.append(port.variable.name)
        items = self.module.items
        for item in items:
            if isinstance(item, ast.Declaration):
                self._declare(item.variable)
        clocked = [item for item in items if isinstance(item, ast.AlwaysFF)]
        for name in _written(statement for item in clocked for statement in item.body):
            signal = self.signals[name]
            if signal.count is not None:
                # addresses that are not used have registers, too
                rows = 1 << (signal.count - 1).bit_length()
                self.values[name] = self.gates.incoming(rows * signal.type.total)
        self.moves = {
            statement.target.name: statement.value.name
            for item in clocked
            for statement in item.body
            if isinstance(statement, ast.SetAtClock)
            and isinstance(statement.target, Name)
            and isinstance(statement.value, Name)
        }
        instances = [item for item in items if isinstance(item, ast.Instance)]
        for item in instances:
            self._known_outputs(item)
        for item in items:
            match item:
                case ast.ContinuousAssignment(target=target, value=value):
                    self._put(self.values, target, value)
                case ast.AlwaysComb(body=body):
                    self._run(body, self.values, self.values)
        for item in instances:
            self._instance(item)
        for item in clocked:
            after = dict(self.values)
            self._run(item.body, self.values, after)
            self._registers(after, _written(item.body))
        for name in outputs:
            self.roots += self.values[name]
        tables, cells = self.gates.tables(self.roots)
        counted = Logic(luts=round(_SHARED * tables), flip_flops=self.flip_flops, carry_cells=cells)
        return ModuleLogic(
            logic=counted + self.measured,
            slowest=max(self.slowest, self.gates.slowest(self.roots)),
            outputs={name: self.values[name] for name in outputs},
        )

    def _declare(self, signal: ast.Signal) -> None:
        self.signals[signal.name] = signal
        count = 1 if signal.count is None else signal.count
        if signal.name != "reset":
            self.values[signal.name] = self.gates.incoming(signal.type.total * count)

    def value(self, name: str) -> Literals:
        """The value of a signal; what moves through registers keeps its repeated bits."""
        if name not in self.moves:
            return self.values[name]
        if name not in self.moved:
            later = self.value(self.moves[name])
            kept: dict[int, int] = {ZERO: ZERO, ONE: ONE}
            register = []
            for bit in later:
                if bit not in kept:
                    kept[bit] = self.gates.incoming(1)[0]
                register.append(kept[bit])
            self.moved[name] = register
            self.repeated.update(bit for bit in register if register.count(bit) > 1)
        return self.moved[name]

    # ------------------------------------------------------------------------------- registers

    def _registers(self, after: Values, names: Sequence[str]) -> None:
        """Registers, whose enable and reset take no tables of theirs."""
        found: set[tuple[int, int, tuple[int, ...]]] = set()
        for name in names:
            for now, later in zip(self.value(name), after[name], strict=True):
                if now in (ZERO, ONE):
                    continue
                data, controls, reset = later, [], ZERO
                while data in self.gates.choices and data != now:
                    condition, if_true, if_false = self.gates.choices[data]
                    if now in (if_true, if_false):
                        holds = if_true == now
                        controls.append(condition ^ 1 if holds else condition)
                        data = if_false if holds else if_true
                    elif reset == ZERO and if_true in (ZERO, ONE):
                        reset, data = condition, if_false
                    elif reset == ZERO and if_false in (ZERO, ONE):
                        reset, data = condition ^ 1, if_true
                    else:
                        break
                if data == now:
                    continue
                enable = self.gates.all_of(controls)
                key = (data, reset, tuple(controls))
                if key in found and data > ONE:
                    continue
                found.add(key)
                self.flip_flops += 1
                self.roots += (data, enable, reset)

    # ------------------------------------------------------------------------------- instances

    def _instance(self, item: ast.Instance) -> None:
        """What goes into other cells; what comes out of them has been there from the start."""
        connections = dict(item.connections)
        other = self.modules.get(item.module)
        if other is not None:
            inputs = [
                connections[port.variable.name]
                for port in other.module.ports
                if port.direction is ast.Direction.INPUT
            ]
            self.roots += [bit for value in inputs for bit in self._read(value)]
            return
        parameters = {name: _integer(value) for name, value in item.parameters}
        match item.module:
            case "multiply":
                self.roots += self.bits(connections["left"]) + self.bits(connections["right"])
                if parameters["STAGES"] == 4:
                    self.flip_flops += parameters["LEFT"] + parameters["RIGHT"]
            case "accumulate":
                words = [self.bits(connections[name]) for name in ("sum", "value")]
                (clears,) = self.bits(connections["clear"])
                columns = [(*bits, clears) for bits in zip(*words, strict=True)]
                self.gates.end_chain(self.bits(connections["next"]), columns)
            case "float_add" | "float_multiply":
                left, right = (self.bits(connections[name]) for name in ("left", "right"))
                self.roots += left + right
                output = parameters["OUTPUT"] == 1
                module = float_module_cells(item.module, parameters["STAGES"], output, left, right)
                self.measured += module.logic
                self.slowest = max(self.slowest, module.slowest)
            case "delay":
                self.roots += self.bits(connections["now"])
                self.flip_flops += parameters["WIDTH"] * parameters["CYCLES"]
            case "reduction":
                below, levels = self._read(connections["holds"]), levels_of(parameters["COUNT"])
                for groups in levels:
                    together = range(0, 4 * groups, 4)
                    self.roots += [self.gates.all_of(below[at : at + 4]) for at in together]
                    self.flip_flops += groups
                    below = self.gates.incoming(groups)
                self.flip_flops += parameters["DEPTH"] - len(levels)
            case name:
                raise NotCounted(name)

    def _read(self, value: TargetExpression) -> Literals:
        match value:
            case Name(name=name):
                return self.values[name]
        return self.bits(value)

    def _known_outputs(self, item: ast.Instance) -> None:
        """Set what another module never changes."""
        other = self.modules.get(item.module)
        if other is None:
            return
        for name, value in item.connections:
            word = other.cells.outputs.get(name, ())
            if any(bit in (ZERO, ONE) for bit in word) and value != ast.OPEN:
                pairs = zip(self._read(value), word, strict=True)
                constant = [new if new in (ZERO, ONE) else bit for bit, new in pairs]
                self._set(self.values, value, constant)

    # ------------------------------------------------------------------------------ statements

    def _run(self, body: Sequence[TargetStatement], now: Values, after: Values) -> None:
        """Carry statements out: they read ``now``, and clocked ones write ``after``."""
        for statement in body:
            match statement:
                case Set(target=target, value=value):
                    self._put(now, target, value)
                case ast.SetAtClock(target=target, value=value):
                    self._put(after, target, value)
                case If(condition=condition, then=then, otherwise=otherwise):
                    self._if(self.truth(condition), then, otherwise, now, after)
                case ast.UnrolledFor(variable=variable, count=count, body=inner):
                    outer = self.numbers.get(variable)
                    for at in range(count):
                        self.numbers[variable] = at
                        self._run(inner, now, after)
                    del self.numbers[variable]
                    if outer is not None:
                        self.numbers[variable] = outer
                case _:
                    raise NotCounted(type(statement).__name__)

    def _if(
        self,
        condition: int,
        then: Sequence[TargetStatement],
        otherwise: Sequence[TargetStatement],
        now: Values,
        after: Values,
    ) -> None:
        if condition in (ZERO, ONE):
            self._run(then if condition == ONE else otherwise, now, after)
            return
        clocked = after is not now
        values = after if clocked else now
        before = dict(values)
        self._run(then, now, after)
        if_true = dict(values)
        values.clear()
        values.update(before)
        self._run(otherwise, now, after)
        for name, word in if_true.items():
            other = values[name]
            if word is not other:
                values[name] = [
                    self.gates.choose(condition, a, b) for a, b in zip(word, other, strict=True)
                ]

    def _put(self, values: Values, target: TargetExpression, value: TargetExpression) -> None:
        length = self._length(target)
        width, signed = self.shape(value)
        self._set(values, target, self.word(value, max(width, length), signed, length))

    def _length(self, target: TargetExpression) -> int:
        match target:
            case Name(name=name):
                signal = self.signals[name]
                return len(self.values[name]) if signal.count is None else signal.type.total
            case _:
                return self.shape(target)[0]

    def _set(self, values: Values, target: TargetExpression, word: Literals) -> None:
        match target:
            case Literal(text=""):
                return
            case Name(name=name):
                values[name] = word
            case ast.Element(base=Name(name=name), index=index):
                size = len(word)
                at = self.constant(index)
                whole = values[name]
                if at is not None:
                    values[name] = [*whole[: at * size], *word, *whole[(at + 1) * size :]]
                    return
                where = self.bits(index)
                found: Literals = []
                for number in range(len(whole) // size):
                    here = self.gates.equal(where, _constant(number, len(where)))
                    old = whole[number * size : (number + 1) * size]
                    found += [self.gates.choose(here, a, b) for a, b in zip(word, old, strict=True)]
                values[name] = found
            case _:
                raise NotCounted(type(target).__name__)

    # ----------------------------------------------------------------------------- expressions

    def truth(self, expression: TargetExpression) -> int:
        """A literal for whether an expression is not zero."""
        return self.gates.all_of([bit ^ 1 for bit in self.bits(expression)]) ^ 1

    def bits(self, expression: TargetExpression) -> Literals:
        """An expression by itself."""
        width, signed = self.shape(expression)
        return self.word(expression, width, signed, width)

    def constant(self, expression: TargetExpression) -> int | None:
        """The value of an expression that is the same in all cycles."""
        match expression:
            case Literal(text=text):
                return _number(text)[0]
            case Name(name=name):
                return self.numbers.get(name)
        found = self.bits(expression)
        if all(bit in (ZERO, ONE) for bit in found):
            return sum(bit << at for at, bit in enumerate(found))
        return None

    def shape(self, expression: TargetExpression) -> tuple[int, bool]:
        """The width of an expression by itself, and whether it has a sign."""
        return self.shapes.get(expression, self._shape)

    def _shape(self, expression: TargetExpression) -> tuple[int, bool]:
        match expression:
            case Literal(text=text):
                _, width, signed = _number(text)
                return width, signed
            case Name(name=name):
                if name in self.numbers:
                    return WORD_BITS, True
                type = self.signals[name].type
                return type.total, type.signed and type.lanes == 1
            case ast.Resize(bits=bits, value=value):
                return bits, self.shape(value)[1]
            case ast.Element(base=base):
                return self._element_bits(base), self._element_signed(base)
            case ast.Slice(high=high, low=low):
                return high - low + 1, False
            case ast.Concatenation(parts=parts):
                return sum(self.shape(part)[0] for part in parts), False
            case Unary(operator="!"):
                return 1, False
            case Unary(operand=operand):
                return self.shape(operand)
            case Binary(operator="&&" | "||"):
                return 1, False
            case Binary(operator=operator) if operator in _COMPARISONS:
                return 1, False
            case Binary(operator="<<" | ">>", left=left):
                return self.shape(left)
            case Binary(left=left, right=right) | Ternary(if_true=left, if_false=right):
                return self._together(left, right)
            case Call(function="$signed" | "$unsigned" as function, arguments=(value,)):
                return self.shape(value)[0], function == "$signed"
            case Call(function=function):
                found = _FUNCTION.fullmatch(function)
                if found:
                    return int(found[3]), found[2] == "s"
                if (of_floats := _float_function(function)) is not None:
                    return of_floats.bits, False
        raise NotCounted(getattr(expression, "function", expression.__class__.__name__))

    def _together(self, left: TargetExpression, right: TargetExpression) -> tuple[int, bool]:
        (a, signed), (b, also) = self.shape(left), self.shape(right)
        return max(a, b), signed and also

    def _element_bits(self, base: TargetExpression) -> int:
        if isinstance(base, Name):
            signal = self.signals[base.name]
            if signal.count is not None:
                return signal.type.total
            return signal.type.width if signal.type.lanes > 1 else 1
        if isinstance(base, ast.Element) and isinstance(base.base, Name):
            type = self.signals[base.base.name].type
            return type.width if type.lanes > 1 else 1
        return 1

    def _element_signed(self, base: TargetExpression) -> bool:
        if isinstance(base, Name) and self.signals[base.name].count is not None:
            type = self.signals[base.name].type
            return type.signed and type.lanes == 1
        return False

    def word(self, expression: TargetExpression, width: int, signed: bool, needed: int) -> Literals:
        """The lowest ``needed`` bits of an expression in a context of a width and a signedness."""
        match expression:
            case Literal(text=text):
                return _constant(_number(text)[0], needed)
            case Name(name=name) if name in self.numbers:
                return _constant(self.numbers[name], needed)
            case Binary(operator="+" | "-" | "*" | "&" | "|" | "^") | Ternary():
                return self._arithmetic(expression, width, signed, needed)
            case Unary(operator="-" | "~" as operator, operand=operand):
                inner = self.word(operand, width, signed, needed)
                if operator == "~":
                    return [bit ^ 1 for bit in inner]
                return self.gates.add([ZERO] * needed, inner, subtract=True)
            case Binary(operator="<<", left=left, right=right):
                by = self.constant(right)
                if by is None:
                    raise NotCounted("a shift by a variable")
                # as long as without the shift: the same sum, shifted by less, is not another one
                inner = self.word(left, width, signed, needed)
                return ([ZERO] * by + inner)[:needed]
        own, sign = self.shape(expression)
        alone = self._alone(expression, own, sign, min(own, needed))
        return _extended(alone, needed, signed and sign)

    def _arithmetic(
        self, expression: TargetExpression, width: int, signed: bool, needed: int
    ) -> Literals:
        match expression:
            case Ternary(condition=condition, if_true=if_true, if_false=if_false):
                chooses = self.truth(condition)
                words = [self.word(side, width, signed, needed) for side in (if_true, if_false)]
                return [self.gates.choose(chooses, a, b) for a, b in zip(*words, strict=True)]
            case Binary(operator="+" | "-"):
                return self.gates.sum_of(self._terms(expression, width, signed, needed, False))
            case Binary(operator="*", left=left, right=right):
                words = [self.word(side, width, signed, needed) for side in (left, right)]
                return self._product(words[0], words[1], needed)
            case Binary(operator=operator, left=left, right=right):
                words = [self.word(side, width, signed, needed) for side in (left, right)]
                combine = {"&": self.gates.both, "|": self.gates.either, "^": self.gates.differs}
                gate = combine[operator]
                return [gate(a, b) for a, b in zip(*words, strict=True)]
        raise NotCounted(type(expression).__name__)

    def _terms(
        self, expression: TargetExpression, width: int, signed: bool, needed: int, minus: bool
    ) -> list[tuple[Literals, bool]]:
        """The terms of sums of sums, which synthesis adds up together."""
        match expression:
            case ast.Resize(bits=bits, value=Binary(operator="+" | "-") as value) if bits >= needed:
                own, sign = self.shape(value)
                inner = self._terms(value, max(own, bits), sign, needed, minus)
                if self._apart(inner):
                    return [(self.gates.sum_of(inner), False)]
                return inner
            case Binary(operator="+" | "-" as operator, left=left, right=right):
                other = minus != (operator == "-")
                terms = [
                    *self._terms(left, width, signed, needed, minus),
                    *self._terms(right, width, signed, needed, other),
                ]
                if self._apart(terms):
                    return [(self.gates.sum_of(terms), False)]
                return terms
        return [(self.word(expression, width, signed, needed), minus)]

    def _apart(self, terms: Sequence[tuple[Literals, bool]]) -> bool:
        """Whether synthesis adds terms up before the rest: it has made their sum shorter."""
        if len(terms) != 2:
            return False
        words = [word for word, _ in terms]
        return all(significant(word) < len(word) and word[-1] in self.repeated for word in words)

    def _product(self, left: Literals, right: Literals, needed: int) -> Literals:
        """A product in multipliers: of long operands, several, whose results are added up."""
        if all(bit in (ZERO, ONE) for bit in (*left, *right)):
            numbers = [sum(bit << at for at, bit in enumerate(word)) for word in (left, right)]
            return _constant(numbers[0] * numbers[1], needed)
        for factor, other in ((left, right), (right, left)):
            by = _power_of_two(factor)
            if by is not None:
                return ([ZERO] * by + other)[:needed]
        self.roots += (*left, *right)
        bits = [significant(word) for word in (left, right)]
        one = self.library.part_of_product
        parts = [-(-size // one) for size in bits]
        length = min(sum(bits), needed)
        product = self.gates.incoming(length)
        self.gates.products.update(bit >> 1 for bit in product)
        if parts != [1, 1]:
            # parts of long operands are added up above the lowest part
            for _ in range(max(parts) if min(parts) > 1 else 1):
                high = self.gates.incoming(length - one)
                added = self.gates.add(product[one:], high)
                product = [*product[:one], *added]
        positive = all(word[-1] == ZERO for word in (left, right))
        return [*product, *([ZERO if positive else product[-1]] * (needed - length))]

    def _alone(
        self, expression: TargetExpression, width: int, signed: bool, needed: int
    ) -> Literals:
        """The lowest bits of an expression whose width does not depend on where it stands."""
        match expression:
            case Name(name=name):
                return self.value(name)[:needed]
            case ast.Resize(bits=bits, value=value):
                own, sign = self.shape(value)
                inner = self.word(value, max(own, bits), sign, min(bits, needed))
                return inner
            case ast.Element(base=base, index=index):
                return self._element(base, index)[:needed]
            case ast.Slice(base=base, low=low, high=high):
                return self.bits(base)[low : high + 1][:needed]
            case ast.Concatenation(parts=parts):
                found: Literals = []
                for part in reversed(parts):
                    found += self.bits(part)
                return found[:needed]
            case Unary(operator="!", operand=operand):
                return [self.truth(operand) ^ 1]
            case Binary(operator="&&", left=left, right=right):
                return [self.gates.both(self.truth(left), self.truth(right))]
            case Binary(operator="||", left=left, right=right):
                return [self.gates.either(self.truth(left), self.truth(right))]
            case Binary(operator=operator, left=left, right=right) if operator in _COMPARISONS:
                return [self._compared(operator, left, right)]
            case Binary(operator=">>", left=left, right=right):
                by = self.constant(right)
                if by is None:
                    raise NotCounted("a shift by a variable")
                return _extended(self.bits(left)[by:], width, signed)[:needed]
            case Call(function="$signed" | "$unsigned", arguments=(value,)):
                own, sign = self.shape(value)
                return self.word(value, own, sign, min(own, needed))
            case Call(function=function, arguments=arguments):
                found_function = _FUNCTION.fullmatch(function)
                if found_function:
                    return self._called(found_function[1], arguments, width, signed)[:needed]
                if (of_floats := _float_function(function)) is not None:
                    words = [self.bits(argument) for argument in arguments]
                    result, luts = of_floats.apply(self.gates, words)
                    if luts:
                        self.measured += Logic(luts=luts)
                        self.slowest = max(self.slowest, NS_OF_FUNCTION)
                    return result[:needed]
        raise NotCounted(getattr(expression, "function", type(expression).__name__))

    def _compared(self, operator: str, left: TargetExpression, right: TargetExpression) -> int:
        width, signed = self._together(left, right)
        a, b = (self.word(side, width, signed, width) for side in (left, right))
        match operator:
            case "==":
                return self.gates.equal(a, b)
            case "!=":
                return self.gates.equal(a, b) ^ 1
            case "<":
                return self._less(a, b, signed)
            case ">":
                return self._less(b, a, signed)
            case "<=":
                return self._less(b, a, signed) ^ 1
        return self._less(a, b, signed) ^ 1

    def _less(self, left: Literals, right: Literals, signed: bool) -> int:
        """A comparison, for which synthesis subtracts what came later from what came first.

        The latter is the larger one if the difference is neither negative nor zero.
        """
        if _first(left) <= _first(right):
            return self.gates.less(left, right, signed=signed)
        smaller = self.gates.less(right, left, signed=signed)
        return self.gates.both(smaller ^ 1, self.gates.equal(left, right) ^ 1)

    def _element(self, base: TargetExpression, index: TargetExpression) -> Literals:
        if isinstance(base, Name):
            whole, size = self.value(base.name), self._element_bits(base)
        else:
            whole, size = self.bits(base), self._element_bits(base)
        at = self.constant(index)
        if at is not None:
            return whole[at * size : (at + 1) * size]
        where = self.bits(index)
        rows = [whole[start : start + size] for start in range(0, len(whole), size)]
        for bit in where:
            pairs = [rows[n : n + 2] for n in range(0, len(rows), 2)]
            rows = [
                [self.gates.choose(bit, b, a) for a, b in zip(pair[0], pair[-1], strict=True)]
                for pair in pairs
            ]
        return rows[0]

    def _called(
        self, name: str, arguments: Sequence[TargetExpression], width: int, signed: bool
    ) -> Literals:
        """A function of the package of operators."""
        words = []
        for argument in arguments:
            own, sign = self.shape(argument)
            words.append(self.word(argument, max(own, width), sign, width))
        match name:
            case "minimum" | "maximum":
                a, b = words
                smaller = self.gates.less(b, a, signed=signed, whole=True)
                least, most = (b, a) if name == "minimum" else (a, b)
                return [self.gates.choose(smaller, x, y) for x, y in zip(least, most, strict=True)]
            case "absolute":
                (a,) = words
                if not signed:
                    return a
                negated = self.gates.add([ZERO] * width, a, subtract=True)
                return [self.gates.choose(a[-1], n, x) for n, x in zip(negated, a, strict=True)]
            case "shift_left" | "shift_right":
                a, by = words
                fill = a[-1] if signed and name == "shift_right" else ZERO
                for place, bit in enumerate(by):
                    step = min(1 << min(place, 16), width)
                    moved = [ZERO] * step + a if name == "shift_left" else a[step:] + [fill] * step
                    a = [self.gates.choose(bit, m, x) for m, x in zip(moved, a, strict=False)]
                return a
        raise NotCounted(name)


def _written(statements: Iterable[TargetStatement]) -> list[str]:
    """The variables that clocked statements set, in order."""
    found: dict[str, None] = {}
    for statement in statements:
        match statement:
            case ast.SetAtClock(target=Name(name=name)):
                found[name] = None
            case ast.SetAtClock(target=ast.Element(base=Name(name=name))):
                found[name] = None
            case If(then=then, otherwise=otherwise):
                found.update(dict.fromkeys(_written((*then, *otherwise))))
            case ast.UnrolledFor(body=body):
                found.update(dict.fromkeys(_written(body)))
    return list(found)


def _float_function(called: str) -> FloatFunction | None:
    """The function of floats that is called, if it is one."""
    found = _FLOAT_FUNCTION.fullmatch(called)
    return FLOAT_FUNCTIONS.get(found[1]) if found else None


def _extended(word: Literals, width: int, signed: bool) -> Literals:
    if len(word) >= width:
        return word[:width]
    return [*word, *([word[-1] if signed and word else ZERO] * (width - len(word)))]


def _power_of_two(word: Literals) -> int | None:
    """Which power of two a constant is."""
    if set(word) <= {ZERO, ONE} and sum(word) == 1:
        return word.index(ONE)
    return None


def _first(word: Literals) -> float:
    """The node that was made first of those of a word; constants are after all of them."""
    return min((bit >> 1 for bit in word if bit > ONE), default=inf)


def _constant(value: int, width: int) -> Literals:
    return [value >> at & 1 for at in range(width)]


def _integer(value: TargetExpression) -> int:
    assert isinstance(value, Literal)
    return int(value.text)


@cache
def _number(text: str) -> tuple[int, int, bool]:
    """The value of a literal, its width, and whether it has a sign."""
    if text == "'0":
        return 0, 1, True
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise NotCounted(text)
    width, sign, base, digits = found.groups()
    if width is None:
        return int(digits), WORD_BITS, True
    return int(digits, _BASES[base]), int(width), bool(sign)
