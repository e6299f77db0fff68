"""Receives and sends of a PE, for each form that a channel can take."""

from __future__ import annotations

from collections.abc import Callable

from t2s.backends.kernels.conditions import is_used, only_use, uses_of
from t2s.backends.kernels.kernel_ast import (
    Declare,
    FieldOf,
    For,
    Subscript,
    element,
)
from t2s.backends.kernels.links import Bundle, Delay, PEWire, Separate
from t2s.backends.kernels.lockstep import (
    ChannelPort,
    LockstepNode,
    enumerate_domain,
    loops_used,
    select_loops,
)
from t2s.backends.kernels.scope import KernelScope, dimensions_of, where
from t2s.backends.text.expressions import (
    Do,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Ternary,
    binary,
    number,
)
from t2s.core.expr import Index, Local, conjunction, conjuncts, is_static
from t2s.graph.body import Receive, Send, Store
from t2s.graph.graph import Channel, StreamKind


def is_control(channel: Channel) -> bool:
    """Whether tokens announce memory accesses."""
    return channel.stream.kind is StreamKind.CONTROL


def receive(scope: KernelScope, statement: Receive) -> list[TargetStatement]:
    """Bind the target of a receive."""
    port = scope.node.receives[statement.channel]
    link = scope.link(statement.channel)
    match link:
        case PEWire() | Bundle():
            source = _element(scope, link, port)
            if not is_used(statement.target, scope.node.body):
                return []
            if _used_in_place(scope.node, statement):
                scope.expressions.locals[statement.target] = source
                return []
            return scope.bind_where(statement.target, statement.type, statement.condition, source)
        case Delay():
            return _receive_delayed(scope, statement, link, port)
        case Separate():
            return _receive_separately(scope, statement, link, port)


def send(scope: KernelScope, statement: Send) -> list[TargetStatement]:
    """Send a value, or put it where the kernel sends it from."""
    port = scope.node.sends[statement.channel]
    link = scope.link(statement.channel)
    value = scope.lower(statement.value)
    match link:
        case PEWire() | Bundle():
            # Receivers read only at the right times, so only the position is tested here.
            factors = conjuncts(statement.condition)
            if not any(scope.depends_on_time(index) for index in port.index):
                factors = tuple(f for f in factors if scope.depends_on_space(f))
            if isinstance(link, PEWire):
                value = scope.dialect.passed_on(value)
            store = Set(target=_element(scope, link, port), value=value)
            return where(scope.condition(conjunction(*factors)), [store])
        case Delay():
            at, advance = _fifo(scope, link, port, "write")
            sent: list[TargetStatement] = [Set(target=at, value=value), *advance]
        case Separate():
            sent = _select_element(
                scope, link, port, lambda at: [scope.dialect.write_channel(at, value)]
            )
            if is_control(link.channel):
                sent = [*scope.dialect.control_fence(), *sent]
    return where(scope.condition(statement.condition), sent)


def indices_of(scope: KernelScope, port: ChannelPort) -> tuple[TargetExpression, ...]:
    """The indices of a port, without dimensions of one element."""
    pairs = zip(port.index, port.channel.shape, strict=True)
    return tuple(scope.lower(index) for index, size in pairs if size > 1)


def _element(scope: KernelScope, link: PEWire | Bundle, port: ChannelPort) -> TargetExpression:
    name, indices = link.channel.name, indices_of(scope, port)
    if isinstance(link, PEWire):
        return element(scope.file.channels[name], *indices)
    token = Name(name=scope.tokens[name])
    if not indices:
        return token
    return Subscript(base=FieldOf(base=token, field="s"), indices=indices)


def _used_in_place(node: LockstepNode, statement: Receive) -> bool:
    """Whether the use is unique, and never sees the zero of a receive that does not happen."""
    uses = list(uses_of(statement.target, node.body))
    if len(uses) != 1:
        return False
    needed, (known,) = conjuncts(statement.condition), uses
    if set(needed) <= set(known):
        return True
    if not all(is_static(expr) for expr in (*needed, *known)):
        return False
    domain = enumerate_domain(node, select_loops(node, loops_used(node, (*needed, *known))))
    return domain is not None and not bool((domain.where(known) & ~domain.where(needed)).any())


# ------------------------------------------------------------------- FIFOs inside the kernel


def _receive_delayed(
    scope: KernelScope, statement: Receive, link: Delay, port: ChannelPort
) -> list[TargetStatement]:
    at, advance = _fifo(scope, link, port, "read")
    if not is_used(statement.target, scope.node.body):
        return where(scope.condition(statement.condition), advance)
    if not advance:
        return scope.bind_where(statement.target, statement.type, statement.condition, at)
    if statement.condition is None:
        return [*scope.bind(statement.target, statement.type, at), *advance]
    return scope.bind_by(
        statement.target,
        statement.type,
        statement.condition,
        lambda variable: [Set(target=variable, value=at), *advance],
    )


