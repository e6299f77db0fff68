"""The control states ("places") of a program: what each of them fires, and where it goes on.

A place has *options*: instructions with the tags that they wait for.  The tags (and, after a test,
the last predicate) choose one of them.  Places that behave the same are merged.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from t2s.backends.cgra_tia.program import (
    CellProgram,
    Destination,
    Instruction,
    Opcode,
    Source,
    TagCheck,
    ToPredicate,
    Trigger,
)

TEST = 7
"""The predicate that tests write; those before it number the places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStep:
    """What an instruction does; ``checks`` are pairs of an input port and the tag of its head.

    A tag ``~t`` (below 0) stands for any tag but t.
    """

    opcode: Opcode
    destination: Destination = None
    sources: tuple[Source, ...] = ()
    takes: tuple[int, ...] = ()
    checks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOption:
    """A step at a place: ``holds`` is the test result that it needs, ``after`` the next place.

    Without an ``after`` the program ends."""

    step: CellStep
    holds: bool | None
    after: Hashable


def merged(
    places: Mapping[Hashable, Sequence[PlaceOption]], first: Hashable
) -> dict[int, tuple[PlaceOption, ...]]:
    """The places by number, the first one 0; places that behave the same are merged."""
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
    result: dict[int, tuple[PlaceOption, ...]] = {}
    for place, options in places.items():
        result.setdefault(
            order[classes[place]],
            tuple(
                replace(o, after=None if o.after is None else order[classes[o.after]])
                for o in options
            ),
        )
    return result


def within_others(
    places: Mapping[Hashable, Sequence[PlaceOption]],
) -> dict[Hashable, list[PlaceOption]]:
    """The places without those whose only option belongs to another place as well.

    At that place, what the option waits for has to exclude all other options.
    """
    instead: dict[Hashable, Hashable] = {}
    for place, options in places.items():
        if len(options) != 1:
            continue
        (only,) = options
        for other, choices in places.items():
            rest = [option for option in choices if option != only]
            if 0 < len(rest) < len(choices) and other not in instead and _decides(only, rest):
                instead[place] = other
                break
    return {
        place: [replace(o, after=instead.get(o.after, o.after)) for o in options]
        for place, options in places.items()
        if place not in instead
    }


def _decides(only: PlaceOption, rest: Sequence[PlaceOption]) -> bool:
    """Whether the checks of an option exclude all others."""
    exact = {port: tag for port, tag in only.step.checks if tag >= 0}
    return only.holds is None and all(
        option.holds is None
        and any(port in exact and not meets(tag, exact[port]) for port, tag in option.step.checks)
        for option in rest
    )


def with_fewer(options: Sequence[PlaceOption], tags: int) -> list[PlaceOption]:
    """The options of a place, merged where they do the same for different tags.

    An option for several tags of a port waits for any tag but one, if another option has that one.
    """
    remaining = list(options)
    merged_one = True
    while merged_one:
        merged_one = False
        for first, second in combinations(remaining, 2):
            joined = _together(first, second, remaining, tags)
            if joined is not None:
                at = remaining.index(first)
                remaining = [o for o in remaining if not _covers(joined, o)]
                remaining.insert(min(at, len(remaining)), joined)
                merged_one = True
                break
    return remaining


def _together(
    first: PlaceOption, second: PlaceOption, options: Sequence[PlaceOption], tags: int
) -> PlaceOption | None:
    """Two options as one, if no option that does something else could fire at the same time."""
    if not _same_but_tags(first, second):
        return None
    choices: list[list[tuple[int, int]]] = []
    for (port, a), (_, b) in zip(first.step.checks, second.step.checks, strict=True):
        excluded = [~tag for tag in range(tags) if not (meets(a, tag) or meets(b, tag))]
        possible = [a] if a == b else [e for e in excluded if _used(~e, port, options)][:2]
        choices.append([(port, check) for check in possible])
    for checks in product(*choices):
        joined = replace(first, step=replace(first.step, checks=tuple(checks)))
        rest = [o for o in options if o.holds == first.holds and not _covers(joined, o)]
        if all(_exclude(checks, o) for o in rest):
            return joined
    return None


def _same_but_tags(first: PlaceOption, second: PlaceOption) -> bool:
    same = (first.holds, first.after) == (second.holds, second.after)
    ports = [[port for port, _ in option.step.checks] for option in (first, second)]
    steps = [replace(option.step, checks=()) for option in (first, second)]
    return same and ports[0] == ports[1] and steps[0] == steps[1]


