"""Every text in a graph is a name, but for a few that are shown to people and mean nothing.

Generated files are made of names.  ``verify_graph`` and the reader of JSON ask the one question of
this module about every field of every class, so that a new class is safe before anybody thinks of
it: what is not listed here as prose, a path or a file has to be a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from t2s.core.location import SourceLocation
from t2s.core.names import LONGEST_NAME, is_name
from t2s.core.walk import Term, distinct, field_names
from t2s.graph.graph import Graph, Region, Tensor
from t2s.graph.machine import Machine, Mode, Rule
from t2s.graph.nodes import PEArray
from t2s.graph.verify_expr import GraphError


class Text(Enum):
    """What a text in a graph may be; the values say it in errors."""

    NAME = f"a name: letters, digits and underscores, no more than {LONGEST_NAME:,}"
    PATH = "names with / between them"
    PROSE = "text on one line"
    FILE = "the name of a file"

    def allows(self, text: str) -> bool:
        """Whether ``text`` is of this kind."""
        match self:
            case Text.NAME:
                return is_name(text)
            case Text.PATH:
                return all(is_name(part) for part in text.split("/"))
            case Text.PROSE:
                return text.isprintable()
            case Text.FILE:
                return True


_OTHERS: dict[tuple[type[Any], str], Text] = {
    (Region, "name"): Text.PATH,
    (Region, "parent"): Text.PATH,
    (PEArray, "region"): Text.PATH,
    (Machine, "region"): Text.PATH,
    (Tensor, "origin"): Text.PROSE,
    (Rule, "name"): Text.PROSE,
    (Mode, "expected"): Text.PROSE,
    (SourceLocation, "file"): Text.FILE,
}


def wrong_texts(item: Any) -> Iterator[tuple[str, str, Text]]:
    """The field, the text and what it has to be, of every text in a dataclass that is not that.

    Looks at the fields of ``item`` itself and not into what they hold.
    """
    for field in field_names(item):
        value = getattr(item, field)
        texts = value if isinstance(value, tuple) else (value,)
        for text in texts:
            if isinstance(text, str) and not isinstance(text, Enum):
                wanted = _OTHERS.get((type(item), field), Text.NAME)
                if not wanted.allows(text):
                    yield field, text, wanted


def verify_texts(graph: Graph, alike: frozenset[str]) -> None:
    """Check all texts of a graph, but for what is inside of the machines named in ``alike``."""

    def is_new(part: Term) -> bool:
        return not (isinstance(part, Machine) and part.name in alike)

    for part in distinct(graph, is_new):
        for field, text, wanted in wrong_texts(part):
            kind = type(part).__name__
            raise GraphError(
                f"the {field} of a {kind} of graph {graph.name!r} is not what it has to be",
                location=getattr(part, "location", None) or graph.location,
                expected=wanted.value,
                given=repr(text),
            )
