"""Defer Ctrl-C while something is done that cannot be left in the middle."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any


@contextmanager
def defer_sigint() -> Iterator[None]:
    """Let a Ctrl-C take effect only after the block.

    For importing large libraries and compiling: interrupted there, they leave modules and locks
    behind that fail, or abort the process, when they are used again.  Python handles signals in
    its main thread alone, so in others nothing has to be done.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if waiting:
        handler(*waiting[0])


def import_deferring_sigint(name: str) -> Any:
    """A module that is imported where it is first needed, as a whole or not at all."""
    with defer_sigint():
        return import_module(name)
