"""Traces of machines: runs where rules repeat, codes where they do not, and the same firings."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from t2s import sparse
from t2s.graph.cache import GraphCache
from t2s.simulator.program.trace import Trace
from t2s.simulator.values import machine_traces, machine_values

NEVER = 1 << 62
"""Firings after which machines fire in bursts, whose traces are of runs."""

SMALL = 1 << 15
"""Codes in a trace; runs are made of a quarter of them, or more."""


def trace_of(text: str, formats: dict[str, str], inputs: dict[str, object]) -> Trace:
    """The trace of a run of a kernel."""
    kernel = sparse.compile(sparse.parse(text, formats), "reorder(i,k,j)" if "k" in text else None)
    (run,) = kernel.simulate(inputs).stages
    assert run.machine_trace is not None
    return run.machine_trace


GATHERED = (
    "Y(i,j) = A(i,k)*X(k,j)",
    {"A": "ds"},
    {
        "A": scipy.sparse.random(200, 200, 0.015, random_state=1),
        "X": np.random.default_rng(0).random((200, 2000)),
    },
)
UNITED = (
    "Y(i,j) = A(i,j)+B(i,j)",
    {"A": "ds", "B": "ds", "Y": "ds"},
    {
        name: scipy.sparse.random(700, 200, 0.5, format="csr", random_state=seed)
        for seed, name in enumerate("AB")
    },
)


@pytest.mark.parametrize(("case", "long"), [(GATHERED, True), (UNITED, False)])
def test_traces_of_any_length_have_the_same_codes(
    case: tuple[str, dict[str, str], dict[str, object]],
    long: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = trace_of(*case)
    monkeypatch.setattr(machine_traces, "_FIRST_CODES", SMALL)
    monkeypatch.setattr(machine_values, "_PREPARED", GraphCache())
    monkeypatch.setattr(machine_values, "_TRIAL", NEVER)
    found = trace_of(*case)
    assert found.codes.keys() == expected.codes.keys()
    for instance, codes in expected.codes.items():
        np.testing.assert_array_equal(found.codes[instance].expanded, codes.expanded, strict=True)
    most = [codes for codes in found.codes.values() if len(codes) > SMALL]
    if long:
        assert all(len(codes.parts) > 2 for codes in most)
        assert {part.dtype for codes in most for part in codes.parts[:-1]} == {np.dtype(np.int32)}
    else:
        assert any(len(codes.parts) == 1 for codes in most)
    assert most


def test_long_rows_leave_short_traces() -> None:
    """Memory follows from the runs, not from the firings."""
    for trace in (trace_of(*GATHERED), trace_of(*GATHERED)):
        firings = sum(len(codes) for codes in trace.codes.values())
        held = sum(part.nbytes for codes in trace.codes.values() for part in codes.parts)
        assert firings > 1_000_000
        assert 20 * held < firings


REPEATED = (
    "Y(i,j) = X(i,k)*W(k,j)",
    {"W": "ds"},
    {
        "X": np.random.default_rng(0).random((300, 300)),
        "W": scipy.sparse.random(300, 12, 0.3, format="csr", random_state=1),
    },
)


@pytest.mark.parametrize(("case", "comes_again"), [(REPEATED, True), (UNITED, False)])
def test_rounds_of_codes_are_one_array(
    case: tuple[str, dict[str, str], dict[str, object]],
    comes_again: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that walks through the same short rows again and again leaves a short trace."""
    monkeypatch.setattr(machine_values, "_TRIAL", NEVER)
    monkeypatch.setattr(machine_traces, "_FEW_CODES", NEVER)
    whole = trace_of(*case)
    monkeypatch.setattr(machine_traces, "_FIRST_CODES", SMALL)
    monkeypatch.setattr(machine_values, "_PREPARED", GraphCache())
    found = trace_of(*case)
    folded = 0
    for instance, codes in whole.codes.items():
        here = found.codes[instance]
        np.testing.assert_array_equal(here.expanded, codes.expanded, strict=True)
        kept = sum(part.nbytes for part in {id(part): part for part in here.parts}.values())
        folded += here.listed == len(codes) > 4 * kept
    assert folded >= 5 if comes_again else not folded
