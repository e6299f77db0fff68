"""The counts of [Mosaic, Table 5]: pairs of a part and a function, every mapping run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.mosaic.table5 import EXTENTS, PLAIN, PROMOTED, TABLE, statement
from t2s import Float, external
from t2s.capability import reshape
from t2s.capability.match import states
from t2s.capability.tiles import tiles_for
from t2s.libraries.running import RunOfMapping, run_mapping
from t2s.plan.search import candidates, distinct_calls, refusal_of
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import Access, Assignment, TensorDeclaration, accesses
from t2s.sparse_repr.notation.parse import parse_expression
from tests.capability.functions import NINE, THREE
from tests.sampling import sampled

OPENBLAS, MKL, GSL = external.openblas, external.mkl, external.gsl
REAL_NINE = (  # as they are described, whether their libraries are there or not
    *(OPENBLAS.saxpy, OPENBLAS.sdot, OPENBLAS.sgemm, MKL.sdot, MKL.sgemm),
    *(GSL.sdot, GSL.sgemm, GSL.sadd, external.vector.add8),
)


@sampled(("text", "pairs", "promoted", "calls"), TABLE, quick=2)
@pytest.mark.parametrize(
    ("at", "functions"), [(0, THREE), (1, NINE), (0, REAL_NINE[:3]), (1, REAL_NINE)]
)
def test_pairs_of_table_5(
    text: str,
    pairs: tuple[int, int],
    promoted: tuple[int, int],
    calls: tuple[int, int],
    at: int,
    functions: tuple[object, ...],
) -> None:
    found = candidates(statement(text), functions, PLAIN, EXTENTS)  # type: ignore[arg-type]
    assert len({one.pair for one in found}) + 1 == pairs[at]
    assert len(distinct_calls(found)) == calls[at]
    more = candidates(statement(text), functions, PROMOTED, EXTENTS)  # type: ignore[arg-type]
    assert len({one.pair for one in more}) + 1 == promoted[at]


def test_all_searches_try_few_reshapings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is matched in a millisecond: ``benchmarks/mosaic/table5.py`` has the seconds."""
    tried = []

    def counted(*given: Any) -> Any:
        tried.append(given)
        return states(*given)

    monkeypatch.setattr(reshape, "states", counted)
    for text, *_ in TABLE:
        for functions in (THREE, NINE):
            candidates(statement(text), functions, PLAIN, EXTENTS)
    assert 0 < len(tried) <= 1000


def test_why_a_function_computes_nothing_of_a_part() -> None:
    assignment = statement("A(i,j,k) = B(i,j,l) * C(k,l)")
    part = parse_expression("B(i,j,l) * C(k,l)")
    messages = {}
    for function in NINE:
        refusal = refusal_of(assignment, part, function, PLAIN, EXTENTS)
        messages[function.name] = None if refusal is None else refusal.error().given
    assert messages["sdot"] is messages["gsl_dot"] is None
    assert messages["sgemm"] == "y(j,k) would be C(l,k), and is C(k,l)"
    assert messages["add8"] == "a product of 2 factors"


@pytest.mark.parametrize("text", [row[0] for row in TABLE])
def test_every_mapping_is_right(text: str) -> None:
    """On extents that are not alike, where the statement lets them differ."""
    assignment = statement(text)
    extents = {"i": 7, "j": 5, "k": 6, "l": 4}
    if text.count("C(") == 2:  # C stands at (j,k) and at (i,k)
        extents["j"] = extents["i"]
    generator = np.random.default_rng(1)
    arrays = {
        access.tensor: np.asarray(
            generator.integers(-4, 5, [extents[name] for name in access.variables]), np.float32
        )
        for access in accesses(assignment.value)
    }
    for one in candidates(assignment, NINE, PROMOTED, extents):
        for mapping in one.mappings:
            before = {name: array.copy() for name, array in arrays.items()}
            tiles = tiles_for(mapping, extents, pad=True)
            assert tiles is not None
            value = run_mapping(
                RunOfMapping(
                    mapping=mapping,
                    operands={view.name: arrays[view.access.tensor] for view in mapping.operands},
                    kind=Float(32).numpy,
                    tiles=tiles,
                )
            )
            names = {access.tensor: len(access.variables) for access in accesses(mapping.part)}
            declared = [
                TensorDeclaration(name=name, format=dense(order)) for name, order in names.items()
            ]
            result = Access(tensor="W", variables=mapping.variables)
            declared.append(TensorDeclaration(name="W", format=dense(len(mapping.variables))))
            meaning = Assignment(result=result, value=mapping.part, tensors=tuple(declared))
            used = {name: arrays[name] for name in names}
            expected = evaluate(meaning, used, Float(32).numpy)
            assert np.array_equal(value, expected), str(mapping)
            assert all(np.array_equal(arrays[name], before[name]) for name in arrays)
