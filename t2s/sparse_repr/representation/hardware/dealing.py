"""Dealing rows to all machines in one step, from the lengths of the rows alone.

One decoder serves all machines.  It keeps a *window* of the lengths that come next, which a load
unit brings several at a time, and in one firing gives every machine the row of its step, counted
from 1; behind the last row that is 0.  So it never falls behind the machines, however short the
rows are.  Two schedules are repeated so:

* Rows as jobs, to the machine that is free first (the lowest numbered of those).  Machines run in
  step, so the free ones are those whose row has ended; they take the next rows in the order of
  their numbers.  A machine that meets an empty row is free again at once, before the ones behind
  it: that firing sends nothing, and an empty row costs a cycle.
* Blocks as jobs, in turn.  Block ``b`` is of the first row that ends behind it; a unit of its own
  sums the lengths to ends.  Empty rows cost a cycle only where they fill the window.

Numbers that count machines are small; the sums of them that a firing needs are as combinational as
a priority encoder of so many inputs is.
"""

from __future__ import annotations

from t2s.core.expr import Expr, const
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Let, RegisterRead, RegisterWrite, Statement
from t2s.graph.construct import (
    Parts,
    add,
    both,
    either,
    equal,
    less,
    local,
    register,
    select,
    subtract,
    unequal,
)
from t2s.graph.graph import StreamKind
from t2s.graph.machine import Choice, Machine, Mode, Put, Rule
from t2s.graph.parts import Register, Role
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import (
    fibre_count,
)
from t2s.sparse_repr.representation.hardware.window import END, MOST_WORDS, Window, load_lines
from t2s.sparse_repr.representation.layout import BlockJob


def deal_rows(parts: Parts, product: Product, rows: str, sink: str) -> None:
    """Add the decoder, and what brings it lengths.

    The rows of machine m leave over ``row_channel(rows, m)``, which ``sink`` takes.
    """
    blocks = isinstance(product.mapping.job, BlockJob)
    machines = product.machines
    window = Window(
        decoder=product.nodes.decoder.name,
        fibres=fibre_count(product),
        words=min(MOST_WORDS, 1 << (machines - 1).bit_length()),
        ahead=machines + 1 if blocks else machines,
    )
    load_lines(parts, product, window, blocks)
    writer = _Blocks(product, window, rows) if blocks else _Rows(product, window, rows)
    parts.nodes.append(
        Machine(
            name=window.decoder,
            role=Role.RELAY,
            heads=window.heads(),
            registers=(*window.registers(), *writer.registers()),
            modes=(writer.dealing(), _rest(window)),
            location=product.nodes.decoder.location,
        )
    )
    for machine in range(machines):
        parts.link(
            row_channel(rows, machine),
            INT32,
            window.decoder,
            sink,
            capacity=64 + product.slack,
            kind=StreamKind.COORDINATE,
        )


def row_channel(rows: str, machine: int) -> str:
    """The channel that brings a machine its rows, of the channel ``rows`` of all machines."""
    return f"{rows}_{machine}"


def _rest(window: Window) -> Mode:
    """Lines that come when no more steps do: of rows that are empty, and ends."""
    take = RegisterWrite(register="lines", indices=(), value=add(local("lines"), 1))
    more = unequal(local("lines"), window.lines - 1)
    channels = window.channels()
    return Mode(
        name="rest",
        needs=channels,
        choices=(
            Choice(
                when=more,
                inside=Rule(name="drop a line", body=(take,), takes=channels, next="rest"),
            ),
            Choice(inside=Rule(name="drop the last line", takes=channels)),
        ),
    )


