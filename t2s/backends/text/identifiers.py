"""Names of users as identifiers of a target: recognizable, legal and unique."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from t2s.core.names import NameSupply

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_]")

MACRO = re.compile(r"(?=(?:[^A-Z]*[A-Z]){3})[A-Z][A-Z0-9_]+")
"""Macros of C and C++ are written in capitals: NAN, NULL, M_PI, INT_MAX and many more."""


def plain(name: str) -> str:
    """A name reduced to letters, digits and underscores, starting with a letter.

    >>> plain("A feeder"), plain("2nd")
    ('A_feeder', 'v2nd')
    """
    text = _NOT_PLAIN.sub("_", name).lstrip("_") or "v"
    return f"v{text}" if text[0].isdigit() else text


class Identifiers:
    """The identifiers of one scope; those in ``taken`` are not used.

    ``identifier`` turns a name into a legal identifier of the target.
    """

    def __init__(self, identifier: Callable[[str], str], taken: Iterable[str] = ()) -> None:
        self._identifier = identifier
        self._supply = NameSupply(taken)

    def fresh(self, stem: str) -> str:
        """A new identifier like ``stem``; ``stem_2`` and so on if it is taken."""
        return self._supply.fresh(self._identifier(stem))
