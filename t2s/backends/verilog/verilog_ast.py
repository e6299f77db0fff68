"""The AST of the subset of SystemVerilog that the backend writes, and its printer.

All decisions are made when the tree is built; the printer only writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from t2s.backends.text.expressions import (
    POSTFIX,
    PRECEDENCE,
    Binary,
    Do,
    If,
    Literal,
    Name,
    Set,
    Show,
    Spelling,
    TargetExpression,
    TargetStatement,
    Unary,
    call,
    number,
)
from t2s.core.names import one_line

# --------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize(TargetExpression):
    """``bits'(value)``: the value by itself, then cut or extended by its own signedness."""

    bits: int
    value: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Element(TargetExpression):
    """``base[index]``: an element of an array, or a lane of a packed vector."""

    base: TargetExpression
    index: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(TargetExpression):
    """``base[high:low]``: some of the bits of a vector."""

    base: TargetExpression
    high: int
    low: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenation(TargetExpression):
    """``{parts}``: the first part in the highest bits."""

    parts: tuple[TargetExpression, ...]


# ------------------------------------------------------------------------- types and variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """A packed type: ``logic signed [31:0]``, or with lanes ``logic [3:0][31:0]``."""

    width: int
    signed: bool = False
    lanes: int = 1

    @property
    def total(self) -> int:
        """Bits of all lanes."""
        return self.width * self.lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A variable; ``count`` makes an unpacked array of it."""

    name: str
    type: Bits
    count: int | None = None
    initial: TargetExpression | None = None


class Direction(Enum):
    """Of a port."""

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulePort:
    """A port of a module."""

    direction: Direction
    variable: Signal


# ---------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAtClock(TargetStatement):
    """``target <= value``: from the next clock edge on."""

    target: TargetExpression
    value: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrolledFor(TargetStatement):
    """A loop that is unrolled in hardware: ``variable`` from 0 to ``count - 1``."""

    variable: str
    count: int
    body: tuple[TargetStatement, ...]


# --------------------------------------------------------------------------------- module items


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Base of what a module consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading(Item):
    """A comment of one line, after an empty line."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(Item):
    """A variable of the module."""

    variable: Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Item):
    """``localparam``."""

    name: str
    type: Bits
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousAssignment(Item):
    """``assign target = value``."""

    target: TargetExpression
    value: TargetExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysComb(Item):
    """``always_comb``."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysFF(Item):
    """``always_ff @(posedge clock)``."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialBlock(Item):
    """``initial``: for simulation only."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalBlock(Item):
    """``final``: for simulation only."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance(Item):
    """An instance of a module; connections by name."""

    module: str
    name: str
    parameters: tuple[tuple[str, TargetExpression], ...] = ()
    connections: tuple[tuple[str, TargetExpression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate(Item):
    """A generated block: the items for ``variable`` from 0 to ``count - 1``."""

    variable: str
    count: int
    label: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareModule:
    """A module; ``about`` is the comment before it.

    ``parameters`` are integers with their defaults.  ``shared`` keeps a simulator from copying the
    module into every place that uses it.
    """

    name: str
    about: tuple[str, ...]
    ports: tuple[ModulePort, ...]
    items: tuple[Item, ...]
    parameters: tuple[tuple[str, int], ...] = ()
    shared: bool = False


# ------------------------------------------------------------------------------------ shorthand

OPEN = Literal(text="")
"""No connection of an output."""

TRUE, FALSE = Literal(text="1'b1"), Literal(text="1'b0")
ZEROS = Literal(text="'0")
"""All bits zero (``'0``)."""

BIT = Bits(width=1)
WORD = Bits(width=32)
INTEGER = Bits(width=32, signed=True)
LONG = Bits(width=64, signed=True)


def element(base: str, index: TargetExpression | int) -> Element:
    """An element of a variable."""
    at = number(index) if isinstance(index, int) else index
    return Element(base=Name(name=base), index=at)


def both(*conditions: TargetExpression) -> TargetExpression:
    """The conjunction; true for none."""
    if not conditions:
        return TRUE
    result = conditions[0]
    for condition in conditions[1:]:
        result = Binary(operator="&&", left=result, right=condition)
    return result


def either(*conditions: TargetExpression) -> TargetExpression:
    """The disjunction; false for none."""
    if not conditions:
        return FALSE
    result = conditions[0]
    for condition in conditions[1:]:
        result = Binary(operator="||", left=result, right=condition)
    return result


def negation(condition: TargetExpression) -> TargetExpression:
    """``!condition``."""
    return Unary(operator="!", operand=condition)


def widened(value: TargetExpression, bits: Bits, whole: Bits) -> TargetExpression:
    """A number that is kept in fewer bits than its type has, as a value of that type."""
    if bits.total == whole.total:
        return value
    signed = call("$signed", value) if bits.signed else value
    return Resize(bits=whole.total, value=signed)


def variable(name: str, type: Bits = BIT, count: int | None = None) -> Declaration:
    """A declaration without an initial value."""
    return Declaration(variable=Signal(name=name, type=type, count=count))


def input_port(name: str, type: Bits = BIT, count: int | None = None) -> ModulePort:
    """An input."""
    return ModulePort(direction=Direction.INPUT, variable=Signal(name=name, type=type, count=count))


def output_port(name: str, type: Bits = BIT, count: int | None = None) -> ModulePort:
    """An output."""
    return ModulePort(
        direction=Direction.OUTPUT, variable=Signal(name=name, type=type, count=count)
    )


def put(
    target: str | TargetExpression, value: TargetExpression, *, clocked: bool = False
) -> TargetStatement:
    """An assignment."""
    to = Name(name=target) if isinstance(target, str) else target
    if clocked:
        return SetAtClock(target=to, value=value)
    return Set(target=to, value=value)


# The printer.

_INDENT = "  "
_COLUMNS = 100
_AND = PRECEDENCE["&&"]


def print_modules(modules: tuple[HardwareModule, ...]) -> str:
    """The text of a file."""
    return "\n".join("\n".join(_module(module)) + "\n" for module in modules)


def _module(module: HardwareModule) -> Iterator[str]:
    yield from (f"// {one_line(line)}".rstrip() for line in module.about)
    parameters = ", ".join(f"parameter int {name} = {value}" for name, value in module.parameters)
    yield f"module {module.name} {f'#({parameters}) ' if parameters else ''}("
    for position, port in enumerate(module.ports):
        yield f"{_INDENT}{_port(port)}" + ("," if position < len(module.ports) - 1 else "")
    yield ");"
    if module.shared:
        yield f"{_INDENT}/*verilator no_inline_module*/"
    for item in module.items:
        yield from _item(item, _INDENT)
    yield "endmodule"


def _port(port: ModulePort) -> str:
    return f"{port.direction.value} {_variable(port.variable)}"


def _bits(type: Bits) -> str:
    lanes = f"[{type.lanes - 1}:0]" if type.lanes > 1 else ""
    width = f"[{type.width - 1}:0]" if type.width > 1 or type.lanes > 1 else ""
    signed = "signed " if type.signed and type.lanes == 1 else ""
    return f"logic {signed}{lanes}{width}".rstrip()


def _variable(variable: Signal) -> str:
    count = "" if variable.count is None else f" [{variable.count}]"
    initial = "" if variable.initial is None else f" = {show(variable.initial)}"
    return f"{_bits(variable.type)} {variable.name}{count}{initial}"


def _item(item: Item, indent: str) -> Iterator[str]:
    match item:
        case Heading(text=text):
            yield ""
            yield f"{indent}// {one_line(text)}"
        case Declaration(variable=variable):
            yield f"{indent}{_variable(variable)};"
        case Constant(name=constant, type=type, value=number):
            yield f"{indent}localparam {_bits(type)} {constant} = {number};"
        case ContinuousAssignment(target=target, value=value):
            yield from _wire(target, value, indent)
        case AlwaysComb(body=body):
            yield from _block("always_comb", body, indent)
        case AlwaysFF(body=body):
            yield from _block("always_ff @(posedge clock)", body, indent)
        case InitialBlock(body=body):
            yield from _block("initial", body, indent)
        case FinalBlock(body=body):
            yield from _block("final", body, indent)
        case Instance():
            yield from _instance(item, indent)
        case Generate(variable=variable_name, count=count, label=label, items=items):
            head = f"for (genvar {variable_name} = 0; {variable_name} < {count}; {variable_name}++)"
            yield f"{indent}{head} begin : {label}"
            for inner in items:
                yield from _item(inner, indent + _INDENT)
            yield f"{indent}end"
        case _:
            raise TypeError(f"{item.__class__.__name__} has no spelling")


def _wire(target: TargetExpression, value: TargetExpression, indent: str) -> Iterator[str]:
    line = f"{indent}assign {show(target)} = {show(value)};"
    parts = _conjuncts(value)
    if len(line) <= _COLUMNS or len(parts) == 1:
        yield line
        return
    yield f"{indent}assign {show(target)} ="
    for position, part in enumerate(parts):
        joined = f"&& {show(part, _AND)}" if position else show(part, _AND)
        yield f"{indent}{_INDENT}{joined}" + (";" if position == len(parts) - 1 else "")


def _conjuncts(value: TargetExpression) -> list[TargetExpression]:
    match value:
        case Binary(operator="&&", left=left, right=right):
            return [*_conjuncts(left), right]
    return [value]


def _block(head: str, body: tuple[TargetStatement, ...], indent: str) -> Iterator[str]:
    yield f"{indent}{head} begin"
    for statement in body:
        yield from _statement(statement, indent + _INDENT)
    yield f"{indent}end"


def _instance(item: Instance, indent: str) -> Iterator[str]:
    parameters = ", ".join(f".{name}({show(value)})" for name, value in item.parameters)
    yield f"{indent}{item.module}{f' #({parameters})' if parameters else ''} {item.name} ("
    for position, (name, value) in enumerate(item.connections):
        comma = "," if position < len(item.connections) - 1 else ""
        shown = f"({show(value)})" if value != Name(name=name) else ""
        yield f"{indent}{_INDENT}.{name}{shown}{comma}"
    yield f"{indent});"


def _statement(statement: TargetStatement, indent: str) -> Iterator[str]:
    match statement:
        case Set(target=target, value=value):
            yield f"{indent}{show(target)} = {show(value)};"
        case SetAtClock(target=target, value=value):
            yield f"{indent}{show(target)} <= {show(value)};"
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _if(f"if ({show(condition)})", then, otherwise, indent)
        case UnrolledFor(variable=name, count=count, body=body):
            yield from _block(f"for (int {name} = 0; {name} < {count}; {name}++)", body, indent)
        case Do(call=call):
            yield f"{indent}{show(call)};"
        case _:
            raise TypeError(f"{statement.__class__.__name__} has no spelling")


def _if(
    head: str,
    then: tuple[TargetStatement, ...],
    otherwise: tuple[TargetStatement, ...],
    indent: str,
) -> Iterator[str]:
    yield f"{indent}{head} begin"
    for inner in then:
        yield from _statement(inner, indent + _INDENT)
    match otherwise:
        case ():
            yield f"{indent}end"
        case (If(condition=condition, then=inner_then, otherwise=inner_otherwise),):
            head = f"end else if ({show(condition)})"
            yield from _if(head, inner_then, inner_otherwise, indent)
        case _:
            yield f"{indent}end else begin"
            for inner in otherwise:
                yield from _statement(inner, indent + _INDENT)
            yield f"{indent}end"


def _own(expression: TargetExpression, show: Show) -> str | None:
    """The expressions of SystemVerilog."""
    match expression:
        case Resize(bits=bits, value=value):
            return f"{bits}'({show(value)})"
        case Element(base=base, index=index):
            return f"{show(base, POSTFIX)}[{show(index)}]"
        case Slice(base=base, high=high, low=low):
            return f"{show(base, POSTFIX)}[{high}:{low}]"
        case Concatenation(parts=parts):
            return f"{{{', '.join(map(show, parts))}}}"
    return None


show = Spelling(_own).show
