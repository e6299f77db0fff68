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
    result_of,
)
from t2s.sparse_repr.notation.ir import Access, Sum, accesses


def verify_program(program: ConcreteProgram) -> None:
    """Raise ``InternalError`` unless the program is well formed.

    Every variable of an access is bound by a loop around it, and no loop is repeated inside of
    itself; a temporary is made by a producer around its reader; every level of a tensor that is
    read comes in the order of the loops; every tensor has a storage; sums are loops.
    """
    known = {tensor.name for tensor in program.tensors}
    if len(known) != len(program.tensors):
        raise InternalError("a tensor has two storages")
    for stage in program.stages:
        if any(isinstance(term, Sum) for term in walk(stage)):
            raise InternalError("a sum is left in concrete index notation")
        _verify(program, stage, (), frozenset(known))
    if result_of(program.stages[-1]).tensor != program.written:
        raise InternalError(f"the last stage does not write {program.written}")


def _verify(
    program: ConcreteProgram, statement: Statement, loops: tuple[str, ...], known: frozenset[str]
) -> None:
    match statement:
        case Forall(variable=variable, body=body):
            if variable in loops:
                raise InternalError(f"a loop over {variable} is inside of one")
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
    if not read or access.tensor not in {tensor.name for tensor in program.tensors}:
        return
    format = program.format_of(access.tensor)
    places = [loops.index(access.variables[mode]) for mode in format.modes]
    if places != sorted(places) or len(set(places)) < len(places):
        raise InternalError(f"the loops do not walk the levels of {access.tensor} in order")
