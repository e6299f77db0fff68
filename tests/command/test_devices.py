"""``t2s devices``, ``--version``, the end of ``t2s run``, and what a shell completes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import t2s
from t2s.command.main import app
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import MEMORIES

DESIGN = """\
import t2s
from t2s import Func, ImageParam, Int, Param, Var

A, n = ImageParam(Int(32), 1, name="A"), Param(Int(32), name="n")
i = Var("i")
first, second = t2s.funcs("first second")
first[i] = A[i] + 1
second[i] = A[i] + 2
first.bound(i, 0, n)
second.bound(i, 0, n)
"""


def call(*arguments: object, **environment: str) -> Result:
    words = [str(one) for one in arguments]
    return CliRunner().invoke(app, words, env=environment, prog_name="t2s")


def completed(line: str) -> list[str]:
    """What bash is offered behind a line."""
    words = line.split(" ")
    result = call(_T2S_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    return result.stdout.split()


def test_devices_and_memories() -> None:
    result = call("devices")
    assert result.exit_code == 0
    rows = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    for name, device in DEVICES.items():
        assert f"{device.clock_hz / 1e6:g} MHz" in rows[name]
        if device.dsp_blocks is not None:
            assert f"{device.dsp_blocks:,}" in rows[name]
        assert f"{name}: {device.description[:40]}" in result.stdout
    for name, dram in MEMORIES.items():
        assert f"{float(dram.peak_bytes_per_second) / 1e9:g} GB/s" in rows[name]
    assert call("devices").stdout == result.stdout


def test_the_version() -> None:
    result = call("--version")
    assert (result.exit_code, result.stdout) == (0, f"t2s {t2s.__version__}\n")


def test_a_run_ends_with_the_command_for_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a design.py").write_text(DESIGN, encoding="utf-8")
    options = ("--func", "first", "--device", "ideal", "--set", "n=8", "--seed", "3")
    last = call("run", "a design.py", *options).stdout.splitlines()[-1]
    assert last == (
        "pictures of this run: t2s report 'a design.py' --func first --device ideal --seed 3 "
        "--set n=8"
    )
    command = shlex.split(last.partition(": ")[2])
    result = call(*command[1:])
    assert (result.exit_code, result.stdout) == (0, "wrote a design.html\n")
    last = call("run", "a design.py", "--func", "first", "--set", "n=8").stdout.splitlines()[-1]
    assert last.endswith("t2s report 'a design.py' --func first --set n=8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_shell_that_completes(tmp_path: Path) -> None:
    """What ``--install-completion`` writes makes a new shell complete the name of a device."""
    program = tmp_path / "t2s"
    program.write_text(
        f"#!{sys.executable}\nfrom t2s.command.main import main\n\nmain()\n", encoding="utf-8"
    )
    program.chmod(0o755)
    script = (
        "t2s --install-completion bash && . ~/.bashrc\n"
        "COMP_WORDS=(t2s run --device st) COMP_CWORD=3\n"
        '$(complete -p t2s | grep -o "[^ ]*completion[^ ]*") t2s\n'
        'echo "${COMPREPLY[@]}"\n'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    roots = os.pathsep.join(one for one in sys.path if one)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path, "PYTHONPATH": roots}
    command = ["bash", "-c", script]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert made.stdout.splitlines()[-1:] == ["stratix10"], made.stderr
    assert (tmp_path / ".bashrc").exists()


def test_what_a_shell_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    # which shell it is would be that of the parent process, and tests need not have one
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    assert {"run", "report", "compare", "tensor", "devices"} <= set(completed("t2s "))
    assert completed("t2s run --device st") == ["stratix10"]
    assert completed("t2s compare --memory hbm") == ["hbm2e", "hbm2e-1800"]
    assert completed("t2s tensor --engine py") == ["python"]
    assert "complete_bash" in call("--show-completion").stdout
