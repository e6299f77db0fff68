"""Inlining of Funcs without updates: their values replace their reads.

A selection between two reads by loop indices becomes one read of the selected element.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.affine import tidy
from t2s.core.errors import UnsupportedError
from t2s.core.expr import Expr, Read, Select, reads, substitute
from t2s.core.isl import is_affine
from t2s.core.walk import Term, rewrite
from t2s.func.ir import Function, TemporalProgram
from t2s.spatial.ir import SpatialKernel

MOST_INLINED = 20_000
"""Most elements of Funcs that one value may be made of."""

_Key = tuple[str, tuple[Expr, ...]] | None
"""A Func and subscripts, or the expression itself."""


def inline_functions(
    program: TemporalProgram, kernel: SpatialKernel, keep: frozenset[str] = frozenset()
) -> SpatialKernel:
    """Replace the reads of pure Funcs, except those in ``keep``, by their values."""
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

    A single unit then loads both.  Reads of recurrences stay as they are, at constant distances.
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


def _too_many(function: Function) -> UnsupportedError:
    return UnsupportedError(
        f"{function.name} is computed inside of the Funcs that use it, for too many elements",
        location=function.location,
        expected=f"at most {MOST_INLINED:,} different elements of Funcs in one iteration",
        hint="a Func that has an update is kept in memory: write F[i] = 0 and F[i] += ...",
    )


def inline(expr: Expr, pure: Mapping[str, Function]) -> Expr:
    """Inline into one expression, transitively.

    Reads of one Func at equal subscripts become one shared object.
    """
    done: dict[_Key, Expr] = {}
    bodies: dict[_Key, Expr] = {None: expr}
    waiting: list[_Key] = [None]
    while waiting:
        key = waiting[-1]
        missing: list[_Key] = []

        def rule(node: Term, missing: list[_Key] = missing) -> Term | None:
            if not isinstance(node, Read) or node.source not in pure:
                return None
            inner = (node.source, tuple(tidy(index) for index in node.indices))
            if inner in done:
                return done[inner]
            if any(read.source in pure for index in node.indices for read in reads(index)):
                return None
            if inner not in bodies:
                function = pure[node.source]
                values = dict(zip(function.arguments, node.indices, strict=True))
                if len(bodies) > MOST_INLINED:
                    raise _too_many(function)
                bodies[inner] = substitute(function.initial.value, values)
            missing.append(inner)
            return None

        result = rewrite(bodies[key], rule)
        if missing:
            waiting += missing
            continue
        done[key] = result
        while waiting and waiting[-1] in done:
            waiting.pop()
    return done[None]
