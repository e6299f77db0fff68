"""The places of a program: what each of them fires, and where it goes on.

A place has *options*: instructions with the tags that they wait for, of which the tags (and at the
places behind a test the last predicate) choose one.  Places that do the same are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.opcodes import Opcode
from t2s.backends.cgra_tia.program import (
    CellProgram,
    Destination,
    Instruction,
    Source,
    TagCheck,
    ToPredicate,
    Trigger,
)

TEST = 7
"""The predicate that tests write; those before it number the places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What an instruction does; ``checks`` are input ports with the tags that are there."""

    opcode: Opcode
    destination: Destination = None
    sources: tuple[Source, ...] = ()
    takes: tuple[int, ...] = ()
    checks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A step at a place; ``holds``: what the test has to have given; ``after`` ``None``: the end."""

    step: Step
    holds: bool | None
    after: Hashable


def merged(
    places: Mapping[Hashable, Sequence[Option]], first: Hashable
) -> dict[int, tuple[Option, ...]]:
    """The places by number, the first one 0; those that do the same for ever are one."""
    classes: dict[Hashable, Hashable] = dict.fromkeys(places, 0)
    count = 0
    while len(set(classes.values())) != count:
        count = len(set(classes.values()))
        forms = {
            place: tuple((o.step, o.holds, classes.get(o.after, -1)) for o in options)
            for place, options in places.items()
        }
        numbers: dict[Hashable, int] = {}
        classes = {place: numbers.setdefault(form, len(numbers)) for place, form in forms.items()}
    order: dict[Hashable, int] = {classes[first]: 0}
    for place in places:
        order.setdefault(classes[place], len(order))
    found: dict[int, tuple[Option, ...]] = {}
    for place, options in places.items():
        found.setdefault(
            order[classes[place]],
            tuple(
                replace(o, after=None if o.after is None else order[classes[o.after]])
                for o in options
            ),
        )
    return found


def program_of_places(
    places: Mapping[int, Sequence[Option]], initial: Mapping[int, int], label: str
) -> CellProgram:
    """The program: the first seven predicates are the number of the place."""
    instructions: list[Instruction] = []
    bits = (1 << TEST) - 1
    for number, options in places.items():
        for option in options:
            after = number if option.after is None else option.after
            assert isinstance(after, int)
            test = 1 << TEST
            step = option.step
            instructions.append(
                Instruction(
                    trigger=Trigger(
                        ones=number | (test if option.holds else 0),
                        zeros=(bits & ~number) | (test if option.holds is False else 0),
                        checks=tuple(TagCheck(channel=c, tag=t) for c, t in step.checks),
                    ),
                    opcode=step.opcode,
                    destination=step.destination,
                    sources=step.sources,
                    takes=step.takes,
                    sets=after & ~number,
                    clears=(number & ~after) | (test if option.holds and not _tests(step) else 0),
                )
            )
    return CellProgram(
        label=label, initial=tuple(sorted(initial.items())), instructions=tuple(instructions)
    )


def _tests(step: Step) -> bool:
    """Whether it writes the predicate of tests itself."""
    return step.destination == ToPredicate(TEST)
