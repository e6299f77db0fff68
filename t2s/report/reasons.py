"""The origin of loops: what a front end knows about the loops of its graph, and a result does
not.
"""

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
    """A step of the ablation: the design with its first directives, the last of them, and the
    cycles.

    ``cycles`` is ``None`` if the design cannot run with them; ``problem`` says why.
    """

    directive: str
    location: SourceLocation | None
    cycles: int | None
    pes: int | None
    problem: str = ""
