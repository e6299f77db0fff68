"""What brings the streams of the matrix and the dense operand to the machines."""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement
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
    zero,
)
from t2s.graph.graph import StreamKind, Tensor, TensorRole
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role, SpaceDimension
from t2s.reduction.circuits import LANE, STEP
from t2s.sparse_repr.representation.hardware.product import Product

ELEMENT, WORD = "element", "word"
"""Space dimensions: the multiplier of a machine, and the element of a line of memory."""


def places(product: Product) -> tuple[SpaceDimension, ...]:
    """The space of the multipliers: machines, and elements of a block if there are several."""
    elements = (space(ELEMENT, product.block),) if product.block > 1 else ()
    return (space(LANE, product.machines), *elements)


def place(product: Product) -> tuple[Expr, ...]:
    """The indices of ``places``."""
    return (index(LANE), *((index(ELEMENT),) if product.block > 1 else ()))


def place_number(product: Product) -> Expr:
    """The number of a multiplier among those of all machines."""
    if product.block == 1:
        return index(LANE)
    return add(times(index(LANE), product.block), index(ELEMENT))


def place_shape(product: Product) -> tuple[int, ...]:
    """The extents of ``places``."""
    return tuple(dimension.extent for dimension in places(product))


def input_tensor(
    parts: Parts, product: Product, name: str, type: Type, shape: tuple[int, ...]
) -> None:
    """Declare an array of the representation."""
    parts.tensors.append(
        Tensor(
            name=name,
            type=type,
            shape=shape,
            role=TensorRole.INPUT,
            origin=product.origin,
            location=product.matrix.location,
        )
    )


def load_slots(
    parts: Parts, product: Product, tensor: str, type: Type, node: str, sink: str, channel: str
) -> None:
    """A load unit for each multiplier, and a channel from each: one element in every step."""
    at = add(times(index(STEP), product.block), index(ELEMENT) if product.block > 1 else 0)
    positions = product.steps * product.block
    input_tensor(parts, product, tensor, type, (product.machines, positions))
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=places(product),
            loops=(loop(STEP, product.steps),),
            body=(
                Load(target="loaded", tensor=tensor, indices=(index(LANE), at), type=type),
                Send(channel=channel, value=local("loaded", type)),
            ),
            location=product.nodes.matrix_loader.location,
        )
    )
    parts.link(
        channel,
        type,
        node,
        sink,
        shape=place_shape(product),
        source_index=place(product),
        sink_index=place(product),
        capacity=32 + product.slack,
    )


def load_vector(parts: Parts, product: Product) -> tuple[str, str]:
    """Load the dense operand, some lines in each cycle.

    Returns the names of the node that does, and of the one that passes its lines on.
    """
    nodes, words, type = product.nodes, product.vector_words, product.vector.type
    loader, relay = nodes.vector_loader.name, f"{nodes.vector_feeder.name}_relay"
    elements = product.columns * product.width
    lines = product.vector_lines
    at = add(times(index("line"), words), index(WORD))
    subscripts = (at,) if product.flat else flat_subscripts(at, product.width)
    parts.tensors.append(
        Tensor(
            name=product.vector.name,
            type=type,
            shape=product.vector_shape,
            padded=padded_shape(product.vector_shape),
            role=TensorRole.INPUT,
            location=product.vector.location,
        )
    )
    body: list[Statement] = [
        Load(
            target="loaded",
            tensor=product.vector.name,
            indices=subscripts,
            type=type,
            condition=less(at, elements),
        )
    ]
    body += [
        Send(
            channel=f"{loader}_word_{word}",
            value=local("loaded", type),
            condition=equal(index(WORD), word) if words > 1 else None,
        )
        for word in range(words)
    ]
    parts.nodes.append(
        PEArray(
            name=loader,
            role=Role.LOAD,
            space=(space(WORD, words),),
            loops=(loop("line", lines),),
            body=tuple(body),
            location=nodes.vector_loader.location,
        )
    )
    return loader, relay


