"""The requests of a unit for many firings at once: ``port`` with arrays.

Which lines a firing asks for depends on the indices of loops only, not on times, so a stretch of
firings is evaluated in one go, a piece of the run after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import evaluate
from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.simulator.domain import Domain
from t2s.simulator.memory.port import accessed_bytes
from t2s.simulator.memory.spec import Dram

Lines = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Firings, counted from the first of the run, and the line that each asks for."""


@dataclass(slots=True)
class _Accesses:
    """One load or store statement of a unit."""

    statement: Load | Store
    base: int
    strides: tuple[int, ...]
    last_line: int = -1
    pending: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def lines(self, environment: dict[str, Array], count: int, line_bytes: int) -> Lines:
        """The lines that each of ``count`` firings begins."""
        firings = np.arange(count)
        if self.statement.condition is not None:
            active = np.broadcast_to(evaluate(self.statement.condition, environment), (count,))
            firings = np.flatnonzero(active)
        if not len(firings):
            return firings, firings
        address = np.full(count, self.base, np.int64)
        for index, stride in zip(self.statement.indices, self.strides, strict=True):
            address += np.asarray(evaluate(index, environment)).astype(np.int64) * stride
        address = address[firings]
        first = address // line_bytes
        last = (address + accessed_bytes(self.statement) - 1) // line_bytes
        before = np.concatenate([[self.last_line], last[:-1]])
        self.last_line = int(last[-1])
        span = last - first + 1
        if int(span.max()) == 1:
            new = first != before
            return firings[new], first[new]
        access = np.repeat(np.arange(len(span)), span)
        line = first[access] + np.arange(len(access)) - (np.cumsum(span) - span)[access]
        new = line != before[access]
        return firings[access[new]], line[new]

    def written(self, begun: Lines, store_lines: int) -> Lines:
        """The lines that are written because other lines begin."""
        firings, lines = begun
        held = len(self.pending)
        lines = np.concatenate([self.pending, lines])
        full = max(0, len(lines) - 1) // store_lines
        self.pending = lines[full * store_lines :]
        at = np.arange(1, full + 1) * store_lines - held
        return np.repeat(firings[at], store_lines), lines[: full * store_lines]


class RequestStream:
    """The requests of one PE, a stretch of firings at a time."""

    def __init__(
        self,
        graph: Graph,
        node: PEArray,
        domain: Domain,
        pe: int,
        bases: Mapping[str, int],
        dram: Dram,
    ) -> None:
        self.domain = domain
        self.dram = dram
        self.point = (
            np.unravel_index(pe, domain.shape[: domain.space_rank]) if domain.space_rank else ()
        )
        self.produced = 0
        self.statements = [
            _Accesses(item, bases[item.tensor], _strides(graph, item.tensor))
            for item in node.body
            if isinstance(item, Load | Store)
        ]

    @property
    def left(self) -> int:
        """Firings that are not yet produced."""
        return self.domain.firings - self.produced

    def take(self, count: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """For the next firings, at most ``count``: how many requests each has, and the requests.

        A request is 2 times the line, plus 1 for a write.
        """
        count = min(count, self.left)
        with np.errstate(all="ignore"):
            environment = self._environment(count)
            found = [self._requests(item, environment, count) for item in self.statements]
        self.produced += count
        if count and not self.left:
            found += [self._rest(item, count - 1) for item in self.statements]
        firings = np.concatenate([firings for firings, _ in found])
        requests = np.concatenate([requests for _, requests in found])
        if len(self.statements) > 1 or not self.left:
            order = np.argsort(firings, kind="stable")
            firings, requests = firings[order], requests[order]
        return np.bincount(firings, minlength=count).astype(np.int32), requests

    def _requests(self, item: _Accesses, environment: dict[str, Array], count: int) -> Lines:
        firings, lines = item.lines(environment, count, self.dram.line_bytes)
        if isinstance(item.statement, Load):
            return firings, 2 * lines
        firings, lines = item.written((firings, lines), self.dram.units.store_lines)
        return firings, 2 * lines + 1

    @staticmethod
    def _rest(item: _Accesses, last: int) -> Lines:
        """What the unit's last firing writes: lines of stores that nothing has written yet."""
        return np.full(len(item.pending), last), 2 * item.pending + 1

    def _environment(self, count: int) -> dict[str, Array]:
        """Every name over the firings of the stretch."""
        extents = self.domain.shape[self.domain.space_rank :]
        numbers = np.arange(self.produced, self.produced + count)
        where = (*self.point, *(np.unravel_index(numbers, extents) if extents else ()))
        return {name: _at(values, where) for name, values in self.domain.names.items()}


def _at(values: Array, where: tuple[Array, ...]) -> Array:
    """The values at points; axes of extent 1 are those that a value does not depend on."""
    if np.ndim(values) == 0:
        return values
    rank = np.ndim(values)
    index = (0 if n == 1 else at for n, at in zip(values.shape, where[-rank:], strict=True))
    return np.asarray(values[tuple(index)])


def _strides(graph: Graph, tensor: str) -> tuple[int, ...]:
    """Bytes from one index to the next, for each dimension."""
    found = graph.tensor(tensor)
    strides: list[int] = []
    stride = found.type.bytes
    for extent in reversed(found.allocated):
        strides.insert(0, stride)
        stride *= extent
    return tuple(strides)


def uses_memory(node: PEArray) -> bool:
    """Whether the node's PEs are units."""
    return any(isinstance(statement, Load | Store) for statement in node.body)
