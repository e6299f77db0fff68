"""Directives that say something once: given again, neither of the two would be what is meant."""

from __future__ import annotations

from collections.abc import Hashable

from t2s.core.errors import UserError
from t2s.sparse_repr.concrete.schedule import (
    Locate,
    LoopDirective,
    OrderLoops,
    Parallelize,
    Precompute,
    ScanLevels,
    Schedule,
    Skip,
    SplitVariable,
    Vectorize,
)


def check_once(schedule: Schedule) -> None:
    """Raise ``UserError`` for a directive that is there twice for the same loop."""
    found: dict[Hashable, LoopDirective] = {}
    for one in schedule.directives:
        said = _said(one)
        if said is None:
            continue
        about, text, expected = said
        key = type(one), about
        if key in found:
            raise UserError(
                f"{text} twice",
                location=one.location,
                expected=expected,
                notes=[(found[key].location, "the first time is here")],
            )
        found[key] = one


def _said(one: LoopDirective) -> tuple[Hashable, str, str] | None:
    """What a directive is about, what it does to that, and how it is said once."""
    match one:
        case OrderLoops():
            return None, "the loops are ordered", "one reorder() of all loops"
        case SplitVariable(variable=name, outer=outer, inner=inner):
            expected = f"one split of {name}; its parts {outer} and {inner} can be split again"
            return name, f"{name} is split", expected
        case Parallelize(variable=name):
            return (
                name,
                f"the loop over {name} is dealt to lanes",
                f"one parallelize({name!r}, ...)",
            )
        case Vectorize(variable=name):
            return name, f"{name} is computed in vectors", f"one vectorize({name!r}, ...)"
        case Skip(variable=name):
            return name, f"coordinates of {name} are skipped", f"one skip({name!r})"
        case Locate(tensor=tensor, variable=name):
            text = f"the level of {tensor} at {name} is located into"
            return (tensor, name), text, f"one locate({tensor!r}, {name!r})"
        case ScanLevels(tensor=tensor, variable=name):
            levels = f"the level of {tensor} at {name} is" if name else "dense levels are"
            return (tensor, name), f"{levels} scanned", "one scan() for each level"
        case Precompute(workspace=name):
            return name, f"{name} is computed first", "a name of its own for each workspace"
    return None
