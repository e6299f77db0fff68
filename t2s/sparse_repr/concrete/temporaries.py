"""How temporaries between stages are stored, where the user does not say it.

The levels of a temporary come in the order of the loops that read it.  A level is dense where it is
full by construction: its stage visits all coordinates, in all iterations around.  Where that is
nearly so, because the stage sums over a sparse operand that may have empty rows, the outermost
level is dense, and inner ones are if another sparse operand bounds a loop that reads the temporary.
A call may show that many rows are empty: then those that are scanned are compressed.
The outermost level is dense also where that one bounds its own loop, inside of other loops: then
the temporary is located into, and not scanned again in every iteration around.  All other levels
are compressed, and so is one where a ``skip`` asks for an intersection.

A dense array that is not full has zeros where nothing was computed.  A compressed temporary that is
computed from it would store what becomes of them, and later stages would visit that: a call with
finite operands drops these zeros.

If a sparse input bounds all loops over compressed levels, a dense array is looked up faster than
levels are intersected.  It takes room, so whether it is one depends on the sizes in a call.
Another temporary does not do as the bound: which of two has fewer entries is known when they are
computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from t2s.core.ops import Op
from t2s.core.walk import walk
from t2s.sparse_repr.concrete.access import bounded_leaves
from t2s.sparse_repr.concrete.merge import (
    Both,
    Leaf,
    is_full,
    is_unbounded,
    lose_partial,
    merge_of,
    without_sums,
)
from t2s.sparse_repr.formats import Format, Part
from t2s.sparse_repr.levels import Compressed, Dense, Level
from t2s.sparse_repr.notation.ir import Access, Assignment, Choice, Combine, Sum, Unary, accesses
from t2s.sparse_repr.semiring import PLUS_TIMES

LoopsOf = Callable[[Assignment], Sequence[str]]
"""The whole variables of the loops of an assignment, outermost first, as formats are so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fullness:
    """The variables along which a temporary is full, or ``nearly`` so.

    It is not where the ``partial`` operands that its stage sums over have empty rows.
    ``everything``: its stage sums over all coordinates of a variable.  Then zeros come out also
    where nothing is stored, so it stores all coordinates.
    """

    full: frozenset[str]
    nearly: bool
    everything: bool
    partial: tuple[Access, ...] = ()

    def leaves_gaps(self, access: Access) -> bool:
        """Whether the stage may have computed nothing for some coordinates of the temporary."""
        return not self.everything and (self.nearly or not self.full.issuperset(access.variables))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChoices:
    """The temporaries about which a call decides.

    ``roomy``: they would be looked up faster in a dense array.  ``padded``: they are compressed,
    and store zeros only because a dense array was looked up where nothing was computed.  ``rows``
    are inputs, by the temporary whose dense rows are empty where theirs are.
    """

    roomy: frozenset[str]
    padded: frozenset[str]
    rows: Mapping[str, tuple[str, ...]]


def choose_formats(
    assignments: Sequence[Assignment],
    undecided: Mapping[str, Sequence[Level] | None],
    formats: dict[str, Format],
    loops_of: LoopsOf,
    skipped: Set[str],
    dense: Set[str],
    hollow: Set[str],
) -> CallChoices:
    """Replace the formats of the ``undecided`` results of assignments, which are in order.

    Before that they are dense, so that they go with any order of loops.  Of some the user says the
    levels, and not which mode each of them stores.  In the loops over ``skipped`` variables
    compressed levels are intersected.  Those of ``dense`` have room for a dense array, and many
    rows of the ``hollow`` ones are empty.
    """
    roomy: set[str] = set()
    gaps: set[str] = set()
    rows: dict[str, tuple[str, ...]] = {}
    known: dict[str, _Fullness] = {}

    def level_is_full(access: Access, variable: str) -> bool:
        if access.tensor in known:
            return variable in known[access.tensor].full
        format = formats[access.tensor]
        mode = access.variables.index(variable)
        pairs = zip(format.levels, format.parts, strict=True)
        return all(level.full for level, part in pairs if part.mode == mode)

    def given_level_is_full(access: Access, variable: str) -> bool:
        return access.tensor in undecided or level_is_full(access, variable)

    def is_nearly_full(access: Access) -> bool:
        return access.tensor in known and known[access.tensor].nearly

    for step in assignments:
        if step.result.tensor in undecided:
            order = loops_of(step)
            known[step.result.tensor] = _fullness(step, order, level_is_full, is_nearly_full)
            formats[step.result.tensor] = _format(step.result, order, lambda *_: True)
    for step in reversed(assignments):
        order = loops_of(step)
        for access in dict.fromkeys(accesses(step.value)):
            if access.tensor not in known:
                continue
            fullness, declared_levels = known.pop(access.tensor), undecided[access.tensor]
            bounded = {v for v in access.variables if _is_bounded(step, access, v, level_is_full)}
            bounded_by_given = {
                v for v in access.variables if _is_bounded(step, access, v, given_level_is_full)
            }
            decided = _format(
                access, order, _dense_levels(fullness, order, bounded, skipped, False)
            )
            sparser = _format(access, order, _dense_levels(fullness, order, bounded, skipped, True))
            if declared_levels is not None:
                decided = replace(decided, levels=tuple(declared_levels))
            elif sparser != decided and access.tensor in hollow:
                decided = sparser
            elif sparser != decided:
                outermost = access.variables[decided.modes[0]]
                given_rows = (
                    read.tensor
                    for read in fullness.partial
                    if read.tensor not in undecided and _has_rows(read, formats, outermost)
                )
                rows[access.tensor] = tuple(given_rows)
            elif (
                step is assignments[-1] or all(o.full for o in formats[step.result.tensor].levels)
            ) and _is_looked_up(step, access, decided, bounded_by_given - skipped):
                roomy.add(access.tensor)
                if access.tensor in dense:
                    decided = _format(access, order, lambda *_: True)
            formats[access.tensor] = decided
            if all(level.full for level in decided.levels) and fullness.leaves_gaps(access):
                gaps.add(access.tensor)
    padded: set[str] = set()
    for assignment in assignments[:-1]:
        name, levels = assignment.result.tensor, formats[assignment.result.tensor].levels
        chosen = undecided.get(name, ()) is None and assignment.semiring == PLUS_TIMES
        looked_up = any(access.tensor in gaps for access in accesses(assignment.value))
        if chosen and looked_up and levels and not levels[-1].full:
            padded.add(name)
    return CallChoices(roomy=frozenset(roomy), padded=frozenset(padded), rows=rows)


