"""Passes: each returns a new program, verified against the one that it was given."""

from __future__ import annotations

import logging
from collections.abc import Callable
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


def run_pass(program: P, step: Pass[P], verify: Callable[[P, P], None]) -> P:
    """Run a pass; ``verify(after, before)`` raises if the result is not well-formed."""
    _LOGGER.debug("pass %s: %s", step.name, step.description)
    changed = step.run(program)
    verify(changed, program)
    return changed
