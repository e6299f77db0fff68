"""Old public names: for one release they still work, with a warning that says the new one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from t2s.core.location import user_depth


def warn_renamed(old: str, new: str) -> None:
    """Warn, at the user's line, that ``old`` will go."""
    warnings.warn(
        f"{old} is now {new}; the old form will be removed in the next release",
        DeprecationWarning,
        stacklevel=user_depth(),
    )


def renamed(old: str, new: str) -> Any:
    """The object ``new``, the dotted name of an attribute of a module, for who says ``old``."""
    warn_renamed(old, new)
    module, _, attribute = new.rpartition(".")
    return getattr(import_module(module), attribute)


def by_name(
    verb: str, inputs: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The inputs of a verb; until release 0.1 some took them as keywords."""
    if not keywords:
        return {} if inputs is None else inputs
    names = list(keywords)
    entries = ", ".join(f'"{name}": ...' for name in names)
    warn_renamed(f"{verb}(design, {names[0]}=...)", f"{verb}(design, {{{entries}}})")
    return {**({} if inputs is None else inputs), **keywords}
