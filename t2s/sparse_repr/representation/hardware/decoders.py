"""Decoders: the inverse map in hardware, which gives every step its row.

A *run* is a row and a number of steps.  Machines take their runs one after the other and send the
row of every step, counted from 1; behind their last run they send 0.  Where the runs come from
depends on the order of jobs:

* ``FREE``: every slot has its row in memory; nothing is decoded.
* ``STRIDED``, ``RECORDED`` rows: each machine loads the lengths of its own rows.
* ``STRIDED`` blocks: all machines see the lengths of all rows, and each finds out how many blocks
  of a row are its own.
* ``REPLAYED``: one machine repeats the schedule: it keeps the end of every machine's stream, gives
  the next row to the first machine to end, and passes it down the line of decoders.
"""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.construct import (
    Parts,
    add,
    equal,
    index,
    less,
    local,
    loop,
    quotient,
    register,
    remainder,
    select,
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
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.multiply import rows_channel, rows_node
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.replay import runs_replayed
from t2s.sparse_repr.representation.hardware.runs import (
    END,
    fibre_count,
    load_all_lengths,
    loader_name,
    run_links,
    steps_of,
    stored_shape,
)
from t2s.sparse_repr.representation.inverse_map import Order
from t2s.sparse_repr.representation.layout import BlockJob


def decode_rows(parts: Parts, product: Product) -> None:
    """Add what sends the row of every step to ``rows_node``."""
    mapping = product.mapping
    if mapping.order is Order.FREE:
        _load_rows(parts, product)
        return
    if product.dealt:
        deal_rows(parts, product, rows_channel(product), rows_node(product))
        return
    if isinstance(mapping.job, BlockJob):
        _runs_of_blocks(parts, product)
    elif mapping.order is Order.REPLAYED:
        runs_replayed(parts, product)
    else:
        _runs_of_machines(parts, product)
    _decoder(parts, product)


def _row_link(parts: Parts, product: Product, source: str) -> None:
    parts.link(
        rows_channel(product),
        INT32,
        source,
        rows_node(product),
        shape=(product.machines,),
        source_index=(index(LANE),),
        sink_index=(index(LANE),),
        capacity=64,
        kind=StreamKind.COORDINATE,
    )


def _load_rows(parts: Parts, product: Product) -> None:
    """Rows are in memory: that of a block is the row of its first value."""
    name = product.mapping.fibre
    assert name is not None
    tensor, node = product.stream_name(name), loader_name(product, name)
    shape = (product.machines, product.steps * product.block)
    input_tensor(parts, product, tensor, INT32, shape)
    at = times(index(STEP), product.block)
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=(space(LANE, product.machines),),
            loops=(loop(STEP, product.steps),),
            body=(
                Load(target="loaded", tensor=tensor, indices=(index(LANE), at), type=INT32),
                Send(channel=rows_channel(product), value=add(local("loaded"), 1)),
            ),
            location=product.nodes.decoder.location,
        )
    )
    _row_link(parts, product, node)


def _decoder(parts: Parts, product: Product) -> None:
    """From runs to rows, one step in each firing."""
    decoder, out = product.nodes.decoder, rows_channel(product)
    row_channel, length_channel = (f"{decoder.name}_run_{what}" for what in ("row", "length"))
    runs, last = (row_channel, length_channel), product.steps - 1
    length, sent, left = local("length"), local("sent"), local("left")
    count = RegisterWrite(register="sent", indices=(), value=add(sent, 1))
    keep = RegisterWrite(register="row", indices=(), value=local("next_row"))
    rest = RegisterWrite(register="left", indices=(), value=subtract(length, 1))
    down = RegisterWrite(register="left", indices=(), value=subtract(left, 1))
    first = (Put(channel=out, value=local("next_row")),)
    again = (Put(channel=out, value=local("row")),)
    nothing = (Put(channel=out),)
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
            Choice(when=equal(sent, product.steps), inside=Rule(name="end", takes=runs, next=None)),
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
    _row_link(parts, product, decoder.name)


def _load_lengths(
    product: Product, parts: Parts, sink_sends: tuple[Statement, ...], jobs: int, node: str
) -> None:
    """A load unit for each machine: the lengths of its rows, and an end."""
    lengths = product.mapping.lengths
    assert lengths is not None
    stream, tensor = product.storage.streams[lengths.name], product.stream_name(lengths.name)
    job, at = index("job"), (index(LANE), index("job"))
    input_tensor(parts, product, tensor, INT32, stored_shape(stream.data.shape))
    exists = less(job, jobs)
    subscripts: tuple[Expr, ...] = at
    if lengths.fibres is None:
        subscripts = (const(0),)
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=(space(LANE, product.machines),),
            loops=(loop("job", jobs + 1),),
            body=(
                Load(
                    target="entry",
                    tensor=tensor,
                    indices=subscripts,
                    type=INT32,
                    condition=exists,
                ),
                *sink_sends,
            ),
            location=product.nodes.matrix_loader.location,
        )
    )


