"""A single on-chip copy of the dense operand, with elements interleaved over banks.

Element ``j`` is in bank ``j % banks``.  The column indices of a step pass through the banks in
order, each with the element found for it so far.  A bank looks up its own elements, as many per
cycle as its memory has ports, and passes the step on when all are found.  More columns of a step in
one bank are a conflict, which costs a cycle for each further pair.  Queues between the banks let
conflicts of different banks overlap.

The bank of a column depends on its value only, so results do not depend on arbitration.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr, Local, const, equals, select, simplify, unequal, zero
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Role, SpaceDimension, Statement
from t2s.graph.build import (
    GraphParts,
    In,
    Out,
    count_up,
    index,
    loop,
    put,
    rule,
    space,
    when,
    write,
)
from t2s.graph.graph import StreamKind
from t2s.graph.nodes import Put
from t2s.reduction.circuits import STEP
from t2s.sparse_repr.representation.hardware.loaders import (
    HOP,
    fill,
    give_to_multipliers,
    place_number,
    relay_lines,
)
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.wires import (
    ArrayDraft,
    ProductMachine,
    RegisterFile,
    Statements,
    link,
    wire,
)

PORTS = 2
"""Elements that a bank looks up in a cycle: block RAM has two ports."""

WAITING = 8
"""Steps that may wait in front of a bank."""

BANK = "bank"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """The wires that carry a multiplier's column index, and the element found so far, to the
    next node.
    """

    place: Out
    found: Out


def load_banks(parts: GraphParts, product: Product, lines: tuple[Out, ...]) -> tuple[Out, ...]:
    """From the loader to the banks: each bank picks its own elements from the passing lines.

    Returns the wires that bring a bank its words of a line.
    """
    words, banks, type = len(lines), product.banks, product.vector.type
    groups = max(1, banks // words)  # lines from one turn of a bank to its next
    outs = tuple(wire(f"{_bank(product)}_word_{n}", type) for n in range(max(1, words // banks)))

    def sends(body: Statements, words_of_line: tuple[Expr, ...]) -> None:
        at = simplify(index(HOP) % words)
        for number, out in enumerate(outs):
            value = words_of_line[0]
            for word in range(1, min(banks, words)):
                value = select(equals(at, word), words_of_line[number * banks + word], value)
            if number:
                value = select(equals(at, 0), words_of_line[number * banks], value)
            turn = equals(simplify(index("line") % groups), simplify(index(HOP) // words))
            body.send(out, value, turn if groups > 1 else None)

    relay = f"{product.nodes.vector_feeder.name}_relay"
    for out in outs:
        over = (space(HOP, banks),)
        link(parts, out, relay, _bank(product), over, sink_at=(index(BANK),))
    relay_lines(parts, product, lines, banks, sends)
    return outs


def look_up(parts: GraphParts, product: Product, words: tuple[Out, ...]) -> None:
    """Map the column indices of all multipliers to elements of the dense operand."""
    node, hops, feeder = _bank(product), _hops(product), product.nodes.vector_feeder.name
    asking, numbers = product.place_taker, range(product.multipliers)
    asked = [wire(f"{asking}_{n}", INT32, StreamKind.COORDINATE) for n in numbers]
    to_banks = [_column(f"{hops}_place_{n}", f"{hops}_value_{n}", product) for n in numbers]
    back = [_column(f"{node}_place_{n}", f"{node}_found_{n}", product) for n in numbers]
    passed = [
        _column(f"{feeder}_passed_place_{n}", f"{feeder}_passed_value_{n}", product)
        for n in numbers
    ]
    _ask(parts, product, asked)
    _pass_on(parts, product, asked, to_banks, back, passed)
    _banks(parts, product, words, to_banks, back)
    _give(parts, product, passed)


def _column(place: str, value: str, product: Product) -> _Column:
    return _Column(place=wire(place), found=wire(value, product.vector.type))


def _bank(product: Product) -> str:
    assert product.bank_firings is not None
    return product.bank_firings[0]


def _hops(product: Product) -> str:
    return f"{product.nodes.vector_feeder.name}_hops"


def _array(product: Product, name: str, where: tuple[SpaceDimension, ...]) -> ArrayDraft:
    location = product.nodes.vector_feeder.location
    return ArrayDraft(name, Role.RELAY, where, (loop(STEP, product.steps),), location)


def _ask(parts: GraphParts, product: Product, asked: list[Out]) -> None:
    """The column index of each multiplier, to a wire of its own."""
    node = product.place_taker
    unit = _array(product, node, product.places)
    place = unit.receive(product.places_wire, "place")
    for number, out in enumerate(asked):
        unit.send(out, place, equals(place_number(product), number) if len(asked) > 1 else None)
        link(parts, out, node, _hops(product))
    parts.nodes.append(unit.node())


def _pass_on(
    parts: GraphParts,
    product: Product,
    asked: list[Out],
    to_banks: list[_Column],
    back: list[_Column],
    passed: list[_Column],
) -> None:
    """The connections between banks: to the first, from each to the next, and out of the last."""
    node, bank, feeder = _hops(product), _bank(product), product.nodes.vector_feeder.name
    banks, hop, type = product.banks, index(HOP), product.vector.type
    first, last, behind, ahead = equals(hop, 0), equals(hop, banks), const(0) < hop, hop < banks
    unit = _array(product, node, (space(HOP, banks + 1),))
    for number in range(product.multipliers):
        new = unit.receive(asked[number], f"asked_{number}", first)
        came = unit.receive(back[number].place, f"came_{number}", behind)
        answer = unit.receive(back[number].found, f"found_{number}", behind)
        place = unit.let(f"place_{number}", select(first, new, came))
        value = unit.let(f"value_{number}", select(first, zero(type), answer))
        for sent, on, end in (
            (place, to_banks[number].place, passed[number].place),
            (value, to_banks[number].found, passed[number].found),
        ):
            unit.send(on, sent, ahead)
            unit.send(end, sent, last)
            link(
                parts, on, node, bank, (space(HOP, banks),), sink_at=(index(BANK),),
                capacity=WAITING,
            )  # fmt: skip
            link(parts, end, node, feeder)
        for out in (back[number].place, back[number].found):
            link(parts, out, bank, node, (space(BANK, banks),), sink_at=(hop - 1,))
    parts.nodes.append(unit.node())


def _banks(
    parts: GraphParts,
    product: Product,
    words: tuple[Out, ...],
    asked: list[_Column],
    answers: list[_Column],
) -> None:
    """The banks: machines that are filled, then look up their own elements in every step."""
    type, location = product.vector.type, product.nodes.vector_feeder.location
    machine = ProductMachine(_bank(product), Role.RELAY, (space(BANK, product.banks),), location)
    line_words = [machine.input(each, f"word_{n}") for n, each in enumerate(words)]
    columns: list[In] = []
    for number, each in enumerate(asked):
        columns.append(machine.input(each.place, f"place_{number}"))
        columns.append(machine.input(each.found, f"value_{number}"))
    line, count, served = (machine.register(name) for name in ("line", "count", "served"))
    words_file = machine.file("kept", type, (product.bank_lines * len(words),))
    got = machine.file("got", type, (product.multipliers,))
    fill(machine, line, words_file, line_words, product.bank_lines, "serve")
    search = _BankSearch(product, columns, words_file, got, served)
    _serve(machine, product, search, answers, count)
    parts.nodes.append(machine.machine())


class _BankSearch:
    """The lookup of a firing: the columns in this bank, and those that the ports read now.

    Attributes
    ----------
    mine: whether a column is in this bank; ``got`` is the element found in an earlier firing.
    ports: for each port, the multiplier it serves, whether it serves any, and the element read.
    conflict, following: whether columns remain, and the first one that may.
    """

    def __init__(
        self,
        product: Product,
        columns: list[In],
        words: RegisterFile,
        got: RegisterFile,
        served: Local,
    ) -> None:
        self.places, self.values = columns[::2], columns[1::2]
        self.keep, self.served, self.body = got, served, Statements()
        self.mine: list[Local] = []
        self.got: list[Local] = []
        waits: list[Local] = []
        for number, place in enumerate(self.places):
            in_bank = equals(place.value & (product.banks - 1), index(BANK))
            self.mine.append(self.body.let(f"mine_{number}", (const(-1) < place.value) & in_bank))
            later = self.mine[number] & (served < number + 1)
            waits.append(self.body.let(f"waits_{number}_0", later))
            self.got.append(self.body.read(got, f"got_{number}", const(number)))
        self.ports: list[tuple[Local, Local, Local]] = []
        for port in range(PORTS):
            waits = self._look_up(port, waits, words, product.banks)
        conflict: Expr = const(False, BOOL)
        for each in waits:
            conflict = conflict | each
        self.conflict = self.body.let("conflict", conflict)
        self.following = self.body.let("following", self.ports[-1][0] + 1)

    def _look_up(
        self, port: int, waits: list[Local], words: RegisterFile, banks: int
    ) -> list[Local]:
        """Assign the first waiting column to a port; returns which columns wait after it."""
        first: Expr = const(0)
        at: Expr = const(0)
        any_waits: Expr = const(False, BOOL)
        for number in reversed(range(len(waits))):
            first = select(waits[number], number, first)
            at = select(waits[number], self.places[number].value, at)
            any_waits = waits[number] | any_waits
        who = self.body.let(f"who_{port}", first)
        any_column = self.body.let(f"any_{port}", any_waits)
        read = self.body.read(words, f"read_{port}", simplify(at // banks))
        self.ports.append((who, any_column, read))
        return [
            self.body.let(f"waits_{number}_{port + 1}", each & (who < number))
            for number, each in enumerate(waits)
        ]

    def value(self, number: int) -> Expr:
        """The element of a column as known after this bank."""
        value = select(self.mine[number], self.got[number], self.values[number].value)
        for who, any_column, read in self.ports:
            value = select(any_column & equals(who, number), read, value)
        return value


def _serve(
    machine: ProductMachine,
    product: Product,
    search: _BankSearch,
    answers: list[_Column],
    count: Local,
) -> None:
    """Look up the next elements of this step; pass the step on with the last ones."""
    heads = [head for pair in zip(search.places, search.values, strict=True) for head in pair]
    puts: list[Put] = []
    for number, answer in enumerate(answers):
        puts.append(put(answer.place, search.places[number].value))
        puts.append(put(answer.found, search.value(number)))
    keep: list[Statement] = [search.keep.write(read, who) for who, _, read in search.ports]
    keep.append(write(search.served, search.following))
    counted = [write(search.served, const(0)), count_up(count)]
    inside = (
        when(search.conflict, rule("a conflict", "serve", body=keep)),
        when(
            unequal(count, product.steps - 1),
            rule("a step", "serve", takes=heads, puts=puts, body=counted),
        ),
        when(None, rule("the last step", None, takes=heads, puts=puts)),
    )
    machine.mode("serve", when(None, inside, body=search.body.statements), needs=heads)


def _give(parts: GraphParts, product: Product, passed: list[_Column]) -> None:
    """Send the found elements to the multipliers."""
    feeder = product.nodes.vector_feeder
    unit = _array(product, feeder.name, product.places)
    place: Expr = const(0)
    value: Expr = zero(product.vector.type)
    for number, each in enumerate(passed):
        mine = equals(place_number(product), number) if len(passed) > 1 else None
        came = unit.receive(each.place, f"place_{number}", mine)
        answer = unit.receive(each.found, f"value_{number}", mine)
        place = came if mine is None else select(mine, came, place)
        value = answer if mine is None else select(mine, answer, value)
    unit.send(product.vector_wire, value)
    if product.padded:
        unit.send(product.valid_wire, const(-1) < place)
    parts.nodes.append(unit.node())
    give_to_multipliers(parts, product)
