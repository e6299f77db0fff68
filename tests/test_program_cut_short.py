"""Runs of programs that are cut short: what is known of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import t2s
from t2s import sparse
from t2s.driver.program_cut_short import ProgramInterrupted, ProgramLimitError
from t2s.driver.statement_program import Program
from t2s.simulator.report.errors import CycleLimitError

TEXT = """
    T(i,j) = A(i,k)*X(k,j)
    H(i,h) = T(i,j)*W(j,h)
    Y(i,h) = relu(H(i,h))
"""

LONG = """
import signal
import numpy as np
from t2s import sparse

# jobs in the background of a shell ignore the signal, and so do their children
signal.signal(signal.SIGINT, signal.default_int_handler)

program = sparse.program(
    "T(i,j) = A(i,k)*X(k,j)\\nY(i,j) = T(i,k)*X(k,j)", formats={"X": "ds"}
)
small = np.ones((4, 4))
program.simulate({"A": small, "X": small})
some = np.random.default_rng(0).random((2000, 2000)) < 0.5
large = sparse.tensor(some.astype(np.float32), "ds")
first = np.ones((200, 2000), np.float32)
print("ready", flush=True)
try:
    program.simulate({"A": first, "X": large})
except KeyboardInterrupt as error:
    print(type(error).__name__)
    print(error)
    print([run.name for run in error.done.runs])
"""


def small() -> tuple[Program, dict[str, np.ndarray]]:
    program = sparse.program(TEXT)
    return program, {"A": np.ones((4, 5)), "X": np.ones((5, 6)), "W": np.ones((6, 3))}


def test_a_limit_is_for_all_graphs() -> None:
    program, inputs = small()
    result = program.simulate(inputs)
    assert program.simulate(inputs, max_cycles=result.cycles).cycles == result.cycles
    assert t2s.cycles(program, inputs, max_cycles=result.cycles) == result.cycles
    first, second = (run.cycles for run in result.runs[:2])
    with pytest.raises(ProgramLimitError) as caught:
        program.simulate(inputs, max_cycles=result.cycles - 1)
    assert isinstance(caught.value, CycleLimitError)
    assert str(caught.value).startswith(
        f"Y had not ended after {result.cycles - 1} cycles, the limit"
    )
    assert f"cut short in the graph of Y; T in {first}, H in {second} had ended" in str(
        caught.value
    )
    assert [run.name for run in caught.value.done.runs] == ["T", "H"]
    assert np.array_equal(caught.value.done["H"], result["H"])
    assert caught.value.done.cycles == first + second
    with pytest.raises(ProgramLimitError, match="graph of H; T in"):
        t2s.cycles(program, inputs, max_cycles=first + second - 1)
    with pytest.raises(ProgramLimitError, match="no statement had ended"):
        program.simulate(inputs, max_cycles=1)


def test_equal_graphs_count_for_a_limit() -> None:
    program = sparse.program("T(i,j) = A(i,k)*X(k,j)\nY(i,j) = T(i,k)*X(k,j)")
    inputs = {"A": np.ones((3, 3)), "X": np.ones((3, 3))}
    result = program.simulate(inputs)
    assert result.equal == {"Y": "T"}
    with pytest.raises(ProgramLimitError, match="graph of Y; T in") as caught:
        program.simulate(inputs, max_cycles=result.cycles - 1)
    assert [run.name for run in caught.value.done.runs] == ["T"]


def test_stages_of_a_statement_share_a_limit() -> None:
    assignment = sparse.parse("y(i) = max(sum(j, A(i,j)*x(j)), 0)*2")
    inputs = {"A": np.ones((4, 5)), "x": np.ones(5)}
    result = sparse.simulate(assignment, inputs)
    limit = result.cycles
    assert t2s.simulate(assignment, inputs, max_cycles=limit).cycles == limit
    with pytest.raises(CycleLimitError):
        t2s.simulate(assignment, inputs, max_cycles=limit - 1)


def test_an_interrupted_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    program, inputs = small()
    result = program.simulate(inputs)
    from t2s.simulator import run as simulator

    simulate, count = simulator.simulate, iter(range(10))

    def interrupted(*arguments: object, **keywords: object) -> object:
        if next(count) == 1:
            raise KeyboardInterrupt
        return simulate(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(simulator, "simulate", interrupted)
    with pytest.raises(ProgramInterrupted, match="Y was interrupted in the graph of H; T in") as e:
        program.simulate(inputs)
    assert [run.name for run in e.value.done.runs] == ["T"]
    assert np.array_equal(e.value.done["T"], result["T"])
    assert e.value.result is None


@pytest.mark.skipif(sys.platform == "win32", reason="a signal of POSIX")
def test_ctrl_c_in_a_long_run(tmp_path: Path) -> None:
    """Each statement takes 200 million products of single elements at random coordinates."""
    script = tmp_path / "long.py"
    script.write_text(LONG)
    child = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    os.kill(child.pid, signal.SIGINT)
    began = time.monotonic()
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    kind, text, names = output.splitlines()
    assert kind == "ProgramInterrupted"
    assert text.startswith("Y was interrupted in the graph of ")
    assert names in ("[]", "['T']")
    assert time.monotonic() - began < 5, "not within a second, also on a busy machine"
