"""Isolation: the part of the fluent API that makes functions out of parts of a function."""

from __future__ import annotations

from typing import Self

from t2s.core.errors import UserError
from t2s.core.expr import Const, Expr
from t2s.core.location import SourceLocation, user_location
from t2s.core.printer import show
from t2s.func.expression import Expression, Symbol
from t2s.func.symbols import ImageParam
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.schedule import Place, ScheduledFunc

Isolatable = ImageParam | ScheduledFunc | Expression


class IsolatingFunc(ScheduledFunc):
    """A Func from which others are isolated.

    What is isolated is a new Func without a definition.  It gets the loops that this one has, and
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

        The last one may be on the host: it then puts the results of the one before in order.
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
        """What is to be isolated, if it is given as an expression."""
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
