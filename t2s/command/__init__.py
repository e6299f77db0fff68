"""The ``t2s`` command; Ctrl-C ends it quietly while it is imported, too."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of the command."""
    try:
        from t2s.command.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # as of a program that SIGINT has ended
    run()
