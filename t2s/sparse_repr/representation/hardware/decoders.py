"""Decoders: the inverse map in hardware, which computes the fiber of every slot.

A *run* is a fiber and a number of slots.  Each machine takes its runs in order and sends the fiber
of every slot, counted from 1, and 0 after its last run.  If fibers are rows and slots are values,
that is the row of every step; otherwise ``decode_coordinates`` computes it from the offset of a
value in its unit, the position of the unit in its fiber, and the first column of a diagonal.
Padding, and elements of a unit beyond the edge of the matrix, have row 0 and column -1.  That is
the last part of the inverse map, and the only one with arithmetic.

The source of the runs depends on the order of jobs:

* ``FREE``: the fiber of every slot is stored, or there is a single fiber; nothing is decoded.
* ``STRIDED``, ``RECORDED`` fibers: each machine loads the lengths of its own fibers.
* ``STRIDED`` blocks: all machines receive the lengths of all fibers, and each computes how many
  blocks of a fiber are its own.
* Single rows whose schedule is replayed, and blocks of such rows: ``dealing``, without runs.
* ``REPLAYED``: one scheduler replays the schedule: it tracks the end of every machine's stream,
  assigns the next fiber to the machine that ends first, and sends it along the chain of decoders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr, conjunction, const, equals, select, simplify
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.build import (
    GraphParts,
    In,
    Out,
    count_up,
    index,
    loop,
    put,
    rule,
    when,
    write,
)
from t2s.graph.graph import StreamKind
from t2s.graph.nodes import Choice, Loop, Put
from t2s.reduction.circuits import LANE, STEP
from t2s.sparse_repr.representation.chain_layout import BlockJob, FiberJob, MatrixDimension
from t2s.sparse_repr.representation.hardware.dealing import deal_rows
from t2s.sparse_repr.representation.hardware.loaders import input_tensor
from t2s.sparse_repr.representation.hardware.own_runs import (
    END,
    FIBER,
    fiber_code,
    fiber_count,
    fills_up,
    lengths_loader,
    link_runs,
    loader_name,
    numbers_loader,
    run_wires,
    runs_of_blocks,
    runs_of_machines,
    steps_of,
)
from t2s.sparse_repr.representation.hardware.product import ELEMENT, Product
from t2s.sparse_repr.representation.hardware.wires import (
    ArrayDraft,
    ProductMachine,
    Statements,
    link,
    wire,
)
from t2s.sparse_repr.representation.inverse_map import Order

SLOT, JOB, UNIT, PART = "slot", "job", "unit", "part"
"""Loops: slots of a machine (or jobs, and units of a job, where all are stored), parts of a unit
that are handled in one step."""


def decode_fibers(parts: GraphParts, product: Product, sink: str, outs: tuple[Out, ...]) -> None:
    """Add the units that send the fiber of every slot to ``sink``, the same into all of ``outs``.

    If one decoder assigns rows to all machines, there is a wire for each machine.
    """
    mapping = product.mapping
    if mapping.order is Order.FREE:
        _load_fibers(parts, product, sink, outs)
        return
    if product.dealt:
        deal_rows(parts, product, sink, outs)
        return
    if isinstance(mapping.job, BlockJob):
        runs_of_blocks(parts, product)
    elif mapping.order is Order.REPLAYED:
        runs_replayed(parts, product)
    else:
        runs_of_machines(parts, product)
    _decoder(parts, product, sink, outs)


def _link_all(
    parts: GraphParts, product: Product, source: str, sink: str, outs: tuple[Out, ...]
) -> None:
    for out in outs:
        link(parts, out, source, sink, product.lanes, capacity=64 + product.slack)


def _load_fibers(parts: GraphParts, product: Product, sink: str, outs: tuple[Out, ...]) -> None:
    """Load the fibers; a block of slots has the fiber of its first slot."""
    name = product.mapping.fiber
    assert name is not None
    tensor, node = product.stream_name(name), loader_name(product, name)
    together = product.slots_decoded_at_once
    input_tensor(parts, product, tensor, INT32, (product.machines, product.decoded * together))
    steps, location = (loop(STEP, product.decoded),), product.nodes.decoder.location
    unit = ArrayDraft(node, Role.LOAD, product.lanes, steps, location)
    at = (index(LANE), simplify(index(STEP) * together))
    loaded = unit.load("loaded", tensor, at, INT32)
    for out in outs:
        unit.send(out, loaded + 1)
    parts.nodes.append(unit.node())
    _link_all(parts, product, node, sink, outs)


def _decoder(parts: GraphParts, product: Product, sink: str, outs: tuple[Out, ...]) -> None:
    """Expand runs to the fibers of slots, one per firing."""
    decoder, (row_wire, length_wire) = product.nodes.decoder, run_wires(product)
    machine = ProductMachine(decoder.name, Role.RELAY, product.lanes, decoder.location)
    runs = [machine.input(row_wire, "next_row"), machine.input(length_wire, "length")]
    following, length = runs[0].value, runs[1].value
    row, remaining, sent = (machine.register(name) for name in ("row", "left", "sent"))
    count, keep = count_up(sent), write(row, following)
    rest, down = write(remaining, length - 1), write(remaining, remaining - 1)
    first, again = [put(out, following) for out in outs], [put(out, row) for out in outs]
    nothing = [put(out) for out in outs]
    begins = rule("row begins", "row", takes=runs, puts=first, body=[count, keep, rest])
    machine.mode(
        "run",
        when(equals(length, 1), rule("row of one", "run", takes=runs, puts=first, body=[count])),
        when(const(1) < length, begins),
        when(equals(length, 0), rule("empty row", "run", takes=runs)),
        when(equals(sent, product.decoded), rule("end", None, takes=runs)),
        when(None, rule("padding begins", "pad", takes=runs)),
        needs=runs,
    )
    machine.mode(
        "row",
        when(equals(remaining, 1), rule("row ends", "run", puts=again, body=[count])),
        when(None, rule("row", "row", puts=again, body=[count, down])),
    )
    machine.mode(
        "pad",
        when(equals(sent, product.decoded - 1), rule("last padding", None, puts=nothing)),
        when(None, rule("padding", "pad", puts=nothing, body=[count])),
    )
    parts.nodes.append(machine.machine())
    _link_all(parts, product, decoder.name, sink, outs)


def decode_coordinates(parts: GraphParts, product: Product) -> None:
    """Send the rows of every step to the reduction, and the column of every value to the feeders.

    Adds the decoder, and the loaders of the structure.
    """
    decoder, mapping = product.nodes.decoder, product.mapping
    node = f"{decoder.name}_coordinates"
    units, fibers = _taken(product, node, "unit"), _taken(product, node, "fiber")
    if mapping.unit is not None:
        _load_units(parts, product, node, mapping.unit, units)
        if _has_fibers(product):
            decode_fibers(parts, product, node, fibers)
    loops = (*_slot_loops(product), *_part_loops(product))
    unit = ArrayDraft(node, Role.RELAY, product.places, loops, decoder.location)
    fiber, place = _slot(unit, product, units, fibers)
    row, column = _arithmetic(unit, product, fiber, place)
    values = product.block // product.rows_at_once
    for number, out in enumerate(product.row_wires):
        unit.send(out, row, equals(index(ELEMENT), number * values) if product.block > 1 else None)
    unit.send(product.places_wire, column)
    parts.nodes.append(unit.node())
    capacity = 64 + product.slack
    for out in product.row_wires:
        link(parts, out, node, product.rows_node, product.lanes, capacity=capacity)
    to = product.place_taker
    link(parts, product.places_wire, node, to, product.places, capacity=capacity)


def _has_fibers(product: Product) -> bool:
    """Whether there is more than one fiber."""
    return product.mapping.fiber is not None or product.mapping.order is not Order.FREE


def _taken(product: Product, node: str, what: str) -> tuple[Out, ...]:
    """A wire for each multiplier of a machine."""
    names = (f"{node}_{what}_{element}" for element in range(product.block))
    return tuple(wire(name, INT32, StreamKind.COORDINATE) for name in names)


def _slot_loops(product: Product) -> tuple[Loop, ...]:
    if product.mapping.unit is not None:
        return (loop(SLOT, product.slots),)
    units = product.units.count(product.mapping.minor) if product.storage.slots else 1
    return loop(JOB, product.slots // units), loop(UNIT, units)


def _part_loops(product: Product) -> tuple[Loop, ...]:
    count = _parts_of_a_unit(product)
    return (loop(PART, count),) if count > 1 else ()


def _parts_of_a_unit(product: Product) -> int:
    return product.storage.unit // product.block


def _load_units(
    parts: GraphParts, product: Product, sink: str, structure: str, outs: tuple[Out, ...]
) -> None:
    """A load unit for each machine: the position of each slot's unit in its fiber."""
    tensor, node = product.stream_name(structure), loader_name(product, structure)
    input_tensor(parts, product, tensor, INT32, (product.machines, product.slots))
    slots, location = (loop(SLOT, product.slots),), product.nodes.matrix_loader.location
    unit = ArrayDraft(node, Role.LOAD, product.lanes, slots, location)
    loaded = unit.load("loaded", tensor, (index(LANE), index(SLOT)), INT32)
    for out in outs:
        unit.send(out, loaded)
    parts.nodes.append(unit.node())
    for out in outs:
        link(parts, out, node, sink, product.lanes, capacity=32)


