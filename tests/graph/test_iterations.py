"""Lists of iterations against the plain enumeration of ``semantics``."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from t2s.core.expr import Expr, Index, const, equals
from t2s.graph.control.iterations import Iterations, TooManyIterations, listed, rows_apart
from t2s.graph.nodes import Loop, PEArray, Role
from t2s.graph.semantics import iterations

i, j = Index(name="i"), Index(name="j")


def _loop(name: str, minimum: Expr | int, extent: Expr | int) -> Loop:
    bounds = (const(b) if isinstance(b, int) else b for b in (minimum, extent))
    low, count = bounds
    return Loop(name=name, minimum=low, extent=count)


NESTS = (
    (),
    (_loop("i", 2, 3), _loop("j", -1, 4)),
    (_loop("i", 0, 5), _loop("j", i, 3 - i), _loop("k", 1, 2)),
    (_loop("i", -2, 5), _loop("j", 0, i), _loop("k", j, i + j)),
    (_loop("i", 0, 0), _loop("j", 0, 3)),
)


def test_lists_are_what_the_plain_enumeration_gives() -> None:
    for loops in NESTS:
        node = PEArray(name="n", role=Role.COMPUTE, space=(), loops=loops, registers=(), body=())
        expected = [
            tuple(int(environment[loop.name]) for loop in loops)
            for environment in iterations(node, (), {})
        ]
        found = listed(loops, 100)
        rows = [
            tuple(int(found.names[loop.name][at]) for loop in loops) for at in range(found.count)
        ]
        assert rows == expected


def test_a_list_has_a_limit() -> None:
    loops = NESTS[1]
    assert listed(loops, 12).count == 12
    with pytest.raises(TooManyIterations):
        listed(loops, 11)


def test_iterations_of_several_pes() -> None:
    names = {"i": np.arange(3, dtype=np.int32)[:, None], "j": np.arange(4, dtype=np.int32)[None, :]}
    found = Iterations(shape=(3, 4), names=names)
    points = list(product(range(3), range(4)))
    assert found.elements([i, j], (3, 5)).reshape(-1).tolist() == [5 * a + b for a, b in points]
    diagonal = found.where([equals(i, j), i < 2])
    assert np.argwhere(diagonal).tolist() == [[0, 0], [1, 1]]


def test_rows_are_numbered_as_they_appear() -> None:
    random = np.random.default_rng(7)
    columns = [random.integers(0, 3, 200), random.integers(0, 2, 200) > 0, np.full(200, 5)]
    codes, first = rows_apart([*columns, np.broadcast_to(9, (200,))], 200)
    known: dict[tuple[int, ...], int] = {}
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert codes.tolist() == [known.setdefault(row, len(known)) for row in rows]
    assert [rows[at] for at in first] == list(known)
