"""Repeating a schedule: rows to the first machine that is free, from their lengths alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.construct import (
    Parts,
    add,
    both,
    equal,
    index,
    less,
    remainder,
    select,
)
from t2s.graph.graph import StreamKind
from t2s.graph.machine import Choice, Put
from t2s.reduction.circuits import LANE
from t2s.sparse_repr.blocks.draft import count_up, put, rule, when, write
from t2s.sparse_repr.representation.chain_layout import FibreJob
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import (
    END,
    FIBRE,
    fibre_code,
    fibre_count,
    fills_up,
    lengths_loader,
    link_runs,
    numbers_loader,
    run_wires,
    steps_of,
)
from t2s.sparse_repr.representation.hardware.wires import (
    MachineDraft,
    NamedHead,
    Statements,
    TypedWire,
    link,
    wire,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deal:
    """What brings a dealer its jobs: a machine, and a run for it."""

    machine: TypedWire
    row: TypedWire
    length: TypedWire

    @property
    def all(self) -> tuple[TypedWire, TypedWire, TypedWire]:
        """The three wires."""
        return self.machine, self.row, self.length

    def put(self, machine: Expr, row: Expr, length: Expr) -> list[Put]:
        """One job."""
        return [put(self.machine, machine), put(self.row, row), put(self.length, length)]


def _deal(dealer: str, suffix: str = "") -> _Deal:
    names = (f"{dealer}_{what}{suffix}" for what in ("machine", "row", "length"))
    machine, row, length = (wire(name, INT32, StreamKind.CONTROL) for name in names)
    return _Deal(machine=machine, row=row, length=length)


def runs_replayed(parts: Parts, product: Product) -> None:
    """One scheduler repeats the schedule; dealers pass the rows down the line of machines."""
    decoder, machines = product.nodes.decoder, product.machines
    scheduler, dealer = f"{decoder.name}_scheduler", f"{decoder.name}_dealer"
    lengths = wire(f"{scheduler}_length", kind=StreamKind.CONTROL)
    numbers = wire(f"{scheduler}_number", kind=StreamKind.CONTROL)
    loader, entry = lengths_loader(parts, product)
    exists = less(index(FIBRE), fibre_count(product))
    loader.send(lengths, select(exists, steps_of(product, entry), END))
    parts.nodes.append(loader.node())
    sources = {lengths: loader.name}
    if product.mapping.fibre is not None:
        loader, number = numbers_loader(parts, product)
        loader.send(numbers, number)
        parts.nodes.append(loader.node())
        sources[numbers] = loader.name
    for taken, source in sources.items():
        link(parts, taken, source, scheduler, capacity=32)
    new, on = _deal(dealer), _deal(dealer, "_next")
    _scheduler(parts, product, scheduler, tuple(sources), new)
    lane = index(LANE)
    before_this = (remainder(add(lane, machines - 1), machines),)
    for first, following in zip(new.all, on.all, strict=True):
        link(parts, first, scheduler, dealer, product.lanes, source_at=(const(0),), capacity=8)
        if machines > 1:
            link(parts, following, dealer, dealer, product.lanes, sink_at=before_this, capacity=8)
    _dealer(parts, product, dealer, new, on)
    link_runs(parts, product, dealer, dealer)


def _scheduler(
    parts: Parts, product: Product, name: str, taken: tuple[TypedWire, ...], out: _Deal
) -> None:
    """The end of every machine's stream; the next job is for the machine that ends first.

    ``taken`` bring the length of every fibre and, where empty ones are left out, its number.  All
    fibres of a job go to the machine of the first one.
    """
    machines, job = product.machines, product.mapping.job
    fibres = job.fibres if isinstance(job, FibreJob) else 1
    machine = MachineDraft(name, Role.RELAY, (), product.nodes.decoder.location)
    names = ("next_length", "next_number")
    heads = [machine.input(each, known) for each, known in zip(taken, names, strict=False)]
    ends_file = machine.file("ends", INT32, (machines,))
    row, ended = machine.register("row"), machine.register("ended")
    body, length = Statements(), heads[0].value
    ends = [body.read(ends_file, f"end_{n}", const(n)) for n in range(machines)]
    first = _earliest(body, ends)
    job_state = None
    if fibres > 1:
        job_state = machine.register("member"), machine.register("machine_of_job")
        first = select(equal(job_state[0], 0), first, job_state[1])
    winner = body.let("winner", first)
    number = heads[1].value if len(heads) > 1 else row
    code = fibre_code(product, number, beyond=fills_up(product) and number is row)
    for n, end in enumerate(ends):
        body.write(ends_file, select(equal(winner, n), add(end, length), end), const(n))
    body.statements.append(count_up(row))
    if job_state is not None:
        member, of_job = job_state
        following = select(equal(member, fibres - 1), 0, add(member, 1))
        body.statements += [write(member, following), write(of_job, winner)]
    given, last = out.put(winner, code, length), out.put(ended, const(0), const(END))
    free = "row to the first machine that is free"
    machine.mode(
        "rows",
        when(less(-1, length), rule(free, "rows", takes=heads, puts=given, body=body.statements)),
        when(None, rule("rows end", "finish", takes=heads)),
        needs=heads,
    )
    machine.mode(
        "finish",
        when(equal(ended, machines - 1), rule("end of the last machine", None, puts=last)),
        when(None, rule("end of a machine", "finish", puts=last, body=[count_up(ended)])),
    )
    parts.nodes.append(machine.node())


def _earliest(body: Statements, ends: Sequence[Expr]) -> Expr:
    """The machine whose stream ends first, the lowest number of those."""
    best: list[tuple[Expr, Expr]] = [(end, const(machine)) for machine, end in enumerate(ends)]
    round = 0
    while len(best) > 1:
        merged: list[tuple[Expr, Expr]] = []
        for at in range(0, len(best) - 1, 2):
            (left, left_at), (right, right_at) = best[at], best[at + 1]
            earlier = body.let(f"right_{round}_{at}", less(right, left))
            merged.append((select(earlier, right, left), select(earlier, right_at, left_at)))
        best = merged + (best[-1:] if len(best) % 2 else [])
        round += 1
    return best[0][1]


def _dealer(parts: Parts, product: Product, name: str, new: _Deal, on: _Deal) -> None:
    """Keep the runs of this machine, pass on those of the machines behind it."""
    machines, lane = product.machines, index(LANE)
    location = product.nodes.decoder.location
    machine = MachineDraft(name, Role.RELAY, product.lanes, location)
    names = ("machine", "row", "length")
    first = [machine.input(each, what) for each, what in zip(new.all, names, strict=True)]
    before: list[NamedHead] = []
    if machines > 1:
        before = [
            machine.input(each, f"{what}_next") for each, what in zip(on.all, names, strict=True)
        ]

    def from_either(make: Callable[[list[NamedHead], str], list[Choice]]) -> list[Choice]:
        """The first machine listens to the scheduler, the others to the machine before."""
        choices = make(first, "from the scheduler")
        if machines == 1:
            return [when(None, choices, needs=first)]
        others = make(before, "from the machine before")
        return [when(equal(lane, 0), choices, needs=first), when(None, others, needs=before)]

    def passed(heads: list[NamedHead]) -> list[Put]:
        return on.put(*(head.value for head in heads))

    def deal(heads: list[NamedHead], label: str) -> list[Choice]:
        at, row, length = (head.value for head in heads)
        row_wire, length_wire = run_wires(product)
        mine, own = [put(row_wire, row), put(length_wire, length)], equal(at, lane)
        after = None if machines == 1 else "after"
        found = [
            when(
                both(own, equal(length, END)), rule(f"end {label}", after, takes=heads, puts=mine)
            ),
            when(own, rule(f"own row {label}", "deal", takes=heads, puts=mine)),
        ]
        if machines > 1:
            through = rule(f"pass {label}", "deal", takes=heads, puts=passed(heads))
            found.append(when(None, through))
        return found

    def after(heads: list[NamedHead], label: str) -> list[Choice]:
        """The ends of the machines behind this one still come through."""
        puts, last = passed(heads), equal(heads[0].value, machines - 1)
        return [
            when(last, rule(f"pass the last end {label}", None, takes=heads, puts=puts)),
            when(None, rule(f"pass an end {label}", "after", takes=heads, puts=puts)),
        ]

    machine.mode("deal", *from_either(deal))
    if machines > 1:
        done = when(equal(lane, machines - 1), rule("end", None))
        machine.mode("after", done, *from_either(after))
    parts.nodes.append(machine.node())
