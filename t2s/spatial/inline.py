"""Inlining of Funcs without updates: their value takes the place of their reads."""

from __future__ import annotations

from typing import cast

from t2s.core.expr import Expr, Read, substitute
from t2s.core.walk import Term, rebuild
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
    return kernel.rewritten(lambda expr: inline(expr, pure))


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
