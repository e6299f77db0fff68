"""Valid names, unique names within one compilation, and text on one line.

Names occur in many kinds of generated text, where backends turn them into identifiers.  They are
checked where they enter: by the language, when a graph is read from a file, and when it is
verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

LONGEST_NAME = 1_000
"""The most characters of a name."""


def is_name(text: str) -> bool:
    """Whether a text can be a name: a Python identifier of limited length."""
    return text.isidentifier() and len(text) <= LONGEST_NAME


def one_line(text: str) -> str:
    r"""Escape a text for a line comment: nothing in it can end the line or continue it.

    Unprintable characters are escaped as in Python; a backslash at the end would continue the
    comment on the next line in C.

    >>> one_line("a\nb"), one_line("folder" + chr(92))
    ('a\\nb', 'folder\\ .')
    """
    printable = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
    return f"{printable} ." if printable.rstrip().endswith("\\") else printable


def clipped(text: str, most: int) -> str:
    """The text, ended by ``…`` where it is longer than ``most`` letters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def counted(number: int, noun: str) -> str:
    """A number of things, the noun with an ``s`` unless it is one.

    >>> counted(1, "cycle"), counted(8418, "cycle")
    ('1 cycle', '8,418 cycles')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def printable(page: str) -> str:
    r"""Escape the characters that are not allowed in HTML, as in Python.

    A lone surrogate (as in a file name that is not text) cannot be encoded in UTF-8 either.

    >>> printable("caf" + chr(0xdce9))
    'caf\\udce9'
    """
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], page)


class NameSupply:
    """A supply of unused names; one object per compilation, without a global counter."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def copy(self) -> NameSupply:
        """An independent supply in the same state."""
        return NameSupply(self._taken)

    def fresh(self, wanted: str) -> str:
        """``wanted`` if it is free, else ``wanted_2``, ``wanted_3`` and so on."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name


def dot_text(*lines: str) -> str:
    """A quoted DOT string of one or more lines; every character of ``lines`` is shown as it is."""
    escaped = (one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """``did you mean unroll?`` for the most similar known name; ``None`` if none is close.

    Case is ignored.
    """
    spelled = {other.lower(): other for other in known}
    close = get_close_matches(name.lower(), spelled, n=1, cutoff=0.7)
    return f"did you mean {spelled[close[0]]}?" if close else None
