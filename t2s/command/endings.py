"""How commands end: with 0, with 1 after an error, with 130 after Ctrl-C."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from t2s.core.errors import T2SError
from t2s.simulator.report.cut_short import RunInterrupted

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""

_SNIPPET = re.compile(r"  --> |   \d+ \| ")


@contextmanager
def exit_codes(json: bool = False) -> Iterator[None]:
    """Errors and Ctrl-C in the block end the command; standard output stays empty for ``json``."""
    try:
        yield
    except RunInterrupted as interrupt:
        typer.echo(str(interrupt), err=json)
        raise typer.Exit(code=INTERRUPTED) from None
    except (T2SError, OSError) as error:
        raise failed(str(error)) from None


def failed(said: str) -> typer.Exit:
    """Print what is wrong; the exit that a command ends with."""
    text = f"[bold red]error:[/] {escape(said)}"
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)
    return typer.Exit(code=1)


def without_lines(text: str) -> str:
    """An error without the line of Python that it shows: here there is only the command."""
    return "\n".join(line for line in text.splitlines() if not _SNIPPET.match(line))
