"""Level scanners: fibers from memory as streams of coordinates and references (Definition 3.1).

A scanner takes a stream of references to fibers, nested n deep, and emits two streams nested n + 1
deep: the coordinates of each fiber, and the references of its elements.  It emits an element or a
stop in every cycle: in the cycle of the stop that closes a fiber it already takes the reference of
the next one.  The only cycle without a token is that in which the first fiber after a higher stop
turns out to be empty.  The reference N stands for an empty fiber.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from t2s.core.expr import Expr, Local, const, unequal, zero
from t2s.core.types import Type
from t2s.graph.body import Statement
from t2s.graph.build import In, Out, let, load, put, rule, when, write
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import Choice, Role, Search
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, check_number, pass_done
from t2s.sparse_repr.blocks.expressions import FIRST_STOP, cast, increased, one
from t2s.sparse_repr.blocks.joins import joined_fibers
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, columns, each

Values = tuple[Expr, ...]
Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fiber:
    """How to iterate over a fiber, in terms of the values of some registers.

    ``open`` maps a reference to their initial values, ``closed`` are values of an empty fiber,
    ``more`` tells whether an element follows, ``element`` gives its two tokens and the next values.
    Each also returns the statements that its results need.
    """

    registers: tuple[Local, ...]
    closed: Values
    open: Callable[[Expr], tuple[Body, Values]]
    more: Callable[[Values], Expr]
    element: Callable[[Values, str], tuple[Body, tuple[Expr, ...], Values]]


def segment(
    draft: Draft,
    type: Type,
    open: Callable[[Expr], tuple[Body, Values]],
    element: Callable[[Values, str], tuple[Body, tuple[Expr, ...], Values]],
) -> Fiber:
    """A fiber from one position to another one."""
    return Fiber(
        registers=(draft.register("at", type), draft.register("end", type)),
        closed=(zero(type), zero(type)),
        open=open,
        more=lambda values: values[0] < values[1],
        element=element,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedScanner(StreamBlock):
    """Fiber ``r`` holds elements ``positions[r]`` to ``positions[r + 1] - 1`` of ``coordinates``.

    Ports: ``ref``; ``crd``, ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    positions: Tensor
    coordinates: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element

        def open_fiber(fiber: Expr) -> tuple[Body, Values]:
            index = cast(fiber, type)
            first, begin = load("begin", self.positions, index)
            second, finish = load("finish", self.positions, index + 1)
            return (first, second), (cast(begin, type), cast(finish, type))

        def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
            statement, coordinate = load(name, self.coordinates, values[0])
            return (statement,), (coordinate, values[0]), (values[0] + 1, values[1])

        fiber = segment(draft, type, open_fiber, element)
        scanner(draft, reference, self.coordinates.type, fiber)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseScanner(StreamBlock):
    """Every fiber holds the coordinates 0 to ``size - 1``; element ``c`` of ``r`` is r * size + c.

    Ports: ``ref``; ``crd``, ``out_ref``.
    """

    kind = BlockKind.SCAN

    size: int

    def draft(self, draft: Draft, reference: StreamType) -> None:
        check_number("the size of a dense level", self.size, 0, draft.location)
        type = reference.element
        at, base = draft.register("at", type), draft.register("base", type)
        extent = const(self.size, type)

        def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
            at, base = values
            return (), (at, base + at), (at + 1, base)

        fiber = Fiber(
            registers=(at, base),
            closed=(extent, zero(type)),
            open=lambda index: ((), (zero(type), index * extent)),
            more=lambda values: values[0] < extent,
            element=element,
        )
        scanner(draft, reference, type, fiber)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonScanner(StreamBlock):
    """Fiber ``r`` holds one element: ``coordinates[r]``, with the reference ``r``.

    Ports: ``ref``; ``crd``, ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    coordinates: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element
        at, left = draft.register("at", type), draft.register("left", type)

        def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
            statement, coordinate = load(name, self.coordinates, values[0])
            return (statement,), (coordinate, values[0]), (values[0], zero(type))

        fiber = Fiber(
            registers=(at, left),
            closed=(zero(type), zero(type)),
            open=lambda index: ((), (index, one(type))),
            more=lambda values: unequal(values[1], zero(type)),
            element=element,
        )
        scanner(draft, reference, self.coordinates.type, fiber)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedListScanner(StreamBlock):
    """Fiber ``r`` starts at node ``heads[r] - 1``, and after node ``n`` comes ``followers[n] - 1``.

    0 means no node, so that arrays of zeros are empty lists.  Ports: ``ref``; ``crd``, ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    heads: Tensor
    coordinates: Tensor
    followers: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element
        node = draft.register("node", type)

        def open_fiber(fiber: Expr) -> tuple[Body, Values]:
            statement, first = load("first", self.heads, fiber)
            return (statement,), (cast(first, type),)

        def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
            where, position = let(f"{name}_at", values[0] - 1)
            loaded, coordinate = load(name, self.coordinates, position)
            after, following = load(f"{name}_next", self.followers, position)
            return (where, loaded, after), (coordinate, position), (cast(following, type),)

        fiber = Fiber(
            registers=(node,),
            closed=(zero(type),),
            open=open_fiber,
            more=lambda values: unequal(values[0], zero(type)),
            element=element,
        )
        scanner(draft, reference, self.coordinates.type, fiber)


