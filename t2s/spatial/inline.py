"""Inlining of Funcs without updates: their value takes the place of their reads.

Two reads that the loops choose between become one read of the element that they choose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from t2s.core.expr import Expr, Read, Select, substitute
from t2s.core.isl import is_affine
from t2s.core.walk import Term, rebuild, rewrite
from t2s.func.ir import Function, TemporalProgram
from t2s.spatial.ir import Kernel


def inline_functions(
    program: TemporalProgram, kernel: Kernel, keep: frozenset[str] = frozenset()
) -> Kernel:
    """Replace the reads of pure Funcs, except of those in ``keep``, by what they compute."""
    pure = {
        function.name: function
        for function in program.functions
        if not function.updates
        and function.name not in keep
        and program.system_of(function.name) is None
    }
    return kernel.rewritten(lambda expr: join_choices(program, inline(expr, pure)))


def join_choices(program: TemporalProgram, expr: Expr) -> Expr:
    """``select(c, A[x], A[y])`` as ``A[select(c, x, y)]``, where ``c`` depends on loops only.

    One unit loads both.  Reads of recurrences stay: they are at constant distances.
    """

    def rule(node: Term) -> Term | None:
        match node:
            case Select(condition=test, if_true=Read() as one, if_false=Read() as other) if (
                one.source == other.source
                and program.system_of(one.source) is None
                and all(map(is_affine, (test, *one.indices, *other.indices)))
            ):
                pairs = zip(one.indices, other.indices, strict=True)
                return replace(one, indices=tuple(_chosen(test, a, b) for a, b in pairs))
        return None

    return rewrite(expr, rule)


def _chosen(test: Expr, if_true: Expr, if_false: Expr) -> Expr:
    if if_true == if_false:
        return if_true
    return Select(condition=test, if_true=if_true, if_false=if_false, type=if_true.type)


def inline(expr: Expr, pure: dict[str, Function]) -> Expr:
    """Inline into one expression, transitively."""

    def visit(node: Term) -> Term:
        rebuilt = rebuild(node, visit)
        if isinstance(rebuilt, Read) and rebuilt.source in pure:
            function = pure[rebuilt.source]
            values = dict(zip(function.arguments, rebuilt.indices, strict=True))
            return visit(substitute(function.initial.value, values))
        return rebuilt

    return cast(Expr, visit(expr))
