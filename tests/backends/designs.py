"""Small designs for the backends, each with one thing in it that is easy to get wrong."""

from __future__ import annotations

from t2s.core.expr import (
    Broadcast,
    Cast,
    Expr,
    Insert,
    LaneNumbers,
    Parameter,
    ReduceLanes,
    Select,
    apply,
    conjunction,
    const,
    equals,
    unequal,
)
from t2s.core.ops import OPERATORS, Op, accepts
from t2s.core.types import BOOL, INT32, Float, Int, Type, UInt
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import (
    Graph,
    ScalarParameter,
    StreamKind,
)
from t2s.graph.nodes import Loop, Register, Role
from tests.backends.builders import (
    channel,
    graph,
    load,
    local,
    node,
    store,
    tensor,
)
from tests.hand_graphs import index, loop, space


def relay_chain(length: int = 24, relays: int = 2) -> Graph:
    """x through nodes that only pass it on: they run for ever."""
    i = index("i")
    loops = (loop("i", length),)
    names = ["x_in", *(f"pass_{n}" for n in range(relays))]
    passes = [
        node(
            f"relay_{n}",
            Role.RELAY,
            loops,
            (
                Receive(target="value", channel=names[n], type=INT32),
                Send(channel=names[n + 1], value=local("value")),
            ),
        )
        for n in range(relays)
    ]
    ends = ["x_load", *(p.name for p in passes), "y_store"]
    return graph(
        "relay_chain",
        (
            load("x_load", "x", "x_in", loops, (i,)),
            *passes,
            store("y_store", "y", names[-1], loops, (i,)),
        ),
        [channel(name, ends[n], ends[n + 1]) for n, name in enumerate(names)],
        (tensor("x", length), tensor("y", length, role="output")),
    )


def serial_feeder(pes: int = 4, block: int = 3, rounds: int = 2, *, extra: int = 0) -> Graph:
    """One feeder serves the PEs in turn, ``block`` tokens each: PEs in lockstep have to wait.

    With ``extra``, the element is an expression of time rather than a loop index.
    """
    r, p, b = index("r"), index("p"), index("b")
    chosen: Expr = p
    if extra:
        chosen = (p + r * extra) % pes
    feeder_loops = (loop("r", rounds), loop("p", pes), loop("b", block))
    array_loops = (loop("r", rounds), loop("b", block))
    feeder = load("feeder", "x", "feed", feeder_loops, (r, chosen, b))
    array = node(
        "array",
        Role.COMPUTE,
        array_loops,
        (
            Receive(target="value", channel="feed", type=INT32),
            Send(channel="out", value=local("value") * (p + 1)),
        ),
        pes=(space("p", pes),),
    )
    return graph(
        "serial_feeder",
        (
            feeder,
            array,
            store("y_store", "y", "out", array_loops, (r, p, b), pes=(space("p", pes),)),
        ),
        (
            channel("feed", "feeder", "array", (pes,), (chosen,), (p,)),
            channel("out", "array", "y_store", (pes,), (p,)),
        ),
        (tensor("x", rounds, pes, block), tensor("y", rounds, pes, block, role="output")),
    )


