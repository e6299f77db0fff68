"""What a hand-made machine may not do: the whole text of each error."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from t2s.core.expr import const
from t2s.core.location import SourceLocation, user_location
from t2s.core.types import INT32, Float
from t2s.graph.body import Let, Store
from t2s.graph.graph import Channel, Graph, StreamType
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Role, Rule, Search
from t2s.graph.semantics import ProtocolError
from t2s.graph.verify import verify_graph
from t2s.graph.verify_expr import GraphError
from t2s.simulator.run import simulate
from tests.errors.refusal import refused
from tests.graph.machines import copying, is_tag, local
from tests.hand_graphs import systolic_gemm


def sink_with(**changes: Any) -> Graph:
    """The copying graph with a changed sink, said to be made at the line of the call."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    line = SourceLocation(frame.f_back.f_code.co_filename, frame.f_back.f_lineno)
    graph = copying()
    source, sink = graph.nodes
    return replace(graph, nodes=(source, replace(sink, location=line, **changes)))


def mode(*choices: Choice, needs: tuple[str, ...] = ("xs",)) -> tuple[Mode, ...]:
    return (Mode(name="take", needs=needs, choices=choices),)


def taking(**changes: Any) -> Rule:
    return replace(Rule(name="end", takes=("xs",)), **changes)


def check(graph: Graph) -> None:
    verify_graph(graph)


def test_a_head_for_every_input() -> None:
    graph = sink_with(heads=())  # no head
    with refused(
        """
        node 'sink': its heads are not those of its input channels
          --> graph = sink_with(heads=())  # no head
          expected: xs
          given:    no heads
          hint:     look at 'xs'
        """,
        GraphError,
    ):
        check(graph)


def test_a_tag_where_the_stream_has_one() -> None:
    graph = sink_with(heads=(Head(channel="xs", value="value"),))
    with refused(
        """
        node 'sink': the head of channel 'xs' does not fit its stream
          --> graph = sink_with(heads=(Head(channel="xs", value="value"),))
          expected: a tag: the nesting is 1
          given:    no tag
        """,
        GraphError,
    ):
        check(graph)


def test_a_mode_that_does_not_exist() -> None:
    graph = sink_with(modes=mode(Choice(inside=taking(next="gone"))))
    with refused(
        """
        node 'sink': the mode after rule 'end' does not exist
          --> graph = sink_with(modes=mode(Choice(inside=taking(next="gone"))))
          expected: one of take
          given:    'gone'
        """,
        GraphError,
    ):
        check(graph)


def test_taking_what_is_not_needed() -> None:
    graph = sink_with(modes=mode(Choice(inside=taking()), needs=()))
    with refused(
        """
        node 'sink': rule 'end' takes a head that it does not need, or takes it twice
          --> graph = sink_with(modes=mode(Choice(inside=taking()), needs=()))
          expected: nothing: there are none
          given:    'xs'
        """,
        GraphError,
    ):
        check(graph)


def test_looking_at_a_head_that_is_not_needed() -> None:
    peek = Choice(body=(Let(target="seen", value=local("value")),), inside=taking())
    graph = sink_with(modes=mode(peek, needs=()))
    with refused(
        """
        node 'sink': mode 'take': 'seen': the local 'value' is not in scope
          --> graph = sink_with(modes=mode(peek, needs=()))
          expected: one of place
          given:    'value'
          hint:     indices come from the node's own space and outer loops; locals are bound by an
                    earlier statement
        """,
        GraphError,
    ):
        check(graph)


def test_putting_into_another_channel() -> None:
    graph = sink_with(modes=mode(Choice(inside=taking(puts=(Put(channel="xs"),)))))
    with refused(
        """
        node 'sink': rule 'end' puts into a channel that is not its own
          --> graph = sink_with(modes=mode(Choice(inside=taking(puts=(Put(channel="xs"),)))))
          expected: nothing: there are none
          given:    'xs'
        """,
        GraphError,
    ):
        check(graph)


def test_a_channel_that_no_rule_takes() -> None:
    graph = sink_with(modes=mode(Choice(inside=taking(takes=()))))
    with refused(
        """
        node 'sink': no rule takes tokens from channel 'xs'
          --> graph = sink_with(modes=mode(Choice(inside=taking(takes=()))))
          expected: every channel of a node to be used
          given:    none
          hint:     remove the channel, or add it to a rule
        """,
        GraphError,
    ):
        check(graph)


