"""Concrete index notation as text."""

from __future__ import annotations

from collections.abc import Iterator

from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    View,
    Where,
    result_of,
)
from t2s.sparse_repr.notation.ir import print_expression


def print_program(program: ConcreteProgram) -> str:
    """All stages, with the views and splits they need."""
    lines = [f"{s.variable} = {s.factor}*{s.outer} + {s.inner}" for s in program.splits]
    lines += [_view(program, view) for view in program.views]
    for stage in program.stages:
        lines += _lines(stage, 0)
    return "".join(f"{line}\n" for line in lines)


def print_statement(statement: Statement) -> str:
    """One stage."""
    return "".join(f"{line}\n" for line in _lines(statement, 0))


def _view(program: ConcreteProgram, view: View) -> str:
    why = "; ".join(view.reasons)
    if view.source == program.result and view.name == program.written:
        return f"{view.source} is converted from {view.name}, stored as {view.format}: {why}"
    return f"{view.name} is {view.source} stored as {view.format}: {why}"


def _lines(statement: Statement, depth: int) -> Iterator[str]:
    indent = "  " * depth
    match statement:
        case Assign(result=result, value=value, accumulate=accumulate):
            sign = "+=" if accumulate else "="
            yield f"{indent}{print_expression(result)} {sign} {print_expression(value)}"
        case Forall(variable=variable, body=body, by_default=chosen, lanes=lanes):
            located = [name for name in statement.located if name not in chosen]
            notes = [f"fused with the loop around it: {statement.fused}"] if statement.fused else []
            notes += [f"locate {', '.join(located)}"] if located else []
            notes += [f"locate {', '.join(chosen)}, by default"] if chosen else []
            notes += ["skip"] if statement.skip else []
            notes += [f"{statement.vector} at once"] if statement.vector else []
            turn = f" of {statement.run} at a time" if statement.run > 1 else ""
            notes += [f"{lanes} lanes{turn}"] if lanes > 1 else []
            note = f"  # {'; '.join(notes)}" if notes else ""
            yield f"{indent}for {variable}:{note}"
            yield from _lines(body, depth + 1)
        case Where(consumer=consumer, producer=producer):
            yield f"{indent}with {print_expression(result_of(producer))}:"
            yield from _lines(producer, depth + 1)
            yield from _lines(consumer, depth)
