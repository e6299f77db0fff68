"""The fluent API: every method checks its arguments and appends a directive.

Loops are given by their ``Var`` or ``RDom`` objects, functions by their ``Func`` objects, inputs by
their ``ImageParam`` objects.  Lists of loops are innermost first, as in Halide.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Self

from t2s.core.errors import UserError
from t2s.core.expr import Const, Expr
from t2s.core.location import SourceLocation, user_location
from t2s.core.printer import show
from t2s.core.types import Type
from t2s.core.validate import as_int
from t2s.func.expressions import Expression, Symbol
from t2s.func.func import ImageParam, RVar, TemporalFunc, Var
from t2s.spatial.arguments import DirectiveArguments, LoopVariable, space_time_directive
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.directives.buffer import Buffer
from t2s.spatial.directives.forward import Forward
from t2s.spatial.directives.loops import Fuse, Reorder, Split, Tile, Unroll
from t2s.spatial.directives.remove import Remove
from t2s.spatial.directives.scatter import Gather, Scatter
from t2s.spatial.directives.settings import Depth, Reassociate
from t2s.spatial.directives.streaming import StreamResults
from t2s.spatial.directives.vectors import VectorLoad, VectorStore


class Place(Enum):
    """Where a function runs.

    A function on the host is the outer end of a chain and orders an array for the device's memory.
    """

    DEVICE = "device"
    HOST = "host"


class ScheduledFunc(DirectiveArguments):
    """A Func with directives.

    The directives of a Func that has an update speak of the update; the initial definition becomes
    the value that its reduction starts from.  A Func without a definition becomes part of a design
    when it is isolated from another one (``IsolatingFunc``).  At the outer end of a chain it may be
    on the host.
    """

    def __init__(self, name: str, type: Type | None = None, place: Place = Place.DEVICE) -> None:
        super().__init__(name, type)
        if not isinstance(place, Place):
            raise UserError(
                f"the place of Func {name} is not a place",
                location=self.location,
                expected="t2s.Place.DEVICE or t2s.Place.HOST",
                given=repr(place),
            )
        self.place = place
        self.feeds = False
        self.isolated_from: ScheduledFunc | None = None
        self.isolated: list[ScheduledFunc] = []
        # including the directives of Funcs isolated from it
        self.journal: list[tuple[str, Directive]] = []

    def update(self, index: int = 0) -> Self:
        """The update definition, to schedule it.  Raises if there is no such update."""
        count = max(0, len(self.written) - 1)
        number = as_int(index)
        if number is None or not 0 <= number < count:
            raise UserError(
                f"Func {self.name} has no update {index}",
                location=user_location(),
                expected=f"an index below {count}" if count else "a definition such as C[i] += ...",
                given=repr(index),
            )
        return self

    def split(
        self, loop: LoopVariable, outer: LoopVariable, inner: LoopVariable, factor: int
    ) -> Self:
        """Split ``loop`` into ``outer`` over ``inner``; ``factor`` iterations go to ``inner``.

        ``outer`` may be ``loop`` itself.  A factor that does not divide the extent pads the loop,
        and with it the arrays in memory.
        """
        names = self._loops("split", loop, outer, inner)
        self._distinct("split", names[1:])
        checked = self._positive("split", "factor", factor)
        return self._add(
            Split(
                loop=names[0],
                outer=names[1],
                inner=names[2],
                factor=checked,
                location=user_location(),
                text=f"split({', '.join(names)}, {factor})",
            )
        )

    def tile(self, *arguments: LoopVariable | int) -> Self:
        """Split several loops at once and move the inner loops inside the outer ones.

        ``tile(x, y, xi, yi, 8, 4)`` takes n loops, n inner loops and n factors, innermost first;
        ``tile(x, y, xo, yo, xi, yi, 8, 4)`` names the outer loops too.
        """
        loops = [part for part in arguments if isinstance(part, Var | RVar)]
        factors = [part for part in arguments if not isinstance(part, Var | RVar)]
        count = len(factors)
        in_order = all(isinstance(part, Var | RVar) for part in arguments[: len(loops)])
        if not count or len(loops) not in (2 * count, 3 * count) or not in_order:
            raise UserError(
                f"tile on {self.name} needs n loops, n inner loops and n factors",
                location=user_location(),
                expected="for example tile(j, i, jj, ii, 8, 8)",
                given=f"tile({', '.join(map(repr, arguments))})",
            )
        names = self._loops("tile", *loops)
        olds, inners = names[:count], names[-count:]
        outers = names[count : 2 * count] if len(names) == 3 * count else olds
        self._distinct("tile", (*outers, *inners))
        checked = tuple(self._positive("tile", "factor", factor) for factor in factors)
        return self._add(
            Tile(
                loops=olds,
                outers=outers,
                inners=inners,
                factors=checked,
                location=user_location(),
                text=f"tile({', '.join([*names, *map(str, checked)])})",
            )
        )

    def reorder(self, *loops: LoopVariable | Sequence[LoopVariable]) -> Self:
        """Put the named loops into this order, innermost first; other loops stay where they are."""
        names = self._loops("reorder", *loops)
        self._distinct("reorder", names)
        return self._add(
            Reorder(loops=names, location=user_location(), text=f"reorder({', '.join(names)})")
        )

    def fuse(self, inner: LoopVariable, outer: LoopVariable, fused: LoopVariable) -> Self:
        """Replace two directly nested loops by one."""
        names = self._loops("fuse", inner, outer, fused)
        self._distinct("fuse", names[:2])
        return self._add(
            Fuse(
                inner=names[0],
                outer=names[1],
                fused=names[2],
                location=user_location(),
                text=f"fuse({', '.join(names)})",
            )
        )

    def unroll(self, *loops: LoopVariable | Sequence[LoopVariable]) -> Self:
        """Turn loops into space: one PE for each iteration.  Their bounds have to be constant."""
        names = self._loops("unroll", *loops)
        self._distinct("unroll", names)
        return self._add(
            Unroll(loops=names, location=user_location(), text=f"unroll({', '.join(names)})")
        )

    def space_time_transform(self, *arguments: object) -> Self:
        """Map iterations to PEs and times; space loops first, time last.

        ``(i, j)`` unrolls the loops; ``([i, j], [1, 1])`` also skews the innermost loop in time;
        ``([i, j], {p: i, t: i + j})`` or, as a matrix, ``([i, j], [p, t], [[1, 0], [1, 1]])``
        replaces the loops by new ones.  Raises ``UserError`` for arguments of another form.
        """
        return self._add(space_time_directive(self.name, arguments, self._loops))

    def stream(self, function: ScheduledFunc) -> Self:
        """Take the results of ``function`` through a channel, not through memory.

        This function has to take every value once, in the order in which they are sent.
        """
        name = self._operand("stream", function)
        if not isinstance(function, TemporalFunc):
            raise UserError(
                f"stream on {self.name} needs a Func",
                location=user_location(),
                expected="a Func with an update, whose results this one reads",
                given=repr(function),
            )
        return self._add(
            StreamResults(function=name, location=user_location(), text=f"stream({name})")
        )

    def forward(
        self, operand: ImageParam | ScheduledFunc, loop: LoopVariable, *, depth: int | None = None
    ) -> Self:
        """Send ``operand`` to the boundary PEs of ``loop`` only; PEs pass it on along ``loop``.

        ``operand`` is the producer Func that feeds this one, or an input.  It must not depend on
        ``loop``, and ``loop`` has to be unrolled.  ``depth`` is the capacity, in tokens, of the
        channel from each PE to the next; by default, enough to keep the PEs from stalling one
        another.
        """
        source = self._operand("forward", operand)
        names = self._loops("forward", loop)
        if len(names) > 1:
            raise UserError(
                f"forward on {self.name} takes one loop",
                location=user_location(),
                expected=f"for example forward({source}, {names[0]})",
                given=f"{len(names)} loops: {', '.join(names)}",
                hint="forward along one loop after the other",
            )
        name = names[0]
        room = "" if depth is None else f", depth={depth}"
        return self._add(
            Forward(
                operand=source,
                loop=name,
                capacity=None if depth is None else self._positive("forward", "depth", depth),
                location=user_location(),
                text=f"forward({source}, {name}{room})",
            )
        )

    def remove(self, *loops: LoopVariable | Sequence[LoopVariable]) -> Self:
        """Drop loops along which this producer would send the same values again.

        The function that it feeds has to keep them in a ``buffer``.
        """
        names = self._loops("remove", *loops)
        self._distinct("remove", names)
        return self._add(
            Remove(loops=names, location=user_location(), text=f"remove({', '.join(names)})")
        )

    def buffer(
        self, operand: ImageParam | ScheduledFunc, loop: LoopVariable, *, double: bool = True
    ) -> Self:
        """Keep what ``operand`` sends in one iteration of ``loop`` on chip, and send from there.

        A double buffer fills one half while it sends from the other; a single one does both in
        turn.
        """
        source = self._operand("buffer", operand)
        names = self._loops("buffer", loop)
        kind = "" if double else ", double=False"
        return self._add(
            Buffer(
                operand=source,
                loop=names[0],
                double=bool(double),
                location=user_location(),
                text=f"buffer({source}, {names[0]}{kind})",
            )
        )

    def scatter(
        self, operand: ImageParam | ScheduledFunc, loop: LoopVariable, *, reverse: bool = False
    ) -> Self:
        """Take ``operand`` as one stream that the PEs along ``loop`` pass on from PE to PE.

        Each PE keeps its own values.  The stream enters at the first PE; with ``reverse`` at the
        last one.  ``loop`` has to be unrolled; it runs in time, innermost, in what feeds this Func.
        """
        source, name, text = self._stream("scatter", operand, loop, reverse)
        return self._add(
            Scatter(operand=source, loop=name, reverse=reverse, location=user_location(), text=text)
        )

    def gather(self, function: ScheduledFunc, loop: LoopVariable, *, reverse: bool = False) -> Self:
        """Send the results of ``function`` as one stream, collected from PE to PE along ``loop``.

        The stream leaves at the first PE; with ``reverse`` at the last one.  ``loop`` has to be
        unrolled; it runs in time, innermost, in what takes the results of this Func.
        """
        source, name, text = self._stream("gather", function, loop, reverse)
        return self._add(
            Gather(function=source, loop=name, reverse=reverse, location=user_location(), text=text)
        )

    def _stream(
        self, what: str, operand: ImageParam | ScheduledFunc, loop: LoopVariable, reverse: object
    ) -> tuple[str, str, str]:
        """The operand, the one loop, and the text of a scatter or gather."""
        source, names = self._operand(what, operand), self._loops(what, loop)
        text = f"{what}({source}, {', '.join(names)}{', reverse=True' if reverse else ''})"
        if len(names) > 1:
            raise UserError(
                f"{what} on {self.name} takes one loop",
                location=user_location(),
                expected=f"for example {what}({source}, {names[0]})",
                given=f"{len(names)} loops: {', '.join(names)}",
                hint=f"isolate a chain of Funcs and {what} along one loop in each",
            )
        if not isinstance(reverse, bool):
            raise UserError(
                f"reverse of {what} on {self.name} has to be True or False",
                location=user_location(),
                expected="True or False",
                given=repr(reverse),
            )
        return source, names[0], text

    def vload(self, *operands: ImageParam | ScheduledFunc) -> Self:
        """Make the innermost loop the lanes of vectors and load ``operands`` as vectors along it.

        If the loop is a reduction, it becomes a dot product, summed as a balanced tree: this
        reassociates the sum.
        """
        if not operands:
            raise UserError(
                f"vload on {self.name} needs at least one operand",
                location=user_location(),
                expected="for example vload(A, B)",
            )
        names = tuple(self._operand("vload", operand) for operand in operands)
        self._distinct("vload", names)
        return self._add(
            VectorLoad(operands=names, location=user_location(), text=f"vload({', '.join(names)})")
        )

    def vstore(self, function: ScheduledFunc) -> Self:
        """Store the results of ``function`` as vectors along the innermost loop."""
        name = self._operand("vstore", function)
        return self._add(
            VectorStore(function=name, location=user_location(), text=f"vstore({name})")
        )

    def reassociate(self) -> Self:
        """Allow a rounding reduction to be computed in another order than written."""
        return self._add(Reassociate(location=user_location(), text="reassociate()"))

    def depth(self, capacity: int) -> Self:
        """Give the channel that carries this function's results room for ``capacity`` tokens."""
        checked = self._positive("depth", "capacity", capacity)
        return self._add(
            Depth(capacity=checked, location=user_location(), text=f"depth({checked})")
        )

    def _add(self, directive: Directive) -> Self:
        if not self.written and self.isolated_from is None:
            raise UserError(
                f"{directive.text} on {self.name}: {self.name} is not part of a design",
                location=directive.location,
                expected="a Func with a definition, or one that was isolated from another Func",
                notes=((self.location, f"Func {self.name} was made here"),),
                hint=f"isolate it first, as in C.isolate_producer(A, {self.name})",
            )
        self.plan.append(directive)
        self._root().journal.append((self.name, directive))
        return self

    def _root(self) -> ScheduledFunc:
        """The defined Func that this one was isolated from, directly or indirectly; else itself."""
        return self if self.isolated_from is None else self.isolated_from._root()


