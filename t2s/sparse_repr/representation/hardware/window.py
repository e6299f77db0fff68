"""Lengths on their way to a decoder: loaded line by line, and kept in a window."""

from __future__ import annotations

from t2s.core.expr import Expr, Local, const
from t2s.core.types import INT32
from t2s.graph.body import Role, Statement
from t2s.graph.construct import (
    Parts,
    add,
    both,
    equal,
    index,
    less,
    loop,
    select,
    space,
    subtract,
    times,
)
from t2s.graph.graph import StreamKind
from t2s.sparse_repr.blocks.draft import count_up, write
from t2s.sparse_repr.representation.chain_layout import BlockJob
from t2s.sparse_repr.representation.hardware.product import WORD, Product
from t2s.sparse_repr.representation.hardware.runs import (
    blocks_of,
    fibre_count,
    loader_name,
    steps_of,
    structure_tensor,
)
from t2s.sparse_repr.representation.hardware.wires import (
    ArrayDraft,
    MachineDraft,
    Statements,
    TypedWire,
    link,
    wire,
)

END = -2
"""What stands behind the last length (less one, so that an empty row is -1)."""

FAR = 2**30
"""Blocks of the row that stands for padding: it never ends."""

MOST_WORDS = 16
"""Lengths that are loaded in a cycle: a line of memory."""


class Window:
    """The lengths that a decoder sees: ``words`` come together, ``ahead`` may be looked at.

    Attributes
    ----------
    fibres: lengths that there are; ``lines`` are loaded: these, and ends that keep it full.
    size: places of the window, a power of two.
    inputs: the heads of the wires that bring a line.
    first, last, level, taken: the place of the first length, that behind the last one, how many
        lengths there are, and the lines that have come.
    """

    def __init__(self, machine: MachineDraft, product: Product, ahead: int) -> None:
        self.fibres, self.ahead = fibre_count(product), ahead
        self.words = min(MOST_WORDS, 1 << (product.machines - 1).bit_length())
        self.size = 1 << (ahead + 2 * self.words - 1).bit_length()
        self.lines = -(-(self.fibres + ahead) // self.words)
        self.wires = _length_wires(machine.name, self.words)
        self.inputs = [
            machine.input(each, f"length_{word}") for word, each in enumerate(self.wires)
        ]
        self._kept = machine.file("window", INT32, (self.size,))
        names = ("first", "last", "level", "lines")
        self.first, self.last, self.level, self.taken = map(machine.register, names)

    def around(self, place: Expr) -> Expr:
        """A place of the window, from one that may be behind its end."""
        return both(place, const(self.size - 1))

    def read(self, body: Statements, number: int, offset: Expr | int) -> Local:
        """The length ``offset`` behind the first, as the local ``ahead_<number>``."""
        return body.read(self._kept, f"ahead_{number}", self.around(add(self.first, offset)))

    def moved(self, used: Expr | int, line: bool) -> list[Statement]:
        """Drop ``used`` lengths, and take a line."""
        more = subtract(self.words if line else 0, used)
        body: list[Statement] = [
            write(self.first, self.around(add(self.first, used))),
            write(self.level, add(self.level, more)),
        ]
        if not line:
            return body
        body += [
            self._kept.write(head.value, add(self.last, word))
            for word, head in enumerate(self.inputs)
        ]
        body.append(write(self.last, self.around(add(self.last, self.words))))
        body.append(count_up(self.taken))
        return body


def _length_wires(node: str, words: int) -> tuple[TypedWire, ...]:
    """What brings a node the words of a line of lengths."""
    names = (f"{node}_length_{word}" for word in range(words))
    return tuple(wire(name, INT32, StreamKind.CONTROL) for name in names)


def load_lines(parts: Parts, product: Product, window: Window) -> None:
    """The load unit of the lengths; where blocks are dealt also the unit that sums them."""
    lengths, decoder, job = product.mapping.lengths, product.nodes.decoder.name, product.mapping.job
    assert lengths is not None
    node, tensor = (
        loader_name(product, lengths.name),
        structure_tensor(parts, product, lengths.name, flat=True),
    )
    at = add(times(index("line"), window.words), index(WORD))
    exists = less(at, window.fibres)
    sums = f"{decoder}_sums"
    sink, outs = decoder, window.wires
    if isinstance(job, BlockJob):
        sink, outs = sums, _length_wires(sums, window.words)
    unit = ArrayDraft(
        node, Role.LOAD, (space(WORD, window.words),), (loop("line", window.lines),),
        product.nodes.matrix_loader.location,
    )  # fmt: skip
    place = (const(0) if lengths.fibres is None else at,)
    entry = unit.load("entry", tensor, place, INT32, exists)
    if isinstance(job, BlockJob):
        beyond = select(equal(at, window.fibres), FAR, 0)
        value = select(exists, blocks_of(product, entry, job.slots), beyond)
    else:
        value = select(exists, subtract(steps_of(product, entry), 1), END)
    length = unit.let("length", value)
    for word, out in enumerate(outs):
        unit.send(out, length, equal(index(WORD), word) if window.words > 1 else None)
    parts.nodes.append(unit.node())
    for out in outs:
        link(parts, out, node, sink, capacity=16)
    if isinstance(job, BlockJob):
        _sum_lengths(parts, product, window, sums, outs)


def _sum_lengths(
    parts: Parts, product: Product, window: Window, node: str, taken: tuple[TypedWire, ...]
) -> None:
    """From the lengths of rows to their ends, a line in a firing."""
    decoder = product.nodes.decoder
    unit = ArrayDraft(node, Role.RELAY, (), (loop("line", window.lines),), decoder.location)
    sums = [unit.receive(each, f"length_{word}") for word, each in enumerate(taken)]
    reach = 1
    while reach < window.words:
        for word in range(window.words - 1, reach - 1, -1):
            sums[word] = unit.let(f"sum_{reach}_{word}", add(sums[word - reach], sums[word]))
        reach *= 2
    end = unit.file("end")
    before = unit.read(end, "before")
    ends: list[Local] = []
    for word, out in enumerate(window.wires):
        ends.append(unit.let(f"end_{word}", add(before, sums[word])))
        unit.send(out, ends[word])
        link(parts, out, node, decoder.name, capacity=16)
    unit.write(end, ends[-1])
    parts.nodes.append(unit.node())
