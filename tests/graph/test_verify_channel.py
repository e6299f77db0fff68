"""The rules of channels: the whole text of each error."""

from __future__ import annotations

import pytest

from t2s.core.expr import (
    const,
)
from t2s.core.types import INT32, WEAK_INT, Float, Int
from t2s.graph.body import Receive, Send
from t2s.graph.graph import StreamType
from tests.graph.changes import (
    pipeline,
    with_body,
    with_channel,
    with_statement,
)
from tests.graph.refusal import CAST, SCOPE, refuse
from tests.hand_graphs import index

F32 = Float(32)


class TestChannels:
    @pytest.mark.parametrize("what", ["capacity", "latency"])
    def test_capacity_and_latency(self, what: str) -> None:
        refuse(
            with_channel(pipeline(), "to_sum", **{what: 0}),
            f"channel 'to_sum': the {what} is below 1",
            "  --> design.py:4",
            f"  expected: a {what} of at least 1",
            "  given:    0",
        )

    def test_nesting(self) -> None:
        refuse(
            with_channel(pipeline(), "to_sum", stream=StreamType(element=INT32, nesting=-1)),
            "channel 'to_sum': the nesting is below 0",
            "  --> design.py:4",
            "  expected: a nesting of at least 0",
            "  given:    -1",
        )

    def test_extent(self) -> None:
        refuse(
            with_channel(pipeline(), "to_sum", shape=(0,)),
            "channel 'to_sum': the shape has an extent below 1",
            "  --> design.py:4",
            "  expected: extents of at least 1",
            "  given:    (0,)",
        )

    def test_weak_element(self) -> None:
        refuse(
            with_channel(pipeline(), "from_sum", stream=StreamType(element=WEAK_INT)),
            "channel 'from_sum': the type is weak",
            "  --> design.py:5",
            "  expected: a type with a fixed width",
            "  given:    weak int32",
            "  hint:     Type.strengthened() gives int32",
        )

    def test_weak_type_received(self) -> None:
        refuse(
            with_statement(pipeline(), "store_Y", 0, type=WEAK_INT),
            "node 'store_Y': Receive from channel 'from_sum' has the wrong type",
            "  --> design.py:3",
            "  expected: int32",
            "  given:    weak int32",
            CAST,
        )

    def test_source_and_sink_that_do_not_exist(self) -> None:
        refuse(
            with_channel(pipeline(), "to_sum", source="loader"),
            "channel 'to_sum': the source node does not exist",
            "  --> design.py:4",
            "  expected: one of load_X, store_Y, sum",
            "  given:    'loader'",
        )
        refuse(
            with_channel(pipeline(), "to_sum", sink="adder"),
            "channel 'to_sum': the sink node does not exist",
            "  --> design.py:4",
            "  expected: one of load_X, store_Y, sum",
            "  given:    'adder'",
        )

    def test_send_to_an_unknown_channel(self) -> None:
        refuse(
            with_statement(pipeline(), "load_X", 1, channel="nowhere"),
            "node 'load_X': Send to channel 'nowhere': unknown channel",
            "  --> design.py:1",
            "  expected: one of from_sum, to_sum",
            "  given:    'nowhere'",
        )

    def test_receive_from_an_unknown_channel(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 0, channel="nowhere"),
            "node 'sum': Receive from channel 'nowhere': unknown channel",
            "  --> design.py:2",
            "  expected: one of from_sum, to_sum",
            "  given:    'nowhere'",
        )

    def test_never_sent_to(self) -> None:
        refuse(
            with_body(pipeline(), "load_X", skip=1),
            "channel 'to_sum': its source node 'load_X' does not use it exactly once",
            "  --> design.py:4",
            "  expected: one Send statement",
            "  given:    0",
            "  note:     node 'load_X' is made here",
            "  --> design.py:1",
            "  hint:     remove the channel, or add a Send",
        )

    def test_sent_to_twice(self) -> None:
        refuse(
            with_body(pipeline(), "load_X", Send(channel="to_sum", value=const(0))),
            "channel 'to_sum': its source node 'load_X' does not use it exactly once",
            "  --> design.py:4",
            "  expected: one Send statement",
            "  given:    2",
            "  note:     node 'load_X' is made here",
            "  --> design.py:1",
            "  hint:     merge the Send statements under one condition",
        )

    def test_received_from_twice(self) -> None:
        refuse(
            with_body(pipeline(), "store_Y", Receive(target="w", channel="from_sum", type=INT32)),
            "channel 'from_sum': its sink node 'store_Y' does not use it exactly once",
            "  --> design.py:5",
            "  expected: one Receive statement",
            "  given:    2",
            "  note:     node 'store_Y' is made here",
            "  --> design.py:3",
            "  hint:     merge the Receive statements under one condition",
        )

    def test_sent_to_by_another_node(self) -> None:
        refuse(
            with_body(pipeline(), "sum", Send(channel="to_sum", value=const(0))),
            "channel 'to_sum': node 'sum' sends to it but is not its source",
            "  --> design.py:4",
            "  expected: Send statements in node 'load_X' only",
            "  given:    a Send in node 'sum'",
            "  note:     node 'sum' is made here",
            "  --> design.py:2",
            "  hint:     give every pair of nodes a channel of its own",
        )

    def test_received_from_by_another_node(self) -> None:
        refuse(
            with_body(pipeline(), "store_Y", Receive(target="w", channel="to_sum", type=INT32)),
            "channel 'to_sum': node 'store_Y' receives from it but is not its sink",
            "  --> design.py:4",
            "  expected: Receive statements in node 'sum' only",
            "  given:    a Receive in node 'store_Y'",
            "  note:     node 'store_Y' is made here",
            "  --> design.py:3",
            "  hint:     give every pair of nodes a channel of its own",
        )

    def test_type_sent(self) -> None:
        refuse(
            with_channel(pipeline(), "to_sum", stream=StreamType(element=F32)),
            "node 'load_X': Send to channel 'to_sum' has the wrong type",
            "  --> design.py:1",
            "  expected: float32",
            "  given:    int32",
            CAST,
        )

    def test_type_received(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 0, type=Int(16)),
            "node 'sum': Receive from channel 'to_sum' has the wrong type",
            "  --> design.py:2",
            "  expected: int32",
            "  given:    int16",
            CAST,
        )

    def test_rank_of_the_index_maps(self) -> None:
        refuse(
            with_channel(pipeline(), "to_sum", shape=(4,), sink_index=(const(0),)),
            "channel 'to_sum': the source index has the wrong number of indices",
            "  --> design.py:4",
            "  expected: 1, one per dimension",
            "  given:    0: []",
        )
        refuse(
            with_channel(pipeline(), "to_sum", sink_index=(const(0),)),
            "channel 'to_sum': the sink index has the wrong number of indices",
            "  --> design.py:4",
            "  expected: 0, one per dimension",
            "  given:    1: [0]",
        )

    def test_scope_of_the_index_maps(self) -> None:
        changed = {"shape": (4,), "source_index": (const(0),), "sink_index": (index("ii"),)}
        refuse(
            with_channel(pipeline(), "to_sum", **changed),
            "channel 'to_sum': index 0 of the sink index: the index 'ii' is not in scope",
            "  --> design.py:4",
            "  expected: one of i",
            "  given:    'ii'",
            SCOPE,
        )
