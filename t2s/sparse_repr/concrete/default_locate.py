"""Which dense levels are located into although no directive says so.

A loop that a sparse operand bounds need not walk the dense levels that it is multiplied with: their
scanners bring all coordinates, of which the intersecter keeps those of the sparse operand.  The
locator brings these alone, in the same places, so the loop takes as long as what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from t2s.sparse_repr.concrete.ir import Forall, reads_of
from t2s.sparse_repr.concrete.merge import Both, Either, Leaf, Merge, expression_of, merge_of
from t2s.sparse_repr.concrete.schedule import ScanLevels, Schedule
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access


def located_by_default(
    loop: Forall,
    schedule: Schedule,
    sources: Mapping[str, str],
    formats: Mapping[str, Format],
) -> tuple[str, ...]:
    """The tensors whose level at a loop is located into by default, sorted by name.

    Dense ones in a product whose other factors a sparse level bounds.  A tensor that is also read
    where nothing bounds it is scanned, and so is one of which a ``scan`` says so.  ``sources`` are
    the tensors that views show, by the name of the view; a name without a format is a temporary.
    """

    def is_dense(access: Access) -> bool:
        if access.tensor not in formats:
            return False
        format = formats[access.tensor]
        mode = access.variables.index(loop.variable)
        return format.levels[format.modes.index(mode)].full

    reads = {access for access in reads_of(loop) if loop.variable in access.variables}
    dense = {access for access in reads if is_dense(access)}
    if not dense:
        return ()
    merge = merge_of(expression_of(loop), loop.variable)
    located, scanned = set[str](), set[str]()
    for access, is_bounded in _leaves(merge, dense, bounded=False):
        (located if is_bounded else scanned).add(access.tensor)
    found = located - scanned
    scans = [one for one in schedule.directives if isinstance(one, ScanLevels)]
    return tuple(
        name
        for name in sorted(found)
        if not any(
            one.tensor in ("", name, sources.get(name)) and one.variable in ("", loop.variable)
            for one in scans
        )
    )


def _leaves(merge: Merge, dense: Set[Access], *, bounded: bool) -> Iterator[tuple[Access, bool]]:
    """The dense levels of a merge, and whether it has them at coordinates of sparse ones alone.

    ``bounded``: what is around the merge intersects it with a sparse level.
    """
    match merge:
        case Leaf(access=access) if access in dense:
            yield access, bounded
        case Both(members=members):
            inside = bounded or any(_is_sparse(member, dense) for member in members)
            for member in members:
                yield from _leaves(member, dense, bounded=inside)
        case Either(members=members):
            for member in members:
                yield from _leaves(member, dense, bounded=bounded)


def _is_sparse(merge: Merge, dense: Set[Access]) -> bool:
    """Whether a merge has coordinates of sparse levels alone."""
    match merge:
        case Leaf(access=access):
            return access not in dense
        case Both(members=members):
            return any(_is_sparse(member, dense) for member in members)
        case Either(members=members, everything=everything):
            return not everything and all(_is_sparse(member, dense) for member in members)
        case _:
            return False
