"""What the CGRA does not do: the user's node and line, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import t2s
from t2s import Float, Func, Int, UInt
from t2s.backends.cgra_tia.fabric import EXTENDED_CORE
from t2s.backends.cgra_tia.lower import lower_to_netlist, unsupported
from t2s.core.errors import UnsupportedError
from t2s.graph.graph import Graph
from tests.backends.cgra import refused_designs
from tests.backends.cgra.designs import DOUBLE, gemm
from tests.backends.cgra.refused_designs import mapped
from tests.backends.designs import serial_feeder

VECTORS = "it computes with vectors, and words of this CGRA are scalars: drop vload, unroll instead"
TYPES = (
    "words of this CGRA are float64, and int64 and int32: declare the inputs with Float(64) or "
    "Int(64)"
)
HOST = "and no cell can: compute that on the host"
SHIFTS = "and no cell divides: only powers of two, as shifts, can be used"
FEWER = "give it fewer operands, or fewer conditions on loops"

OF_USERS: dict[str, tuple[Callable[[], Func], str, str]] = {
    "vectors": (refused_designs.vectors, "node 'y_load_x'", VECTORS),
    "float32": (
        lambda: mapped(lambda x, i: x[i] + 1.0, type=Float(32)),
        "node 'y_load_x'",
        f"it computes with float32; {TYPES}",
    ),
    "uint8": (
        lambda: mapped(lambda x, i: x[i] + 1, type=UInt(8)),
        "node 'y_load_x'",
        f"it computes with uint8; {TYPES}",
    ),
    "bool": (
        lambda: mapped(lambda x, i: x[i] > 0.0),
        "array 'y'",
        "it is of bool, and words of this CGRA are float64, int64 and int32",
    ),
    "quotient": (
        lambda: mapped(lambda x, i: 1.0 / x[i]),
        "node 'y'",
        f"it computes a quotient, {HOST}",
    ),
    "square root": (
        lambda: mapped(lambda x, i: t2s.sqrt(x[i])),
        "node 'y'",
        f"it computes a square root, {HOST}",
    ),
    "reciprocal square root": (
        lambda: mapped(lambda x, i: t2s.rsqrt(x[i])),
        "node 'y'",
        f"it computes a reciprocal square root, {HOST}",
    ),
    "exp": (lambda: mapped(lambda x, i: t2s.exp(x[i])), "node 'y'", f"it computes exp, {HOST}"),
    "log": (lambda: mapped(lambda x, i: t2s.log(x[i])), "node 'y'", f"it computes log, {HOST}"),
    "tanh": (lambda: mapped(lambda x, i: t2s.tanh(x[i])), "node 'y'", f"it computes tanh, {HOST}"),
    "floor": (
        lambda: mapped(lambda x, i: t2s.floor(x[i])),
        "node 'y'",
        f"it computes floor, {HOST}",
    ),
    "ceil": (lambda: mapped(lambda x, i: t2s.ceil(x[i])), "node 'y'", f"it computes ceil, {HOST}"),
    "a third": (
        lambda: mapped(lambda x, i: x[i] // 3, type=Int(64)),
        "node 'y'",
        f"it computes // of data, {SHIFTS}",
    ),
    "rest": (
        lambda: mapped(lambda x, i: x[i] % x[i], type=Int(64)),
        "node 'y'",
        f"it computes % of data, {SHIFTS}",
    ),
    "a guard by a parameter": (
        refused_designs.guarded_by_a_parameter,
        "node 'y_load_x'",
        "what it does depends on the parameter 'n', and the stream units have fixed nests: give "
        "its value when you lower the design",
    ),
    "memory in between": (
        refused_designs.through_memory,
        "node 'second_load_first'",
        "it loads 'first', which the design stores, and a stream unit does not wait for another "
        "one: take the values through a channel (stream)",
    ),
    "addresses": (
        refused_designs.halves,
        "node 'y_load_x'",
        "its accesses to 'x' are not those of a nest of 8 loops with an affine address: let the "
        "host order the array (Place.HOST)",
    ),
    "many iterations": (
        refused_designs.long_sum,
        "node 'y'",
        "what it does depends on the loops 'i', 'k', which have more than 8,388,608 iterations "
        "together: use smaller tiles",
    ),
    "many constants": (
        lambda: mapped(lambda x, i: x[i] + t2s.cast(DOUBLE, i), 300),
        "node 'y'",
        "its iterations fall into 300 classes, and tags select among 16: what it does depends on "
        "loops in too many ways",
    ),
    "17 actions": (
        lambda: mapped(lambda x, i: x[i] + t2s.cast(DOUBLE, i), 17),
        "node 'y'",
        "the cell of its 'add' would need 17 different actions, selected by tags, and a "
        f"cell has 16: {FEWER}",
    ),
    "9 constants": (
        lambda: mapped(lambda x, i: x[i] + t2s.cast(DOUBLE, i + 1), 9),
        "node 'y'",
        f"the cell of its 'add' would need 9 registers, and a cell has 8: {FEWER}",
    ),
    "18 instructions": (
        lambda: mapped(
            lambda x, i: t2s.select(
                x[i] > t2s.cast(DOUBLE, i + 1), x[i] + 1.0, t2s.cast(DOUBLE, i + 1)
            ),
            6,
        ),
        "node 'y'",
        f"the cell of its 'pick' would need 18 instructions, and a cell has 16: {FEWER}",
    ),
    "9 inputs": (
        lambda: refused_designs.one_of(8),
        "node 'y'",
        f"the cell of its 'mov' would need 9 input channels, and a cell has 8: {FEWER}",
    ),
    "no pattern": (
        lambda: mapped(lambda x, i: t2s.select(i * i % 7 < 3, x[i], -x[i]), 401),
        "node 'y'",
        "what it does changes 229 times in 401 iterations, without a pattern of at most 64 "
        "stretches",
    ),
}

BY_HAND: dict[str, tuple[Callable[[], Graph], str, str]] = {
    "9 outputs": (
        lambda: serial_feeder(9),
        "node 'feeder'",
        f"the cell of its 'mov' would need 9 output channels, and a cell has 8: {FEWER}",
    ),
    "two elements": (
        refused_designs.two_elements,
        "node 'middle'",
        "several elements of 'kept' are read in one firing; a file of registers becomes a ring of "
        "tokens, of which one passes in a cycle",
    ),
    "taken twice": (
        refused_designs.taken_twice,
        "node 'middle'",
        "one firing takes two tokens from x_in, and a cell moves one token of a channel in a cycle",
    ),
    "sent twice": (
        refused_designs.sent_twice,
        "node 'middle'",
        "one firing sends two tokens to y_out, and a cell moves one token of a channel in a cycle",
    ),
    "a length that nobody knows": (
        refused_designs.unknown_length,
        "node 'middle'",
        "the bounds of loop 'i' are not known, and stream units have fixed nests: give parameters "
        "their values when you lower the design",
    ),
    "an open array": (
        refused_designs.open_array,
        "array 'y'",
        "its length is known only when the design runs, and stream units have fixed nests",
    ),
    "nothing sent": (
        refused_designs.never_sent,
        "channel 'y_out'",
        "nothing puts tokens into it",
    ),
    "on the chip": (
        refused_designs.on_the_chip,
        "node 'x_load'",
        "'x' is an array on the chip, and cells have none",
    ),
}


@pytest.mark.parametrize("name", OF_USERS)
def test_a_design_is_refused_with_the_users_node_and_line(name: str) -> None:
    make, subject, why = OF_USERS[name]
    first = unsupported(t2s.lower(make()))[0]
    assert (first.subject, first.why) == (subject, why)
    assert first.location is not None
    assert Path(first.location.file).parent == Path(__file__).parent


@pytest.mark.parametrize("name", BY_HAND)
def test_a_graph_is_refused_with_its_node(name: str) -> None:
    make, subject, why = BY_HAND[name]
    (only,) = unsupported(make())
    assert (only.subject, only.why) == (subject, why)


def test_the_largest_operator_has_as_many_checks_as_there_are() -> None:
    """Three operands and a tag."""
    netlist = lower_to_netlist(t2s.lower(refused_designs.chosen_of_four()))
    checks = [
        len(instruction.trigger.checks)
        for cell in netlist.cells
        for instruction in cell.program.instructions
    ]
    assert max(checks) == EXTENDED_CORE.checks == 4


def test_all_that_is_refused_is_said_at_once() -> None:
    problems = unsupported(t2s.lower(mapped(lambda x, i: t2s.exp(x[i]), type=Float(32))))
    assert [problem.subject for problem in problems] == [
        "node 'y_load_x'",
        "node 'y'",
        "node 'y_store'",
    ]


def test_lowering_raises_the_first_with_the_others_as_notes() -> None:
    graph = t2s.lower(mapped(lambda x, i: x[i] + 1.0, type=Float(32)))
    with pytest.raises(UnsupportedError) as caught:
        lower_to_netlist(graph)
    text = str(caught.value)
    head = "the cgra_tia backend cannot emit 'y': node 'y_load_x': it computes with float32"
    assert f"{head}; {TYPES}" in text
    assert "note:     node 'y_store'" in text


def test_what_is_supported_has_no_problems() -> None:
    assert unsupported(gemm(buffered=True).lower()) == []
