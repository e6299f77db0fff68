"""A run that did not come to its end is an error, with what it measured, where the whole is wanted.

``simulate`` returns a partial result, which says that it is one.  A number, or a tensor, cannot say
so; whoever gives these asks for a ``whole`` result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2s.core.errors import UserError
from t2s.core.location import user_location

if TYPE_CHECKING:
    from t2s.simulator.report.result import SimResult


class CycleLimitError(UserError):
    """A run reached its cycle limit; ``result`` is what was measured until then."""

    def __init__(self, result: SimResult) -> None:
        self.result = result
        super().__init__(
            f"{result.graph!r} had not ended after {result.cycles:,} cycles, the limit",
            location=user_location(),
            expected="a run that ends within max_cycles",
            given=f"{result.firings:,} firings made when it was cut short",
            hint="give more max_cycles; print(error.result) shows what was measured until then",
        )


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a run; ``result`` is what was measured until then."""

    def __init__(self, result: SimResult) -> None:
        self.result = result
        if not result.cycles:
            super().__init__(
                f"{result.graph!r} was interrupted before its first cycle was measured, while "
                "its values were computed"
            )
            return
        super().__init__(
            f"{result.graph!r} was interrupted after {result.cycles:,} cycles and "
            f"{result.firings:,} firings; the result of this exception has what was measured"
        )


def whole(result: SimResult) -> SimResult:
    """The result of a run that came to its end; raises what ended it otherwise."""
    if result.limit_reached:
        raise CycleLimitError(result)
    if result.interrupted:
        raise RunInterrupted(result)
    return result
