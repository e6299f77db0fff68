"""Programs that check their results: files, the assertions, and what breaks them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.stardust.spatial_parser import parse_spatial
from t2s.backends.capstan.emit import spatial_program
from t2s.backends.capstan.spatial_ast import (
    SpatialCall,
    SpatialConversion,
    SpatialEffect,
    SpatialName,
    SpatialNumber,
    SpatialOperation,
    SpatialText,
)
from t2s.core.types import Float, Int, Type
from t2s.patterns.interpret import interpret_patterns
from t2s.sparse import CapstanKernel, compile
from tests.capstan.kernels import TEN, random_inputs
from tests.capstan.spatial_reader import NAMES_OF_TYPES, read_spatial
from tests.sampling import sampled


def _kernel(name: str) -> CapstanKernel:
    paper = TEN[name]()
    return compile(paper.result, paper.schedule, target="capstan")


def _words(folder: Path, file: str, numbers: np.dtype) -> np.ndarray:
    return np.array((folder / file).read_text(encoding="utf-8").split(), numbers)


def _failures(folder: Path, text: str) -> tuple[int, list[str]]:
    """The assertions of a text, run on the files of a folder as its host part says."""
    tree = parse_spatial(text)
    program = read_spatial(tree)
    given = (folder / "arguments.txt").read_text(encoding="utf-8").split()
    arguments = {
        one.name: one.type.numpy.type(word)
        for one, word in zip(program.arguments, given, strict=False)
    }
    arrays = {
        memory.name: _words(folder, f"{memory.name}.csv", memory.type.numpy)
        for memory in program.memories
        if (folder / f"{memory.name}.csv").is_file()
    }
    outcome = interpret_patterns(program, arrays, arguments)
    scalars = iter(outcome.scalars.values())
    count, wrong = 0, []
    for statement in tree.after:
        match statement:
            case SpatialEffect(call=SpatialCall(function="assert", arguments=(same,))):
                count += 1
            case _:
                continue
        match same:
            case SpatialOperation(
                operator="==",
                left=SpatialCall(function="getMem", arguments=(SpatialName(name=name),)),
                right=SpatialCall(
                    function="loadCSV1D", type=str() as type, arguments=(SpatialText(text=file),)
                ),
            ):
                kind = NAMES_OF_TYPES[tree.element if type == "T" else type].numpy
                found, expected = outcome.memories[name], _words(folder, file, kind)
            case SpatialOperation(
                operator="==",
                left=SpatialCall(function="getArg", arguments=(SpatialName(name=name),)),
                right=SpatialConversion(
                    value=SpatialCall(
                        function="args", arguments=(SpatialNumber(value=int() as number),)
                    ),
                    type="T",
                ),
            ):
                found = np.asarray(next(scalars))
                expected = np.asarray(given[number]).astype(found.dtype)
            case _:
                raise AssertionError(f"an assertion of another form: {same}")
        if not np.array_equal(found, expected):
            wrong.append(name)
    return count, wrong


@pytest.mark.parametrize("type", [Int(32), Float(32)], ids=str)
@sampled("name", TEN, quick=2)
def test_a_program_checks_its_results(name: str, type: Type, tmp_path: Path) -> None:
    kernel = _kernel(name)
    inputs = random_inputs(TEN[name]().shapes(4, 9, 3, 5), 0.4, 1)
    program, *files = kernel.emit(tmp_path, inputs=inputs, type=type)
    text = program.read_text(encoding="utf-8")
    assert parse_spatial(text) == spatial_program(kernel.patterns(type), checked=True)
    count, wrong = _failures(tmp_path, text)
    assert count == text.count("assert(") > 0
    assert wrong == []
    expected = [path for path in files if path.stem.endswith("_expected")]
    for path in expected or [tmp_path / "arguments.txt"]:
        path.write_text(f"{path.read_text(encoding='utf-8').rstrip()}1", encoding="utf-8")
    assert len(_failures(tmp_path, text)[1]) == count


def test_without_inputs_nothing_is_checked(tmp_path: Path) -> None:
    (path,) = _kernel("SpMV").emit(tmp_path)
    assert "assert" not in path.read_text(encoding="utf-8")


def test_the_files_of_a_program(tmp_path: Path) -> None:
    matrix = np.array([[0, 2], [0, 0], [3, 4]], np.int32)
    paths = _kernel("SpMV").emit(tmp_path, inputs={"A": matrix, "x": np.array([1, 5], np.int32)})
    files = {path.name: path.read_text(encoding="utf-8").split() for path in paths[1:]}
    assert files == {
        "arguments.txt": ["3", "2", "3"],
        "A_pos1_host.csv": ["0", "1", "1", "3"],
        "A_crd1_host.csv": ["1", "0", "1"],
        "A_vals_host.csv": ["2", "3", "4"],
        "x_vals_host.csv": ["1", "5"],
        "y_vals_host_expected.csv": ["10", "0", "23"],
    }
