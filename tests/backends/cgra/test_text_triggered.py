"""``t2s.triggered`` and ``t2s tia``: what users write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import t2s
from t2s import triggered
from t2s.command.main import app
from tests.sources import ROOT

STORE = """# stores 42
<pe_0>
when %p == 00000000: mov %o2.0, $5; set %p = 00000001;
when %p == 00000001: mov %o3.0, $42; set %p = 00000010;
when %p == 00000010: halt;
"""
HALTS = "<a>\nwhen %p == X: halt;\n"


def test_from_text_to_words_and_back() -> None:
    program = t2s.triggered.assemble(STORE)
    assert repr(program) == "<TriggeredProgram: 1 elements, 3 instructions>"
    assert len(program.words) == 72
    assert program.hex.count("\n") == 72
    assert len(program.binary) == 288
    for code in (program.words, list(program.words), program.hex, program.binary):
        assert triggered.disassemble(code) == program
    assert triggered.assemble(program.text) == program
    assert str(program) == program.text


def test_files_and_fabrics(tmp_path: Path) -> None:
    path = tmp_path / "store.tia"
    path.write_text(STORE, encoding="utf-8")
    assert triggered.assemble(path) == t2s.triggered.assemble(STORE)
    (tmp_path / "store.bin").write_bytes(t2s.triggered.assemble(STORE).binary)
    assert triggered.disassemble(tmp_path / "store.bin") == t2s.triggered.assemble(STORE)
    assert t2s.triggered.assemble(STORE, "cgra8").core is triggered.EXTENDED_CORE
    assert len(t2s.triggered.assemble(STORE, triggered.EXTENDED_CORE).words) == 16 + 16 * 5


def test_a_fragment_is_assembled_where_that_is_asked_for() -> None:
    line = "<a>\nwhen %p == XXXXXXXX with %i3.1: fmac %o2.0, %r1, %i3, %r2;"
    with pytest.raises(t2s.errors.UserError, match="no halt is reachable"):
        t2s.triggered.assemble(line)
    words = t2s.triggered.assemble(line, check=False).words[8:12]
    assert words == (0, 0, 0xDDA65480, 0x80004127)


def test_runs_and_their_memory() -> None:
    result = triggered.run(STORE)
    assert result.cycles == 3
    assert result.memory.dtype == np.uint32
    assert result.memory.shape == (32_786,)
    assert result.memory[5] == 42
    assert result.trace is None
    small = triggered.run(t2s.triggered.assemble(STORE), [1, -1], words=6, trace=True)
    assert small.memory.tolist() == [1, 0xFFFFFFFF, 0, 0, 0, 42]
    assert small.trace is not None
    assert small.trace.tolist() == [[0], [1], [2], [-1]]


@pytest.mark.parametrize(
    ("count", "shape"),
    [(4, {}), (4, {"rows": 1}), (6, {"columns": 3}), (1, {"rows": 1, "columns": 1})],
)
def test_shapes_of_arrays(count: int, shape: dict[str, int]) -> None:
    assert triggered.run(HALTS * count, **shape).retired == (1,) * count  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "shape", "text"),
    [
        (3, {}, "3 programs do not fill an array of 2 rows and 2 columns"),
        (3, {"rows": 2}, "3 programs do not fill an array of 2 rows and 2 columns"),
        (2, {"rows": 2, "columns": 2}, "2 programs, 4 elements"),
        (2, {"rows": 0}, "rows must be a positive integer"),
        (2, {"rows": 2, "columns": 1.5}, "columns must be a positive integer"),
        (1, {"max_cycles": 0}, "max_cycles must be a positive integer"),
        (1, {"words": True}, "words must be a positive integer"),
        (1, {"memory": [0.5]}, "the memory is not a list of words"),
        (1, {"memory": [[1]]}, "the memory is not a list of words"),
        (1, {"memory": [[1], [1, 2]]}, "the memory is not a list of words"),
        (1, {"memory": [1 << 32]}, "that fit into 32 bits"),
        (1, {"memory": [1 << 99]}, "that fit into 32 bits"),
    ],
)
def test_arguments_of_runs_are_checked(count: int, shape: dict[str, Any], text: str) -> None:
    with pytest.raises(t2s.errors.UserError) as caught:
        triggered.run(HALTS * count, **shape)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: t2s.triggered.assemble(5), "not the text of a program"),  # type: ignore[arg-type]
        (
            lambda: t2s.triggered.assemble(Path("/nowhere/at/all")),
            "'/nowhere/at/all' cannot be read",
        ),
        (
            lambda: t2s.triggered.assemble("sum.tia"),
            "hint:     pathlib.Path('sum.tia') names the file",
        ),
        (lambda: t2s.triggered.assemble(HALTS, "cgra9"), "unknown core"),
        (lambda: triggered.disassemble([1.5]), "the code has elements that are not words"),
        (lambda: triggered.disassemble([-1]), "the code has elements that are not words"),
        (lambda: triggered.disassemble("zz"), "the file holds no words"),
        (
            lambda: triggered.run(t2s.triggered.assemble(HALTS, "cgra8")),
            "profile B does not run alone",
        ),
    ],
)
def test_other_arguments_are_checked(call: Any, text: str) -> None:
    with pytest.raises(t2s.errors.UserError) as caught:
        call()
    assert text in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tia").write_bytes(b"<a>\xff")
    with pytest.raises(t2s.errors.UserError, match="is not a text") as caught:
        t2s.triggered.assemble(tmp_path / "a.tia")
    assert "byte 3 is 0xff" in str(caught.value)


@pytest.mark.slow
def test_importing_t2s_does_not_import_it() -> None:
    program = (
        "import sys, t2s\n"
        "assert not [name for name in sys.modules if 'cgra_tia' in name]\n"
        "assert t2s.triggered.run and t2s.triggered.assemble is t2s.triggered.assemble\n"
        "try: t2s.nothing\nexcept AttributeError: pass\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["tia", *map(str, arguments)])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.tia"
    path.write_text(STORE, encoding="utf-8")
    return path


def test_the_command_runs(store: Path, tmp_path: Path) -> None:
    result = command("run", store)
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "3 cycles\nelement      retired  untriggered\nPE 0 <pe_0>        3            0\n\n"
        "words of the memory that changed: 1\n  [5] 0 -> 42\n"
    )
    (tmp_path / "m.txt").write_text("1, -2 0x10\n007", encoding="utf-8")
    out = tmp_path / "out.npy"
    result = command(
        "run", store, "--memory", tmp_path / "m.txt", "--words", "8", "--trace", "--out", out
    )
    assert result.stdout.startswith("0:   0\n1:   1\n2:   2\n3:   -\n\n3 cycles\n")
    assert np.load(out).tolist() == [1, 0xFFFFFFFE, 16, 7, 0, 42, 0, 0]
    text = tmp_path / "out.txt"
    assert command("run", store, "--memory", out, "--out", text, "--words", "3").exit_code == 0
    words = list(map(int, text.read_text(encoding="utf-8").split()))
    assert words == [1, 4294967294, 16, 7, 0, 42, 0, 0]


def test_the_command_assembles_and_disassembles(store: Path, tmp_path: Path) -> None:
    digits, words = tmp_path / "a.hex", tmp_path / "a.bin"
    result = command("assemble", store, "--hex", digits, "--binary", words)
    assert result.stdout == f"wrote {digits}\nwrote {words}\n"
    assert command("assemble", store).stdout == digits.read_text(encoding="utf-8")
    expected = t2s.triggered.assemble(STORE).text
    assert command("disassemble", digits).stdout == expected
    assert command("disassemble", words).stdout == expected
    assert command("assemble", store, "--profile", "B").stdout.count("\n") == 16 + 16 * 5


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "missing.tia"], "error: 'missing.tia' cannot be read\n  expected: a file"),
        (["run", "bad.tia"], "error: in PE 0 <a>, line 2, column 15: unknown operator 'hlt'"),
        (["run", "bad.tia"], "   2 | when %p == X: hlt;\n"),
        (["run", "stuck.tia"], "error: the program is stuck in cycle 0"),
        (["run", "long.tia", "--max-cycles", "9"], "had not ended after cycle 9, the limit"),
        (["run", "good.tia", "--rows", "2"], "error: 1 programs do not fill an array of 2 rows"),
        (
            ["run", "good.tia", "--memory", "bad.txt"],
            "error: bad.txt has a word that is not a number",
        ),
        (["run", "good.tia", "--memory", "bad.npy"], "error: bad.npy holds no array"),
        (["run", "good.tia", "--memory", "none.txt"], "error: "),
        (["assemble", "good.tia", "--profile", "C"], "error: unknown profile C"),
        (["assemble", "odd.tia", "--strict"], "instruction 1 can never fire"),
        (["disassemble", "bad.txt"], "error: the file holds no words"),
    ],
)
def test_the_command_fails_with_an_error(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "good.tia": HALTS,
        "bad.tia": "<a>\nwhen %p == X: hlt;\n",
        "odd.tia": HALTS + "when %p == X: nop;\n",
        "stuck.tia": "<a>\nwhen %p == X with %i0.0: halt;\n",
        "long.tia": "<a>\nwhen %p == 00: eq %p1, %r0, $1; set %p = Z1;\n"
        "when %p == 01: nop; set %p = 00;\nwhen %p == 11: halt;\n",
        "bad.txt": "1 2 x",
        "bad.npy": "nothing",
    }.items():
        Path(name).write_text(content, encoding="utf-8")
    result = command(*arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert text in result.stderr
