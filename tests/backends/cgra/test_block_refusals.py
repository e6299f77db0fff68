"""Blocks that are not cells: the block, the user's line, what is needed and there, what to try."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

import t2s
from t2s import sparse
from t2s.backends.cgra_tia.lower import unsupported
from t2s.core.expr import Expr, Local, Parameter, const
from t2s.core.types import INT32, Float
from t2s.graph.body import Register, RegisterRead, RegisterWrite, SpaceDimension
from t2s.graph.graph import Graph, ScalarParameter, StreamKind
from t2s.graph.nodes import Choice, Machine, Mode, Put, Rule
from t2s.sparse import Schedule, Streams, Tensor, coo, csf, csr, dense, make_format
from tests.backends.cgra.sparse_kernels import COLUMN, COMPRESSED, INNER, ROW, product, whole
from tests.graph import machines
from tests.sampling import sampled

WORDS = "words of this CGRA are float64, int64 and int32"


def of(design: Any, **inputs: Any) -> Graph:
    return t2s.lower(design, inputs)


def sorted_memory() -> Graph:
    A, B, C = Tensor("A", csr), Tensor("B", dense(2)), Tensor("C", dense(2))
    C[ROW, COLUMN] = A[ROW, INNER] * B[INNER, COLUMN]
    return of(C, A=whole(1, 4, 5), B=whole(2, 5, 3))


def searching() -> Graph:
    return of(product(coo(2)), A=whole(1, 4, 5), x=whole(2, 5))


def many_sides(count: int) -> Graph:
    tensors = [Tensor(f"a{number}", COMPRESSED) for number in range(count)]
    y = Tensor("y", COMPRESSED)
    value = tensors[0][ROW]
    for tensor in tensors[1:]:
        value = value * tensor[ROW]
    y[ROW] = value
    return of(y, **{f"a{number}": whole(number, 9) for number in range(count)})


def five_operands() -> Graph:
    s = Streams("five")
    _, ref = s.scan_dense(s.root(), 4)
    values = [s.load(ref, s.tensor(name, Float(64))) for name in "abcde"]
    s.write_values(s.compute(lambda *found: total(found), *values), s.output("y", Float(64)))
    return s.graph()


def total(values: Sequence[Expr]) -> Expr:
    return reduce(lambda one, other: one + other, values)


def short_floats() -> Graph:
    inputs = {"A": whole(1, 4, 5).astype(np.float32), "x": whole(2, 5).astype(np.float32)}
    return of(product(), **inputs)


def vectors() -> Graph:
    s = Streams("lanes")
    _, ref = s.scan_dense(s.root(), 4)
    s.write_values(s.load(ref, s.tensor("a", Float(64)), lanes=2), s.output("y", Float(64)))
    return s.graph()


def quotient() -> Graph:
    a, b, c = Tensor("a", COMPRESSED), Tensor("b", dense(1)), Tensor("c", dense(1))
    c[ROW] = a[ROW] / b[ROW]
    return of(c, a=whole(1, 5), b=whole(2, 5, density=1))


def played() -> Graph:
    s = Streams("played")
    values, tags = s.tensor("values", Float(64)), s.tensor("tags", INT32)
    stream = s.play(values, tags, StreamKind.VALUE, 1)
    s.write_values(stream, s.output("y", Float(64)))
    return s.graph()


def many_levels() -> Graph:
    A, y = Tensor("A", csf(7)), Tensor("y", sparse.scalar)
    indices = t2s.variables("a b c d e f g")
    y[()] = A[indices]
    return of(y, A=whole(1, 2, 2, 2, 2, 2, 2, 2))


def linked_lists() -> Graph:
    s = Streams("lists")
    i, ref = s.scan_dense(s.root(), 4)
    crd, _ = s.scan_compressed(ref, s.tensor("pos", INT32), s.tensor("crd", INT32))
    arrays = [s.output(name, INT32) for name in ("heads", "stored", "followers", "tails")]
    s.write_linked_list(crd, s.counted(i), arrays)
    return s.graph()


def scale(value: Expr) -> Expr:
    return value * Parameter(name="factor", type=Float(64))


def with_parameter() -> Graph:
    factor = ScalarParameter(name="factor", type=Float(64))
    s = Streams("scaled", parameters=[factor])
    _, ref = s.scan_dense(s.root(), 4)
    values = s.load(ref, s.tensor("a", Float(64)))
    scaled = s.compute(scale, values)
    s.write_values(scaled, s.output("y", Float(64)))
    return s.graph()


def copying(change: Callable[[Machine], Machine]) -> Graph:
    """A graph by hand, its second machine changed."""
    graph = machines.copying()
    source, sink = graph.machines
    return replace(graph, nodes=(source, change(sink)))


def with_register(register: Register) -> Graph:
    return copying(lambda m: replace(m, registers=(*m.registers, register)))


def channel_array() -> Graph:
    graph = machines.copying()
    index = (const(0),)
    (channel,) = graph.channels
    wide = replace(channel, shape=(1,), source_index=index, sink_index=index)
    return replace(graph, channels=(wide,))


def with_rule(**changes: Any) -> Graph:
    """The source puts another token, or does something else, in its first mode."""
    graph = machines.copying()
    source, sink = graph.machines
    mode = source.modes[0]
    rule = Rule(name="only", next=mode.name, **changes)
    changed = replace(
        source,
        registers=(*source.registers, Register(name="r", type=INT32, shape=(), distance=1)),
        modes=(Mode(name=mode.name, needs=(), choices=(Choice(inside=rule),)),),
    )
    return replace(graph, nodes=(changed, sink))


def high_stop() -> Graph:
    return with_rule(puts=(Put(channel="xs", tag=const(14, INT32)),))


def read_after_write() -> Graph:
    register = Local(name="r", type=INT32)
    return with_rule(
        body=(
            RegisterWrite(register="r", indices=(), value=const(1, INT32)),
            RegisterRead(target="now", register="r", indices=(), type=INT32),
            RegisterWrite(register="r", indices=(), value=register),
        )
    )


def counting() -> Graph:
    """A tag that counts: more states than predicates number."""
    graph = machines.copying()
    source, sink = graph.machines
    count = Local(name="count", type=INT32)
    one = count + 1
    rule = Rule(
        name="only",
        body=(RegisterWrite(register="count", indices=(), value=one),),
        puts=(Put(channel="xs", tag=count * 0),),
        next="count",
    )
    changed = replace(
        source,
        registers=(Register(name="count", type=INT32, shape=(), distance=1),),
        modes=(Mode(name="count", needs=(), choices=(Choice(inside=rule),)),),
    )
    return replace(graph, nodes=(changed, sink))


def mixed() -> Graph:
    from tests.backends.cgra.designs import gemm

    dense_graph, blocks = gemm().lower(), machines.copying()
    return replace(
        dense_graph,
        nodes=(*dense_graph.nodes, *blocks.nodes),
        channels=(*dense_graph.channels, *blocks.channels),
        tensors=(*dense_graph.tensors, *blocks.tensors),
    )


REFUSED: dict[str, tuple[Callable[[], Graph], str, str]] = {
    "sorted memory": (
        sorted_memory,
        "block 'reduce_k'",
        "it keeps the points 'points' in a sorted memory, and cells have none: order the loops so "
        "that the sum is the innermost one (reorder)",
    ),
    "search": (
        searching,
        "block 'scan_A_i'",
        "it searches in 'A_crd0', and stream units read at addresses: store that operand dense, "
        "or let both sides be scanned and intersected",
    ),
    "three sides": (
        lambda: many_sides(3),
        "block 'intersect_i'",
        "its cell would need 26 instructions (a cell has 16): use fewer levels, fewer operands in "
        "one block, or a format whose coordinates are dense",
    ),
    "five operands": (
        five_operands,
        "block 'compute'",
        "it waits for 5 streams at once, and an instruction checks 4: split it, as a union of many "
        "sides into several of two",
    ),
    "10 heads": (
        lambda: many_sides(5),
        "block 'intersect_i'",
        "it looks at 10 streams, and a cell has 8 inputs: split it, as an intersection of many "
        "sides into several of two",
    ),
    "float32": (
        short_floats,
        "block 'load_A'",
        f'it has a stream of float32, and {WORDS}: use type="float64" or type="int64"',
    ),
    "bits": (
        lambda: of(product(make_format("db")), A=whole(1, 4, 5), x=whole(2, 5)),
        "block 'scan_A_j'",
        f"it has a stream of uint64, and {WORDS}: store levels of bits (b, t) compressed (s), and "
        'values as type="int64"',
    ),
    "vectors": (
        vectors,
        "block 'load'",
        "it has a stream of float64x2, and words of this CGRA are scalars: drop vectorize",
    ),
    "quotient": (
        quotient,
        "block 'divide'",
        "it computes a quotient, and no cell can: compute that on the host",
    ),
    "played": (
        played,
        "block 'play'",
        "a tag depends on values in its rule 'done', and instructions put tags that are fixed: "
        "streams that are played (play) and recorded have such tags",
    ),
    "seven levels": (
        many_levels,
        "block 'reduce_g'",
        "its cell would need 18 instructions (a cell has 16): use fewer levels, fewer operands in "
        "one block, or a format whose coordinates are dense",
    ),
    "linked lists": (
        linked_lists,
        "block 'write'",
        "it reads fibers of the open tensor 'tails' while it writes them, and stream units do not "
        "wait for one another: write a compressed level (write_compressed) instead",
    ),
    "parameter": (
        with_parameter,
        "block 'compute'",
        "it uses the parameter 'factor', and only PEs take scalars: give it as a number, or as a "
        "dense tensor of one element",
    ),
    "register file": (
        lambda: with_register(Register(name="file", type=INT32, shape=(30,), distance=1)),
        "block 'sink'",
        "it has a register file 'file' of [30], and a cell has 8 registers: leave out what needs "
        "it (a window, lanes)",
    ),
    "array of machines": (
        lambda: copying(
            lambda m: replace(m, space=(SpaceDimension(name="p", minimum=0, extent=3),))
        ),
        "block 'sink'",
        "it is an array of 3 machines, and one machine becomes cells: put the blocks one by one",
    ),
    "channel array": (
        channel_array,
        "block 'source'",
        "its channel 'xs' is an array of [1], and nets of blocks are single: put the blocks one by "
        "one",
    ),
    "stop of level 13": (
        high_stop,
        "block 'source'",
        "it puts the stop of level 13, and tags tell stops of levels 0 to 12 apart: use fewer "
        "levels",
    ),
    "written and read": (
        read_after_write,
        "block 'source'",
        "its statement RegisterRead has no instruction: use blocks of streams that t2s has",
    ),
    "many states": (
        counting,
        "block 'source'",
        "its modes and flags are more than 128 states, and 7 predicates number 128: use smaller "
        "extents, or fewer levels",
    ),
    "mixed": (
        mixed,
        "node 'A_loader'",
        "it is a PE array beside the block 'source', and a design is made of PE arrays or of "
        "sparse blocks: place the two one by one, and run one after the other",
    ),
}

OF_USERS = (
    "sorted memory",
    "search",
    "three sides",
    "float32",
    "quotient",
    "seven levels",
    "played",
)


@sampled("name", REFUSED, quick=7)
def test_a_block_is_refused(name: str) -> None:
    make, subject, why = REFUSED[name]
    first = unsupported(make())[0]
    assert (first.subject, first.why) == (subject, why)


@sampled("name", OF_USERS, quick=2)
def test_it_is_refused_at_the_users_line(name: str) -> None:
    first = unsupported(REFUSED[name][0]())[0]
    assert first.location is not None
    assert Path(first.location.file).name == Path(__file__).name or "sparse_kernels" in str(
        first.location.file
    )


def test_all_blocks_are_named_at_once() -> None:
    subjects = [problem.subject for problem in unsupported(sorted_memory())]
    assert subjects == ["block 'reduce_k'", "block 'reduce_k_2'"]


def test_a_reordered_product_has_no_sorted_memory() -> None:
    """What the hint says works."""
    A, B, C = Tensor("A", csr), Tensor("B", dense(2)), Tensor("C", dense(2))
    C[ROW, COLUMN] = A[ROW, INNER] * B[INNER, COLUMN]
    kernel = sparse.compile(C, Schedule().reorder(ROW, COLUMN, INNER))
    assert unsupported(of(kernel, A=whole(1, 4, 5), B=whole(2, 5, 3))) == []


def test_what_two_sides_hold_is_no_problem() -> None:
    assert unsupported(many_sides(2)) == []


def test_many_sides_are_joined_two_by_two_when_they_are_placed() -> None:
    """What a graph may not have index notation may: ``place`` takes joins apart."""
    a, b, c, y = (Tensor(name, COMPRESSED) for name in "abcy")
    y[ROW] = a[ROW] * b[ROW] * c[ROW]
    inputs = {name: whole(at, 9) for at, name in enumerate("abc")}
    assert unsupported(of(y, **inputs))
    placed = t2s.cgra.place(y, inputs)
    assert placed.unplaced is not None
    joins = [machine.name for machine in placed.unplaced.machines if "intersect" in machine.name]
    assert len(joins) == 2