class _Dealing:
    """The mode in which rows are dealt; what depends on the kind of job is in the subclasses."""

    def __init__(self, product: Product, window: Window, rows: str) -> None:
        self.product, self.window, self.rows = product, window, rows
        self.machines = range(product.machines)

    def registers(self) -> tuple[Register, ...]:
        """The registers beside those of the window."""
        raise NotImplementedError

    def _of_machines(self) -> tuple[Register, ...]:
        """The row of each machine, and whether it has it from a firing without a step."""
        machines = (self.product.machines,)
        return (register("current", INT32, machines), register("served", BOOL, machines))

    def _read(self, *names: str) -> list[Statement]:
        """Bind the registers of all machines, ``<name>_<m>``."""
        return [
            RegisterRead(
                target=f"{name}_{m}",
                register=name,
                indices=(const(m),),
                type=BOOL if name == "served" else INT32,
            )
            for name in names
            for m in self.machines
        ]

    def chain(self) -> list[Statement]:
        """What a firing finds out: ``used`` lengths, whether it is ``whole``, ``row_<m>``."""
        raise NotImplementedError

    def step(self) -> list[Statement]:
        """What changes in a step."""
        raise NotImplementedError

    def skip(self) -> list[Statement]:
        """What changes in a firing without a step."""
        raise NotImplementedError

    def dealing(self) -> Mode:
        """The mode: with a line where there is room for it, and without."""
        window = self.window
        low = less(local("level"), window.ahead + window.words)
        wanted = both(low, less(local("lines"), window.lines))
        return Mode(
            name="deal",
            needs=(),
            choices=(
                Choice(
                    body=tuple(self.chain()),
                    inside=(
                        Choice(
                            when=wanted, needs=window.channels(), inside=self._alternatives(True)
                        ),
                        Choice(inside=self._alternatives(False)),
                    ),
                ),
            ),
        )

    def _alternatives(self, line: bool) -> tuple[Choice, ...]:
        window, steps = self.window, self.product.steps
        takes = window.channels() if line else ()
        suffix = " and a line" if line else ""
        puts = tuple(
            Put(channel=row_channel(self.rows, m), value=local(f"row_{m}")) for m in self.machines
        )
        rows = RegisterWrite(register="rows", indices=(), value=add(local("rows"), local("used")))
        count = RegisterWrite(register="sent", indices=(), value=add(local("sent"), 1))
        moved = window.moved(local("used"), line)
        skipped = (*self.skip(), *moved, rows)
        stepped = (*self.step(), *moved, rows, count)
        choices: list[Choice] = []
        if line:
            inside = Rule(name="a line", body=window.moved(0, True), takes=takes, next="deal")
            choices.append(Choice(when=less(local("level"), window.ahead), inside=inside))
        inside = Rule(name=f"empty rows{suffix}", body=skipped, takes=takes, next="deal")
        choices.append(Choice(when=_not(local("whole", BOOL)), inside=inside))
        inside = Rule(name=f"a step{suffix}", body=stepped, takes=takes, puts=puts, next="deal")
        choices.append(Choice(when=unequal(local("sent"), steps - 1), inside=inside))
        all_lines = equal(local("lines"), window.lines - 1 if line else window.lines)
        inside = Rule(name=f"the last step{suffix}, all lines", takes=takes, puts=puts)
        choices.append(Choice(when=all_lines, inside=inside))
        body = (RegisterWrite(register="lines", indices=(), value=add(local("lines"), 1)),)
        inside = Rule(
            name=f"the last step{suffix}",
            body=body if line else (),
            takes=takes,
            puts=puts,
            next="rest",
        )
        choices.append(Choice(inside=inside))
        return tuple(choices)


class _Rows(_Dealing):
    """Rows are jobs: the machines whose row has ended take the next ones, in their order.

    ``left`` are the steps of a machine's row behind this one; ``served`` says that it has taken
    its row before, in a firing without a step.
    """

    def registers(self) -> tuple[Register, ...]:
        left = register("left", INT32, (self.product.machines,))
        return (register("rows"), register("sent"), left, *self._of_machines())

    def chain(self) -> list[Statement]:
        body = self._read("left", "current", "served")
        used: Expr = const(0)
        held: Expr = const(False, BOOL)
        for m in self.machines:
            body.append(self.window.read(m, used))
            ahead = local(f"ahead_{m}")
            waits = both(equal(local(f"left_{m}"), 0), _not(local(f"served_{m}", BOOL)))
            body.append(Let(target=f"free_{m}", value=waits))
            asks = both(local(f"free_{m}", BOOL), both(_not(held), unequal(ahead, END)))
            body.append(Let(target=f"takes_{m}", value=asks))
            takes = local(f"takes_{m}", BOOL)
            body.append(Let(target=f"number_{m}", value=add(add(local("rows"), 1), used)))
            empty = both(takes, equal(ahead, -1))
            body.append(Let(target=f"held_{m}", value=either(held, empty)))
            held = local(f"held_{m}", BOOL)
            body.append(Let(target=f"used_{m}", value=add(used, select(takes, 1, 0))))
            used = local(f"used_{m}")
        for m in self.machines:
            padding = select(local(f"free_{m}", BOOL), 0, local(f"current_{m}"))
            row = select(local(f"takes_{m}", BOOL), local(f"number_{m}"), padding)
            body.append(Let(target=f"row_{m}", value=row))
        body.append(Let(target="used", value=used))
        body.append(Let(target="whole", value=_not(held)))
        return body

    def step(self) -> list[Statement]:
        body: list[Statement] = []
        for m in self.machines:
            left, row = local(f"left_{m}"), local(f"row_{m}")
            stays = either(local(f"free_{m}", BOOL), local(f"served_{m}", BOOL))
            other = select(stays, left, subtract(left, 1))
            following = select(local(f"takes_{m}", BOOL), local(f"ahead_{m}"), other)
            served = const(False, BOOL)
            body.append(_write("left", m, following))
            body.append(_write("current", m, row))
            body.append(_write("served", m, served))
        return body

    def skip(self) -> list[Statement]:
        body: list[Statement] = []
        for m in self.machines:
            ahead, left = local(f"ahead_{m}"), local(f"left_{m}")
            body.append(
                Let(
                    target=f"filled_{m}",
                    value=both(local(f"takes_{m}", BOOL), unequal(ahead, -1)),
                )
            )
            filled = local(f"filled_{m}", BOOL)
            number, current = local(f"number_{m}"), local(f"current_{m}")
            served = either(local(f"served_{m}", BOOL), filled)
            for name, value in (
                ("left", select(filled, ahead, left)),
                ("current", select(filled, number, current)),
                ("served", served),
            ):
                body.append(_write(name, m, value))
        return body


