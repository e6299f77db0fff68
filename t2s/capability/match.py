"""Matching: whether a function computes a part, under given reshapings.

Both are in normal form.  Terms are paired with terms, factors with factors, in every way that the
laws of a commutative semiring allow; variables are mapped injectively, lists to any run of modes,
sums exactly, and an abstract tensor to one concrete tensor at one slice.  So every match is
correct, and a part without a match is not a renaming of the function's statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from t2s.capability.conditions import Mode
from t2s.capability.description import ExternalFunction
from t2s.capability.mapping import OperandView
from t2s.capability.operands import fits, fixed_modes, sliced_format
from t2s.capability.parts import PartForm, Summand, function_form
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
)

MOST_PERMUTED = 5
"""Operands of at most this many modes are tried in all orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshaping:
    """Which variables are fixed, fused and promoted, and which mismatches are tolerated.

    ``fused`` are runs of variables that become one mode.  ``transposes`` tolerates any order of
    modes, ``converts`` other sparse formats, and ``densifies`` sparse operands in place of dense.
    """

    fixed: tuple[str, ...] = ()
    fused: tuple[Mode, ...] = ()
    promoted: tuple[str, ...] = ()
    transposes: bool = False
    converts: bool = False
    densifies: bool = False


@dataclass(frozen=True, slots=True)
class OperandMatch:
    """The concrete tensor of an abstract one: its slice and its modes.

    ``pattern`` has the number of variables of each mode, 0 of a promoted one.
    """

    access: Access
    modes: tuple[Mode, ...]
    transposed: bool
    pattern: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MatchState:
    """What has been matched so far."""

    images: Mapping[str, Mode] = field(default_factory=dict)
    lists: Mapping[str, tuple[Mode, ...]] = field(default_factory=dict)
    tensors: Mapping[str, OperandMatch] = field(default_factory=dict)
    reads: tuple[tuple[str, Access], ...] = ()

    def used(self) -> set[Mode]:
        """The modes that are images of a variable or of a list."""
        return {*self.images.values(), *(mode for modes in self.lists.values() for mode in modes)}

    def all_of(self, variables: Sequence[str]) -> tuple[Mode, ...]:
        """The images of variables and lists, one after the other."""
        modes: list[Mode] = []
        for name in variables:
            if name in self.lists:
                modes += self.lists[name]
            elif name in self.images:
                modes.append(self.images[name])
        return tuple(modes)


def can_fix(part: PartForm, way: Reshaping) -> bool:
    """A fixed variable is summed by all terms or by none, and sparse operands have slices at it."""
    for name in way.fixed:
        if name not in part.free and not all(name in summand.summed for summand in part.summands):
            return False
    sliced = [access for access in part.reads if set(access.variables) & set(way.fixed)]
    return part.bound.isdisjoint(way.fixed) and all(
        _may_slice(part, access, way) for access in sliced
    )


def _may_slice(part: PartForm, access: Access, way: Reshaping) -> bool:
    """Whether an operand can be sliced at its fixed variables, converted if that is allowed."""
    stored = part.formats[access.tensor]
    if part.dense(access.tensor) or way.densifies or (way.converts and stored.plain):
        return True
    return sliced_format(stored, fixed_modes(access, way.fixed)) is not None


def modes_of(variables: Sequence[str], fusion: Mapping[str, Mode]) -> tuple[Mode, ...] | None:
    """Variables as modes; ``None`` if fused ones are not adjacent."""
    modes: list[Mode] = []
    at = 0
    while at < len(variables):
        mode = fusion.get(variables[at], (variables[at],))
        if tuple(variables[at : at + len(mode)]) != mode:
            return None
        modes.append(mode)
        at += len(mode)
    return tuple(modes)


def states(part: PartForm, function: ExternalFunction, way: Reshaping) -> Iterator[MatchState]:
    """All ways to match a part with a function under reshapings for which ``can_fix`` holds."""
    yield from _Matcher(part, function, way).states()