def scatter_gather(pes: int = 4, share: int = 2, rounds: int = 2) -> Graph:
    """PE 0 takes the stream, each PE keeps its share and passes the rest on; results hop back.

    Scatter: wires whose conditions mix space and time.  Gather: FIFOs from PE to PE.
    """
    r, n, p = index("r"), index("n"), index("p")
    total = pes * share
    loops = (loop("r", rounds), loop("n", total))
    mine = equals(n // share, p)
    beyond = p < n // share
    reaches = n // share >= p
    scatter = node(
        "scatter",
        Role.RELAY,
        loops,
        (
            Receive(target="head", channel="x_in", type=INT32, condition=equals(p, 0)),
            Receive(
                target="passed",
                channel="down",
                type=INT32,
                condition=conjunction(const(0) < p, reaches),
            ),
            Let(
                target="value",
                value=Select(
                    condition=equals(p, 0),
                    if_true=local("head"),
                    if_false=local("passed"),
                    type=INT32,
                ),
            ),
            Send(channel="down", value=local("value"), condition=beyond),
            Send(channel="mine", value=local("value"), condition=mine),
        ),
        pes=(space("p", pes),),
    )
    left = pes - p  # PE p still has the results of PEs p to pes - 1 to send on
    gather_loops = (loop("r", rounds), loop("b", share), loop("n", pes))
    gather = node(
        "gather",
        Role.COMPUTE,
        gather_loops,
        (
            Receive(target="own", channel="mine", type=INT32, condition=equals(n, 0)),
            Receive(
                target="hopped",
                channel="back",
                type=INT32,
                condition=conjunction(const(0) < n, n < left),
            ),
            Let(
                target="result",
                value=Select(
                    condition=equals(n, 0),
                    if_true=local("own") * 10 + p,
                    if_false=local("hopped"),
                    type=INT32,
                ),
            ),
            Send(
                channel="back",
                value=local("result"),
                condition=conjunction(const(0) < p, n < left),
            ),
            Send(channel="y_out", value=local("result"), condition=equals(p, 0)),
        ),
        pes=(space("p", pes),),
    )
    b = index("b")
    return graph(
        "scatter_gather",
        (
            load("x_load", "x", "x_in", loops, (r, n)),
            scatter,
            gather,
            store("y_store", "y", "y_out", gather_loops, (r, b, n)),
        ),
        (
            channel("x_in", "x_load", "scatter"),
            channel("down", "scatter", "scatter", (pes + 1,), (p + 1,), (p,)),
            channel("mine", "scatter", "gather", (pes,), (p,), capacity=share),
            channel("back", "gather", "gather", (pes,), (p - 1,), (p,)),
            channel("y_out", "gather", "y_store"),
        ),
        (tensor("x", rounds, total), tensor("y", rounds, share, pes, role="output")),
    )


def triangular(size: int = 5, *, per_pe: bool = False) -> Graph:
    """Sums of the lower triangle, by loops whose bounds depend on outer loops or on the PE."""
    i, j = index("i"), index("j")
    inner = Loop(name="j", minimum=const(0), extent=i + 1)
    outer, pes = ((), (space("i", size),)) if per_pe else ((loop("i", size),), ())
    last = equals(j, i)
    total = Select(
        condition=equals(j, 0), if_true=const(0), if_false=local("sum"), type=INT32
    ) + local("value")
    rows = node(
        "rows",
        Role.COMPUTE,
        (*outer, inner),
        (
            Receive(target="value", channel="x_in", type=INT32),
            RegisterRead(target="sum", register="sums", indices=(), type=INT32),
            Let(target="total", value=total),
            RegisterWrite(register="sums", indices=(), value=local("total")),
            Send(channel="out", value=local("total"), condition=last),
        ),
        pes=pes,
        registers=(Register(name="sums", type=INT32, shape=(), distance=1),),
    )
    shape, at = ((size,), (i,)) if per_pe else ((), ())
    return graph(
        "triangular",
        (
            load("x_load", "x", "x_in", (*outer, inner), (i, j), pes=pes),
            rows,
            store("y_store", "y", "out", outer, (i,), pes=pes),
        ),
        (
            channel("x_in", "x_load", "rows", shape, at),
            channel("out", "rows", "y_store", shape, at),
        ),
        (tensor("x", size, size), tensor("y", size, role="output")),
    )


def running_total(length: int = 6, pes: int = 2, *, file: int = 3) -> Graph:
    """Register files that start at zero and are read before they are written."""
    t, p = index("t"), index("p")
    loops = (loop("t", length),)
    place = t * 2 % file
    body = (
        Receive(target="value", channel="x_in", type=INT32),
        RegisterRead(target="before", register="totals", indices=(place,), type=INT32),
        Let(target="after", value=local("before") + local("value")),
        RegisterWrite(
            register="totals",
            indices=(place,),
            value=local("after"),
            condition=unequal(t, 2),
        ),
        Send(channel="out", value=local("after")),
    )
    totals = Register(name="totals", type=INT32, shape=(file,), distance=1)
    array = node("array", Role.COMPUTE, loops, body, pes=(space("p", pes),), registers=(totals,))
    return graph(
        "running_total",
        (
            load("x_load", "x", "x_in", loops, (p, t), pes=(space("p", pes),)),
            array,
            store("y_store", "y", "out", loops, (p, t), pes=(space("p", pes),)),
        ),
        (
            channel("x_in", "x_load", "array", (pes,), (p,)),
            channel("out", "array", "y_store", (pes,), (p,)),
        ),
        (tensor("x", pes, length), tensor("y", pes, length, role="output")),
    )


def leftwards(pes: int = 3, length: int = 4) -> Graph:
    """Tokens enter at the last PE and move towards the first, within an iteration."""
    t, p = index("t"), index("p")
    loops = (loop("t", length),)
    enters, leaves = equals(p, pes - 1), equals(p, 0)
    body = (
        Receive(target="new", channel="x_in", type=INT32, condition=enters),
        Receive(target="next", channel="left", type=INT32, condition=p < pes - 1),
        Let(
            target="value",
            value=Select(condition=enters, if_true=local("new"), if_false=local("next"), type=INT32)
            + p,
        ),
        Send(channel="left", value=local("value"), condition=const(0) < p),
        Send(channel="out", value=local("value"), condition=leaves),
    )
    return graph(
        "leftwards",
        (
            load("x_load", "x", "x_in", loops, (t,)),
            node("array", Role.COMPUTE, loops, body, pes=(space("p", pes),)),
            store("y_store", "y", "out", loops, (t,)),
        ),
        (
            channel("x_in", "x_load", "array"),
            channel("left", "array", "array", (pes,), (p - 1,), (p,)),
            channel("out", "array", "y_store"),
        ),
        (tensor("x", length), tensor("y", length, role="output")),
    )


def through_memory(rows: int = 3, columns: int = 4) -> Graph:
    """Writes a matrix to memory, announces it, and reads it back transposed, four at a time."""
    i, j = index("i"), index("j")
    loops = (loop("i", rows), loop("j", columns))
    last = conjunction(equals(i, rows - 1), equals(j, columns - 1))
    write = node(
        "write",
        Role.STORE,
        loops,
        (
            Receive(target="value", channel="x_in", type=INT32),
            Store(tensor="kept", indices=(i, j), value=local("value")),
            Send(channel="written", value=const(True, BOOL), condition=last),
        ),
    )
    first = conjunction(equals(i, 0), equals(j, 0))
    back = (loop("j", columns), loop("i", rows))
    read = node(
        "read",
        Role.LOAD,
        back,
        (
            Receive(target="ready", channel="written", type=BOOL, condition=first),
            Load(target="value", tensor="kept", indices=(i, j), type=INT32),
            Send(channel="back", value=local("value")),
        ),
    )
    return graph(
        "through_memory",
        (
            load("x_load", "x", "x_in", loops, (i, j)),
            write,
            read,
            store("y_store", "y", "back", back, (j, i)),
        ),
        (
            channel("x_in", "x_load", "write"),
            channel("written", "write", "read", element=BOOL, kind=StreamKind.CONTROL),
            channel("back", "read", "y_store"),
        ),
        (
            tensor("x", rows, columns),
            tensor("kept", rows, columns, role="intermediate"),
            tensor("y", columns, rows, role="output"),
        ),
    )


def feedback_loop(length: int = 6) -> Graph:
    """Two nodes in a cycle: the second returns what the first needs for its next firing."""
    t = index("t")
    loops = (loop("t", length),)
    later = const(0) < t
    first = node(
        "first",
        Role.COMPUTE,
        loops,
        (
            Receive(target="value", channel="x_in", type=INT32),
            Receive(target="returned", channel="back", type=INT32, condition=later),
            Send(channel="forth", value=local("value") + local("returned")),
        ),
    )
    second = node(
        "second",
        Role.COMPUTE,
        loops,
        (
            Receive(target="value", channel="forth", type=INT32),
            Send(
                channel="back",
                value=local("value") * 3,
                condition=t < length - 1,
            ),
            Send(channel="out", value=local("value")),
        ),
    )
    return graph(
        "feedback_loop",
        (
            load("x_load", "x", "x_in", loops, (t,)),
            first,
            second,
            store("y_store", "y", "out", loops, (t,)),
        ),
        (
            channel("x_in", "x_load", "first"),
            channel("forth", "first", "second"),
            channel("back", "second", "first"),
            channel("out", "second", "y_store"),
        ),
        (tensor("x", length), tensor("y", length, role="output")),
    )


def operators(element: Type, lanes: int, count: int) -> Graph:
    """Every operator that is defined on ``element``, each with a tensor of its own to write to."""
    vector = element.with_lanes(lanes)
    x, y = local("x", vector), local("y", vector)
    results: dict[str, Expr] = {
        op.name.lower(): apply(op, *(x, y, x)[: OPERATORS[op].arity])
        for op in Op
        if accepts(op, element)
    }
    bigger = results["greater"] if "greater" in results else results["not_equal"]
    results["select"] = Select(condition=bigger, if_true=x, if_false=y, type=vector)
    if lanes > 1:
        splat = Broadcast(value=const(3, element), type=vector)
        results["broadcast"] = Select(condition=bigger, if_true=x, if_false=splat, type=vector)
        # a lane that depends on the firing, and in some firings is none
        results["insert"] = Insert(
            vector=x, lane=index("t") - 1, value=const(3, element), type=vector
        )
        reducers = [Op.AND, Op.OR, Op.XOR, *([Op.ADD, Op.MINIMUM, Op.MAXIMUM])]
        for op in reducers:
            if accepts(op, element):
                name = f"reduce_{op.name.lower()}"
                results[name] = ReduceLanes(operator=op, value=x, type=element)
        if element.is_integer:
            results["lane_numbers"] = x + LaneNumbers(type=vector)
        if not element.is_bool:
            product = x * y
            results["dot"] = ReduceLanes(operator=Op.ADD, value=product, type=element)
    casts = [BOOL, Int(8), UInt(8), Int(16), UInt(16), INT32, UInt(32), Int(64), UInt(64)]
    for target in (*casts, Float(32), Float(64)):
        results[f"cast_{target}"] = Cast(value=x, type=target.with_lanes(lanes))
    t = index("t")
    at = t * lanes
    body: list[Statement] = [
        Load(target=name, tensor=f"{name}_in", indices=(at,), type=vector) for name in "xy"
    ]
    tensors = [tensor(f"{name}_in", count * lanes, element=element) for name in "xy"]
    for name, value in results.items():
        width = value.type.lanes
        place = at if width > 1 else t
        body.append(Store(tensor=name, indices=(place,), value=value))
        tensors.append(tensor(name, count * width, element=value.type.scalar, role="output"))
    return graph(
        f"operators_{vector}", [node("all", Role.STORE, [loop("t", count)], body)], (), tensors
    )


def reconvergent(pes: int = 4, rounds: int = 3) -> Graph:
    """A loader feeds the array in turn and, through a relay, all the time.

    Independent PEs start as soon as PE 0 has its first token; in lockstep the array starts when
    all PEs have theirs, and until then the other path has to hold what the loader sends there.
    """
    r, p, q = index("r"), index("p"), index("q")
    loops = (loop("r", rounds), loop("p", pes))
    loader = node(
        "loader",
        Role.LOAD,
        loops,
        (
            Load(target="value", tensor="x", indices=(r, p), type=INT32),
            Send(channel="first", value=local("value")),
            Send(channel="side", value=local("value") + 1),
        ),
    )
    relay = node(
        "relay",
        Role.RELAY,
        loops,
        (
            Receive(target="value", channel="side", type=INT32),
            Send(channel="side_out", value=local("value")),
        ),
    )
    array_loops = (loop("r", rounds), loop("q", pes))
    body = (
        Receive(target="own", channel="first", type=INT32, condition=equals(q, 0)),
        Receive(target="other", channel="side_out", type=INT32, condition=equals(p, 0)),
        RegisterRead(target="kept", register="sum", indices=(), type=INT32),
        Let(
            target="total",
            value=Select(
                condition=equals(q, 0),
                if_true=local("own"),
                if_false=local("kept"),
                type=INT32,
            )
            + local("other"),
        ),
        RegisterWrite(register="sum", indices=(), value=local("total")),
        Send(channel="out", value=local("total"), condition=equals(q, pes - 1)),
    )
    kept = Register(name="sum", type=INT32, shape=(), distance=1)
    array = node(
        "array", Role.COMPUTE, array_loops, body, pes=(space("p", pes),), registers=(kept,)
    )
    return graph(
        "reconvergent",
        (
            loader,
            relay,
            array,
            store("y_store", "y", "out", (loop("r", rounds),), (r, p), pes=(space("p", pes),)),
        ),
        (
            channel("first", "loader", "array", (pes,), (p,)),
            channel("side", "loader", "relay"),
            channel("side_out", "relay", "array"),
            channel("out", "array", "y_store", (pes,), (p,)),
        ),
        (tensor("x", rounds, pes), tensor("y", rounds, pes, role="output")),
    )


def scaled(element: Type = INT32, length: int = 4) -> Graph:
    """y = alpha * x, by as many firings as the host says."""
    i = index("i")
    loops = (Loop(name="i", minimum=const(0), extent=Parameter(name="count", type=INT32)),)
    alpha = Parameter(name="alpha", type=element)
    scale = node(
        "scale",
        Role.COMPUTE,
        loops,
        (
            Receive(target="value", channel="x_in", type=element),
            Send(channel="out", value=local("value", element) * alpha),
        ),
    )
    return graph(
        "scaled",
        (
            load("x_load", "x", "x_in", loops, (i,), element=element),
            scale,
            store("y_store", "y", "out", loops, (i,), element=element),
        ),
        (
            channel("x_in", "x_load", "scale", element=element),
            channel("out", "scale", "y_store", element=element),
        ),
        (
            tensor("x", length, element=element),
            tensor("y", length, element=element, role="output"),
        ),
        (
            ScalarParameter(name="alpha", type=element),
            ScalarParameter(name="count", type=INT32),
        ),
    )


def circulating(pes: int = 3, lag: int = 2, length: int = 6, *, uneven: bool = False) -> Graph:
    """Every PE gets what its neighbor sent ``lag`` firings ago: shift registers in the kernel.

    With ``uneven``, what was sent in the first half comes back in every other firing: FIFOs.
    """
    t, p = index("t"), index("p")
    loops = (loop("t", length),)
    returning, going = t >= lag, t < length - lag
    if uneven:
        returning = equals(t % 2, 1)
        going = t < length // 2
    around = (p + 1) % pes
    body = (
        Receive(target="new", channel="x_in", type=INT32),
        Receive(target="old", channel="ring", type=INT32, condition=returning),
        Let(target="value", value=local("old") * 2 + local("new")),
        Send(channel="ring", value=local("value"), condition=going),
        Send(channel="out", value=local("value")),
    )
    return graph(
        "circulating",
        (
            load("x_load", "x", "x_in", loops, (p, t), pes=(space("p", pes),)),
            node("array", Role.COMPUTE, loops, body, pes=(space("p", pes),)),
            store("y_store", "y", "out", loops, (p, t), pes=(space("p", pes),)),
        ),
        (
            channel("x_in", "x_load", "array", (pes,), (p,)),
            channel("ring", "array", "array", (pes,), (around,), (p,), capacity=lag),
            channel("out", "array", "y_store", (pes,), (p,)),
        ),
        (tensor("x", pes, length), tensor("y", pes, length, role="output")),
    )


def divided(element: Type, divisors: tuple[int, ...], count: int) -> Graph:
    """Data by constants: quotients and rests, each in a tensor of its own."""
    t, x = index("t"), local("x", element)
    body: list[Statement] = [Load(target="x", tensor="x_in", indices=(t,), type=element)]
    tensors = [tensor("x_in", count, element=element)]
    for operator in (Op.FLOOR_DIVIDE, Op.MODULO):
        for divisor in divisors:
            name = f"{operator.name.lower()}_{divisor}"
            value = apply(operator, x, const(divisor, element))
            body.append(Store(tensor=name, indices=(t,), value=value))
            tensors.append(tensor(name, count, element=element, role="output"))
    return graph("divided", [node("all", Role.STORE, [loop("t", count)], body)], (), tensors)
