"""How a stage reads a tensor: as stored or as a view in loop order, located or scanned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from t2s.sparse_repr.concrete.ir import Forall, SplitLoop, reads_of
from t2s.sparse_repr.concrete.merge import Both, Either, Leaf, Merge, merge_at
from t2s.sparse_repr.concrete.schedule import ScanLevels, Schedule
from t2s.sparse_repr.formats import Format, Part
from t2s.sparse_repr.levels import Compressed, Dense, Level
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.semiring import Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An access by parts: its variables, the part of a mode that each is, and their format.

    ``format`` has one mode for each variable.  ``reasons`` explain differences to the user's
    storage.
    """

    variables: tuple[str, ...]
    parts: tuple[tuple[Part, ...], ...]
    format: Format
    reasons: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[str, ...]:
        """The variable of every level."""
        return tuple(self.variables[mode] for mode in self.format.modes)

    @property
    def all_dense(self) -> bool:
        """Whether every level is dense."""
        return all(level.full for level in self.format.levels)


def as_scanned(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """The levels, with compressed ones in place of those that blocks cannot scan directly.

    Below a level that repeats a coordinate a singleton holds a part of a fiber: both become
    compressed, unless they are the whole tensor (COO).
    """
    parts = tuple(Part(mode=mode) for mode in range(len(levels)))
    if Format(levels=levels, parts=parts).coordinate_list:
        return levels
    repeats = not all(level.unique for level in levels)

    def kept(level: Level) -> bool:
        return level.scanned and not (repeats and level.branchless)

    return tuple(level if kept(level) else Compressed() for level in levels)


def stored_access(
    access: Access, format: Format, splits: Sequence[SplitLoop], lane: str = ""
) -> Stored:
    """The access by the variables after splits, in the tensor's own order of levels.

    The level at ``lane``, over the lanes of vectors, is the innermost one, and dense.
    """
    variables: list[str] = []
    parts: list[list[Part]] = []
    for mode, name in enumerate(access.variables):
        for part, variable in _split_parts(mode, name, splits):
            if variable in variables:
                parts[variables.index(variable)].append(part)
            else:
                variables.append(variable)
                parts.append([part])
    frozen = tuple(tuple(group) for group in parts)
    reasons = []
    if len(set(access.variables)) < len(access.variables):
        reasons.append("a diagonal")
    last = variables.index(lane) if lane in variables else None
    levels, modes = _own_levels(format, frozen)
    if modes is not None and last is not None:
        in_place = modes[-1] == last and levels[-1].full
        modes = modes if in_place else None
    if modes is None:
        if not reasons:
            reasons.append("levels for the parts of split variables")
        levels, modes = _new_levels(format, frozen, last)
    instead = as_scanned(levels)
    if instead != levels:
        changed = (old for old, new in zip(levels, instead, strict=True) if old != new)
        titles = dict.fromkeys(level.title for level in changed)
        reasons.append(f"compressed levels in place of {', '.join(titles)} ones")
        levels = instead
    stored = Format(levels=levels, parts=tuple(Part(mode=mode) for mode in modes))
    return Stored(variables=tuple(variables), parts=frozen, format=stored, reasons=tuple(reasons))


def _split_parts(mode: int, name: str, splits: Sequence[SplitLoop]) -> list[tuple[Part, str]]:
    """The parts of a mode by the splits of its variable, outer parts first."""
    parts = [(Part(mode=mode), name)]
    for split in splits:
        after: list[tuple[Part, str]] = []
        for part, variable in parts:
            if variable != split.variable:
                after.append((part, variable))
                continue
            outer = Part(mode=mode, divisor=part.divisor * split.factor, modulus=None)
            if part.modulus is not None:
                outer = Part(
                    mode=mode, divisor=outer.divisor, modulus=-(-part.modulus // split.factor)
                )
            inner = Part(mode=mode, divisor=part.divisor, modulus=split.factor)
            after += [(outer, split.outer), (inner, split.inner)]
        parts = after
    return parts


def _own_levels(
    format: Format, parts: tuple[tuple[Part, ...], ...]
) -> tuple[tuple[Level, ...], tuple[int, ...] | None]:
    """The tensor's own levels, if each of them stores one part."""
    singles = [group[0] for group in parts if len(group) == 1]
    if len(singles) != len(parts) or sorted(map(str, singles)) != sorted(map(str, format.parts)):
        return format.levels, None
    return format.levels, tuple(singles.index(part) for part in format.parts)


def _new_levels(
    format: Format, parts: tuple[tuple[Part, ...], ...], last: int | None
) -> tuple[tuple[Level, ...], tuple[int, ...]]:
    """Levels for the parts in the order of the tensor's modes; dense where its mode is dense.

    The part ``last`` is the innermost one, and dense.
    """
    first = {mode: format.modes.index(mode) for mode in set(format.modes)}
    order = sorted(range(len(parts)), key=lambda n: (n == last, first[parts[n][0].mode], n))
    levels: list[Level] = []
    for number in order:
        modes = {part.mode for part in parts[number]}
        kinds = [
            level
            for level, part in zip(format.levels, format.parts, strict=True)
            if part.mode in modes
        ]
        is_dense = all(kind.full for kind in kinds)
        levels.append(Dense() if is_dense or number == last else Compressed())
    return tuple(levels), tuple(order)


def reordered(stored: Stored, order: Sequence[str]) -> Stored:
    """The same access with its levels in the order of the loops; level kinds stay in place.

    The level over the lanes of vectors is the innermost one before and after.
    """
    modes = sorted(range(len(stored.variables)), key=lambda n: order.index(stored.variables[n]))
    names = ", ".join(stored.variables[mode] for mode in modes)
    levels = tuple(
        level if level.unique and not level.branchless else Compressed()
        for level in stored.format.levels
    )
    format = Format(levels=levels, parts=tuple(Part(mode=mode) for mode in modes))
    reason = f"levels in the order of the loops, {names}"
    return Stored(
        variables=stored.variables,
        parts=stored.parts,
        format=format,
        reasons=(*stored.reasons, reason),
    )


def located_by_default(
    loop: Forall,
    schedule: Schedule,
    sources: Mapping[str, str],
    formats: Mapping[str, Format],
    semiring: Semiring,
) -> tuple[str, ...]:
    """The tensors whose level at a loop is located into by default, sorted by name.

    These are dense ones in a product whose other factors are bounded by a sparse level.  A tensor
    that is also read where nothing bounds it is scanned, as is one with a ``scan`` directive.
    ``sources`` maps views to their tensors; a name without a format is a temporary.
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
    merge = merge_at(loop, semiring)
    located, scanned = set[str](), set[str]()
    for access, is_bounded in bounded_leaves(merge, dense):
        (located if is_bounded else scanned).add(access.tensor)
    always_located = located - scanned
    scans = [directive for directive in schedule.directives if isinstance(directive, ScanLevels)]
    return tuple(
        name
        for name in sorted(always_located)
        if not any(
            scan.tensor in ("", name, sources.get(name)) and scan.variable in ("", loop.variable)
            for scan in scans
        )
    )


def bounded_leaves(
    merge: Merge, dense: Set[Access], *, bounded: bool = False
) -> Iterator[tuple[Access, bool]]:
    """The dense levels of a merge, and whether sparse levels bound their coordinates.

    ``bounded``: the enclosing merge intersects it with a sparse level.
    """
    match merge:
        case Leaf(access=access) if access in dense:
            yield access, bounded
        case Both(members=members):
            inside = bounded or any(_is_sparse(member, dense) for member in members)
            for member in members:
                yield from bounded_leaves(member, dense, bounded=inside)
        case Either(members=members):
            for member in members:
                yield from bounded_leaves(member, dense, bounded=bounded)


def _is_sparse(merge: Merge, dense: Set[Access]) -> bool:
    """Whether a merge only has coordinates of sparse levels."""
    match merge:
        case Leaf(access=access):
            return access not in dense
        case Both(members=members):
            return any(_is_sparse(member, dense) for member in members)
        case Either(members=members, everything=everything):
            return not everything and all(_is_sparse(member, dense) for member in members)
        case _:
            return False
