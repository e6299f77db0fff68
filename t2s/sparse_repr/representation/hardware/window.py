"""Lengths on their way to a decoder: loaded line by line, and kept in a window."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr, const
from t2s.core.types import INT32
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.construct import (
    Parts,
    add,
    both,
    equal,
    index,
    less,
    local,
    loop,
    quotient,
    register,
    select,
    space,
    subtract,
    times,
)
from t2s.graph.graph import StreamKind
from t2s.graph.machine import Head
from t2s.graph.nodes import PEArray
from t2s.graph.parts import Register, Role
from t2s.sparse_repr.representation.hardware.loaders import WORD, input_tensor
from t2s.sparse_repr.representation.hardware.product import Product
from t2s.sparse_repr.representation.hardware.runs import loader_name, steps_of, stored_shape
from t2s.sparse_repr.representation.layout import BlockJob

END = -2
"""What stands behind the last length (less one, so that an empty row is -1)."""

FAR = 2**30
"""Blocks of the row that stands for padding: it never ends."""

MOST_WORDS = 16
"""Lengths that are loaded in a cycle: a line of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The lengths that a decoder sees: ``words`` come together, ``ahead`` may be looked at."""

    decoder: str
    fibres: int
    words: int
    ahead: int

    @property
    def size(self) -> int:
        """Places of the window, a power of two."""
        return 1 << (self.ahead + 2 * self.words - 1).bit_length()

    @property
    def lines(self) -> int:
        """Lines that are loaded: all lengths, and so many ends that the window stays full."""
        return -(-(self.fibres + self.ahead) // self.words)

    def channels(self) -> tuple[str, ...]:
        """The channels that bring a line."""
        return tuple(f"{self.decoder}_length_{word}" for word in range(self.words))

    def heads(self) -> tuple[Head, ...]:
        """The heads of these channels."""
        return tuple(
            Head(channel=channel, value=f"length_{word}")
            for word, channel in enumerate(self.channels())
        )

    def registers(self) -> tuple[Register, ...]:
        """The window, the place of its first length and how many it has, and lines taken."""
        names = ("first", "last", "level", "lines")
        return (register("window", INT32, (self.size,)), *(register(name) for name in names))

    def around(self, place: Expr) -> Expr:
        """A place of the window, from one that may be behind its end."""
        return both(place, const(self.size - 1))

    def read(self, number: int, offset: Expr | int) -> Statement:
        """Bind ``ahead_<number>`` to the length ``offset`` behind the first."""
        place = self.around(add(local("first"), offset))
        return RegisterRead(
            target=f"ahead_{number}", register="window", indices=(place,), type=INT32
        )

    def moved(self, used: Expr | int, line: bool) -> tuple[Statement, ...]:
        """Drop ``used`` lengths, and take a line."""
        following = self.around(add(local("first"), used))
        more = subtract(self.words if line else 0, used)
        body: list[Statement] = [
            RegisterWrite(register="first", indices=(), value=following),
            RegisterWrite(register="level", indices=(), value=add(local("level"), more)),
        ]
        if not line:
            return tuple(body)
        body += [
            RegisterWrite(
                register="window",
                indices=(add(local("last"), word),),
                value=local(f"length_{word}"),
            )
            for word in range(self.words)
        ]
        following = self.around(add(local("last"), self.words))
        body.append(RegisterWrite(register="last", indices=(), value=following))
        body.append(RegisterWrite(register="lines", indices=(), value=add(local("lines"), 1)))
        return tuple(body)


def load_lines(parts: Parts, product: Product, window: Window, blocks: bool) -> None:
    """The load unit of the lengths; of blocks also the unit that sums them."""
    lengths = product.mapping.lengths
    assert lengths is not None
    node, tensor = loader_name(product, lengths.name), product.stream_name(lengths.name)
    data = product.storage.streams[lengths.name].data.reshape(-1)
    input_tensor(parts, product, tensor, INT32, stored_shape(data.shape))
    at = add(times(index("line"), window.words), index(WORD))
    exists = less(at, window.fibres)
    sink = f"{window.decoder}_sums" if blocks else window.decoder
    if blocks:
        value = select(exists, _blocks_of(product), select(equal(at, window.fibres), FAR, 0))
    else:
        value = select(exists, subtract(steps_of(product, local("entry")), 1), END)
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.LOAD,
            space=(space(WORD, window.words),),
            loops=(loop("line", window.lines),),
            body=(
                Load(
                    target="entry",
                    tensor=tensor,
                    indices=(const(0) if lengths.fibres is None else at,),
                    type=INT32,
                    condition=exists,
                ),
                Let(target="length", value=value),
                *(
                    Send(
                        channel=f"{sink}_length_{word}",
                        value=local("length"),
                        condition=equal(index(WORD), word) if window.words > 1 else None,
                    )
                    for word in range(window.words)
                ),
            ),
            location=product.nodes.matrix_loader.location,
        )
    )
    for word in range(window.words):
        _length_link(parts, node, sink, word)
    if blocks:
        _sum_lengths(parts, product, window, sink)


def _length_link(parts: Parts, source: str, sink: str, word: int) -> None:
    parts.link(f"{sink}_length_{word}", INT32, source, sink, capacity=16, kind=StreamKind.CONTROL)


def _blocks_of(product: Product) -> Expr:
    """The blocks of a row, from its entry among the lengths."""
    lengths, job = product.mapping.lengths, product.mapping.job
    assert lengths is not None
    assert isinstance(job, BlockJob)
    entry: Expr = local("entry")
    if lengths.round > 1:
        entry = quotient(add(entry, lengths.round - 1), lengths.round)
    return times(entry, lengths.round * lengths.scale // job.slots)


def _sum_lengths(parts: Parts, product: Product, window: Window, node: str) -> None:
    """From the lengths of rows to their ends, a line in a firing."""
    sums: list[Expr] = [local(f"length_{word}") for word in range(window.words)]
    body: list[Statement] = [
        Receive(target=f"length_{word}", channel=f"{node}_length_{word}", type=INT32)
        for word in range(window.words)
    ]
    reach = 1
    while reach < window.words:
        for word in range(window.words - 1, reach - 1, -1):
            name = f"sum_{reach}_{word}"
            body.append(Let(target=name, value=add(sums[word - reach], sums[word])))
            sums[word] = local(name)
        reach *= 2
    body.append(RegisterRead(target="before", register="end", indices=(), type=INT32))
    for word, total in enumerate(sums):
        body.append(Let(target=f"end_{word}", value=add(local("before"), total)))
        channel = f"{window.decoder}_length_{word}"
        body.append(Send(channel=channel, value=local(f"end_{word}")))
        _length_link(parts, node, window.decoder, word)
    body.append(RegisterWrite(register="end", indices=(), value=local(f"end_{window.words - 1}")))
    parts.nodes.append(
        PEArray(
            name=node,
            role=Role.RELAY,
            space=(),
            loops=(loop("line", window.lines),),
            registers=(register("end"),),
            body=tuple(body),
            location=product.nodes.decoder.location,
        )
    )
