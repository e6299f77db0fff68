"""Where a call was made: the innermost frame outside the package."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path

import t2s
from t2s.core.location import SourceLocation, user_location

PACKAGE = Path(t2s.__file__).parent


def _function_in(file: Path) -> Callable[[Callable[[], SourceLocation]], SourceLocation]:
    """``call(f)`` that runs ``f()`` from a frame whose code claims to lie in ``file``."""
    scope: dict[str, Callable[[Callable[[], SourceLocation]], SourceLocation]] = {}
    exec(compile("def call(function):\n    return function()\n", str(file), "exec"), scope)
    return scope["call"]


def _here() -> SourceLocation:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return SourceLocation(__file__, frame.f_back.f_lineno)


def test_a_direct_call() -> None:
    assert (user_location(), 0)[0] == _here()


def test_frames_of_the_package_are_skipped() -> None:
    inner = _function_in(PACKAGE / "func" / "made_up.py")
    outer = _function_in(PACKAGE / "made_up.py")
    assert (inner(user_location), 0)[0] == _here()

    def nested() -> SourceLocation:
        return inner(user_location)

    assert outer(nested) == SourceLocation(__file__, nested.__code__.co_firstlineno + 1)


def test_a_neighbor_with_a_longer_name_is_the_users() -> None:
    file = PACKAGE.with_name("t2s_designs") / "gemm.py"
    assert _function_in(file)(user_location) == SourceLocation(str(file), 2)


def test_text_and_source_line(tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text("\n    C.unroll(i)   \n")
    location = SourceLocation(str(path), 2)
    assert str(location) == f"{tmp_path}{os.sep}user.py:2"
    assert location.source_line == "C.unroll(i)"
    assert SourceLocation(str(path), 99).source_line == ""
