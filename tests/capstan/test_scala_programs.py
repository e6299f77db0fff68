"""The ten Spatial programs in a real Scala compiler, against `scala/Dsl.scala`, and run.

Types, names and values are checked by somebody else's compiler then.  Skipped where `scalac` is not
installed (Debian: `apt-get install scala`).
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from t2s.core.types import Float, Int
from t2s.sparse import compile
from tests.capstan.kernels import TEN, random_inputs

SHIM = Path(__file__).parent / "scala" / "Dsl.scala"
TYPES = (Int(32), Float(32))
INPUTS = (((4, 9, 3, 5), 0.4), ((0, 3, 2, 1), 0.5), ((17, 40, 5, 3), 0.2))
"""Extents of i, j, k and l, and a density."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("scalac") is None, reason="scalac is not installed"),
]


@dataclass(frozen=True)
class Call:
    """A program with the files of one input."""

    package: str
    folder: Path
    program: Path

    def text(self) -> str:
        """What runs it: the program reads its files and asserts that its results are equal."""
        given = (self.folder / "arguments.txt").read_text(encoding="utf-8").split()
        name = self.program.read_text(encoding="utf-8").split("@spatial class ")[1].split("(")[0]
        arguments = ", ".join(f'"{word}"' for word in given)
        return f"new {self.package}.{name}().main(Array({arguments}))"


def _emitted(root: Path) -> list[Call]:
    calls = []
    for name in TEN:
        paper = TEN[name]()
        kernel = compile(paper.result, paper.schedule, target="capstan")
        for type in TYPES:
            package = f"{name.lower()}_{type}"
            for seed, (extents, density) in enumerate(INPUTS):
                folder = root / package / str(seed)
                inputs = random_inputs(paper.shapes(*extents), density, seed)
                program, *_ = kernel.emit(folder, inputs=inputs, type=type)
                calls.append(Call(package, folder, program))
    return calls


def _compiled(root: Path, sources: list[Path]) -> subprocess.CompletedProcess[str]:
    classes = root / "classes"
    classes.mkdir()
    command = ["scalac", "-d", str(classes), str(SHIM), *map(str, sources)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _source(root: Path, package: str, text: str) -> Path:
    path = root / f"{package}.scala"
    path.write_text(f"package {package}\n{text}", encoding="utf-8")
    return path


def test_the_ten_are_compiled_and_run(tmp_path: Path) -> None:
    calls = _emitted(tmp_path)
    programs = {call.package: call.program.read_text(encoding="utf-8") for call in calls}
    sources = [_source(tmp_path, package, text) for package, text in programs.items()]
    runs = "".join(
        f'    case "{number}" => spatial.dsl.folder = "{call.folder}"; {call.text()}\n'
        for number, call in enumerate(calls)
    )
    main = tmp_path / "Main.scala"
    main.write_text(
        "object Main {\n  def main(which: Array[String]): Unit = which.foreach {\n"
        f"{runs}  }}\n}}\n",
        encoding="utf-8",
    )
    compiled = _compiled(tmp_path, [*sources, main])
    assert (compiled.returncode, compiled.stderr) == (0, "")
    assert len(calls) == len(TEN) * len(TYPES) * len(INPUTS)

    def run(numbers: list[int]) -> subprocess.CompletedProcess[str]:
        command = ["scala", "-cp", str(tmp_path / "classes"), "Main", *map(str, numbers)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    found = run(list(range(len(calls))))
    assert (found.returncode, found.stderr) == (0, "")

    # the same run finds a value that is wrong
    first = calls[0].folder / "y_vals_host_expected.csv"
    first.write_text(first.read_text(encoding="utf-8").rstrip() + "1\n", encoding="utf-8")
    wrong = run([0])
    assert wrong.returncode != 0
    assert "assertion failed" in wrong.stderr


WRONG = {
    "undeclared": ("val A_pos1 = ", "val A_pos2 = ", "not found: value A_pos1"),
    "words": ("FIFO[T](16)", "FIFO[U32](16)", "required: spatial.dsl.FIFO["),
    "member": ("A_crd1.deq", "A_crd1.pop", "value pop is not a member of spatial.dsl.FIFO"),
}


def test_the_compiler_finds_what_is_wrong(tmp_path: Path) -> None:
    paper = TEN["SpMV"]()
    text = compile(paper.result, paper.schedule, target="capstan").spatial()
    sources = []
    for name, (right, wrong, _) in WRONG.items():
        assert right in text
        sources.append(_source(tmp_path, name, text.replace(right, wrong)))
    compiled = _compiled(tmp_path, sources)
    assert compiled.returncode != 0
    for name, (_, _, message) in WRONG.items():
        assert f"{name}.scala" in compiled.stderr
        assert message in compiled.stderr
