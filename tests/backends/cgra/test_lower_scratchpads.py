"""Register files that are read in any order: cells with scratchpads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from t2s.backends.cgra_tia.fabric import FABRICS
from t2s.backends.cgra_tia.files import read_files, write_files
from t2s.backends.cgra_tia.lower import lower_to_netlist, unsupported
from t2s.backends.cgra_tia.netlist import CellKind, unplaced
from t2s.backends.cgra_tia.place import place_netlist
from t2s.backends.cgra_tia.program import Opcode
from t2s.core.expr import Expr, Select, const, equals
from t2s.core.types import INT32, Type
from t2s.graph.body import Receive, Register, RegisterRead, RegisterWrite, Role, Send
from t2s.graph.graph import Graph
from tests.backends.builders import (
    channel,
    graph,
    load,
    local,
    node,
    store,
    tensor,
)
from tests.backends.cgra.designs import DOUBLE
from tests.backends.cgra.lowering import agrees
from tests.backends.cgra.refused_designs import by_hand
from tests.backends.cgra.test_lift_placed import OPEN, same
from tests.hand_graphs import index, loop
from tests.sampling import sampled

Order = Callable[[Expr], Expr]


def shuffled(read: Order, words: int, rounds: int = 2, type: Type = INT32) -> Graph:
    """Blocks of words, each of which is written whole and then read in another order."""
    b, i = index("b"), index("i")
    loops = (loop("b", rounds), loop("i", 2 * words))
    outside = (loop("b", rounds), loop("i", words))
    flat = b * words + i
    first, second = i < words, i >= words
    kept = Register(name="kept", type=type, shape=(words,), distance=1)
    body = [
        Receive(target="value", channel="x_in", type=type, condition=first),
        RegisterWrite(register="kept", indices=(i,), value=local("value", type), condition=first),
        RegisterRead(target="old", register="kept", indices=(read(i),), type=type),
        Send(channel="y_out", value=local("old", type), condition=second),
    ]
    return graph(
        "shuffled",
        (
            load("x_load", "x", "x_in", outside, (flat,), element=type),
            node("middle", Role.RELAY, loops, body, registers=[kept]),
            store("y_store", "y", "y_out", outside, (flat,), element=type),
        ),
        (
            channel("x_in", "x_load", "middle", element=type),
            channel("y_out", "middle", "y_store", element=type),
        ),
        (
            tensor("x", words * rounds, element=type),
            tensor("y", words * rounds, element=type, role="output"),
        ),
    )


def in_turn(read: Order, words: int, length: int) -> Graph:
    """Each firing reads an element and then writes one."""
    i = index("i")
    return by_hand(
        [
            Receive(target="value", channel="x_in", type=INT32),
            RegisterRead(target="old", register="kept", indices=(read(i),), type=INT32),
            RegisterWrite(register="kept", indices=(i % words,), value=local("value")),
            Send(channel="y_out", value=local("old")),
        ],
        [Register(name="kept", type=INT32, shape=(words,), distance=1)],
        length,
    )


def backwards(words: int) -> Order:
    return lambda i: words - 1 - i % words


def transposed(i: Expr) -> Expr:
    """Columns of four rows of four."""
    row = i % 16 // 4
    return i % 4 * 4 + row


def first_or_last(i: Expr) -> Expr:
    """One element again and again, and others in between."""
    odd = equals(i % 2, 1)
    return Select(condition=odd, if_true=const(0), if_false=i % 8, type=INT32)


CASES: dict[str, tuple[Order, int, int]] = {
    "backwards": (backwards(8), 8, 1),
    "backwards, and again": (backwards(8), 8, 4),
    "columns": (transposed, 16, 3),
    "every fifth": (lambda i: i * 5 % 16, 16, 3),
    "one of them often": (first_or_last, 8, 3),
}


@pytest.mark.parametrize("type", [INT32, DOUBLE])
@sampled("name", CASES, quick=2)
def test_any_order_gives_the_values_of_the_simulator(name: str, type: Type) -> None:
    read, words, rounds = CASES[name]
    netlist, _ = agrees(shuffled(read, words, rounds, type))
    (cell,) = [cell for cell in netlist.cells if cell.name == "middle.kept"]
    assert {Opcode.LSW, Opcode.SSW} <= {i.opcode for i in cell.program.instructions}
    assert cell.kind is CellKind.CONTROL
    same(unplaced(netlist, OPEN, 2))  # and so does the lifted graph, in as many cycles


@sampled(("words", "length"), [(8, 8), (8, 16), (6, 30)], quick=2)
def test_stores_and_loads_in_turn(words: int, length: int) -> None:
    netlist, _ = agrees(in_turn(backwards(words), words, length))
    same(unplaced(netlist, OPEN, 2))


def test_it_works_in_every_second_cycle() -> None:
    _, run = agrees(shuffled(backwards(32), 32, 20))
    assert run.cells["middle.kept"].busy == 4 * 32 * 20  # two for a store, two for a load
    assert run.cycles == pytest.approx(4 * 32 * 20, rel=0.1)


def test_it_goes_to_files_and_comes_back() -> None:
    design = place_netlist(
        lower_to_netlist(shuffled(transposed, 16, 2, DOUBLE)), FABRICS["cgra8"], moves=0
    )
    again = read_files(write_files(design))
    assert again == design
    found = same(again)
    x = np.arange(32.0)
    assert found.outputs["y"].shape == x.shape


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (
            lambda: shuffled(backwards(600), 600, 1),
            "the elements of 'kept' are read in an order for which 600 of them have to wait in a "
            "scratchpad, and a cell has 512 words: use smaller tiles",
        ),
        (
            lambda: shuffled(lambda i: i * i * 3 % 64, 64, 2),
            "the elements of 'kept' are written and read with 18 different steps from one to the "
            "next, for which a cell would need 20 instructions, and it has 16",
        ),
        (
            lambda: shuffled(lambda i: i * 37 % 96, 96, 4),
            "what it does changes 76 times in 192 iterations, without a pattern of at most 64 "
            "stretches",
        ),
    ],
)
def test_orders_that_no_scratchpad_has(made: Callable[[], Graph], why: str) -> None:
    (only,) = unsupported(made())
    assert only.subject == "node 'middle'"
    assert only.why == why
