"""The result: kept on the chip until all lanes are behind a line of it, then stored line by line.

Where lanes take rows in no order, or several lanes add to one row, that is when all have ended.
What the result starts from is loaded beside the sums, and added to them where they are stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr, Index, Local, Read, const
from t2s.core.types import INT32
from t2s.core.walk import T, Term, rewrite
from t2s.graph.body import Role, Statement, Store
from t2s.graph.construct import (
    Parts,
    add,
    both,
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
    unequal,
)
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.machine import Choice, Put
from t2s.reduction.circuits import Lanes
from t2s.sparse_repr.blocks.draft import count_up, put, rule, when, write
from t2s.sparse_repr.representation.hardware.loaders import flat_subscripts, operand_tensor
from t2s.sparse_repr.representation.hardware.multiply import tree
from t2s.sparse_repr.representation.hardware.product import WORD, Product
from t2s.sparse_repr.representation.hardware.wires import (
    ArrayDraft,
    MachineDraft,
    NamedHead,
    RegisterFile,
    Statements,
    TypedWire,
    link,
    wire,
)

WAITING = 16
"""Lines of a start value that wait for the sums that they belong to."""


def unload(parts: Parts, product: Product, lanes: Lanes) -> None:
    """The buffer of the result, which takes a pair of every lane in each step, and its store unit.

    Where no row is on two lanes there is one buffer; else one for each lane, summed at the end.
    Row 0, that of no value, has a place of its own in front.
    """
    unloader = product.nodes.unloader
    lines = lines_of(product)
    machine = MachineDraft(unloader.name, Role.RELAY, (), unloader.location)
    pairs = pair_inputs(machine, product, unloader.name, lanes.count)
    buffer = _Buffer.draft(machine, product, lanes, lines, pairs)
    buffer.collecting(machine)
    buffer.draining(machine)
    parts.nodes.append(machine.node())
    store_lines(parts, product, lines)


def lines_of(product: Product) -> int:
    """Lines of the result."""
    return -(-product.rows * product.width // product.words)


def pair_inputs(
    machine: MachineDraft, product: Product, node: str, count: int
) -> list[tuple[NamedHead, NamedHead]]:
    """The lanes that a node takes: a target and a value for each, as ``send_lanes`` names them."""
    return [
        (
            machine.input(wire(f"{node}_target_{n}"), f"target_{n}"),
            machine.input(wire(f"{node}_value_{n}", product.result.type), f"value_{n}"),
        )
        for n in range(count)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Buffer:
    """The buffer: ``kept`` in one bank or in several; ``last`` where lines are sent early."""

    product: Product
    lanes: Lanes
    lines: int
    pairs: list[tuple[NamedHead, NamedHead]]
    count: Local
    line: Local
    side: Local | None
    last: RegisterFile | None
    kept: list[RegisterFile]

    @staticmethod
    def draft(
        machine: MachineDraft,
        product: Product,
        lanes: Lanes,
        lines: int,
        pairs: list[tuple[NamedHead, NamedHead]],
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

    def collecting(self, machine: MachineDraft) -> None:
        """Keep pairs; where lines are complete early also send them, one at a time."""
        heads = [head for pair in self.pairs for head in pair]
        body = self._keep()
        more = unequal(self.count, self.lanes.steps * self.product.width - 1)
        found, ways = Statements(), list[tuple[Expr | None, str, list[Statement], list[Put]]]()
        if self.last is not None:
            complete = self._complete(found, self.last)
            read, puts = self._send()
            ways.append((complete, " and send a line", [*read, count_up(self.line)], puts))
        ways.append((None, "", [], []))
        choices: list[Choice] = []
        for condition, suffix, sent, puts in ways:
            firing = [*sent, *body]
            keep = rule(f"keep{suffix}", "collect", takes=heads, puts=puts, body=firing)
            end = rule(f"keep the last{suffix}", "drain", takes=heads, puts=puts, body=firing)
            choices.append(when(condition, (when(more, keep), when(None, end))))
        machine.mode("collect", when(None, choices, body=found.statements), needs=heads)

    def _keep(self) -> list[Statement]:
        """A pair of each lane into the buffer."""
        width, body = self.product.width, Statements()
        for lane, (target, value) in enumerate(self.pairs):
            at = add(times(target.value, width), 0 if self.side is None else self.side)
            body.write(self.kept[lane if len(self.kept) > 1 else 0], value.value, at)
        if self.last is not None:
            for lane, (target, _) in enumerate(self.pairs):
                known = Local(name=f"last_{lane}", type=INT32)  # ``_complete`` binds it
                row = select(equal(target.value, 0), known, target.value)
                body.write(self.last, row, const(lane))
        body.statements.append(count_up(self.count))
        if self.side is not None:
            following = select(equal(self.side, width - 1), 0, add(self.side, 1))
            body.statements.append(write(self.side, following))
        return body.statements

    def _complete(self, body: Statements, last: RegisterFile) -> Expr:
        """Whether the next line is: every lane has come to a row behind it.  The last one waits."""
        least: list[Expr] = [
            body.read(last, f"last_{lane}", const(lane)) for lane in range(self.lanes.count)
        ]
        while len(least) > 1:
            pairs = zip(least[::2], least[1::2], strict=False)
            smaller: list[Expr] = [
                body.let(f"least_{len(body.statements)}", select(less(a, b), a, b))
                for a, b in pairs
            ]
            least = smaller + (least[-1:] if len(least) % 2 else [])
        elements = times(subtract(least[0], 1), self.product.width)  # of the rows before
        ready = less(times(add(self.line, 1), self.product.words), add(elements, 1))
        return both(ready, less(self.line, self.lines - 1))

    def _send(self) -> tuple[list[Statement], list[Put]]:
        """Read the next line, and send it."""
        words, width, body = self.product.words, self.product.width, Statements()
        puts: list[Put] = []
        for word, out in enumerate(line_wires(self.product)):
            at = add(times(self.line, words), word + width)
            terms: list[Expr] = [
                body.read(kept, f"read_{word}_{bank}", at) for bank, kept in enumerate(self.kept)
            ]
            puts.append(put(out, tree(terms)))
        return body.statements, puts

    def draining(self, machine: MachineDraft) -> None:
        """The lines that are left when the streams have ended."""
        body, puts = self._send()
        send = rule("send", "drain", puts=puts, body=[*body, count_up(self.line)])
        machine.mode(
            "drain",
            when(unequal(self.line, self.lines - 1), send),
            when(None, rule("send the last", None, puts=puts, body=body)),
        )


def _store_name(product: Product) -> str:
    return f"{product.nodes.unloader.name}_store"


def line_wires(product: Product) -> tuple[TypedWire, ...]:
    """What brings the store unit the words of a line."""
    name, type = _store_name(product), product.result.type
    return tuple(wire(f"{name}_word_{word}", type) for word in range(product.words))


def store_lines(parts: Parts, product: Product, lines: int) -> None:
    """The store unit: lines of the result from the unloader to memory."""
    name, words, unloader = _store_name(product), product.words, product.nodes.unloader
    at = add(times(index("line"), words), index(WORD))
    subscripts = (at,) if product.flat else flat_subscripts(at, product.width)
    shape = product.shape(product.storage.shape[0])
    operand_tensor(parts, product.result, shape, TensorRole.OUTPUT)
    unit = ArrayDraft(
        name, Role.STORE, (space(WORD, words),), (loop("line", lines),), unloader.location
    )
    value: Expr | None = None
    for word, source in enumerate(line_wires(product)):
        here = equal(index(WORD), word)
        this = unit.receive(source, f"word_{word}", here if words > 1 else None)
        value = this if value is None else select(here, this, value)
        link(parts, source, unloader.name, name, capacity=16)
    assert value is not None
    begin = load_start(parts, product, unit, name, at, lines)
    stored = unit.let("stored", value if begin is None else add(begin, value))
    unit.statements.append(
        Store(
            tensor=product.result.name,
            indices=subscripts,
            value=stored,
            condition=less(at, product.rows * product.width),
        )
    )
    parts.nodes.append(unit.node())


def load_start(
    parts: Parts, product: Product, unit: ArrayDraft, sink: str, at: Expr, lines: int
) -> Expr | None:
    """Loaders of what the start value reads, with wires to the store unit that ``unit`` drafts.

    ``at`` is the flat place of an element of the result in both.  Returns the value over locals of
    the store unit; ``None`` if results start from 0.
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
    placed = {start.row: quotient(at, product.width)}
    if start.side is not None:
        placed[start.side] = remainder(at, product.width)
    locals: dict[Term, Local] = {}
    inside = less(at, product.rows * product.width)
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
    parts: Parts,
    product: Product,
    read: Read,
    loader: str,
    out: TypedWire,
    sink: str,
    inside: Expr,
    lines: int,
) -> None:
    """A load unit, and a wire of its words, one for each element of a line."""
    assert product.start is not None
    location, words = product.start.location, (space(WORD, product.words),)
    unit = ArrayDraft(loader, Role.LOAD, words, (loop("line", lines),), location)
    unit.send(out, unit.load("loaded", read.source, read.indices, read.type, inside))
    parts.nodes.append(unit.node())
    link(parts, out, loader, sink, words, capacity=WAITING, location=location)
