"""Spatial text: golden files, the parser, and what the parsed text computes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import t2s
from benchmarks.stardust.spatial_parser import parse_spatial
from t2s.backends.capstan.emit import emit_spatial, spatial_program
from t2s.backends.capstan.spatial_ast import print_spatial
from t2s.backends.capstan.spelling import DSL, SCALA
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.types import Float, Int, Type
from t2s.patterns.interpret import PatternOutcome, interpret_patterns
from t2s.patterns.ir import PatternProgram
from t2s.patterns.verify import verify_patterns
from t2s.sparse import CapstanKernel, Schedule, Tensor, compile, csr, dense
from t2s.sparse_repr.stardust.host import host_arguments, host_arrays
from tests.capstan.kernels import TEN, random_inputs
from tests.capstan.random_kernels import RandomKernel, random_kernels
from tests.capstan.spatial_reader import read_spatial
from tests.conftest import Golden
from tests.sampling import sampled

LINES = {
    "SpMV": 44,
    "Plus3": 91,
    "SDDMM": 62,
    "MatTransMul": 50,
    "Residual": 48,
    "TTV": 73,
    "TTM": 83,
    "MTTKRP": 86,
    "InnerProd": 115,
    "Plus2": 163,
}
"""Lines of Spatial in [Stardust, Table 4]; those programs do not set and store all arrays."""

few = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def _ten(name: str) -> CapstanKernel:
    kernel = TEN[name]()
    made = compile(kernel.result, kernel.schedule, target="capstan")
    assert isinstance(made, CapstanKernel)
    return made


def _text(program: PatternProgram) -> str:
    (text,) = emit_spatial(program).values()
    return text


@pytest.mark.parametrize("name", TEN)
def test_golden_files(name: str, golden: Golden) -> None:
    text = _ten(name).spatial()
    golden(f"spatial/{name.lower()}.scala", text)
    lines = len([line for line in text.splitlines() if line.strip()])
    assert 0.5 * LINES[name] <= lines <= 1.8 * LINES[name]


@pytest.mark.parametrize("type", [Int(32), Float(32)], ids=str)
@pytest.mark.parametrize("name", TEN)
def test_a_parsed_text_is_the_tree(name: str, type: Type) -> None:
    program = _ten(name).patterns(type)
    tree = spatial_program(program)
    assert parse_spatial(print_spatial(tree)) == tree
    assert _text(program) == _text(program)


def same_text(kernel: CapstanKernel, inputs: dict[str, np.ndarray], type: Type) -> None:
    """The program and its parsed text leave the same words in all memories off chip."""
    binding = kernel.bind(inputs, type)
    lowered = kernel.lowered(type)
    program = lowered.program
    text = _text(program)
    tree = parse_spatial(text)
    assert tree == spatial_program(program)
    read = read_spatial(tree)
    verify_patterns(read)
    given = host_arguments(lowered, binding)
    arrays = host_arrays(program, binding)
    renamed = dict(zip(_far(program), _far(read), strict=True))
    theirs = {renamed[name]: array for name, array in arrays.items()}
    words = dict(
        zip((a.name for a in program.arguments), (a.name for a in read.arguments), strict=True)
    )
    ours = interpret_patterns(program, arrays, given)
    other = interpret_patterns(read, theirs, {words[name]: value for name, value in given.items()})
    _equal(ours, other)


def _far(program: PatternProgram) -> list[str]:
    """The arrays that the host sees, in order."""
    return [memory.name for memory in program.memories if memory.alias is None]


def _equal(ours: PatternOutcome, other: PatternOutcome) -> None:
    for one, two in zip(ours.memories.values(), other.memories.values(), strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in zip(ours.scalars.values(), other.scalars.values(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("type", [Int(32), Float(32)], ids=str)
@sampled("name", TEN, quick=2)
def test_a_parsed_text_computes_thesame_text(name: str, type: Type) -> None:
    kernel = _ten(name)
    for seed, sizes in enumerate([(4, 9, 3, 5), (0, 3, 2, 1), (1, 1, 1, 1), (5, 0, 4, 2)]):
        same_text(kernel, random_inputs(TEN[name]().shapes(*sizes), 0.4, seed), type)


def _random(kernel: RandomKernel) -> None:
    try:
        compiled = compile(kernel.result, kernel.schedule, target="capstan")
    except UserError:
        return
    assert isinstance(compiled, CapstanKernel)
    same_text(compiled, kernel.inputs, Int(32))


@few
@given(random_kernels())
def test_random_programs_are_read_back(kernel: RandomKernel) -> None:
    _random(kernel)


@pytest.mark.slow
@settings(few, max_examples=500)
@given(random_kernels())
def test_many_random_programs_are_read_back(kernel: RandomKernel) -> None:
    _random(kernel)


def test_names_of_scala_get_others() -> None:
    a, x, y = Tensor("object", csr), Tensor("val", dense(1)), Tensor("Foreach", dense(1))
    i, j = t2s.Var("type"), t2s.Var("SRAM")
    y[i] = a[i, j] * x[j]
    kernel = compile(y, target="capstan")
    assert isinstance(kernel, CapstanKernel)
    tree = spatial_program(kernel.patterns())
    declared = {name for name, _ in tree.parameters}
    names = {statement.name for statement in tree.before if hasattr(statement, "name")}
    assert not (declared | names) & (SCALA | DSL)
    assert "Foreach(type_size.value by 1 par bp) { type_2 =>" in kernel.spatial()
    inputs = {"object": np.eye(3, dtype=np.int32), "val": np.arange(3, dtype=np.int32)}
    same_text(kernel, inputs, Int(32))


def test_renaming_changes_names_alone() -> None:
    texts = []
    for names in (("A", "x", "y", "i", "j"), ("M", "v", "w", "r", "c")):
        a, x, y = Tensor(names[0], csr), Tensor(names[1], dense(1)), Tensor(names[2], dense(1))
        i, j = t2s.Var(names[3]), t2s.Var(names[4])
        y[i] = a[i, j] * x[j]
        texts.append(compile(y, Schedule(), target="capstan").spatial())
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    assert texts[0].count("Reduce") == texts[1].count("Reduce")
    assert texts[0].count("barrierRead") == texts[1].count("barrierRead")


def test_files(tmp_path: Path) -> None:
    kernel = _ten("SpMV")
    (path,) = kernel.emit(tmp_path / "made")
    assert path.name == "y_kernel.scala"
    assert path.read_text() == kernel.spatial()
    assert "type T = Float\n" in kernel.spatial(Float(32))


def test_a_negative_value_begins_a_line_of_its_own() -> None:
    """The value of an iteration is not a continuation of the line before."""
    a, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))
    y["i"] = -a["i", "j"] * x["j"]
    kernel = compile(y, target="capstan")
    assert isinstance(kernel, CapstanKernel)
    assert "\n          -A_value * x_value\n" in kernel.spatial()
    same_text(kernel, {"A": np.eye(2, dtype=np.int32), "x": np.ones(2, np.int32)}, Int(32))


WRONG = {
    "word": ("import spatial.dsl._\n#", "a word of Spatial", "#", 2),
    "order": ("import spatial.dsl._\nobject", "'@'", "object", 2),
    "end": ("import spatial.dsl._\n@spatial class", "a name", "the end", 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_texts_that_are_not_understood(name: str) -> None:
    text, expected, given, line = WRONG[name]
    with pytest.raises(UserError) as found:
        parse_spatial(text)
    assert str(found.value) == (
        f"line {line} of a Spatial program is not understood\n"
        f"  expected: {expected}\n  given:    {given}"
    )


def test_names_that_nothing_declares() -> None:
    tree = parse_spatial(_ten("SpMV").spatial().replace("A_value * x_value", "A_value * gone"))
    with pytest.raises(UserError, match="there is a gone in a Spatial program that nothing"):
        read_spatial(tree)


def test_types_that_spatial_lacks() -> None:
    program = _ten("SpMV").patterns()
    small = tuple(
        replace(memory, type=Int(8)) if memory.name.endswith("vals_host") else memory
        for memory in program.memories
    )
    with pytest.raises(UnsupportedError, match="Spatial has no values of type int8 here"):
        spatial_program(replace(program, memories=small))
