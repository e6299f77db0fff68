"""Splits of variables: which parts there are, and that no part goes beyond another one."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.errors import UserError
from t2s.sparse_repr.concrete.ir import SplitLoop
from t2s.sparse_repr.concrete.schedule import SplitVariable


def apply_splits(
    directives: Sequence[SplitVariable],
    variables: tuple[str, ...],
    exact: set[str],
    before: Sequence[SplitLoop] = (),
) -> tuple[tuple[SplitLoop, ...], tuple[str, ...]]:
    """The splits of directives, and all loops after them.

    ``before`` are splits that were made already; ``exact`` the variables whose splits may not go
    beyond the end, to which their parts are added.
    """
    after = list(variables)
    splits: list[SplitLoop] = []
    for one in directives:
        if one.variable not in after:
            raise UserError(
                f"there is no variable {one.variable} to split",
                location=one.location,
                expected=f"one of {', '.join(after)}",
            )
        _check_factor(one, (*before, *splits))
        at = after.index(one.variable)
        for name in (one.outer, one.inner):
            if name in after[:at] + after[at + 1 :] or one.outer == one.inner:
                raise UserError(
                    f"the parts of {one.variable} need names of their own",
                    location=one.location,
                    given=f"{one.outer} and {one.inner}",
                )
        after[at : at + 1] = [one.outer, one.inner]
        splits.append(
            SplitLoop(
                variable=one.variable,
                outer=one.outer,
                inner=one.inner,
                factor=one.factor,
                exact=one.variable in exact,
                location=one.location,
            )
        )
        if one.variable in exact:
            exact |= {one.outer, one.inner}
    return tuple(splits), tuple(after)


def _check_factor(one: SplitVariable, before: Sequence[SplitLoop]) -> None:
    """A part with an end of its own is split into whole parts."""
    extents: dict[str, int] = {}
    for split in before:
        extents[split.inner] = split.factor
        if split.variable in extents:
            extents[split.outer] = extents[split.variable] // split.factor
    extent = extents.get(one.variable)
    if extent is not None and extent % one.factor:
        raise UserError(
            f"the split of {one.variable} goes beyond its end",
            location=one.location,
            expected=f"a factor that divides {extent}, the extent of {one.variable}",
            given=f"factor {one.factor}",
        )
