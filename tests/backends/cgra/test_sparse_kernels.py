"""Sparse blocks on cells: values and cycles of text, lifted graph and hardware."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import t2s
from t2s.core.ops import Array
from t2s.representation import structure
from tests.backends.cgra.sparse_kernels import KERNELS, agrees, of_product, placed, product, whole
from tests.sampling import sampled


@sampled("name", ["spmv", "sum of matrices", "dot"], quick=2)
def test_text_and_lifted_graph_give_the_values_in_the_same_cycles(name: str) -> None:
    agrees(*placed(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n in KERNELS if n not in ("spmv", "sum of matrices", "dot")]
)
def test_so_do_all_other_kernels(name: str) -> None:
    agrees(*placed(name))


MATRICES = st.tuples(st.integers(0, 5), st.integers(1, 5)).flatmap(
    lambda shape: arrays.arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.0, 1.0, -3.0]))
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(matrix=MATRICES, seed=st.integers(0, 99))
def test_any_csr_matrix_is_multiplied_as_by_numpy(matrix: Array, seed: int) -> None:
    inputs = of_product(matrix, whole(seed, matrix.shape[1], density=1))
    design = product()
    found = t2s.cgra.place(design, inputs)
    agrees(found, design, inputs)
    result = t2s.simulate(found, inputs, progress=False)
    np.testing.assert_array_equal(result.output, matrix @ inputs["x"])


@sampled(
    "matrix",
    [np.zeros((4, 3)), np.zeros((1, 1)), np.diag([0.0, 0.0, 2.0]), np.ones((3, 3))],
    quick=2,
    ids=["nothing", "no entry", "one entry", "full"],
)
def test_corner_cases(matrix: Array) -> None:
    inputs = of_product(matrix, np.arange(1.0, matrix.shape[1] + 1))
    design = product()
    found = t2s.cgra.place(design, inputs)
    agrees(found, design, inputs)


def test_one_placement_multiplies_all_matrices_of_its_shape() -> None:
    design = product()
    vector = whole(1, 5, density=1)
    found = t2s.cgra.place(design, of_product(whole(2, 4, 5), vector))
    for seed in range(3, 6):
        agrees(found, design, of_product(whole(seed, 4, 5), vector))


def test_the_files_are_read_to_an_equal_design(tmp_path: Path) -> None:
    found, _, inputs = placed("spmv")
    found.emit(tmp_path)
    again = t2s.cgra.read_placement(tmp_path)
    assert again.placed == found.placed
    (stage,) = t2s.simulate(found, inputs, progress=False).stages
    inner = {name: np.asarray(a) for name, a in structure(found, inputs).items()}
    lifted = t2s.simulate(again, inner, engine="python", progress=False)
    assert again.run(inner).cycles == lifted.cycles == stage.cycles
    np.testing.assert_array_equal(lifted.outputs["y_vals"], stage.outputs["y_vals"])


def test_one_seed_gives_the_same_files() -> None:
    first, second = (placed("sum of vectors")[0] for _ in range(2))
    assert first.files == second.files


def test_several_instructions_for_a_choice_over_values() -> None:
    """As docs/cgra.md says: a comparison, and what it chooses; one for each result of a rule."""
    found, _, _ = placed("spmv")
    programs = {cell.name: cell.program for cell in found.placed.netlist.cells}
    counts = {name: len(program.instructions) for name, program in programs.items()}
    assert counts == {
        "scan_A_j": 10,
        "repeat_root_j": 9,
        "locate_root_j": 4,
        "multiply": 4,
        "reduce_j": 9,
        "write_y": 5,
    }
    tests = [i for i in programs["scan_A_j"].instructions if i.opcode.value == "slt"]
    assert len(tests) == 1


def test_units_stand_for_memory_and_for_dense_levels() -> None:
    found, _, _ = placed("spmv")
    kinds = {unit.name: unit.kind.value for unit in found.placed.netlist.units}
    assert kinds == {
        "scan_A_i.seq": "seq",
        "repeat_root_i.seq": "seq",
        "scan_A_j.A_pos1": "ldx",
        "scan_A_j.A_pos1_2": "ldx",
        "scan_A_j.A_crd1": "ldx",
        "scan_A_j.A_vals": "ldx",
        "locate_root_j.x_vals": "ldx",
        "write_y.y_vals": "stx",
    }


def test_long_dense_levels_stay_cells() -> None:
    inputs = of_product(np.zeros((20_000, 2)), np.ones(2))
    found = t2s.cgra.place(product(), inputs)
    names = [cell.name for cell in found.placed.netlist.cells]
    assert names[:2] == ["scan_A_i", "repeat_root_i"]


@pytest.mark.slow
@pytest.mark.verilator
def test_the_lifted_graph_runs_as_hardware() -> None:
    found, design, inputs = placed("spmv")
    cycles = agrees(found, design, inputs)
    result = t2s.verilate(found, inputs)
    assert result.cycles == cycles
    np.testing.assert_array_equal(result.output, t2s.interpret(design, inputs))


@pytest.mark.slow
def test_a_bandwidth_of_one_word_slows_it_down_and_changes_nothing_else() -> None:
    found, _, inputs = placed("spmv")
    free, narrow = found.run(inputs), found.run(inputs, words_per_cycle=1)
    assert narrow.cycles > free.cycles
    np.testing.assert_array_equal(narrow.outputs["y_vals"], free.outputs["y_vals"])