def _slot(
    unit: ArrayDraft, product: Product, units: tuple[Out, ...], fibers: tuple[Out, ...]
) -> tuple[Expr, Expr]:
    """The fiber of a slot and the position of its unit in it; both are negative for padding."""
    if product.mapping.unit is None:
        job = simplify(index(JOB) * product.machines + index(LANE))
        return unit.let("fiber", job), unit.let("unit_place", index(UNIT))
    place = unit.let("unit_place", _once_a_slot(unit, product, units, "unit"))
    if not _has_fibers(product):
        return unit.let("fiber", const(0)), place
    number = _once_a_slot(unit, product, fibers, "fiber") - 1
    return unit.let("fiber", number), place


def _once_a_slot(unit: ArrayDraft, product: Product, wires: tuple[Out, ...], what: str) -> Expr:
    """Receive a token for all parts of a unit."""
    several = _parts_of_a_unit(product) > 1
    start = equals(index(PART), 0)
    value: Expr | None = None
    for element, taken in enumerate(wires):
        mine = equals(index(ELEMENT), element)
        conditions = ([start] if several else []) + ([mine] if product.block > 1 else [])
        new = unit.receive(taken, f"{what}_{element}", conjunction(*conditions))
        value = new if value is None else select(mine, new, value)
    assert value is not None
    if not several:
        return unit.let(f"{what}_now", value)
    register = unit.register(f"{what}_register")
    before = unit.read(register, f"{what}_kept")
    now = unit.let(f"{what}_now", select(start, value, before))
    unit.write(register, now)
    return now


