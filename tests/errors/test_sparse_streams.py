"""Blocks connected wrongly, and streams that do not fit each other: the text of each error."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from t2s.core.errors import T2SError, UserError
from t2s.core.ops import Op
from t2s.core.types import INT32, UInt
from t2s.graph.graph import StreamKind, Tensor
from t2s.graph.semantics import ProtocolError
from t2s.simulator.run import simulate
from t2s.sparse_repr.blocks.repeats import Repeat
from t2s.sparse_repr.streams import Stream, Streams
from tests.errors.refusal import refused
from tests.sparse_repr.harness import FLOAT, Bench


def test_a_stream_of_another_depth() -> None:
    s = Streams("wrong")
    crd, ref = s.scan_dense(s.root(), 4)
    inner, _ = s.scan_dense(ref, 4)
    with refused(
        """
        the input 'ref' of 'locate' cannot take that stream
          --> s.place(scanner, "locate", {"ref": inner})
          expected: a stream of int32, nested 1 deep, of 'wrong'
          given:    a stream of int32, nested 3 deep, from 'scan_2'
        """
    ):
        from t2s.sparse_repr.blocks.scanners import DenseScanner

        scanner = DenseScanner(size=4).block([s.root().type], None)
        s.place(scanner, "locate", {"ref": inner})
    assert crd.nesting == 2


def test_a_block_with_too_few_streams() -> None:
    s = Streams("few")
    with refused(
        """
        a block Repeat does not take 1 streams
          --> s.put(Repeat(), "repeat", s.root())
          expected: the streams coordinates, repeated
        """
    ):
        s.put(Repeat(), "repeat", s.root())


def test_a_stream_of_another_graph() -> None:
    one, two = Streams("one"), Streams("two")
    with refused(
        """
        the input 'ref' of 'scan' cannot take that stream
          --> two.scan_dense(one.root(), 4)
          expected: a stream of int32, nested 1 deep, of 'two'
          given:    a stream of 'one'
        """
    ):
        two.scan_dense(one.root(), 4)


def test_a_join_of_one_side() -> None:
    s = Streams("join")
    crd, ref = s.scan_dense(s.root(), 4)
    with refused(
        """
        'intersect' joins one side
          --> s.intersect((crd, ref))
          expected: 2 sides or more, each with its coordinates
          given:    1, of 2 streams
        """
    ):
        s.intersect((crd, ref))


def test_a_reduction_of_too_few_levels() -> None:
    s = Streams("reduce")
    crd, ref = s.scan_dense(s.root(), 4)
    with refused(
        """
        'reduce' has nothing to reduce
          --> s.reduce_points([crd], ref)
          expected: at least one coordinate, and values nested 3 deep or more
          given:    1 coordinates, values nested 2 deep
        """
    ):
        s.reduce_points([crd], ref)


def test_a_tensor_twice() -> None:
    s = Streams("twice")
    s.tensor("values", INT32)  # first
    with refused(
        """
        the tensor 'values' is declared twice
          --> s.tensor("values", FLOAT)  # second
          expected: a name of its own for each tensor
          given:    'values'
          note:     the first 'values' is declared here
          --> s.tensor("values", INT32)  # first
        """
    ):
        s.tensor("values", FLOAT)  # second


def test_stops_that_do_not_match_at_a_join() -> None:
    bench = Bench()
    s = bench.streams
    left = bench.play([0, "S0", 1, "S1", "D"], nesting=3)
    right = bench.play([0, "S1", "D"], nesting=3)
    crd, _ = s.intersect((left, left), (right, right))  # rows and one row
    bench.record("crd", crd)
    with refused(
        """
        'intersect' met tokens that it cannot take
          --> crd, _ = s.intersect((left, left), (right, right))  # rows and one row
          expected: on all sides fibers of coordinates that end with the same stops, each coordinate
                    with one token beside it
          given:    play_out_to_intersect_crd0: S0, play_out_to_intersect_in0_0: S0,
                    play_2_out_to_intersect_crd1: S1, play_2_out_to_intersect_in1_0: S1
          hint:     look at the streams that are joined here: they have to have the same shape
        """,
        ProtocolError,
    ):
        bench.run()


@pytest.mark.parametrize("timed", [True, False])
def test_operands_of_different_lengths(timed: bool) -> None:
    bench = Bench()
    one = bench.play([1, 2, "S0", "D"], FLOAT, StreamKind.VALUE)
    two = bench.play([1, "S0", "D"], FLOAT, StreamKind.VALUE)
    total = bench.streams.compute(Op.ADD, one, two)  # two and one
    bench.record("total", total)
    with refused(
        """
        'compute' met tokens that it cannot take
          --> total = bench.streams.compute(Op.ADD, one, two)  # two and one
          expected: operands of one shape
          given:    play_out_to_compute_in0: 2.0, play_2_out_to_compute_in1: S0
          hint:     look at the streams that are joined here: they have to have the same shape
        """,
        ProtocolError,
    ):
        bench.run(timed=timed)


def test_arrays_that_do_not_fit_each_other() -> None:
    s = Streams("scan")
    pos, crd = s.tensor("pos", INT32), s.tensor("crd", INT32)
    out, _ = s.scan_compressed(s.root(), pos, crd)  # too few coordinates
    s.write_singleton(out, s.output("found", INT32))
    inputs = {"pos": np.array([0, 3], np.int32), "crd": np.array([0, 1], np.int32)}
    with refused(
        """
        'scan' loads outside of 'crd'
          --> out, _ = s.scan_compressed(s.root(), pos, crd)  # too few coordinates
          expected: an index from 0 to 1 in dimension 0
          given:    2 in mode 'run'
          note:     'crd' is declared here
          --> pos, crd = s.tensor("pos", INT32), s.tensor("crd", INT32)
          hint:     the arrays of a tensor have to fit each other
        """,
        ProtocolError,
    ):
        simulate(s.graph(), inputs, engine="python")


def test_a_stream_that_nobody_ends() -> None:
    """A player without a D runs out of its array."""
    bench = Bench()
    bench.record("seen", bench.play([0, "S0"]))
    with pytest.raises(UserError, match="'play' loads outside of 'in0_tags'"):
        bench.run()


def test_numbers_that_are_too_small() -> None:
    s = Streams("small")
    with refused("""
        the size of a dense level must be an integer of at least 0
          --> s.scan_dense(s.root(), -1)
          given:    -1
    """):
        s.scan_dense(s.root(), -1)
    crd, _ = s.scan_dense(s.root(), 4)
    with refused("""
        the factor of a split must be an integer of at least 1
          --> s.split(crd, 0)
          given:    0
    """):
        s.split(crd, 0)
    with refused("""
        the factor of flattened levels must be an integer of at least 0
          --> s.flatten(crd, crd, -4)
          given:    -4
    """):
        s.flatten(crd, crd, -4)
    with refused("""
        the number of lanes must be an integer of at least 1
          --> s.parallelize([crd], 0)
          given:    0
    """):
        s.parallelize([crd], 0)
    with refused("""
        the number of items in a turn must be an integer of at least 1
          --> s.parallelize([crd], 2, run=0)
          given:    0
    """):
        s.parallelize([crd], 2, run=0)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_a_coordinate_beyond_a_bitvector(engine: str) -> None:
    s = Streams("beyond")
    crd, _ = s.scan_compressed(s.root(), s.tensor("pos", INT32), s.tensor("crd", INT32))
    bits, _ = s.bits_of(crd, UInt(64), 70)
    s.write_bitvector(bits, s.output("bits", UInt(64)), s.output("ranks", INT32))
    inputs = {"pos": np.array([0, 2], np.int32), "crd": np.array([3, 100], np.int32)}
    with refused(
        """
        'bits' met tokens that it cannot take
          --> bits, _ = s.bits_of(crd, UInt(64), 70)
          expected: increasing coordinates below 70, stops or D
          given:    scan_crd_to_bits_crd: 100
          hint:     look at the streams that are joined here: they have to have the same shape
        """,
        ProtocolError,
    ):
        simulate(s.graph(), inputs, engine=engine)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("skipping", [False, True])
def test_coordinates_out_of_order(engine: str, skipping: bool) -> None:
    s = Streams("unsorted")
    sides = [(s.tensor(f"{n}_pos", INT32), s.tensor(f"{n}_crd", INT32)) for n in "BC"]
    outer, _ = s.scan_dense(s.root(), 2)
    if skipping:
        crd, _ = s.intersect_skipping(*((outer, *side) for side in sides))
    else:
        crd, _ = s.union(*([s.scan_compressed(outer, *side)[0]] for side in sides))
    s.write_singleton(crd, s.output("X", INT32))
    graph = s.graph()
    positions = np.array([0, 2, 4], np.int32)
    inputs = {"B_pos": positions, "B_crd": np.array([3, 5, 1, 2], np.int32), "C_pos": positions}
    simulate(graph, {**inputs, "C_crd": np.array([3, 5, 2, 9], np.int32)}, engine=engine)
    with refused(
        """
        the coordinates 'C_crd' are not in order
          --> sides = [(s.tensor(f"{n}_pos", INT32), s.tensor(f"{n}_crd", INT32)) for n in "BC"]
          expected: coordinates that increase inside of each fiber
          given:    2 behind 2, at position 3 in fiber 1 of 'C_pos'
          hint:     sort the coordinates, and add up entries that occur twice
        """
    ):
        simulate(graph, {**inputs, "C_crd": np.array([3, 5, 2, 2], np.int32)}, engine=engine)


def _stream() -> tuple[Streams, Stream, Stream, Tensor]:
    s = Streams("wrong")
    crd, ref = s.scan_dense(s.root(), np.int64(4))
    return s, crd, ref, s.tensor("vals", FLOAT)


def test_arguments_of_another_kind() -> None:
    s, crd, ref, _ = _stream()
    with refused(
        """
        Streams.load takes something else as ref
          --> s.load(3, 3)
          expected: a Stream
          given:    3
        """
    ):
        s.load(3, 3)
    with refused(
        """
        Streams.intersect takes something else as sides
          --> s.intersect((crd, ref), [3])
          expected: a list, of each a Stream
          given:    [3]
        """
    ):
        s.intersect((crd, ref), [3])
    with refused(
        """
        Streams.compute takes something else as function
          --> s.compute(3, crd)
          expected: a function or an Op
          given:    3
        """
    ):
        s.compute(3, crd)
    with refused(
        """
        a function does not give what it has to
          --> s.compute(lambda a: 3, crd)
          expected: an Expr
          given:    3
        """
    ):
        s.compute(lambda a: 3, crd)
    with refused(
        """
        'compute' has nothing to compute with
          --> s.compute(Op.ADD)
          expected: one stream or more
        """
    ):
        s.compute(Op.ADD)


ODD = (None, True, -1, 1 << 70, 1.5, "x", b"x", (), [None], {}, object(), np.zeros(3), len, INT32)


@pytest.mark.slow
def test_no_argument_of_any_method_is_a_raw_exception() -> None:
    """Every public method, with each argument replaced by each of a few odd things."""
    for name in sorted(vars(Streams)):
        method = getattr(Streams, name)
        if name.startswith("_") or not callable(method):
            continue
        count = method.__wrapped__.__code__.co_argcount - 1
        for odd in ODD:
            s, crd, ref, values = _stream()
            likely = [crd, ref, values, values, values]
            for at in range(count):
                given = [likely[min(n, 4)] if n != at else odd for n in range(count)]
                with suppress(T2SError):
                    getattr(s, name)(*given)


def test_integers_of_numpy_are_integers() -> None:
    s = Streams("numpy", capacity=np.int64(8), latency=np.uint8(2))
    crd, _ = s.scan_dense(s.root(), np.int16(4))
    s.write_values(crd, s.output("out", INT32, (np.int64(4),)))
    graph = s.graph()
    assert {type(channel.capacity) for channel in graph.channels} == {int}
    assert simulate(graph, {}).outputs["out"].tolist() == [0, 1, 2, 3]
