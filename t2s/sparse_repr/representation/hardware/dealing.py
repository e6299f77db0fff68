"""Assign rows to all machines in every step, from the lengths of the rows only.

One decoder serves all machines.  It keeps a *window* of the next lengths, which a load unit brings
several at a time, and in one firing gives every machine the row of its step, counted from 1, or 0
after the last row.  It therefore keeps up with the machines however short the rows are.  Two
schedules are replayed in this way:

* Rows as jobs, to the first free machine, the lowest numbered on ties.  Machines run in lockstep,
  so the free ones are those whose row has ended; they take the next rows in the order of their
  numbers.  A machine that gets an empty row is free again at once, before higher numbered ones:
  that firing sends nothing, so an empty row costs a cycle.
* Blocks as jobs, round-robin.  Block ``b`` belongs to the first row that ends after it; a separate
  unit sums the lengths to ends.  Empty rows cost a cycle only if they fill the window.

The sums that a firing needs count machines, so they are narrow: as deep as a priority encoder with
that many inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from t2s.core.expr import Expr, Local, Number, const, equals, select, simplify, unequal
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Role, Statement
from t2s.graph.build import (
    GraphParts,
    Out,
    count_up,
    index,
    loop,
    put,
    rule,
    space,
    when,
    write,
)
from t2s.graph.graph import StreamKind
from t2s.graph.nodes import Choice
from t2s.sparse_repr.representation.chain_layout import BlockJob
from t2s.sparse_repr.representation.hardware.own_runs import (
    blocks_of,
    fiber_count,
    loader_name,
    steps_of,
    structure_tensor,
)
from t2s.sparse_repr.representation.hardware.product import WORD, Product
from t2s.sparse_repr.representation.hardware.wires import (
    ArrayDraft,
    ProductMachine,
    RegisterFile,
    Statements,
    link,
    wire,
)


def deal_rows(parts: GraphParts, product: Product, sink: str, outs: tuple[Out, ...]) -> None:
    """Add the decoder, and the units that bring it lengths.

    The rows of machine m leave over ``outs[m]`` to ``sink``.
    """
    job, decoder, machines = product.mapping.job, product.nodes.decoder, product.machines
    machine = ProductMachine(decoder.name, Role.RELAY, (), decoder.location)
    dealing: _Dealing
    if isinstance(job, BlockJob):
        window = Window(machine, product, machines + 1)
        dealing = _Blocks(machine, product, window, job.slots // product.block)
    else:
        window = Window(machine, product, machines)
        dealing = _Rows(machine, product, window)
    load_lines(parts, product, window)
    dealing.deal(machine, outs)
    _rest(machine, window)
    parts.nodes.append(machine.machine())
    for out in outs:
        link(parts, out, decoder.name, sink, capacity=64 + product.slack)


def _rest(machine: ProductMachine, window: Window) -> None:
    """Drop the lines that arrive after the last step: empty rows, and the padding of the window."""
    drop = rule("drop a line", "rest", takes=window.inputs, body=[count_up(window.taken)])
    machine.mode(
        "rest",
        when(unequal(window.taken, window.lines - 1), drop),
        when(None, rule("drop the last line", None, takes=window.inputs)),
        needs=window.inputs,
    )


class _Dealing(ABC):
    """The mode that assigns rows; the subclasses implement the kinds of job.

    ``current`` is the row of each machine, ``served`` whether it got it in a firing without a step.
    A firing computes how many lengths are ``used``, whether the step is ``whole``, and each
    ``row``.
    """

    rows: Local
    sent: Local
    used: Local
    whole: Local

    def __init__(self, product: Product, window: Window) -> None:
        self.product, self.window = product, window
        self.machines = range(product.machines)
        self.row: list[Local] = []
        self.found = Statements()

    def _read(self, file: RegisterFile) -> list[Local]:
        """An element of a register file for each machine."""
        return [self.found.read(file, f"{file.name}_{m}", const(m)) for m in self.machines]

    @abstractmethod
    def step(self) -> list[Statement]:
        """Register updates of a step."""

    @abstractmethod
    def skip(self) -> list[Statement]:
        """Register updates of a firing without a step."""

    def deal(self, machine: ProductMachine, outs: tuple[Out, ...]) -> None:
        """Add the mode: rules that also take a line of lengths, where the window has room, and
        rules that don't.
        """
        window = self.window
        low = window.level < window.ahead + window.words
        asks = low & (window.taken < window.lines)
        inside = (
            when(asks, self._alternatives(outs, line=True), needs=window.inputs),
            when(None, self._alternatives(outs, line=False)),
        )
        machine.mode("deal", when(None, inside, body=self.found.statements))

    def _alternatives(self, outs: tuple[Out, ...], *, line: bool) -> list[Choice]:
        window, steps = self.window, self.product.steps
        takes, suffix = (window.inputs, " and a line") if line else ([], "")
        puts = [put(out, row) for out, row in zip(outs, self.row, strict=True)]
        rows = write(self.rows, self.rows + self.used)
        moved = window.moved(self.used, line)
        skipped = [*self.skip(), *moved, rows]
        stepped = [*self.step(), *moved, rows, count_up(self.sent)]
        choices: list[Choice] = []
        if line:
            only = rule("a line", "deal", takes=takes, body=window.moved(0, True))
            choices.append(when(window.level < window.ahead, only))
        empty = rule(f"empty rows{suffix}", "deal", takes=takes, body=skipped)
        step = rule(f"a step{suffix}", "deal", takes=takes, puts=puts, body=stepped)
        end = rule(f"the last step{suffix}, all lines", None, takes=takes, puts=puts)
        taken = [count_up(window.taken)] if line else []
        last = rule(f"the last step{suffix}", "rest", takes=takes, puts=puts, body=taken)
        all_lines = equals(window.taken, window.lines - 1 if line else window.lines)
        return [
            *choices,
            when(_not(self.whole), empty),
            when(unequal(self.sent, steps - 1), step),
            when(all_lines, end),
            when(None, last),
        ]


class _Rows(_Dealing):
    """Rows are jobs: machines whose row has ended take the next rows, in the order of their
    numbers.

    ``left`` are the remaining steps of a machine's row; ``served`` says that it took its row
    earlier, in a firing without a step.
    """

    def __init__(self, machine: ProductMachine, product: Product, window: Window) -> None:
        super().__init__(product, window)
        of_machines = (product.machines,)
        self.rows, self.sent = machine.register("rows"), machine.register("sent")
        self.left_file = machine.file("left", INT32, of_machines)
        self.current_file = machine.file("current", INT32, of_machines)
        self.served_file = machine.file("served", BOOL, of_machines)
        self.left, self.current = self._read(self.left_file), self._read(self.current_file)
        self.served = self._read(self.served_file)
        self.free: list[Local] = []
        self.takes: list[Local] = []
        self.number: list[Local] = []
        self.ahead: list[Local] = []
        used: Expr = const(0)
        held: Expr = const(False, BOOL)
        for m in self.machines:
            used, held = self._ask(m, used, held)
        for m in self.machines:
            padding = select(self.free[m], 0, self.current[m])
            row = select(self.takes[m], self.number[m], padding)
            self.row.append(self.found.let(f"row_{m}", row))
        self.used = self.found.let("used", used)
        self.whole = self.found.let("whole", _not(held))

    def _ask(self, m: int, used: Expr, held: Expr) -> tuple[Expr, Expr]:
        """Whether a machine takes the next row; returns the lengths used so far, and whether one
        was empty.
        """
        body = self.found
        self.ahead.append(self.window.read(body, m, used))
        waits = equals(self.left[m], 0) & _not(self.served[m])
        self.free.append(body.let(f"free_{m}", waits))
        asks = self.free[m] & (_not(held) & unequal(self.ahead[m], END))
        self.takes.append(body.let(f"takes_{m}", asks))
        self.number.append(body.let(f"number_{m}", self.rows + 1 + used))
        empty = self.takes[m] & equals(self.ahead[m], -1)
        held = body.let(f"held_{m}", held | empty)
        return body.let(f"used_{m}", used + select(self.takes[m], 1, 0)), held

    def step(self) -> list[Statement]:
        body: list[Statement] = []
        for m in self.machines:
            stays = self.free[m] | self.served[m]
            other = select(stays, self.left[m], self.left[m] - 1)
            following, place = select(self.takes[m], self.ahead[m], other), const(m)
            body.append(self.left_file.write(following, place))
            body.append(self.current_file.write(self.row[m], place))
            body.append(self.served_file.write(const(False, BOOL), place))
        return body

    def skip(self) -> list[Statement]:
        body = Statements()
        for m in self.machines:
            taken = self.takes[m] & unequal(self.ahead[m], -1)
            filled, place = body.let(f"filled_{m}", taken), const(m)
            body.write(self.left_file, select(filled, self.ahead[m], self.left[m]), place)
            body.write(self.current_file, select(filled, self.number[m], self.current[m]), place)
            body.write(self.served_file, self.served[m] | filled, place)
        return body.statements


class _Blocks(_Dealing):
    """Blocks are jobs: block ``block + m`` belongs to machine m, for ``job_steps`` steps.

    ``served`` says that a machine found its row earlier, in a firing without a step.
    """

    def __init__(
        self, machine: ProductMachine, product: Product, window: Window, job_steps: int
    ) -> None:
        super().__init__(product, window)
        self.job_steps, of_machines = job_steps, (product.machines,)
        self.rows, self.sent = machine.register("rows"), machine.register("sent")
        self.block = machine.register("block")
        self.phase = machine.register("phase") if job_steps > 1 else None
        self.current_file = machine.file("current", INT32, of_machines)
        self.served_file = machine.file("served", BOOL, of_machines)
        current, self.served = self._read(self.current_file), self._read(self.served_file)
        ends = [window.read(self.found, k, k) for k in range(window.ahead)]
        self.passed: list[Local] = []
        for m in self.machines:
            self.passed.append(self._passed(m, ends))
            behind = self.rows + 1 + self.passed[m]
            number = self.found.let(f"number_{m}", behind)
            fresh = select(window.fibers < number, 0, number)
            row = select(self.served[m], current[m], fresh)
            self.row.append(self.found.let(f"row_{m}", row))
        last: Expr = self.passed[-1]
        self.whole = self.found.let("whole", last < window.ahead)
        if self.phase is not None:
            goes_on = self.whole & unequal(self.phase, job_steps - 1)
            last = select(goes_on, 0, last)
        self.used = self.found.let("used", last)

    def _passed(self, m: int, ends: list[Local]) -> Local:
        """The number of rows that end before the block of a machine."""
        block = simplify(self.block + m)
        ended: list[Expr] = [select(block < end, 0, 1) for end in ends]
        while len(ended) > 1:
            pairs = zip(ended[::2], ended[1::2], strict=False)
            ended = [a + b for a, b in pairs] + (ended[-1:] if len(ended) % 2 else [])
        return self.found.let(f"passed_{m}", ended[0])

    def step(self) -> list[Statement]:
        block: Expr = self.block + self.product.machines
        body: list[Statement] = []
        ends: Expr = const(True, BOOL)
        if self.phase is not None:
            ends = last = equals(self.phase, self.job_steps - 1)
            body.append(write(self.phase, select(last, 0, self.phase + 1)))
            block = select(last, block, self.block)
        body.append(write(self.block, block))
        body += [
            self.served_file.write(self.served[m] & _not(ends), const(m)) for m in self.machines
        ]
        return body

    def skip(self) -> list[Statement]:
        body: list[Statement] = []
        for m in self.machines:
            passed = self.passed[m] < self.window.ahead
            body.append(self.current_file.write(self.row[m], const(m)))
            body.append(self.served_file.write(self.served[m] | passed, const(m)))
        return body


def _not(condition: Expr) -> Expr:
    return equals(condition, False)


# Loading lengths: line by line into a window.

END = -2
"""Marks the end of the lengths.  Stored lengths are less one, so an empty row is -1."""

FAR = 2**30
"""Blocks of the pseudo row for padding: it never ends."""

MOST_WORDS = 16
"""The most lengths that are loaded in a cycle: a line of memory."""


class Window:
    """The window of lengths: ``words`` arrive together, ``ahead`` of them can be read.

    Attributes
    ----------
    fibers: the number of lengths; ``lines`` are loaded, padded with ends that keep the window full.
    size: entries of the window, a power of two.
    inputs: the heads of the wires that bring a line.
    first, last, level, taken: the index of the first length, the one after the last, the number of
        lengths in the window, and the number of lines taken.
    """

    def __init__(self, machine: ProductMachine, product: Product, ahead: int) -> None:
        self.fibers, self.ahead = fiber_count(product), ahead
        self.words = min(MOST_WORDS, 1 << (product.machines - 1).bit_length())
        self.size = 1 << (ahead + 2 * self.words - 1).bit_length()
        self.lines = -(-(self.fibers + ahead) // self.words)
        self.wires = _length_wires(machine.name, self.words)
        self.inputs = [
            machine.input(each, f"length_{word}") for word, each in enumerate(self.wires)
        ]
        self._kept = machine.file("window", INT32, (self.size,))
        names = ("first", "last", "level", "lines")
        self.first, self.last, self.level, self.taken = map(machine.register, names)

    def place(self, start: Local, offset: Number) -> Expr:
        """The index ``offset`` after another one, modulo the size of the window."""
        return (start if offset == 0 else start + offset) & (self.size - 1)

    def read(self, body: Statements, number: int, offset: Number) -> Local:
        """Read the length ``offset`` after the first, as the local ``ahead_<number>``."""
        return body.read(self._kept, f"ahead_{number}", self.place(self.first, offset))

    def moved(self, used: Number, line: bool) -> list[Statement]:
        """Statements that drop ``used`` lengths, and add a line if ``line``."""
        more = (self.words if line else 0) - used
        body: list[Statement] = [
            write(self.first, self.place(self.first, used)),
            write(self.level, simplify(self.level + more)),
        ]
        if not line:
            return body
        body += [
            self._kept.write(head.value, simplify(self.last + word))
            for word, head in enumerate(self.inputs)
        ]
        body.append(write(self.last, self.place(self.last, self.words)))
        body.append(count_up(self.taken))
        return body


def _length_wires(node: str, words: int) -> tuple[Out, ...]:
    """The wires that bring a node the words of a line of lengths."""
    names = (f"{node}_length_{word}" for word in range(words))
    return tuple(wire(name, INT32, StreamKind.CONTROL) for name in names)


def load_lines(parts: GraphParts, product: Product, window: Window) -> None:
    """Add the load unit of the lengths, and for blocks the unit that sums them."""
    lengths, decoder, job = product.mapping.lengths, product.nodes.decoder.name, product.mapping.job
    assert lengths is not None
    node, tensor = (
        loader_name(product, lengths.name),
        structure_tensor(parts, product, lengths.name, flat=True),
    )
    at = simplify(index("line") * window.words + index(WORD))
    exists = at < window.fibers
    sums = f"{decoder}_sums"
    sink, outs = decoder, window.wires
    if isinstance(job, BlockJob):
        sink, outs = sums, _length_wires(sums, window.words)
    unit = ArrayDraft(
        node, Role.LOAD, (space(WORD, window.words),), (loop("line", window.lines),),
        product.nodes.matrix_loader.location,
    )  # fmt: skip
    place = (const(0) if lengths.fibers is None else at,)
    entry = unit.load("entry", tensor, place, INT32, exists)
    if isinstance(job, BlockJob):
        beyond = select(equals(at, window.fibers), FAR, 0)
        value = select(exists, blocks_of(product, entry, job.slots), beyond)
    else:
        value = select(exists, steps_of(product, entry) - 1, END)
    length = unit.let("length", value)
    for word, out in enumerate(outs):
        unit.send(out, length, equals(index(WORD), word) if window.words > 1 else None)
    parts.nodes.append(unit.node())
    for out in outs:
        link(parts, out, node, sink, capacity=16)
    if isinstance(job, BlockJob):
        _sum_lengths(parts, product, window, sums, outs)


def _sum_lengths(
    parts: GraphParts, product: Product, window: Window, node: str, taken: tuple[Out, ...]
) -> None:
    """Sum the lengths of rows to their ends, a line per firing."""
    decoder = product.nodes.decoder
    unit = ArrayDraft(node, Role.RELAY, (), (loop("line", window.lines),), decoder.location)
    sums = [unit.receive(each, f"length_{word}") for word, each in enumerate(taken)]
    reach = 1
    while reach < window.words:
        for word in range(window.words - 1, reach - 1, -1):
            sums[word] = unit.let(f"sum_{reach}_{word}", sums[word - reach] + sums[word])
        reach *= 2
    end = unit.register("end")
    before = unit.read(end, "before")
    ends: list[Local] = []
    for word, out in enumerate(window.wires):
        ends.append(unit.let(f"end_{word}", before + sums[word]))
        unit.send(out, ends[word])
        link(parts, out, node, decoder.name, capacity=16)
    unit.write(end, ends[-1])
    parts.nodes.append(unit.node())
