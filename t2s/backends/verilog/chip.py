"""The module of a chip around a design, and what a chip does not have."""

from __future__ import annotations

from collections.abc import Iterator

from t2s.backends.base import DeviceTimes, Unsupported
from t2s.backends.text.expressions import If, Name, TargetExpression, number
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.float_operators import not_available
from t2s.backends.verilog.reductions import reduction
from t2s.backends.verilog.sorted_memory import POINTS
from t2s.backends.verilog.top import MOST_TOKENS, Top
from t2s.core.walk import walk
from t2s.graph.graph import Graph
from t2s.graph.nodes import Machine, Node, Search


def chip_module(top: Top) -> ast.HardwareModule:
    """The module around a design that starts it and says when it is done.

    It has the ports of the design, and two more.  The design runs from the cycle on in which
    ``start`` is first 1 after a reset; ``done`` is 1 once all of its nodes have ended, and what
    they store has left it.
    """
    fresh = top.identifiers.fresh
    idle, rests, ended = fresh("idle"), fresh("rests"), fresh("ended")
    drained = max(
        (store.stage for interface, _ in top.nodes for store in interface.stores), default=0
    )
    finished = [(names.finished, interface.node.place_count) for interface, names in top.nodes]
    connections: list[tuple[str, TargetExpression]] = [
        (p.variable.name, Name(name=p.variable.name)) for p in top.ports
    ]
    connections[1] = port.RESET, Name(name=rests)
    reset, start = Name(name=port.RESET), Name(name=top.start)
    waits = ast.both(Name(name=idle), ast.negation(start))
    items: list[ast.Item] = [
        ast.variable(idle),
        ast.variable(rests),
        ast.variable(ended),
        ast.ContinuousAssignment(target=Name(name=rests), value=ast.either(reset, waits)),
        ast.AlwaysFF(
            body=(
                If(
                    condition=reset,
                    then=(ast.put(idle, ast.TRUE, clocked=True),),
                    otherwise=(
                        If(condition=start, then=(ast.put(idle, ast.FALSE, clocked=True),)),
                    ),
                ),
            )
        ),
        ast.Instance(module=top.module, name=fresh("design"), connections=tuple(connections)),
        *reduction(fresh, ended, finished, rests, every=True),
    ]
    done = Name(name=top.done)
    if drained:
        items.append(
            ast.Instance(
                module="delay",
                name=fresh("drain"),
                parameters=(("WIDTH", number(1)), ("CYCLES", number(drained))),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    (port.RESET, Name(name=rests)),
                    ("now", Name(name=ended)),
                    ("later", done),
                ),
            )
        )
    else:
        items.append(ast.ContinuousAssignment(target=done, value=Name(name=ended)))
    return ast.HardwareModule(
        name=top.chip,
        about=(
            f"The design {top.graph.name}, to be started; it is reset while it waits for that.",
        ),
        ports=(*top.ports, ast.input_port(top.start), ast.output_port(top.done)),
        items=tuple(items),
    )


def problems_of(graph: Graph, times: DeviceTimes) -> list[Unsupported]:
    """What a chip does not have, while the simulation does; empty if there is nothing."""
    problems = [
        Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
        for node in graph.nodes
        for why in _reasons(node)
    ]
    return [*problems, *unbounded(graph, times)]


def unbounded(graph: Graph, times: DeviceTimes | None = None) -> list[Unsupported]:
    """What to say of channels for which there is no FIFO of constant capacity, if there are any.

    With ``times`` a FIFO has room for latencies, too.
    """
    channels = [
        channel
        for channel in graph.channels
        if (channel if times is None else times.channels[channel.name]).capacity > MOST_TOKENS
    ]
    if not channels:
        return []
    why = (
        f"it holds more tokens than a FIFO of a chip, which has room for {MOST_TOKENS:,}; "
        f"{len(channels):,} of {len(graph.channels):,} channels do"
    )
    if graph.machines:
        why += (
            ".  t2s.sparse.compile(...).design(capacity=2) is the design with channels that hold "
            "two, and as many more as longer ways beside them take"
        )
    first = channels[0]
    where = first.location or graph.location
    return [Unsupported(subject=f"channel {first.name!r}", why=why, location=where)]


def _reasons(node: Node) -> Iterator[str]:
    """The first reason of each kind."""
    yield from not_available(node)
    if any(isinstance(term, Search) for term in walk(node)):
        yield "it searches in a tensor, for which a memory would be addressed by its content"
    if isinstance(node, Machine) and node.memories:
        yield (
            f"its sorted memory compares {POINTS:,} points at once, more than an FPGA has logic for"
        )
    if isinstance(node, Machine) and node.endless:
        yield "it never ends, so that the chip would not know when it is done"
