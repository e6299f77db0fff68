"""Ctrl-C comes after what must not be left in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2s.core.sigint import defer_sigint, import_deferring_sigint


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Ctrl-C as in a terminal: jobs in the background ignore it, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits() -> None:
    done = []

    def interrupted() -> None:
        with defer_sigint():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_inside_comes_through() -> None:
    with pytest.raises(ZeroDivisionError), defer_sigint():
        _ = 1 // 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_have_no_signals() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(import_deferring_sigint("json")))
    thread.start()
    thread.join()
    assert found


LIBRARY = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
whole = True
"""


@pytest.mark.slow
def test_an_interrupted_import_is_complete(tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(LIBRARY)
    code = (
        "import sys; from t2s.core.sigint import import_deferring_sigint\n"
        "try: import_deferring_sigint('fragile')\n"
        "except KeyboardInterrupt: print(sys.modules['fragile'].whole)"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "True\n", run.stderr
