"""Predicted times of compiled loops: iterations of every loop of a statement, and their rates.

How many coordinates a loop visits is expected from what tensors store, as if that were anywhere: a
level has a share of its coordinates, a product those that all factors have, a sum those of any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from t2s.core.walk import walk
from t2s.plan.machine import LoopRates
from t2s.sparse_repr.concrete.external_loops import program_in_loops
from t2s.sparse_repr.concrete.ir import (
    Assign,
    ConcreteProgram,
    Forall,
    Statement,
    View,
    Where,
    reads_of,
    result_of,
)
from t2s.sparse_repr.concrete.merge import (
    Both,
    Either,
    Everything,
    Leaf,
    Merge,
    expression_of,
    is_unbounded,
    merge_of,
)
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Access, Assignment, accesses

IN_CACHE = 1 << 20
"""Bytes of an array that may be read in any order as fast as one behind the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """What is known of a tensor before a run.

    ``stored`` is how many values it has, a count or an expectation; ``order`` its modes in memory,
    the outermost first; ``sparse`` whether it stores some of its elements only.
    """

    shape: tuple[int, ...]
    stored: float
    order: tuple[int, ...]
    sparse: bool = False

    @property
    def elements(self) -> int:
        """All of them, stored or not."""
        return prod(self.shape)

    @property
    def density(self) -> float:
        """The share of the elements that are stored."""
        return self.stored / self.elements if self.elements else 0.0

    def strides(self, itemsize: int) -> tuple[int, ...]:
        """Bytes from one element to the next along each mode of a dense tensor."""
        found = [0] * len(self.shape)
        step = itemsize
        for mode in reversed(self.order):
            found[mode] = step
            step *= max(1, self.shape[mode])
        return tuple(found)


def facts_of(shape: tuple[int, ...], format: Format, stored: float | None = None) -> TensorFacts:
    """What is known of a tensor of a shape in a format; all of it is stored if nothing is said."""
    sparse = not (format.plain and all(level.full for level in format.levels))
    count = prod(shape) if stored is None or not sparse else stored
    order = format.modes if format.plain else tuple(range(len(shape)))
    return TensorFacts(shape=shape, stored=count, order=order, sparse=sparse)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSetting:
    """What loops run on: extents, tensors by name, bytes of a value, rates, and a conversion's."""

    extents: Mapping[str, int]
    tensors: Mapping[str, TensorFacts]
    itemsize: int
    rates: LoopRates
    convert: float


def loop_seconds(assignment: Assignment, setting: LoopSetting) -> tuple[float, str]:
    """How long compiled loops take for a statement, and of how many steps that is the time."""
    names = dict.fromkeys(access.tensor for access in accesses(assignment.value))
    memory = tuple(
        (name, setting.tensors[name].order) for name in names if not setting.tensors[name].sparse
    )
    return _LoopWalk(setting, program_in_loops(assignment, memory)).seconds()