def _covers(whole: PlaceOption, part: PlaceOption) -> bool:
    """Whether an option does the same as another one whenever that would fire."""
    return _same_but_tags(whole, part) and all(
        check == own or (check < 0 <= own and own != ~check)
        for (_, check), (_, own) in zip(whole.step.checks, part.step.checks, strict=True)
    )


def meets(check: int, tag: int) -> bool:
    """Whether a tag passes a check."""
    return tag == check if check >= 0 else tag != ~check


def _used(tag: int, port: int, rest: Sequence[PlaceOption]) -> bool:
    return any((port, tag) in option.step.checks for option in rest)


def _exclude(checks: Sequence[tuple[int, int]], other: PlaceOption) -> bool:
    """Whether no tags allow both to fire."""
    mine = dict(checks)
    for port, check in other.step.checks:
        own = mine.get(port)
        if own is None:
            continue
        equal = [c for c in (own, check) if c >= 0]
        if len(equal) == 2 and own != check:
            return True
        if len(equal) == 1 and not (meets(own, equal[0]) and meets(check, equal[0])):
            return True
    return False


def program_of_places(
    places: Mapping[int, Sequence[PlaceOption]], initial: Mapping[int, int], label: str
) -> CellProgram:
    """The program: all predicates but that of tests encode the place.

    Two places with common options get codes that differ in one predicate, which the instructions of
    these options ignore.
    """
    pairs = _pairs(places)
    second = {other: first for first, other in pairs.items()}
    singles = [place for place in places if place not in second]
    codes = {place: number for number, place in enumerate(singles)}
    codes |= {place: codes[first] | _PAIR for place, first in second.items()}
    instructions: list[Instruction] = []
    for place, options in places.items():
        both = places[pairs[place]] if place in pairs else ()
        for option in options:
            if place in second and _shared(option, places[second[place]]) is not None:
                continue
            twin = _shared(option, both)
            instructions.append(_instruction(option, twin, codes[place], codes))
    return CellProgram(
        label=label, initial=tuple(sorted(initial.items())), instructions=tuple(instructions)
    )


def place_count(places: Mapping[int, Sequence[PlaceOption]]) -> int:
    """How many place codes a program takes; the codes of pairs are above all others."""
    pairs = _pairs(places)
    return (_PAIR if pairs else 0) + len(places) - len(pairs)


_PAIR = 1 << TEST - 1
"""The predicate that tells the two places of a pair apart."""


def _pairs(places: Mapping[int, Sequence[PlaceOption]]) -> dict[int, int]:
    """Pairs of places with common options, those with the most first; each place is in one pair."""
    counts: list[tuple[int, int, int]] = []
    for first, second in combinations(places, 2):
        common = [o for o in places[second] if _shared(o, places[first]) is not None]
        if common:
            counts.append((-len(common), first, second))
    taken: set[int] = set()
    pairs: dict[int, int] = {}
    for _, first, second in sorted(counts):
        if not {first, second} & taken:
            pairs[first] = second
            taken |= {first, second}
    return pairs


def _shared(option: PlaceOption, others: Sequence[PlaceOption]) -> PlaceOption | None:
    """The option of another place that does the same.  Outside of tests no test holds."""
    for other in others:
        same = (other.step, other.after) == (option.step, option.after)
        if same and (other.holds is option.holds or not (other.holds or option.holds)):
            return other
    return None


def _instruction(
    option: PlaceOption, twin: PlaceOption | None, number: int, codes: Mapping[int, int]
) -> Instruction:
    """The instruction of an option, shared with its ``twin`` at the other place of a pair."""
    step = option.step
    assert option.after is None or isinstance(option.after, int)
    after = number if option.after is None else codes[option.after]
    holds = option.holds if twin is None or option.holds is not None else twin.holds
    test, own = 1 << TEST, (1 << TEST) - 1
    if twin is not None:
        own &= ~_PAIR
    seen = number & own
    clears = (own & number & ~after) | (test if holds and not _tests(step) else 0)
    sets = own & after & ~number
    if twin is not None and option.after is not None:
        sets, clears = sets | after & _PAIR, clears | _PAIR & ~after
    return Instruction(
        trigger=Trigger(
            ones=seen | (test if holds else 0),
            zeros=(own & ~number) | (test if holds is False else 0),
            checks=tuple(TagCheck(channel=c, tag=max(t, ~t), equal=t >= 0) for c, t in step.checks),
        ),
        opcode=step.opcode,
        destination=step.destination,
        sources=step.sources,
        takes=step.takes,
        sets=sets,
        clears=clears,
    )


def _tests(step: CellStep) -> bool:
    """Whether a step writes the predicate of tests itself."""
    return step.destination == ToPredicate(TEST)
