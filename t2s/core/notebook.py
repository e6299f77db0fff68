"""What notebooks show: a card with numbers, pictures, tables and texts, as HTML and as plain text.

A class that derives from ``NotebookDisplay`` says what is on its card; everything else is here.  A
card is a fragment of HTML without scripts that loads nothing, has the page's own colors, light or
dark, and is small: what would make it large is left out, and the card says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from t2s.core.names import clipped, printable

MOST_BYTES = 250_000
"""The size of a card, but for the sentence that says that something was left out."""

MOST_LINES = 400
MOST_LETTERS = 400
"""Letters of a line, or of a number of the summary."""

_LEFT_OUT = "<p>This part is too large for a notebook: print it.</p>"


class CardPart(Protocol):
    """What is on a card: a picture, a table, a text, another card."""

    def html(self) -> str:
        """A well-formed element, with everything escaped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preformatted:
    """Text with lines and columns of its own, under a title; or the title alone."""

    title: str
    text: str = ""

    def html(self) -> str:
        """The first lines, and how many follow."""
        lines = self.text.splitlines()
        shown = [clipped(line, MOST_LETTERS) for line in lines[:MOST_LINES]]
        if len(lines) > len(shown):
            shown.append(f"… and {len(lines) - len(shown):,} more lines")
        text = escape("\n".join(shown), quote=False)
        title = f"<p>{_shown(self.title)}</p>" if self.title else ""
        body = f'<pre style="overflow-x:auto;line-height:1.3">{text}</pre>' if text else ""
        return f"<div>{title}{body}</div>"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookCard:
    """A title, numbers as (label, text), what is shown below them, and other cards."""

    title: str
    summary: tuple[tuple[str, str], ...] = ()
    parts: tuple[CardPart | None, ...] = ()

    def html(self) -> str:
        """The card as a ``<div>``; parts that are ``None`` are skipped."""
        made, room = [], MOST_BYTES
        for piece in map(printable, self._pieces()):
            size = len(piece.encode())
            if size > room:
                made.append(_LEFT_OUT)
            else:
                made.append(piece)
                room -= size
        return f"<div>{''.join(made)}</div>"

    def _pieces(self) -> Iterator[str]:
        yield f"<h4>{_shown(self.title)}</h4>"
        if self.summary:
            rows = (
                f'<tr><th style="text-align:left">{_shown(label)}</th>'
                f'<td style="text-align:left">{_shown(text)}</td></tr>'
                for label, text in self.summary[:MOST_LINES]
            )
            yield f"<table>{''.join(rows)}</table>"
        yield from (part.html() for part in self.parts if part is not None)


def _shown(text: str) -> str:
    return escape(clipped(text, MOST_LETTERS), quote=False)


class NotebookDisplay:
    """Makes notebooks show an object: as a card, and as ``str(object)`` where there is no HTML.

    A class says what its ``_card`` is, or has a ``_repr_html_`` of its own.
    """

    __slots__ = ()

    def _card(self) -> NotebookCard:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._card().html()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The object as ``text/html`` and as ``text/plain``; notebooks choose among them."""
        return {"text/plain": str(self), "text/html": self._repr_html_()}
