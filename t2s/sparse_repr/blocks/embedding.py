"""Dense designs inside of graphs of streams: load units make room for streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.graph.body import Load
from t2s.graph.graph import Channel, Graph, Region, ScalarParameter, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Node, Role
from t2s.graph.verify_machine import accesses_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """What is left of a dense design without some load units.

    ``fed`` are the channels that these sent to, each with the name of its unit; ``feeding`` are the
    streams in their place.
    """

    nodes: tuple[Node, ...]
    channels: tuple[Channel, ...]
    fed: tuple[tuple[Channel, str], ...]
    tensors: tuple[Tensor, ...]
    parameters: tuple[ScalarParameter, ...]
    regions: tuple[Region, ...]
    feeding: Mapping[str, Any] = field(default_factory=dict)


def embedded_design(dense: Graph, feeding: Mapping[str, StreamType]) -> Embedded:
    """Take the load units named in ``feeding`` out of a design.

    Raises ``UserError`` for what is no load unit, for one with several PEs, and for a stream of
    another type than its channels.
    """
    for name, stream in feeding.items():
        _check_unit(dense, name, stream)
    kept = tuple(node for node in dense.nodes if node.name not in feeding)
    used = {tensor for node in kept for tensor in accesses_of(node)}
    tensors = tuple(
        tensor
        for tensor in dense.tensors
        if tensor.name in used or tensor.role is not TensorRole.INPUT
    )
    return Embedded(
        nodes=kept,
        channels=tuple(channel for channel in dense.channels if channel.source not in feeding),
        fed=tuple((c, c.source) for c in dense.channels if c.source in feeding),
        tensors=tensors,
        parameters=dense.parameters,
        regions=dense.regions,
    )


def _check_unit(dense: Graph, name: str, stream: StreamType) -> None:
    units = {
        node.name: node
        for node in dense.pe_arrays
        if node.role is Role.LOAD and any(isinstance(s, Load) for s in node.body)
    }
    if name not in units:
        raise UserError(
            f"{dense.name!r} has no load unit {name!r}",
            location=user_location(),
            expected=f"one of {', '.join(sorted(units)) or 'none: it has no load units'}",
            given=repr(name),
        )
    unit = units[name]
    notes = [(unit.location, f"{name!r} is made here")]
    if unit.space or dense.inputs_of(name):
        raise UserError(
            f"the load unit {name!r} of {dense.name!r} cannot make room for a stream",
            location=user_location(),
            expected="a single unit that waits for nothing",
            given=f"{unit.place_count} units" if unit.space else "a unit that waits for tokens",
            notes=notes,
            hint="let one unit load, and the PEs pass the values on (forward, scatter)",
        )
    for channel in dense.outputs_of(name):
        if channel.shape or channel.stream != stream:
            raise UserError(
                f"the stream for {name!r} does not fit the channel {channel.name!r}",
                location=user_location(),
                expected=f"{channel.stream.element} values, nested {channel.stream.nesting} deep,"
                f" for a channel of shape {channel.shape}",
                given=f"{stream.element} values, nested {stream.nesting} deep",
                notes=notes,
                hint="values_only makes a dense stream; compute casts",
            )


def taken(kind: str, name: str, location: SourceLocation | None) -> UserError:
    """The error for two things of one name."""
    return UserError(
        f"there is a {kind} {name!r} already",
        location=user_location(),
        expected=f"a name of its own for each {kind}",
        given=repr(name),
        notes=[(location, f"the {kind} of the dense design is made here")],
    )
