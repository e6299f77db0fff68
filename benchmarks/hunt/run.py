"""Runs cases in child processes that may crash or hang, and keeps what became of them."""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.hunt.choices import Choices, minimized
from benchmarks.hunt.verdict import Kind, Verdict, verdict_of

_MEMORY = 8 << 30

HUNTS = (
    *("dense", "pipelines", "sparse", "statements", "clustered", "chains"),
    *("machines", "hostile", "files", "mappings"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A case, by its number or its decisions, and its verdict."""

    number: int
    kind: str
    detail: str
    text: str
    case: str
    taken: list[int] = field(default_factory=list)
    seconds: float = 0.0


Judge = Callable[[Choices, bool], tuple[str, Verdict]]
"""Makes a case of decisions and judges it, by hardware too if asked; the case as text."""


def judge_of(hunt: str) -> Judge:
    """The judge of a hunt; every hunt is a module with a function ``judge``."""
    judge: Judge = import_module(f"benchmarks.hunt.{hunt}").judge
    return judge


def tried(hunt: str, choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """One case in this process; what is raised while it is made is a failure of the hunt itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return judge_of(hunt)(choices, hardware)


def guarded(judge: Callable[[], Any]) -> Verdict:
    """The verdict of something that is legal if it comes to its end."""
    try:
        judge()
    except Exception as error:  # noqa: BLE001 - every exception is a finding
        return verdict_of(error)
    return Verdict(kind=Kind.LEGAL)


def _child(hunt: str, link: Connection, memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    while True:
        try:
            number, seed, given, hardware = link.recv()
        except EOFError:
            return
        begun = time.monotonic()
        choices = Choices(seed, given)
        try:
            case, verdict = tried(hunt, choices, hardware)
        except MemoryError:
            case, verdict = "", Verdict(kind=Kind.CRASHED, detail="MemoryError")
        seconds = time.monotonic() - begun
        link.send(
            asdict(
                Outcome(
                    number=number,
                    kind=verdict.kind.value,
                    detail=verdict.detail,
                    text=verdict.text,
                    case=case,
                    taken=choices.taken if verdict.kind.bad else [],
                    seconds=round(seconds, 3),
                )
            )
        )


class Worker:
    """A child process that takes one case after the other."""

    def __init__(self, hunt: str, limit: float) -> None:
        self._hunt, self._limit = hunt, limit
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.link, theirs = context.Pipe()
        self._process = context.Process(
            target=_child, args=(self._hunt, theirs, _MEMORY), daemon=True
        )
        self._process.start()
        theirs.close()
        self.number: int | None = None
        self._since = 0.0

    def give(
        self, number: int, seed: str | None, given: list[int] | None, *, hardware: bool
    ) -> None:
        """Start a case."""
        self.number, self._since = number, time.monotonic()
        self.link.send((number, seed, given or (), hardware))

    def taken(self) -> Outcome | None:
        """The outcome of the case if it is over, also because it crashed or takes too long."""
        assert self.number is not None
        number = self.number
        try:
            if self.link.poll():
                outcome = Outcome(**self.link.recv())
                self.number = None
                return outcome
            if time.monotonic() - self._since < self._limit + (60 if self._since == 0 else 0):
                return None
            verdict = Kind.HUNG, f"more than {self._limit:g} s"
        except (EOFError, ConnectionError):
            self._process.join(5)
            verdict = Kind.CRASHED, f"the process ended with {self._process.exitcode}"
        self.stop()
        self._start()
        return Outcome(number=number, kind=verdict[0].value, detail=verdict[1], text="", case="")

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def outcomes(
    hunt: str,
    numbers: Iterator[int],
    *,
    seed: int,
    processes: int,
    limit: float,
    hardware_every: int,
) -> Iterator[Outcome]:
    """Judge cases, in any order."""
    workers = [Worker(hunt, limit) for _ in range(processes)]
    busy: list[Worker] = []
    try:
        for worker in workers:
            number = next(numbers, None)
            if number is not None:
                busy.append(worker)
                worker.give(
                    number, f"{seed}:{number}", None, hardware=_share(number, hardware_every)
                )
        while busy:
            wait([worker.link for worker in busy], timeout=1.0)
            for worker in tuple(busy):
                outcome = worker.taken()
                if outcome is None:
                    continue
                yield outcome
                number = next(numbers, None)
                if number is None:
                    busy.remove(worker)
                else:
                    worker.give(
                        number, f"{seed}:{number}", None, hardware=_share(number, hardware_every)
                    )
    finally:
        for worker in workers:
            worker.stop()


def _share(number: int, every: int) -> bool:
    return every > 0 and number % every == every - 1


def shrunk(hunt: str, outcome: Outcome, *, limit: float, hardware: bool, tries: int) -> Outcome:
    """A smaller case that fails in the same way."""
    if not outcome.taken:
        return outcome
    worker = Worker(hunt, limit)
    found = {tuple(outcome.taken): outcome}

    def fails(candidate: list[int]) -> list[int] | None:
        worker.give(outcome.number, None, candidate, hardware=hardware)
        while (again := worker.taken()) is None:
            wait([worker.link], timeout=1.0)
        if (again.kind, again.detail) != (outcome.kind, outcome.detail):
            return None
        found[tuple(again.taken)] = again
        return again.taken

    try:
        best = minimized(outcome.taken, fails, tries)
    finally:
        worker.stop()
    return found[tuple(best)]


def kept(path: Path) -> list[Outcome]:
    """The outcomes of an earlier run; a last line that was cut off is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(Outcome(**json.loads(line)))
        except json.JSONDecodeError:
            continue
    return found


def table(found: list[Outcome]) -> str:
    """Counts by kind, and refusals and failures by reason."""
    kinds = Counter(outcome.kind for outcome in found)
    lines = [", ".join(f"{kinds[kind.value]:,} {kind.value}" for kind in Kind)]
    for kind in (Kind.REFUSED, Kind.WRONG, Kind.CRASHED, Kind.HUNG):
        reasons = Counter(o.detail for o in found if o.kind == kind.value)
        lines += [
            f"  {kind.value:8} {count:6,}  {reason}" for reason, count in reasons.most_common()
        ]
    return "\n".join(lines)
