"""Loaders of the streams of the matrix and of the dense operand, and the feeders of the
machines.
"""

from __future__ import annotations

from collections.abc import Callable

from t2s.core.expr import Expr, Local, const, equals, select, simplify, unequal
from t2s.core.types import Type
from t2s.graph.body import Role, Statement
from t2s.graph.build import (
    GraphParts,
    In,
    Out,
    count_up,
    index,
    local,
    loop,
    put,
    rule,
    space,
    when,
    write,
)
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.nodes import Rule
from t2s.reduction.circuits import LANE, STEP
from t2s.sparse_repr.representation.hardware.product import ELEMENT, WORD, Product, ProductOperand
from t2s.sparse_repr.representation.hardware.wires import (
    ArrayDraft,
    ProductMachine,
    RegisterFile,
    Statements,
    link,
    wire,
)

HOP = "hop"
"""The space dimension of the relay of lines."""


def place_number(product: Product) -> Expr:
    """The number of a multiplier among those of all machines."""
    if product.block == 1:
        return index(LANE)
    return simplify(index(LANE) * product.block + index(ELEMENT))


def input_tensor(
    parts: GraphParts, product: Product, name: str, type: Type, shape: tuple[int, ...]
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


def operand_tensor(
    parts: GraphParts, operand: ProductOperand, shape: tuple[int, ...], role: TensorRole
) -> None:
    """Declare a dense operand or the result, padded to at least one element in memory."""
    parts.tensors.append(
        Tensor(
            name=operand.name,
            type=operand.type,
            shape=shape,
            padded=None if all(shape) else tuple(max(1, extent) for extent in shape),
            role=role,
            location=operand.location,
        )
    )


def load_slots(
    parts: GraphParts,
    product: Product,
    tensor: str,
    type: Type,
    node: str,
    sink: str,
    to: Out,
) -> None:
    """A load unit and a wire for each multiplier: one element per step."""
    at = simplify(index(STEP) * product.block + (index(ELEMENT) if product.block > 1 else 0))
    positions = product.steps * product.block
    input_tensor(parts, product, tensor, type, (product.machines, positions))
    location = product.nodes.matrix_loader.location
    unit = ArrayDraft(node, Role.LOAD, product.places, (loop(STEP, product.steps),), location)
    unit.send(to, unit.load("loaded", tensor, (index(LANE), at), type))
    parts.nodes.append(unit.node())
    link(parts, to, node, sink, product.places, capacity=32 + product.slack)


def load_vector(parts: GraphParts, product: Product) -> tuple[Out, ...]:
    """Load the dense operand, several words per cycle; returns the wires of the words of a line.

    The wires lead to the relay of lines.
    """
    loader, words, type = product.nodes.vector_loader, product.vector_words, product.vector.type
    at = simplify(index("line") * words + index(WORD))
    subscripts = (at,) if product.flat else flat_subscripts(at, product.width)
    operand_tensor(parts, product.vector, product.vector_shape, TensorRole.INPUT)
    unit = ArrayDraft(
        loader.name, Role.LOAD, (space(WORD, words),), (loop("line", product.vector_lines),),
        loader.location,
    )  # fmt: skip
    exists = at < product.columns * product.width
    loaded = unit.load("loaded", product.vector.name, subscripts, type, exists)
    wires = tuple(wire(f"{loader.name}_word_{word}", type) for word in range(words))
    for word, out in enumerate(wires):
        unit.send(out, loaded, equals(index(WORD), word) if words > 1 else None)
    parts.nodes.append(unit.node())
    return wires


def flat_subscripts(at: Expr, width: int) -> tuple[Expr, ...]:
    """The two subscripts of a flat position."""
    return simplify(at // width), simplify(at % width)


def relay_to_feeders(
    parts: GraphParts, product: Product, lines: tuple[Out, ...]
) -> tuple[Out, ...]:
    """Relay lines from the loader to the first feeder, and from each feeder to the next.

    Returns the wires that bring a feeder the words of a line.
    """
    count, feeder = product.multipliers, product.nodes.vector_feeder.name
    outs = tuple(wire(f"{feeder}_word_{word}", each.type) for word, each in enumerate(lines))

    def sends(body: Statements, words: tuple[Expr, ...]) -> None:
        for out, word in zip(outs, words, strict=True):
            body.send(out, word)

    for out in outs:
        link(
            parts, out, f"{feeder}_relay", feeder, (space(HOP, count),),
            sink_at=(place_number(product),),
        )  # fmt: skip
    relay_lines(parts, product, lines, count, sends)
    return outs


def relay_lines(
    parts: GraphParts,
    product: Product,
    lines: tuple[Out, ...],
    count: int,
    sends: Callable[[Statements, tuple[Expr, ...]], None],
) -> None:
    """Relay lines over ``count`` hops; ``sends`` adds the sends of each hop, given the words."""
    loader, feeder = product.nodes.vector_loader.name, product.nodes.vector_feeder
    relay, hop = f"{feeder.name}_relay", index(HOP)
    unit = ArrayDraft(
        relay, Role.RELAY, (space(HOP, count),), (loop("line", product.vector_lines),),
        feeder.location,
    )  # fmt: skip
    words: list[Expr] = []
    for word, source in enumerate(lines):
        on = wire(f"{relay}_word_{word}", source.type)
        value: Expr = unit.receive(source, f"first_{word}", equals(hop, 0))
        if count > 1:
            before = unit.receive(on, f"before_{word}", const(0) < hop)
            value = select(equals(hop, 0), value, before)
        words.append(unit.let(f"word_{word}", value))
        if count > 1:
            unit.send(on, words[word], hop < count - 1)
        link(parts, source, loader, relay)
        if count > 1:
            before_this = (hop - 1,)
            link(parts, on, relay, relay, (space(HOP, count - 1),), sink_at=before_this)
    sends(unit, tuple(words))
    parts.nodes.append(unit.node())


def feed_vector(parts: GraphParts, product: Product, words: tuple[Out, ...]) -> None:
    """The feeders: each stores the whole dense operand, and sends the requested elements.

    A feeder first takes all lines; then, for every column index, it sends the elements of that row
    of the operand.  A negative index is padding: it gets the first row, marked invalid.
    """
    feeder, type = product.nodes.vector_feeder, product.vector.type
    machine = ProductMachine(feeder.name, Role.RELAY, product.places, feeder.location)
    heads = [machine.input(each, f"word_{word}") for word, each in enumerate(words)]
    place = machine.input(product.places_wire, "place")
    line, count = machine.register("line"), machine.register("count")
    words_file = machine.file("kept", type, (product.vector_lines * len(words),))
    side = machine.register("side") if product.width > 1 else None
    fill(machine, line, words_file, heads, product.vector_lines, "send")
    _sending(machine, product, place, words_file, count, side)
    parts.nodes.append(machine.machine())
    give_to_multipliers(parts, product)


def fill(
    machine: ProductMachine,
    line: Local,
    words: RegisterFile,
    heads: list[In],
    lines: int,
    after: str,
) -> None:
    """Add the mode in which a machine stores the words of arriving lines in the file ``words``."""
    body: list[Statement] = [
        words.write(head.value, simplify(line * len(heads) + word))
        for word, head in enumerate(heads)
    ]
    body.append(count_up(line))
    machine.mode(
        "fill",
        when(unequal(line, lines - 1), rule("keep", "fill", takes=heads, body=body)),
        when(None, rule("keep the last", after, takes=heads, body=body)),
        needs=heads,
    )


def give_to_multipliers(parts: GraphParts, product: Product) -> None:
    """The wires from the feeders to the multipliers."""
    feeder, multiplier = product.nodes.vector_feeder.name, product.nodes.multiplier.name
    link(parts, product.vector_wire, feeder, multiplier, product.places, capacity=4)
    if product.padded:
        link(parts, product.valid_wire, feeder, multiplier, product.places, capacity=4)


def _sending(
    machine: ProductMachine,
    product: Product,
    place: In,
    words: RegisterFile,
    count: Local,
    side: Local | None,
) -> None:
    """Add the mode in which a feeder sends the requested elements, for all right-hand sides."""
    width = product.width
    row = select(place.value < 0, 0, place.value)
    at = simplify(row * width + (0 if side is None else side))
    read = words.read("found", at)
    puts = [put(product.vector_wire, local("found", words.type))]
    if product.padded:
        puts.append(put(product.valid_wire, const(-1) < place.value))

    def sends(name: str, last_side: bool, following: str | None) -> Rule:
        body: list[Statement] = [read, count_up(count)]
        if side is not None:
            body.append(write(side, const(0)) if last_side else count_up(side))
        takes = [place] if last_side else []
        return rule(name, following, takes=takes, puts=puts, body=body)

    choices = []
    if side is not None:
        choices.append(when(unequal(side, width - 1), sends("send", False, "send")))
    more = unequal(count, product.steps * width - 1)
    choices.append(when(more, sends("send and go on", True, "send")))
    choices.append(when(None, sends("send the last", True, None)))
    machine.mode("send", *choices, needs=[place])
