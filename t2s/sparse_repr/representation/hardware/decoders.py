"""Decoders: the inverse map in hardware, which gives every slot its fibre.

A *run* is a fibre and a number of slots.  Machines take their runs one after the other and send the
fibre of every slot, counted from 1; behind their last run they send 0.  Where fibres are rows and
slots are values that is the row of every step; else ``coordinates`` computes it from the fibre.
Where the runs come from depends on the order of jobs:

* ``FREE``: every slot has its fibre in memory, or there is one fibre only; nothing is decoded.
* ``STRIDED``, ``RECORDED`` fibres: each machine loads the lengths of its own fibres.
* ``STRIDED`` blocks: all machines see the lengths of all fibres, and each finds out how many blocks
  of a fibre are its own.
* Single rows whose schedule is repeated, and blocks of such rows: ``dealing``, without runs.
* ``REPLAYED``: one machine repeats the schedule: it keeps the end of every machine's stream, gives
  the next fibre to the first machine to end, and passes it down the line of decoders.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.types import INT32
from t2s.graph.body import Load, RegisterWrite, Send
from t2s.graph.construct import (
    Parts,
    add,
    equal,
    index,
    less,
    local,
    loop,
    register,
    space,
    subtract,
    times,
)
from t2s.graph.graph import StreamKind
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.reduction.circuits import LANE, STEP
from t2s.sparse_repr.representation.hardware.dealing import deal_rows
from t2s.sparse_repr.representation.hardware.dealt_blocks import runs_of_blocks
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.own_runs import runs_of_machines
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.replay import runs_replayed
from t2s.sparse_repr.representation.hardware.runs import (
    loader_name,
)
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.layout import BlockJob


def decode_fibres(parts: Parts, product: Product, sink: Sink) -> None:
    """Add what sends the fibre of every slot to ``sink``."""
    mapping = product.mapping
    if mapping.order is Order.FREE:
        _load_fibres(parts, product, sink)
        return
    if product.dealt:
        deal_rows(parts, product, sink.channels[0], sink.node)
        return
    if isinstance(mapping.job, BlockJob):
        runs_of_blocks(parts, product)
    elif mapping.order is Order.REPLAYED:
        runs_replayed(parts, product)
    else:
        runs_of_machines(parts, product)
    _decoder(parts, product, sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """What takes fibres: channels for each machine, all of which carry the same."""

    node: str
    channels: tuple[str, ...]


def _sink_links(parts: Parts, product: Product, source: str, sink: Sink) -> None:
    for channel in sink.channels:
        parts.link(
            channel,
            INT32,
            source,
            sink.node,
            shape=(product.machines,),
            source_index=(index(LANE),),
            sink_index=(index(LANE),),
            capacity=64 + product.slack,
            kind=StreamKind.COORDINATE,
        )


def _load_fibres(parts: Parts, product: Product, sink: Sink) -> None:
    """Fibres are in memory: that of a block of slots is the one of its first slot."""
    name = product.mapping.fibre
    assert name is not None
    tensor, node = product.stream_name(name), loader_name(product, name)
    together = product.slots_decoded_at_once
    input_tensor(parts, product, tensor, INT32, (product.machines, product.decoded * together))
    at = times(index(STEP), together)
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=(space(LANE, product.machines),),
            loops=(loop(STEP, product.decoded),),
            body=(
                Load(target="loaded", tensor=tensor, indices=(index(LANE), at), type=INT32),
                *(
                    Send(channel=channel, value=add(local("loaded"), 1))
                    for channel in sink.channels
                ),
            ),
            location=product.nodes.decoder.location,
        )
    )
    _sink_links(parts, product, node, sink)


def _decoder(parts: Parts, product: Product, sink: Sink) -> None:
    """From runs to the fibres of slots, one in each firing."""
    decoder = product.nodes.decoder
    row_channel, length_channel = (f"{decoder.name}_run_{what}" for what in ("row", "length"))
    runs, last = (row_channel, length_channel), product.decoded - 1
    length, sent, left = local("length"), local("sent"), local("left")
    count = RegisterWrite(register="sent", indices=(), value=add(sent, 1))
    keep = RegisterWrite(register="row", indices=(), value=local("next_row"))
    rest = RegisterWrite(register="left", indices=(), value=subtract(length, 1))
    down = RegisterWrite(register="left", indices=(), value=subtract(left, 1))
    first = tuple(Put(channel=out, value=local("next_row")) for out in sink.channels)
    again = tuple(Put(channel=out, value=local("row")) for out in sink.channels)
    nothing = tuple(Put(channel=out) for out in sink.channels)
    run = Mode(
        name="run",
        needs=runs,
        choices=(
            Choice(
                when=equal(length, 1),
                inside=Rule(name="row of one", body=(count,), takes=runs, puts=first, next="run"),
            ),
            Choice(
                when=less(1, length),
                inside=Rule(
                    name="row begins",
                    body=(count, keep, rest),
                    takes=runs,
                    puts=first,
                    next="row",
                ),
            ),
            Choice(when=equal(length, 0), inside=Rule(name="empty row", takes=runs, next="run")),
            Choice(
                when=equal(sent, product.decoded), inside=Rule(name="end", takes=runs, next=None)
            ),
            Choice(inside=Rule(name="padding begins", takes=runs, next="pad")),
        ),
    )
    row = Mode(
        name="row",
        needs=(),
        choices=(
            Choice(
                when=equal(left, 1),
                inside=Rule(name="row ends", body=(count,), puts=again, next="run"),
            ),
            Choice(inside=Rule(name="row", body=(count, down), puts=again, next="row")),
        ),
    )
    pad = Mode(
        name="pad",
        needs=(),
        choices=(
            Choice(
                when=equal(sent, last), inside=Rule(name="last padding", puts=nothing, next=None)
            ),
            Choice(inside=Rule(name="padding", body=(count,), puts=nothing, next="pad")),
        ),
    )
    parts.nodes.append(
        Machine(
            name=decoder.name,
            role=Role.RELAY,
            space=(space(LANE, product.machines),),
            heads=(
                Head(channel=row_channel, value="next_row"),
                Head(channel=length_channel, value="length"),
            ),
            registers=(register("row"), register("left"), register("sent")),
            modes=(run, row, pad),
            location=decoder.location,
        )
    )
    _sink_links(parts, product, decoder.name, sink)
