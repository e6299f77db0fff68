"""Child processes with a time limit: compilers, emulators, simulators, synthesis."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LOG = "log.txt"
"""The file in the folder of a child that has what it prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a child: its exit code (``None`` at the time limit), and all that it printed."""

    code: int | None
    output: str


@contextlib.contextmanager
def written(files: Mapping[str, str]) -> Iterator[Path]:
    """A temporary folder with files, by their paths in it."""
    with tempfile.TemporaryDirectory(prefix="t2s-") as temporary:
        folder = Path(temporary)
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        yield folder


def run_child(
    command: list[str],
    folder: Path,
    time_limit: float,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program in its own process group, which does not outlive this call."""
    log = folder / LOG
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            ended = _wait(child, time_limit)
        finally:
            # before the child is reaped: until then its group's number is not reused
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            code = child.wait()
    return Ended(code=code if ended else None, output=log.read_text(errors="replace"))


def _wait(child: subprocess.Popen[bytes], time_limit: float) -> bool:
    """Wait for the child or the time limit, without reaping; returns whether it ended."""
    descriptor = os.pidfd_open(child.pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], time_limit)
    finally:
        os.close(descriptor)
    return bool(ready)
