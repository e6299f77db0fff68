"""The rule of bounds: registers and memory are used inside of their extents, in every iteration.

Whoever reads a graph may rely on it, so that no engine and no hardware has to check.  Proved by isl
where subscripts and conditions are affine in loops and space; the simulator looks at all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t2s.core.expr import Expr, conjuncts
from t2s.core.expr import const as number
from t2s.core.isl import Interval, LoopDomain, NotAffine, is_affine
from t2s.core.location import SourceLocation
from t2s.graph.body import Load, RegisterRead, RegisterWrite, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.graph.verify_expr import GraphError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """``lanes`` elements of ``name`` from ``indices`` on, where ``condition`` holds."""

    verb: str
    name: str
    indices: tuple[Expr, ...]
    shape: tuple[int, ...]
    lanes: int = 1
    condition: Expr | None = None
    declared: SourceLocation | None = None


def verify_bounds(graph: Graph, node: PEArray) -> None:
    """Raise ``GraphError`` for an access that leaves its register file or tensor."""
    found = [access for access in _accesses(graph, node) if access.indices]
    if not found:
        return
    try:
        nest = _nest(node)
    except NotAffine:
        return
    for access in found:
        if all(is_affine(part) for part in conjuncts(access.condition)):
            _verify(node, access, nest.restricted(*conjuncts(access.condition)))


def _verify(node: PEArray, access: _Access, used: LoopDomain) -> None:
    if used.is_empty():
        return
    for dimension, (index, extent) in enumerate(zip(access.indices, access.shape, strict=True)):
        width = access.lanes if dimension == len(access.shape) - 1 else 1
        found = used.range_of(index) if is_affine(index) else None
        if found is None or (found[0] >= 0 and found[1] + width <= extent):
            continue
        raise GraphError(
            f"{node.name!r} {access.verb} outside of {access.name!r}",
            location=node.location,
            expected=f"indices 0 to {extent - 1} in dimension {dimension} of {access.shape}",
            given=f"indices {found[0]} to {found[1] + width - 1}",
            hint="guard the access with a condition, or give the tensor the shape it is used with",
            notes=[(access.declared, f"{access.name!r} is declared here")],
        )


def _nest(node: PEArray) -> LoopDomain:
    space = [
        Interval(name=d.name, minimum=number(d.minimum), extent=number(d.extent))
        for d in node.space
    ]
    loops = [Interval(name=x.name, minimum=x.minimum, extent=x.extent) for x in node.loops]
    return LoopDomain([*space, *loops], [] if node.exists is None else [node.exists])


def _accesses(graph: Graph, node: PEArray) -> Iterator[_Access]:
    shapes = {register.name: register.shape for register in node.registers}
    for statement in node.body:
        match statement:
            case RegisterRead(register=name, indices=indices):
                yield _Access(verb="reads", name=name, indices=indices, shape=shapes[name])
            case RegisterWrite(register=name, indices=indices, condition=condition):
                yield _Access(
                    verb="writes",
                    name=name,
                    indices=indices,
                    shape=shapes[name],
                    condition=condition,
                )
            case Load(tensor=name) | Store(tensor=name):
                tensor = graph.tensor(name)
                loads = isinstance(statement, Load)
                type = statement.type if isinstance(statement, Load) else statement.value.type
                yield _Access(
                    verb="loads" if loads else "stores",
                    name=name,
                    indices=statement.indices,
                    shape=tensor.allocated,
                    lanes=type.lanes,
                    condition=statement.condition,
                    declared=tensor.location,
                )
