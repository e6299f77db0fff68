"""The contract of a backend: say what it cannot do, and turn a ``Graph`` into files.

A backend is a folder behind one object: ``BACKEND`` in the folder's ``__init__``.  It reads the
graph, ``t2s.core`` and this module, and nothing else of t2s.  The driver holds the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from t2s.core.errors import UnsupportedError
from t2s.core.location import SourceLocation
from t2s.graph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """One thing in a graph that a backend does not handle.

    Attributes
    ----------
    subject: the node, channel, tensor or parameter, as the user would say it: ``channel 'A_in'``.
    why: one sentence, in the user's terms, with what to try where something can be tried.
    location: the user's line that made the subject.
    """

    subject: str
    why: str
    location: SourceLocation | None = None

    def __str__(self) -> str:
        return f"{self.subject}: {self.why}"


class Backend(Protocol):
    """What the driver knows of a backend."""

    @property
    def name(self) -> str:
        """The name by which users ask for the backend."""

    def supports(self, graph: Graph) -> list[Unsupported]:
        """Everything in the graph that stands in the way of ``emit``; empty if nothing does."""

    def emit(self, graph: Graph) -> Mapping[str, str]:
        """The files of the design: relative path to text, the same bytes on every machine.

        Raises ``UnsupportedError`` if ``supports`` is not empty.
        """


def refusal(backend: str, graph: Graph, problems: list[Unsupported]) -> UnsupportedError:
    """The error that ``emit`` raises: the first problem, with the others as notes."""
    first, *others = problems
    return UnsupportedError(
        f"the {backend} backend cannot emit {graph.name!r}: {first}",
        location=first.location,
        notes=[(problem.location, str(problem)) for problem in others],
    )
