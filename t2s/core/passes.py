"""Passes and pipelines: each pass returns a new program, verified before and after."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

P = TypeVar("P")

_LOGGER = logging.getLogger("t2s.passes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass(Generic[P]):
    """A named rewriting of a whole program."""

    name: str
    description: str
    run: Callable[[P], P]


def run_pipeline(program: P, passes: Sequence[Pass[P]], verify: Callable[[P], None]) -> P:
    """Run the passes in order; ``verify`` raises if a program is not well-formed."""
    verify(program)
    for step in passes:
        _LOGGER.debug("pass %s: %s", step.name, step.description)
        program = step.run(program)
        verify(program)
    return program
