"""Enumerating mappings with the fewest reshapings first.

* fixed: a variable is constant in a call, with loops around it, which also compute a fixed sum.
* fused: neighbors in every operand become one mode.
* promoted: a variable of the capability gets extent 1, and the rest is matched as usual.
* transposed: modes are seen in another order, by strides where the function takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import merge
from itertools import combinations, groupby, pairwise, repeat

from t2s.capability.conditions import (
    Answer,
    Mode,
    holds,
    instantiated,
    mode_extent,
    mode_name,
    names_of,
)
from t2s.capability.description import ExternalFunction
from t2s.capability.ir import Capability, Condition
from t2s.capability.mapping import Mapping as PartMapping
from t2s.capability.mapping import OperandView
from t2s.capability.match import MatchState, Reshaping, can_fix, modes_of, states, view_of
from t2s.capability.operands import fixed_modes, format_in_order, is_dense, rows_of, sliced_format
from t2s.capability.parts import PartForm, function_form, with_numbers_as_scalars
from t2s.capability.tiles import tiles_of
from t2s.core.errors import UserError
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, accesses

MOST_FUSIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The reshapings that may be used."""

    fix: bool = False
    promote: bool = False
    transpose: bool = False
    fuse: bool = False
    tile: bool = False
    pad: bool = False
    convert: bool = False
    densify: bool = False


