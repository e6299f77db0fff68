"""Rendering of errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from t2s.core.errors import InternalError, T2SError, UnsupportedError, UserError
from t2s.core.location import SourceLocation


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "gemm.py"
    path.write_text("C = Func()\n    C.unroll(i)\nC.unroll(j)\n")
    return path


def test_a_message_alone() -> None:
    assert str(UserError("unroll: 'k' is not a loop of 'C'")) == "unroll: 'k' is not a loop of 'C'"


def test_everything_is_shown_in_order(program: Path) -> None:
    error = UserError(
        "unroll: the bound of 'i' is not a constant",
        location=SourceLocation(str(program), 2),
        expected="a constant extent",
        given="n",
        hint="bound(i, 0, 32)",
        notes=[
            (SourceLocation(str(program), 1), "'C' is defined here"),
            (None, "and nowhere else"),
        ],
    )
    assert str(error) == (
        "unroll: the bound of 'i' is not a constant\n"
        f"  --> {program}:2\n"
        "   2 | C.unroll(i)\n"
        "  expected: a constant extent\n"
        "  given:    n\n"
        "  note:     'C' is defined here\n"
        f"  --> {program}:1\n"
        "   1 | C = Func()\n"
        "  note:     and nowhere else\n"
        "  hint:     bound(i, 0, 32)"
    )
    assert error.location == SourceLocation(str(program), 2)
    assert error.notes[1] == (None, "and nowhere else")


def test_a_line_that_cannot_be_read_is_left_out() -> None:
    error = UserError("wrong", location=SourceLocation("<stdin>", 3))
    assert str(error) == "wrong\n  --> <stdin>:3"


def test_the_hierarchy() -> None:
    assert issubclass(UnsupportedError, UserError)
    assert issubclass(UserError, T2SError)
    assert issubclass(InternalError, T2SError)
    assert not issubclass(InternalError, UserError)


def test_an_internal_error_asks_for_a_report() -> None:
    assert str(InternalError("lost a loop")) == (
        "internal error in t2s: lost a loop (please report this)"
    )


SCRIPT = """\
import sys
{before}
import t2s
{after}
"""


def printed(before: str, after: str) -> tuple[int, str]:
    """The exit code and the error output of a program that imports t2s."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before, after=after)],
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stderr


@pytest.mark.slow
def test_an_error_that_nobody_catches_is_shown_without_frames() -> None:
    code, text = printed("", "list(t2s.Func('F'))")
    assert code == 1
    assert text.startswith("error: Func F is not a sequence of values that Python could go through")
    assert "-->" in text
    assert "Traceback" not in text


@pytest.mark.slow
def test_other_errors_keep_their_traceback() -> None:
    for statement in ("1 / 0", "raise t2s.errors.InternalError('lost')"):
        code, text = printed("", statement)
        assert code == 1
        assert text.startswith("Traceback")


@pytest.mark.slow
def test_a_hook_of_the_program_stays() -> None:
    hook = "sys.excepthook = lambda *_: sys.stderr.write('mine')"
    assert printed(hook, "list(t2s.Func('F'))") == (1, "mine")
    assert printed("", f"{hook}; list(t2s.Func('F'))") == (1, "mine")


def test_notebooks_show_no_frames() -> None:
    error = UserError("it is wrong", expected="right")
    assert error._render_traceback_() == ["error: it is wrong", "  expected: right"]
