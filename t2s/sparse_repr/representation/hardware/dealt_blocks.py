"""Runs of fibres whose blocks of slots are dealt out in turn: each machine counts its own."""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.graph.body import Role
from t2s.graph.construct import (
    Parts,
    add,
    equal,
    index,
    less,
    loop,
    quotient,
    remainder,
    select,
    space,
    subtract,
    times,
)
from t2s.graph.graph import StreamKind
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import (
    END,
    FIBRE,
    blocks_of,
    fibre_code,
    fibre_count,
    fills_up,
    lengths_loader,
    link_runs,
    numbers_loader,
    run_wires,
)
from t2s.sparse_repr.representation.hardware.wires import ArrayDraft, File, Wire, link, wire
from t2s.sparse_repr.representation.layout import BlockJob


def runs_of_blocks(parts: Parts, product: Product) -> None:
    """Blocks are dealt in turn: of the blocks of a row, each machine takes every m-th.

    A row of ``q * m + r`` blocks whose first block is for machine ``phase`` has ``q`` or ``q + 1``
    of them on each machine.  The lengths go from machine to machine, divided already.
    """
    job, machines, fibres = product.mapping.job, product.machines, fibre_count(product)
    assert isinstance(job, BlockJob)
    relay = f"{product.nodes.decoder.name}_relay"
    come = {
        what: wire(f"{relay}_{what}", kind=StreamKind.CONTROL)
        for what in ("quotient", "rest", "number")
    }
    loader, entry = lengths_loader(parts, product)
    blocks = loader.let("blocks", blocks_of(product, entry, job.slots))
    each = select(less(index(FIBRE), fibres), quotient(blocks, machines), END)
    loader.send(come["quotient"], each)
    if machines > 1:
        loader.send(come["rest"], remainder(blocks, machines))
    parts.nodes.append(loader.node())
    lengths_from, numbers_from = loader.name, ""
    if product.mapping.fibre is not None:
        loader, number = numbers_loader(parts, product)
        loader.send(come["number"], add(number, 1))
        parts.nodes.append(loader.node())
        numbers_from = loader.name
    unit = ArrayDraft(
        relay, Role.RELAY, product.lanes, (loop(FIBRE, fibres + 1),),
        product.nodes.decoder.location,
    )  # fmt: skip
    phase = unit.file("phase_register") if machines > 1 else None
    whole = _down_the_line(parts, product, unit, come["quotient"], lengths_from, "quotient")
    mine, rest = whole, None
    if phase is not None:
        rest = _down_the_line(parts, product, unit, come["rest"], lengths_from, "rest")
    code = fibre_code(product, index(FIBRE), beyond=fills_up(product))
    if numbers_from:
        code = _down_the_line(parts, product, unit, come["number"], numbers_from, "number")
    if phase is not None and rest is not None:
        mine = add(whole, _share(product, unit, phase, rest))
    row, length = run_wires(product)
    unit.send(row, code)
    steps = times(mine, job.slots // product.slots_decoded_at_once)
    unit.send(length, select(less(whole, 0), END, steps))
    parts.nodes.append(unit.node())
    link_runs(parts, product, relay, relay)


def _share(product: Product, unit: ArrayDraft, kept: File, rest: Expr) -> Expr:
    """1 if a block of the rest of a fibre is that of this machine; moves on to the next fibre."""
    machines, lane = product.machines, index(LANE)
    phase = unit.read(kept, "phase")
    after = add(phase, rest)
    around = add(phase, subtract(rest, machines))
    unit.write(kept, select(less(after, machines), after, around))
    first = subtract(lane, phase)
    first = select(less(lane, phase), add(first, machines), first)
    return select(less(first, rest), 1, 0)


def _down_the_line(
    parts: Parts, product: Product, unit: ArrayDraft, taken: Wire, source: str, what: str
) -> Expr:
    """Take a number from ``source`` on the first machine, else from the machine before."""
    machines, lane = product.machines, index(LANE)
    link(parts, taken, source, unit.name)
    start = equal(lane, 0)
    first = unit.receive(taken, f"{what}_first", start if machines > 1 else None)
    if machines == 1:
        return unit.let(what, first)
    on = wire(f"{taken.port}_next", kind=StreamKind.CONTROL)
    before_this = (subtract(lane, 1),)
    link(parts, on, unit.name, unit.name, (space(LANE, machines - 1),), sink_at=before_this)
    before = unit.receive(on, f"{what}_before", less(0, lane))
    value = unit.let(what, select(start, first, before))
    unit.send(on, value, less(lane, machines - 1))
    return value
