"""The result: kept on the chip until all lanes are behind a line of it, then stored line by line.

Where lanes take rows in no order, or several lanes add to one row, that is when all have ended.
"""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.construct import (
    Parts,
    add,
    both,
    equal,
    index,
    less,
    local,
    loop,
    register,
    select,
    space,
    subtract,
    times,
    unequal,
)
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.reduction.circuits import Lanes
from t2s.sparse_repr.representation.hardware.loaders import WORD, flat_subscripts, padded_shape
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.start import load_start


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
    registers += [register("last", INT32, (lanes.count,))] if _early(product, banks) else []
    registers += [register(f"kept_{bank}", type, (size,)) for bank in range(banks)]
    parts.nodes.append(
        Machine(
            name=unloader.name,
            role=Role.RELAY,
            heads=tuple(heads),
            registers=tuple(registers),
            modes=(_collecting(product, lanes, banks, lines), _draining(product, lines, banks)),
            location=unloader.location,
        )
    )
    store_lines(parts, product, lines)


def _collecting(product: Product, lanes: Lanes, banks: int, lines: int) -> Mode:
    """Keep pairs; where rows come in order also send the lines that are complete, one at a time."""
    name = product.nodes.unloader.name
    channels = tuple(
        f"{name}_{what}_{lane}" for lane in range(lanes.count) for what in ("target", "value")
    )
    body = _kept(product, lanes, banks)
    more = unequal(local("count"), lanes.steps * product.width - 1)
    found: list[Statement] = []
    ways: list[tuple[Expr | None, str, tuple[Statement, ...], tuple[Put, ...]]] = []
    if _early(product, banks):
        found, complete = _complete(product, lanes, lines)
        read, puts = _line(product, banks)
        ways.append((complete, " and send a line", (*read, _next_line()), puts))
    ways.append((None, "", (), ()))
    choices: list[Choice] = []
    for when, suffix, sent, puts in ways:
        inside = (
            Choice(
                when=more,
                inside=Rule(
                    name=f"keep{suffix}",
                    body=(*sent, *body),
                    takes=channels,
                    puts=puts,
                    next="collect",
                ),
            ),
            Choice(
                inside=Rule(
                    name=f"keep the last{suffix}",
                    body=(*sent, *body),
                    takes=channels,
                    puts=puts,
                    next="drain",
                )
            ),
        )
        choices.append(Choice(when=when, inside=inside))
    return Mode(
        name="collect",
        needs=channels,
        choices=(Choice(body=tuple(found), inside=tuple(choices)),),
    )


def _early(product: Product, banks: int) -> bool:
    """Whether lines are complete before the streams end."""
    return product.ascending and banks == 1


def _kept(product: Product, lanes: Lanes, banks: int) -> list[Statement]:
    """A pair of each lane into the buffer."""
    width, type = product.width, product.result.type
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
    if _early(product, banks):
        for lane in range(lanes.count):
            target, last = local(f"target_{lane}"), local(f"last_{lane}")
            row = select(equal(target, 0), last, target)
            body.append(RegisterWrite(register="last", indices=(const(lane),), value=row))
    body.append(RegisterWrite(register="count", indices=(), value=add(local("count"), 1)))
    if width > 1:
        following = select(equal(local("side"), width - 1), 0, add(local("side"), 1))
        body.append(RegisterWrite(register="side", indices=(), value=following))
    return body


def _complete(product: Product, lanes: Lanes, lines: int) -> tuple[list[Statement], Expr]:
    """Whether the next line is: every lane has come to a row behind it.  The last one waits."""
    body: list[Statement] = [
        RegisterRead(target=f"last_{lane}", register="last", indices=(const(lane),), type=INT32)
        for lane in range(lanes.count)
    ]
    least: list[Expr] = [local(f"last_{lane}") for lane in range(lanes.count)]
    while len(least) > 1:
        pairs = zip(least[::2], least[1::2], strict=False)
        reached = [_smaller(body, a, b) for a, b in pairs]
        least = reached + (least[-1:] if len(least) % 2 else [])
    elements = times(subtract(least[0], 1), product.width)  # of the rows before
    ready = less(times(add(local("line"), 1), product.words), add(elements, 1))
    return body, both(ready, less(local("line"), lines - 1))


def _smaller(body: list[Statement], left: Expr, right: Expr) -> Expr:
    name = f"least_{len(body)}"
    body.append(Let(target=name, value=select(less(left, right), left, right)))
    return local(name)


def _next_line() -> Statement:
    return RegisterWrite(register="line", indices=(), value=add(local("line"), 1))


def _line(product: Product, banks: int) -> tuple[list[Statement], tuple[Put, ...]]:
    """Read the next line, and send it."""
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
    return body, tuple(puts)


def _draining(product: Product, lines: int, banks: int) -> Mode:
    body, puts = _line(product, banks)
    return Mode(
        name="drain",
        needs=(),
        choices=(
            Choice(
                when=unequal(local("line"), lines - 1),
                inside=Rule(name="send", body=(*body, _next_line()), puts=puts, next="drain"),
            ),
            Choice(inside=Rule(name="send the last", body=tuple(body), puts=puts)),
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
            padded=padded_shape(product.shape(product.storage.shape[0])),
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
        parts.link(f"{name}_word_{word}", type, product.nodes.unloader.name, name, capacity=16)
    assert value is not None
    begin, loaded = load_start(parts, product, name, at, lines)
    body += loaded
    body.append(Let(target="stored", value=value if begin is None else add(begin, value)))
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