def _has_rows(access: Access, formats: Mapping[str, Format], variable: str) -> bool:
    """Whether a matrix is stored by compressed rows, one for each coordinate of a variable."""
    format = formats[access.tensor]
    if format.order != 2 or not format.plain:
        return False
    outer, inner = format.levels
    return outer.full and inner == Compressed() and access.variables[format.modes[0]] == variable


def _is_looked_up(
    assignment: Assignment, access: Access, format: Format, bounded: Set[str]
) -> bool:
    """Whether a dense array in place of a format would be read at the same points, and as zeros.

    That is so if it is a factor, once, and another operand has the coordinates of each compressed
    level.
    """
    pairs = list(zip(format.levels, format.parts, strict=True))
    compressed = {access.variables[part.mode] for level, part in pairs if not level.full}
    outside = [term for term in walk(assignment.value) if not _is_linear(term)]
    inside = [other for term in outside for other in accesses(term)]
    reads = [other for other in accesses(assignment.value) if other.tensor == access.tensor]
    alone = len(reads) == 1 and access not in inside and assignment.semiring == PLUS_TIMES
    return alone and bool(compressed) and compressed <= bounded


def _is_linear(term: object) -> bool:
    """Whether zeros for what is not stored change nothing in a part of an expression."""
    match term:
        case Combine(operator=operator):
            return operator in (Op.ADD, Op.SUBTRACT, Op.MULTIPLY)
    return not isinstance(term, Unary | Choice)


def _dense_levels(
    fullness: _Fullness, order: Sequence[str], bounded: Set[str], skipped: Set[str], hollow: bool
) -> Callable[[int, Sequence[str]], bool]:
    """Whether the level of some number of a temporary is dense, when its levels are of names.

    ``bounded`` are variables of which another sparse operand has the coordinates.  ``hollow``: many
    rows are empty.
    """

    def is_dense(number: int, names: Sequence[str]) -> bool:
        name = names[number]
        if name in bounded & skipped:
            return False
        outermost = number == 0
        scanned = name not in bounded if hollow else not bounded
        rows_may_be_empty = fullness.nearly and scanned and not outermost
        fills = set(names[: number + 1]) <= fullness.full and not rows_may_be_empty
        repeated = name in bounded and outermost and order[0] != name
        return fullness.everything or fills or repeated

    return is_dense


def _format(
    access: Access, order: Sequence[str], is_dense: Callable[[int, Sequence[str]], bool]
) -> Format:
    names = sorted(access.variables, key=list(order).index)
    levels: list[Level] = [
        Dense() if is_dense(number, names) else Compressed() for number in range(len(names))
    ]
    parts = tuple(Part(mode=access.variables.index(name)) for name in names)
    return Format(levels=tuple(levels), parts=parts)


def _fullness(
    assignment: Assignment,
    order: Sequence[str],
    level_is_full: Callable[[Access, str], bool],
    is_nearly_full: Callable[[Access], bool],
) -> _Fullness:
    value = without_sums(assignment.value)
    sums = [term for term in walk(assignment.value) if isinstance(term, Sum)]
    summed = {name for term in sums for name in term.variables}
    missing: set[Access] = set()
    full: set[str] = set()
    partial: list[Access] = []
    everything = bool(sums) and not isinstance(assignment.value, Sum)
    nearly = any(is_nearly_full(access) for access in accesses(value))
    for variable in order:
        merge = merge_of(value, variable, assignment.semiring)
        members = merge.members if isinstance(merge, Both) else (merge,)
        filling = [is_full(member, variable, level_is_full, missing) for member in members]
        if variable in summed:
            everything = everything or is_unbounded(merge)
            nearly = nearly or not all(filling)
            pairs = zip(members, filling, strict=True)
            partial += [m.access for m, fills in pairs if isinstance(m, Leaf) and not fills]
            if filling.count(False) > 1:
                return _Fullness(full=frozenset(), nearly=True, everything=everything)
        elif all(filling):
            full.add(variable)
        lose_partial(merge, variable, level_is_full, missing)
    return _Fullness(
        full=frozenset(full), nearly=nearly, everything=everything, partial=tuple(partial)
    )


def _is_bounded(
    assignment: Assignment,
    access: Access,
    variable: str,
    level_is_full: Callable[[Access, str], bool],
) -> bool:
    """Whether another sparse operand has the coordinates at which an access is read."""
    merge = merge_of(without_sums(assignment.value), variable, assignment.semiring)
    dense = {
        other
        for other in accesses(assignment.value)
        if variable in other.variables and (other == access or level_is_full(other, variable))
    }
    return any(bounded for leaf, bounded in bounded_leaves(merge, dense) if leaf == access)


def whole_variables(order: Sequence[str], parts: Mapping[str, str]) -> tuple[str, ...]:
    """The variables of loops, split ones where their first part is; ``parts`` says of which."""

    def whole(name: str) -> str:
        return whole(parts[name]) if name in parts else name

    return tuple(dict.fromkeys(map(whole, order)))
