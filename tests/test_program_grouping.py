"""``Program.regroup``: products of products in another order, with the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from t2s import sparse
from t2s.errors import UserError
from t2s.sparse_repr.notation.grouping import groupings
from tests.models import MODELS
from tests.test_program_fusion import FORMATS, LAYER, layer

Program = sparse.Program

TEXTS = {
    "a layer of a graph network": "T(i,j) = A(i,k)*B(k,j)\nL(i,h) = T(i,j)*C(j,h)",
    "other names in each statement": "T(k,i) = A(k,j)*B(j,i)\nL(j,k) = T(j,i)*C(i,k)",
    "a product that is read by its transpose": "T(j,i) = A(i,k)*B(k,j)\nL(h,i) = C(j,h)*T(j,i)",
    "a vector": "T(i,j) = A(i,k)*B(k,j)\nL(i) = T(i,j)*c(j)",
    "a number": "T(i) = A(i,j)*c(j)\nL = T(i)*e(i)",
    "three factors": "T(i,j) = A(i,k)*B(k,j)*c(j)\nL(i,h) = T(i,j)*C(j,h)",
}
"""All square, so that every variable goes equally far."""


@pytest.mark.parametrize("name", TEXTS)
def test_values_of_all_groupings(name: str) -> None:
    generator = np.random.default_rng(5)
    inputs: dict[str, Any] = {
        one: generator.normal(size=(5, 5)) * (generator.random((5, 5)) < 0.5) for one in "ABC"
    }
    inputs |= {one: generator.normal(size=5) for one in "ce"}
    inputs = {one: array for one, array in inputs.items() if f"{one}(" in TEXTS[name]}
    program = sparse.program(TEXTS[name], {"A": "ds", "C": "ds"} if "C" in inputs else {"A": "ds"})
    expected = program.interpret(inputs)["L"]
    found = list(groupings(program.program))
    assert found
    for grouping in found:
        other = program.regroup("L", *grouping.first)
        names = [one.name for one in other.program.statements]
        assert "T" not in names
        for one in names:
            other = other.schedule(one, "transpose()")
        result = other.simulate(inputs)
        np.testing.assert_allclose(result["L"], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["gcn", "gcn of one node", "gcn without edges"])
@pytest.mark.parametrize("fusion", ["none", "layer"])
def test_a_network(name: str, fusion: str) -> None:
    model = MODELS[name]()
    program = sparse.program(
        """
        T(i,j) = A(i,k) * X(k,j)
        L(i,h) = T(i,j) * W1(j,h)
        H(i,h) = relu(L(i,h) + b1(h))
        """,
        {"A": "ds", "W1": "ds"},
    )
    inputs = {one: model.inputs[one] for one in ("A", "X", "W1", "b1")}
    result = program.regroup("L", "X", "W1").fuse(fusion).simulate(inputs)
    np.testing.assert_allclose(result["H"], model.expected["H"], rtol=1e-10, atol=1e-12)
    assert "T" not in result.tensors


def test_how_it_prints() -> None:
    program = sparse.program(f"{LAYER}\nX_W(i) = b(i)*2", FORMATS).regroup("L", "X", "W")
    assert program.statements[:2] == (
        "X_W_2(k,h) = sum(j, X(k,j)*W(j,h))  # stored as dd:0,1, by default",
        "L(i,h) = sum(k, A(i,k)*X_W_2(k,h))  # stored as dd:0,1, by default",
    )
    assert program.fuse("layer").cycles(layer()) < program.cycles(layer())


WRONG: dict[str, tuple[Callable[[Program], Program], str]] = {
    "nothing assigns Q": (lambda p: p.regroup("Q", "X", "W"), "expected: one of T, L, H"),
    "H is not a product that reads a product": (
        lambda p: p.regroup("H", "L", "b"),
        "given:    H = relu(L(i,h) + b(h))",
    ),
    "these cannot be multiplied first in L": (lambda p: p.regroup("L", "X"), "expected: X and W\n"),
    "these cannot be multiplied first in L$": (
        lambda p: p.regroup("L", "A", "X"),
        "given:    'A', 'X'",
    ),
    "L has a schedule already": (
        lambda p: p.schedule("L", "reorder(i,j,h)").regroup("L", "X", "W"),
        "expected: regroup before what is said",
    ),
    "T has a way already": (
        lambda p: p.fuse("layer").regroup("L", "X", "W"),
        "given:    regroup('L', 'X', 'W')",
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_regrouped(message: str) -> None:
    change, text = WRONG[message]
    with pytest.raises(UserError, match=f"(?m){message}") as caught:
        change(sparse.program(LAYER, FORMATS))
    assert text in str(caught.value)
    assert "test_program_grouping.py" in str(caught.value.location)


def test_a_product_that_something_else_reads() -> None:
    program = sparse.program(f"{LAYER}\nG(i,j) = T(i,j)*2", FORMATS)
    with pytest.raises(UserError, match="L is not a product that reads a product"):
        program.regroup("L", "X", "W")
    assert list(groupings(program.program)) == []


def test_blocks() -> None:
    program = sparse.program(LAYER, {"A": "ds[2,2]", "W": "dd"})
    with pytest.raises(UserError, match="is stored in blocks, and regroup"):
        program.regroup("L", "X", "W")


def test_a_search_finds_the_better_order() -> None:
    """More features than hidden values: the product with the weights first takes fewer cycles."""
    inputs = layer(nodes=12, entries=80, features=12)
    program = sparse.program(LAYER, FORMATS)
    found = program.search(inputs, seconds=100, progress=False)
    assert '.regroup("L", "X", "W")' in found.lines
    again = eval(f"program{''.join(found.lines)}", {"program": program})
    assert again.cycles(inputs) == found.cycles
    kept = program.store("T").search(inputs, seconds=100, progress=False)
    assert kept.cycles > found.cycles
    assert not any("regroup" in line for line in kept.lines)
