"""Definitions to search whose Funcs read themselves, or one another, at neighbors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, Int
from t2s.func.collect import needed_funcs
from tests.examples.test_recurrences import example

trsm, lu, qr, pairhmm = map(example, ("trsm", "lu", "qr", "pairhmm"))

Outputs = Func | tuple[Func, ...]


def without_directives(design: Outputs) -> Outputs:
    """The definition of a design of the examples."""
    for func in needed_funcs(design if isinstance(design, tuple) else (design,)):
        for directives in (func.plan, func.journal, func.isolated):
            directives.clear()
    return design


def prefix_sums(rows: int, columns: int) -> Func:
    x, s = ImageParam(Float(32), 2, name="x"), Func("s", type=Float(32))
    b, i = t2s.variables("b i")
    s[b, i] = t2s.select(i == 0, 0.0, s[b, i - 1]) + x[b, i]
    return s.bound(b, 0, rows).bound(i, 0, columns)


def filtered_back(results: int) -> Func:
    """A filter of second order: each result needs the two before it."""
    x, y = ImageParam(Float(32), 1, name="x"), Func("y", type=Float(32))
    i = t2s.Var("i")
    before = t2s.select(i > 0, y[i - 1], 0.0), t2s.select(i > 1, y[i - 2], 0.0)
    y[i] = x[i] + 0.5 * before[0] - 0.25 * before[1]
    return y.bound(i, 0, results)


def common_subsequence(first: int, second: int) -> Func:
    """The length of the longest common subsequence of two texts, as in edit distances."""
    a, b = ImageParam(Int(32), 1, name="a"), ImageParam(Int(32), 1, name="b")
    i, j, o = t2s.variables("i j o")
    table, length, select = Func("table", type=Int(32)), Func("length"), t2s.select
    both = select((i > 0) & (j > 0), table[i - 1, j - 1], 0)
    either = t2s.max(select(i > 0, table[i - 1, j], 0), select(j > 0, table[i, j - 1], 0))
    table[i, j] = select(a[i] == b[j], both + 1, either)
    length[o] = table[first - 1, second - 1]
    table.bound(i, 0, first).bound(j, 0, second)
    return length.bound(o, 0, 1)


def gauss_seidel(sweeps: int, points: int) -> Func:
    """Sweeps over a line: the left neighbor is of this sweep, the right one of that before."""
    u0, u = ImageParam(Float(32), 1, name="u0"), Func("u", type=Float(32))
    line, t, i = Func("line"), *t2s.variables("t i")
    o = t2s.Var("o")
    right = t2s.select(t > 0, u[t - 1, i + 1], u0[i + 1])
    inner = t2s.select((i > 0) & (i < points - 1), 0.5 * (u[t, i - 1] + right), u0[i])
    u[t, i] = inner
    line[o] = u[sweeps - 1, o]
    u.bound(t, 0, sweeps).bound(i, 0, points)
    return line.bound(o, 0, points)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A definition, and what numpy says of its results from random inputs."""

    make: Callable[[], Func]
    expected: Callable[..., Any]


def _filtered(x: np.ndarray) -> np.ndarray:
    y = np.zeros(len(x) + 2, np.float32)
    for at, value in enumerate(x):
        y[at + 2] = value + np.float32(0.5) * y[at + 1] - np.float32(0.25) * y[at]
    return y[2:]


def _common(a: np.ndarray, b: np.ndarray) -> list[int]:
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i, j in np.ndindex(len(a), len(b)):
        longer = max(table[i, j + 1], table[i + 1, j])
        table[i + 1, j + 1] = table[i, j] + 1 if a[i] == b[j] else longer
    return [table[-1, -1]]


def _relaxed(u0: np.ndarray) -> np.ndarray:
    line = u0.copy()
    for _ in range(5):
        for at in range(1, len(line) - 1):
            line[at] = (line[at - 1] + line[at + 1]) / 2
    return line


WRITTEN = {
    "prefix sums": Case(make=lambda: prefix_sums(6, 10), expected=lambda x: x.cumsum(axis=1)),
    "filter": Case(make=lambda: filtered_back(15), expected=_filtered),
    "common subsequence": Case(make=lambda: common_subsequence(7, 9), expected=_common),
    "Gauss-Seidel": Case(make=lambda: gauss_seidel(5, 11), expected=_relaxed),
}
