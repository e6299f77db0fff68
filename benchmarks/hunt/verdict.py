"""What became of a case."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from enum import Enum

from t2s.core.errors import InternalError, T2SError
from t2s.simulator.report.errors import DeadlockError, TokensLeftError


class Kind(Enum):
    """The kinds of endings; only the first two are as promised."""

    LEGAL = "legal"
    REFUSED = "refused"
    WRONG = "wrong"
    CRASHED = "crashed"
    HUNG = "hung"

    @property
    def bad(self) -> bool:
        return self not in (Kind.LEGAL, Kind.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a case ended; ``detail`` is the class of a refusal or of a failure, without names."""

    kind: Kind
    detail: str = ""
    text: str = ""


class Wrong(Exception):
    """Two that should agree do not; the message says which."""


def verdict_of(error: BaseException) -> Verdict:
    """What an exception means: a refusal is an error of t2s that is no bug, and nothing else is."""
    text = str(error)
    first = text.splitlines()[0] if text else ""
    match error:
        case Wrong():
            return Verdict(kind=Kind.WRONG, detail=generic(first), text=text)
        case DeadlockError() | TokensLeftError():
            return Verdict(kind=Kind.WRONG, detail="deadlock", text=text)
        case InternalError():
            return Verdict(kind=Kind.CRASHED, detail=generic(first), text=_traced(error))
        case T2SError():
            return Verdict(kind=Kind.REFUSED, detail=generic(first), text=text)
    detail = f"{type(error).__name__}: {generic(first)}"
    return Verdict(kind=Kind.CRASHED, detail=detail[:160], text=_traced(error))


def _traced(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-3000:]


def generic(message: str) -> str:
    """A message without names and numbers, so that equal reasons count together."""
    message = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\([^)]*\)", "_", message)
    message = re.sub(r"\b[A-Za-z]\w{0,3}(_\w+)?\b(?=[\s,:.]|$)", _word, message)
    return re.sub(r"-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "N", message)[:150]


_SHORT = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "do",
        "does",
        "each",
        "for",
        "from",
        "has",
        "have",
        "in",
        "into",
        "is",
        "it",
        "its",
        "loop",
        "may",
        "no",
        "not",
        "of",
        "on",
        "one",
        "or",
        "out",
        "over",
        "own",
        "same",
        "set",
        "so",
        "sum",
        "than",
        "that",
        "the",
        "them",
        "they",
        "this",
        "to",
        "too",
        "two",
        "up",
        "use",
        "was",
        "what",
        "with",
        "func",
        "both",
        "all",
        "any",
        "does",
        "than",
        "only",
        "half",
        "wide",
        "part",
        "last",
        "keep",
        "used",
    ]
)


def _word(match: re.Match[str]) -> str:
    return match[0] if match[0].lower() in _SHORT else "_"