@dataclass(frozen=True, slots=True, kw_only=True)
class BitvectorScanner(StreamBlock):
    """Fiber ``r`` holds the words from ``r * words_per_fiber`` on; a set bit is a coordinate.

    A word's reference is its rank, the number of bits set before it [SAM, sec. 4.3].
    Ports: ``ref``; ``bits``, ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    words: Tensor
    ranks: Tensor
    words_per_fiber: int

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element
        count = const(self.words_per_fiber, type)

        def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
            loaded, word = load(name, self.words, values[0])
            before, rank = load(f"{name}_rank", self.ranks, values[0])
            after = (values[0] + 1, values[1])
            return (loaded, before), (word, cast(rank, type)), after

        def open_fiber(fiber: Expr) -> tuple[Body, Values]:
            statement, begin = let("begin", fiber * count)
            return (statement,), (begin, begin + count)

        fiber = segment(draft, type, open_fiber, element)
        scanner(draft, reference, self.words.type, fiber, bits=True)


def scanner(
    draft: Draft, reference: StreamType, type: Type, fiber: Fiber, *, bits: bool = False
) -> None:
    """Write a scanner for a kind of fiber."""
    ref = draft.input("ref", reference)
    nesting = reference.nesting + 1
    kind = StreamKind.BITVECTOR if bits else StreamKind.COORDINATE
    outputs = (
        draft.output("bits" if bits else "crd", type, kind, nesting),
        draft.output("out_ref", reference.element, StreamKind.REFERENCE, nesting),
    )
    _idle_mode(draft, ref, outputs, fiber)
    _run_mode(draft, ref, outputs, fiber)


def _writes(fiber: Fiber, values: Values) -> Body:
    return tuple(write(r, v) for r, v in zip(fiber.registers, values, strict=True) if r != v)


def _idle_mode(draft: Draft, ref: In, outputs: tuple[Out, ...], fiber: Fiber) -> None:
    """No fiber is open."""
    opened, values = fiber.open(ref.value)
    body, tokens, after = fiber.element(values, "initial")
    first = rule(
        "first",
        "run",
        takes=[ref],
        body=_writes(fiber, after),
        puts=[put(o, value) for o, value in zip(outputs, tokens, strict=True)],
    )
    empty = rule("open_empty", "run", takes=[ref], body=_writes(fiber, fiber.closed))
    missing = rule("open_missing", "run", takes=[ref], body=_writes(fiber, fiber.closed))
    higher = rule(
        "pass_stop", "idle", takes=[ref], puts=[put(o, tag=increased(ref.tag)) for o in outputs]
    )
    draft.mode(
        "idle",
        when(
            ref.is_value,
            [when(fiber.more(values), first, body=body), when(None, empty)],
            body=opened,
        ),
        when(ref.is_stop, higher),
        pass_done(ref, *outputs),
        when(ref.is_empty, missing),
        needs=[ref],
        expected="references, N, stops or D",
    )


def _run_mode(draft: Draft, ref: In, outputs: tuple[Out, ...], fiber: Fiber) -> None:
    """A fiber is open, perhaps at its end."""
    body, tokens, after = fiber.element(fiber.registers, "current")
    following = rule(
        "next",
        "run",
        body=_writes(fiber, after),
        puts=[put(o, value) for o, value in zip(outputs, tokens, strict=True)],
    )
    opened, values = fiber.open(ref.value)
    stops = [put(o, tag=FIRST_STOP) for o in outputs]
    raised = [put(o, tag=increased(ref.tag)) for o in outputs]
    at_end: list[Choice] = [
        when(
            ref.is_value,
            rule("close_open", "run", takes=[ref], puts=stops, body=_writes(fiber, values)),
            body=opened,
        ),
        when(ref.is_stop, rule("close_stop", "idle", takes=[ref], puts=raised)),
        when(ref.is_done, rule("close_last", "idle", puts=stops)),
        when(
            ref.is_empty,
            rule(
                "close_missing", "run", takes=[ref], puts=stops, body=_writes(fiber, fiber.closed)
            ),
        ),
    ]
    draft.mode(
        "run",
        when(fiber.more(fiber.registers), following, body=body),
        when(None, at_end, needs=[ref]),
        expected="references, N, stops or D",
    )


def scan_compressed(
    to: Connections, ref: Stream, positions: Tensor, coordinates: Tensor, name: str
) -> tuple[Stream, Stream]:
    """Scan a compressed level whose order runs can check."""
    block = CompressedScanner(positions=positions, coordinates=coordinates)
    crd, out_ref = to.put(block, name, ref)
    to.comes_from(crd, positions, coordinates)
    return crd, out_ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(DiagramBlock):
    """All coordinates of the loop's variable, for every input token."""

    kind = BlockKind.SCAN

    def meaning(self, known: Known, references: Lists) -> tuple[Nested, ...]:
        extent = known.extent("")
        return (each(lambda _: list(range(extent)), references.depth, references),)

    def place(self, graph: Placing, references: Stream) -> tuple[Stream, ...]:
        block = DenseScanner(size=graph.extent(""))
        return graph.streams.put(block, f"count_{graph.loop}", references)[:1]


