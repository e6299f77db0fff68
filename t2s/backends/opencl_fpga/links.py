"""What becomes of the channels: wires and FIFOs inside a kernel, or channels between kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from t2s.backends.base import Unsupported
from t2s.backends.opencl_fpga.domains import enumerate_domain
from t2s.backends.opencl_fpga.lockstep import ChannelPort, LockstepNode
from t2s.backends.opencl_fpga.rehearsal import Traffic, rehearse
from t2s.backends.opencl_fpga.self_links import SelfLinks, plan_self_links
from t2s.core.expr import index_names
from t2s.graph.graph import Channel, Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class PEWire:
    """From PE to PE within one iteration: a variable of the iteration."""

    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """From a node to itself across iterations: a FIFO of ``depth`` inside the kernel.

    ``uniform`` says that all elements are used in the same iterations, so that one pair of
    positions serves them all.  Where every token is received ``lag`` iterations after it was sent,
    the FIFO is a shift register that moves on in every iteration, and needs no positions.
    """

    channel: Channel
    depth: int
    uniform: bool
    lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The elements of a channel array travel together, as one struct on one channel.

    ``used`` counts those that are used at all: where not every PE exists, the others stay empty.
    The one element of a channel that one of several PEs uses travels by itself.
    """

    channel: Channel
    depth: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Separate:
    """An array of channels (or a single one), each element used when its PE wants.

    ``reason`` says why the elements do not travel together, or why the depth is what it is.
    """

    channel: Channel
    depth: int
    reason: str | None = None


Link = PEWire | Delay | Bundle | Separate


@dataclass(frozen=True, kw_only=True)
class ChannelLinks:
    """The link of every channel that is used, and per node the space dimensions to run down."""

    by_channel: Mapping[str, Link]
    descending: Mapping[str, frozenset[str]]


def inside(found: SelfLinks) -> dict[str, Link]:
    """The links within one node, by channel."""
    wires = {channel.name: PEWire(channel=channel) for channel in found.wires}
    delays = {
        delay.channel.name: Delay(
            channel=delay.channel, depth=delay.depth, uniform=delay.uniform, lag=delay.lag
        )
        for delay in found.delays
    }
    return {**wires, **delays}


def plan_links(graph: Graph, nodes: Mapping[str, LockstepNode]) -> ChannelLinks | list[Unsupported]:
    """Decide on every channel; the problems if there are any."""
    links: dict[str, Link] = {}
    descending: dict[str, frozenset[str]] = {}
    problems: list[Unsupported] = []
    for node in nodes.values():
        match plan_self_links(node):
            case SelfLinks() as found:
                descending[node.name] = found.descending
                links |= inside(found)
            case refused:
                problems += refused
    between = [channel for channel in graph.channels if channel.source != channel.sink]
    traffic: list[Traffic] = []
    for channel in between:
        match traffic_of(channel, nodes):
            case Traffic() as found_traffic:
                traffic.append(found_traffic)
            case Unsupported() as problem:
                problems.append(problem)
    if problems:
        return problems
    peaks = rehearse(graph, nodes, traffic)
    if isinstance(peaks, Unsupported):
        return [peaks]
    for item in traffic:
        ends = (nodes[item.channel.source], nodes[item.channel.sink])
        crowded = any(node.space for node in ends)
        links[item.channel.name] = _link(item, peaks.get(item.channel.name), crowded=crowded)
    return ChannelLinks(by_channel=links, descending=descending)


def _link(traffic: Traffic, peak: int | None, *, crowded: bool) -> Link:
    channel = traffic.channel
    if traffic.together and crowded and traffic.used * 2 >= channel.element_count:
        return Bundle(channel=channel, depth=max(channel.capacity, peak or 1), used=traffic.used)
    reason = None
    if not traffic.together:
        reason = "elements are used at different times"
        if peak is not None and peak > channel.capacity:
            reason = f"up to {peak} tokens wait until {channel.sink} can take its next iteration"
    return Separate(channel=channel, depth=max(channel.capacity, peak or 1), reason=reason)


def traffic_of(channel: Channel, nodes: Mapping[str, LockstepNode]) -> Traffic | Unsupported | None:
    """How a channel between two nodes is used; ``None`` if neither end ever uses it."""
    send = nodes[channel.source].sends.get(channel.name)
    receive = nodes[channel.sink].receives.get(channel.name)
    if send is None and receive is None:
        return None
    if send is None or receive is None:
        ends = (channel.sink, channel.source) if send is None else (channel.source, channel.sink)
        return _problem(channel, f"{ends[0]!r} uses it, and {ends[1]!r} never does")
    sent = steady_elements(nodes[channel.source], send)
    received = steady_elements(nodes[channel.sink], receive)
    for node, elements in ((channel.source, sent), (channel.sink, received)):
        if elements is not None and len(set(elements)) < len(elements):
            return _problem(channel, f"two PEs of {node!r} share an element of it")
    together = sent is not None and received is not None and set(sent) == set(received)
    return Traffic(
        channel=channel,
        send=send,
        receive=receive,
        together=together,
        used=len(sent or ()) if together else channel.element_count,
    )


def steady_elements(node: LockstepNode, port: ChannelPort) -> tuple[int, ...] | None:
    """The elements that the PEs use whenever the port is used, if these are always the same."""
    space = {dimension.name for dimension in node.space}
    if port.mixed_factors or any(not index_names(index) <= space for index in port.index):
        return None
    domain = enumerate_domain(node, ())
    if domain is None:
        return None
    used = domain.all_of(port.space_factors)
    elements = domain.elements(port.index, port.channel.shape)
    return tuple(int(item) for item in np.asarray(elements[used]))


def _problem(channel: Channel, why: str) -> Unsupported:
    return Unsupported(subject=f"channel {channel.name!r}", why=why, location=channel.location)
