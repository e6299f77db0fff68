"""Where single firings are in their loop nests: indices by the number of a firing.

Of a machine it is the rule that it took.  Values of loop nests with inputs are in
``firing_values.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.graph.nodes import Machine, PEArray
from t2s.simulator.program.firing_domain import Domain, domains
from t2s.simulator.program.sim_program import NodeTiming, SimProgram

Integers = NDArray[np.int64]

RULE = "rule"
"""The name under which the number of a machine's rule stands."""


@dataclass(frozen=True, kw_only=True)
class FiringPlaces:
    """Finds the loop indices of firings, which count from 0, of the PEs of one node."""

    program: SimProgram
    timing: NodeTiming
    found: tuple[Domain, ...]

    @staticmethod
    def of(program: SimProgram, timing: NodeTiming) -> FiringPlaces:
        """Those of a node; a machine has rules in place of loops."""
        found: tuple[Domain, ...] = ()
        if isinstance(timing.node, PEArray):
            found = domains(timing.node, program.parameters, divided=True)
        return FiringPlaces(program=program, timing=timing, found=found)

    @property
    def names(self) -> tuple[str, ...]:
        """The loops, the outermost first."""
        if isinstance(self.timing.node, Machine):
            return (RULE,)
        return tuple(loop.name for loop in self.timing.node.loops)

    def indices(self, place: int, firings: Integers) -> Integers:
        """The indices of firings of the PE at a place of the node; shape (names, firings)."""
        if isinstance(self.timing.node, Machine):
            return self._rules(place)[firings][None, :]
        domain = next(one for one in self.found if 0 <= place - one.first_pe < one.pe_count)
        inside = np.unravel_index(place - domain.first_pe, domain.shape[: domain.space_rank])
        extents = domain.extents
        at = np.unravel_index(firings + domain.start, extents) if extents else ()

        def values(name: str) -> Integers:
            axes = domain.names[name]
            index = tuple(
                where if extent > 1 else 0
                for where, extent in zip((*inside, *at), axes.shape, strict=True)
            )
            return np.broadcast_to(axes[index], firings.shape).astype(np.int64)

        rows = []
        for loop in self.timing.node.loops:
            division, long = domain.division, domain.long
            if division is not None and division.loop == loop.name:
                quotient, rest = values(division.quotient), values(division.remainder)
                rows.append(quotient * division.base + rest)
            elif long is not None and long.loop == loop.name:
                rows.append(long.minimum + at[long.axis] * long.base + at[long.axis + 1])
            else:
                rows.append(values(loop.name))
        return np.array(rows, np.int64).reshape(len(rows), len(firings))

    def _rules(self, place: int) -> Integers:
        trace = self.program.trace
        codes = None if trace is None else trace.codes.get(self.timing.first + place)
        return np.asarray(() if codes is None else codes, np.int64)
