"""The implementation of channels: wires and FIFOs in a kernel, or channels between kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from t2s.backends.base import Unsupported
from t2s.backends.kernels.fifo_sizing import Traffic, rehearse
from t2s.backends.kernels.lockstep import (
    ChannelPort,
    LockstepNode,
    OutOfStep,
    enumerate_domain,
    extent_of,
    loops_deciding,
    loops_used,
    one_period,
    select_loops,
)
from t2s.core.expr import index_names, is_static
from t2s.core.ops import Array
from t2s.graph.control.iterations import Iterations
from t2s.graph.graph import Channel, Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class PEWire:
    """From PE to PE within one iteration: a variable of the iteration."""

    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """From a node to itself across iterations: a FIFO of ``depth`` inside the kernel.

    With ``uniform`` all elements are used in the same iterations, so that one pair of positions
    serves them all.  If every token is received ``lag`` iterations after it was sent, the FIFO is a
    shift register that advances in every iteration, and needs no positions.
    """

    channel: Channel
    depth: int
    uniform: bool
    lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The elements of a channel array travel together, as one struct on one channel.

    ``used`` counts those that are used; if not every PE exists, the others stay empty.  A single
    element that one of several PEs uses travels by itself.
    """

    channel: Channel
    depth: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Separate:
    """An array of channels (or a single one), whose elements are used independently.

    ``reason`` says why the elements do not travel together, or explains the depth.
    """

    channel: Channel
    depth: int
    reason: str | None = None


Link = PEWire | Delay | Bundle | Separate


@dataclass(frozen=True, kw_only=True)
class ChannelLinks:
    """The link of every channel in use, and the space dimensions of each node that run down."""

    by_channel: Mapping[str, Link]
    descending: Mapping[str, frozenset[str]]


def inside(self_links: SelfLinks) -> dict[str, Link]:
    """The links within one node, by channel."""
    wires = {channel.name: PEWire(channel=channel) for channel in self_links.wires}
    delays = {
        delay.channel.name: Delay(
            channel=delay.channel, depth=delay.depth, uniform=delay.uniform, lag=delay.lag
        )
        for delay in self_links.delays
    }
    return {**wires, **delays}


def plan_links(graph: Graph, nodes: Mapping[str, LockstepNode]) -> ChannelLinks | list[Unsupported]:
    """Decide on every channel; or return the problems."""
    links: dict[str, Link] = {}
    descending: dict[str, frozenset[str]] = {}
    problems: list[Unsupported] = []
    for node in nodes.values():
        match plan_self_links(node):
            case SelfLinks() as self_links:
                descending[node.name] = self_links.descending
                links |= inside(self_links)
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
    """The elements that are used whenever the port is used, if these are always the same."""
    space = {dimension.name for dimension in node.space}
    if port.mixed_factors or any(not index_names(index) <= space for index in port.index):
        return None
    domain = enumerate_domain(node, ())
    if domain is None:
        return None
    used = domain.where(port.space_factors)
    elements = domain.elements(port.index, port.channel.shape)
    return tuple(int(item) for item in np.asarray(elements[used]))


def _problem(channel: Channel, why: str) -> Unsupported:
    return Unsupported(subject=f"channel {channel.name!r}", why=why, location=channel.location)


# Channels from a node to itself: wires within an iteration, FIFOs across iterations.
#
# In lockstep, PE ``q`` can take in iteration ``t`` what PE ``p`` sends in iteration ``s`` if
# ``s < t``, or if ``s == t`` and ``p`` runs before ``q``.  Independent PEs could also work with
# ``s > t`` (a PE that lags behind its neighbor by more than the order within an iteration): that
# case, and PEs that pass data both ways within one iteration, are refused.

LONGEST_SHIFT = 1024
"""Most iterations that a token stays in a shift register."""

Pair = tuple[int, int]  # sending and receiving PE, numbered in row-major order


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayPlan:
    """A FIFO inside the kernel; see ``Delay``."""

    channel: Channel
    depth: int
    uniform: bool
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfLinks:
    """The wires and FIFOs of a node, and the space dimensions whose loops run downwards."""

    wires: tuple[Channel, ...]
    delays: tuple[DelayPlan, ...]
    descending: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exchange:
    """The PE pairs that exchange tokens.

    ``ordered`` pairs do it within an iteration; ``overlapping`` pairs access an element in the same
    iteration, for different tokens.  A wire has no depth."""

    channel: Channel
    ordered: frozenset[Pair]
    overlapping: frozenset[Pair] = frozenset()
    depth: int | None = None
    uniform: bool = False
    lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    """The accesses of a port, sorted by element and then by time; times and PEs are numbers."""

    elements: Array
    times: Array
    pes: Array