class _Matcher:
    def __init__(self, part: PartForm, function: ExternalFunction, way: Reshaping) -> None:
        self.part = part
        self.way = way
        self.function, self.capability = function, function.capability
        self.fusion = {name: mode for mode in way.fused for name in mode}

    def states(self) -> Iterator[MatchState]:
        capability, way = self.capability, self.way
        if self.part.semiring not in capability.semirings:
            return
        stored = capability.needs_of(capability.result.tensor).formats
        sparse = bool(stored) and not all(level.full for level in stored[0].levels)
        if sparse and (way.fixed or way.promoted or way.fused):
            return  # a single call makes all of a sparse result
        terms = function_form(self.function, self.part.semiring)
        if len(terms) != len(self.part.summands):
            return
        free = self._modes(tuple(name for name in self.part.free if name not in way.fixed))
        if free is None:
            return
        seen: list[MatchState] = []
        for state in self._summands(terms, self.part.summands, MatchState()):
            result = state.all_of(self._kept(capability.result.variables))
            if len(result) == len(free) and set(result) == set(free) and state not in seen:
                seen.append(state)
                yield state

    def _kept(self, variables: Sequence[str]) -> tuple[str, ...]:
        """Abstract variables without those of extent 1."""
        return tuple(name for name in variables if name not in self.way.promoted)

    def _modes(self, variables: Sequence[str]) -> tuple[Mode, ...] | None:
        """Concrete variables as modes; ``None`` if fused ones are not adjacent."""
        return modes_of(variables, self.fusion)

    def _summed(self, term: Summand) -> set[Mode] | None:
        """The modes that a concrete term sums in the call; sums may come in any order."""
        names = [name for name in term.summed if name not in self.way.fixed]
        modes = {self.fusion.get(name, (name,)) for name in names}
        return modes if {name for mode in modes for name in mode} == set(names) else None

    def _summands(
        self, abstract: Sequence[Summand], concrete: Sequence[Summand], state: MatchState
    ) -> Iterator[MatchState]:
        if not abstract:
            yield state
            return
        first = abstract[0]
        for at, term in enumerate(concrete):
            if term.coefficient != first.coefficient or len(term.factors) != len(first.factors):
                continue
            if term in concrete[:at]:
                continue
            summed = self._summed(term)
            for matched in self._factors(first.factors, term.factors, state):
                images = matched.all_of(self._kept(first.summed))
                if summed == set(images):
                    yield from self._summands(
                        abstract[1:], (*concrete[:at], *concrete[at + 1 :]), matched
                    )

    def _factors(
        self, abstract: Sequence[Expression], concrete: Sequence[Expression], state: MatchState
    ) -> Iterator[MatchState]:
        if not abstract:
            yield state
            return
        for at, factor in enumerate(concrete):
            if factor in concrete[:at]:
                continue
            for matched in self._factor(abstract[0], factor, state):
                yield from self._factors(
                    abstract[1:], (*concrete[:at], *concrete[at + 1 :]), matched
                )

    def _factor(
        self, abstract: Expression, concrete: Expression, state: MatchState
    ) -> Iterator[MatchState]:
        match abstract, concrete:
            case Access(), Access():
                yield from self._access(abstract, concrete, state)
            case Number(value=one), Number(value=other):
                if one == other:
                    yield state
            case Negative(value=one), Negative(value=other):
                yield from self._factor(one, other, state)
            case Combine(operator=one), Combine(operator=other) if one is other:
                for after_left in self._factor(abstract.left, concrete.left, state):
                    yield from self._factor(abstract.right, concrete.right, after_left)
            case Sum(variables=one, value=inner), Sum(variables=other, value=value):
                for matched in self._factor(inner, value, state):
                    images = matched.all_of(self._kept(one))
                    if set(images) == {(name,) for name in other}:
                        yield matched

    def _access(self, abstract: Access, access: Access, state: MatchState) -> Iterator[MatchState]:
        before = state.tensors.get(abstract.tensor)
        if before is not None and not self._same_slice(before.access, access):
            return
        sparse = not self.part.dense(access.tensor)
        if not self._fits(abstract, access, sparse):
            return
        modes = self._modes([name for name in access.variables if name not in self.way.fixed])
        if modes is None:
            return
        names = self._kept(abstract.variables)
        single = sum(name not in self.capability.lists for name in names)
        if single > len(modes) or (single == len(names) < len(modes)):
            return
        stays = sparse and bool(self.capability.needs_of(abstract.tensor).formats)
        unfixed = tuple((name,) for name in access.variables if name not in self.way.fixed)
        if stays and unfixed != modes:
            return  # modes of a sparse operand cannot be fused
        transposes = self.way.transposes and (not stays or self._may_reorder(access))
        for order in self._orders(modes, transposes=transposes):
            if before is not None and self._reordered(order, modes) != self._reordered(
                before.modes, self._modes_of(before.access)
            ):
                continue  # the call gets one array, in one order
            for matched in _unified(names, order, self.capability.lists, state):
                pattern = self._pattern(abstract, matched)
                if before is not None and pattern != before.pattern:
                    continue  # and of one shape
                seen = OperandMatch(access, order, order != modes, pattern)
                tensors = {abstract.tensor: seen, **matched.tensors}
                reads = (*matched.reads, (abstract.tensor, access))
                yield MatchState(matched.images, matched.lists, tensors, reads)

    def _pattern(self, abstract: Access, state: MatchState) -> tuple[int, ...]:
        """The number of variables of each mode of an abstract access."""
        counts: list[int] = []
        for name in abstract.variables:
            modes = ((),) if name in self.way.promoted else state.all_of([name])
            counts += map(len, modes)
        return tuple(counts)

    def _may_reorder(self, access: Access) -> bool:
        """Whether a sparse operand may be stored with its modes in another order."""
        names = access.variables
        once = len(set(names)) == len(names) and not set(names) & set(self.way.fixed)
        return once and self.way.converts and self.part.formats[access.tensor].plain

    def _modes_of(self, access: Access) -> tuple[Mode, ...]:
        unfixed = [name for name in access.variables if name not in self.way.fixed]
        return self._modes(unfixed) or ()

    @staticmethod
    def _reordered(order: tuple[Mode, ...], modes: tuple[Mode, ...]) -> tuple[int, ...]:
        """Which mode of the access each mode of the function is."""
        remaining = list(enumerate(modes))
        positions = []
        for mode in order:
            at = next(number for number, (_, own) in enumerate(remaining) if own == mode)
            positions.append(remaining.pop(at)[0])
        return tuple(positions)

    def _same_slice(self, one: Access, other: Access) -> bool:
        """Whether two accesses read one tensor, at the same fixed variables."""
        if one.tensor != other.tensor:
            return False
        fixed = set(self.way.fixed)
        return all(
            a == b or not ({a, b} & fixed)
            for a, b in zip(one.variables, other.variables, strict=True)
        )

    def _fits(self, abstract: Access, access: Access, sparse: bool) -> bool:
        """Whether the tensor is stored as the function requires, or may be converted."""
        needs = self.capability.needs_of(abstract.tensor)
        if set(needs.properties) - set(self.part.properties.get(access.tensor, ())):
            return False
        stored = self.part.formats[access.tensor]
        if not needs.formats:
            return not sparse or self.way.densifies
        if set(abstract.variables) & set(self.way.promoted):
            return False
        fixed = fixed_modes(access, self.way.fixed)
        if fixed and sparse:
            sliced = sliced_format(stored, fixed)
            order = len(set(access.variables) - set(self.way.fixed))
            alike = any(format.plain and format.order == order for format in needs.formats)
            return sliced in needs.formats or (alike and self.way.converts and stored.plain)
        return fits(stored, needs.formats) or (sparse and self.way.converts and stored.plain)

    @staticmethod
    def _orders(modes: tuple[Mode, ...], *, transposes: bool) -> Iterator[tuple[Mode, ...]]:
        if not transposes or len(modes) > MOST_PERMUTED:
            yield modes
            return
        yield from dict.fromkeys(permutations(modes))