# Isolation: the part of the fluent API that turns parts of a function into functions.

Isolatable = ImageParam | ScheduledFunc | Expression


class IsolatingFunc(ScheduledFunc):
    """A Func from which others are isolated.

    The isolated part is a new Func without a definition.  It inherits the loops of this one, and
    can have directives of its own.
    """

    def isolate_producer(self, operand: Isolatable, producer: ScheduledFunc) -> Self:
        """Move the loading of ``operand`` into ``producer``, with a channel between.

        ``operand`` is an input or a Func, or an expression of this Func's definition.
        """
        return self._isolate_producers("isolate_producer", operand, (producer,))

    def isolate_producer_chain(self, operand: Isolatable, *producers: ScheduledFunc) -> Self:
        """Move the loading of ``operand`` into a chain; the first one is nearest to memory.

        The first one may be on the host: it then orders the input for the second one.
        """
        return self._isolate_producers("isolate_producer_chain", operand, producers)

    def isolate_consumer(self, consumer: ScheduledFunc) -> Self:
        """Move the saving of the results into ``consumer``, with a channel between."""
        return self._isolate_consumers("isolate_consumer", (consumer,))

    def isolate_consumer_chain(self, *consumers: ScheduledFunc) -> Self:
        """Move the saving of the results into a chain; the last one is nearest to memory.

        The last one may be on the host: it then orders the results of the previous one.
        """
        return self._isolate_consumers("isolate_consumer_chain", consumers)

    def _isolate_producers(
        self, what: str, operand: Isolatable, producers: tuple[ScheduledFunc, ...]
    ) -> Self:
        target = self._expression(what, operand)
        source = show(target) if target is not None else self._operand(what, operand)
        names = self._partners(what, producers, shared=True)
        self._check_on_device(what, producers[1:], "the first one")
        directive = IsolateProducer(
            method=what,
            operand=source,
            target=target,
            producers=names,
            on_host=producers[0].place is Place.HOST,
            shared=producers[0].isolated_from is not None,
            location=user_location(),
            text=f"{what}({', '.join([source, *names])})",
        )
        return self._join(directive, producers)

    def _isolate_consumers(self, what: str, consumers: tuple[ScheduledFunc, ...]) -> Self:
        names = self._partners(what, consumers)
        self._check_on_device(what, consumers[:-1], "the last one")
        directive = IsolateConsumer(
            consumers=names,
            on_host=consumers[-1].place is Place.HOST,
            location=user_location(),
            text=f"{what}({', '.join(names)})",
        )
        return self._join(directive, consumers)

    def _expression(self, what: str, operand: object) -> Expr | None:
        """The expression to isolate, or ``None`` if the operand is given by name."""
        if not isinstance(operand, Expression):
            return None
        if isinstance(operand, Symbol) or isinstance(operand.node, Const):
            raise UserError(
                f"{what} on {self.name} needs something to load or compute",
                location=user_location(),
                expected="an input, a Func, or an expression such as alpha * A[i, k]",
                given=repr(operand),
            )
        if self.name in operand.symbols:
            raise UserError(
                f"{what} on {self.name}: {operand!r} uses {self.name} itself",
                location=user_location(),
                expected="an expression of inputs and other Funcs",
                given=repr(operand),
            )
        return operand.node

    def _check_on_device(self, what: str, partners: tuple[ScheduledFunc, ...], outer: str) -> None:
        for partner in partners:
            if partner.place is Place.HOST:
                raise UserError(
                    f"{what} on {self.name}: {partner.name} is on the host",
                    location=user_location(),
                    expected=f"only {outer} of a chain on the host",
                    notes=((partner.location, f"Func {partner.name} was made here"),),
                    hint="the host is behind the device's memory, at the outer end of the chain",
                )

    def _join(self, directive: Directive, partners: tuple[ScheduledFunc, ...]) -> Self:
        self._add(directive)
        for partner in partners:
            if partner.isolated_from is None:
                partner.isolated_from = self
                partner.feeds = isinstance(directive, IsolateProducer)
                self.isolated.append(partner)
        return self

    def _partners(
        self, what: str, partners: tuple[ScheduledFunc, ...], *, shared: bool = False
    ) -> tuple[str, ...]:
        """Names of Funcs to isolate into; the first one may be ``shared`` with another Func."""
        location = user_location()
        for position, partner in enumerate(partners):
            self._check_partner(what, partner, location, shared and position == 0)
        names = tuple(partner.name for partner in partners)
        if not names:
            raise UserError(
                f"{what} on {self.name} needs a Func to isolate into",
                location=location,
                expected='a new Func, for example Func("A_loader")',
            )
        self._distinct(what, names)
        return names

    def _check_partner(
        self, what: str, partner: object, location: SourceLocation, shared: bool
    ) -> None:
        if not isinstance(partner, ScheduledFunc):
            raise UserError(
                f"{what} on {self.name} needs a Func to isolate into",
                location=location,
                expected='a new Func, for example Func("A_loader")',
                given=repr(partner),
            )
        if partner.written:
            raise UserError(
                f"{what} on {self.name}: {partner.name} already has a definition",
                location=location,
                expected="a new Func without a definition",
                notes=((partner.written[0].location, f"{partner.name} was defined here"),),
            )
        if partner.isolated_from is not None and not (
            shared and partner.feeds and partner.isolated_from is not self
        ):
            raise UserError(
                f"{what} on {self.name}: {partner.name} was already isolated from "
                f"{partner.isolated_from.name}",
                location=location,
                expected="a new Func for each isolated piece",
            )