@dataclass
class _LoopWalk:
    """A walk through the loops of a program, which adds up what they take."""

    setting: LoopSetting
    program: ConcreteProgram
    known: dict[str, TensorFacts] = field(default_factory=dict)
    taken: float = 0.0
    steps: float = 0.0
    strided: bool = False

    def seconds(self) -> tuple[float, str]:
        rates = self.setting.rates
        self.known = dict(self.setting.tensors)
        self._views()
        for stage in self.program.stages:
            self.taken += rates.start
            before = self.steps
            self._statement(stage, 1.0, {}, result_of(stage).tensor)
            self._written(stage, self.steps - before)
            self._views()
        how = ", strided" if self.strided else ""
        return self.taken, f"{self.steps:.3g} steps{how}"

    def _views(self) -> None:
        """Tensors as the loops read them; sparse ones are converted."""
        for view in self.program.views:
            if view.name in self.known or view.source not in self.known:
                continue
            self.known[view.name] = made = _seen(view, self.known[view.source])
            if made.sparse and view.name != self.program.written:
                self.taken += made.stored * self.setting.convert

    def _written(self, stage: Statement, steps: float) -> None:
        result = result_of(stage)
        shape = tuple(self._extent(name) for name in result.variables)
        format = self.program.format_of(result.tensor)
        sparse = not all(level.full for level in format.levels)
        count = prod(shape)
        self.known[result.tensor] = TensorFacts(
            shape=shape,
            stored=min(steps, count) if sparse else count,
            order=tuple(range(len(shape))),
            sparse=sparse,
        )
        if not sparse:
            self.taken += count * self.setting.rates.zero

    def _extent(self, name: str) -> int:
        return self.setting.extents.get(name, 1)

    # -- loops ------------------------------------------------------------------------------------

    def _statement(
        self, statement: Statement, times: float, at: Mapping[str, int], stored: str
    ) -> None:
        match statement:
            case Where(consumer=consumer, producer=producer):
                self._statement(producer, times, at, result_of(producer).tensor)
                self._statement(consumer, times, at, stored)
            case Forall():
                self._loop(statement, times, at, stored)
            case Assign():
                if not at:
                    self.steps += 1

    def _loop(self, loop: Forall, times: float, at: Mapping[str, int], stored: str) -> None:
        rates, name = self.setting.rates, loop.variable
        extent = self._extent(name)
        merge = merge_of(expression_of(loop), name)
        listed = {
            leaf.access: self._share(leaf.access, name, at)
            for leaf in walk(merge)
            if isinstance(leaf, Leaf) and self._is_list(leaf.access, name)
        }
        inside = times * extent * _share_of(merge, listed)
        visited = times * extent
        if listed and not is_unbounded(merge):
            visited *= 1 - prod(1 - share for share in listed.values())
        self.taken += times * rates.loop
        innermost = isinstance(loop.body, Assign)
        if len(listed) > 1 or (listed and is_unbounded(merge)):
            self.taken += visited * rates.merged * max(1, len(listed) - 1)
        elif listed:
            self.taken += visited * rates.entry
        if innermost:
            self.steps += inside
            self.taken += self._body(loop, inside, listed=bool(listed), at=at, stored=stored)
        result = result_of(loop)
        if result.tensor == stored and name in result.variables:
            self._append(loop, inside, at, result)
        self._statement(loop.body, inside, {**at, name: len(at)}, stored)

    def _append(self, loop: Forall, inside: float, at: Mapping[str, int], result: Access) -> None:
        """Entries of a sparse result, written where the last of its variables is known."""
        if set(result.variables) - set(at) - {loop.variable} or not self._is_sparse(result.tensor):
            return
        rates = self.setting.rates
        outer = [name for name in at if name not in result.variables]
        self.taken += inside * (rates.append + (rates.workspace if outer else 0.0))

    def _body(
        self, loop: Forall, inside: float, *, listed: bool, at: Mapping[str, int], stored: str
    ) -> float:
        """Seconds of what the innermost loop computes, beside the walk through its lists."""
        rates, name = self.setting.rates, loop.variable
        result = result_of(loop)
        reads = [access for access in reads_of(loop) if name in access.variables]
        far = any(self._jumps(access, name, listed=listed) for access in reads)
        self.strided = self.strided or far
        sums = bool(set(at) - set(result.variables))
        waits = name in result.variables and sums and self._is_sparse(stored)
        waits = waits or (result.tensor != stored and bool(result.variables))
        seconds = inside * (rates.workspace if waits else 0.0)
        if far:
            return seconds + inside * rates.strided
        if listed or waits:
            return seconds
        summed = name not in result.variables
        return inside * (rates.element if summed else rates.vector)

    def _jumps(self, access: Access, name: str, *, listed: bool) -> bool:
        """Whether what a loop reads next of a large dense array is far from what it read."""
        known = self.known.get(access.tensor)
        if known is None or known.sparse or known.elements * self.setting.itemsize <= IN_CACHE:
            return False
        return listed or access.variables[known.order[-1]] != name

    # -- coordinates ------------------------------------------------------------------------------

    def _is_sparse(self, name: str) -> bool:
        """Whether a tensor that is written stores some elements only; temporaries store all."""
        formats = {one.name: one.format for one in self.program.tensors}
        return name in formats and not all(level.full for level in formats[name].levels)

    def _is_list(self, access: Access, name: str) -> bool:
        known = self.known.get(access.tensor)
        if known is None or not known.sparse:
            return False
        format = self.program.format_of(access.tensor)
        if not format.plain:
            return True
        level = format.modes.index(access.variables.index(name))
        return not format.levels[level].full

    def _share(self, access: Access, name: str, at: Mapping[str, int]) -> float:
        """The share of the coordinates of a level that its tensor has, in a fiber that is there."""
        known, format = self.known[access.tensor], self.program.format_of(access.tensor)
        if not format.plain:
            return known.density
        shape = [known.shape[mode] for mode in format.modes]
        level = format.modes.index(access.variables.index(name))
        before = _prefixes(known, shape, level, format.levels[level - 1].full if level else True)
        after = _prefixes(known, shape, level + 1, False)
        return min(1.0, after / max(before * shape[level], 1e-9))


def _prefixes(known: TensorFacts, shape: list[int], levels: int, full: bool) -> float:
    """How many coordinates of the first levels are there: all, or those with something below."""
    whole, rest = prod(shape[:levels]), prod(shape[levels:])
    if full:
        return float(whole)
    return float(whole * (1 - (1 - min(1.0, known.density)) ** rest))


def _share_of(merge: Merge, shares: Mapping[Access, float]) -> float:
    """The share of all coordinates at which a merge has something."""
    match merge:
        case Leaf(access=access):
            return shares.get(access, 1.0)
        case Everything() | Either(everything=True):
            return 1.0
        case Both(members=members):
            return prod(_share_of(one, shares) for one in members)
        case Either(members=members):
            return 1 - prod(1 - _share_of(one, shares) for one in members)


def _seen(view: View, source: TensorFacts) -> TensorFacts:
    """What is known of a view."""
    modes = [parts[0].mode for parts in view.parts]
    shape = tuple(source.shape[mode] for mode in modes)
    order = tuple(modes.index(mode) for mode in source.order if mode in modes)
    if not source.sparse:
        return replace(source, shape=shape, stored=prod(shape), order=order)
    share = source.density
    return replace(source, shape=shape, stored=share * prod(shape), order=order)