def _arithmetic(unit: ArrayDraft, product: Product, fiber: Expr, place: Expr) -> tuple[Expr, Expr]:
    """The row (counted from 1) and the column, from the fiber and the unit.

    The row belongs to the values of a row that begin here; it is 0 if all of them are outside.
    """
    mapping, (rows, columns) = product.mapping, product.storage.shape
    coordinates = {
        mapping.major: _coordinate(product, mapping.major, fiber),
        mapping.minor: _coordinate(product, mapping.minor, place),
    }
    row = unit.let("row", coordinates[MatrixDimension.ROWS])
    if MatrixDimension.COLUMNS in coordinates:
        column = unit.let("column", coordinates[MatrixDimension.COLUMNS])
    else:
        column = unit.let(
            "column", simplify(row + (coordinates[MatrixDimension.DIAGONALS] - (rows - 1)))
        )
    exists = (const(-1) < fiber) & (const(-1) < place)
    starts = unit.let("starts", exists & (row < rows) & (column < columns))
    valid = unit.let("valid", starts & (const(-1) < column))
    values = product.block // product.rows_at_once
    touches = unit.let("touches", starts & (-values < column))
    target = unit.let("target", select(touches, row + 1, 0))
    return target, unit.let("place", select(valid, column, -1))


def _coordinate(product: Product, dimension: MatrixDimension, outer: Expr) -> Expr:
    """The coordinate of a value: that of its unit plus its offset in the unit."""
    units = product.units
    at: Expr = index(PART) if _parts_of_a_unit(product) > 1 else const(0)
    if product.block > 1:
        at = simplify(at * product.block + index(ELEMENT))
    result, weight = simplify(outer * units.factor(dimension)), units.size
    for digit in units.digits:
        weight //= digit.extent
        if digit.dimension is dimension and digit.extent > 1:
            step = simplify(at // weight % digit.extent)
            result = simplify(result + step * digit.stride)
    return result


# Replaying a schedule: rows to the first free machine, from their lengths only.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deal:
    """The wires that bring a dealer its jobs: a machine, and a run for it."""

    machine: Out
    row: Out
    length: Out

    @property
    def all(self) -> tuple[Out, Out, Out]:
        """The three wires."""
        return self.machine, self.row, self.length

    def put(self, machine: Expr, row: Expr, length: Expr) -> list[Put]:
        """One job."""
        return [put(self.machine, machine), put(self.row, row), put(self.length, length)]


def _deal(dealer: str, suffix: str = "") -> _Deal:
    names = (f"{dealer}_{what}{suffix}" for what in ("machine", "row", "length"))
    machine, row, length = (wire(name, INT32, StreamKind.CONTROL) for name in names)
    return _Deal(machine=machine, row=row, length=length)


def runs_replayed(parts: GraphParts, product: Product) -> None:
    """One scheduler replays the schedule; dealers pass the rows along the chain of machines."""
    decoder, machines = product.nodes.decoder, product.machines
    scheduler, dealer = f"{decoder.name}_scheduler", f"{decoder.name}_dealer"
    lengths = wire(f"{scheduler}_length", kind=StreamKind.CONTROL)
    numbers = wire(f"{scheduler}_number", kind=StreamKind.CONTROL)
    loader, entry = lengths_loader(parts, product)
    exists = index(FIBER) < fiber_count(product)
    loader.send(lengths, select(exists, steps_of(product, entry), END))
    parts.nodes.append(loader.node())
    sources = {lengths: loader.name}
    if product.mapping.fiber is not None:
        loader, number = numbers_loader(parts, product)
        loader.send(numbers, number)
        parts.nodes.append(loader.node())
        sources[numbers] = loader.name
    for taken, source in sources.items():
        link(parts, taken, source, scheduler, capacity=32)
    new, on = _deal(dealer), _deal(dealer, "_next")
    _scheduler(parts, product, scheduler, tuple(sources), new)
    lane = index(LANE)
    before_this = ((lane + (machines - 1)) % machines,)
    for first, following in zip(new.all, on.all, strict=True):
        link(parts, first, scheduler, dealer, product.lanes, source_at=(const(0),), capacity=8)
        if machines > 1:
            link(parts, following, dealer, dealer, product.lanes, sink_at=before_this, capacity=8)
    _dealer(parts, product, dealer, new, on)
    link_runs(parts, product, dealer, dealer)


def _scheduler(
    parts: GraphParts, product: Product, name: str, taken: tuple[Out, ...], out: _Deal
) -> None:
    """Track the end of every machine's stream; the next job goes to the machine that ends first.

    ``taken`` bring the length of every fiber and, if empty ones are left out, its number.  All
    fibers of a job go to the machine of the first one.
    """
    machines, job = product.machines, product.mapping.job
    fibers = job.fibers if isinstance(job, FiberJob) else 1
    machine = ProductMachine(name, Role.RELAY, (), product.nodes.decoder.location)
    names = ("next_length", "next_number")
    heads = [machine.input(each, known) for each, known in zip(taken, names, strict=False)]
    ends_file = machine.file("ends", INT32, (machines,))
    row, ended = machine.register("row"), machine.register("ended")
    body, length = Statements(), heads[0].value
    ends = [body.read(ends_file, f"end_{n}", const(n)) for n in range(machines)]
    first = _earliest(body, ends)
    job_state = None
    if fibers > 1:
        job_state = machine.register("member"), machine.register("machine_of_job")
        first = select(equals(job_state[0], 0), first, job_state[1])
    winner = body.let("winner", first)
    number = heads[1].value if len(heads) > 1 else row
    code = fiber_code(product, number, beyond=fills_up(product) and number is row)
    for n, end in enumerate(ends):
        body.write(ends_file, select(equals(winner, n), end + length, end), const(n))
    body.statements.append(count_up(row))
    if job_state is not None:
        member, of_job = job_state
        following = select(equals(member, fibers - 1), 0, member + 1)
        body.statements += [write(member, following), write(of_job, winner)]
    next_job, last = out.put(winner, code, length), out.put(ended, const(0), const(END))
    free = "row to the first machine that is free"
    machine.mode(
        "rows",
        when(
            const(-1) < length, rule(free, "rows", takes=heads, puts=next_job, body=body.statements)
        ),
        when(None, rule("rows end", "finish", takes=heads)),
        needs=heads,
    )
    machine.mode(
        "finish",
        when(equals(ended, machines - 1), rule("end of the last machine", None, puts=last)),
        when(None, rule("end of a machine", "finish", puts=last, body=[count_up(ended)])),
    )
    parts.nodes.append(machine.machine())


def _earliest(body: Statements, ends: Sequence[Expr]) -> Expr:
    """The machine whose stream ends first, the lowest numbered on ties."""
    best: list[tuple[Expr, Expr]] = [(end, const(machine)) for machine, end in enumerate(ends)]
    round = 0
    while len(best) > 1:
        merged: list[tuple[Expr, Expr]] = []
        for at in range(0, len(best) - 1, 2):
            (left, left_at), (right, right_at) = best[at], best[at + 1]
            earlier = body.let(f"right_{round}_{at}", right < left)
            merged.append((select(earlier, right, left), select(earlier, right_at, left_at)))
        best = merged + (best[-1:] if len(best) % 2 else [])
        round += 1
    return best[0][1]


def _dealer(parts: GraphParts, product: Product, name: str, new: _Deal, on: _Deal) -> None:
    """Keep the runs of this machine, pass on those of later machines."""
    machines, lane = product.machines, index(LANE)
    location = product.nodes.decoder.location
    machine = ProductMachine(name, Role.RELAY, product.lanes, location)
    names = ("machine", "row", "length")
    first = [machine.input(each, what) for each, what in zip(new.all, names, strict=True)]
    before: list[In] = []
    if machines > 1:
        before = [
            machine.input(each, f"{what}_next") for each, what in zip(on.all, names, strict=True)
        ]

    def from_either(make: Callable[[list[In], str], list[Choice]]) -> list[Choice]:
        """The first machine listens to the scheduler, each other one to the machine before it."""
        choices = make(first, "from the scheduler")
        if machines == 1:
            return [when(None, choices, needs=first)]
        others = make(before, "from the machine before")
        return [when(equals(lane, 0), choices, needs=first), when(None, others, needs=before)]

    def passed(heads: list[In]) -> list[Put]:
        return on.put(*(head.value for head in heads))

    def deal(heads: list[In], label: str) -> list[Choice]:
        at, row, length = (head.value for head in heads)
        row_wire, length_wire = run_wires(product)
        mine, own = [put(row_wire, row), put(length_wire, length)], equals(at, lane)
        after = None if machines == 1 else "after"
        rules = [
            when(own & equals(length, END), rule(f"end {label}", after, takes=heads, puts=mine)),
            when(own, rule(f"own row {label}", "deal", takes=heads, puts=mine)),
        ]
        if machines > 1:
            through = rule(f"pass {label}", "deal", takes=heads, puts=passed(heads))
            rules.append(when(None, through))
        return rules

    def after(heads: list[In], label: str) -> list[Choice]:
        """The ends of later machines still pass through."""
        puts, last = passed(heads), equals(heads[0].value, machines - 1)
        return [
            when(last, rule(f"pass the last end {label}", None, takes=heads, puts=puts)),
            when(None, rule(f"pass an end {label}", "after", takes=heads, puts=puts)),
        ]

    machine.mode("deal", *from_either(deal))
    if machines > 1:
        done = when(equals(lane, machines - 1), rule("end", None))
        machine.mode("after", done, *from_either(after))
    parts.nodes.append(machine.machine())
