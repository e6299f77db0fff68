"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Iterable

from t2s.core.errors import UserError
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.presets import IDEAL, MEMORIES

DEFAULT_DEVICE = "arria10"
"""What design files run on, unless ``--device`` says otherwise."""

ENGINES = ("native", "array", "table", "python")


def device_names(incomplete: str) -> list[str]:
    """The devices whose names begin so, for the completion of a shell."""
    return [name for name in DEVICES if name.startswith(incomplete)]


def memory_names(incomplete: str) -> list[str]:
    """The memories whose names begin so."""
    return [name for name in (IDEAL, *MEMORIES) if name.startswith(incomplete)]


def engine_names(incomplete: str) -> list[str]:
    """The engines whose names begin so."""
    return [name for name in ENGINES if name.startswith(incomplete)]


def constants_of(given: list[str]) -> dict[str, int]:
    """The values of ``--set NAME=VALUE`` options."""
    constants: dict[str, int] = {}
    for text in given:
        name, _, value = text.partition("=")
        if not (name.isidentifier() and value.lstrip("-").isdecimal()):
            raise UserError(f"--set {text} gives no value", expected="--set NAME=INTEGER")
        constants[name] = int(value)
    return constants


def check_choice(option: str, given: str, choices: Iterable[str]) -> None:
    """Raise ``UserError`` unless what is given is one of the choices."""
    if given not in choices:
        raise UserError(f"there is no {option} {given}", expected=f"one of {', '.join(choices)}")
