"""Repeating a schedule: rows to the first machine that is free, from their lengths alone."""

from __future__ import annotations

from collections.abc import Callable

from t2s.core.expr import Expr, const
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Let, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.construct import (
    Parts,
    add,
    both,
    equal,
    index,
    less,
    local,
    register,
    remainder,
    select,
    space,
)
from t2s.graph.graph import StreamKind
from t2s.graph.machine import Choice, Head, Machine, Mode, Put, Rule
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
    steps_of,
)
from t2s.sparse_repr.representation.layout import FibreJob


def runs_replayed(parts: Parts, product: Product) -> None:
    """One scheduler repeats the schedule; dealers pass the rows down the line of machines."""
    decoder, machines = product.nodes.decoder, product.machines
    scheduler, dealer = f"{decoder.name}_scheduler", f"{decoder.name}_dealer"
    exists = less(index("fibre"), fibre_count(product))
    steps = select(exists, steps_of(product, local("entry")), END)
    channels = {"length": f"{scheduler}_length"}
    sends = (Send(channel=channels["length"], value=steps),)
    sources = {"length": load_all_lengths(parts, product, sends)}
    if product.mapping.fibre is not None:
        channels["number"] = f"{scheduler}_number"
        sends = (Send(channel=channels["number"], value=local("number")),)
        sources["number"] = load_all_numbers(parts, product, sends)
    for what, channel in channels.items():
        parts.link(channel, INT32, sources[what], scheduler, capacity=32, kind=StreamKind.CONTROL)
    parts.nodes.append(_scheduler(product, scheduler, dealer, channels))
    for what in ("machine", "row", "length"):
        parts.link(
            f"{dealer}_{what}",
            INT32,
            scheduler,
            dealer,
            shape=(machines,),
            source_index=(const(0),),
            sink_index=(index(LANE),),
            capacity=8,
            kind=StreamKind.CONTROL,
        )
        if machines > 1:
            parts.link(
                f"{dealer}_{what}_next",
                INT32,
                dealer,
                dealer,
                shape=(machines,),
                source_index=(index(LANE),),
                sink_index=(remainder(add(index(LANE), machines - 1), machines),),
                capacity=8,
                kind=StreamKind.CONTROL,
            )
    parts.nodes.append(_dealer(product, dealer))
    run_links(parts, product, (dealer, dealer))


def _scheduler(product: Product, name: str, dealer: str, channels: dict[str, str]) -> Machine:
    """The end of every machine's stream; the next job is for the machine that ends first.

    ``channels`` bring the length of every fibre and, where empty ones are left out, its number.
    All fibres of a job go to the machine of the first one.
    """
    machines, taken, job = product.machines, tuple(channels.values()), product.mapping.job
    fibres = job.fibres if isinstance(job, FibreJob) else 1
    ends = [local(f"end_{machine}") for machine in range(machines)]
    body: list[Statement] = [
        RegisterRead(target=end.name, register="ends", indices=(const(machine),), type=INT32)
        for machine, end in enumerate(ends)
    ]
    best: list[tuple[Expr, Expr]] = [(end, const(machine)) for machine, end in enumerate(ends)]
    round = 0
    while len(best) > 1:
        merged: list[tuple[Expr, Expr]] = []
        for at in range(0, len(best) - 1, 2):
            (left, left_at), (right, right_at) = best[at], best[at + 1]
            earlier = local(f"right_{round}_{at}", BOOL)
            body.append(Let(target=earlier.name, value=less(right, left)))
            merged.append((select(earlier, right, left), select(earlier, right_at, left_at)))
        best = merged + (best[-1:] if len(best) % 2 else [])
        round += 1
    first = best[0][1]
    if fibres > 1:
        first = select(equal(local("member"), 0), first, local("machine_of_job"))
    body.append(Let(target="winner", value=first))
    winner, length, row = local("winner"), local("next_length"), local("row")
    number = local("next_number") if "number" in channels else row
    code = fibre_code(product, number, beyond=fills_up(product) and number is row)
    writes: list[Statement] = [
        RegisterWrite(
            register="ends",
            indices=(const(machine),),
            value=select(equal(winner, machine), add(end, length), end),
        )
        for machine, end in enumerate(ends)
    ]
    writes.append(RegisterWrite(register="row", indices=(), value=add(row, 1)))
    if fibres > 1:
        member = local("member")
        following = select(equal(member, fibres - 1), 0, add(member, 1))
        writes.append(RegisterWrite(register="member", indices=(), value=following))
        writes.append(RegisterWrite(register="machine_of_job", indices=(), value=winner))

    def puts(machine: Expr, steps: Expr, code: Expr) -> tuple[Put, ...]:
        values = (machine, code, steps)
        names = ("machine", "row", "length")
        return tuple(
            Put(channel=f"{dealer}_{what}", value=value)
            for what, value in zip(names, values, strict=True)
        )

    ended = local("ended")
    finish = RegisterWrite(register="ended", indices=(), value=add(ended, 1))
    end_puts = puts(ended, const(END), const(0))
    rows = Mode(
        name="rows",
        needs=taken,
        choices=(
            Choice(
                when=less(-1, length),
                inside=Rule(
                    name="row to the first machine that is free",
                    body=(*body, *writes),
                    takes=taken,
                    puts=puts(winner, length, code),
                    next="rows",
                ),
            ),
            Choice(inside=Rule(name="rows end", takes=taken, next="finish")),
        ),
    )
    finishing = Mode(
        name="finish",
        needs=(),
        choices=(
            Choice(
                when=equal(ended, machines - 1),
                inside=Rule(name="end of the last machine", puts=end_puts, next=None),
            ),
            Choice(
                inside=Rule(name="end of a machine", body=(finish,), puts=end_puts, next="finish")
            ),
        ),
    )
    return Machine(
        name=name,
        role=Role.RELAY,
        heads=tuple(Head(channel=channels[what], value=f"next_{what}") for what in channels),
        registers=(
            register("ends", INT32, (machines,)),
            register("row"),
            register("ended"),
            *([register("member"), register("machine_of_job")] if fibres > 1 else []),
        ),
        modes=(rows, finishing),
        location=product.nodes.decoder.location,
    )