def _runs_of_machines(parts: Parts, product: Product) -> None:
    """Each machine loads the lengths of its own rows, and their numbers if they are recorded."""
    mapping, machines = product.mapping, product.machines
    assert mapping.lengths is not None
    decoder = product.nodes.decoder.name
    numbers = mapping.fibre or mapping.job_index
    lengths = product.storage.streams[mapping.lengths.name].data
    node = loader_name(product, mapping.lengths.name)
    fibres = -(-product.rows // machines)
    jobs = fibres if lengths.ndim == 1 else lengths.shape[1]
    if numbers is not None:
        jobs = product.storage.streams[numbers].data.shape[1]
    row = add(add(times(index("job"), machines), index(LANE)), 1)
    steps = steps_of(product, local("entry"))
    if lengths.ndim == 1 and numbers is None:
        steps = select(less(product.rows, row), 0, steps)
    value = select(less(index("job"), jobs), steps, END)
    sends: tuple[Statement, ...] = (Send(channel=f"{decoder}_run_length", value=value),)
    sources = (node, node)
    if numbers is None:
        sends = (*sends, Send(channel=f"{decoder}_run_row", value=row))
    else:
        sources = (_load_numbers(parts, product, numbers, jobs), node)
    _load_lengths(product, parts, sends, jobs, node)
    run_links(parts, product, sources)


def _load_numbers(parts: Parts, product: Product, name: str, jobs: int) -> str:
    """A load unit for each machine: the numbers of its rows."""
    node, tensor = loader_name(product, name), product.stream_name(name)
    shape = stored_shape(product.storage.streams[name].data.shape)
    input_tensor(parts, product, tensor, INT32, shape)
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=(space(LANE, product.machines),),
            loops=(loop("job", jobs + 1),),
            body=(
                Load(
                    target="loaded",
                    tensor=tensor,
                    indices=(index(LANE), index("job")),
                    type=INT32,
                    condition=less(index("job"), jobs),
                ),
                Send(
                    channel=f"{product.nodes.decoder.name}_run_row", value=add(local("loaded"), 1)
                ),
            ),
            location=product.nodes.matrix_loader.location,
        )
    )
    return node


def _runs_of_blocks(parts: Parts, product: Product) -> None:
    """Blocks are dealt in turn: of the blocks of a row, each machine takes every m-th.

    A row of ``q * m + r`` blocks whose first block is for machine ``phase`` has ``q`` or ``q + 1``
    of them on each machine.  The lengths go from machine to machine, divided already.
    """
    mapping, machines = product.mapping, product.machines
    assert isinstance(mapping.job, BlockJob)
    decoder, steps = product.nodes.decoder.name, mapping.job.slots // product.block
    lengths = mapping.lengths
    assert lengths is not None
    entry: Expr = local("entry")
    if lengths.round > 1:
        entry = quotient(add(entry, lengths.round - 1), lengths.round)
    blocks = times(entry, lengths.round * lengths.scale // mapping.job.slots)
    exists = less(index("fibre"), fibre_count(product))
    relay = f"{decoder}_relay"
    source = load_all_lengths(
        parts,
        product,
        (
            Let(target="blocks", value=blocks),
            Send(
                channel=f"{relay}_quotient",
                value=select(exists, quotient(local("blocks"), machines), END),
            ),
            Send(channel=f"{relay}_rest", value=remainder(local("blocks"), machines)),
        ),
    )
    lane, phase, rest = index(LANE), local("phase"), local("rest")
    body: list[Statement] = []
    for what in ("quotient", "rest"):
        body += _down_the_line(parts, product, source, relay, what)
    after = select(
        less(add(phase, rest), machines), add(phase, rest), add(phase, subtract(rest, machines))
    )
    first = select(less(lane, phase), add(subtract(lane, phase), machines), subtract(lane, phase))
    mine = add(local("quotient"), select(less(first, rest), 1, 0))
    value = select(less(local("quotient"), 0), END, times(mine, steps))
    body += [
        RegisterRead(target="phase", register="phase_register", indices=(), type=INT32),
        RegisterWrite(register="phase_register", indices=(), value=after),
        Send(channel=f"{decoder}_run_row", value=add(index("fibre"), 1)),
        Send(channel=f"{decoder}_run_length", value=value),
    ]
    parts.nodes.append(
        PEArray(
            name=relay,
            role=Role.RELAY,
            space=(space(LANE, machines),),
            loops=(loop("fibre", fibre_count(product) + 1),),
            registers=(register("phase_register"),),
            body=tuple(body),
            location=product.nodes.decoder.location,
        )
    )
    run_links(parts, product, (relay, relay))


def _down_the_line(
    parts: Parts, product: Product, source: str, node: str, what: str
) -> list[Statement]:
    """Take the local ``what`` from ``source`` on the first machine, else from the one before."""
    machines, lane = product.machines, index(LANE)
    parts.link(f"{node}_{what}", INT32, source, node, kind=StreamKind.CONTROL)
    start = equal(lane, 0)
    taken = Receive(
        target=f"{what}_first",
        channel=f"{node}_{what}",
        type=INT32,
        condition=start if machines > 1 else None,
    )
    if machines == 1:
        return [taken, Let(target=what, value=local(f"{what}_first"))]
    parts.link(
        f"{node}_{what}_next",
        INT32,
        node,
        node,
        shape=(machines - 1,),
        source_index=(lane,),
        sink_index=(subtract(lane, 1),),
        kind=StreamKind.CONTROL,
    )
    return [
        taken,
        Receive(
            target=f"{what}_before",
            channel=f"{node}_{what}_next",
            type=INT32,
            condition=less(0, lane),
        ),
        Let(target=what, value=select(start, local(f"{what}_first"), local(f"{what}_before"))),
        Send(
            channel=f"{node}_{what}_next",
            value=local(what),
            condition=less(lane, machines - 1),
        ),
    ]
