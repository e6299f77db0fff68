"""Units with computed addresses: ``ldx`` and ``stx`` as machines, and the values of ``seq`` units.

A unit becomes an endless machine of one mode; each of its channels has a channel of tags beside it.
An ``ldx`` has two rules: load at an address, or forward a token with another tag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from t2s.backends.cgra_tia.lift.cell_machines import TokenChannel
from t2s.backends.cgra_tia.lift.classes import PartClass
from t2s.backends.cgra_tia.lift.word_expressions import DOUBLE, WORD
from t2s.backends.cgra_tia.netlist import AffineSum, StreamUnit, UnitKind
from t2s.core.expr import Cast, Expr, Index, Local, const, digits, equals, unequal
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Type
from t2s.graph.body import Load, Role, Store
from t2s.graph.graph import Tensor
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Rule


def unit_machine(
    name: str,
    unit: StreamUnit,
    tensor: Tensor,
    inputs: Mapping[int, TokenChannel],
    outputs: Sequence[TokenChannel],
    location: SourceLocation | None,
) -> Machine:
    """The machine of a unit whose addresses arrive through a channel."""
    needs = tuple(n for port in sorted(inputs) for n in _names(inputs[port]))
    loads = unit.kind is UnitKind.LOAD_AT
    choices = _loading(unit, tensor, needs, outputs) if loads else _storing(unit, tensor, needs)
    return Machine(
        name=name,
        role=Role.LOAD if loads else Role.STORE,
        heads=tuple(_heads(inputs)),
        modes=(Mode(name="step", needs=needs, choices=choices, expected="addresses"),),
        endless=True,
        location=location,
    )


def sequence_value(part_class: PartClass, address: AffineSum) -> Expr:
    """The word that a unit without a tensor sends in a step of its nest."""
    terms = list(zip(part_class.space_names, part_class.base[0], strict=True))
    terms += zip(part_class.loop_names, address.coefficients, strict=False)
    total: Expr = const(part_class.base[1], WORD)
    for name, factor in terms:
        if factor:
            index = Cast(value=Index(name=name), type=WORD)
            total = total + index * const(factor, WORD)
    return total


def _names(channel: TokenChannel) -> list[str]:
    return [channel.name, *([channel.tags] if channel.tags else [])]


def _heads(inputs: Mapping[int, TokenChannel]) -> Iterator[Head]:
    for port, channel in sorted(inputs.items()):
        yield Head(channel=channel.name, value=f"value{port}")
        if channel.tags:
            yield Head(channel=channel.tags, value=f"tag{port}")


def _indices(unit: StreamUnit, tensor: Tensor) -> tuple[Expr, ...]:
    """The subscripts of the address at the head."""
    address: Expr = Local(name="value0", type=WORD)
    if unit.address is not None and unit.address.constant:
        address = address + const(unit.address.constant, WORD)
    if tensor.open or len(tensor.allocated) == 1:
        return (address,)
    return digits(Cast(value=address, type=INT32), tensor.allocated)


def _loading(
    unit: StreamUnit, tensor: Tensor, needs: tuple[str, ...], outputs: Sequence[TokenChannel]
) -> tuple[Choice, ...]:
    word = DOUBLE if tensor.type.is_float else WORD
    tag = Local(name="tag0", type=INT32)
    loaded = _converted(Local(name="loaded", type=tensor.type), word)
    load = Load(
        target="loaded", tensor=tensor.name, indices=_indices(unit, tensor), type=tensor.type
    )
    fetch = Rule(
        name="load", body=(load,), takes=needs, puts=_puts(outputs, loaded, tag), next="step"
    )
    none = const(0.0 if word.is_float else 0, word)
    passed = Rule(name="pass", takes=needs, puts=_puts(outputs, none, tag), next="step")
    return (Choice(when=equals(tag, 0), inside=fetch), Choice(inside=passed))


def _storing(unit: StreamUnit, tensor: Tensor, needs: tuple[str, ...]) -> tuple[Choice, ...]:
    word = DOUBLE if tensor.type.is_float else WORD
    value = _converted(Local(name="value1", type=word), tensor.type)
    store = Store(tensor=tensor.name, indices=_indices(unit, tensor), value=value)
    return (Choice(inside=Rule(name="store", body=(store,), takes=needs, next="step")),)


def _puts(outputs: Sequence[TokenChannel], value: Expr, tag: Expr) -> tuple[Put, ...]:
    puts: list[Put] = []
    for channel in outputs:
        puts.append(Put(channel=channel.name, value=value))
        if channel.tags:
            puts.append(Put(channel=channel.tags, value=tag))
    return tuple(puts)


def _converted(value: Expr, type: Type) -> Expr:
    if value.type == type:
        return value
    if type.is_bool:
        return unequal(value, 0)
    return Cast(value=value, type=type)