# Scanners of coordinate lists (COO): levels that repeat a coordinate for each of its elements.
#
# In a sorted list the elements of one coordinate are adjacent: a *run*.  A level emits each
# coordinate once, with the position of its run as the reference; the level below finds the end of
# the run by searching for the next larger coordinate in all levels above it.


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueScanner(StreamBlock):
    """A compressed level with repeated coordinates: each distinct one once.

    Fiber ``r`` is ``positions[r]`` to ``positions[r + 1] - 1``.  Ports: ``ref``; ``crd``,
    ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    positions: Tensor
    coordinates: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element

        def open_fiber(fiber: Expr) -> tuple[Body, Values]:
            first, begin = load("begin", self.positions, fiber)
            second, finish = load("finish", self.positions, fiber + 1)
            return (first, second), (cast(begin, type), cast(finish, type))

        _runs(draft, reference, self.coordinates, open_fiber)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScanner(StreamBlock):
    """A singleton level below repeated coordinates: the run at ``r``, each coordinate once.

    ``above`` are the coordinates of the levels above, the outermost first, of which the first one
    is an outermost level: ``positions[1]`` is the length of the list.  Ports: ``ref``; ``crd``,
    ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    positions: Tensor
    above: tuple[Tensor, ...]
    coordinates: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element

        def open_fiber(fiber: Expr) -> tuple[Body, Values]:
            first, length = load("length", self.positions, one(type))
            body: list[Statement] = [first]
            end = cast(length, type)
            for number, level in enumerate(self.above):
                loaded, own = load(f"own{number}", level, fiber)
                end_name = f"end{number}"
                search = Search(
                    target=end_name,
                    tensor=level.name,
                    begin=fiber,
                    end=end,
                    value=own + 1,
                )
                body += [loaded, search]
                end = Local(name=end_name, type=type)
            return tuple(body), (fiber, end)

        _runs(draft, reference, self.coordinates, open_fiber)


