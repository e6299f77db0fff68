"""Channels that hold a whole fiber, because what becomes of it is needed to read it again.

In ``E(i,j)/s(i)`` with ``s(i) = E(i,j)``, a row of E goes to the sum and, beside it, to the
quotient, which waits for the sum.  So the channels beside the sum hold the row; if they held less,
its producer would be stuck, and the sum would never get the rest of the row.  (Channels without
bounds hold everything.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire, TokenKind, Wired

Held: TypeAlias = Mapping[tuple[int, int], tuple[str, ...]]
"""By the number of a block and of its input: the variables of the levels of a fiber."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """A block and the depth of what it sends: the tokens of a stream go with tokens of its."""

    block: int
    depth: int


@dataclass(frozen=True, slots=True)
class _Reduced:
    """An origin whose fibers a reducer takes as a whole, inside of ``depth`` loops."""

    origin: _Origin
    reducer: int
    depth: int


def held_fibers(diagram: Diagram) -> Held:
    """The inputs of blocks that hold a fiber while another input waits for what a reducer makes of
    the same fiber.
    """
    return _Streams(diagram).held


def _loops_around(wired: Wired) -> int | None:
    """The loops around the lists that a reducer takes; ``None`` for other blocks."""
    if wired.block.kind is not BlockKind.REDUCE:
        return None
    keeps = any(wire.kind is TokenKind.COORDINATE for wire in wired.outputs)
    return min(wire.depth for wire in wired.outputs) - keeps


class _Streams:
    """What the tokens of each wire come from, and what they wait for."""

    def __init__(self, diagram: Diagram) -> None:
        self._blocks = diagram.blocks
        self._chains: dict[str, tuple[str, ...]] = {"": ()}
        for loop in diagram.loops:
            self._chains[loop.name] = (*self._chains[loop.parent or ""], loop.index)
        self._sources = {
            wire: number for number, wired in enumerate(self._blocks) for wire in wired.outputs
        }
        self._before: list[frozenset[int]] = []
        origins: dict[DiagramWire, frozenset[_Origin]] = {}
        reduced: dict[DiagramWire, frozenset[_Reduced]] = {}
        self.held: dict[tuple[int, int], tuple[str, ...]] = {}
        for number, wired in enumerate(self._blocks):
            inputs = wired.inputs
            sources = [self._sources[wire] for wire in inputs]
            self._before.append(
                frozenset(sources).union(*(self._before[source] for source in sources))
            )
            for at, wire in enumerate(inputs):
                for other in inputs:
                    for waited in reduced[other]:
                        if waited.origin in origins[wire]:
                            self._hold(waited, number, at)
            came = frozenset[_Origin]().union(*(origins[wire] for wire in inputs))
            lost = frozenset[_Reduced]().union(*(reduced[wire] for wire in inputs))
            around = _loops_around(wired)
            taken = frozenset(o for o in came if around is not None and o.depth > around)
            if around is not None:
                lost |= {_Reduced(origin, number, around) for origin in taken}
            for wire in wired.outputs:
                own = {_Origin(number, wire.depth)} if wire.depth else set[_Origin]()
                origins[wire] = frozenset(o for o in came - taken if o.depth <= wire.depth) | own
                reduced[wire] = lost

    def _hold(self, waited: _Reduced, block: int, port: int) -> None:
        """Hold the fiber where the way to an input leaves the ways to the reducer."""
        reducing = self._before[waited.reducer] | {waited.reducer}
        source = self._sources[self._blocks[block].inputs[port]]
        on_the_way = self._before[source] | {source}
        ends = [(block, port)]
        ends += [
            (number, at)
            for number in sorted(on_the_way - reducing)
            for at in range(len(self._blocks[number].inputs))
        ]
        for number, at in ends:
            wire = self._blocks[number].inputs[at]
            sender = self._sources[wire]
            after = sender == waited.origin.block or waited.origin.block in self._before[sender]
            if after and sender in reducing and wire.depth > waited.depth:
                self.held[number, at] = tuple(self._levels(number, wire))[waited.depth :]

    def _levels(self, block: int, wire: DiagramWire) -> Iterator[str]:
        """The variables of the lists of a wire, outermost first."""
        loops = (self._blocks[at].loop for at in (block, self._sources[wire]))
        longest = max((self._chains[loop] for loop in loops), key=len)
        yield from longest[: wire.depth]
