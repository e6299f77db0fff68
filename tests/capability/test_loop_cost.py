"""The order of our loops, and what is predicted of them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from t2s import sparse
from t2s.driver.plan_inputs import bind_plan, facts_of_binding
from t2s.plan.cost import GENERIC, LoopRates, LoopSetting, loop_seconds
from t2s.sparse_repr.concrete.external_loops import order_of_loops
from t2s.sparse_repr.notation.ir import accesses


@pytest.mark.parametrize(
    ("text", "formats", "memory", "order"),
    [
        ("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"A": "ds", "B": "ds"}, {}, "ijk"),
        ("A(i,j) = B(i,k)*C(k,j)", {"B": "ds"}, {}, "ikj"),
        ("A(i,j) = B(i,k)*C(k,j)", {"A": "ds", "B": "ds", "C": "ds"}, {}, "ikj"),
        ("A(i,j) = B(i,k)*C(k,j)", {}, {}, "ikj"),
        ("A(i,j) = B(i,k)*C(k,j)", {}, {"C": (1, 0)}, "ijk"),
        ("a(i) = B(i,j)*c(j)", {}, {}, "ij"),
        ("a(i) = B(i,j)*c(j)", {}, {"B": (1, 0)}, "ji"),
        ("a(i) = B(i,j)*c(j)", {"B": "ds:1,0"}, {}, "ji"),
        ("A(i,r) = B(i,k,l)*C(k,r)*D(l,r)", {"B": "sss"}, {}, "iklr"),
        ("A(i) = B(i,j)", {"A": "s", "B": "ds:1,0"}, {}, "ji"),
        ("A(i,j) = B(i,k)*C(k,j)", {"A": "ds", "B": "ds:1,0", "C": "ds"}, {}, "kij"),
        ("A = B(i,j)", {"B": "ss"}, {}, "ij"),
        ("A(i) = b(i) + C(i,j)*d(j)", {}, {}, None),
    ],
)
def test_orders(text: str, formats: Any, memory: Any, order: str | None) -> None:
    found = order_of_loops(sparse.parse(text, formats), memory)
    assert found == (None if order is None else tuple(order))


def _rates(**said: float) -> LoopRates:
    """Rates that are 0 but for these."""
    none = LoopRates(**{one.name: 0.0 for one in fields(LoopRates)})
    return replace(none, **said)


def _counted(text: str, formats: Any, inputs: Any, **said: float) -> float:
    assignment = sparse.parse(text, formats)
    facts = facts_of_binding(bind_plan(assignment, inputs), assignment)
    setting = LoopSetting(
        extents=facts.extents,
        tensors=facts.tensors,
        itemsize=facts.itemsize,
        rates=_rates(**said),
        convert=0.0,
    )
    return loop_seconds(assignment, setting)[0]


def test_what_loops_do_is_counted() -> None:
    generator = np.random.default_rng(3)
    one, other = (
        np.asarray(generator.random((200, 300)) < share, np.float64) for share in (0.1, 0.02)
    )
    wide = np.ones((300, 40))
    spmm = ("A(i,j) = B(i,k)*C(k,j)", {"B": "ds"}, {"B": one, "C": wide})
    stored = np.count_nonzero(one)
    assert _counted(*spmm, entry=1) == pytest.approx(stored, rel=0.01)
    assert _counted(*spmm, vector=1) == pytest.approx(40 * stored, rel=0.01)
    assert _counted(*spmm, zero=1) == 200 * 40
    assert _counted(*spmm, loop=1) == pytest.approx(1 + 200 + stored, rel=0.01)
    assert _counted(*spmm, workspace=1, append=1, merged=1, strided=1) == 0
    sums = {"A": "ds", "B": "ds", "C": "ds"}
    added = ("A(i,j) = B(i,j) + C(i,j)", sums, {"B": one, "C": other})
    union = np.count_nonzero(one + other)
    assert _counted(*added, merged=1) == pytest.approx(union, rel=0.05)
    assert _counted(*added, append=1) == pytest.approx(union, rel=0.05)
    both = ("A(i,j) = B(i,j) * C(i,j)", sums, {"B": one, "C": other})
    assert _counted(*both, append=1) == pytest.approx(np.count_nonzero(one * other), rel=0.2)
    product = ("A(i,j) = B(i,k) * C(k,j)", sums, {"B": one, "C": other.T})
    steps = (one @ other.T).sum()
    assert _counted(*product, workspace=1) == pytest.approx(2 * steps, rel=0.2)


@pytest.mark.parametrize(
    "text",
    [
        "A(i,j) = B(i,j) + 2*C(i,j)",
        "A(i) = B(i,j) * C(i,j) + c(j)",
        "A(i,j) = B(j,i) * C(i,j)",
        "A = B(i,j) * C(j,k)",
        "A(i,j) = B(i,j) / (C(i,j) + 1)",
        "A(i) = B(i,i)",
        "A(i,j,k) = B(i,j) * C(j,k)",
        "A(i) = c(i) * B(i,j) * C(j,k)",
        "A = 2",
    ],
)
@pytest.mark.parametrize("kinds", ["dd", "ds", "ss", "uq", "ds:1,0"])
def test_all_statements_have_a_time(text: str, kinds: str) -> None:
    """Whatever is stored in which way, and extents of 0."""
    formats = dict.fromkeys("BC", kinds)
    assignment = sparse.parse(text, {name: one for name, one in formats.items() if name in text})
    orders = {one.tensor: len(one.variables) for one in accesses(assignment.value)}
    for size in (0, 1, 5):
        given = {
            name: np.eye(size) if order == 2 else np.ones(size) for name, order in orders.items()
        }
        binding = bind_plan(assignment, given)
        facts = facts_of_binding(binding, assignment)
        setting = LoopSetting(
            extents=facts.extents,
            tensors=facts.tensors,
            itemsize=8,
            rates=GENERIC.loops,
            convert=1e-9,
        )
        seconds, text_of = loop_seconds(assignment, setting)
        assert GENERIC.loops.start <= seconds < 1
        assert text_of.endswith(("steps", "strided"))
