"""Random schedules of the programs in ``tests.spatial.programs``.

Most schedules are legal by construction (only outermost parts are padded, unrolled loops have
constant bounds, forwarded operands do not depend on the loop); one in eight is *wild* and ignores
these rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

import t2s
from t2s import Func, Var
from t2s.core.types import Type
from t2s.spatial.directives.settings import Reassociate
from t2s.spatial.schedule import ScheduledFunc
from tests.spatial.programs import INTEGERS, Access, Draw, LoopVar, Nest, Program, programs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """One loop of the nest so far.

    ``origin`` names the variable it is a part of (``None`` for a fused loop), ``unit`` says that a
    step of the loop is a step of that variable, ``inside`` which loops it has to stay inside of,
    ``ragged`` that it may be padded: it is the outermost part of a variable.
    """

    variable: LoopVar
    extent: int | None
    reduction: bool
    origin: str | None
    unit: bool = True
    inside: tuple[str, ...] = ()
    ragged: bool = True

    @property
    def name(self) -> str:
        return self.variable.name


@dataclass(slots=True)
class Scheduler:
    """Draws directives one after the other and knows the loops they leave, innermost first."""

    draw: Draw
    program: Program
    wild: bool
    streaming: bool
    loops: list[Place]
    isolated: bool = False
    unrolled: list[Place] = field(default_factory=list)
    vector: Place | None = None
    forwards: list[tuple[Func, Place]] = field(default_factory=list)
    scatters: list[tuple[list[Func], Place]] = field(default_factory=list)
    gathers: list[tuple[list[Func], list[Place]]] = field(default_factory=list)

    def chance(self, parts: int) -> bool:
        """True once in ``parts`` times."""
        return bool(self.draw(st.integers(0, parts - 1)) == 0)

    def pick(self, choices: list[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def split(self, number: int) -> None:
        choices = [p for p in self.loops if self.wild or (p.extent or 0) > 1]
        if not choices:
            return
        place = self.pick(choices)
        extent = place.extent or 2
        ragged = self.wild or (place.ragged and not self.isolated and self.chance(2))
        factors = [n for n in range(1, extent + 2) if ragged or extent % n == 0]
        factor = self.pick(factors)
        inner, outer = Var(f"in{number}"), self.pick([place.variable, Var(f"out{number}")])
        self.program.func.split(place.variable, outer, inner, factor)
        at = self.loops.index(place)
        self.loops[at : at + 1] = [
            replace(place, variable=inner, extent=factor, ragged=False),
            replace(place, variable=outer, extent=-(-extent // factor), unit=False),
        ]
        self.loops = [_moved(other, place.name, (outer.name, inner.name)) for other in self.loops]

    def reorder(self) -> None:
        order = list(self.draw(st.permutations(self.loops)))
        if not self.wild:
            if self.keeps_order:
                kept = iter([place for place in self.loops if place.reduction])
                order = [next(kept) if place.reduction else place for place in order]
            order = _nested(order)
        self.program.func.reorder(*(place.variable for place in order))
        self.loops = order

    @property
    def keeps_order(self) -> bool:
        """Whether the reduction loops have to stay in their order."""
        func = self.program.func
        reassociates = any(isinstance(directive, Reassociate) for directive in func.plan)
        return not self.program.associative or (func.type.is_float and not reassociates)

    def fuse(self) -> None:
        pairs = [
            (inner, outer)
            for inner, outer in zip(self.loops, self.loops[1:], strict=False)
            if self.wild or (inner.reduction is outer.reduction and inner.extent and outer.extent)
        ]
        if not pairs:
            return
        inner, outer = self.pick(pairs)
        fused = Var("fused")
        self.program.func.fuse(inner.variable, outer.variable, fused)
        extent = (inner.extent or 1) * (outer.extent or 1)
        place = Place(
            variable=fused,
            extent=extent,
            reduction=inner.reduction,
            origin=None,
            unit=False,
            ragged=outer.ragged,
        )
        at = self.loops.index(inner)
        self.loops[at : at + 2] = [place]
        for old in (inner, outer):
            self.loops = [_moved(other, old.name, ("fused",)) for other in self.loops]

    def choose_unrolled(self) -> None:
        choices = [p for p in self.loops if self.wild or p.extent is not None]
        least = 1 if self.streaming and choices else 0
        chosen = self.draw(
            st.lists(st.sampled_from(choices), min_size=least, max_size=2, unique_by=_name)
        )
        small = [p for p in chosen if self.wild or (p.extent or 1) <= 4]
        self.unrolled = small

    def unroll(self) -> None:
        if self.unrolled:
            self.program.func.unroll(*(place.variable for place in self.unrolled))

    def vectorize(self) -> None:
        """Load everything that varies along the innermost loop in time as vectors."""
        func = self.program.func
        inner = next((p for p in self.loops if p not in self.unrolled), None)
        if inner is None:
            return
        varying = [a for a in self.program.reads if inner.origin in a.varies or self.wild]
        legal = (
            self.program.plain
            and inner.unit
            and inner.extent is not None
            and (self.program.associative or not inner.reduction)
            and all(access.contiguous == inner.origin for access in varying)
        )
        if not varying or not (legal or self.wild):
            return
        func.vload(*(access.operand for access in varying))
        self.vector = inner
        if not inner.reduction:
            func.vstore(func)

    def isolate_all(self) -> None:
        self.isolated = True
        for access in self.program.isolated:
            self.isolate(access)
        self.drain()

    def isolate(self, access: Access) -> None:
        func, name = self.program.func, access.operand.name
        least = 2 if self.streaming else 0
        chain = [Func(f"{name}_{n}") for n in range(self.draw(st.integers(least, 2)))]
        if not chain:
            return
        on_host = self.chance(3)
        if on_host:
            chain.insert(0, Func(f"{name}_serializer", place=t2s.Place.HOST))
        func.isolate_producer_chain(access.operand, *chain)
        if on_host:
            self.serialize(access, chain.pop(0))
        self.keep(access, chain)
        own = [p for p in self.unrolled if self.wild or p.origin in access.varies]
        if len(chain) > 1 and own and (self.streaming or self.chance(2)):
            self.scatters.append((chain, self.pick(own)))
        free = [
            p
            for p in self.unrolled
            if self.wild or (p.origin is not None and p.origin not in access.varies)
        ]
        if free and self.chance(2):
            chosen = self.draw(st.lists(st.sampled_from(free), min_size=1, unique_by=_name))
            self.forwards += [(chain[-1], place) for place in chosen]
            return
        self.unroll_some(chain)

    def serialize(self, access: Access, serializer: Func) -> None:
        """Sometimes the host puts each value into memory less often."""
        reuse = [
            p
            for p in self.loops
            if self.wild or (p.origin is not None and p.origin not in access.varies)
        ]
        forwarded = [place for _, place in self.forwards]
        chosen = self.draw(st.lists(st.sampled_from(reuse), unique_by=_name)) if reuse else []
        chosen = [p for p in chosen if p is not self.vector and p not in forwarded]
        if chosen:
            serializer.remove(*(p.variable for p in chosen))

    def keep(self, access: Access, chain: list[Func]) -> None:
        """Sometimes a feeder with a buffer, behind a loader that sends each value less often."""
        places = [p for p in self.loops if p not in self.unrolled and p is not self.vector]
        constant = all(p.extent is not None for p in self.loops)
        if len(chain) < 2 or not places or not self.chance(2) or not (constant or self.wild):
            return
        loader, feeder = chain
        at = self.draw(st.integers(0, len(places) - 1))
        reuse = [
            p
            for p in (places if self.wild else places[:at])
            if self.wild or (p.origin is not None and p.origin not in access.varies)
        ]
        if reuse:
            chosen = self.draw(st.lists(st.sampled_from(reuse), unique_by=_name))
            if chosen:
                loader.remove(*(p.variable for p in chosen))
        feeder.buffer(loader, places[at].variable, double=self.draw(st.booleans()))

    def forward(self) -> None:
        """Pass operands between PEs, which have to be there by now."""
        for producer, place in self.forwards:
            self.program.func.forward(producer, place.variable)

    def stream(self, early: bool) -> None:
        """Scatter operands and gather results: PEs have to be there, as for ``forward``."""
        func = self.program.func
        for (loader, feeder), place in self.scatters:
            if not early:
                feeder.unroll(place.variable)
            feeder.scatter(loader, place.variable, reverse=self.draw(st.booleans()))
            if self.chance(4):  # the loop of the stream anywhere in the loader
                choices = [p for p in self.loops if p not in self.unrolled and p is not self.vector]
                order = list(choices)
                order.insert(self.draw(st.integers(0, len(choices))), place)
                loader.reorder(*(p.variable for p in order))
        for chain, places in self.gathers:
            if not early:
                for relay in chain[:-1]:
                    relay.unroll(*(p.variable for p in places))
            source = func
            for relay, place in zip(chain, places, strict=False):
                relay.gather(source, place.variable, reverse=self.draw(st.booleans()))
                source = relay
            if self.chance(2):
                chain[-1].vstore(func)

    def unroll_some(self, chain: list[Func]) -> None:
        """Sometimes more space in an isolated Func than in the function itself."""
        choices = [
            p
            for p in self.loops
            if self.wild
            or (p.extent is not None and p not in self.unrolled and p is not self.vector)
        ]
        if self.chance(4) and choices:
            self.pick(chain).unroll(self.pick(choices).variable)

    def drain(self) -> None:
        least = 2 if self.streaming else 0
        chain = [Func(f"out_{n}") for n in range(self.draw(st.integers(least, 3)))]
        if not chain:
            return
        ends = [Func("deserializer", place=t2s.Place.HOST)] if self.chance(3) else []
        self.program.func.isolate_consumer_chain(*chain, *ends)
        spread = [p for p in self.unrolled if self.wild or not p.reduction]
        if not ends and len(chain) > 1 and spread and (self.streaming or self.chance(2)):
            places = self.draw(
                st.lists(
                    st.sampled_from(spread), min_size=1, max_size=len(chain) - 1, unique_by=_name
                )
            )
            self.gathers.append((chain, places))
            return
        choices = [
            p
            for p in self.loops
            if self.wild
            or not (p.reduction or p.extent is None or p in self.unrolled or p is self.vector)
        ]
        if self.chance(4) and choices:
            self.pick(chain).unroll(self.pick(choices).variable)


def _name(place: Place) -> str:
    return place.name


def _moved(place: Place, old: str, new: tuple[str, ...]) -> Place:
    if old not in place.inside:
        return place
    return replace(place, inside=(*(name for name in place.inside if name != old), *new))


def _nested(order: list[Place]) -> list[Place]:
    """The order, innermost first, with every loop moved inside of those its bounds depend on."""
    result: list[Place] = []
    waiting = order[::-1]
    while waiting:
        outside = {place.name for place in waiting}
        at = next(n for n, place in enumerate(waiting) if not outside & set(place.inside))
        result.append(waiting.pop(at))
    return result[::-1]


class Scheduled:
    """A Func with a random schedule; its text tells how to write it."""

    def __init__(self, func: Func) -> None:
        self.func = func

    def __repr__(self) -> str:
        return "\n".join([f"{self.func.name}: {self.func.type}", *plan_lines(self.func)])


def plan_lines(func: ScheduledFunc[Any] | Any) -> Iterator[str]:
    """The directives as they were written."""
    for directive in func.plan:
        yield f"  {func.name}.{directive.text}"
    for isolated in func.isolated:
        yield from plan_lines(isolated)


@st.composite
def scheduled_programs(
    draw: Draw, types: tuple[Type, ...] = INTEGERS, *, streaming: bool = False
) -> Scheduled:
    """A random program with random directives; ``streaming``: with scatter and gather if it can."""
    program = draw(programs(types))
    scheduler = Scheduler(
        draw=draw,
        program=program,
        wild=bool(draw(st.integers(0, 7)) == 7),
        streaming=streaming,
        loops=[_place(nest) for nest in program.loops],
    )
    if program.func.type.is_float and draw(st.booleans()):
        program.func.reassociate()
    first = not streaming and scheduler.chance(6)
    if first:
        scheduler.isolate_all()
    for number in range(draw(st.integers(0, 2))):
        scheduler.split(number)
    if draw(st.booleans()):
        scheduler.reorder()
    if scheduler.chance(5):
        scheduler.fuse()
    scheduler.choose_unrolled()
    early = draw(st.booleans())
    if early:
        scheduler.unroll()
    if scheduler.chance(2):
        scheduler.vectorize()
    if not first:
        scheduler.isolate_all()
    if not early:
        scheduler.unroll()
    scheduler.forward()
    scheduler.stream(early)
    if program.extra and scheduler.chance(2):
        _unroll_other(draw, program.extra[0])
    return Scheduled(program.func)


def _unroll_other(draw: Draw, func: Func) -> None:
    """Space in a Func that the output reads from memory."""
    variable = draw(st.sampled_from(["i", "j", "k"]))
    found = [s for s in func.written[-1].symbols.values() if s.name == variable]
    if found:
        func.unroll(found[0])  # type: ignore[arg-type]


def _place(nest: Nest) -> Place:
    return Place(
        variable=nest.variable,
        extent=nest.extent,
        reduction=nest.reduction,
        origin=nest.variable.name,
        inside=nest.inside,
    )
