"""Running work in a child process, so that a crash does not take the user's process down."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import pickle
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECONDS = 120.0
"""The time limit of a child, in seconds."""

BROKEN = 120
"""The exit status of a child that could not report its result."""

CAME_BACK = 121
"""The exit status of a forked copy that returned from the call of the function that forked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCrash:
    """A child that did not finish: why, and its last message."""

    why: str
    last: str


Say = Callable[[str], None]


def in_child(work: Callable[[Say], Any], seconds: float = SECONDS) -> Any:
    """Run work in a child process; returns its result or a ``ChildCrash``, raises its exceptions.

    The work may report what it is about to do.  Where processes cannot be forked, it runs in this
    process.
    """
    if not hasattr(os, "fork"):
        return work(lambda text: None)
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # the warning about forking with threads
        process = os.fork()
    if process == 0:
        os.close(reading)
        _child(work, writing)
    os.close(writing)
    late = True
    try:
        messages, late = _messages(reading, seconds)
    finally:  # Ctrl-C also ends the child
        if late:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    return _outcome(messages, _how_it_ended(status), late, seconds)


def _outcome(messages: list[tuple[str, Any]], how: str, late: bool, seconds: float) -> Any:
    last = next((text for kind, text in reversed(messages) if kind == "said"), "")
    if late:
        return ChildCrash(why=f"did not end within {seconds:g} seconds", last=last)
    if messages and messages[-1][0] == "value":
        return messages[-1][1]
    if messages and messages[-1][0] == "error":
        raise messages[-1][1]
    return ChildCrash(why=how, last=last)


_SERVE = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from t2s.libraries.child import _serve; _serve(int(sys.argv[1]))"
)


def in_fresh_process(work: Callable[..., Any], *arguments: Any, seconds: float = SECONDS) -> Any:
    """As ``in_child``, but in a new process of Python: GPU drivers do not survive a fork.

    ``work`` is a module-level function; it is called with a function to report by, and the
    arguments, which must be picklable.
    """
    task = pickle.dumps((work, arguments))
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(writing), *sys.path],
        stdin=subprocess.PIPE,
        pass_fds=(writing,),
    )
    os.close(writing)
    late = True
    try:
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(task)
                process.stdin.close()
        messages, late = _messages(reading, seconds)
    finally:
        if late:
            process.kill()
        status = process.wait()
    how = _how_it_ended(-status if status < 0 else status << 8)
    return _outcome(messages, how, late, seconds)


def _serve(writing: int) -> None:
    """The main function of the new process."""
    work, arguments = pickle.load(sys.stdin.buffer)
    _child(lambda say: work(say, *arguments), writing)


def _child(work: Callable[[Say], Any], writing: int) -> None:
    """Run the work, write its outcome to the pipe, and exit without the parent's cleanup.

    The child exits whatever the work does, even to the pipe: it must never run on as the parent.
    """
    status = BROKEN
    try:
        faulthandler.disable()  # the parent reports how the child ended
        link = os.fdopen(writing, "wb")

        def say(text: str) -> None:
            pickle.dump(("said", text), link)
            link.flush()

        link.write(_message(work, say))
        link.flush()
        status = 0
    finally:
        os._exit(status)


def _message(work: Callable[[Say], Any], say: Say) -> bytes:
    """The outcome of the work, pickled."""
    message: tuple[str, Any]
    try:
        message = "value", work(say)
    except BaseException as error:  # noqa: BLE001 - every end is told to the parent
        message = "error", error
    try:
        data = pickle.dumps(message)
        pickle.loads(data)
    except Exception as error:  # noqa: BLE001 - objects of users may be anything
        return pickle.dumps(("error", RuntimeError(f"{message[1]!r}: {error}")))
    return data


def _messages(reading: int, seconds: float) -> tuple[list[tuple[str, Any]], bool]:
    """All messages of a child, and whether it exceeded the time limit."""
    end = time.monotonic() + seconds
    data = bytearray()
    with os.fdopen(reading, "rb", buffering=0) as link:
        while True:
            ready, _, _ = select.select([link], [], [], max(0.0, end - time.monotonic()))
            part = link.read(1 << 16) if ready else b""
            if not part:
                late = not ready
                break
            data += part
    return _unpickled(bytes(data)), late


def _unpickled(data: bytes) -> list[tuple[str, Any]]:
    stream, messages = io.BytesIO(data), []
    while stream.tell() < len(data):
        try:
            messages.append(pickle.load(stream))
        except Exception:  # noqa: BLE001 - the end is missing, or somebody else wrote
            break
    return messages


def copy_came_back(seconds: float = 1.0) -> bool:
    """Whether a new child process is a forked copy of this one that returned from a call.

    A child that is still running is waited for this long.
    """
    end = time.monotonic() + seconds
    while hasattr(os, "fork"):
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False  # there is no child
        if process and os.waitstatus_to_exitcode(status) == CAME_BACK:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.01 if not process else 0)
    return False


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"was killed by {signal.Signals(number).name}"
    if os.WEXITSTATUS(status) == BROKEN:
        return "broke the process, which could not tell how"
    return f"ended the process with status {os.WEXITSTATUS(status)}"
