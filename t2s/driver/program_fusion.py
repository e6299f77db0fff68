"""Which results of a program are passed on in its graphs, as the user says or ``fuse`` chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.driver.assignment_design import Compiled
from t2s.sparse_repr.concrete.fusion import PassOn, StatementGroup, Way
from t2s.sparse_repr.concrete.nameless import NamelessGroup, without_names


class Fusion(Enum):
    """How much of a program becomes one graph; the value is what users write.

    NONE: everything is stored.  LAYER: what can be streamed is, and nothing is computed twice.
    ALL: what cannot be streamed is computed again where it is read, if that can be.
    """

    NONE = "none"
    LAYER = "layer"
    ALL = "all"


Grouped = Callable[[Sequence[PassOn]], Sequence[StatementGroup]]
"""The graphs of a program with these results passed on."""


def said(
    before: Sequence[PassOn], names: Sequence[object], way: Way, location: SourceLocation
) -> tuple[PassOn, ...]:
    """What the user has said, with the way of some more results.

    Raises ``UserError`` for a result whose way is said already, and where no name is given.
    """
    known = {passing.tensor: passing for passing in before}
    added: list[PassOn] = []
    for name in names:
        if not isinstance(name, str):
            raise UserError(
                f"{way.value} takes the names of results",
                location=location,
                expected=f'such as {way.value}("T")',
                given=repr(name),
            )
        passing = PassOn(tensor=name, way=way, location=location)
        if name in known:
            first = known[name]
            raise UserError(
                f"{name} is to be {_done(way)}, and to be {_done(first.way)}"
                if first.way is not way
                else f"{name} is to be {_done(way)} twice",
                location=location,
                expected="one of store, stream and recompute",
                given=f"{way.value}({name!r})",
                notes=[(first.location, "the first time is here")],
            )
        known[name] = passing
        added.append(passing)
    if not names:
        raise UserError(
            f"{way.value} names no result",
            location=location,
            expected=f'such as {way.value}("T")',
        )
    return (*before, *added)


def _done(way: Way) -> str:
    return {Way.STORE: "stored", Way.STREAM: "streamed", Way.RECOMPUTE: "recomputed"}[way]


def checked(grouped: Grouped, passed: Sequence[PassOn]) -> None:
    """Raise ``UserError`` unless every graph can be made."""
    for group in grouped(passed):
        if len(group.statements) > 1:
            Compiled.of_group(group)


def chosen(
    results: Sequence[str],
    wanted: Fusion,
    given: Sequence[PassOn],
    grouped: Grouped,
    location: SourceLocation,
) -> tuple[PassOn, ...]:
    """The results that ``fuse`` passes on, among those about which nothing is said.

    ``results`` are those that are read, in order.  Readers come before what they read: only then
    is it known in which graph they are.
    """
    ways = {
        Fusion.NONE: (),
        Fusion.LAYER: (Way.STREAM,),
        Fusion.ALL: (Way.STREAM, Way.RECOMPUTE),
    }[wanted]
    found: list[PassOn] = []
    fitting: dict[NamelessGroup, bool] = {}
    decided = {passing.tensor for passing in given}
    for name in reversed(results):
        if name in decided:
            continue
        for way in ways:
            passing = PassOn(tensor=name, way=way, location=location)
            if _fits(grouped, [*given, *found, passing], name, fitting):
                found.append(passing)
                break
    return tuple(reversed(found))


def kept(before: Sequence[PassOn], given: Sequence[PassOn], grouped: Grouped) -> tuple[PassOn, ...]:
    """What ``fuse`` chose ``before``, as far as it fits what the user says since then.

    Readers again come before what they read.  Raises ``UserError`` unless what the user says can
    be made.
    """
    decided = {passing.tensor for passing in given}
    left = [passing for passing in before if passing.tensor not in decided]
    try:
        checked(grouped, (*given, *left))
    except UserError:
        fitting: dict[NamelessGroup, bool] = {}
        found: list[PassOn] = []
        for passing in reversed(left):
            if _fits(grouped, [*given, *found, passing], passing.tensor, fitting):
                found.append(passing)
        left = found[::-1]
        checked(grouped, (*given, *left))
    return tuple(left)


def _fits(
    grouped: Grouped, passed: Sequence[PassOn], name: str, fitting: dict[NamelessGroup, bool]
) -> bool:
    """Whether the graphs that compute a result can be made; ``fitting`` has those that are known.

    The layers of a model have equal graphs, each of which is made once.
    """
    try:
        groups = grouped(passed)
    except UserError:
        return False
    return all(_can_be_made(group, fitting) for group in groups if group.way_of(name) is not None)


def _can_be_made(group: StatementGroup, fitting: dict[NamelessGroup, bool]) -> bool:
    nameless = without_names(group)
    if nameless in fitting:
        return fitting[nameless]
    try:
        Compiled.of_group(group)
        made = True
    except UserError:
        made = False
    if nameless is not None:
        fitting[nameless] = made
    return made
