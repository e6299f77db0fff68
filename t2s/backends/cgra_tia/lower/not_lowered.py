"""The exception by which passes refuse a design, with the user's object and line."""

from __future__ import annotations

from typing import NoReturn

from t2s.backends.base import Unsupported
from t2s.core.location import SourceLocation


class NotLowered(Exception):
    """Something cannot be lowered to this machine; ``problem`` is the error for the user."""

    def __init__(self, problem: Unsupported) -> None:
        super().__init__(str(problem))
        self.problem = problem


def refuse(subject: str, why: str, location: SourceLocation | None) -> NoReturn:
    """Raise ``NotLowered`` for one thing of the graph."""
    raise NotLowered(Unsupported(subject=subject, why=why, location=location))
