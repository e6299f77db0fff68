"""The result: kept on the chip until all lanes have ended, then stored line by line."""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.construct import (
    Parts,
    add,
    equal,
    index,
    less,
    local,
    loop,
    register,
    select,
    space,
    times,
    unequal,
)
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.reduction.circuits import Lanes
from t2s.sparse_repr.representation.hardware.loaders import WORD, flat_subscripts
from t2s.sparse_repr.representation.hardware.product import Product


def unload(parts: Parts, product: Product, lanes: Lanes) -> None:
    """The buffer of the result, which takes a pair of every lane in each step, and its store unit.

    Where no row is on two lanes there is one buffer; else one for each lane, summed at the end.
    Row 0, that of no value, has a place of its own in front.
    """
    unloader, type = product.nodes.unloader, product.result.type
    elements = product.rows * product.width
    lines = -(-elements // product.words)
    banks = 1 if product.distinct else lanes.count
    size = product.width + lines * product.words
    heads: list[Head] = []
    for lane in range(lanes.count):
        heads.append(Head(channel=f"{unloader.name}_target_{lane}", value=f"target_{lane}"))
        heads.append(Head(channel=f"{unloader.name}_value_{lane}", value=f"value_{lane}"))
    registers = [register("count"), register("line")]
    registers += [register("side")] if product.width > 1 else []
    registers += [register(f"kept_{bank}", type, (size,)) for bank in range(banks)]
    parts.nodes.append(
        Machine(
            name=unloader.name,
            role=Role.RELAY,
            heads=tuple(heads),
            registers=tuple(registers),
            modes=(_collecting(product, lanes, banks), _draining(product, lines, banks)),
            location=unloader.location,
        )
    )
    store_lines(parts, product, lines)


def _collecting(product: Product, lanes: Lanes, banks: int) -> Mode:
    width, type, name = product.width, product.result.type, product.nodes.unloader.name
    channels = tuple(
        f"{name}_{what}_{lane}" for lane in range(lanes.count) for what in ("target", "value")
    )
    body: list[Statement] = []
    for lane in range(lanes.count):
        at = add(times(local(f"target_{lane}"), width), local("side") if width > 1 else 0)
        body.append(
            RegisterWrite(
                register=f"kept_{lane if banks > 1 else 0}",
                indices=(at,),
                value=local(f"value_{lane}", type),
            )
        )
    body.append(RegisterWrite(register="count", indices=(), value=add(local("count"), 1)))
    if width > 1:
        following = select(equal(local("side"), width - 1), 0, add(local("side"), 1))
        body.append(RegisterWrite(register="side", indices=(), value=following))
    more = unequal(local("count"), lanes.steps * width - 1)
    return Mode(
        name="collect",
        needs=channels,
        choices=(
            Choice(
                when=more,
                inside=Rule(name="keep", body=tuple(body), takes=channels, next="collect"),
            ),
            Choice(
                inside=Rule(name="keep the last", body=tuple(body), takes=channels, next="drain")
            ),
        ),
    )


def _draining(product: Product, lines: int, banks: int) -> Mode:
    words, width, type = product.words, product.width, product.result.type
    body: list[Statement] = []
    puts: list[Put] = []
    for word in range(words):
        at = add(times(local("line"), words), word + width)
        terms: list[Expr] = []
        for bank in range(banks):
            name = f"read_{word}_{bank}"
            body.append(
                RegisterRead(target=name, register=f"kept_{bank}", indices=(at,), type=type)
            )
            terms.append(local(name, type))
        puts.append(Put(channel=f"{_store_name(product)}_word_{word}", value=_sum(terms)))
    step = RegisterWrite(register="line", indices=(), value=add(local("line"), 1))
    return Mode(
        name="drain",
        needs=(),
        choices=(
            Choice(
                when=unequal(local("line"), lines - 1),
                inside=Rule(name="send", body=(*body, step), puts=tuple(puts), next="drain"),
            ),
            Choice(inside=Rule(name="send the last", body=tuple(body), puts=tuple(puts))),
        ),
    )


def _sum(terms: list[Expr]) -> Expr:
    """A balanced tree of additions."""
    while len(terms) > 1:
        pairs = [add(left, right) for left, right in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def _store_name(product: Product) -> str:
    return f"{product.nodes.unloader.name}_store"


def store_lines(parts: Parts, product: Product, lines: int) -> None:
    """The store unit: lines of the result from the unloader to memory."""
    name, words, type = _store_name(product), product.words, product.result.type
    elements = product.rows * product.width
    at = add(times(index("line"), words), index(WORD))
    subscripts = (at,) if product.flat else flat_subscripts(at, product.width)
    parts.tensors.append(
        Tensor(
            name=product.result.name,
            type=type,
            shape=product.shape(product.storage.shape[0]),
            padded=product.padded_shape(product.storage.shape[0]),
            role=TensorRole.OUTPUT,
            location=product.result.location,
        )
    )
    body: list[Statement] = []
    value: Expr | None = None
    for word in range(words):
        here = equal(index(WORD), word)
        body.append(
            Receive(
                target=f"word_{word}",
                channel=f"{name}_word_{word}",
                type=type,
                condition=here if words > 1 else None,
            )
        )
        this = local(f"word_{word}", type)
        value = this if value is None else select(here, this, value)
        parts.link(f"{name}_word_{word}", type, product.nodes.unloader.name, name)
    assert value is not None
    body.append(Let(target="stored", value=value))
    body.append(
        Store(
            tensor=product.result.name,
            indices=subscripts,
            value=local("stored", type),
            condition=less(at, elements),
        )
    )
    parts.nodes.append(
        PEArray(
            name=name,
            role=Role.STORE,
            space=(space(WORD, words),),
            loops=(loop("line", lines),),
            body=tuple(body),
            location=product.nodes.unloader.location,
        )
    )
