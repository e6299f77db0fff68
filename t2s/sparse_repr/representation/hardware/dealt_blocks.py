"""Runs of fibres whose blocks of slots are dealt out in turn: each machine counts its own."""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.core.types import INT32
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Send, Statement
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
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Role
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import (
    END,
    fibre_code,
    fibre_count,
    fills_up,
    load_all_lengths,
    load_all_numbers,
    run_links,
)
from t2s.sparse_repr.representation.layout import BlockJob


def runs_of_blocks(parts: Parts, product: Product) -> None:
    """Blocks are dealt in turn: of the blocks of a row, each machine takes every m-th.

    A row of ``q * m + r`` blocks whose first block is for machine ``phase`` has ``q`` or ``q + 1``
    of them on each machine.  The lengths go from machine to machine, divided already.
    """
    mapping, machines = product.mapping, product.machines
    assert isinstance(mapping.job, BlockJob)
    steps = mapping.job.slots // product.slots_decoded_at_once
    decoder = product.nodes.decoder.name
    lengths = mapping.lengths
    assert lengths is not None
    entry: Expr = local("entry")
    if lengths.round > 1:
        entry = quotient(add(entry, lengths.round - 1), lengths.round)
    blocks = times(entry, lengths.round * lengths.scale // mapping.job.slots)
    exists = less(index("fibre"), fibre_count(product))
    relay = f"{decoder}_relay"
    each = select(exists, quotient(local("blocks"), machines), END)
    sends: list[Statement] = [
        Let(target="blocks", value=blocks),
        Send(channel=f"{relay}_quotient", value=each),
    ]
    if machines > 1:
        rest_of = remainder(local("blocks"), machines)
        sends.append(Send(channel=f"{relay}_rest", value=rest_of))
    source = load_all_lengths(parts, product, tuple(sends))
    sources = {"quotient": source, **({"rest": source} if machines > 1 else {})}
    code = fibre_code(product, index("fibre"), beyond=fills_up(product))
    if mapping.fibre is not None:
        send = Send(channel=f"{relay}_number", value=add(local("number"), 1))
        sources["number"] = load_all_numbers(parts, product, (send,))
        code = local("number")
    body: list[Statement] = []
    for what, sender in sources.items():
        body += _down_the_line(parts, product, sender, relay, what)
    mine: Expr = local("quotient")
    if machines > 1:
        mine = _share(product, body)
    value = select(less(local("quotient"), 0), END, times(mine, steps))
    body += [
        Send(channel=f"{decoder}_run_row", value=code),
        Send(channel=f"{decoder}_run_length", value=value),
    ]
    parts.nodes.append(
        PEArray(
            name=relay,
            role=Role.RELAY,
            space=(space(LANE, machines),),
            loops=(loop("fibre", fibre_count(product) + 1),),
            registers=(register("phase_register"),) if machines > 1 else (),
            body=tuple(body),
            location=product.nodes.decoder.location,
        )
    )
    run_links(parts, product, (relay, relay))


def _share(product: Product, body: list[Statement]) -> Expr:
    """Blocks of a fibre that are those of this machine; ``body`` moves on to the next fibre."""
    machines, lane, phase, rest = product.machines, index(LANE), local("phase"), local("rest")
    after = select(
        less(add(phase, rest), machines), add(phase, rest), add(phase, subtract(rest, machines))
    )
    first = select(less(lane, phase), add(subtract(lane, phase), machines), subtract(lane, phase))
    body += [
        RegisterRead(target="phase", register="phase_register", indices=(), type=INT32),
        RegisterWrite(register="phase_register", indices=(), value=after),
    ]
    return add(local("quotient"), select(less(first, rest), 1, 0))


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
