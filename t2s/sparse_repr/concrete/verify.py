"""What concrete index notation promises to what reads it."""

from __future__ import annotations

from t2s.core.errors import InternalError
from t2s.core.walk import walk
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    Where,
    reads_of,
    result_of,
)
from t2s.sparse_repr.notation.ir import Access, Sum, accesses


def verify_program(program: ConcreteProgram) -> None:
    """Raise ``InternalError`` unless the program is well formed.

    Every variable of an access is bound by a loop around it, and no loop is repeated inside of
    itself; a temporary is made by a producer around its reader; every level of a tensor that is
    read comes in the order of the loops; every tensor has a storage; sums are loops, and what they
    add up accumulates.  Notes of loops and views and splits are about what is there.
    """
    known = {tensor.name for tensor in program.tensors}
    _require(len(known) == len(program.tensors), "a tensor has two storages")
    _require(bool(program.stages), "there are no stages")
    for stage in program.stages:
        _require(
            not any(isinstance(term, Sum) for term in walk(stage)),
            "a sum is left in concrete index notation",
        )
        _verify(program, stage, (), frozenset(known))
        _verify_sums(stage, ())
    last = result_of(program.stages[-1]).tensor
    _require(last == program.written, f"the last stage does not write {program.written}")
    made = {view.name: view.source for view in program.views}
    result = made.get(program.written, program.written)
    _require(result == program.result, f"{program.written} is not stored for {program.result}")
    for view in program.views:
        fits = view.name in known and program.format_of(view.name) == view.format
        fits = fits and len(view.parts) == view.format.order
        _require(fits, f"the view {view.name} is not stored as it says")
    for split in program.splits:
        fits = split.factor > 0 and len({split.variable, split.outer, split.inner}) == 3
        _require(fits, f"the split of {split.variable} has no parts")


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise InternalError(otherwise)


def _verify_sums(statement: Statement, summed: tuple[str, ...]) -> None:
    """``summed`` are the loops since the result of the statement came into being."""
    match statement:
        case Forall(variable=variable, body=body):
            _verify_sums(body, (*summed, variable))
        case Where(consumer=consumer, producer=producer):
            _verify_sums(producer, ())
            _verify_sums(consumer, summed)
        case Assign(result=result, accumulate=accumulate):
            adds_up = not set(summed) <= set(result.variables)
            _require(accumulate or not adds_up, f"{result.tensor} is overwritten in a loop")


def _verify_notes(loop: Forall) -> None:
    """What a loop says about itself fits the loop."""
    name = loop.variable
    fits = loop.lanes > 0 and loop.run > 0 and loop.vector >= 0
    _require(fits, f"the loop over {name} has no lanes")
    inside = any(isinstance(term, Forall) for term in walk(loop.body))
    _require(not (loop.vector and inside), f"vectors of {name} are not innermost")
    at = {access.tensor for access in reads_of(loop) if name in access.variables}
    _require(set(loop.located) <= at, f"nothing locates into a level at {name}")
    _require(set(loop.by_default) <= set(loop.located), f"what is located at {name} is not noted")


def _verify(
    program: ConcreteProgram, statement: Statement, loops: tuple[str, ...], known: frozenset[str]
) -> None:
    match statement:
        case Forall(variable=variable, body=body):
            _require(variable not in loops, f"a loop over {variable} is inside of one")
            _verify_notes(statement)
            _verify(program, body, (*loops, variable), known)
        case Where(consumer=consumer, producer=producer):
            made = result_of(producer).tensor
            if made in known:
                raise InternalError(f"the temporary {made} is made twice")
            _verify(program, producer, loops, known | {made})
            _verify(program, consumer, loops, known | {made})
        case Assign(result=result, value=value):
            for access in (result, *accesses(value)):
                _verify_access(program, access, loops, known, read=access is not result)


def _verify_access(
    program: ConcreteProgram,
    access: Access,
    loops: tuple[str, ...],
    known: frozenset[str],
    *,
    read: bool,
) -> None:
    if access.tensor not in known:
        raise InternalError(f"nothing stores {access.tensor}")
    free = [name for name in access.variables if name not in loops]
    if free:
        raise InternalError(f"no loop binds {', '.join(free)} of {access.tensor}")
    if access.tensor not in {tensor.name for tensor in program.tensors}:
        return
    format = program.format_of(access.tensor)
    fits = len(access.variables) == format.order
    _require(fits, f"{access.tensor} is not of order {len(access.variables)}")
    if not read:
        return
    if program.environment and all(level.full for level in format.levels):
        return  # dense tensors have addresses, in whatever order they are read
    places = [loops.index(access.variables[mode]) for mode in format.modes]
    if places != sorted(places) or len(set(places)) < len(places):
        raise InternalError(f"the loops do not walk the levels of {access.tensor} in order")
