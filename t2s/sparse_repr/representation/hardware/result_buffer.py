"""The result: buffered on the chip until all lanes have passed a line, then stored line by line.

If rows are not ordered, or several lanes add to one row, that is when all lanes have ended.  A
start value is loaded in parallel, and added to the sums when they are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr, Index, Local, Read, const, equals, select, simplify, unequal
from t2s.core.types import INT32
from t2s.core.walk import T, Term, rewrite
from t2s.graph.body import Role, Statement, Store
from t2s.graph.build import (
    GraphParts,
    In,
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
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.nodes import Choice, Put
from t2s.reduction.circuits import LANE, Lanes, Tree
from t2s.sparse_repr.representation.hardware.loaders import flat_subscripts, operand_tensor
from t2s.sparse_repr.representation.hardware.multiply import tree
from t2s.sparse_repr.representation.hardware.product import WORD, Product
from t2s.sparse_repr.representation.hardware.wires import (
    ArrayDraft,
    ProductMachine,
    RegisterFile,
    Statements,
    link,
    wire,
)

WAITING = 16
"""Lines of a start value that are buffered until their sums arrive."""


def unload(parts: GraphParts, product: Product, lanes: Lanes) -> None:
    """Add the buffer of the result, which takes a pair from every lane in each step, and its store
    unit.

    If no row is on two lanes there is one buffer; otherwise one for each lane, summed at the end.
    Row 0, the target of padding, has a dummy entry in front.
    """
    unloader = product.nodes.unloader
    lines = lines_of(product)
    machine = ProductMachine(unloader.name, Role.RELAY, (), unloader.location)
    pairs = pair_inputs(machine, product, unloader.name, lanes.count)
    buffer = _Buffer.draft(machine, product, lanes, lines, pairs)
    buffer.collecting(machine)
    buffer.draining(machine)
    parts.nodes.append(machine.machine())
    store_lines(parts, product, lines)


def lines_of(product: Product) -> int:
    """The number of lines of the result."""
    return -(-product.rows * product.width // product.words)


def pair_inputs(
    machine: ProductMachine, product: Product, node: str, count: int
) -> list[tuple[In, In]]:
    """The inputs of a node from lanes: a target and a value each, named as by ``send_lanes``."""
    return [
        (
            machine.input(wire(f"{node}_target_{n}"), f"target_{n}"),
            machine.input(wire(f"{node}_value_{n}", product.result.type), f"value_{n}"),
        )
        for n in range(count)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Buffer:
    """The buffer: ``kept`` are its banks; ``last`` the latest row of each lane, if lines are
    sent early.
    """

    product: Product
    lanes: Lanes
    lines: int
    pairs: list[tuple[In, In]]
    count: Local
    line: Local
    side: Local | None
    last: RegisterFile | None
    kept: list[RegisterFile]

    @staticmethod
    def draft(
        machine: ProductMachine,
        product: Product,
        lanes: Lanes,
        lines: int,
        pairs: list[tuple[In, In]],
    ) -> _Buffer:
        """The registers of the buffer; lines are complete early if rows come in order."""
        banks = 1 if product.distinct else lanes.count
        early = product.ascending and banks == 1
        size = product.width + lines * product.words
        return _Buffer(
            product=product,
            lanes=lanes,
            lines=lines,
            pairs=pairs,
            count=machine.register("count"),
            line=machine.register("line"),
            side=machine.register("side") if product.width > 1 else None,
            last=machine.file("last", INT32, (lanes.count,)) if early else None,
            kept=[machine.file(f"kept_{n}", product.result.type, (size,)) for n in range(banks)],
        )

    def collecting(self, machine: ProductMachine) -> None:
        """Add the mode that stores pairs, and sends lines that are complete early, one at a
        time.
        """
        heads = [head for pair in self.pairs for head in pair]
        body = self._keep()
        more = unequal(self.count, self.lanes.steps * self.product.width - 1)
        search, variants = Statements(), list[tuple[Expr | None, str, list[Statement], list[Put]]]()
        if self.last is not None:
            complete = self._complete(search, self.last)
            read, puts = self._send()
            variants.append((complete, " and send a line", [*read, count_up(self.line)], puts))
        variants.append((None, "", [], []))
        choices: list[Choice] = []
        for condition, suffix, sent, puts in variants:
            firing = [*sent, *body]
            keep = rule(f"keep{suffix}", "collect", takes=heads, puts=puts, body=firing)
            end = rule(f"keep the last{suffix}", "drain", takes=heads, puts=puts, body=firing)
            choices.append(when(condition, (when(more, keep), when(None, end))))
        machine.mode("collect", when(None, choices, body=search.statements), needs=heads)

    def _keep(self) -> list[Statement]:
        """Store a pair of each lane."""
        width, body = self.product.width, Statements()
        for lane, (target, value) in enumerate(self.pairs):
            at = simplify(target.value * width + (0 if self.side is None else self.side))
            body.write(self.kept[lane if len(self.kept) > 1 else 0], value.value, at)
        if self.last is not None:
            for lane, (target, _) in enumerate(self.pairs):
                known = Local(name=f"last_{lane}", type=INT32)  # ``_complete`` binds it
                row = select(equals(target.value, 0), known, target.value)
                body.write(self.last, row, const(lane))
        body.statements.append(count_up(self.count))
        if self.side is not None:
            following = select(equals(self.side, width - 1), 0, self.side + 1)
            body.statements.append(write(self.side, following))
        return body.statements

    def _complete(self, body: Statements, last: RegisterFile) -> Expr:
        """Whether the next line is complete: every lane is at a row after it.  The last line
        waits.
        """
        least: list[Expr] = [
            body.read(last, f"last_{lane}", const(lane)) for lane in range(self.lanes.count)
        ]
        while len(least) > 1:
            pairs = zip(least[::2], least[1::2], strict=False)
            smaller: list[Expr] = [
                body.let(f"least_{len(body.statements)}", select(a < b, a, b)) for a, b in pairs
            ]
            least = smaller + (least[-1:] if len(least) % 2 else [])
        elements = simplify((least[0] - 1) * self.product.width)  # of the rows before
        ready = simplify((self.line + 1) * self.product.words) < elements + 1
        return ready & (self.line < self.lines - 1)

    def _send(self) -> tuple[list[Statement], list[Put]]:
        """Read the next line, and send it."""
        words, width, body = self.product.words, self.product.width, Statements()
        puts: list[Put] = []
        for word, out in enumerate(line_wires(self.product)):
            at = simplify(self.line * words + (word + width))
            terms: list[Expr] = [
                body.read(file, f"read_{word}_{bank}", at) for bank, file in enumerate(self.kept)
            ]
            puts.append(put(out, tree(terms)))
        return body.statements, puts

    def draining(self, machine: ProductMachine) -> None:
        """Add the mode that sends the remaining lines when the streams have ended."""
        body, puts = self._send()
        send = rule("send", "drain", puts=puts, body=[*body, count_up(self.line)])
        machine.mode(
            "drain",
            when(unequal(self.line, self.lines - 1), send),
            when(None, rule("send the last", None, puts=puts, body=body)),
        )


def _store_name(product: Product) -> str:
    return f"{product.nodes.unloader.name}_store"


def line_wires(product: Product) -> tuple[Out, ...]:
    """The wires that bring the store unit the words of a line."""
    name, type = _store_name(product), product.result.type
    return tuple(wire(f"{name}_word_{word}", type) for word in range(product.words))


def store_lines(parts: GraphParts, product: Product, lines: int) -> None:
    """Add the store unit, which moves lines of the result to memory."""
    name, words, unloader = _store_name(product), product.words, product.nodes.unloader
    at = simplify(index("line") * words + index(WORD))
    subscripts = (at,) if product.flat else flat_subscripts(at, product.width)
    shape = product.shape(product.storage.shape[0])
    operand_tensor(parts, product.result, shape, TensorRole.OUTPUT)
    unit = ArrayDraft(
        name, Role.STORE, (space(WORD, words),), (loop("line", lines),), unloader.location
    )
    value: Expr | None = None
    for word, source in enumerate(line_wires(product)):
        mine = equals(index(WORD), word)
        this = unit.receive(source, f"word_{word}", mine if words > 1 else None)
        value = this if value is None else select(mine, this, value)
        link(parts, source, unloader.name, name, capacity=16)
    assert value is not None
    begin = load_start(parts, product, unit, name, at, lines)
    stored = unit.let("stored", value if begin is None else begin + value)
    unit.statements.append(
        Store(
            tensor=product.result.name,
            indices=subscripts,
            value=stored,
            condition=at < product.rows * product.width,
        )
    )
    parts.nodes.append(unit.node())


def load_start(
    parts: GraphParts, product: Product, unit: ArrayDraft, sink: str, at: Expr, lines: int
) -> Expr | None:
    """Add loaders of the operands of the start value, with wires to the store unit ``unit``.

    ``at`` is the flat index of an element of the result in both.  Returns the value as an
    expression over locals of the store unit; ``None`` if results start from 0.
    """
    start = product.start
    if start is None:
        return None
    for operand in start.operands:
        if operand.name == product.vector.name:
            continue  # declared by its loader
        shape, padded = start.shapes[operand.name], start.padded[operand.name]
        parts.tensors.append(
            Tensor(
                name=operand.name, type=operand.type, shape=shape,
                padded=None if padded == shape else padded, role=TensorRole.INPUT,
                location=operand.location,
            )
        )  # fmt: skip
    placed = {start.row: simplify(at // product.width)}
    if start.side is not None:
        placed[start.side] = simplify(at % product.width)
    locals: dict[Term, Local] = {}
    inside = at < product.rows * product.width
    for number, (read, loader) in enumerate(start.loaders.items()):
        out = wire(f"{loader}_word", read.type)
        _load(parts, product, _at(read, placed), loader, out, sink, inside, lines)
        locals[read] = unit.receive(out, f"start_{number}")
    localized = rewrite(start.value, lambda node: locals.get(node))
    return _at(localized, placed)


def _at(expression: T, placed: dict[str, Expr]) -> T:
    """An expression of an element, over the loops of a unit that handles lines of them."""

    def rule(node: Term) -> Term | None:
        return placed.get(node.name) if isinstance(node, Index) else None

    return rewrite(expression, rule)


def _load(
    parts: GraphParts,
    product: Product,
    read: Read,
    loader: str,
    out: Out,
    sink: str,
    inside: Expr,
    lines: int,
) -> None:
    """A load unit with a wire, one place for each element of a line."""
    assert product.start is not None
    location, words = product.start.location, (space(WORD, product.words),)
    unit = ArrayDraft(loader, Role.LOAD, words, (loop("line", lines),), location)
    unit.send(out, unit.load("loaded", read.source, read.indices, read.type, inside))
    parts.nodes.append(unit.node())
    link(parts, out, loader, sink, words, capacity=WAITING, location=location)


# Sums of rows whose values are not grouped: a memory of partial results on each machine.
#
# Each step reads a row's entry, adds to it, and writes it back.  A float addition takes several
# cycles, and the next value may belong to the same row, so a memory holds ``2 ** levels`` partial
# sums of every row, used in turn ([Sparse T2S, sec. 2.2] leaves this case open): each is read again
# no earlier than that many steps later, whatever the matrix is, so no step stalls and none reads a
# stale sum.  Several right-hand sides take turns anyway, and need fewer partial sums.
#
# When the streams have ended, the partial sums of a row are added, by a tree or sequentially, and
# each line of the result travels along the chain of machines, each of which adds its own sums.


def scatter(parts: GraphParts, product: Product) -> None:
    """Add the memories of sums, one for each row of a step, and their unloader."""
    node, lines = product.nodes.reduction, lines_of(product)
    machines = product.lanes if product.machines > 1 else ()
    machine = ProductMachine(node.name, Role.COMPUTE, machines, node.location)
    pairs = pair_inputs(machine, product, node.name, product.rows_at_once)
    own = [
        wire(f"{product.nodes.unloader.name}_own_{word}", product.result.type)
        for word in range(product.words)
    ]
    sums = _Sums.draft(machine, product, lines)
    sums.adding(machine, pairs)
    sums.settling(machine)
    sums.draining(machine, lines, own)
    parts.nodes.append(machine.machine())
    _unload(parts, product, own, lines)
    store_lines(parts, product, lines)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """The memories of a machine: ``copies`` partial sums of ``size`` elements each.

    ``distance`` is the least number of firings from a write of an element to the next read of it.
    """

    product: Product
    size: int
    copies: int
    distance: int
    count: Local
    line: Local
    side: Local | None
    copy: Local | None
    settled: Local | None
    memories: list[RegisterFile]

    @staticmethod
    def draft(machine: ProductMachine, product: Product, lines: int) -> _Sums:
        """The registers of a machine."""
        width, circuit, at_once = product.width, product.circuit, product.rows_at_once
        copies = -(-circuit.slots // width)
        rows = -(-lines * product.words // width)
        size = width + -(-rows // at_once) * width
        distance, shape = copies * width, (copies * size,)
        return _Sums(
            product=product,
            size=size,
            copies=copies,
            distance=distance,
            count=machine.register("count"),
            line=machine.register("line"),
            side=machine.register("side") if width > 1 else None,
            copy=machine.register("copy") if copies > 1 else None,
            settled=machine.register("settled") if distance > 1 else None,
            memories=[
                machine.file(f"sums_{row}", product.result.type, shape, distance, circuit.location)
                for row in range(at_once)
            ],
        )

    def adding(self, machine: ProductMachine, pairs: list[tuple[In, In]]) -> None:
        """Add the mode that adds each value of a step to its target, in the memory of its place
        in the step.
        """
        heads, width, body = (
            [head for pair in pairs for head in pair],
            self.product.width,
            Statements(),
        )
        for row, (target, value) in enumerate(pairs):
            place = body.let(f"at_{row}", self._place(target.value))
            known = body.read(self.memories[row], f"sum_{row}", place)
            body.write(self.memories[row], known + value.value, place)
        body.statements.append(count_up(self.count))
        last_side: Expr | None = None
        if self.side is not None:
            last_side = equals(self.side, width - 1)
            body.statements.append(write(self.side, select(last_side, 0, self.side + 1)))
        if self.copy is not None:
            after: Expr = select(equals(self.copy, self.copies - 1), 0, self.copy + 1)
            if last_side is not None:
                after = select(last_side, after, self.copy)
            body.statements.append(write(self.copy, after))
        more = unequal(self.count, self.product.steps * width - 1)
        following = "settle" if self.settled is not None else "drain"
        machine.mode(
            "add",
            when(more, rule("add", "add", takes=heads, body=body.statements)),
            when(None, rule("add the last", following, takes=heads, body=body.statements)),
            needs=heads,
        )

    def _place(self, target: Expr) -> Expr:
        """The address of the sum of a target; target 0, padding, has a dummy entry in front.

        With ``n`` rows per step, each memory holds every n-th row of the result.
        """
        rows = self.product.rows_at_once
        place = simplify((target + (rows - 1)) // rows) if rows > 1 else target
        at = simplify(place * self.product.width + (0 if self.side is None else self.side))
        return at if self.copy is None else simplify(self.copy * self.size + at)

    def settling(self, machine: ProductMachine) -> None:
        """Add the mode that waits until the last sums are written, for as long as any other read
        would.
        """
        if self.settled is None:
            return
        wait = [count_up(self.settled)]
        machine.mode(
            "settle",
            when(unequal(self.settled, self.distance - 2), rule("settle", "settle", body=wait)),
            when(None, rule("settled", "drain", body=wait)),
        )

    def draining(self, machine: ProductMachine, lines: int, own: list[Out]) -> None:
        """Add the mode that sends the sums of a line, word by word."""
        body, puts = Statements(), list[Put]()
        for word, out in enumerate(own):
            starts = range(0, self.copies * self.size, self.size)
            terms: list[Expr] = [self._partial(word, start, body) for start in starts]
            puts.append(put(out, self._total(terms)))
        step: list[Statement] = [*body.statements, count_up(self.line)]
        machine.mode(
            "drain",
            when(unequal(self.line, lines - 1), rule("send", "drain", puts=puts, body=step)),
            when(None, rule("send the last", None, puts=puts, body=body.statements)),
        )

    def _partial(self, word: int, start: int, body: Statements) -> Expr:
        """A partial sum of element ``word`` of the line; ``body`` reads it from its memory."""
        rows, width = self.product.rows_at_once, self.product.width
        at = simplify(self.line * self.product.words + word)
        if rows == 1:
            place: Expr = at + (width + start)
        else:
            place = simplify(at // width // rows * width + at % width + (width + start))
        value: Expr | None = None
        for row, memory in enumerate(self.memories):
            read = body.read(memory, f"read_{word}_{start}_{row}", place)
            mine = equals(simplify(at // width % rows), row)
            value = read if value is None else select(mine, read, value)
        assert value is not None
        return value

    def _total(self, terms: list[Expr]) -> Expr:
        """The sum of partial sums: a balanced tree, or sequential additions."""
        if self.product.circuit.structure is Tree:
            return tree(terms)
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total


def _unload(parts: GraphParts, product: Product, own: list[Out], lines: int) -> None:
    """Add the chain of machines that adds up lines; the last one sends them to memory."""
    unloader, node, count = product.nodes.unloader, product.nodes.reduction, product.machines
    machines, lane = product.lanes if count > 1 else (), index(LANE)
    unit = ArrayDraft(
        unloader.name, Role.RELAY, machines, (loop("line", lines),), unloader.location
    )
    for word, (mine, out) in enumerate(zip(own, line_wires(product), strict=True)):
        on = wire(f"{unloader.name}_next_{word}", mine.type)
        value: Expr = unit.receive(mine, f"own_{word}")
        if count > 1:
            first = const(0) < lane
            before = unit.receive(on, f"before_{word}", first)
            value = select(first, before + value, value)
            before_this = (lane - 1,)
            link(
                parts, on, unloader.name, unloader.name, (space(LANE, count - 1),),
                sink_at=before_this,
            )  # fmt: skip
        link(parts, mine, node.name, unloader.name, machines)
        total = unit.let(f"total_{word}", value)
        unit.send(out, total, equals(lane, count - 1) if count > 1 else None)
        if count > 1:
            unit.send(on, total, lane < count - 1)
    parts.nodes.append(unit.node())