def test_a_circle_that_does_nothing() -> None:
    idle = Rule(name="wait", next="take")
    waiting = mode(Choice(when=is_tag("tag", 0), inside=idle), Choice(inside=taking()))
    graph = sink_with(modes=waiting)
    with refused(
        """
        node 'sink': mode 'take' may loop forever without effect
          --> graph = sink_with(modes=waiting)
          expected: a rule on the way that takes, puts or changes something
          given:    rules that do nothing
        """,
        GraphError,
    ):
        check(graph)


def test_storing_on_the_way_to_a_rule() -> None:
    early = Store(tensor="y", indices=(const(0),), value=const(0))
    graph = sink_with(modes=mode(Choice(body=(early,), inside=taking())))
    with refused(
        """
        node 'sink': mode 'take' has a statement that is not allowed there
          --> graph = sink_with(modes=mode(Choice(body=(early,), inside=taking())))
          expected: Let, Load, Search, RegisterRead, MemorySize, MemoryFirst
          given:    Store
        """,
        GraphError,
    ):
        check(graph)


def test_two_nodes_at_one_tensor_that_is_stored_into() -> None:
    graph = sink_with()  # the source loads the output
    source, sink = graph.nodes
    assert isinstance(source, Machine)
    search = Search(target="at_y", tensor="y", begin=const(0), end=const(0), value=const(0))
    first = source.modes[0]
    peeking = replace(
        first, choices=(replace(first.choices[0], body=(*first.choices[0].body, search)),)
    )
    both = replace(source, modes=(peeking, source.modes[1]))
    with refused(
        """
        node 'sink': node 'source' uses 'y' as well, into which it stores
          --> graph = sink_with()  # the source loads the output
          expected: what a machine stores into to be its own: values must not depend on time
          given:    two nodes that use 'y'
        """,
        GraphError,
    ):
        check(replace(graph, nodes=(both, sink)))


def test_a_pe_array_at_a_stream_with_stops() -> None:
    graph = systolic_gemm(2, 2, 2)
    channel = replace(
        graph.channels[0],
        stream=StreamType(element=graph.channels[0].stream.element, nesting=1),
        location=user_location(),  # nested
    )
    with pytest.raises(GraphError, match=r"is a PE array\n(.*\n)*.*machines at both ends"):
        check(replace(graph, channels=(channel, *graph.channels[1:])))


def test_a_token_that_the_protocol_does_not_allow() -> None:
    """The sink takes stops of level 0 only, and is sent one of level 2."""
    graph = sink_with()  # takes S0 alone
    source, sink = graph.nodes
    assert isinstance(source, Machine)
    rule = Rule(name="stop", puts=(Put(channel="xs", tag=const(3)),), next="last")
    run = source.modes[0]
    outer = run.choices[0]
    assert isinstance(outer.inside, tuple)
    wrong = replace(outer, inside=(outer.inside[0], Choice(inside=rule)))
    changed = replace(source, modes=(replace(run, choices=(wrong,)), source.modes[1]))
    with refused(
        """
        'sink' met tokens that it cannot take
          --> graph = sink_with()  # takes S0 alone
          expected: values and stops of level 0
          given:    xs: S2
          hint:     look at the streams that are joined here: they have to have the same shape
        """,
        ProtocolError,
    ):
        simulate(
            replace(graph, nodes=(changed, sink)), {"x": np.zeros(1, np.int32)}, engine="python"
        )


def test_types_have_to_fit() -> None:
    graph = sink_with(
        modes=mode(Choice(inside=taking(), when=const(1))),
    )
    with pytest.raises(GraphError, match="an alternative of mode 'take' is not a truth value"):
        check(graph)
    source, sink = copying().nodes
    wide = Channel(
        name="xs", stream=StreamType(element=Float(32), nesting=1), source="source", sink="sink"
    )
    with pytest.raises(GraphError, match="puts into 'xs' has the wrong type"):
        check(replace(copying(), channels=(wide,)))
    assert source.role is Role.LOAD
    assert sink.registers[0].type == INT32