def _fifo(
    scope: KernelScope, link: Delay, port: ChannelPort, end: str
) -> tuple[TargetExpression, list[TargetStatement]]:
    """The port's position in a FIFO's array, and the statements that advance it."""
    name, indices = scope.file.channels[link.channel.name], indices_of(scope, port)
    if link.depth == 1:
        return element(name, *indices), []
    if link.lag is not None:
        return element(name, *indices, number(link.lag if end == "read" else 0)), []
    positions = scope.positions[link.channel.name]
    variable = positions.read if end == "read" else positions.write
    position = element(variable) if link.uniform else element(variable, *indices)
    at = element(name, *indices, position)
    return at, [] if link.uniform else [advance(position, link.depth)]


def moved_along(scope: KernelScope, link: Delay, lag: int) -> list[TargetStatement]:
    """Advance the shift registers of a FIFO by one iteration."""
    name = scope.file.channels[link.channel.name]
    sizes = dimensions_of(link.channel)
    places = [scope.identifiers.fresh("place") for _ in sizes]
    age, at = scope.identifiers.fresh("age"), [Name(name=place) for place in places]
    older = element(name, *at, Name(name=age))
    younger = element(name, *at, binary("-", Name(name=age), number(1)))
    shift: TargetStatement = For(
        name=age,
        start=number(lag),
        stop=number(1),
        body=(Set(target=older, value=younger),),
        down=True,
        unroll=True,
    )
    for place, size in zip(reversed(places), reversed(sizes), strict=True):
        shift = For(name=place, start=number(0), stop=number(size), body=(shift,), unroll=True)
    return [shift]


def advance(position: TargetExpression, depth: int) -> Set:
    """Advance a FIFO position, modulo the depth."""
    last = binary("==", position, number(depth - 1))
    after = binary("+", position, number(1))
    value = Ternary(condition=last, if_true=number(0), if_false=after)
    return Set(target=position, value=value)


# ------------------------------------------------------------------- channels between kernels


def _receive_separately(
    scope: KernelScope, statement: Receive, link: Separate, port: ChannelPort
) -> list[TargetStatement]:
    fence = scope.dialect.control_fence() if is_control(link.channel) else []
    read_channel = scope.dialect.read_channel
    if not is_used(statement.target, scope.node.body):
        taken = _select_element(scope, link, port, lambda at: [Do(call=read_channel(at))])
        return where(scope.condition(statement.condition), [*taken, *fence])
    if statement.condition is None and not fence and not _moving(scope, port):
        source = element(scope.file.channels[link.channel.name], *indices_of(scope, port))
        if _passed_on(scope.node, statement):
            scope.expressions.locals[statement.target] = read_channel(source)
            return []
        return scope.bind(statement.target, statement.type, read_channel(source))

    def fill(variable: TargetExpression) -> list[TargetStatement]:
        def take(at: TargetExpression) -> list[TargetStatement]:
            return [Set(target=variable, value=read_channel(at))]

        return [*_select_element(scope, link, port, take), *fence]

    return scope.bind_by(statement.target, statement.type, statement.condition, fill)


def _passed_on(node: LockstepNode, statement: Receive) -> bool:
    """Whether the next statement, and no other, always uses the received value unchanged."""
    place = node.body.index(statement)
    if only_use(statement.target, node.body) != place + 1:
        return False
    match node.body[place + 1]:
        case Store(condition=None, value=Local(type=type)):
            return type.lanes == 1
        case Send(condition=None, value=Local()):
            return True
    return False


def is_selected(scope: KernelScope, port: ChannelPort) -> bool:
    """Whether the channel is selected by an unrolled loop, which duplicates the access."""
    return isinstance(scope.link(port.channel.name), Separate) and bool(_moving(scope, port))


def _moving(scope: KernelScope, port: ChannelPort) -> list[int]:
    """Dimensions of the channel array whose index changes over time."""
    return [
        at
        for at, (index, size) in enumerate(zip(port.index, port.channel.shape, strict=True))
        if size > 1 and scope.depends_on_time(index)
    ]


def _select_element(
    scope: KernelScope,
    link: Separate,
    port: ChannelPort,
    use: Callable[[TargetExpression], list[TargetStatement]],
) -> list[TargetStatement]:
    """Access an element of a channel array.

    Hardware needs constant channel indices: along a dimension whose index changes over time, an
    unrolled loop over the elements compares with the index.
    """
    moving = _moving(scope, port)
    counters = {at: scope.identifiers.fresh("lane") for at in moving}
    indices: list[TargetExpression] = []
    tests: list[TargetExpression] = []
    statements: list[TargetStatement] = []
    for at, (index, size) in enumerate(zip(port.index, port.channel.shape, strict=True)):
        if size == 1:
            continue
        value = scope.lower(index)
        if at in counters:
            if not isinstance(index, Index):
                name = scope.identifiers.fresh("chosen")
                statements.append(Declare(type="int", name=name, initial=value))
                value = Name(name=name)
            tests.append(binary("==", Name(name=counters[at]), value))
            value = Name(name=counters[at])
        indices.append(value)
    used = use(element(scope.file.channels[link.channel.name], *indices))
    for test in reversed(tests):
        used = where(test, used)
    for at in reversed(moving):
        size = port.channel.shape[at]
        used = [
            For(
                name=counters[at],
                start=number(0),
                stop=number(size),
                body=tuple(used),
                unroll=True,
            )
        ]
    return statements + used
