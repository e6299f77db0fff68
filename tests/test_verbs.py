"""Every verb takes every kind of design: it runs, or is refused for a reason of the hardware."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as scipy

import t2s
from t2s import Float, Func, ImageParam, RDom, Var, sparse
from t2s.errors import UnsupportedError
from t2s.representation import MatrixParam, gallery, structure

MATRIX = scipy.csr_array(np.array([[1, 0, 2], [0, 3, 0], [4, 5, 6]], np.float32))
VECTOR = np.array([1, 2, 3], np.float32)
PRODUCT = MATRIX.toarray() @ VECTOR


@dataclass(frozen=True)
class Kind:
    """A design of a kind, its inputs, and those that its graph depends on; all compute A x."""

    design: Any
    inputs: dict[str, Any]
    constants: dict[str, Any]
    result: str = "y"


def dense() -> Kind:
    A, x = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="x")
    i, k = Var("i"), RDom(0, 3, name="k")
    y = Func("y")
    y[i] = 0.0
    y[i] += A[i, k] * x[k]
    return Kind(y.bound(i, 0, 3), {"A": MATRIX.toarray(), "x": VECTOR}, {})


def kernel() -> Kind:
    made = sparse.compile(sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}))
    inputs = {"A": MATRIX, "x": VECTOR}
    return Kind(made, inputs, inputs)


def assignment() -> Kind:
    inputs = {"A": MATRIX, "x": VECTOR}
    return Kind(sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}), inputs, inputs)


def program() -> Kind:
    inputs = {"A": MATRIX, "x": VECTOR}
    return Kind(sparse.program("y(i) = A(i,j) * x(j)", {"A": "ds"}), inputs, inputs)


def product() -> Kind:
    A = MatrixParam(Float(32), 2, gallery.csr(2), name="A")
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q] * x[j]
    return Kind(y, {"A": MATRIX, "x": VECTOR}, {"A": MATRIX})


def graph() -> Kind:
    found = dense()
    return Kind(t2s.lower(found.design), found.inputs, {})


def placement() -> Kind:
    """The same on an array of cells: what runs is what its text and its placement say."""
    A, x = ImageParam(Float(64), 2, name="A"), ImageParam(Float(64), 1, name="x")
    i, k = Var("i"), RDom(0, 3, name="k")
    y = Func("y")
    y[i] = 0.0
    y[i] += A[i, k] * x[k]
    y.bound(i, 0, 3).unroll(k)
    inputs = {"A": MATRIX.toarray().astype(float), "x": VECTOR.astype(float)}
    return Kind(t2s.cgra.place(y, fabric="cgra8"), inputs, {})


KINDS = {
    make.__name__: make for make in (dense, kernel, assignment, program, product, graph, placement)
}


def values(found: Any) -> np.ndarray[Any, Any]:
    """The result in what a verb returned."""
    match found:
        case np.ndarray():
            return found
        case dict():
            return np.asarray(found["y"])
        case sparse.SparseResult() | sparse.ProgramResult():
            return found.output
    return np.asarray(found.outputs["y"])


def given_or_none(kind: Kind) -> dict[str, Any] | None:
    return kind.constants or None


VERBS: dict[str, Callable[[Kind, Path], Any]] = {
    "lower": lambda kind, _: t2s.lower(kind.design, kind.constants).nodes[0].name,
    "print_loop_nest": lambda kind, _: t2s.print_loop_nest(kind.design, kind.constants),
    "structure": lambda kind, _: structure(kind.design, kind.constants),
    "interpret": lambda kind, _: values(t2s.interpret(kind.design, kind.inputs)),
    "simulate": lambda kind, _: values(
        t2s.simulate(kind.design, kind.inputs, stalls=t2s.RandomStalls(seed=1, one_in=7))
    ),
    "cycles": lambda kind, _: t2s.cycles(kind.design, kind.inputs),
    "simulate_many": lambda kind, _: values(
        t2s.simulate_many([t2s.Run(kind.design, kind.inputs)] * 2, progress=False).results[1]
    ),
    "fit_depths": lambda kind, _: t2s.fit_depths(kind.design, kind.inputs, progress=False).minimal,
    "resources": lambda kind, _: t2s.resources(kind.design, given_or_none(kind)).fits,
    "emit_opencl": lambda kind, path: t2s.emit(
        kind.design, "opencl_fpga", path, given_or_none(kind)
    ),
    "emit_verilog": lambda kind, path: t2s.emit(kind.design, "verilog", path, given_or_none(kind)),
    "emulate": lambda kind, _: values(t2s.emulate(kind.design, kind.inputs)),
    "verilate": lambda kind, _: values(t2s.verilate(kind.design, kind.inputs)),
}
HARDWARE = {
    "emulate": (pytest.mark.emulator, pytest.mark.slow),
    "verilate": (pytest.mark.verilator, pytest.mark.slow),
}
STREAMS = "stop tokens"
REFUSED = {
    ("kernel", "emit_opencl"): STREAMS,
    ("assignment", "emit_opencl"): STREAMS,
    ("program", "emit_opencl"): STREAMS,
    ("kernel", "emulate"): STREAMS,
    ("assignment", "emulate"): STREAMS,
    ("program", "emulate"): STREAMS,
    ("kernel", "resources"): "cannot be estimated",  # memories whose size depends on the data
    ("assignment", "resources"): "cannot be estimated",
    ("program", "resources"): "cannot be estimated",
}
"""The cells that are refused, and the word that names what the hardware lacks."""

CELLS = [
    pytest.param(kind, verb, marks=HARDWARE.get(verb, ()), id=f"{kind}-{verb}")
    for kind in KINDS
    for verb in VERBS
]


@pytest.mark.parametrize(("kind", "verb"), CELLS)
def test_a_verb_takes_a_design(kind: str, verb: str, tmp_path: Path) -> None:
    made = KINDS[kind]()
    if (kind, verb) in REFUSED:
        with pytest.raises(UnsupportedError, match=REFUSED[kind, verb]) as caught:
            VERBS[verb](made, tmp_path)
        assert caught.value.location is not None
        return
    found = VERBS[verb](made, tmp_path)
    if isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found, PRODUCT)
    elif verb == "structure":
        assert bool(found) == bool(made.constants)
    else:
        assert found


def test_all_kinds_agree_on_cycles_of_one_graph() -> None:
    """A graph that was lowered before takes the cycles of the design that it was made of."""
    for make in (kernel, product, dense):
        made = make()
        lowered = t2s.lower(made.design, made.constants)
        arrays = structure(made.design, made.constants)
        others = {
            name: value
            for name, value in made.inputs.items()
            if name in {tensor.array for tensor in lowered.tensors} - set(arrays)
        }
        assert t2s.cycles(lowered, arrays | others) == t2s.cycles(made.design, made.inputs)


def test_an_assignment_of_stages_is_several_graphs() -> None:
    text = "y(i) = A(i,j) * B(j,k) * x(k)"
    staged = sparse.compile(
        sparse.parse(text, {"A": "ds", "B": "ds"}), "precompute(A(i,j)*B(j,k),t)"
    )
    inputs = {"A": MATRIX, "B": MATRIX, "x": VECTOR}
    with pytest.raises(UnsupportedError, match="2 graphs, which run one after the other"):
        t2s.lower(staged, inputs)
    expected = MATRIX.toarray() @ PRODUCT
    np.testing.assert_array_equal(t2s.simulate(staged, inputs).output, expected)
    assert t2s.cycles(staged, inputs) == staged.simulate(inputs).cycles


def test_runs_of_one_design_share_its_graph() -> None:
    made = dense()
    runs = [t2s.Run(made.design, made.inputs)] * 3
    first, *others = t2s.simulate_many(runs, progress=False).results
    assert all(other.program.graph is first.program.graph for other in others)