AS_IT_STANDS = Reshape()
EVERYTHING = Reshape(
    fix=True, promote=True, transpose=True, fuse=True, tile=True, pad=True, convert=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeRequest:
    """Reshapings that the user requested: variables to fix, and tensors to promote."""

    fixed: tuple[str, ...] = ()
    promoted: tuple[tuple[str, int], ...] = ()


def mappings(
    part: PartForm,
    function: ExternalFunction,
    reshape: Reshape = AS_IT_STANDS,
    extents: Mapping[str, int] | None = None,
    asked: ReshapeRequest = ReshapeRequest(),
) -> Iterator[PartMapping]:
    """All mappings of a part to a function, those with the fewest reshapings first.

    ``extents`` are those that are known; a mapping whose condition they refute is left out, unless
    tiles may make it hold.
    """
    known = dict(extents or {})
    before: list[PartMapping] = []
    for form, way in _attempts(part, function, reshape, asked):
        for mapping in _accepted_mappings(form, function, way, reshape, known):
            if asked.promoted and not _promoted_as_asked(mapping, asked):
                continue
            if not any(_same(mapping, other) for other in before):
                before.append(mapping)
                yield mapping


def _accepted_mappings(
    part: PartForm,
    function: ExternalFunction,
    way: Reshaping,
    reshape: Reshape,
    extents: Mapping[str, int],
) -> Iterator[PartMapping]:
    for state in states(part, function, way):
        mapping = _mapping(part, function, way, state)
        if _may_hold(mapping, reshape, extents) and accepted(mapping):
            yield mapping


def _attempts(
    part: PartForm, function: ExternalFunction, reshape: Reshape, asked: ReshapeRequest
) -> Iterator[tuple[PartForm, Reshaping]]:
    """The forms of a part and the reshapings that may match, with the fewest fixed variables first.

    A function with scalar operands is also tried with constants of the part as scalars.
    """
    forms = [part]
    if any(not access.variables for access in accesses(function.capability.value)):
        forms += with_numbers_as_scalars(part)
    tries = [
        zip(repeat(form), _reshapings(form, function, reshape, asked), strict=False)
        for form in forms
        if same_structure(form, function) and _takes_formats(form, function, reshape)
    ]
    yield from merge(*tries, key=lambda attempt: len(attempt[1].fixed))


def accepted(mapping: PartMapping) -> bool:
    """Whether the function's checker accepts a mapping.  Raises ``UserError`` if it fails."""
    function = mapping.function
    if function.checker is None:
        return True
    try:
        return bool(function.checker(mapping))
    except Exception as error:
        raise UserError(
            f"the checker of {function.name} failed: {type(error).__name__}: {error}",
            location=function.location,
            expected="a function that accepts or rejects a mapping",
            given=repr(mapping)[1:-1],
        ) from error


def same_structure(part: PartForm, function: ExternalFunction) -> bool:
    """Whether both have equally many terms and factors, which no reshaping changes."""
    stated = function_form(function, part.semiring)
    shapes = [
        sorted((term.coefficient, len(term.factors)) for term in terms)
        for terms in (stated, part.summands)
    ]
    return shapes[0] == shapes[1]


def _takes_formats(part: PartForm, function: ExternalFunction, reshape: Reshape) -> bool:
    """Whether the number of sparse operands of a part is one that a function takes."""
    capability = function.capability
    needs = [capability.needs_of(access.tensor) for access in accesses(capability.value)]
    sparse = sum(not part.dense(access.tensor) for access in part.reads)
    takes = sum(bool(need.formats) for need in needs)
    wants = sum(bool(need.formats) and not any(map(is_dense, need.formats)) for need in needs)
    return wants <= sparse and (sparse <= takes or reshape.densify)


def fewest(
    part: PartForm,
    function: ExternalFunction,
    reshape: Reshape = AS_IT_STANDS,
    extents: Mapping[str, int] | None = None,
) -> tuple[PartMapping, ...]:
    """The mappings with as few fixed variables as possible.

    For each set of fixed variables, the ones with the fewest promoted variables that see operands
    in the same way.
    """
    fewest_so_far: list[PartMapping] = []
    for mapping in mappings(part, function, reshape, extents):
        if fewest_so_far and len(mapping.fixed) > len(fewest_so_far[0].fixed):
            break
        same = [other for other in fewest_so_far if other.fixed == mapping.fixed]
        if all(len(other.promoted) == len(mapping.promoted) for other in same) and not any(
            other.transposed != mapping.transposed or _shape(other) != _shape(mapping)
            for other in same
        ):
            fewest_so_far.append(mapping)
    return tuple(fewest_so_far)


def fewest_fixed(
    part: PartForm,
    function: ExternalFunction,
    reshape: Reshape = AS_IT_STANDS,
    extents: Mapping[str, int] | None = None,
) -> tuple[tuple[str, ...], ...]:
    """The sets of fixed variables that ``fewest`` finds, without searching for all mappings."""
    sets: list[tuple[str, ...]] = []
    tries = _attempts(part, function, reshape, ReshapeRequest())
    for fixed, some in groupby(tries, key=lambda attempt: attempt[1].fixed):
        if sets and len(fixed) > len(sets[0]):
            break
        # transposing only adds mappings
        most_general = (attempt for attempt in some if attempt[1].transposes == reshape.transpose)
        found_here = (
            attempt
            for form, way in most_general
            for attempt in _accepted_mappings(form, function, way, reshape, extents or {})
        )
        if fixed not in sets and next(found_here, None) is not None:
            sets.append(fixed)
    return tuple(sets)


def _shape(mapping: PartMapping) -> tuple[int, ...]:
    return tuple(len(mode) for view in mapping.operands for mode in view.modes)


def _same(one: PartMapping, other: PartMapping) -> bool:
    return (one.operands, one.result, one.fixed) == (other.operands, other.result, other.fixed)


def _reshapings(
    part: PartForm, function: ExternalFunction, reshape: Reshape, asked: ReshapeRequest
) -> Iterator[Reshaping]:
    others = [name for name in part.variables if name not in asked.fixed]
    most = len(others) if reshape.fix else 0
    promotions = _promotions(function)[: None if reshape.promote or asked.promoted else 1]
    for count in range(most + 1):
        for more in combinations(others, count):
            fixed = tuple(name for name in part.variables if name in (*asked.fixed, *more))
            plain = Reshaping(fixed=fixed, converts=reshape.convert, densifies=reshape.densify)
            if not can_fix(part, plain):
                continue
            fusions = [
                (fused, ranks)
                for fused in (_fusions(part, fixed) if reshape.fuse else ((),))
                if (ranks := _Ranks.of_part(part, fixed, fused)) is not None
            ]
            fitting = [
                (promoted, fused)
                for promoted, function_ranks in promotions
                for fused, part_ranks in fusions
                if function_ranks.takes(part_ranks)
            ]
            for transposes in (False, True) if reshape.transpose else (False,):
                for promoted, fused in fitting:
                    yield replace(plain, fused=fused, promoted=promoted, transposes=transposes)


@lru_cache(maxsize=1024)
def _promotions(function: ExternalFunction) -> tuple[tuple[tuple[str, ...], _Ranks], ...]:
    """Every set of variables that may have extent 1, the empty one first, with the ranks then."""
    singles = _singles(function)
    return tuple(
        (promoted, _Ranks.of_function(function.capability, promoted))
        for size in range(len(singles) + 1)
        for promoted in combinations(singles, size)
    )


@dataclass(frozen=True, slots=True)
class _Ranks:
    """The numbers of modes of all operands, sorted, and of the result.

    For a function, ``exact`` are those of operands without lists, ``least`` the fewest modes of
    those with lists, and ``grows`` is whether the result has a list.  For a part all are ``exact``.
    """

    exact: tuple[int, ...]
    least: tuple[int, ...]
    result: int
    grows: bool = False

    @staticmethod
    def of_function(capability: Capability, promoted: tuple[str, ...]) -> _Ranks:
        """The ranks of a function some of whose variables have extent 1."""
        lists = set(capability.lists)
        exact: list[int] = []
        least: list[int] = []
        for access in accesses(capability.value):
            names = [name for name in access.variables if name not in promoted]
            rank = sum(name not in lists for name in names)
            (least if lists.intersection(names) else exact).append(rank)
        names = [name for name in capability.result.variables if name not in promoted]
        rank = sum(name not in lists for name in names)
        grows = not lists.isdisjoint(names)
        return _Ranks(tuple(sorted(exact)), tuple(sorted(least)), rank, grows)

    @staticmethod
    def of_part(part: PartForm, fixed: tuple[str, ...], fused: tuple[Mode, ...]) -> _Ranks | None:
        """The ranks of a part; ``None`` if fused variables are not adjacent everywhere."""
        fusion = {name: mode for mode in fused for name in mode}
        ranks = []
        for names in (*(access.variables for access in part.reads), part.free):
            modes = modes_of([name for name in names if name not in fixed], fusion)
            if modes is None:
                return None
            ranks.append(len(modes))
        *operands, result = ranks
        return _Ranks(tuple(sorted(operands)), (), result)

    def takes(self, part: _Ranks) -> bool:
        """Whether a function of these ranks may match a part of ``given`` ranks.

        It needs no search over names, and rules out most pairs that cannot match.
        """
        if part.result < self.result or (part.result > self.result and not self.grows):
            return False
        remaining = list(part.exact)
        for rank in self.exact:
            if rank not in remaining:
                return False
            remaining.remove(rank)
        return all(least <= rank for least, rank in zip(self.least, remaining, strict=False))


def _singles(function: ExternalFunction) -> tuple[str, ...]:
    """The variables of a capability that are not lists."""
    capability = function.capability
    names = (
        name
        for access in (capability.result, *accesses(capability.value))
        for name in access.variables
    )
    return tuple(name for name in dict.fromkeys(names) if name not in capability.lists)


def _fusions(part: PartForm, fixed: tuple[str, ...]) -> tuple[tuple[Mode, ...], ...]:
    """Sets of runs of variables that are adjacent wherever they occur; the empty set first."""
    runs: list[list[str]] = []
    for name in part.variables:
        if name in fixed:
            continue
        if runs and _neighbors(part, fixed, runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    options: list[tuple[Mode, ...]] = [()]
    for run in runs:
        cuts = [mode for mode in _groupings(tuple(run)) if mode]
        options += [(*option, *cut) for option in options for cut in cuts]
        if len(options) > MOST_FUSIONS:
            break
    return tuple(
        sorted(options[:MOST_FUSIONS], key=lambda fusion: sum(len(mode) for mode in fusion))
    )


def _groupings(run: tuple[str, ...]) -> Iterator[tuple[Mode, ...]]:
    """The ways to cut a run into groups; groups of one are dropped."""
    if not run:
        yield ()
        return
    for size in range(1, len(run) + 1):
        for rest in _groupings(run[size:]):
            yield (run[:size], *rest) if size > 1 else rest


def _neighbors(part: PartForm, fixed: tuple[str, ...], first: str, second: str) -> bool:
    """Whether the second variable follows the first one wherever either of them occurs."""
    for access in part.reads:
        names = [name for name in access.variables if name not in fixed]
        if first in names or second in names:
            pairs = list(pairwise(names))
            if (first, second) not in pairs or names.count(first) != 1 or names.count(second) != 1:
                return False
    return all((first in term.summed) == (second in term.summed) for term in part.summands)


def _mapping(
    part: PartForm, function: ExternalFunction, way: Reshaping, state: MatchState
) -> PartMapping:
    capability = function.capability
    abstract: dict[str, Access] = {}
    for access in accesses(capability.value):
        abstract.setdefault(access.tensor, access)
    operands = tuple(
        view_of(name, access, state, way.promoted) for name, access in abstract.items()
    )
    images: dict[str, Mode] = {**state.images, **dict.fromkeys(way.promoted, ())}
    result: list[Mode] = []
    for name in capability.result.variables:
        result += state.lists[name] if name in state.lists else (images[name],)
    summed = {name for summand in part.summands for name in summand.summed}
    used = dict.fromkeys(mode for view in operands for mode in view.modes if mode)
    sums = tuple(mode for mode in used if set(mode) & summed and mode not in result)
    condition = instantiated(capability.condition, images, state.lists)
    stored = {
        view.name
        for view in operands
        if capability.needs_of(view.name).formats and not part.dense(view.access.tensor)
    }
    fixed_sums = tuple(name for name in way.fixed if name not in part.free)
    return PartMapping(
        function=function,
        part=part.value,
        result=tuple(result),
        images=tuple(images.items()),
        lists=tuple(state.lists.items()),
        operands=operands,
        reads=state.reads,
        fixed=way.fixed,
        fixed_sums=fixed_sums,
        summed=sums,
        promoted=way.promoted,
        condition=condition,
        exact=tuple(mode for mode in used if _may_be_padded(part, mode)),
        whole=tuple(
            _stays_whole(
                *(part, function, operands, stored, way.fixed),
                _differing(capability, images, state.lists),
            )
        ),
        proof=_proof(images, state, operands, way, fixed_sums),
        numbers=part.numbers,
    )


def _may_be_padded(part: PartForm, mode: Mode) -> bool:
    """Whether a mode can be padded with zeros: 0 times 0 is 0, but 0 times infinity is not."""
    for summand in part.summands:
        if not set(mode) & set(summand.summed):
            continue
        for factor in summand.factors:
            if not isinstance(factor, Access) or not set(mode) <= set(factor.variables):
                return False
    return True


def _proof(
    images: Mapping[str, Mode],
    state: MatchState,
    operands: Sequence[object],
    way: Reshaping,
    fixed_sums: tuple[str, ...],
) -> tuple[str, ...]:
    lines = [str(operand) for operand in operands]
    where = [f"{name} is {mode_name(mode)}" for name, mode in images.items()]
    for name, modes in state.lists.items():
        where.append(f"{name} is ({','.join(map(mode_name, modes))})")
    if where:
        lines.append("where " + ", ".join(where))
    free = [name for name in way.fixed if name not in fixed_sums]
    if free:
        lines.append(f"for each {', '.join(free)}")
    if fixed_sums:
        lines.append(f"summed up over {', '.join(fixed_sums)}")
    return tuple(lines)


def _promoted_as_asked(mapping: PartMapping, asked: ReshapeRequest) -> bool:
    """Whether exactly the tensors that the user promoted are promoted."""
    promoted = {
        (view.access.tensor, at)
        for view in mapping.operands
        for at, mode in enumerate(view.modes)
        if not mode
    }
    return promoted == set(asked.promoted)


def known_modes(condition: Condition, extents: Mapping[str, int]) -> dict[str, int]:
    """The extents of the modes that a condition asks about, where they are known."""
    extents_of = {}
    for name in names_of(condition):
        mode = tuple(name.split("*"))
        if all(part in extents for part in mode):
            extents_of[name] = mode_extent(mode, extents)
    return extents_of


def _differing(
    capability: Capability, images: Mapping[str, Mode], lists: Mapping[str, tuple[Mode, ...]]
) -> list[Mode]:
    """The modes at which the accesses of one tensor have different variables."""
    seen: dict[str, list[tuple[Mode, ...]]] = {}
    for access in accesses(capability.value):
        modes = (lists[name] if name in lists else (images[name],) for name in access.variables)
        seen.setdefault(access.tensor, []).append(tuple(mode for some in modes for mode in some))
    return [
        mode
        for places in seen.values()
        for at in zip(*places, strict=True)
        if len(set(at)) > 1
        for mode in at
    ]


def _stays_whole(
    part: PartForm,
    function: ExternalFunction,
    views: Sequence[OperandView],
    stored: set[str],
    fixed: Sequence[str],
    differing: Sequence[Mode],
) -> list[Mode]:
    """The modes that are not tiled; ``stored`` operands are cut into windows of rows.

    ``differing`` modes are those of an operand with several accesses: each would need a tile of its
    own, and the call gets only one.
    """
    capability = function.capability
    gives = capability.needs_of(capability.result.tensor).formats
    if gives and not all(level.full for level in gives[0].levels):
        return list(dict.fromkeys(mode for view in views for mode in view.modes))
    whole: list[Mode] = []
    for view in views:
        if view.name in stored:
            formats = capability.needs_of(view.name).formats
            format: Format | None = part.formats[view.access.tensor]
            at = fixed_modes(view.access, fixed)
            if view.transposed and format is not None:
                modes = [view.access.variables.index(name) for (name,) in view.modes]
                format = format_in_order(format, modes, formats)
            if at and format is not None:
                format = sliced_format(format, at)
            rows = rows_of(format if format in formats and format is not None else formats[0])
            whole += [mode for number, mode in enumerate(view.modes) if number != rows]
    for mode in dict.fromkeys(mode for view in views for mode in view.modes if mode):
        names = set(mode)
        if not names <= set(part.free) and not all(
            names <= set(summand.summed) for summand in part.summands
        ):
            whole.append(mode)
    return [*dict.fromkeys((*whole, *differing))]


def _may_hold(mapping: PartMapping, reshape: Reshape, extents: Mapping[str, int]) -> bool:
    known = known_modes(mapping.condition, extents)
    if holds(mapping.condition, known) is not Answer.FALSE:
        return True
    if not reshape.tile or len(known) < len(names_of(mapping.condition)):
        return False
    padded = {mode_name(mode) for mode in mapping.exact} if reshape.pad else set()
    whole = [mode_name(mode) for mode in mapping.whole]
    return tiles_of(mapping.condition, known, whole=whole, may_pad=padded.__contains__) is not None