def _unified(
    names: Sequence[str], modes: Sequence[Mode], lists: Sequence[str], state: MatchState
) -> Iterator[MatchState]:
    """All ways to assign modes to variables and lists, in order."""
    if not names:
        if not modes:
            yield state
        return
    name, rest = names[0], names[1:]
    if name not in lists:
        if not modes:
            return
        known = state.images.get(name)
        if known is None:
            if modes[0] in state.used():
                return
            images = {**state.images, name: modes[0]}
            state = MatchState(images, state.lists, state.tensors, state.reads)
        elif known != modes[0]:
            return
        yield from _unified(rest, modes[1:], lists, state)
        return
    taken = state.lists.get(name)
    if taken is not None:
        if tuple(modes[: len(taken)]) == taken:
            yield from _unified(rest, modes[len(taken) :], lists, state)
        return
    used = state.used()
    for length in range(len(modes) + 1):
        run = tuple(modes[:length])
        if len(set(run)) < length or used & set(run):
            break
        lists_now = {**state.lists, name: run}
        longer = MatchState(state.images, lists_now, state.tensors, state.reads)
        yield from _unified(rest, modes[length:], lists, longer)


def view_of(name: str, abstract: Access, state: MatchState, promoted: Sequence[str]) -> OperandView:
    """The operand behind an abstract tensor; a promoted variable is a mode of extent 1."""
    seen = state.tensors[name]
    remaining = list(seen.modes)
    modes: list[Mode] = []
    for variable in abstract.variables:
        if variable in promoted:
            modes.append(())
            continue
        count = len(state.lists[variable]) if variable in state.lists else 1
        modes += remaining[:count]
        del remaining[:count]
    return OperandView(
        name=name, access=seen.access, modes=tuple(modes), transposed=seen.transposed
    )
