"""The contract of a backend: say what it cannot do, turn a ``Graph`` into files, and run them.

A backend is a folder behind one object: ``BACKEND`` in the folder's ``__init__``.  It reads the
graph, ``t2s.core`` and this module, and nothing else of t2s.  The driver holds the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from t2s.core.errors import UnsupportedError
from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
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


@dataclass(frozen=True, kw_only=True)
class ChannelTimes:
    """A channel: cycles from a firing that sends until its token is ready, and tokens it holds.

    Both include the pipeline of the sender.
    """

    latency: int
    capacity: int


def no_latency(_: Expr) -> int:
    """Operators that take no time."""
    return 0


@dataclass(frozen=True, kw_only=True)
class DeviceTimes:
    """A device, as what is emitted for it sees it.

    Attributes
    ----------
    intervals: the initiation interval of every node, in cycles.
    channels: by name.
    memory_rate: bytes per cycle that all load and store units share; ``None`` is unlimited.
    store_latency: cycles from the firing of a store until it is complete.
    load_latency: cycles from the firing of a load until its data are there.
    latency_of: cycles of one node of an expression.
    """

    intervals: Mapping[str, int]
    channels: Mapping[str, ChannelTimes]
    memory_rate: Fraction | None = None
    store_latency: int = 0
    load_latency: int = 0
    latency_of: Callable[[Expr], int] = no_latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalling:
    """Pseudo-random stalls of load and store units: see ``t2s.RandomStalls``."""

    seed: int
    one_in: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveFile:
    """Waveforms of a run: the file, and the first and the last cycle; ``None`` for all of them.

    Cycle ``c`` begins at 10 ``c`` ns.
    """

    path: Path
    cycles: tuple[int, int] | None = None


@dataclass(frozen=True)
class RunValues:
    """The result of a run without times: output tensors by name."""

    outputs: dict[str, Array]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How the files of a graph are run.

    Attributes
    ----------
    times: those of the device, for a backend whose runs are ``timed``.
    stalling: holds up load and store units; for such a backend too.
    time_limit: seconds that the run may take.
    exact_depths: channels are as deep as the files say, and no deeper, which may be slower; for a
        backend whose runs are not ``timed``.
    directory: keeps the files and what is built of them; ``None`` keeps nothing.
    waves: waveforms to write, of a backend whose runs are ``timed``.
    """

    times: DeviceTimes | None = None
    stalling: Stalling | None = None
    time_limit: float = 60.0
    exact_depths: bool = False
    directory: Path | None = None
    waves: WaveFile | None = None


class BackendRun(Protocol):
    """What became of a graph on a backend."""

    @property
    def outputs(self) -> Mapping[str, Array]:
        """The arrays that it has stored, by name."""


class Backend(Protocol):
    """What the driver knows of a backend."""

    @property
    def name(self) -> str:
        """The name by which users ask for the backend."""

    @property
    def timed(self) -> bool:
        """Whether its runs count cycles, and so need the times of a device."""

    def supports(self, graph: Graph) -> list[Unsupported]:
        """Everything in the graph that stands in the way of ``emit``; empty if nothing does."""

    def emit(self, graph: Graph) -> Mapping[str, str]:
        """The files of the design: relative path to text, the same bytes on every machine.

        Raises ``UnsupportedError`` if ``supports`` is not empty.
        """

    def run(
        self,
        graph: Graph,
        inputs: Mapping[str, Array] | None,
        parameters: Mapping[str, Array],
        options: RunOptions,
    ) -> BackendRun:
        """Emit, build and run a graph on its inputs; ``None`` where only its times are asked for.

        Raises ``UserError`` if the tools are missing or the run does not come to its end.
        """


def refusal(backend: str, graph: Graph, problems: list[Unsupported]) -> UnsupportedError:
    """The error that ``emit`` raises: the first problem, with the others as notes."""
    first, *others = problems
    return UnsupportedError(
        f"the {backend} backend cannot emit {graph.name!r}: {first}",
        location=first.location,
        notes=[(problem.location, str(problem)) for problem in others],
    )
