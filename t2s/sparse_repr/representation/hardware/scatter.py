"""Sums of rows whose values come in no order: in a memory of the result on each machine.

The slot of a row is read, added to and written again in each step.  An addition of floats takes
several cycles, and the next value may be of the same row, so a memory holds ``2 ** levels`` partial
sums of every row, which take turns (papers/003, section 2.2 leaves this case open): each is read
again that many steps later at the earliest, whatever the matrix is, so that no step waits and none
reads an old sum.  Right-hand sides take turns anyway, so with several of them there are fewer.

When the streams have ended, the partial sums of a row are added, by a tree or one after the other,
and a line of the result goes down the line of machines, each of which adds its own to it.
"""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.construct import (
    Parts,
    add,
    equal,
    index,
    less,
    local,
    loop,
    quotient,
    register,
    remainder,
    select,
    space,
    subtract,
    times,
    unequal,
)
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.reduction.circuits import LANE, Tree
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.results import store_lines


def copies_of(product: Product) -> int:
    """Partial sums of each element of the result."""
    return -(-product.circuit.slots // product.width)


def _distance(product: Product) -> int:
    """Firings from a write of an element of the memory to the next read of it, at least."""
    return copies_of(product) * product.width


def scatter(parts: Parts, product: Product) -> None:
    """Add the memories of sums, one for each row of a step, and what unloads them."""
    node, width, type = product.nodes.reduction, product.width, product.result.type
    copies, machines = copies_of(product), product.machines
    lines = -(-product.rows * width // product.words)
    rows = -(-lines * product.words // width)
    size = width + -(-rows // product.rows_at_once) * width
    heads = [
        Head(channel=f"{node.name}_{what}_{row}", value=f"{what}_{row}")
        for row in range(product.rows_at_once)
        for what in ("target", "value")
    ]
    registers = [register("count"), register("line")]
    registers += [register("side")] if width > 1 else []
    registers += [register("copy")] if copies > 1 else []
    distance, location = _distance(product), product.circuit.location
    registers += [register("settled")] if distance > 1 else []
    registers += [
        register(f"sums_{row}", type, (copies * size,), distance, location)
        for row in range(product.rows_at_once)
    ]
    parts.nodes.append(
        Machine(
            name=node.name,
            role=Role.COMPUTE,
            space=(space(LANE, machines),) if machines > 1 else (),
            heads=tuple(heads),
            registers=tuple(registers),
            modes=(
                _adding(product, size),
                *_settling(product),
                _draining(product, lines, size),
            ),
            location=node.location,
        )
    )
    _unload(parts, product, machines, lines)
    store_lines(parts, product, lines)


def _adding(product: Product, size: int) -> Mode:
    """Each target of a step is added to in the memory of its place in the step."""
    width, name = product.width, product.nodes.reduction.name
    channels = tuple(
        f"{name}_{what}_{row}"
        for row in range(product.rows_at_once)
        for what in ("target", "value")
    )
    body: list[Statement] = []
    for row in range(product.rows_at_once):
        body += _add(product, size, row)
    body.append(RegisterWrite(register="count", indices=(), value=add(local("count"), 1)))
    last_side = equal(local("side"), width - 1)
    if width > 1:
        following = select(last_side, 0, add(local("side"), 1))
        body.append(RegisterWrite(register="side", indices=(), value=following))
    if copies_of(product) > 1:
        copy = local("copy")
        after: Expr = select(equal(copy, copies_of(product) - 1), 0, add(copy, 1))
        if width > 1:
            after = select(last_side, after, copy)
        body.append(RegisterWrite(register="copy", indices=(), value=after))
    more = unequal(local("count"), product.steps * width - 1)
    last = Rule(
        name="add the last",
        body=tuple(body),
        takes=channels,
        next="settle" if _distance(product) > 1 else "drain",
    )
    add_one = Rule(name="add", body=tuple(body), takes=channels, next="add")
    choices = (Choice(when=more, inside=add_one), Choice(inside=last))
    return Mode(name="add", needs=channels, choices=choices)


def _add(product: Product, size: int, row: int) -> list[Statement]:
    """Add a value to the sum of its target; target 0, that of no value, has a place in front.

    Of ``n`` rows in a step, the memory ``row`` has every n-th row of the result.
    """
    type, target = product.result.type, local(f"target_{row}")
    place: Expr = target
    if product.rows_at_once > 1:
        place = quotient(add(target, product.rows_at_once - 1), product.rows_at_once)
    at = add(times(place, product.width), local("side") if product.width > 1 else 0)
    if copies_of(product) > 1:
        at = add(times(local("copy"), size), at)
    here, total = local(f"at_{row}"), add(local(f"sum_{row}", type), local(f"value_{row}", type))
    return [
        Let(target=here.name, value=at),
        RegisterRead(target=f"sum_{row}", register=f"sums_{row}", indices=(here,), type=type),
        RegisterWrite(register=f"sums_{row}", indices=(here,), value=total),
    ]


def _settling(product: Product) -> tuple[Mode, ...]:
    """Wait until the last sums are in the memory, as long as before any other read of them."""
    steps = _distance(product) - 1
    if not steps:
        return ()
    wait = RegisterWrite(register="settled", indices=(), value=add(local("settled"), 1))
    mode = Mode(
        name="settle",
        needs=(),
        choices=(
            Choice(
                when=unequal(local("settled"), steps - 1),
                inside=Rule(name="settle", body=(wait,), next="settle"),
            ),
            Choice(inside=Rule(name="settled", body=(wait,), next="drain")),
        ),
    )
    return (mode,)


def _draining(product: Product, lines: int, size: int) -> Mode:
    body: list[Statement] = []
    puts: list[Put] = []
    for word in range(product.words):
        terms = [_partial(product, word, copy * size, body) for copy in range(copies_of(product))]
        puts.append(Put(channel=_own(product, word), value=_total(product, terms)))
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


def _partial(product: Product, word: int, copy: int, body: list[Statement]) -> Expr:
    """A partial sum of element ``word`` of the line; ``body`` reads it from its memory."""
    rows, width, type = product.rows_at_once, product.width, product.result.type
    at = add(times(local("line"), product.words), word)
    if rows == 1:
        place = add(at, width + copy)
    else:
        place = times(quotient(quotient(at, width), rows), width)
        place = add(add(place, remainder(at, width)), width + copy)
    value: Expr | None = None
    for row in range(rows):
        found = local(f"read_{word}_{copy}_{row}", type)
        body.append(
            RegisterRead(target=found.name, register=f"sums_{row}", indices=(place,), type=type)
        )
        here = equal(remainder(quotient(at, width), rows), row)
        value = found if value is None else select(here, found, value)
    assert value is not None
    return value


def _total(product: Product, terms: list[Expr]) -> Expr:
    """The sum of partial sums: a balanced tree, or one addition after the other."""
    if product.circuit.structure is not Tree:
        total = terms[0]
        for term in terms[1:]:
            total = add(total, term)
        return total
    while len(terms) > 1:
        pairs = [add(left, right) for left, right in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
    return terms[0]


def _own(product: Product, word: int) -> str:
    return f"{product.nodes.unloader.name}_own_{word}"


def _unload(parts: Parts, product: Product, count: int, lines: int) -> None:
    """Lines from machine to machine; each adds its own, and the last one sends them to memory."""
    unloader, type, node = product.nodes.unloader, product.result.type, product.nodes.reduction
    lane = index(LANE)
    body: list[Statement] = []
    for word in range(product.words):
        own, before = local(f"own_{word}", type), local(f"before_{word}", type)
        total, following = local(f"total_{word}", type), f"{unloader.name}_next_{word}"
        body.append(Receive(target=own.name, channel=_own(product, word), type=type))
        value: Expr = own
        if count > 1:
            first = less(0, lane)
            body.append(Receive(target=before.name, channel=following, type=type, condition=first))
            value = select(first, add(before, own), own)
            parts.link(
                following, type, unloader.name, unloader.name, shape=(count - 1,),
                source_index=(lane,), sink_index=(subtract(lane, 1),),
            )  # fmt: skip
        at = (lane,) if count > 1 else ()
        parts.link(
            _own(product, word), type, node.name, unloader.name,
            shape=(count,) if count > 1 else (), source_index=at, sink_index=at,
        )  # fmt: skip
        body.append(Let(target=total.name, value=value))
        last = equal(lane, count - 1) if count > 1 else None
        body.append(Send(channel=f"{unloader.name}_store_word_{word}", value=total, condition=last))
        if count > 1:
            on = less(lane, count - 1)
            body.append(Send(channel=following, value=total, condition=on))
    parts.nodes.append(
        PEArray(
            name=unloader.name,
            role=Role.RELAY,
            space=(space(LANE, count),) if count > 1 else (),
            loops=(loop("line", lines),),
            body=tuple(body),
            location=unloader.location,
        )
    )
