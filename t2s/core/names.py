"""What may be a name, unique names within one compilation, and text on one line.

Names go into many kinds of generated text.  Backends turn them into identifiers of their own; that
they are plain words to begin with is checked where they come in: by the language, when a graph is
read from a file, and when a graph is verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

LONGEST_NAME = 1_000
"""Characters of the longest name."""


def is_name(text: str) -> bool:
    """Whether a text can be a name: a Python identifier of a bearable length."""
    return text.isidentifier() and len(text) <= LONGEST_NAME


def one_line(text: str) -> str:
    r"""The text for a comment that ends with its line: nothing in it can end the line or join two.

    What cannot be printed is spelled as in Python; a backslash at the end would join the next line
    to this one in C.

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
    r"""The text of a page without the characters that no page may have, spelled as in Python.

    Half of a pair (as in the name of a file that is not a text) has no bytes in UTF-8 either.

    >>> printable("caf" + chr(0xdce9))
    'caf\\udce9'
    """
    return _UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], page)


class NameSupply:
    """Hands out names that are not taken yet; one object per compilation, no global counter."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def copy(self) -> NameSupply:
        """Another supply that has the same names left."""
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
    """``did you mean unroll?``, for the known name that is written most alike; ``None`` for none.

    Upper and lower case count as alike.
    """
    spelled = {other.lower(): other for other in known}
    close = get_close_matches(name.lower(), spelled, n=1, cutoff=0.7)
    return f"did you mean {spelled[close[0]]}?" if close else None
