"""``t2s report`` and ``t2s tensor --report``: the page that they write, and how they fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from t2s.command.main import app
from tests.report.page.reading import shown, strips_of
from tests.sampling import sampled

GEMM = Path(__file__).parent.parent.parent / "examples" / "gemm" / "gemm.py"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_a_design_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("report", GEMM, "--window", "3:9")
    assert result.exit_code == 0, result.output
    assert result.output == "wrote gemm.html\n"
    page = tmp_path / "gemm.html"
    assert [(one.first, one.last) for one in strips_of(page)][-1] == (3, 9)
    assert "gemm.py:" in shown(page)


@sampled("window", ["0:5", "9:5", "1:99999999"], quick=2)
def test_windows_outside_of_the_run(window: str, tmp_path: Path) -> None:
    """The error has no line of the library that calls commands."""
    result = call("report", GEMM, "--window", window, "--out", tmp_path / "page.html")
    assert result.exit_code == 1
    first, _, last = window.partition(":")
    assert result.stderr == (
        "error: a window of the report is outside the run\n"
        "  expected: windows=[(first, last), ...] with cycles of 1 to 8,419, first <= last\n"
        f"  given:    ({first}, {last})\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_names_of_files_with_html_or_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spelled = {"<img src=x onerror=alert(1)>.py": "<img src=x onerror=alert(1)>.py:"}
    spelled["caf\udce9.py"] = "caf\\udce9.py:"
    for name, place in spelled.items():
        Path(name).write_text(GEMM.read_text("utf-8"), encoding="utf-8")
        result = call("report", name, "--out", "page.html")
        assert result.exit_code == 0, result.output
        assert "<img" not in Path("page.html").read_text("utf-8")
        assert place in shown(Path("page.html"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--window", "9"), "--window 9 is not a window\n  expected: FIRST:LAST, two cycles"),
        (("--device", "cpu"), "unknown device cpu\n  expected: one of ideal"),
        (
            ("--out", "no/page.html"),
            "the file 'no/page.html' cannot be written\n  expected: a name in a writable folder "
            "on a disk with free space\n  given:    no such folder",
        ),
    ],
)
def test_errors(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("report", GEMM, *arguments)
    assert result.exit_code == 1
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_tensor(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call(
        "tensor", "y(i)=A(i,j)*x(j)", "-f", "A:ds", "--random", "A", "--random", "x",
        "-d", "i=20", "-d", "j=20", "--out", tmp_path / "out", "--report", page,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert f"wrote {page}\n" in result.output
    text = shown(page)
    assert "scan_A_j" in text
    assert "main.py" not in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cgra", "capstan"])
def test_chips(target: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call(
        "tensor", "y(i)=A(i,j)*x(j)", "-f", "A:ds", "--random", "A", "--random", "x",
        "-d", "i=10", "-d", "j=10", "--out", tmp_path / "out", "--report", page,
        "--target", target,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert f"wrote {page}\n" in result.output
    assert "Where the cycles went" in shown(page)


def test_a_folder_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("tensor", "y(i)=A(i,j)*x(j)", "--report", "no/page.html")
    assert result.exit_code == 1
    assert "the file 'no/page.html' cannot be written" in result.stderr
    assert list(tmp_path.iterdir()) == []
