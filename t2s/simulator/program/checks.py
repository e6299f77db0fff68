"""What is checked before cycle 0: memory addresses, channel elements, and that times fit.

Every failure is a ``UserError`` that names the tensor or channel, shows the user's line, and says
what was expected, what was given and what to try.  Inputs are checked by ``t2s.graph.inputs``.
Times are 64-bit integers: a run that could need more of them is refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.expr import Expr, index_names
from t2s.core.ops import Array
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import PEArray
from t2s.simulator.program.control import UNUSED, Feature, compressed
from t2s.simulator.program.firing_domain import Domain
from t2s.simulator.program.long_loops import UndividedLoop


def check_addresses(graph: Graph, node: PEArray, domain: Domain) -> None:
    """Every element that a PE of the domain loads or stores lies in its tensor."""
    for statement in node.body:
        match statement:
            case Load(tensor=name, indices=indices, type=type):
                _check_access(graph, node, domain, statement, name, indices, type.lanes)
            case Store(tensor=name, indices=indices, value=value):
                _check_access(graph, node, domain, statement, name, indices, value.type.lanes)


def _check_access(
    graph: Graph,
    node: PEArray,
    domain: Domain,
    statement: Load | Store,
    name: str,
    indices: tuple[Expr, ...],
    lanes: int,
) -> None:
    tensor = graph.tensor(name)
    for dimension, (index, extent) in enumerate(zip(indices, tensor.allocated, strict=True)):
        width = lanes if dimension == len(indices) - 1 else 1
        found = _outside(domain, index, statement.condition, extent - width)
        if found is None:
            continue
        verb = "loads" if isinstance(statement, Load) else "stores"
        raise UserError(
            f"{node.name!r} {verb} outside of {name!r}",
            location=node.location,
            expected=f"indices 0 to {extent - 1} in dimension {dimension} of {tensor.allocated}",
            given=f"indices {found[0]} to {found[1] + width - 1}",
            hint="guard the access with a condition, or give the tensor the shape it is used with",
            notes=[(tensor.location, f"{name!r} is declared here")],
        )


def _outside(
    domain: Domain, index: Expr, condition: Expr | None, last: int
) -> tuple[int, int] | None:
    """Smallest and largest active index if one is outside of 0 to ``last``.

    ``UndividedLoop`` if that may be in iterations of a divided loop that are not there.
    """
    bounds = domain.range_of(index)
    if bounds is not None and bounds[0] >= 0 and bounds[1] <= last:
        return None
    if domain.long is not None and domain.long.loop in index_names(index):
        raise UndividedLoop  # an address outside may be that of any iteration
    values = domain.value(index)
    if values.size == 0 or (int(values.min()) >= 0 and int(values.max()) <= last):
        return None
    values, *factors = compressed(domain, (values, *domain.factors(condition)))
    active = np.ones((1,) * len(domain.shape), np.bool_)
    for factor in factors:
        active = active & factor
    both = np.broadcast_shapes(values.shape, active.shape)
    used = np.broadcast_to(values, both)[np.broadcast_to(active, both)]
    if used.size == 0 or (int(used.min()) >= 0 and int(used.max()) <= last):
        return None
    if domain.partial:
        raise UndividedLoop
    return int(used.min()), int(used.max())


def port_feature(
    node: PEArray,
    domain: Domain,
    channel: Channel,
    statement: Receive | Send,
    first_element: int,
) -> Feature:
    """The element of a channel that each firing uses, counted from ``first_element``.

    ``UNUSED`` where the statement's condition does not hold.  ``UserError`` if a firing uses an
    element outside of the channel's shape.
    """
    indices = channel.source_index if isinstance(statement, Send) else channel.sink_index
    flat: Array = np.zeros((1,) * len(domain.shape), np.int64)
    for dimension, (index, extent) in enumerate(zip(indices, channel.shape, strict=True)):
        found = _outside(domain, index, statement.condition, extent - 1)
        if found is not None:
            raise UserError(
                f"{node.name!r} uses elements outside of channel {channel.name!r}",
                location=channel.location or node.location,
                expected=f"indices 0 to {extent - 1} in dimension {dimension} of {channel.shape}",
                given=f"indices {found[0]} to {found[1]}",
                hint="give the channel one element for every pair of PEs that it connects",
            )
        flat = flat * extent + domain.value(index)
    factors = domain.factors(statement.condition)
    return Feature(factors=factors, value=flat + first_element, otherwise=UNUSED)


MOST_CYCLES = 1 << 62
"""No run may take so many cycles; differences and sums of two times still fit into 64 bits."""


def exact_sum(values: NDArray[np.int64]) -> int:
    """The sum of integers, also where it does not fit into 64 bits."""
    if len(values) * int(np.abs(values).max(initial=0)) < MOST_CYCLES:
        return int(values.sum())
    return sum(int(value) for value in values)