def plan_self_links(node: LockstepNode) -> SelfLinks | list[Unsupported]:
    """Decide on the channels from a node to itself; or return the problems."""
    exchanges: list[_Exchange] = []
    problems: list[Unsupported] = []
    own = [name for name in {**node.sends, **node.receives} if _is_own(node, name)]
    for name in own:
        send, receive = node.sends.get(name), node.receives.get(name)
        if send is None or receive is None:
            channel = node.sends[name].channel if send else node.receives[name].channel
            verb = "sent to but never received from" if send else "received from but never sent to"
            problems.append(_problem(channel, f"it is {verb}"))
            continue
        match _wire(node, send, receive) or _delay(node, send, receive):
            case _Exchange() as exchange:
                exchanges.append(exchange)
            case Unsupported() as problem:
                problems.append(problem)
    if problems:
        return problems
    return _ordered(node, exchanges)


def _is_own(node: LockstepNode, name: str) -> bool:
    port = node.sends.get(name) or node.receives[name]
    return port.channel.source == port.channel.sink


def _ordered(node: LockstepNode, exchanges: list[_Exchange]) -> SelfLinks | list[Unsupported]:
    """Choose the direction of every space loop."""
    points = node.points

    def forward(pair: Pair, signs: tuple[int, ...]) -> bool:
        origin, target = points[pair[0]], points[pair[1]]
        moves = (s * (b - a) for s, a, b in zip(signs, origin, target, strict=True))
        return next((move > 0 for move in moves if move), False)

    def legal(exchange: _Exchange, signs: tuple[int, ...]) -> bool:
        return all(forward(pair, signs) for pair in exchange.ordered)

    def crowded(exchange: _Exchange, signs: tuple[int, ...]) -> bool:
        return any(forward(pair, signs) for pair in exchange.overlapping)

    choices = [
        signs
        for signs in product((1, -1), repeat=len(node.space))
        if all(legal(exchange, signs) for exchange in exchanges)
    ]
    if not choices:
        return [_disorder(exchange) for exchange in exchanges if exchange.ordered]
    signs = min(choices, key=lambda signs: sum(crowded(e, signs) for e in exchanges))
    return SelfLinks(
        wires=tuple(exchange.channel for exchange in exchanges if exchange.depth is None),
        delays=tuple(
            DelayPlan(
                channel=e.channel,
                depth=e.depth + crowded(e, signs),
                uniform=e.uniform,
                lag=e.lag if e.depth > 1 else None,
            )
            for e in exchanges
            if e.depth is not None
        ),
        descending=frozenset(d.name for d, sign in zip(node.space, signs, strict=True) if sign < 0),
    )


def _disorder(exchange: _Exchange) -> Unsupported:
    if any(sender == receiver for sender, receiver in exchange.ordered):
        return _problem(exchange.channel, "a PE would receive a token in the firing that sends it")
    return _out_of_step(
        exchange.channel,
        "PEs of one kernel run in a fixed order, and no order of rows and columns has every "
        "sender run before its receiver within an iteration; pass data one way only",
    )


def _wire(
    node: LockstepNode, send: ChannelPort, receive: ChannelPort
) -> _Exchange | Unsupported | None:
    """The exchange if every token is received in the iteration in which it is sent."""
    shared = set(send.time_factors) & set(receive.time_factors)
    ports = [
        [factor for factor in port.factors if factor not in shared] for port in (send, receive)
    ]
    deciding = [*ports[0], *ports[1], *send.index, *receive.index]
    if not all(is_static(expr) for expr in deciding):
        return _problem(
            send.channel,
            "it is sent and received under different conditions that depend on a parameter",
        )
    loops = select_loops(node, loops_used(node, deciding))
    domain = enumerate_domain(node, one_period(node, loops, deciding))
    if domain is None:
        return _problem(send.channel, "its conditions take too many values to be compared")
    sent = _tokens(domain, send, domain.where(ports[0]))
    received = _tokens(domain, receive, domain.where(ports[1]))
    for tokens in (sent, received):
        if _shared_element(tokens):
            return _problem(send.channel, "two PEs share an element of it")
    if not (
        np.array_equal(sent.elements, received.elements)
        and np.array_equal(sent.times, received.times)
    ):
        return None
    return _Exchange(channel=send.channel, ordered=_pairs(sent.pes, received.pes))


