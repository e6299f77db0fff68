"""Old public names: for one release they still work, with a warning that says the new one."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def renamed(old: str, new: str) -> Any:
    """The object with the public name ``new``, for code that calls it ``old``, with a warning.

    Both are dotted names, ``new`` that of an attribute of a module.  It is to be called by a
    function of the library whose caller is the user.
    """
    warnings.warn(
        f"{old} is now {new}; the old name will be removed in the next release",
        DeprecationWarning,
        stacklevel=3,
    )
    module, _, attribute = new.rpartition(".")
    return getattr(import_module(module), attribute)