def padded_shape(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape in memory of an operand or a result that has no elements."""
    return None if all(shape) else tuple(max(1, extent) for extent in shape)


def flat_subscripts(at: Expr, width: int) -> tuple[Expr, ...]:
    """The two subscripts of a flat position."""
    return quotient(at, width), remainder(at, width)


def relay_to_feeders(parts: Parts, product: Product, loader: str, relay: str) -> None:
    """From the loader to the first feeder, and from each to the next."""
    count, type = product.multipliers, product.vector.type
    feeder = product.nodes.vector_feeder.name
    sends: list[Statement] = []
    for word in range(product.vector_words):
        channel = f"{feeder}_word_{word}"
        sends.append(Send(channel=channel, value=local(f"word_{word}", type)))
        parts.link(
            channel, type, relay, feeder,
            shape=(count,), source_index=(index("hop"),), sink_index=(place_number(product),),
        )  # fmt: skip
    relay_lines(parts, product, loader, relay, count, tuple(sends))


def relay_lines(
    parts: Parts,
    product: Product,
    loader: str,
    relay: str,
    count: int,
    sends: tuple[Statement, ...],
) -> None:
    """Pass lines on over ``count`` hops, each of which sends what it is told to of ``word_w``."""
    type, lines = product.vector.type, product.vector_lines
    hop = index("hop")
    body: list[Statement] = []
    for word in range(product.vector_words):
        first, before = local(f"first_{word}", type), local(f"before_{word}", type)
        body.append(
            Receive(
                target=first.name,
                channel=f"{loader}_word_{word}",
                type=type,
                condition=equal(hop, 0),
            )
        )
        value: Expr = first
        if count > 1:
            body.append(
                Receive(
                    target=before.name,
                    channel=f"{relay}_word_{word}",
                    type=type,
                    condition=less(0, hop),
                )
            )
            value = select(equal(hop, 0), first, before)
        body.append(Let(target=f"word_{word}", value=value))
        if count > 1:
            body.append(
                Send(
                    channel=f"{relay}_word_{word}",
                    value=local(f"word_{word}", type),
                    condition=less(hop, count - 1),
                )
            )
        _relay_links(parts, product, loader, relay, count, word)
    body += sends
    parts.nodes.append(
        PEArray(
            name=relay,
            role=Role.RELAY,
            space=(space("hop", count),),
            loops=(loop("line", lines),),
            body=tuple(body),
            location=product.nodes.vector_feeder.location,
        )
    )


def _relay_links(
    parts: Parts, product: Product, loader: str, relay: str, count: int, word: int
) -> None:
    type, hop = product.vector.type, index("hop")
    parts.link(f"{loader}_word_{word}", type, loader, relay)
    if count > 1:
        parts.link(
            f"{relay}_word_{word}",
            type,
            relay,
            relay,
            shape=(count - 1,),
            source_index=(hop,),
            sink_index=(subtract(hop, 1),),
        )


def feed_vector(parts: Parts, product: Product, places_channel: str) -> None:
    """The feeders: each keeps the whole dense operand, and sends the elements that it is asked for.

    A feeder first takes all lines, then, for every column index that comes, sends the elements of
    that row of the operand.  A negative index is padding: it gets the first row, marked invalid.
    """
    feeder, type = product.nodes.vector_feeder, product.vector.type
    words, width = product.vector_words, product.width
    lines = product.vector_lines
    modes = (
        _filling(product, lines),
        _sending(product, places_channel),
    )
    registers = [register("line"), register("count"), register("kept", type, (lines * words,))]
    registers += [register("side")] if width > 1 else []
    heads = [
        Head(channel=f"{feeder.name}_word_{word}", value=f"word_{word}") for word in range(words)
    ]
    parts.nodes.append(
        Machine(
            name=feeder.name,
            role=Role.RELAY,
            space=places(product),
            heads=(*heads, Head(channel=places_channel, value="place")),
            registers=tuple(registers),
            modes=modes,
            location=feeder.location,
        )
    )
    give_to_multipliers(parts, product)


def give_to_multipliers(parts: Parts, product: Product) -> None:
    """The channels from the feeders to the multipliers."""
    sink, feeder = product.nodes.multiplier.name, product.nodes.vector_feeder
    type = product.vector.type
    for channel, sent, kind in (
        (f"{sink}_vector", type, StreamKind.VALUE),
        (f"{sink}_valid", BOOL, StreamKind.CONTROL),
    ):
        if sent is type or product.padded:
            parts.link(
                channel,
                sent,
                feeder.name,
                sink,
                shape=place_shape(product),
                source_index=place(product),
                sink_index=place(product),
                capacity=4,
                kind=kind,
            )


def _filling(product: Product, lines: int) -> Mode:
    words, name = product.vector_words, product.nodes.vector_feeder.name
    type = product.vector.type
    channels = tuple(f"{name}_word_{word}" for word in range(words))
    body = [
        RegisterWrite(
            register="kept",
            indices=(add(times(local("line"), words), word),),
            value=local(f"word_{word}", type),
        )
        for word in range(words)
    ]
    body.append(RegisterWrite(register="line", indices=(), value=add(local("line"), 1)))
    return Mode(
        name="fill",
        needs=channels,
        choices=(
            Choice(
                when=unequal(local("line"), lines - 1),
                inside=Rule(name="keep", body=tuple(body), takes=channels, next="fill"),
            ),
            Choice(
                inside=Rule(name="keep the last", body=tuple(body), takes=channels, next="send")
            ),
        ),
    )


def _sending(product: Product, channel: str) -> Mode:
    width, sink, type = product.width, product.nodes.multiplier.name, product.vector.type
    total = product.steps * width
    row = select(less(local("place"), 0), 0, local("place"))
    at = add(times(row, width), local("side") if width > 1 else 0)
    body: list[Statement] = [
        RegisterRead(target="found", register="kept", indices=(at,), type=type),
        RegisterWrite(register="count", indices=(), value=add(local("count"), 1)),
    ]
    puts = [Put(channel=f"{sink}_vector", value=local("found", type))]
    if product.padded:
        valid = less(-1, local("place"))
        puts.append(Put(channel=f"{sink}_valid", value=valid))

    def rule(name: str, last_side: bool, following: str | None) -> Rule:
        step = []
        if width > 1:
            value = number_zero() if last_side else add(local("side"), 1)
            step = [RegisterWrite(register="side", indices=(), value=value)]
        return Rule(
            name=name,
            body=(*body, *step),
            takes=(channel,) if last_side else (),
            puts=tuple(puts),
            next=following,
        )

    choices: list[Choice] = []
    if width > 1:
        inside = unequal(local("side"), width - 1)
        choices.append(Choice(when=inside, inside=rule("send", False, "send")))
    more = unequal(local("count"), total - 1)
    choices.append(Choice(when=more, inside=rule("send and go on", True, "send")))
    choices.append(Choice(inside=rule("send the last", True, None)))
    return Mode(name="send", needs=(channel,), choices=tuple(choices))


def number_zero() -> Expr:
    """The number 0."""
    return zero(INT32)
