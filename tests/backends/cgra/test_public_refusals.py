"""What has no form in the public tools' machine: each refusal by its text, with the user's line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var, triggered
from t2s.errors import UnsupportedError
from t2s.graph.graph import Graph
from tests.backends.cgra import refused_designs
from tests.backends.cgra.element_graph import lift_array
from tests.backends.cgra.public_designs import (
    dot_product,
    elementwise,
    gathered_product,
    matrix_product,
)
from tests.graph import machines
from tests.sampling import sampled

Shape = tuple[int, int] | None


def floats() -> Func:
    return elementwise(lambda a, b, i: a + b, 8, Float(64))


def bytes_() -> Func:
    return elementwise(lambda a, b, i: a + b, 8, Int(8))


def scalar() -> Func:
    p = Param(Int(32), name="p")
    return elementwise(lambda a, b, i: a * p + b, 8)


def quotient() -> Func:
    return elementwise(lambda a, b, i: a // b, 8)


def rest() -> Func:
    return elementwise(lambda a, b, i: a % 10 + b, 8)


def nothing() -> Func:
    i, y = Var("i"), Func("y")
    y[i] = i * 2
    return y.bound(i, 0, 4)


def many_kinds() -> Func:
    return elementwise(lambda a, b, i: a + b + i, 100)


def no_pattern() -> Func:
    return elementwise(lambda a, b, i: a + b + t2s.minimum(i, 5), 20)


def stores() -> Func:
    A, i, ii, y = ImageParam(Int(32), 1, name="A"), Var("i"), Var("ii"), Func("y")
    y[i] = A[i] + 1
    return y.bound(i, 0, 8).split(i, i, ii, 2).unroll(ii)


def circle() -> Func:
    A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
    i, k, kk, y = Var("i"), RDom(0, 8, name="k"), Var("kk"), Func("y")
    y[i] = 0
    y[i] += A[i, k] * x[k]
    return y.bound(i, 0, 4).split(k, k, kk, 2).reorder(kk, k, i).unroll(kk)


def vectors() -> Func:
    A, i, ii, y = ImageParam(Int(32), 1, name="A"), Var("i"), Var("ii"), Func("y")
    y[i] = A[i] + 1
    return y.bound(i, 0, 8).split(i, i, ii, 4).vload(A).vstore(y)


REFUSALS: list[tuple[Callable[[], Func], Shape, str]] = [
    (floats, (1, 2), "it computes with float64, and words of the public core are int32 and uint32"),
    (bytes_, (1, 2), "it computes with int8, and words of the public core are int32 and uint32"),
    (scalar, (1, 2), "node 'y': it computes with 'p', a scalar that is given when the design runs"),
    (quotient, (1, 2), "node 'y': it computes '//' of data, other than by a power of two"),
    (rest, (1, 2), "node 'y': it computes '%' of data, other than by a power of two"),
    (nothing, (1, 2), "node 'y': its PEs take nothing, and each firing of the public core waits"),
    (many_kinds, (1, 2), "node 'y': its firings are of 100 kinds, and a PE of the public core"),
    (
        no_pattern,
        (1, 2),
        "node 'y': its firings are of 6 kinds, and tags of 'y_load_a_to_y' tell 3 apart, and they "
        "come in no pattern of at most 12: let what it does depend on fewer loops, or make them "
        "smaller",
    ),
    (
        stores,
        (1, 2),
        "node 'y_store': the design has 2 streams of stores (y), and an array of 1 x 2 PEs has 1 "
        "such port: let PEs hand on their results (isolate_consumer_chain and gather)",
    ),
    (
        lambda: gathered_product(12, 8, 3),
        (2, 2),
        "node 'y_load_A': the design has 3 streams of loads (A, x and A), and an array of 2 x 2 "
        "PEs has 2 such ports: load in fewer PEs and hand operands on (isolate_producer_chain and "
        "forward), or take more columns",
    ),
    (
        circle,
        (1, 4),
        "node 'y': streams form a cycle through its PEs and others (y[0], y[1]), and tags "
        "are passed on from the memory: use t2s.cgra.place, whose stream units send tags",
    ),
    (
        lambda: gathered_product(12, 8, 2),
        (1, 4),
        "the design 'y': no arrangement has a wire for each of its 7 streams: take a larger array, "
        "or forward operands",
    ),
    (
        lambda: matrix_product(2, 8, 5),
        (4, 4),
        "the design 'C': in every arrangement that was tried a PE would need 17 instructions (",
    ),
    (
        lambda: elementwise(lambda a, b, i: a + b, 10),
        None,
        "the design 'y': in every arrangement that was tried a PE would need ",
    ),
]


@sampled(
    ("design", "shape", "text"),
    REFUSALS,
    quick=5,
    ids=[text[:60] for _, _, text in REFUSALS],
)
def test_refusals(design: Callable[[], Func], shape: Shape, text: str) -> None:
    rows, columns = shape or (None, None)
    with pytest.raises(UnsupportedError) as caught:
        triggered.compile(design(), rows=rows, columns=columns)
    message = str(caught.value)
    assert message.startswith("the cgra_tia (profile A) backend cannot emit '")
    assert text in message
    assert "designs.py:" in message or "refusals.py:" in message


GRAPHS: list[tuple[Callable[[], Graph], str]] = [
    (
        machines.copying,
        "its control depends on data, and only PEs with static control are supported here",
    ),
    (refused_designs.taken_twice, "node 'middle': one firing takes two tokens from 'x_in'"),
    (refused_designs.sent_twice, "node 'middle': one firing sends two tokens to 'y_out'"),
    (
        refused_designs.never_sent,
        "channel 'y_store.y': 0 tokens are sent to it, and 8 are taken from it",
    ),
    (
        refused_designs.on_the_chip,
        "node 'x_load': 'x' is on the chip, and ports lead to arrays in the memory",
    ),
    (
        refused_designs.two_elements,
        "the design 'by_hand': in every arrangement that was tried a PE would need 17 instructions "
        "(middle), and it has 16: take a larger array, fewer PEs or kinds of firings, or loops "
        "whose bounds divide",
    ),
]


@pytest.mark.parametrize(("graph", "text"), GRAPHS, ids=[text[:50] for _, text in GRAPHS])
def test_graphs_that_are_refused(graph: Callable[[], Graph], text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        triggered.compile(graph(), rows=1, columns=2)
    assert text in str(caught.value)


def test_arrays_that_are_stored_and_loaded_are_refused() -> None:
    x, first, second = ImageParam(Int(32), 1, name="x"), Func("first"), Func("second")
    i, k = Var("i"), RDom(0, 3, name="k")
    first[i] = 0
    first[i] += x[i + k]
    second[i] = first[i] * 2
    with pytest.raises(UnsupportedError) as caught:
        triggered.compile(second.bound(i, 0, 4), rows=1, columns=2)
    assert (
        "it loads 'first', which the design stores, and ports do not wait for one another: take "
        "the values through a channel (stream)"
    ) in str(caught.value)


def test_their_graphs_are_refused_with_the_line_of_the_text() -> None:
    program = triggered.compile(dot_product(4), rows=1, columns=2).program
    with pytest.raises(t2s.errors.UserError, match="what fires depends on timing"):
        lift_array(program.programs, program.core, shape=(1, 2), memory_words=16)


def test_vectors_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="words of the public core are scalars: drop vload"):
        triggered.compile(vectors(), rows=1, columns=2)


def test_both_sizes_of_an_array_are_given() -> None:
    with pytest.raises(t2s.errors.UserError, match="columns must be a positive integer"):
        triggered.compile(dot_product(4), rows=2)


def test_inputs_are_those_of_the_design() -> None:
    found = triggered.compile(dot_product(4), rows=1, columns=2)
    with pytest.raises(t2s.errors.UserError, match="the input b is missing"):
        found.run({"a": np.arange(4, dtype=np.int32)})
