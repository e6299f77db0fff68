"""The rules of expressions: the whole text of each error."""

from __future__ import annotations

import pytest

from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    Index,
    Insert,
    LaneNumbers,
    Parameter,
    Read,
    ReduceLanes,
    Select,
    apply,
    const,
)
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, WEAK_INT, Float, Int, UInt
from t2s.graph.body import Let
from t2s.graph.verify import verify_graph
from tests.graph.changes import (
    less,
    pipeline,
    with_body,
    with_value,
)
from tests.graph.refusal import SCOPE, refuse
from tests.hand_graphs import index

F32 = Float(32)
V4 = INT32.with_lanes(4)


class TestExpressions:
    @pytest.mark.parametrize(
        ("value", "problem", "expected", "given", "hint"),
        [
            (
                Read(source="X", indices=(index("i"),), type=INT32),
                "a graph has no element reads",
                "a Local bound by a Load or a Receive",
                "a read of 'X'",
                "isolate the access into a load unit",
            ),
            (
                const(1, WEAK_INT),
                "the type is weak",
                "a type with a fixed width",
                "1 of type weak int32",
                "Type.strengthened() gives int32",
            ),
            (
                Index(name="j"),
                "the index 'j' is not in scope",
                "one of i",
                "'j'",
                SCOPE.removeprefix("  hint:     "),
            ),
            (
                Index(name="i", type=Int(64)),
                "the index 'i' has the wrong type",
                "int32",
                "int64",
                None,
            ),
            (
                Parameter(name="m", type=INT32),
                "the parameter 'm' is not in scope",
                "one of n",
                "'m'",
                SCOPE.removeprefix("  hint:     "),
            ),
            (
                Parameter(name="n", type=F32),
                "the parameter 'n' has the wrong type",
                "int32",
                "float32",
                None,
            ),
            (
                const(300, UInt(8)),
                "a literal does not fit its type",
                "a value of uint8, 0 to 255",
                "300",
                None,
            ),
            (
                const(-129, Int(8)),
                "a literal does not fit its type",
                "a value of int8, -128 to 127",
                "-129",
                None,
            ),
            (
                const(1.0, INT32),
                "a literal does not fit its type",
                "a value of int32, -2147483648 to 2147483647",
                "1.0",
                None,
            ),
            (const(1, BOOL), "a literal does not fit its type", "a value of bool", "1", None),
            (
                const(True, F32),
                "a literal does not fit its type",
                "a value of float32",
                "True",
                None,
            ),
            (
                Const(value=0, type=V4),
                "a literal is a vector",
                "a literal of type int32 inside a Broadcast",
                "a literal of type int32x4",
                None,
            ),
            (
                Apply(operator=Op.ADD, operands=(index("i"),), type=INT32),
                "operator '+' has the wrong number of operands",
                "2",
                "1",
                None,
            ),
            (
                apply(Op.ADD, index("i"), const(1, Int(8))),
                "operator '+' has operands of different types",
                "equal types",
                "i + 1 of int32 and int8",
                "insert a Cast, or a Broadcast for a scalar beside a vector",
            ),
            (
                apply(Op.DIVIDE, index("i"), index("i")),
                "operator '/' is not defined on int32",
                "floating-point numbers",
                "i / i",
                None,
            ),
            (
                Apply(operator=Op.LESS, operands=(index("i"), index("i")), type=INT32),
                "operator '<' has the wrong type",
                "bool",
                "int32",
                None,
            ),
            (
                Select(condition=index("i"), if_true=index("i"), if_false=index("i"), type=INT32),
                "the condition of Select has the wrong type",
                "bool",
                "int32",
                None,
            ),
            (
                Select(
                    condition=const(True, BOOL),
                    if_true=index("i"),
                    if_false=const(1, Int(8)),
                    type=INT32,
                ),
                "a side of Select has the wrong type",
                "int32",
                "int8",
                None,
            ),
            (
                Cast(value=index("i"), type=V4),
                "Cast has the wrong type",
                "int32",
                "int32x4",
                None,
            ),
            (
                Broadcast(value=index("i"), type=F32.with_lanes(4)),
                "the value of Broadcast has the wrong type",
                "float32",
                "int32",
                None,
            ),
            (
                Broadcast(value=index("i"), type=INT32),
                "Broadcast is not a vector",
                "2 lanes or more",
                "the type int32",
                None,
            ),
            (
                LaneNumbers(type=F32.with_lanes(4)),
                "LaneNumbers are not integers",
                "an integer type",
                "float32x4",
                None,
            ),
            (
                LaneNumbers(type=INT32),
                "LaneNumbers is not a vector",
                "2 lanes or more",
                "the type int32",
                None,
            ),
            (
                Insert(
                    vector=Broadcast(value=index("i"), type=V4),
                    lane=Cast(value=index("i"), type=F32),
                    value=index("i"),
                    type=V4,
                ),
                "the lane of Insert is not an integer",
                "a scalar integer",
                "float32(i) of type float32",
                None,
            ),
            (
                Insert(vector=index("i"), lane=index("i"), value=index("i"), type=INT32),
                "Insert is not a vector",
                "2 lanes or more",
                "the type int32",
                None,
            ),
            (
                LaneNumbers(type=Int(8).with_lanes(129)),
                "a literal does not fit its type",
                "a value of int8, -128 to 127",
                "128",
                None,
            ),
            (
                Insert(
                    vector=Broadcast(value=index("i"), type=V4),
                    lane=index("i"),
                    value=index("i"),
                    type=INT32.with_lanes(2),
                ),
                "the vector of Insert has the wrong type",
                "int32x2",
                "int32x4",
                None,
            ),
            (
                Insert(
                    vector=Broadcast(value=index("i"), type=V4),
                    lane=index("i"),
                    value=Cast(value=index("i"), type=F32),
                    type=V4,
                ),
                "the value of Insert has the wrong type",
                "int32",
                "float32",
                None,
            ),
            (
                ReduceLanes(operator=Op.ADD, value=index("i"), type=INT32),
                "the value of ReduceLanes is not a vector",
                "2 lanes or more",
                "the type int32",
                None,
            ),
            (
                ReduceLanes(
                    operator=Op.ADD, value=Broadcast(value=index("i"), type=V4), type=Int(64)
                ),
                "ReduceLanes has the wrong type",
                "int32",
                "int64",
                None,
            ),
            (
                ReduceLanes(
                    operator=Op.SUBTRACT, value=Broadcast(value=index("i"), type=V4), type=INT32
                ),
                "ReduceLanes by '-', which is not associative",
                "an associative operator",
                "reduce_lanes('-', broadcast(i, 4))",
                None,
            ),
        ],
    )
    def test_ill_formed(
        self,
        value: Apply,
        problem: str,
        expected: str,
        given: str,
        hint: str | None,
    ) -> None:
        refuse(
            with_value(pipeline(), value),
            f"node 'sum': the value of Let of 'total': {problem}",
            "  --> design.py:2",
            f"  expected: {expected}",
            f"  given:    {given}",
            *([f"  hint:     {hint}"] if hint else []),
        )

    def test_a_vector_select_takes_a_scalar_or_a_vector_condition(self) -> None:
        vector = Broadcast(value=index("i"), type=V4)
        for condition in (less(index("i"), const(2)), less(vector, vector)):
            chosen = Select(condition=condition, if_true=vector, if_false=vector, type=V4)
            verify_graph(with_body(pipeline(), "sum", Let(target="wide", value=chosen)))
