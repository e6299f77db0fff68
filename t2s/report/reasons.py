"""Why a loop is there: what a front end knows of the loops of its graph, and a result does not."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.location import SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopReason:
    """The directive or the definition that made a loop, in words, and the user's line."""

    text: str
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationStep:
    """A design with its first directives: the last one of them, and the cycles with it.

    ``cycles`` is ``None`` where the design cannot run so; ``problem`` says why.
    """

    directive: str
    location: SourceLocation | None
    cycles: int | None
    pes: int | None
    problem: str = ""
