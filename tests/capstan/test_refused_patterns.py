"""What Capstan refuses, and the whole text of each error but for the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s.core.errors import UserError
from t2s.sparse import MIN_PLUS, Schedule, Tensor, compile, csc, csr, dense, make_format

i, j, k = (t2s.Var(name) for name in "ijk")


def _spmv(schedule: Schedule | None = None, format: Any = csr, **options: Any) -> Any:
    a, x, y = Tensor("A", format), Tensor("x", dense(1)), Tensor("y", dense(1))
    y[i] = a[i, j] * x[j]
    return compile(y, schedule, target="capstan", **options)


def _product() -> tuple[Tensor, Any]:
    a, b = Tensor("A", csr), Tensor("B", csr)
    a[i, j] = b[i, j] + b[i, j]
    return a, b


def _quotient() -> Any:
    a, b, c = (Tensor(name, dense(1)) for name in "ABC")
    a[i] = b[i] / c[i]
    return compile(a, target="capstan")


def _diagonal() -> Any:
    y, a = Tensor("y", dense(1)), Tensor("A", dense(2))
    y[i] = a[i, i]
    return compile(y, target="capstan")


def _result_on_chip() -> Any:
    y, a = Tensor("y", dense(1).on_chip), Tensor("A", dense(1))
    y[i] = a[i]
    return compile(y, target="capstan")


def _precomputed(part: Callable[[Any, Any], Any], workspace: Any, over: Any) -> Any:
    y, a, x = Tensor("y", dense(1)), Tensor("A", dense(2)), Tensor("x", dense(1))
    y[i] = a[i, j] * x[j]
    return compile(y, Schedule().precompute(part(a, x), workspace, over), target="capstan")


def _outer_sum() -> Any:
    a, b, c = Tensor("A", "ss"), Tensor("B", "sss"), Tensor("c", dense(1))
    a[i, j] = b[k, i, j] * c[k]
    return compile(a, target="capstan")


def _wide_scan() -> Any:
    a, b, c = (Tensor(name, "s") for name in "ABC")
    a[i] = b[i] + c[i]
    wide = np.zeros(70000, np.int32)
    return compile(a, target="capstan").interpret({"B": wide, "C": wide})


def _long_vector() -> Any:
    inputs = {"A": np.zeros((1, 70000), np.int32), "x": np.zeros(70000, np.int32)}
    return _spmv().interpret(inputs)


def _large_matrix() -> Any:
    a, b = Tensor("A", csr), Tensor("B", csr)
    c, d = Tensor("C", dense(2)), Tensor("D", dense(2, (1, 0)))
    a[i, j] = b[i, j] * c[i, k] * d[k, j]
    schedule = Schedule().precompute(c[i, k], Tensor("Con", dense(2).on_chip), over=(i, k))
    square = np.zeros((1024, 1024), np.int32)
    return compile(a, schedule, target="capstan").interpret(dict.fromkeys("BCD", square))


def _long_fiber() -> Any:
    a, b, c = Tensor("A", "ss"), Tensor("B", "sss"), Tensor("c", dense(1))
    a[i, j] = b[i, j, k] * c[k]
    inputs = {"B": np.ones((1, 70000, 1), np.int32), "c": np.ones(1, np.int32)}
    return compile(a, target="capstan").interpret(inputs)


def _on_streams() -> Any:
    y, a = Tensor("y", dense(1)), Tensor("A", dense(1))
    y[i] = a[i]
    return compile(y, Schedule().parallel(i, "foreach"))


def _place_on_streams() -> Any:
    y, a = Tensor("y", dense(1)), Tensor("A", dense(1).on_chip)
    y[i] = a[i]
    return compile(y)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "pattern": (
        lambda: Schedule().parallel(j, "scan"),
        "unknown pattern 'scan'|expected: one of foreach, reduction",
    ),
    "factor": (
        lambda: Schedule().parallel(j, "reduction", 0),
        "the factor of a pattern is a positive integer|expected: iterations at a time, 1 or more"
        "|given:    0",
    ),
    "environment": (
        lambda: Schedule().env("op", 2),
        "unknown environment variable 'op'|expected: one of bp, outer_par, ip, inner_par, sp,"
        " scan_par",
    ),
    "no partitions": (
        lambda: Schedule().environment(outer_par=0),
        "the environment variable outer_par is a positive integer|expected: iterations at a time,"
        " 1 or more|given:    0",
    ),
    "lanes": (
        lambda: Schedule().environment(inner_par=32),
        "inner_par is more than the lanes of a vector unit|expected: 1 to 16|given:    32",
    ),
    "twice": (
        lambda: _spmv(Schedule().env("bp", 2).environment(outer_par=3)),
        "bp is set twice|expected: one value for bp|note:     the first time is here",
    ),
    "no loop": (
        lambda: _spmv(Schedule().parallel(k, "reduction")),
        "parallel names k, which is not a loop|expected: one of i, j",
    ),
    "no sum": (
        lambda: _spmv(Schedule().parallel(i, "reduction")),
        "the loop over i is not a sum into a scalar|expected: a loop that the result does not have,"
        " inside of those that it has|given:    y(i)",
    ),
    "sum": (
        lambda: _spmv(Schedule().accelerate(j, "foreach")),
        "the iterations over j are added up|expected: accelerate('j', 'reduction')"
        "|given:    accelerate('j', 'foreach')",
    ),
    "wide": (
        lambda: _spmv(Schedule().parallel(j, "reduction", 32)),
        "the innermost loop over j takes more iterations than there are lanes|expected: 1 to 16"
        " iterations at a time|given:    parallel('j', 'reduction', 32)|hint:    "
        " environment(outer_par=...) makes copies of what is inside of the outermost loop",
    ),
    "promote": (
        lambda: compile(_product()[0], Schedule().promote_sums(), target="capstan"),
        "there is no sum to promote|expected: a variable that the result does not have",
    ),
    "communicate": (
        lambda: _spmv(Schedule().communicate("A", j)),
        "A does not move at the loop over j|expected: the result y, and one of its loops: i"
        "|given:    communicate('A', 'j')",
    ),
    "streams": (
        lambda: _spmv(Schedule().split(i, "i0", "i1", 2)),
        "this directive is for streams, and Capstan does not know it|expected: reorder, precompute,"
        " map, accelerate, environment, promote, communicate",
    ),
    "bits": (
        lambda: _spmv(format="db"),
        "A has bitvector levels, which Capstan's memories have no form for|expected: dense and"
        " compressed levels of whole modes (d, s)|given:    db:0,1|hint:     declare it with"
        " another format: inputs are converted to it",
    ),
    "semiring": (
        lambda: _spmv(semiring=MIN_PLUS),
        "sums and products of this semiring have no reduction pattern yet|expected: plus and times",
    ),
    "quotient": (
        _quotient,
        "there is a / in the expression|expected: additions, subtractions and products",
    ),
    "diagonal": (
        _diagonal,
        "A(i,i) is a diagonal|expected: a variable of its own for each mode",
    ),
    "result on chip": (
        _result_on_chip,
        "y is on chip, where the host can neither fill nor read it|expected: inputs and results off"
        " chip; workspaces on chip|hint:     y moves on chip by precompute or accelerate",
    ),
    "order": (
        lambda: _spmv(Schedule().reorder(j, i)),
        "the loops j, i do not walk A(i,j) as it is stored|expected: loops in which i, j come in"
        " this order|given:    j, i|note:     A(i,j) is stored by i, j|hint:     reorder('i j')",
    ),
    "sum outside": (
        _outer_sum,
        "A(i,j) is added up over k, whose loop is outside of its own|expected: the loops of sums"
        " inside of those of the result, or a dense result|hint:     reorder() the loops",
    ),
    "workspace twice": (
        lambda: _precomputed(lambda a, x: x[j], Tensor("A", dense(1).on_chip), (j,)),
        "there is a tensor A already|expected: a new name for the workspace",
    ),
    "workspace off chip": (
        lambda: _precomputed(lambda a, x: x[j], Tensor("W", dense(1)), (j,)),
        "the workspace W is not on chip|expected: a format on chip, such as dense(1).on_chip"
        "|given:    d:0",
    ),
    "workspace order": (
        lambda: _precomputed(lambda a, x: x[j], Tensor("W", dense(2).on_chip), (j,)),
        "the workspace W has order 2|expected: 2 variables in over|given:    over=('j',)",
    ),
    "workspace variables": (
        lambda: _precomputed(lambda a, x: x[j], Tensor("W", dense(1).on_chip), (i,)),
        "x(j) does not have the variables of W|expected: some of j, each once|given:   "
        " over=('i',)",
    ),
    "workspace part": (
        lambda: _precomputed(lambda a, x: x[i], Tensor("W", dense(1).on_chip), (i,)),
        "the expression has x(i) nowhere|expected: a part of the expression that is there once, as"
        " it is written there|given:    t; A(i,j)*x(j)",
    ),
    "workspace free": (
        lambda: _precomputed(lambda a, x: a[i, j], Tensor("W", dense(1).on_chip), (i,)),
        "A(i,j) also has j, which W does not|expected: over with all of i, j|given:    over=('i',)",
    ),
    "workspace by name": (
        lambda: _precomputed(lambda a, x: x[j], "W", None),
        "the workspace W has no place on the accelerator|expected: a tensor on chip, and its"
        ' variables|hint:     precompute(..., Tensor("W", dense(1).on_chip), over=(k,))',
    ),
    "workspace without over": (
        lambda: _precomputed(lambda a, x: x[j], Tensor("W", dense(1).on_chip), None),
        "the workspace W has no place on the accelerator|expected: a tensor on chip, and its"
        ' variables|hint:     precompute(..., Tensor("W", dense(1).on_chip), over=(k,))',
    ),
    "scan": (
        _wide_scan,
        "the coordinates of i are too large for a scan|expected: an extent of at most 65536"
        "|given:    70000|hint:     dense operands need no scan; joined compressed levels do",
    ),
    "vector": (
        _long_vector,
        "x.vals does not fit into a sparse SRAM|expected: at most 65536 words|given:    70000 words"
        "|hint:     environment(outer_par=...) adds partitions",
    ),
    "matrix": (
        _large_matrix,
        "Con.vals does not fit into a dense SRAM|expected: at most 65536 words|given:    1048576"
        " words|hint:     precompute() brings a part of it on chip inside of a loop",
    ),
    "fiber": (
        _long_fiber,
        "B.pos2 does not fit into a dense SRAM|expected: at most 65536 words for a fiber of the"
        " level above|given:    70001 words|hint:     compute with B in pieces, along the level"
        " above",
    ),
    "type": (
        lambda: _spmv().interpret({"A": np.ones((1, 1)), "x": np.ones(1)}, type=t2s.Int(8)),
        "Capstan computes no values of type int8|expected: one of int32, float32, int64, float64"
        "|hint:     compute in float32: interpret(inputs, type=t2s.Float(32))",
    ),
    "target": (
        lambda: compile(_product()[0], target="plasticine"),
        "unknown target 'plasticine'|expected: streams or capstan",
    ),
    "on streams": (
        _on_streams,
        "this directive is for Capstan, and streams do not know it|expected: directives for streams"
        '|hint:     sparse.compile(..., target="capstan")',
    ),
    "place on streams": (
        _place_on_streams,
        "A is declared on chip, and streams have no such place|expected: formats without a place"
        '|hint:     sparse.compile(..., target="capstan")',
    ),
}


def _text(error: UserError) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    return "|".join(line for line in lines if " | " not in line and not line.startswith("-->"))


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    run, expected = REFUSED[name]
    with pytest.raises(UserError) as found:
        run()
    assert _text(found.value) == expected
    assert found.value.location is not None
    assert found.value.location.file.endswith("test_refused_patterns.py")


def test_a_csc_matrix_is_walked_by_columns() -> None:
    """What the error about the order of loops says works."""
    y, a, x = Tensor("y", dense(1)), Tensor("A", csc), Tensor("x", dense(1))
    y[i] = a[i, j] * x[j]
    kernel = compile(y, target="capstan")
    assert str(kernel).splitlines()[3:5] == ["for j:  # foreach by bp", "  for i:  # foreach by ip"]
    matrix = np.arange(12, dtype=np.int32).reshape(3, 4)
    x_values = np.array([1, 0, 2, 3], np.int32)
    found = kernel.interpret({"A": matrix, "x": x_values})
    np.testing.assert_array_equal(found, matrix @ x_values)
    assert make_format("ds", (1, 0)) == csc
