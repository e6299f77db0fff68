"""From isl's sets and piecewise functions back to expressions.

isl's AST generator writes conditions and functions in terms of named parameters, simplified by what
is known of the context.  The functions here read that syntax tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Index, Select, apply, const, simplify
from t2s.core.ops import Op

_BINARY: Mapping[str, Op] = {
    "and_": Op.AND,
    "and_then": Op.AND,
    "or_": Op.OR,
    "or_else": Op.OR,
    "max": Op.MAXIMUM,
    "min": Op.MINIMUM,
    "add": Op.ADD,
    "sub": Op.SUBTRACT,
    "mul": Op.MULTIPLY,
    "div": Op.FLOOR_DIVIDE,
    "fdiv_q": Op.FLOOR_DIVIDE,
    "pdiv_q": Op.FLOOR_DIVIDE,
    "pdiv_r": Op.MODULO,
    "zdiv_r": Op.MODULO,
    "eq": Op.EQUAL,
    "le": Op.LESS_EQUAL,
    "lt": Op.LESS,
    "ge": Op.GREATER_EQUAL,
    "gt": Op.GREATER,
}


class AstReader:
    """Reads expressions of isl's AST; ``names`` maps isl's identifiers to indices."""

    def __init__(self, islpy: Any, names: Mapping[str, str]) -> None:
        self._types = islpy.ast_expr_type
        self._names = names
        self._operators = {
            getattr(islpy.ast_expr_op_type, name): operator
            for name, operator in _BINARY.items()
            if hasattr(islpy.ast_expr_op_type, name)
        }
        operations = islpy.ast_expr_op_type
        self._choices = (operations.cond, operations.select)
        self._minus = operations.minus

    def read(self, ast: Any) -> Expr:
        """The expression, with constants and identities folded."""
        return simplify(self._read(ast))

    def _read(self, ast: Any) -> Expr:
        kind = ast.get_type()
        if kind == self._types.int:
            return const(int(ast.get_val().to_python()))
        if kind == self._types.id:
            return Index(name=self._names[ast.get_id().name])
        operation = ast.op_get_type()
        operands = [self._read(ast.op_get_arg(at)) for at in range(ast.op_get_n_arg())]
        if operation in self._choices:
            condition, if_true, if_false = operands
            return Select(
                condition=condition, if_true=if_true, if_false=if_false, type=if_true.type
            )
        if operation == self._minus:
            return apply(Op.SUBTRACT, const(0), operands[0])
        if operation not in self._operators:
            raise InternalError(f"isl wrote an operation of an unknown kind: {ast.to_C_str()}")
        return _chain(self._operators[operation], operands)


def _chain(operator: Op, operands: Sequence[Expr]) -> Expr:
    result = operands[0]
    for operand in operands[1:]:
        result = apply(operator, result, operand)
    return result
