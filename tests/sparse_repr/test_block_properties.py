"""Blocks against models of a few lines, on random streams."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.core.ops import Op
from t2s.core.types import UInt
from t2s.sparse_repr.streams import EmptyFiber
from tests.sparse_repr.harness import FLOAT, Bench, streams_of
from tests.sparse_repr.tokens import Tokens

SIZE = 12
FEW = settings(max_examples=12, deadline=None)

fibers = st.lists(st.integers(0, SIZE - 1), max_size=6, unique=True).map(sorted)
lists_of_fibers = st.lists(fibers, min_size=1, max_size=4)
matrices = st.lists(lists_of_fibers, min_size=1, max_size=3)


def tokens_of(nested: Any, depth: int) -> Tokens:
    """Nested lists as tokens: ``depth`` levels; a list that is not the last ends with its stop."""

    def items(value: Any, level: int) -> Tokens:
        if level == 0:
            return list(value)
        found: Tokens = []
        for position, inner in enumerate(value):
            found += items(inner, level - 1)
            if position < len(value) - 1:
                found.append(f"S{level - 1}")
        return found

    found = items(nested, depth - 2)
    return [*found, f"S{depth - 2}", "D"]


def lists_in(tokens: Tokens) -> list[list[Any]]:
    """The innermost lists of a stream."""
    found: list[list[Any]] = [[]]
    for token in tokens[:-1]:
        if isinstance(token, str) and token != "N":
            found.append([])
        else:
            found[-1].append(token)
    return found[:-1]


@FEW
@given(st.lists(lists_of_fibers, min_size=2, max_size=5), st.booleans(), st.booleans())
def test_joins_of_many_sides(sides: list[list[list[int]]], either: bool, timed: bool) -> None:
    count = min(len(side) for side in sides)
    sides = [side[:count] for side in sides]

    def build(b: Bench) -> Any:
        streams = []
        for number, side in enumerate(sides):
            refs = [[100 * number + c for c in fiber] for fiber in side]
            streams.append(
                [b.play(tokens_of(side, 3), nesting=3), b.play(tokens_of(refs, 3), nesting=3)]
            )
        join = b.streams.union if either else b.streams.intersect
        crd, beside = join(*streams)
        return {"crd": crd} | {f"ref{n}": refs[0] for n, refs in enumerate(beside)}

    found = streams_of(build, timed=timed)
    combine = set.union if either else set.intersection
    expected = [sorted(reduce(combine, [set(side[at]) for side in sides])) for at in range(count)]
    assert found["crd"] == tokens_of(expected, 3)
    for number, side in enumerate(sides):
        refs = [
            [100 * number + c if c in side[at] else "N" for c in fiber]
            for at, fiber in enumerate(expected)
        ]
        assert found[f"ref{number}"] == tokens_of(refs, 3)


def test_a_join_of_eight_sides_is_a_tree() -> None:
    sides = [[n, 8] for n in range(8)]

    def build(b: Bench) -> Any:
        streams = [[b.play([*side, "S0", "D"]), b.play([*side, "S0", "D"])] for side in sides]
        crd, beside = b.streams.union(*streams)
        assert len(b.streams.graph().nodes) == 2 * 16 + 2 - 16
        return {"crd": crd, "last": beside[7][0], "first": beside[0][0]}

    found = streams_of(build)
    assert found["crd"] == [0, 1, 2, 3, 4, 5, 6, 7, 8, "S0", "D"]
    assert found["last"] == [*"NNNNNNN", 7, 8, "S0", "D"]
    assert found["first"] == [0, *"NNNNNNN", 8, "S0", "D"]


@FEW
@given(matrices)
def test_written_and_scanned_again(nested: list[list[list[int]]]) -> None:
    rows = [row for matrix in nested for row in matrix]
    tokens = tokens_of(nested, 4)
    writing = Bench()
    crd = writing.play(tokens, nesting=4)
    outputs = {name: writing.streams.output(name, crd.type.element) for name in ("pos", "crd")}
    writing.streams.write_compressed(crd, outputs["pos"], outputs["crd"], empty_fibers=True)
    arrays = writing.run()
    assert arrays["crd"].tolist() == [c for row in rows for c in row]
    assert np.diff(arrays["pos"]).tolist() == [len(row) for row in rows]

    def scan(b: Bench) -> Any:
        refs, number = [], 0
        for matrix in nested:
            refs.append(list(range(number, number + len(matrix))))
            number += len(matrix)
        ref = b.play(tokens_of(refs, 3), nesting=3)
        pos, stored = b.array("pos", arrays["pos"]), b.array("crd", arrays["crd"])
        out_crd, out_ref = b.streams.scan_compressed(ref, pos, stored)
        return {"crd": out_crd, "ref": out_ref}

    found = streams_of(scan)
    assert found["crd"] == tokens
    assert [r for r in found["ref"] if not isinstance(r, str)] == list(range(len(arrays["crd"])))


@FEW
@given(lists_of_fibers)
def test_linked_lists_and_bit_trees_round_trip(fibers_: list[list[int]]) -> None:
    tokens = tokens_of(fibers_, 3)
    refs = [*range(len(fibers_)), "S0", "D"]
    writing = Bench()
    crd = writing.play(tokens, nesting=3)
    parent = writing.streams.repeat(crd, writing.play(refs))
    lists = [writing.streams.output(n, crd.type.element) for n in ("head", "node", "next", "tail")]
    writing.streams.write_linked_list(crd, parent, lists)
    words = [
        (
            writing.streams.output(f"{n}_words", UInt(8)),
            writing.streams.output(f"{n}_ranks", crd.type.element),
        )
        for n in ("top", "leaf")
    ]
    writing.streams.write_bit_tree(crd, 64, *words)
    arrays = writing.run()

    def scan(b: Bench) -> Any:
        heads = np.zeros(len(fibers_), np.int32)
        heads[: len(arrays["head"])] = arrays["head"]
        ref = b.play(refs)
        listed, _ = b.streams.scan_linked_list(
            ref,
            b.array("head", heads),
            b.array("node", arrays["node"]),
            b.array("next", arrays["next"]),
        )
        tree = [
            (
                b.array(f"{n}_words", arrays[f"{n}_words"], UInt(8)),
                b.array(f"{n}_ranks", arrays[f"{n}_ranks"]),
            )
            for n in ("top", "leaf")
        ]
        branched, positions = b.streams.scan_bit_tree(ref, *tree, 1)
        return {"listed": listed, "branched": branched, "positions": positions}

    found = streams_of(scan)
    assert found["listed"] == tokens
    assert found["branched"] == tokens
    count = sum(map(len, fibers_))
    assert [r for r in found["positions"] if not isinstance(r, str)] == list(range(count))


@FEW
@given(matrices, st.integers(1, 2), st.booleans())
def test_point_reducers(nested: list[list[list[int]]], banks: int, timed: bool) -> None:
    values = [[[float(c + 1) for c in row] for row in matrix] for matrix in nested]

    def build(b: Bench) -> Any:
        crd, val = (
            b.play(tokens_of(nested, 4), nesting=4),
            b.play(tokens_of(values, 4), FLOAT, nesting=4),
        )
        (out,), total = b.streams.reduce_points([crd], val, banks=banks)
        return {"crd": out, "val": total}

    sums: list[dict[int, float]] = []
    for matrix in nested:
        sums.append({})
        for c in (c for row in matrix for c in row):
            sums[-1][c] = sums[-1].get(c, 0.0) + c + 1
    found = streams_of(build, timed=timed)
    assert found["crd"] == tokens_of([sorted(points) for points in sums], 3)
    assert found["val"] == tokens_of([[points[c] for c in sorted(points)] for points in sums], 3)


@FEW
@given(st.lists(matrices, min_size=1, max_size=2))
def test_a_reducer_of_three_coordinates_sorts_them(nested: list[Any]) -> None:
    """Everything is one reduction: four levels of lists below one that is summed over."""
    outer = [[list(range(len(matrix))) for matrix in cube] for cube in nested]
    values = [[[[1.0 for _ in row] for row in matrix] for matrix in cube] for cube in nested]

    def build(b: Bench) -> Any:
        top = b.play(tokens_of([list(range(len(cube))) for cube in nested], 3), nesting=3)
        middle = b.play(tokens_of(outer, 4), nesting=4)
        low = b.play(tokens_of(nested, 5), nesting=5)
        val = b.play(tokens_of(values, 5), FLOAT, nesting=5)
        (a, c, d), total = b.streams.reduce_points([top, middle, low], val, Op.ADD)
        return {"a": a, "c": c, "d": d, "total": total}

    points: dict[tuple[int, int, int], float] = {}
    for cube in nested:
        for i, matrix in enumerate(cube):
            for j, row in enumerate(matrix):
                for k in row:
                    points[i, j, k] = points.get((i, j, k), 0.0) + 1
    found = streams_of(build)
    rows = sorted({key[:2] for key in points})
    tops = sorted({key[0] for key in points})
    assert found["a"] == [*tops, "S0", "D"]
    assert [row for row in lists_in(found["c"]) if row] == [
        [j for i, j in rows if i == t] for t in tops
    ]
    expected = [[k for i, j, k in sorted(points) if (i, j) == row] for row in rows]
    assert [row for row in lists_in(found["d"]) if row] == expected
    assert [v for v in found["total"] if not isinstance(v, str)] == [
        points[k] for k in sorted(points)
    ]


@FEW
@given(matrices, st.booleans())
def test_reducer_and_dropper_agree(nested: list[list[list[int]]], zeros: bool) -> None:
    """For every coordinate that is left there is one value, with either policy."""
    middle = [list(range(len(matrix))) for matrix in nested]
    values = [[[float(c + 1) for c in row] for row in matrix] for matrix in nested]
    policy = EmptyFiber.ZERO if zeros else EmptyFiber.DROP

    def build(b: Bench) -> Any:
        j = b.play(tokens_of(middle, 3), nesting=3)
        k = b.play(tokens_of(nested, 4), nesting=4)
        val = b.play(tokens_of(values, 4), FLOAT, nesting=4)
        total = b.streams.reduce(val, empty=policy, outer=j if zeros else None)
        kept = j if zeros else b.streams.drop(j, k)[0]
        return {"j": kept, "total": total}

    found = streams_of(build)
    sums = [[sum(row) for row in matrix if row or zeros] for matrix in values]
    assert found["total"] == tokens_of(sums, 3)
    shape = [[j for j, row in enumerate(matrix) if row or zeros] for matrix in nested]
    assert found["j"] == tokens_of(shape, 3)


def test_a_missing_value_is_a_zero_and_no_empty_list() -> None:
    """The coordinate of a list of N stays, and so does its value."""

    def build(b: Bench) -> Any:
        j = b.play([0, 1, 2, "S0", "D"])
        k = b.play([4, "S0", 5, "S0", "S1", "D"], nesting=3)
        val = b.play(["N", "S0", 2.5, "S0", "S1", "D"], FLOAT, nesting=3)
        return {"j": b.streams.drop(j, k)[0], "total": b.streams.reduce(val)}

    found = streams_of(build)
    assert found["j"] == [0, 1, "S0", "D"]
    assert found["total"] == [0.0, 2.5, "S0", "D"]


@FEW
@given(matrices)
def test_the_dropper_removes_empty_lists_everywhere(nested: list[list[list[int]]]) -> None:
    middle = [list(range(len(matrix))) for matrix in nested]
    top = list(range(len(nested)))

    def build(b: Bench) -> Any:
        i, j = b.play([*top, "S0", "D"]), b.play(tokens_of(middle, 3), nesting=3)
        k = b.play(tokens_of(nested, 4), nesting=4)
        j2, again, k2 = b.streams.drop(j, k, j)
        i2, j3 = b.streams.drop(i, j2)
        return {"i": i2, "j": j3, "again": again, "j2": j2, "k": k2}

    found = streams_of(build)
    kept = [[j for j, row in enumerate(matrix) if row] for matrix in nested]
    assert found["i"] == [*(i for i in top if kept[i]), "S0", "D"]
    assert found["again"] == found["j2"] == tokens_of(kept, 3)
    some = [row for row in kept if row]
    assert found["j"] == (tokens_of(some, 3) if some else ["S1", "D"])
    rows = [[row for row in matrix if row] for matrix in nested]
    assert found["k"] == tokens_of([matrix or [[]] for matrix in rows], 4)


@FEW
@given(lists_of_fibers, st.integers(1, 5))
def test_split_and_flatten(fibers_: list[list[int]], factor: int) -> None:
    tokens = tokens_of(fibers_, 3)

    def build(b: Bench) -> Any:
        crd = b.play(tokens, nesting=3)
        outer, inner, beside = b.streams.split(crd, factor, crd)
        back, again = b.streams.flatten(outer, inner, factor, beside)
        return {"outer": outer, "back": back, "again": again}

    found = streams_of(build)
    assert found["back"] == found["again"] == tokens
    blocks = [sorted({c // factor for c in fiber}) for fiber in fibers_]
    assert found["outer"] == tokens_of(blocks, 3)


@FEW
@given(lists_of_fibers, st.integers(1, 4), st.booleans())
def test_lanes_there_and_back(fibers_: list[list[int]], ways: int, deep: bool) -> None:
    """Items, or the lists that a scanner makes of them (some of them empty), in their order."""
    tokens = tokens_of(fibers_, 3)
    positions = [0]
    for row in range(SIZE):
        positions.append(positions[-1] + row % 3)

    def build(b: Bench) -> Any:
        crd = b.play(tokens, nesting=3)
        pos, stored = b.array("pos", positions), b.array("crd", list(range(positions[-1])))
        parts = [lane for (lane,) in b.streams.parallelize([crd], ways)]
        if deep:
            parts = [b.streams.scan_compressed(lane, pos, stored)[0] for lane in parts]
        whole = b.streams.scan_compressed(crd, pos, stored)[0] if deep else crd
        return {"whole": whole, "joined": b.streams.serialize(crd, parts)}

    found = streams_of(build)
    assert found["joined"] == found["whole"]


@FEW
@given(lists_of_fibers, fibers, st.booleans())
def test_locators(fibers_: list[list[int]], stored: list[int], keep: bool) -> None:
    tokens = tokens_of(fibers_, 3)

    def build(b: Bench) -> Any:
        crd = b.play(tokens, nesting=3)
        rows = b.play([*(2 for _ in fibers_), "S0", "D"])
        fiber = b.streams.repeat(crd, rows)
        _, dense = b.streams.locate_dense(crd, fiber, SIZE)
        pos, array = b.array("pos", [0, 0, 0, len(stored)]), b.array("crd", stored)
        out, found, again = b.streams.locate_compressed(crd, fiber, pos, array, crd, keep=keep)
        return {"dense": dense, "crd": out, "ref": found, "again": again}

    found = streams_of(build)
    assert found["dense"] == tokens_of([[2 * SIZE + c for c in f] for f in fibers_], 3)
    kept = [[c for c in fiber if keep or c in stored] for fiber in fibers_]
    assert found["crd"] == found["again"] == tokens_of(kept, 3)
    refs = [[stored.index(c) if c in stored else "N" for c in fiber] for fiber in kept]
    assert found["ref"] == tokens_of(refs, 3)


@FEW
@given(st.lists(lists_of_fibers, min_size=2, max_size=3), st.booleans())
def test_joins_of_bitvectors(sides: list[list[list[int]]], either: bool) -> None:
    count = min(len(side) for side in sides)
    sides = [side[:count] for side in sides]

    def build(b: Bench) -> Any:
        words = [
            b.streams.bits_of(b.play(tokens_of(side, 3), nesting=3), UInt(8), SIZE)
            for side in sides
        ]
        join = b.streams.union_bits if either else b.streams.intersect_bits
        _, crd, refs = join(*words)
        return {"crd": crd, **{f"ref{n}": ref for n, ref in enumerate(refs)}}

    found = streams_of(build)
    combine = set.union if either else set.intersection
    expected = [sorted(reduce(combine, [set(s[at]) for s in sides])) for at in range(count)]
    assert found["crd"] == tokens_of(expected, 3)
    for number, side in enumerate(sides):
        flat = list(product(range(count), range(SIZE)))
        order = [(at, c) for at, c in flat if c in side[at]]
        refs = [
            [order.index((at, c)) if c in side[at] else "N" for c in fiber]
            for at, fiber in enumerate(expected)
        ]
        assert found[f"ref{number}"] == tokens_of(refs, 3)


@FEW
@given(st.lists(lists_of_fibers, min_size=2, max_size=3), st.sampled_from([1, 4, 1 << 30]))
def test_skipping_intersections(sides: list[list[list[int]]], capacity: int) -> None:
    count = min(len(side) for side in sides)
    sides = [side[:count] for side in sides]

    def build(b: Bench) -> Any:
        ref = b.play([*range(count), "S0", "D"])
        levels = []
        for number, side in enumerate(sides):
            pos = b.array(f"pos{number}", np.cumsum([0, *map(len, side)]))
            levels.append((ref, pos, b.array(f"crd{number}", [c for row in side for c in row])))
        crd, refs = b.streams.intersect_skipping(*levels)
        return {"crd": crd, **{f"ref{n}": stream for n, stream in enumerate(refs)}}

    found = streams_of(build, timed=True, capacity=capacity)
    expected = [sorted(set.intersection(*(set(s[at]) for s in sides))) for at in range(count)]
    assert found["crd"] == tokens_of(expected, 3)
    for number, side in enumerate(sides):
        flat = [(at, c) for at, row in enumerate(side) for c in row]
        refs = [[flat.index((at, c)) for c in row] for at, row in enumerate(expected)]
        assert found[f"ref{number}"] == tokens_of(refs, 3)


@FEW
@given(st.lists(st.tuples(*3 * [st.integers(0, 3)]), unique=True, max_size=12).map(sorted))
def test_lists_of_coordinates(points: list[tuple[int, int, int]]) -> None:
    def build(b: Bench) -> Any:
        pos = b.array("pos", [0, len(points)])
        levels = [b.array(f"crd{n}", [point[n] for point in points]) for n in range(3)]
        s = b.streams
        i, run = s.scan_unique(s.root(), pos, levels[0])
        j, inner = s.scan_run(run, pos, levels[:1], levels[1])
        k, ref = s.scan_run(inner, pos, levels[:2], levels[2])
        return {"i": i, "j": j, "k": k, "ref": ref}

    found = streams_of(build)
    rows = sorted({point[0] for point in points})
    pairs = sorted({point[:2] for point in points})
    assert found["i"] == [*rows, "S0", "D"]
    assert lists_in(found["j"]) == [[j for i, j in pairs if i == row] for row in rows or [None]]
    expected = [[k for i, j, k in points if (i, j) == pair] for pair in pairs or [None]]
    assert lists_in(found["k"]) == expected
    assert [r for r in found["ref"] if not isinstance(r, str)] == list(range(len(points)))