def _tokens(domain: Iterations, port: ChannelPort, used: Array) -> _Tokens:
    times, pes = np.nonzero(used)
    elements = domain.elements(port.index, port.channel.shape)[used]
    order = np.lexsort((times, elements))
    return _Tokens(elements=elements[order], times=times[order], pes=pes[order])


def _shared_element(tokens: _Tokens) -> bool:
    same = tokens.elements[1:] == tokens.elements[:-1]
    return bool(np.any(same & (tokens.pes[1:] != tokens.pes[:-1])))


def _pairs(senders: Array, receivers: Array) -> frozenset[Pair]:
    return frozenset(
        (int(p), int(q)) for p, q in np.unique(np.stack([senders, receivers], 1), axis=0)
    )


def _delay(node: LockstepNode, send: ChannelPort, receive: ChannelPort) -> _Exchange | Unsupported:
    """The exchange if every token is received later than it is sent."""
    deciding = (*send.expressions, *receive.expressions)
    if not all(is_static(expr) for expr in deciding):
        return _problem(send.channel, "a FIFO between PEs cannot depend on a parameter")
    at = loops_deciding(node, deciding)
    outer, middle = node.loops[: at.start], node.loops[at]
    inner = prod(extent_of(loop, node) or 1 for loop in node.loops[at.stop :])
    for loops in (middle, outer + middle) if outer else (middle,):
        domain = enumerate_domain(node, loops)
        if domain is None:
            return _problem(send.channel, "its iterations are too many for a FIFO to be sized")
        sent = _tokens(domain, send, domain.where(send.factors))
        received = _tokens(domain, receive, domain.where(receive.factors))
        if np.array_equal(sent.elements, received.elements):
            break
    else:
        return _problem(
            send.channel,
            f"{len(sent.times)} tokens are sent and {len(received.times)} are received",
        )
    if np.any(sent.times > received.times):
        return _out_of_step(
            send.channel,
            "a PE would receive before its neighbor has sent, in an earlier iteration; all PEs "
            "of one kernel share their iterations, so delay the receiving PE's condition",
        )
    same = sent.times == received.times
    space = {dimension.name for dimension in node.space}
    uniform = not (send.mixed_factors or receive.mixed_factors) and all(
        index_names(index) <= space for index in (*send.index, *receive.index)
    )
    return _Exchange(
        channel=send.channel,
        ordered=_pairs(sent.pes[same], received.pes[same]),
        overlapping=_overlapping(sent, received),
        depth=_occupancy(sent, received) * inner,
        uniform=uniform,
        lag=_lag(sent, received, inner),
    )


def _lag(sent: _Tokens, received: _Tokens, inner: int) -> int | None:
    """The number of iterations from send to receive, if it is the same for all tokens."""
    lags = np.unique(received.times - sent.times)
    if len(lags) != 1 or not 0 < lags[0] * inner <= LONGEST_SHIFT:
        return None
    return int(lags[0]) * inner


def _occupancy(sent: _Tokens, received: _Tokens) -> int:
    """The most tokens that wait in one element at the end of an iteration."""
    peak = 0
    for element in np.unique(sent.elements):
        sends = sent.times[sent.elements == element]
        receives = received.times[received.elements == element]
        waiting = np.arange(1, len(sends) + 1) - np.searchsorted(receives, sends, "right")
        peak = max(peak, int(waiting.max()))
    return max(peak, 1)


def _overlapping(sent: _Tokens, received: _Tokens) -> frozenset[Pair]:
    """PE pairs that access an element in the same iteration for different tokens."""
    times = max(int(sent.times.max(initial=0)), int(received.times.max(initial=0))) + 1
    sends, receives = sent.elements * times + sent.times, received.elements * times + received.times
    _, at_send, at_receive = np.intersect1d(sends, receives, return_indices=True)
    return _pairs(sent.pes[at_send], received.pes[at_receive])


def _out_of_step(channel: Channel, why: str) -> OutOfStep:
    return OutOfStep(subject=f"channel {channel.name!r}", why=why, location=channel.location)
