"""The errors and the warnings that t2s raises, each with the user's file and line.

``T2SError`` is the base of all errors; every ``UserError`` says what was expected, what was given
and what to try.
"""

from __future__ import annotations

from t2s.core.errors import InternalError, T2SError, T2SWarning, UnsupportedError, UserError
from t2s.graph.semantics import ProtocolError
from t2s.graph.verify_expr import GraphError
from t2s.simulator.report.errors import (
    CycleLimitError,
    DeadlockError,
    RunInterrupted,
    TokensLeftError,
)

__all__ = [
    "CycleLimitError",
    "DeadlockError",
    "GraphError",
    "InternalError",
    "ProtocolError",
    "RunInterrupted",
    "T2SError",
    "T2SWarning",
    "TokensLeftError",
    "UnsupportedError",
    "UserError",
]
