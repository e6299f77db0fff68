"""The depths of a graph's channels: reading them, checking new ones, and putting them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import index
from typing import SupportsIndex

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.graph.graph import Graph

MOST_DEPTH = 1 << 40
"""Largest depth and latency of a channel that may be asked for."""


def depths_of(graph: Graph) -> dict[str, int]:
    """The capacity of every channel, in tokens of the FIFO alone, in graph order."""
    return {channel.name: channel.capacity for channel in graph.channels}


def with_depths(graph: Graph, depths: Mapping[str, int]) -> Graph:
    """The same graph with other capacities for some channels, already checked."""
    channels = tuple(
        replace(channel, capacity=depths[channel.name]) if channel.name in depths else channel
        for channel in graph.channels
    )
    return replace(graph, channels=channels)


def checked_per_channel(
    graph: Graph, values: Mapping[str, SupportsIndex], what: str, location: SourceLocation
) -> dict[str, int]:
    """Positive integers by channel name, as given by a user.

    ``what`` says in the error what they are (``"depth"``).  ``UserError`` for a channel that is not
    there and for anything but an integer from 1 to ``MOST_DEPTH``.
    """
    names = [channel.name for channel in graph.channels]
    if not isinstance(values, Mapping):
        raise UserError(
            f"the channels of every {what} are not named",
            location=location,
            expected=f"a dict from names of channels, such as {{{names[0]!r}: 4}}"
            if names
            else "a dict from names of channels",
            given=repr(values),
        )
    for name in values:
        if name not in names:
            raise UserError(
                f"{graph.name!r} has no channel {name!r}",
                location=location,
                expected=f"one of {', '.join(names)}" if names else "a design with channels",
                given=repr(name),
                hint="t2s.lower(design).channels are the channels of a design",
            )
    return {name: _checked(name, value, what, location) for name, value in values.items()}


def _checked(name: str, value: SupportsIndex, what: str, location: SourceLocation) -> int:
    try:
        number = 0 if isinstance(value, bool) else index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= MOST_DEPTH:
        raise UserError(
            f"the {what} of channel {name!r} is not possible",
            location=location,
            expected=f"an integer from 1 to {MOST_DEPTH}",
            given=repr(value),
        )
    return number
