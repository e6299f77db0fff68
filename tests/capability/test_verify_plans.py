"""Broken promises of plans are found, and plans and their results say what they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t2s import external, sparse
from t2s.core.errors import InternalError
from t2s.plan.ir import CheckStep, ConvertStep, PlanProgram, verify_plan
from t2s.sparse import dense

GIVEN = {"B": np.eye(3)[:2], "C": np.ones((3, 4)), "D": np.full((2, 4), 2.0)}


def _plan() -> Any:
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k) + D(i,k)")
    return sparse.compile(assignment, "bind(B(i,j)*C(j,k),numpy.matmul)")


def _broken(program: PlanProgram, **changes: Any) -> PlanProgram:
    return replace(program, **changes)


def test_plans_hold_what_they_promise() -> None:
    program = _plan().program
    verify_plan(program)
    call, loops = program.steps
    convert = ConvertStep(target="T", source="Q", format=dense(2), modes=(0, 1), why="")
    for changes, text in [
        ({"steps": (loops,)}, "a step reads T, which nothing has written"),
        ({"steps": (convert, call, loops)}, "a step reads Q, which nothing has written"),
        ({"steps": (call, call, loops)}, "T is written twice"),
        ({"steps": (call,)}, "no step writes A"),
        ({"tensors": ()}, "B has no format"),
        ({"steps": (CheckStep(tensor="Z", property="symmetric"),)}, "a step reads Z"),
        ({"steps": (replace(call, reads=()), loops)}, "the operands of matmul are not those"),
    ]:
        with pytest.raises(InternalError, match=text):
            verify_plan(_broken(program, **changes))


def test_tensors_are_read_where_they_are() -> None:
    kernel = sparse.compile(sparse.parse("T(i,k) = B(i,j)*C(j,k)"))
    there = external.from_kernel(kernel, link=external.PCIE3_X8)
    assignment = sparse.parse("A(i,k) = B(i,j)*C(j,k) + D(i,k)")
    part = sparse.Notation(assignment.value.left.value, {})  # type: ignore[union-attr]
    program = sparse.compile(assignment, sparse.Schedule().bind(part, there)).program
    first, second, call, back, loops = program.steps
    for steps, text in [
        ((second, call, back, loops), "B is not in the memory of the ideal"),
        ((first, second, call, loops), "T is not in the memory of the host"),
        ((first, second, replace(call, target="A")), "A is not in the memory of the host"),
    ]:
        with pytest.raises(InternalError, match=text):
            verify_plan(_broken(program, steps=steps))


def test_plans_and_results_as_text() -> None:
    plan = _plan()
    assert repr(plan) == "<plan of A(i,k) = sum(j, B(i,j)*C(j,k)) + D(i,k), 2 steps>"
    found = plan.run(GIVEN)
    assert repr(found) == "<PlanResult <SparseTensor 2 x 4, dd:0,1, 8 values>, 2 steps>"
    first, second, total = str(found).splitlines()
    assert first.startswith("call: matmul computes T(i,k) = sum(j, B(i,j)*C(j,k)): ")
    assert first.endswith(" ms measured, 1 call")
    assert second.startswith("loops: A(i,k) = T(i,k) + D(i,k): ")
    assert total.startswith("in all ")
    assert total.endswith(" ms measured")
    assert found.seconds == sum(step.seconds for step in found.steps)
    assert np.array_equal(found.output, GIVEN["B"] @ GIVEN["C"] + GIVEN["D"])