def _dealer(product: Product, name: str) -> Machine:
    """Keep the runs of this machine, pass on those of the machines behind it."""
    machines, decoder = product.machines, product.nodes.decoder
    parts = ("machine", "row", "length")
    lane = index(LANE)

    def choices(suffix: str) -> tuple[Choice, ...]:
        channels = tuple(f"{name}_{what}{suffix}" for what in parts)
        mine = tuple(
            Put(channel=f"{decoder.name}_run_{what}", value=local(f"{what}{suffix}"))
            for what in ("row", "length")
        )
        on = tuple(
            Put(channel=f"{name}_{what}_next", value=local(f"{what}{suffix}")) for what in parts
        )
        at, ends = local(f"machine{suffix}"), equal(local(f"length{suffix}"), END)
        label = "from the machine before" if suffix else "from the scheduler"
        own = equal(at, lane)
        found = [
            Choice(
                when=both(own, ends),
                inside=Rule(
                    name=f"end {label}",
                    takes=channels,
                    puts=mine,
                    next=None if machines == 1 else "after",
                ),
            ),
            Choice(
                when=own,
                inside=Rule(name=f"own row {label}", takes=channels, puts=mine, next="deal"),
            ),
        ]
        if machines > 1:
            found.append(
                Choice(inside=Rule(name=f"pass {label}", takes=channels, puts=on, next="deal"))
            )
        return tuple(found)

    def after(suffix: str) -> tuple[Choice, ...]:
        """The ends of the machines behind this one still come through."""
        channels = tuple(f"{name}_{what}{suffix}" for what in parts)
        on = tuple(
            Put(channel=f"{name}_{what}_next", value=local(f"{what}{suffix}")) for what in parts
        )
        label = "from the machine before" if suffix else "from the scheduler"
        last = equal(local(f"machine{suffix}"), machines - 1)
        return (
            Choice(
                when=last, inside=Rule(name=f"pass the last end {label}", takes=channels, puts=on)
            ),
            Choice(inside=Rule(name=f"pass an end {label}", takes=channels, puts=on, next="after")),
        )

    heads = [Head(channel=f"{name}_{what}", value=what) for what in parts]
    if machines > 1:
        heads += [Head(channel=f"{name}_{what}_next", value=f"{what}_next") for what in parts]
    modes = [Mode(name="deal", needs=(), choices=_by_lane(name, parts, machines, choices))]
    if machines > 1:
        done = Choice(when=equal(lane, machines - 1), inside=Rule(name="end"))
        modes.append(
            Mode(name="after", needs=(), choices=(done, *_by_lane(name, parts, machines, after)))
        )
    return Machine(
        name=name,
        role=Role.RELAY,
        space=(space(LANE, machines),),
        heads=tuple(heads),
        modes=tuple(modes),
        location=decoder.location,
    )


def _by_lane(
    name: str,
    parts: tuple[str, ...],
    machines: int,
    make: Callable[[str], tuple[Choice, ...]],
) -> tuple[Choice, ...]:
    """The first machine listens to the scheduler, the others to the machine before."""

    def needs(suffix: str) -> tuple[str, ...]:
        return tuple(f"{name}_{what}{suffix}" for what in parts)

    if machines == 1:
        return (Choice(needs=needs(""), inside=make("")),)
    return (
        Choice(when=equal(index(LANE), 0), needs=needs(""), inside=make("")),
        Choice(needs=needs("_next"), inside=make("_next")),
    )
