"""Functions of vectors: compiled by us, for as many elements as a register has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import Float, Int, Var, external, sparse
from t2s.errors import UserError
from t2s.sparse import Tensor, dense

i = Var("i")


def test_vectors_of_a_user() -> None:
    smooth = external.make_vector_function(
        "z(i) = (x(i) + y(i)) * 0.5 - -x(i)", lanes=4, type=Float(64), name="smooth"
    )
    assert external.check(smooth, trials=30).trials == 30
    shifted = external.make_vector_function("x(i) = x(i) * 3 - y(i)", lanes=16, type=Int(16))
    assert external.check(shifted, trials=30).trials == 30
    halves = external.make_vector_function("z(i) = x(i) / y(i)")
    assert external.check(halves, trials=30).trials == 30


def test_eight_floats_are_one_register() -> None:
    function = external.vector.add8
    assert function.library is not None
    assert "fadd <8 x float>" in function.library.llvm
    one = Tensor("a", dense(1))
    b, c = Tensor("b", dense(1)), Tensor("c", dense(1))
    one[i] = b[i] + c[i]
    plan = sparse.compile(one, "map(b(i)+c(i),vector.add8)")
    for extent in (1, 7, 8, 9, 17, 800):
        given = {"b": np.arange(extent, dtype=np.float32), "c": np.full(extent, 3, np.float32)}
        found = plan.run(given)
        assert np.array_equal(found.output, given["b"] + 3)
        assert found.steps[0].calls == -(-extent // 8)


def _vector(statement: str, **said: Any) -> external.ExternalFunction:
    return external.make_vector_function(statement, **said)


def test_what_vectors_do_not_compute() -> None:
    for statement, said, message in (
        ("z(i,k) = x(i,k)", {}, "vector is not a function of single elements"),
        ("s = x(i)", {}, "vector is not a function of single elements"),
        ("z(i) += x(i)", {}, "vector says more than what is computed"),
        ("z(i) = x(i) when i == 4", {}, "vector says more than what is computed"),
        ("z(i) = max(x(i), y(i))", {}, "vectors of float32 do not compute this"),
        ("z(i) = x(i) / y(i)", {"type": Int(32)}, "vectors of int32 do not compute this"),
        ("z(i) = x(i) * 2.5", {"type": Int(32)}, "2.5 is not a number of int32"),
        ("z(i) = x(i) * 200", {"type": Int(8)}, "200 is not a number of int8"),
        ("z(i) = x(i)", {"lanes": 0}, "vector has no vector that LLVM knows"),
        ("z(i) = x(i)", {"lanes": 2.5}, "vector has no vector that LLVM knows"),
        ("z(i) = x(i)", {"type": Float(16)}, "vector has no vector that LLVM knows"),
        ("z(i) = x(i)", {"type": "float32"}, "the type of a vector has the wrong type"),
        ("z(i) = x(i)", {"name": "my add"}, "a function of vectors has a name"),
    ):
        with pytest.raises(UserError) as caught:
            _vector(statement, **said)
        assert str(caught.value).splitlines()[0] == message
        assert caught.value.location is not None
        assert caught.value.location.file == __file__
