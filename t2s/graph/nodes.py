"""Nodes of the graph: arrays of processing elements and of load and store units.

A ``PEArray`` is one node, however many PEs it has: its space domain says which PEs exist, its
loops say what each of them iterates over in time, its body what one firing does.  OpenCL unrolls
the space domain, the simulator expands it, a placer places it.  A ``Machine`` is the other kind of
node: what it does next depends on the tokens that it sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import Expr, evaluate
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.core.walk import Term
from t2s.graph.body import Register, Role, SpaceDimension, Statement
from t2s.graph.machine import Machine

__all__ = ["Loop", "Machine", "Node", "PEArray", "Register", "Role", "SpaceDimension"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Term):
    """One loop in time: ``extent`` iterations from ``minimum``.

    Both are affine in the indices of outer loops and of space dimensions.
    """

    name: str
    minimum: Expr
    extent: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class PEArray(Term):
    """An array of identical PEs.

    Attributes
    ----------
    name: unique in the graph; the user's name of the function where there is one.
    role: compute, relay (passes data on), load or store.
    space: the space domain, one PE per point; empty for a single PE.
    exists: where not all points of that box have a PE (a triangular array), the condition over the
        space indices for there being one.
    loops: time loops, outermost first; a firing is one iteration of the innermost loop, unless it
        is an empty slot (``active``).
    registers, body: storage and statements, see ``graph.body``.
    active: which iterations the definition has, over space and loops (``None``: all).  The others
        are empty slots of a schedule: they take their cycle, do nothing, and are no firings.
    region: name of the innermost region (loop level) the node belongs to.
    location: the user's line that made this node.
    """

    name: str
    role: Role
    space: tuple[SpaceDimension, ...]
    loops: tuple[Loop, ...]
    registers: tuple[Register, ...] = ()
    body: tuple[Statement, ...]
    exists: Expr | None = None
    active: Expr | None = None
    region: str | None = None
    location: SourceLocation | None = None

    @property
    def place_count(self) -> int:
        """Number of points of the space domain, those without a PE included."""
        return prod(dimension.extent for dimension in self.space)

    @property
    def pe_count(self) -> int:
        """Number of PEs."""
        return self.place_count if self.exists is None else int(self.there.sum())

    @property
    def there(self) -> NDArray[np.bool_]:
        """At which points of the space domain there is a PE; as long as ``place_count``."""
        return self.where(self.exists, {})

    def where(self, condition: Expr | None, known: Mapping[str, Array]) -> NDArray[np.bool_]:
        """At which points of the space domain a condition on them holds, and on what is known."""
        if condition is None:
            return np.ones(self.place_count, bool)
        ranges = (np.arange(d.minimum, d.minimum + d.extent, dtype=np.int32) for d in self.space)
        names = [dimension.name for dimension in self.space]
        points = dict(zip(names, np.ix_(*ranges), strict=True))
        with np.errstate(all="ignore"):
            there = np.asarray(evaluate(condition, {**known, **points}))
        return np.broadcast_to(there, [d.extent for d in self.space]).reshape(-1).astype(bool)

    def has_pe(self, point: tuple[int, ...]) -> bool:
        """Whether there is a PE at a point of the space domain."""
        if self.exists is None:
            return True
        names = (dimension.name for dimension in self.space)
        values = {name: np.int32(at) for name, at in zip(names, point, strict=True)}
        return bool(evaluate(self.exists, dict(values)))


Node = PEArray | Machine
