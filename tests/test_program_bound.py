"""Bounds of a search for the fastest program: below the cycles of all that it leaves open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import sparse
from t2s.core.location import user_location
from t2s.driver.program_bound import Choices
from t2s.driver.program_search import _Bar, _Decisions, _Shared, _Space
from t2s.errors import UserError

Inputs = dict[str, np.ndarray[Any, Any]]


def space_of(program: sparse.Program, inputs: Inputs) -> Any:
    """The space of a program of which no results are passed on yet."""
    shared: Any = _Shared(
        inputs=inputs, device="ideal", deadline=1e18, bar=_Bar(False), location=user_location()
    )
    return _Space(type(program)(program.program, program.schedules), (), shared)


def bounds(program: sparse.Program, inputs: Inputs) -> list[int]:
    """Bounds of a program: the first with everything decided, the last with nothing."""
    space = space_of(program, inputs)
    ways = (*program.said, *program.chosen)
    found = []
    for first in range(len(space.user) + 1):
        whole = set(space.user[first:])
        decided = frozenset(name for name in space.names if space._whole(name) in whole)
        passed = tuple(passing for passing in ways if passing.tensor in decided)
        found.append(space.bound(_Decisions(passed=passed, decided=decided)))
    return found


def rows(count: int, stored: list[int]) -> np.ndarray[Any, Any]:
    """A vector that is 1 at some places."""
    vector = np.zeros(count)
    vector[stored] = 1
    return vector


def graph_and_features() -> Inputs:
    generator = np.random.default_rng(0)
    return {
        "A": (generator.random((40, 40)) < 0.3) * 1.0,
        "X": generator.normal(size=(40, 20)),
    }


def test_a_reader_of_some_rows_takes_these_only() -> None:
    """Only the rows of T that D has are computed where T is streamed."""
    program = sparse.program(
        "T(i,j) = A(i,k)*X(k,j)\nL(i,j) = D(i)*T(i,j)", formats={"A": "ds", "D": "s"}
    )
    inputs = {**graph_and_features(), "D": rows(40, [3, 7, 21])}
    for one, share in ((program, 0.98), (program.stream("T"), 0.85)):
        cycles = one.cycles(inputs)
        assert share * cycles < bounds(one, inputs)[0] <= cycles
    streamed = int((inputs["A"][[3, 7, 21]] != 0).sum()) * 21
    assert streamed < program.stream("T").cycles(inputs) < 1.2 * streamed


def test_rows_that_are_gathered_are_computed_once_at_least() -> None:
    program = sparse.program(
        "T(i,j) = A(i,k)*X(k,j)\nU(i,j) = B(i,k)*T(k,j)", formats={"A": "ds", "B": "ds"}
    )
    inputs = graph_and_features()
    inputs["B"] = np.zeros((40, 40))
    inputs["B"][[1, 2, 3], [5, 9, 30]] = 1
    one = program.recompute("T")
    cycles = one.cycles(inputs)
    assert 0.8 * cycles < bounds(one, inputs)[0] <= cycles


def test_lanes_share_what_is_streamed_into_them() -> None:
    program = sparse.program(
        "T(i,j) = A(i,k)*X(k,j)\nL(i,h) = T(i,j)*W(j,h)", formats={"A": "ds"}
    ).schedule("L", "parallelize(i,4)")
    inputs = {**graph_and_features(), "W": np.ones((20, 3))}
    one = program.stream("T")
    cycles = one.cycles(inputs)
    found = bounds(one, inputs)
    assert 0.8 * cycles < found[0] <= cycles
    assert max(found) <= cycles
    assert max(bounds(program, inputs)) <= program.cycles(inputs)


def test_a_reader_walks_as_results_are_made() -> None:
    """Alone H would loop over j, i, as W is found by address there; in a graph it is over i, j."""
    program = sparse.program(
        "T(i,j) = A(i,k)*X(k,j)\nH(i,h) = T(i,j)*W(j,h)", formats={"A": "ds", "T": "dd:1,0"}
    )
    inputs = {**graph_and_features(), "W": np.ones((20, 3))}
    one = program.stream("T")
    assert max(bounds(one, inputs)) <= one.cycles(inputs)


def test_no_schedule_of_a_search_is_lost_by_a_bound() -> None:
    """A search ends with the best of all ways although readers miss rows."""
    program = sparse.program(
        "T(i,j) = A(i,k)*X(k,j)\nL(i,j) = D(i)*T(i,j)", formats={"A": "ds", "D": "s"}
    )
    inputs = {**graph_and_features(), "D": rows(40, [3, 7])}
    found = program.search(inputs, progress=False)
    assert found.complete
    assert found.cycles == found.lower_bound <= program.stream("T").cycles(inputs)
    assert '.stream("T")' in found.lines


PROGRAMS = (
    "T(i,j)=A(i,k)*X(k,j)\nL(i,j)=D(i)*T(i,j)+E(i,j)",
    "T(i,j)=A(i,k)*X(k,j)\nH(i,h)=relu(sum(j,T(i,j)*W(j,h))+b(h))\nU(i,h)=B(i,k)*H(k,h)\n"
    "Z(i,h)=D(i)*U(i,h)",
    "T(i,j)=A(i,k)*X(k,j)\nL(i,j)=E(i,j)*T(i,j)\nU(i,h)=L(i,j)*W(j,h)",
    "T(i,j)=A(i,k)*X(k,j)\nU(i)=T(i,j)*v(j)\nY(i,j)=T(i,j)*U(i)*D(i)",
    "T(i,j)=A(i,k)*X(k,j)\nS(i,j)=softmax(j;T(i,j))\nY(i,j)=D(i)*S(i,j)",
    "T(i,j)=A(i,k)*B(k,j)\nL(i,j)=C(i,j)*T(i,j)\nY(j)=L(i,j)*D(i)",
)
SHAPES = {"A": (9, 9), "B": (9, 9), "C": (9, 9), "X": (9, 5), "E": (9, 5), "D": (9,), "W": (5, 4)}
SHAPES |= {"b": (4,), "v": (5,)}


def drawn(seed: int) -> tuple[sparse.Program, Inputs] | None:
    """A program with some results passed on, and inputs with empty rows; ``None`` if refused."""
    generator = np.random.default_rng(seed)
    text = PROGRAMS[seed % len(PROGRAMS)]
    formats = {name: str(generator.choice(["ds", "ss", "dd"])) for name in "ABCE"}
    formats |= {"D": str(generator.choice(["s", "d"])), "W": str(generator.choice(["ds", "dd"]))}
    program = sparse.program(text, {n: one for n, one in formats.items() if f"{n}(" in text})
    inputs: Inputs = {}
    for name in program.inputs:
        shape = SHAPES[name]
        array = generator.normal(size=shape) * (generator.random(shape) < generator.random() + 0.1)
        array[generator.random(shape[0]) < 0.4] = 0
        inputs[name] = array
    results = [line.split("(")[0] for line in program.statements]
    for name in results[:-1]:
        way = generator.choice(["store", "stream", "recompute"], p=[0.2, 0.5, 0.3])
        try:
            program = getattr(program, way)(name)
        except UserError:
            continue
    if generator.random() < 0.3:
        try:
            lanes = f"parallelize({'j' if results[-1] == 'Y' else 'i'},2)"
            program = program.schedule(results[-1], lanes)
        except UserError:
            return None
    return program, inputs


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 90))]
)
def test_random_programs(seed: int) -> None:
    case = drawn(seed)
    if case is None:
        return
    program, inputs = case
    cycles = program.cycles(inputs)
    assert max(bounds(program, inputs)) <= cycles


def test_nothing_is_known_of_a_diagonal() -> None:
    program = sparse.program("T(i,j) = A(i,k)*X(k,j)\ny(i) = T(i,i)", formats={"A": "ds"})
    inputs = {**graph_and_features(), "X": np.ones((40, 40))}
    space = space_of(program, inputs)
    open_ = Choices(ways={}, schedules={}, decided=frozenset())
    assert space.bounds.of(open_) <= program.cycles(inputs)