def _runs(
    draft: Draft,
    reference: StreamType,
    coordinates: Tensor,
    open_fiber: Callable[[Expr], tuple[Body, Values]],
) -> None:
    type = reference.element

    def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
        loaded, coordinate = load(name, coordinates, values[0])
        after = Local(name=f"{name}_after", type=type)
        search = Search(
            target=after.name,
            tensor=coordinates.name,
            begin=values[0],
            end=values[1],
            value=coordinate + 1,
        )
        return (loaded, search), (coordinate, values[0]), (after, values[1])

    scanner(draft, reference, coordinates.type, segment(draft, type, open_fiber, element))


# Diagram blocks between streams and levels of stored tensors of any kind.


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(DiagramBlock):
    """The fiber of every reference, as coordinates and references; empty for N."""

    kind = BlockKind.SCAN

    tensor: str
    level: int

    def meaning(self, known: Known, references: Lists) -> tuple[Nested, ...]:
        def fiber(at: int | None) -> tuple[Nested, ...]:
            return known.fiber(self.tensor, self.level, at)

        return columns(fiber, 2, references.depth, references)

    def place(self, graph: Placing, references: Stream) -> tuple[Stream, ...]:
        level = graph.level(self.tensor, self.level)
        return level.scan(references, f"scan_{self.tensor}_{graph.loop}")


class JoinStrategy(Enum):
    """How scanners and their joiner work together [SAM, sec. 4.2 and 4.3].

    ``WORDS``: bit levels are joined word by word.  ``SKIPPING``: an intersecter tells the scanners
    how far to skip.
    """

    WORDS = "words"
    SKIPPING = "skipping"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanJoin(DiagramBlock):
    """Scanners of levels of one kind with their joiner.

    ``sides`` are tensors and levels.  The inputs are references of each side; the outputs are the
    coordinates, and references of each side.
    """

    kind: BlockKind
    strategy: JoinStrategy
    sides: tuple[tuple[str, int], ...]

    @property
    def counted(self) -> tuple[str, ...]:
        return (*(BlockKind.SCAN.value for _ in self.sides), self.kind.value)

    def meaning(self, known: Known, *references: Lists) -> tuple[Nested, ...]:
        """The meaning is that of separate scanners and a joiner, whatever the strategy."""

        def joined(*at: int | None) -> tuple[Nested, ...]:
            return joined_fibers(self.kind, [2] * len(self.sides), list(fibers(at)))

        def fibers(at: tuple[int | None, ...]) -> Iterator[list[Any]]:
            for (tensor, level), reference in zip(self.sides, at, strict=True):
                yield from known.fiber(tensor, level, reference)

        return columns(joined, 1 + len(self.sides), references[0].depth, *references)

    def place(self, graph: Placing, *references: Stream) -> tuple[Stream, ...]:
        sides = [
            (graph.level(tensor, level), reference, f"scan_{tensor}_{graph.loop}")
            for (tensor, level), reference in zip(self.sides, references, strict=True)
        ]
        (first, _, _), name = sides[0], f"{self.kind.value}_{graph.loop}"
        coordinates, payloads = first.join(self.kind, sides, name)
        return (coordinates, *payloads)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLevel(DiagramBlock):
    """The writer of a level of the result; with ``empty_fibers`` those are stored too.

    It also takes the coordinates of the level above, if any, which a linked list needs.  In a
    coordinate list they are repeated for every entry below them.
    """

    kind = BlockKind.WRITE

    tensor: str
    level: int
    empty_fibers: bool = False

    def meaning(self, known: Known, coordinates: Lists, *above: Lists) -> tuple[Nested, ...]:
        known.write_level(self.level, coordinates.tokens)
        return ()

    def place(self, graph: Placing, coordinates: Stream, *above: Stream) -> tuple[Stream, ...]:
        level = graph.level(self.tensor, self.level, written=True)
        name = f"write_{self.tensor}_{graph.loop}"
        level.write(coordinates, above[0] if above else None, self.empty_fibers, name)
        return ()
