"""Three and more compressed levels at a loop, with no schedule: all levels give numpy's values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import t2s
from t2s.core.errors import InternalError
from t2s.core.expr import Local, Select, apply
from t2s.core.ops import Op
from t2s.core.types import INT32, UInt
from t2s.core.walk import walk
from t2s.patterns.ir import Bind, Foreach, PatternProgram, Push
from t2s.patterns.verify import bit_sets, intersected, is_inside, one_set, united, verify_patterns
from t2s.sparse import CapstanKernel, Schedule, Tensor, compile, csr, dense
from tests.capstan.kernels import TEN
from tests.capstan.test_simulated_kernels import same
from tests.capstan.test_spatial_text import same_text

EXPRESSIONS = {
    "B + C + D": lambda b, c, d, e, f: b + c + d,
    "B + (C + D)": lambda b, c, d, e, f: b + (c + d),
    "B*C*D": lambda b, c, d, e, f: b * c * d,
    "B*C + D": lambda b, c, d, e, f: b * c + d,
    "B*(C + D)": lambda b, c, d, e, f: b * (c + d),
    "B*C + D*E": lambda b, c, d, e, f: b * c + d * e,
    "B*C + B*D": lambda b, c, d, e, f: b * c + b * d,
    "B*C + B": lambda b, c, d, e, f: b * c + b,
    "(B + C)*(D - E)": lambda b, c, d, e, f: (b + c) * (d - e),
    "B - C*D + E": lambda b, c, d, e, f: b - c * d + e,
    "B + C + D + E + F": lambda b, c, d, e, f: b + c + d + e + f,
    "B*C*D*E*F": lambda b, c, d, e, f: b * c * d * e * f,
}
FORMATS = ("s", "ds", "ss", "sd", "dss", "sss", "dds")
OPTIONS = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
VARIABLES = tuple(t2s.Var(name) for name in "ijk")


@dataclass(frozen=True)
class CombinedCase:
    """A kernel with inputs; ``summed``: of its result only the first variables are kept."""

    kernel: CapstanKernel
    inputs: dict[str, Any]


@st.composite
def combined_cases(draw: Any, most: int = 40) -> CombinedCase:
    expression = draw(st.sampled_from(sorted(EXPRESSIONS)))
    letters = draw(st.sampled_from(FORMATS))
    variables = VARIABLES[: len(letters)]
    kept = draw(st.integers(0, len(letters)))
    formats = dict.fromkeys("BCDEF", letters)
    if draw(st.booleans()):  # one of them is dense, or in other levels, at some loop
        formats[draw(st.sampled_from("BCDEF"))] = draw(
            st.text("ds", min_size=len(letters), max_size=len(letters))
        )
    operands = [Tensor(name, format)[variables] for name, format in formats.items()]
    result = Tensor("A", letters[:kept]) if kept else Tensor("A")
    result[variables[:kept] if kept else ...] = EXPRESSIONS[expression](*operands)
    schedule = Schedule().environment(outer_par=draw(st.sampled_from([1, 2])))
    kernel = compile(result, schedule, target="capstan")
    limit = most if len(letters) < 3 else most // 4
    shape = tuple(draw(st.integers(0, limit)) for _ in letters)
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    inputs = {}
    for name in "BCDEF":
        if name in expression:
            density = draw(st.sampled_from([0.0, 0.01, 0.3, 1.0]))
            values = generator.integers(1, 9, shape) * (generator.random(shape) < density)
            inputs[name] = np.asarray(values, np.int32)
    return CombinedCase(kernel, inputs)


def _agree(case: CombinedCase, engines: tuple[str, ...]) -> None:
    kernel, inputs = case.kernel, case.inputs
    expected = kernel.interpret(inputs, level="notation")
    np.testing.assert_array_equal(kernel.interpret(inputs, level="loops"), expected)
    np.testing.assert_array_equal(kernel.interpret(inputs), expected)
    same_text(kernel, inputs, INT32)
    for type in (t2s.Int(32), t2s.Float(32)) if engines else ():
        stored = kernel.run_patterns(inputs, type=type)
        for engine in engines:
            assert same(kernel.simulate(inputs, engine=engine, type=type).tensor, stored)


def _case(expression: str, letters: str, outer_par: int = 1) -> CapstanKernel:
    variables = VARIABLES[: len(letters)]
    operands = [Tensor(name, letters)[variables] for name in "BCDEF"]
    result = Tensor("A", letters)
    result[variables] = EXPRESSIONS[expression](*operands)
    return compile(result, Schedule().environment(outer_par=outer_par), target="capstan")


def _inputs(kernel: CapstanKernel, shape: tuple[int, ...]) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    names = [tensor.name for tensor in kernel.assignment.tensors if tensor.name != "A"]
    return {
        name: np.asarray(
            generator.integers(1, 9, shape) * (generator.random(shape) < 0.3), np.int32
        )
        for name in names
    }


@settings(OPTIONS, max_examples=8)
@given(combined_cases(most=20))
def test_values(case: CombinedCase) -> None:
    _agree(case, ())


@pytest.mark.slow
@settings(OPTIONS, max_examples=200)
@given(combined_cases())
def test_many_values(case: CombinedCase) -> None:
    _agree(case, ())


@pytest.mark.slow
@settings(OPTIONS, max_examples=15)
@given(combined_cases(most=20))
def test_both_engines(case: CombinedCase) -> None:
    _agree(case, ("native", "python"))


@pytest.mark.parametrize(
    ("expression", "letters", "outer_par"),
    [
        ("B*C + D", "ds", 2),
        pytest.param("B + C + D", "ds", 2, marks=pytest.mark.slow),
        pytest.param("B*(C + D)", "ss", 2, marks=pytest.mark.slow),
    ],
)
def test_units(expression: str, letters: str, outer_par: int) -> None:
    """A union alone, and operands whose positions go through a memory that loops write."""
    kernel = _case(expression, letters, outer_par)
    inputs = _inputs(kernel, (5, 40))
    stored = kernel.run_patterns(inputs)
    runs = [kernel.simulate(inputs, engine=engine) for engine in ("native", "python")]
    assert all(same(run.tensor, stored) for run in runs)
    assert len({run.cycles for run in runs}) == 1


def test_windows_of_long_scans() -> None:
    kernel = _case("B*C + D*E", "s")
    inputs = _inputs(kernel, (2000,))
    stored = kernel.run_patterns(inputs)
    assert same(kernel.simulate(inputs).tensor, stored)


def test_plus3_without_a_schedule_is_that_with_one() -> None:
    """Any association, and equal arrays."""
    kernels = [
        _case("B + C + D", "ds"),
        _case("B + (C + D)", "ds"),
        compile(TEN["Plus3"]().result, TEN["Plus3"]().schedule, target="capstan"),
    ]
    inputs = _inputs(kernels[0], (7, 30))
    results = [kernel.run_patterns(inputs) for kernel in kernels]
    assert all(same(results[0], one) for one in results)
    assert "W" not in str(kernels[0])
    assert kernels[0].memories().count("bit vector") >= 3


@pytest.mark.slow
def test_a_dense_level_over_joined_ones() -> None:
    """All fibers of a dense level are due, and so all coordinates of the loop."""
    i, j, _ = VARIABLES
    a, b, c = Tensor("A", csr), Tensor("B", "ss"), Tensor("C", "ss")
    a[i, j] = b[i, j] + c[i, j]
    kernel = compile(a, target="capstan")
    inputs = _inputs(kernel, (6, 9))
    inputs["B"][2:4], inputs["C"][2:5] = 0, 0
    _agree(CombinedCase(kernel, inputs), ("native",))
    assert len(kernel.run_patterns(inputs).levels[1]["pos"]) == 7


def test_what_is_not_stored_is_zero_times_infinity() -> None:
    i = VARIABLES[0]
    a, x = Tensor("A", "s"), Tensor("x", dense(1))
    b, c, d = (Tensor(name, "s") for name in "BCD")
    a[i] = b[i] * c[i] * x[i] + d[i]
    inputs = {
        "B": np.array([1, 0, 2, 0], np.float32),
        "C": np.array([0, 3, 4, 0], np.float32),
        "D": np.array([5, 6, 0, 7], np.float32),
        "x": np.array([np.inf, np.nan, 2, np.inf], np.float32),
    }
    kernel = compile(a, target="capstan")
    np.testing.assert_array_equal(kernel.interpret(inputs), [5, 6, 16, 7])


@pytest.mark.parametrize("level", ["s", "d"])
def test_a_sum_of_which_nothing_is_stored_is_zero_times_infinity(level: str) -> None:
    i = VARIABLES[0]
    a, x = Tensor("A", level), Tensor("x", dense(1))
    b, c, d = (Tensor(name, "s") for name in "BCD")
    a[i] = (b[i] + c[i]) * x[i] + d[i]
    inputs = {
        "B": np.array([0, 2, 0, 0], np.float32),
        "C": np.array([0, 3, 4, 0], np.float32),
        "D": np.array([5, 0, 0, 7], np.float32),
        "x": np.array([np.inf, 2, np.inf, np.nan], np.float32),
    }
    kernel = compile(a, target="capstan")
    np.testing.assert_array_equal(kernel.interpret(inputs), [5, 10, np.inf, 7])


def test_a_factor_of_which_a_dense_operand_is_a_term() -> None:
    i = VARIABLES[0]
    a, b, c, d = Tensor("A"), Tensor("B", "s"), Tensor("C", "d"), Tensor("D", "s")
    a[...] = b[i] * (c[i] + d[i])
    inputs = {name: np.array([n], np.int32) for name, n in (("B", 7), ("C", 6), ("D", 0))}
    np.testing.assert_array_equal(compile(a, target="capstan").interpret(inputs), 42)


def test_nothing_is_tested_again_that_the_loop_implies() -> None:
    i = VARIABLES[0]
    a, x = Tensor("A", "s"), Tensor("x", dense(1))
    b, c = (Tensor(name, "s") for name in "BC")
    a[i] = (b[i] + c[i]) * x[i]
    program = compile(a, target="capstan").patterns()
    assert not any(isinstance(term, Select) and term.type.is_float for term in walk(program))


def test_sets_of_bits() -> None:
    b, c, d = (one_set(name) for name in "bcd")
    assert united(intersected(b, c), b) == b
    assert intersected(b, united(c, d)) == united(intersected(b, c), intersected(b, d))
    assert is_inside(intersected(b, c), b)
    assert not is_inside(b, intersected(b, c))
    assert not is_inside(united(b, c), b)


def test_a_scan_of_other_bits_has_other_iterations() -> None:
    """Queues that one scan fills and another one empties: the verifier compares their bits."""
    program = _case("B + C + D", "s").patterns()
    verify_patterns(program)
    word = UInt(32)

    def changed(statement: Any) -> Any:
        match statement:
            case Foreach(body=body) if any(isinstance(one, Bind) for one in body):
                pops = [
                    one.target for one in body if hasattr(one, "queue") and hasattr(one, "target")
                ]
                wrong = apply(Op.OR, *(Local(name=name, type=word) for name in pops[:2]))
                pushes = [one for one in body if isinstance(one, Push)]
                if len(pops) < 3:
                    return statement
                made = replace(pushes[1], value=wrong)
                return replace(
                    statement, body=tuple(made if one is pushes[1] else one for one in body)
                )
        return statement

    broken: PatternProgram = replace(program, body=tuple(map(changed, program.body)))
    assert broken != program
    assert bit_sets(broken.body) != bit_sets(program.body)
    with pytest.raises(InternalError, match="words are put into 'B_positions'"):
        verify_patterns(broken)
