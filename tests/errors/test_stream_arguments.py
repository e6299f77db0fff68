"""Arguments of the methods of ``Streams`` and of what makes tensors: errors of ours, at once."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Float, sparse
from t2s.core.errors import InternalError
from tests.sampling import sampled

HOSTILE = ({}, -0.0, 1 << 31, "A", None, (), [], object(), -1, (None,), {"a": 3}, Path("/nowhere"))
METHODS = sorted(
    name
    for name, _ in inspect.getmembers(sparse.Streams, inspect.isfunction)
    if not name.startswith("_")
)


def calls(name: str, hostile: object) -> list[tuple[Any, list[Any], dict[str, Any]]]:
    """Calls of a method with one hostile argument, at every place; the others are right."""
    parameters = list(inspect.signature(getattr(sparse.Streams, name)).parameters.values())[1:]
    found = []
    for wrong in parameters:
        s = sparse.Streams("s")
        crd, ref = s.scan_dense(s.root(), 4)
        values = s.tensor("values", Float(32))
        right = {
            "Stream": crd,
            "Tensor": values,
            "int": 2,
            "str": "n",
            "Side": (crd, ref),
            "Type": Float(32),
            "Sequence[Stream]": [crd, crd],
        }
        given: list[Any] = []
        for one in parameters[: parameters.index(wrong) + 1]:
            value = hostile if one is wrong else right.get(str(one.annotation))
            match one.kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    given += [value, value]
                case inspect.Parameter.KEYWORD_ONLY | inspect.Parameter.VAR_KEYWORD:
                    pass
                case _:
                    given.append(value)
        by_name = wrong.kind is inspect.Parameter.KEYWORD_ONLY
        found.append((getattr(s, name), given, {wrong.name: hostile} if by_name else {}))
    return found


@sampled("name", METHODS, quick=10)
def test_every_argument_of_every_method(name: str) -> None:
    for hostile in HOSTILE:
        for method, given, named in calls(name, hostile):
            try:
                method(*given, **named)
            except InternalError:
                raise AssertionError(f"internal error after {given} {named}") from None
            except t2s.errors.T2SError:
                pass
            except TypeError as error:
                if "required argument" not in str(error):
                    raise AssertionError(f"{error!r} after {given} {named}") from error


@pytest.mark.parametrize("function", [sparse.to_scipy, sparse.to_pydata])
def test_what_is_no_sparse_tensor(function: Any) -> None:
    for given in ("A", 3, None, np.eye(2), 2j):
        with pytest.raises(t2s.errors.UserError, match="is not a sparse tensor"):
            function(given)


@pytest.mark.parametrize("function", [sparse.tensor, sparse.from_dense])
def test_what_is_no_format(function: Any) -> None:
    for format in (np.int64(3), np.eye(2), "A"):
        with pytest.raises(t2s.errors.UserError, match=r"must be a format|unknown level kind A"):
            function(np.eye(2), format)
