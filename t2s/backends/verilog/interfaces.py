"""What a node shows to the outside: names and types of the ports of its modules.

The module of one PE and that of the whole array name the same things alike; in the latter each is
an unpacked array over the elements of a channel, or over the PEs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from t2s.backends.verilog.data_types import bits_of
from t2s.backends.verilog.names import Identifiers
from t2s.backends.verilog.verilog_ast import Bits
from t2s.core.expr import Parameter
from t2s.core.walk import walk
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.graph import Channel, Graph, ScalarParameter, Tensor
from t2s.graph.nodes import PEArray

CLOCK, RESET, INTERVAL = "clock", "reset", "interval"
FIRES, FINISHED = "fires", "finished"
READY, MOVED, GRANTED = "ready", "moved", "granted"
_PORTS = (CLOCK, RESET, INTERVAL, FIRES, FINISHED, READY, MOVED, GRANTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakingPort:
    """The end of a channel at the node that receives from it."""

    statement: Receive
    channel: Channel
    type: Bits
    valid: str
    token: str
    pop: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingPort:
    """The end of a channel at the node that sends to it."""

    statement: Send
    channel: Channel
    type: Bits
    space: str
    push: str
    value: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPort:
    """The place of a load statement in memory, and what is there."""

    statement: Load
    tensor: Tensor
    type: Bits
    enable: str
    address: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePort:
    """The place of a store statement in memory, and what is to be there."""

    statement: Store
    tensor: Tensor
    type: Bits
    enable: str
    address: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """All ports of a node, beside clock and reset, and the identifiers they take."""

    node: PEArray
    taking: tuple[TakingPort, ...]
    sending: tuple[SendingPort, ...]
    loads: tuple[LoadPort, ...]
    stores: tuple[StorePort, ...]
    parameters: tuple[tuple[ScalarParameter, str], ...]
    identifiers: Identifiers

    @property
    def memory(self) -> bool:
        """Whether the node asks memory before it fires."""
        return bool(self.loads or self.stores)


def interface_of(graph: Graph, node: PEArray) -> Interface:
    """The ports of a node."""
    identifiers = Identifiers(_PORTS)
    fresh = identifiers.fresh
    taking: list[TakingPort] = []
    sending: list[SendingPort] = []
    loads: list[LoadPort] = []
    stores: list[StorePort] = []
    for statement in node.body:
        match statement:
            case Receive():
                taking.append(_taking(statement, graph, fresh))
            case Send():
                sending.append(_sending(statement, graph, fresh))
            case Load(tensor=name):
                loads.append(
                    LoadPort(
                        statement=statement,
                        tensor=graph.tensor(name),
                        type=bits_of(statement.type),
                        enable=fresh(f"{name}_read"),
                        address=fresh(f"{name}_read_address"),
                        data=fresh(f"{name}_read_data"),
                    )
                )
            case Store(tensor=name):
                stores.append(
                    StorePort(
                        statement=statement,
                        tensor=graph.tensor(name),
                        type=bits_of(statement.value.type),
                        enable=fresh(f"{name}_write"),
                        address=fresh(f"{name}_write_address"),
                        data=fresh(f"{name}_write_data"),
                    )
                )
    return Interface(
        node=node,
        taking=tuple(taking),
        sending=tuple(sending),
        loads=tuple(loads),
        stores=tuple(stores),
        parameters=tuple((p, fresh(p.name)) for p in _parameters_of(graph, node)),
        identifiers=identifiers,
    )


def _taking(statement: Receive, graph: Graph, fresh: Callable[[str], str]) -> TakingPort:
    name = statement.channel
    return TakingPort(
        statement=statement,
        channel=graph.channel(name),
        type=bits_of(statement.type),
        valid=fresh(f"{name}_valid"),
        token=fresh(f"{name}_token"),
        pop=fresh(f"{name}_pop"),
        at=fresh(f"{name}_from"),
    )


def _sending(statement: Send, graph: Graph, fresh: Callable[[str], str]) -> SendingPort:
    name = statement.channel
    return SendingPort(
        statement=statement,
        channel=graph.channel(name),
        type=bits_of(statement.value.type),
        space=fresh(f"{name}_space"),
        push=fresh(f"{name}_push"),
        value=fresh(f"{name}_value"),
        at=fresh(f"{name}_to"),
    )


def _parameters_of(graph: Graph, node: PEArray) -> list[ScalarParameter]:
    """The parameters that a node reads, those in the index maps of its channels included."""
    ends = (
        *(index for channel in graph.inputs_of(node.name) for index in channel.sink_index),
        *(index for channel in graph.outputs_of(node.name) for index in channel.source_index),
    )
    terms = (term for root in (node, *ends) for term in walk(root))
    used = {term.name for term in terms if isinstance(term, Parameter)}
    return [parameter for parameter in graph.parameters if parameter.name in used]
