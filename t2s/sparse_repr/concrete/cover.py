"""Which loops visit every coordinate of their variable, whatever is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.core.walk import rewrite, walk
from t2s.sparse_repr.concrete.merge import Both, Either, Everything, Leaf, Merge, merge_of
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, Expression, Sum, accesses


def covered_loops(
    value: Expression, order: Sequence[str], formats: Mapping[str, Format]
) -> tuple[str, ...]:
    """The outermost loops, as many as visit all coordinates in all iterations around them.

    ``value`` may have sums; ``formats`` are those in which its tensors are read.
    """
    missing: set[Access] = set()
    found: list[str] = []
    for variable in order:
        if any(variable in term.variables for term in _sums(value)):
            break
        merge = merge_of(_without_sums(value), variable)
        if not _full(merge, variable, formats, missing):
            break
        _lose(merge, variable, formats, missing)
        found.append(variable)
    return tuple(found)


def _sums(value: Expression) -> list[Sum]:
    return [term for term in walk(value) if isinstance(term, Sum)]


def _without_sums(value: Expression) -> Expression:
    return rewrite(value, lambda term: term.value if isinstance(term, Sum) else None)


def _full(merge: Merge, variable: str, formats: Mapping[str, Format], missing: set[Access]) -> bool:
    match merge:
        case Everything():
            return True
        case Leaf(access=access):
            format = formats[access.tensor]
            level = format.modes.index(access.variables.index(variable))
            return format.levels[level].full and access not in missing
        case Both(members=members):
            return all(_full(member, variable, formats, missing) for member in members)
        case Either(members=members, everything=everything):
            return everything or any(_full(m, variable, formats, missing) for m in members)


def _lose(merge: Merge, variable: str, formats: Mapping[str, Format], missing: set[Access]) -> None:
    """Remember the operands that are not there at every coordinate."""
    match merge:
        case Both(members=members):
            for member in members:
                _lose(member, variable, formats, missing)
        case Either(members=members):
            for member in members:
                if not _full(member, variable, formats, missing):
                    missing |= set(accesses(member))
                else:
                    _lose(member, variable, formats, missing)
        case _:
            return