class _Blocks(_Dealing):
    """Blocks are jobs: block ``block + m`` is machine m's, for some steps.

    ``served`` says that a machine has found its row before, in a firing without a step.
    """

    @property
    def job_steps(self) -> int:
        """Steps of a block."""
        job = self.product.mapping.job
        assert isinstance(job, BlockJob)
        return job.slots // self.product.block

    def registers(self) -> tuple[Register, ...]:
        phase = [register("phase")] if self.job_steps > 1 else []
        single = (register("rows"), register("sent"), register("block"), *phase)
        return (*single, *self._of_machines())

    def chain(self) -> list[Statement]:
        ahead = range(self.window.ahead)
        body = self._read("current", "served")
        body += [self.window.read(k, k) for k in ahead]
        for m in self.machines:
            block = add(local("block"), m)
            ended: list[Expr] = [select(less(block, local(f"ahead_{k}")), 0, 1) for k in ahead]
            while len(ended) > 1:
                pairs = zip(ended[::2], ended[1::2], strict=False)
                ended = [add(a, b) for a, b in pairs] + (ended[-1:] if len(ended) % 2 else [])
            body.append(Let(target=f"passed_{m}", value=ended[0]))
            number = add(add(local("rows"), 1), local(f"passed_{m}"))
            body.append(Let(target=f"number_{m}", value=number))
            padding = less(self.window.fibres, local(f"number_{m}"))
            fresh = select(padding, 0, local(f"number_{m}"))
            row = select(local(f"served_{m}", BOOL), local(f"current_{m}"), fresh)
            body.append(Let(target=f"row_{m}", value=row))
        passed = local(f"passed_{self.product.machines - 1}")
        body.append(Let(target="whole", value=less(passed, self.window.ahead)))
        used: Expr = passed
        if self.job_steps > 1:
            goes_on = both(local("whole", BOOL), unequal(local("phase"), self.job_steps - 1))
            used = select(goes_on, 0, passed)
        body.append(Let(target="used", value=used))
        return body

    def step(self) -> list[Statement]:
        block = add(local("block"), self.product.machines)
        body: list[Statement] = []
        ends: Expr = const(True, BOOL)
        if self.job_steps > 1:
            ends = last = equal(local("phase"), self.job_steps - 1)
            phase = select(last, 0, add(local("phase"), 1))
            body.append(RegisterWrite(register="phase", indices=(), value=phase))
            block = select(last, block, local("block"))
        body.append(RegisterWrite(register="block", indices=(), value=block))
        for m in self.machines:
            served = both(local(f"served_{m}", BOOL), _not(ends))
            body.append(_write("served", m, served))
        return body

    def skip(self) -> list[Statement]:
        body: list[Statement] = []
        for m in self.machines:
            found = less(local(f"passed_{m}"), self.window.ahead)
            served = either(local(f"served_{m}", BOOL), found)
            row = local(f"row_{m}")
            body.append(_write("current", m, row))
            body.append(_write("served", m, served))
        return body


def _write(register: str, machine: int, value: Expr) -> Statement:
    return RegisterWrite(register=register, indices=(const(machine),), value=value)


def _not(condition: Expr) -> Expr:
    return equal(condition, const(False, BOOL))
