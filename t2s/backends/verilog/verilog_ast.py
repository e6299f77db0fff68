"""The target AST: the part of SystemVerilog that the backend writes.

Everything that has to be decided is decided when this tree is built; ``printer`` only spells it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from t2s.backends.text.expressions import (
    Binary,
    Literal,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Unary,
    number,
)

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
class Combinational(Item):
    """``always_comb``."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocked(Item):
    """``always_ff @(posedge clock)``."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Initially(Item):
    """``initial``: for simulation only."""

    body: tuple[TargetStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finally(Item):
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

    ``shared`` keeps a simulator from copying the module into every place that uses it.
    """

    name: str
    about: tuple[str, ...]
    ports: tuple[ModulePort, ...]
    items: tuple[Item, ...]
    shared: bool = False


# ------------------------------------------------------------------------------------ shorthand

TRUE, FALSE = Literal(text="1'b1"), Literal(text="1'b0")
ZEROS = Literal(text="'0")
"""As many zeros as are wanted."""

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


def variable(name: str, type: Bits = BIT, count: int | None = None) -> Declaration:
    """A declaration without an initial value."""
    return Declaration(variable=Signal(name=name, type=type, count=count))


def taken(name: str, type: Bits = BIT, count: int | None = None) -> ModulePort:
    """An input."""
    return ModulePort(direction=Direction.INPUT, variable=Signal(name=name, type=type, count=count))


def given(name: str, type: Bits = BIT, count: int | None = None) -> ModulePort:
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
