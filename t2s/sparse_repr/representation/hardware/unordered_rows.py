"""Sums of rows whose values come in no order: in a memory of the result on each machine.

The slot of a row is read, added to and written again in each step.  An addition of floats takes
several cycles, and the next value may be of the same row, so a memory holds ``2 ** levels`` partial
sums of every row, which take turns ([Sparse T2S, sec. 2.2] leaves this case open): each is read
again that many steps later at the earliest, whatever the matrix is, so that no step waits and none
reads an old sum.  Right-hand sides take turns anyway, so with several of them there are fewer.

When the streams have ended, the partial sums of a row are added, by a tree or one after the other,
and a line of the result goes down the line of machines, each of which adds its own to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr, Local
from t2s.graph.body import Role, Statement
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
    unequal,
)
from t2s.graph.machine import Put
from t2s.reduction.circuits import LANE, Tree
from t2s.sparse_repr.blocks.draft import count_up, put, rule, when, write
from t2s.sparse_repr.representation.hardware.multiply import tree
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.result_buffer import (
    line_wires,
    lines_of,
    pair_inputs,
    store_lines,
)
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


def scatter(parts: Parts, product: Product) -> None:
    """Add the memories of sums, one for each row of a step, and what unloads them."""
    node, lines = product.nodes.reduction, lines_of(product)
    machines = product.lanes if product.machines > 1 else ()
    machine = MachineDraft(node.name, Role.COMPUTE, machines, node.location)
    pairs = pair_inputs(machine, product, node.name, product.rows_at_once)
    own = [
        wire(f"{product.nodes.unloader.name}_own_{word}", product.result.type)
        for word in range(product.words)
    ]
    sums = _Sums.draft(machine, product, lines)
    sums.adding(machine, pairs)
    sums.settling(machine)
    sums.draining(machine, lines, own)
    parts.nodes.append(machine.node())
    _unload(parts, product, own, lines)
    store_lines(parts, product, lines)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """The memories of a machine: ``size`` elements in each of ``copies`` partial sums.

    ``distance`` are the firings from a write of an element to the next read of it, at least.
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
    def draft(machine: MachineDraft, product: Product, lines: int) -> _Sums:
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

    def adding(self, machine: MachineDraft, pairs: list[tuple[NamedHead, NamedHead]]) -> None:
        """Each target of a step is added to in the memory of its place in the step."""
        heads, width, body = (
            [head for pair in pairs for head in pair],
            self.product.width,
            Statements(),
        )
        for row, (target, value) in enumerate(pairs):
            here = body.let(f"at_{row}", self._place(target.value))
            known = body.read(self.memories[row], f"sum_{row}", here)
            body.write(self.memories[row], add(known, value.value), here)
        body.statements.append(count_up(self.count))
        last_side: Expr | None = None
        if self.side is not None:
            last_side = equal(self.side, width - 1)
            body.statements.append(write(self.side, select(last_side, 0, add(self.side, 1))))
        if self.copy is not None:
            after: Expr = select(equal(self.copy, self.copies - 1), 0, add(self.copy, 1))
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
        """Where the sum of a target is; target 0, that of no value, has a place in front.

        Of ``n`` rows in a step, each memory has every n-th row of the result.
        """
        rows = self.product.rows_at_once
        place = quotient(add(target, rows - 1), rows) if rows > 1 else target
        at = add(times(place, self.product.width), 0 if self.side is None else self.side)
        return at if self.copy is None else add(times(self.copy, self.size), at)

    def settling(self, machine: MachineDraft) -> None:
        """Wait until the last sums are in the memory, as long as before any other read of them."""
        if self.settled is None:
            return
        wait = [count_up(self.settled)]
        machine.mode(
            "settle",
            when(unequal(self.settled, self.distance - 2), rule("settle", "settle", body=wait)),
            when(None, rule("settled", "drain", body=wait)),
        )

    def draining(self, machine: MachineDraft, lines: int, own: list[TypedWire]) -> None:
        """The sums of a line, word by word."""
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
        at = add(times(self.line, self.product.words), word)
        if rows == 1:
            place = add(at, width + start)
        else:
            place = times(quotient(quotient(at, width), rows), width)
            place = add(add(place, remainder(at, width)), width + start)
        value: Expr | None = None
        for row, memory in enumerate(self.memories):
            found = body.read(memory, f"read_{word}_{start}_{row}", place)
            here = equal(remainder(quotient(at, width), rows), row)
            value = found if value is None else select(here, found, value)
        assert value is not None
        return value

    def _total(self, terms: list[Expr]) -> Expr:
        """The sum of partial sums: a balanced tree, or one addition after the other."""
        if self.product.circuit.structure is Tree:
            return tree(terms)
        total = terms[0]
        for term in terms[1:]:
            total = add(total, term)
        return total


def _unload(parts: Parts, product: Product, own: list[TypedWire], lines: int) -> None:
    """Lines from machine to machine; each adds its own, and the last one sends them to memory."""
    unloader, node, count = product.nodes.unloader, product.nodes.reduction, product.machines
    machines, lane = product.lanes if count > 1 else (), index(LANE)
    unit = ArrayDraft(
        unloader.name, Role.RELAY, machines, (loop("line", lines),), unloader.location
    )
    for word, (mine, out) in enumerate(zip(own, line_wires(product), strict=True)):
        on = wire(f"{unloader.name}_next_{word}", mine.type)
        value: Expr = unit.receive(mine, f"own_{word}")
        if count > 1:
            first = less(0, lane)
            before = unit.receive(on, f"before_{word}", first)
            value = select(first, add(before, value), value)
            before_this = (subtract(lane, 1),)
            link(
                parts, on, unloader.name, unloader.name, (space(LANE, count - 1),),
                sink_at=before_this,
            )  # fmt: skip
        link(parts, mine, node.name, unloader.name, machines)
        total = unit.let(f"total_{word}", value)
        unit.send(out, total, equal(lane, count - 1) if count > 1 else None)
        if count > 1:
            unit.send(on, total, less(lane, count - 1))
    parts.nodes.append(unit.node())
