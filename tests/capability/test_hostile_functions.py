"""Functions that end their process, write what they are given, or return something else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from t2s import external, sparse
from t2s.errors import UserError
from t2s.libraries.child import in_child
from t2s.sparse import Schedule
from tests.capability.functions import described
from tests.errors.refusal import refused

PRODUCT = "z(i,k) = x(i,j) * y(j,k)"


def _closes(x: Any, y: Any, z: Any) -> None:
    """Closes what a child would answer on."""
    os.closerange(3, 300)
    z[...] = x @ y


def test_a_child_that_cannot_answer_ends() -> None:
    """And never goes on as its parent would: what comes behind the check is done once."""
    before = os.getpid()
    with pytest.raises(UserError, match="closes broke the process, which could not tell how"):
        external.check(external.make_function("closes", PRODUCT, python=_closes))
    assert os.getpid() == before


def test_an_error_that_only_a_child_can_read() -> None:
    class Odd(Exception):
        def __init__(self, one: str, other: str) -> None:
            super().__init__(one)

    def fail(say: Any) -> None:
        raise Odd("one", "other")

    with pytest.raises(RuntimeError, match=r"Odd\('one'\)"):
        in_child(fail)


def _leaves(x: Any, y: Any, z: Any) -> None:
    sys.exit(0)


def test_a_function_that_leaves_python() -> None:
    with refused("""
        leaves does not compute z(i,k) = x(i,j)*y(j,k)
          --> made = external.make_function("leaves", PRODUCT, python=_leaves)
          expected: [[0.0]]
          given:    leaves failed: SystemExit: 0
          note:     for x [[2.0]] at steps 1,1, y [[0.0]] at steps 1,1 of float64
          note:     10 of 10 trials differ
    """):
        made = external.make_function("leaves", PRODUCT, python=_leaves)
        external.check(made, trials=10)
    plan, given = _plan(described("leaves", PRODUCT, _leaves))
    with pytest.raises(UserError, match="leaves failed: SystemExit: 0"):
        plan.run(given)


def _plan(function: external.ExternalFunction) -> tuple[external.ExternalPlan, dict[str, Any]]:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k)")
    part = sparse.Notation(assignment.value.value, {})  # type: ignore[union-attr]
    plan = sparse.compile(assignment, Schedule().map(part, function))
    return plan, {"B": np.ones((2, 3)), "C": np.arange(12.0).reshape(3, 4)}


@pytest.mark.parametrize("stored", [False, True])
def test_operands_cannot_be_made_writeable(stored: bool) -> None:
    """A trusted function asks numpy for it; what is given stays what it is."""

    def blots(x: Any, y: Any) -> Any:
        x.flags.writeable = True
        x[...] = 0
        return x @ y

    formats = {"z": "ds"} if stored else {}
    plan, given = _plan(described("blots", PRODUCT, blots, formats=formats))
    with pytest.raises(UserError, match="blots failed: ValueError: cannot set WRITEABLE flag"):
        plan.run(given)
    assert np.array_equal(given["B"], np.ones((2, 3)))


@pytest.mark.parametrize(
    ("returned", "said"),
    [("nothing", "'nothing'"), (None, "None"), (np.full((2, 4), 1j), "ndarray of complex128")],
)
def test_what_is_no_number(returned: Any, said: str) -> None:
    function = described("wild", PRODUCT, lambda x, y: returned)
    plan, given = _plan(function)
    with pytest.raises(UserError) as caught:
        plan.run(given)
    assert str(caught.value).startswith("wild returned no real numbers\n")
    assert "  expected: an array, or a number\n" in str(caught.value)
    assert f"  given:    {said}\n" in str(caught.value)
    dot = external.make_function("wild", "s = x(i) * y(i)", python=lambda x, y: returned)
    with pytest.raises(UserError, match="given:    wild returned no real numbers"):
        external.check(dot, trials=3)


def test_a_function_that_copies_the_process() -> None:
    """A copy that comes back from the call ends there: nothing is done twice."""
    made: list[int] = []

    def forks(x: Any, y: Any, z: Any) -> None:
        z[...] = x @ y
        if not made:  # no more than one, whatever becomes of it
            made.append(1)
            os.fork()

    with pytest.raises(UserError, match="forks does not compute") as caught:
        external.check(external.make_function("forks", PRODUCT, python=forks), trials=3)
    assert "expected: one process" in str(caught.value)
    assert "given:    a copy of the process, as fork makes one" in str(caught.value)
    assert "1 of 3 trials differ" in str(caught.value)


def test_a_function_that_has_a_process_of_its_own() -> None:
    def asks(x: Any, y: Any, z: Any) -> None:
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        z[...] = x @ y

    external.check(external.make_function("asks", PRODUCT, python=asks), trials=2)
