"""Docstrings for the pages of the API: their lists of parameters and attributes as Markdown."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_HEAD = re.compile(r"^(Parameters|Attributes|Returns)\n-+\n", re.MULTILINE)
_ITEM = re.compile(r"^([A-Za-z_][\w, ]*): ", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring of t2s as Markdown: names in code, sections as lists.

    >>> print(as_markdown("Sums.\\n\\nParameters\\n----------\\nA, B: what is\\n    added.\\n"))
    Sums.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    * `A, B`: what is
        added.
    <BLANKLINE>
    """
    parts = _HEAD.split(text.replace("``", "`"))
    made = [parts[0]]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        items, blank, rest = body.partition("\n\n")
        listed = _ITEM.sub(r"* `\1`: ", items)
        made.append(f"**{title}**\n\n{listed}{blank}{rest}")
    return "".join(made)


class PlainSections(Extension):
    """Rewrites every docstring as it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """See ``as_markdown``."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
