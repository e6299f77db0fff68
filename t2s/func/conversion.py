"""Types of expressions: literals that take the type of what is beside them, and subscripts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Parameter, Select, apply
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Kind, Type, value_range
from t2s.core.walk import Term, children, rewrite, walk


def type_of_dtype(dtype: np.dtype[Any]) -> Type:
    """The t2s type of a numpy dtype."""
    kinds = {"b": Kind.BOOL, "i": Kind.INT, "u": Kind.UINT, "f": Kind.FLOAT}
    return Type(kinds[dtype.kind], dtype.itemsize * 8)


def retype(node: Expr, target: Type) -> Expr:
    """Give a weakly typed tree the type ``target``."""

    def rule(term: Term) -> Term | None:
        if isinstance(term, Expr) and term.type.weak:
            if isinstance(term, Const) and target.is_float:
                return Const(value=float(term.value), type=target)
            return replace(term, type=target)
        return None

    return rewrite(node, rule)


def convert(node: Expr, target: Type, location: SourceLocation) -> Expr:
    """``node`` as a value of ``target``: literals adopt the type, other values are cast."""
    if node.type == target:
        return node
    if node.type.weak:
        _check_literals(node, target, location)
        return retype(node, target)
    return Cast(value=node, type=target)


def _check_literals(node: Expr, target: Type, location: SourceLocation) -> None:
    for literal in walk(node):
        if not isinstance(literal, Const) or not literal.type.weak:
            continue
        if target.is_integer and not float(literal.value).is_integer():
            raise UserError(
                f"the number {literal.value} is no {target}",
                location=location,
                expected="an integer, or values of a type with fractions",
                given=str(literal.value),
                hint="declare the type, as in Func(name, t2s.Float(32)), or round the number",
            )
        low, high = value_range(target)
        wider = "Float" if target.is_float else "Int"
        if math.isfinite(literal.value) and not low <= literal.value <= high:
            raise UserError(
                f"the number {literal.value} does not fit into {target}",
                location=location,
                expected=f"{low} to {high}",
                given=str(literal.value),
                hint=f"a wider type may hold it: t2s.cast(t2s.{wider}(32), x)",
            )


def as_index(node: Expr, location: SourceLocation) -> Expr:
    """An integer expression in int32, the type of loops, also where numpy's integers are in it.

    ``i + np.int64(1)`` is int64 in numpy, and the same number as ``i + 1``.
    """
    leaves = [term for term in walk(node) if not children(term)]
    if all(_is_index(leaf) for leaf in leaves):
        node = rewrite(node, _narrower)
    return convert(node, INT32, location)


def _is_index(leaf: Term) -> bool:
    if isinstance(leaf, Const):
        return leaf.type.is_bool or (leaf.type.is_integer and -(2**31) <= leaf.value < 2**31)
    return isinstance(leaf, Index | Parameter) and leaf.type == INT32


def _narrower(node: Term) -> Term | None:
    match node:
        case Const(value=value, type=type) if type.is_integer and not type.weak:
            return Const(value=value, type=INT32)
        case Cast(value=value, type=type) if type.is_integer and value.type == INT32:
            return value
        case Apply(operator=operator, operands=operands, type=type) if type != INT32 and all(
            operand.type == INT32 for operand in operands
        ):
            return apply(operator, *operands)
        case Select(if_true=left, if_false=right) if left.type == right.type == INT32:
            return replace(node, type=INT32)
    return None
