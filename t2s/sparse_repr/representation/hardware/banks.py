"""The dense operand once on the chip, its elements dealt to banks in turn.

Element ``j`` is in bank ``j % banks``.  The column indices of a step pass the banks one after the
other, each with the element that was found for it.  A bank looks up the elements that it has, as
many in a cycle as its memory has ports, and passes the step on when all are found: where more of a
step's columns are in one bank, that is a conflict, and a cycle more for each further pair.  Steps
wait between the banks, so that conflicts of different banks fall together.

Which columns of a step are whose depends on their values alone, so no arbiter looks at time.
"""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.construct import (
    Parts,
    add,
    both,
    either,
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
from t2s.graph.graph import StreamKind
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role, SpaceDimension
from t2s.reduction.circuits import STEP
from t2s.sparse_repr.representation.hardware.loaders import (
    give_to_multipliers,
    place_number,
    places,
    relay_lines,
)
from t2s.sparse_repr.representation.hardware.product import Product

PORTS = 2
"""Elements that a bank looks up in a cycle: block RAM has two ports."""

WAITING = 8
"""Steps that may wait in front of a bank."""

BANK, HOP = "bank", "hop"


def load_banks(parts: Parts, product: Product, loader: str, relay: str) -> None:
    """From the loader to the banks: each takes its own elements from the lines that pass."""
    words, banks, type = product.vector_words, product.banks, product.vector.type
    node = _bank(product)
    sends: list[Statement] = []
    groups = max(1, banks // words)  # lines until it is a bank's turn again
    for number in range(_words_at_once(product)):
        value: Expr = local("word_0", type)
        for word in range(1, min(banks, words)):
            here = equal(remainder(index(HOP), words), word)
            value = select(here, local(f"word_{number * banks + word}", type), value)
        if number:
            value = select(
                equal(remainder(index(HOP), words), 0),
                local(f"word_{number * banks}", type),
                value,
            )
        turn = equal(remainder(index("line"), groups), quotient(index(HOP), words))
        sends.append(
            Send(
                channel=f"{node}_word_{number}",
                value=value,
                condition=turn if groups > 1 else None,
            )
        )
        parts.link(
            f"{node}_word_{number}", type, relay, node,
            shape=(banks,), source_index=(index(HOP),), sink_index=(index(BANK),),
        )  # fmt: skip
    relay_lines(parts, product, loader, relay, banks, tuple(sends))


def look_up(parts: Parts, product: Product, places_channel: str) -> None:
    """From the column indices of all multipliers to their elements of the dense operand."""
    _ask(parts, product, places_channel)
    _pass_on(parts, product)
    _banks(parts, product)
    _give(parts, product)


def _bank(product: Product) -> str:
    assert product.bank_firings is not None
    return product.bank_firings[0]


def _hops(product: Product) -> str:
    return f"{product.nodes.vector_feeder.name}_hops"


def _words_at_once(product: Product) -> int:
    return max(1, product.vector_words // product.banks)


def _ask(parts: Parts, product: Product, places_channel: str) -> None:
    """The column index of each multiplier, to a channel of its own."""
    node, hops = product.place_taker, _hops(product)
    body: list[Statement] = [Receive(target="place", channel=places_channel, type=INT32)]
    for number in range(product.multipliers):
        here = equal(place_number(product), number) if product.multipliers > 1 else None
        body.append(Send(channel=f"{node}_{number}", value=local("place"), condition=here))
        parts.link(f"{node}_{number}", INT32, node, hops, kind=StreamKind.COORDINATE)
    _array(parts, product, node, tuple(body), places(product))


def _pass_on(parts: Parts, product: Product) -> None:
    """The ways between the banks: to the first one, from each to the next, and to the end."""
    node, bank, feeder = _hops(product), _bank(product), product.nodes.vector_feeder.name
    asking, type, banks = product.place_taker, product.vector.type, product.banks
    first, last = equal(index(HOP), 0), equal(index(HOP), banks)
    behind, ahead = less(0, index(HOP)), less(index(HOP), banks)
    body: list[Statement] = []
    for number in range(product.multipliers):
        asked, came = local(f"asked_{number}"), local(f"came_{number}")
        found = local(f"found_{number}", type)
        body += [
            Receive(target=asked.name, channel=f"{asking}_{number}", type=INT32, condition=first),
            Receive(
                target=came.name, channel=f"{bank}_place_{number}", type=INT32, condition=behind
            ),
            Receive(
                target=found.name, channel=f"{bank}_found_{number}", type=type, condition=behind
            ),
            Let(target=f"place_{number}", value=select(first, asked, came)),
            Let(target=f"value_{number}", value=select(first, zero(type), found)),
        ]
        for what, sent in (("place", INT32), ("value", type)):
            value = local(f"{what}_{number}", sent)
            body.append(Send(channel=f"{node}_{what}_{number}", value=value, condition=ahead))
            passed = f"{feeder}_passed_{what}_{number}"
            body.append(Send(channel=passed, value=value, condition=last))
            parts.link(
                f"{node}_{what}_{number}", sent, node, bank, shape=(banks,), capacity=WAITING,
                source_index=(index(HOP),), sink_index=(index(BANK),),
            )  # fmt: skip
            parts.link(passed, sent, node, feeder)
        for what, sent in (("place", INT32), ("found", type)):
            parts.link(
                f"{bank}_{what}_{number}", sent, bank, node, shape=(banks,),
                source_index=(index(BANK),), sink_index=(subtract(index(HOP), 1),),
            )  # fmt: skip
    _array(parts, product, node, tuple(body), (space(HOP, banks + 1),))


def _banks(parts: Parts, product: Product) -> None:
    """The banks: machines that are filled, and then look up what is theirs of every step."""
    node, type, count = _bank(product), product.vector.type, product.multipliers
    words = _words_at_once(product)
    lines = product.bank_lines
    heads = [Head(channel=f"{node}_word_{n}", value=f"word_{n}") for n in range(words)]
    for number in range(count):
        for what in ("place", "value"):
            channel = f"{_hops(product)}_{what}_{number}"
            heads.append(Head(channel=channel, value=f"{what}_{number}"))
    parts.nodes.append(
        Machine(
            name=node,
            role=Role.RELAY,
            space=(space(BANK, product.banks),),
            heads=tuple(heads),
            registers=(
                register("line"),
                register("count"),
                register("served"),
                register("kept", type, (lines * words,)),
                register("got", type, (count,)),
            ),
            modes=(_fill(product, lines, words), _serve(product)),
            location=product.nodes.vector_feeder.location,
        )
    )


def _fill(product: Product, lines: int, words: int) -> Mode:
    """Keep the elements of this bank, as they come."""
    channels = tuple(f"{_bank(product)}_word_{number}" for number in range(words))
    body: list[Statement] = [
        RegisterWrite(
            register="kept",
            indices=(add(times(local("line"), words), number),),
            value=local(f"word_{number}", product.vector.type),
        )
        for number in range(words)
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
                inside=Rule(name="keep the last", body=tuple(body), takes=channels, next="serve")
            ),
        ),
    )


def _serve(product: Product) -> Mode:
    """Look up the next elements of this step that are here; with the last ones it leaves."""
    count, type, node = product.multipliers, product.vector.type, _bank(product)
    channels = tuple(
        f"{_hops(product)}_{what}_{number}"
        for number in range(count)
        for what in ("place", "value")
    )
    body = _found(product)
    reads = range(PORTS)
    keep = [
        RegisterWrite(
            register="got",
            indices=(local(f"who_{port}"),),
            value=local(f"read_{port}", type),
        )
        for port in reads
    ]
    puts: list[Put] = []
    for number in range(count):
        got, value = local(f"got_{number}", type), local(f"value_{number}", type)
        found = select(local(f"mine_{number}", BOOL), got, value)
        for port in reads:
            here = both(local(f"any_{port}", BOOL), equal(local(f"who_{port}"), number))
            found = select(here, local(f"read_{port}", type), found)
        puts.append(Put(channel=f"{node}_place_{number}", value=local(f"place_{number}")))
        puts.append(Put(channel=f"{node}_found_{number}", value=found))
    conflict = Rule(
        name="a conflict",
        body=(*keep, RegisterWrite(register="served", indices=(), value=local("following"))),
        next="serve",
    )
    reset = RegisterWrite(register="served", indices=(), value=const(0))
    counted = RegisterWrite(register="count", indices=(), value=add(local("count"), 1))
    step = Rule(
        name="a step", body=(reset, counted), takes=channels, puts=tuple(puts), next="serve"
    )
    last = Rule(name="the last step", takes=channels, puts=tuple(puts))
    more = unequal(local("count"), product.steps - 1)
    return Mode(
        name="serve",
        needs=channels,
        choices=(
            Choice(
                body=tuple(body),
                inside=(
                    Choice(when=local("conflict", BOOL), inside=conflict),
                    Choice(when=more, inside=step),
                    Choice(inside=last),
                ),
            ),
        ),
    )


def _found(product: Product) -> list[Statement]:
    """Which columns of the step are of this bank, and those that the ports look up now.

    ``mine_<n>``: column n is of this bank; ``who_<p>``: the column of port p, if ``any_<p>``.
    """
    count, banks, type = product.multipliers, product.banks, product.vector.type
    body: list[Statement] = []
    for number in range(count):
        here = local(f"place_{number}")
        mine = both(less(-1, here), equal(both(here, const(banks - 1)), index(BANK)))
        body.append(Let(target=f"mine_{number}", value=mine))
        waits = both(local(f"mine_{number}", BOOL), less(local("served"), number + 1))
        body.append(Let(target=f"waits_{number}_0", value=waits))
        body.append(
            RegisterRead(
                target=f"got_{number}", register="got", indices=(const(number),), type=type
            )
        )
    for port in range(PORTS):
        who: Expr = const(0)
        at: Expr = const(0)
        found: Expr = const(False, BOOL)
        for number in reversed(range(count)):
            waits = local(f"waits_{number}_{port}", BOOL)
            who = select(waits, number, who)
            at = select(waits, local(f"place_{number}"), at)
            found = either(waits, found)
        body.append(Let(target=f"who_{port}", value=who))
        body.append(Let(target=f"any_{port}", value=found))
        row = quotient(at, banks)
        body.append(RegisterRead(target=f"read_{port}", register="kept", indices=(row,), type=type))
        for number in range(count):
            later = less(local(f"who_{port}"), number)
            waits = both(local(f"waits_{number}_{port}", BOOL), later)
            body.append(Let(target=f"waits_{number}_{port + 1}", value=waits))
    left: Expr = const(False, BOOL)
    for number in range(count):
        left = either(left, local(f"waits_{number}_{PORTS}", BOOL))
    body.append(Let(target="conflict", value=left))
    body.append(Let(target="following", value=add(local(f"who_{PORTS - 1}"), 1)))
    return body


def _give(parts: Parts, product: Product) -> None:
    """What was found, to each multiplier."""
    feeder, type = product.nodes.vector_feeder, product.vector.type
    body: list[Statement] = []
    values: dict[str, Expr] = {"place": const(0), "value": zero(type)}
    for number in range(product.multipliers):
        here = equal(place_number(product), number) if product.multipliers > 1 else None
        for what, sent in (("place", INT32), ("value", type)):
            name = f"{what}_{number}"
            body.append(
                Receive(
                    target=name, channel=f"{feeder.name}_passed_{name}", type=sent, condition=here
                )
            )
            came = local(name, sent)
            values[what] = came if here is None else select(here, came, values[what])
    sink = product.nodes.multiplier.name
    body.append(Send(channel=f"{sink}_vector", value=values["value"]))
    if product.padded:
        body.append(Send(channel=f"{sink}_valid", value=less(-1, values["place"])))
    _array(parts, product, feeder.name, tuple(body), places(product))
    give_to_multipliers(parts, product)


def _array(
    parts: Parts,
    product: Product,
    name: str,
    body: tuple[Statement, ...],
    where: tuple[SpaceDimension, ...],
) -> None:
    parts.nodes.append(
        PEArray(
            name=name,
            role=Role.RELAY,
            space=where,
            loops=(loop(STEP, product.steps),),
            body=body,
            location=product.nodes.vector_feeder.location,
        )
    )
