"""The vectors of a machine for all its firings at once: ``banked_port`` with arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.graph import Graph, Tensor
from t2s.graph.semantics import HOLE
from t2s.simulator.memory.banked import NOTHING, Banked
from t2s.simulator.memory.banked_port import swizzled, vectors_of
from t2s.simulator.memory.lane_addresses import Addresses
from t2s.simulator.memory.machine_accesses import RuleAccess, RuleAccesses

Numbers = NDArray[np.int64]

STORE, DECIDES, LEVEL = 1, 2, 4
"""What is said of a vector: ``STORE`` + ``DECIDES`` + ``LEVEL`` times its level."""

ADDRESS_SHIFT, UNIT_SHIFT, PLACE_BITS = 32, 16, 16
"""A word is its address, its unit and its bank, from the left; or ``NOTHING``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _VectorAccess:
    """An access of a rule, and how many vectors of a firing come before it."""

    code: int
    before: int
    vectors: int
    access: RuleAccess


class BankedVectors:
    """The vectors of one machine; ``rules`` are its accesses to shared banks."""

    def __init__(
        self,
        graph: Graph,
        banked: Banked,
        bases: Mapping[str, int],
        rules: Sequence[RuleAccesses],
        codes: Array,
        addresses: Sequence[Addresses],
    ) -> None:
        self._graph, self._banked, self._bases = graph, banked, bases
        self._codes, self._addresses = codes, addresses
        self._accesses: list[_VectorAccess] = []
        self._counts = np.zeros(max(1, len(rules)), np.int32)
        for code, rule in enumerate(rules):
            for access in rule.accesses:
                vectors = vectors_of(graph, access, banked)
                before = int(self._counts[code])
                found = _VectorAccess(code=code, before=before, vectors=vectors, access=access)
                self._accesses.append(found)
                self._counts[code] += vectors
        self._taken = [0 for _ in addresses]
        self.produced = 0

    @property
    def left(self) -> int:
        """Firings that are not yet produced; the last one is of none, for a machine that waits."""
        return len(self._codes) + 1 - self.produced

    @property
    def most(self) -> int:
        """The most vectors of a firing."""
        return int(self._counts.max(initial=0))

    @property
    def stores(self) -> bool:
        """Whether any vector may be one that stores."""
        return any(item.access.store for item in self._accesses)

    def take(self, count: int) -> tuple[Array, Numbers, Numbers]:
        """Of the next firings, at most ``count``: how many vectors, what they are, their words."""
        begin, end = self.produced, self.produced + min(count, self.left)
        self.produced = end
        codes = self._codes[begin:end].astype(np.int64)
        asked = np.zeros(end - begin, np.int32)
        asked[: len(codes)] = self._counts[codes]
        first = np.cumsum(asked, dtype=np.int64) - asked
        total = int(asked.sum())
        what = np.zeros(total, np.int64)
        words = np.full((total, self._banked.lanes), NOTHING, np.int64)
        for channel, tokens in enumerate(self._addresses):
            found = [item for item in self._accesses if item.access.channel == channel]
            makes = np.zeros(len(self._counts), np.bool_)
            makes[[item.code for item in found]] = True
            made = np.flatnonzero(makes[codes])
            here = tokens[self._taken[channel] : self._taken[channel] + len(made)]
            self._taken[channel] += len(made)
            for item in found:
                chosen = codes[made] == item.code
                at = first[made[chosen]] + item.before
                self._put(item, np.asarray(here[chosen], np.int64), at, what, words)
        return asked, what, words.reshape(-1)

    def _put(
        self, item: _VectorAccess, offsets: Numbers, at: Numbers, what: Numbers, words: Numbers
    ) -> None:
        """Put the words of an access into the vectors that begin at ``at``."""
        lanes = self._banked.lanes
        found = self._words(item.access, offsets)
        missing = item.vectors * lanes - found.shape[1]
        if missing:
            found = np.pad(found, ((0, 0), (0, missing)), constant_values=NOTHING)
        access = item.access
        said = STORE * access.store + DECIDES * access.decides + LEVEL * access.level
        for number in range(item.vectors):
            words[at + number] = found[:, number * lanes : (number + 1) * lanes]
            what[at + number] = said

    def _words(self, access: RuleAccess, offsets: Numbers) -> Numbers:
        """The words at these offsets, in rows."""
        tensor = self._graph.tensor(access.tensor)
        base = self._bases[access.tensor]
        if offsets.ndim > 1:
            packed = self._packed(tensor, base + np.maximum(offsets, 0))
            packed[offsets == HOLE] = NOTHING
            return packed
        width = access.bytes // tensor.type.bytes
        return self._packed(tensor, (base + offsets)[:, None] + np.arange(width))

    def _packed(self, tensor: Tensor, addresses: Numbers) -> Numbers:
        banked = self._banked
        if tensor.swizzled:
            addresses = swizzled(addresses, banked)
        row, bank = np.divmod(addresses, banked.banks)
        unit = row & (banked.ports - 1)
        return np.asarray(addresses << ADDRESS_SHIFT | unit << UNIT_SHIFT | bank, np.int64)
