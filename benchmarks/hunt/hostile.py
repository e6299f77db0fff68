"""Hostile arguments of every public function and method.

A call that is right in a small program gets one or two arguments that nobody should give: objects
of another kind, numbers out of range, text, arrays of odd types and shapes.  It has to end in a
result or in an error of t2s.  A new public name without a call here fails the hunt.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import t2s
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Verdict
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var, sparse
from t2s.representation import (
    ASAP,
    Columns,
    Index,
    MatrixParam,
    Rows,
    Whole,
    Zero,
    dense_matrix,
    gallery,
    product_report,
    read_matrix,
    structure,
    write_matrix,
)

Call = tuple[Callable[..., Any], list[Any], dict[str, Any]]


class World:
    """Objects of one small program, made anew for every call."""

    def __init__(self) -> None:
        self.A = ImageParam(Float(32), 2, name="A")
        self.B = ImageParam(Float(32), 2, name="B")
        self.i, self.j, self.k = Var("i"), Var("j"), RDom(0, 4, name="k")
        self.ii, self.p, self.t = Var("ii"), Var("p"), Var("t")
        self.C = Func("C")
        self.C[self.i, self.j] = 0.0
        self.C[self.i, self.j] += self.A[self.i, self.k] * self.B[self.k, self.j]
        self.C.bound(self.i, 0, 4).bound(self.j, 0, 4)
        self.inputs = {"A": np.ones((4, 4), np.float32), "B": np.eye(4, dtype=np.float32)}
        self.M = MatrixParam(Float(32), 2, gallery.csr(2), name="M")
        x = ImageParam(Float(32), 1, name="x")
        p, q, r = Var("p"), RDom(0, self.M.values.extent(1), name="q"), Var("r")
        row, column = self.M.inverse_map(p, q)
        self.y = Func("y")
        self.y[r] = 0.0
        self.y[row] += self.M.values[p, q] * x[column]
        self.matrix = scipy.sparse.csr_array(np.eye(3, dtype=np.float32))
        self.product = {"M": self.matrix, "x": np.ones(3, np.float32)}
        self.kernel = sparse.compile(sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}))
        self.sparse = {"A": np.eye(3), "x": np.ones(3)}
        self.V = Func("V", type=Int(32))

    def calls(self) -> dict[str, Call]:
        """A right call of everything public, by name."""
        w, C, i, j, k = self, self.C, self.i, self.j, self.k
        T = sparse.Tensor("T", "ds")
        s = sparse.Streams("s")
        found: dict[str, Call] = {}

        def add(label: str, function: Callable[..., Any], /, *given: Any, **named: Any) -> None:
            found[label] = (function, list(given), named)

        for name, design, inputs in (
            ("dense", C, self.inputs),
            ("product", self.y, self.product),
        ):
            add(f"simulate {name}", t2s.simulate, design, inputs, device="arria10", progress=False)
            add(f"interpret {name}", t2s.interpret, design, inputs)
        add("cycles", t2s.cycles, C, device="ideal", max_cycles=1000)
        add("lower", t2s.lower, C)
        add("print_loop_nest", t2s.print_loop_nest, C)
        add("resources", t2s.resources, C, device="arria10")
        add("fit_depths", t2s.fit_depths, C, progress=False)
        add("emit", t2s.emit, C, "opencl_fpga", "out")
        add("structure", structure, self.y, M=self.matrix)
        result = t2s.simulate(self.y, self.product)
        add("product_report", product_report, self.y, result, M=self.matrix)
        runs = [t2s.Run(C, self.inputs)]
        add("simulate_many", t2s.simulate_many, runs, workers=1, progress=False)
        add("Run", t2s.Run, C, self.inputs)
        add("funcs", t2s.funcs, "P Q")
        add("variables", t2s.variables, "u v")
        add("Func", Func, "F", Int(32))
        add("ImageParam", ImageParam, Int(32), 2, name="Z")
        add("Param", Param, Int(32), name="alpha")
        add("Var", Var, "v")
        add("RDom", RDom, 0, 4, name="r")
        add("MatrixParam", MatrixParam, Float(32), 2, gallery.csr(2), name="M2")
        for name in ("Int", "UInt", "Float"):
            add(name, getattr(t2s, name), 32)
        add("cast", t2s.cast, Int(32), i)
        add("select", t2s.select, i > 0, i, 3)
        for name in ("exp", "sqrt", "rsqrt"):
            add(name, getattr(t2s, name), w.A[i, j])
        add("abs", t2s.abs, w.A[i, j])
        add("max", t2s.max, i, j)
        add("min", t2s.min, i, j)
        add("RandomStalls", t2s.RandomStalls, seed=1, one_in=2)
        add("read_matrix", read_matrix, "a.mtx", Float(32))
        add("write_matrix", write_matrix, "b.mtx", self.matrix)
        for name in ("csr", "csc", "cisr", "dcsr", "coo", "dia", "ell", "sliced_ell"):
            add(f"gallery.{name}", getattr(gallery, name), 2)
        add("gallery.blocked_csr", gallery.blocked_csr, 2, 2, 3)
        add(
            "chain.block",
            dense_matrix().block,
            Rows,
            2,
            Zero,
        )
        add(
            "chain.pack",
            dense_matrix().pack,
            Columns,
            Index(Var("s")),
        )
        add("chain.skew", dense_matrix().skew, Columns)
        add(
            "chain.schedule",
            dense_matrix().schedule,
            Rows,
            2,
            ASAP,
            Zero,
        )
        for name, given in (
            ("split", (i, i, w.ii, 2)),
            ("tile", (j, i, w.ii, w.p, 2, 2)),
            ("reorder", (i, j, k)),
            ("fuse", (j, i, w.p)),
            ("unroll", (i, j)),
            ("space_time_transform", ([i, k], {w.p: i, w.t: i + k})),
            ("isolate_producer", (w.A, Func("N"))),
            ("isolate_producer_chain", (w.A, Func("N"), Func("O"))),
            ("isolate_consumer", (Func("U"),)),
            ("isolate_consumer_chain", (Func("U"), Func("W"))),
            ("vload", (w.A,)),
            ("depth", (4,)),
            ("update", (0,)),
        ):
            add(f"Func.{name}", self._then_lowered(C, name), *given)
        add("Func.bound", self._then_lowered(self.V, "bound"), i, 0, 4)
        D, loader, feeder, drainer = self._array()
        for function, name, arguments in (
            (D, "forward", (feeder, j)),
            (loader, "remove", (j,)),
            (feeder, "buffer", (loader, k)),
            (feeder, "scatter", (loader, i)),
            (drainer, "gather", (D, i)),
        ):
            add(f"array.{name}", self._then_lowered(D, name, function), *arguments)
        add("Func[...]", C.__getitem__, (i, j))
        add("Func[...] =", self.V.__setitem__, (i, j), i + j)
        add("ImageParam[...]", w.A.__getitem__, (i, j))
        add("operator", lambda b: (i + b, b * i, i - b, i < b, b == i), j)
        add("sparse.Tensor", sparse.Tensor, "T", "ds", shape=(3, 4))
        add("sparse.Tensor[...] =", T.__setitem__, (i, j), T[i, j] * 2)
        add("sparse.parse", sparse.parse, "y(i) = A(i,j) * x(j)", {"A": "ds"}, {"y": (3,)})
        add("sparse.compile", sparse.compile, self.kernel.assignment, "reorder(i,j)")
        add("sparse.schedule", sparse.schedule, "reorder(i,j)")
        add("sparse.simulate", sparse.simulate, self.kernel, self.sparse, capacity=16, latency=1)
        add("sparse.interpret", sparse.interpret, self.kernel, self.sparse)
        add("sparse.tensor", sparse.tensor, np.eye(3), sparse.csr)
        add("sparse.from_dense", sparse.from_dense, np.eye(3), sparse.csr)
        add(
            "sparse.from_coordinates",
            sparse.from_coordinates,
            [[0, 1], [1, 2]],
            [1.0, 2.0],
            (3, 3),
            sparse.csr,
        )
        stored = ({}, {"pos": [0, 1, 2, 3], "crd": [0, 1, 2]})
        for name in ("SparseTensor", "from_levels"):
            add(f"sparse.{name}", getattr(sparse, name), (3, 3), "ds", stored, np.ones(3))
        add("sparse.make_format", sparse.make_format, "ds", (1, 0))
        for name in ("coo", "csf", "dense"):
            add(f"sparse.{name}", getattr(sparse, name), 2)
        add("sparse.bcsr", sparse.bcsr, 2, 2)
        add("sparse.make_semiring", sparse.make_semiring, "min", "+", np.inf)
        add("sparse.minimum", sparse.minimum, T[i, j], T[i, j])
        add("sparse.read", sparse.read, "a.mtx")
        add("sparse.write", sparse.write, "c.tns", sparse.tensor(np.eye(3), sparse.csr))
        for name in ("to_scipy", "to_pydata"):
            add(f"sparse.{name}", getattr(sparse, name), sparse.tensor(np.eye(3), sparse.csr))
        for name, given in (
            ("reorder", ("i", "j")),
            ("split", ("i", "o", "n", 2)),
            ("locate", ("x", "j")),
            ("scan", ("x", "j")),
            ("precompute", (T[i, j] * 2, "W")),
            ("parallelize", ("i", 2)),
            ("vectorize", ("j", 2)),
            ("fuse", ("i", "j", "f")),
            ("skip", ("j",)),
            ("transpose", ("A",)),
        ):
            add(f"Schedule.{name}", getattr(sparse.Schedule(), name), *given)
        root = s.root()
        crd, ref = s.scan_dense(root, 4)
        values = s.tensor("vals", Float(32))
        add("Streams.scan_dense", s.scan_dense, root, 4)
        add("Streams.tensor", s.tensor, "more", Float(32))
        add("Streams", sparse.Streams, "r", index=Int(64), capacity=4, latency=2)
        add("Streams.reduce", s.reduce, s.load(ref, values), sparse.Op.ADD)
        add("Streams.repeat", s.repeat, s.scan_dense(ref, 2)[0], ref)
        add("Streams.locate_dense", s.locate_dense, crd, ref, 4)
        add("Streams.union", s.union, (crd, ref), (crd, ref))
        add("Streams.parallelize", s.parallelize, [crd, ref], 2, run=1)
        add("Streams.load", s.load, ref, values)
        add("Streams.compute", s.compute, sparse.Op.ADD, crd, crd)
        add("Streams.intersect", s.intersect, (crd, ref), (crd, ref))
        add("Streams.write_values", s.write_values, crd, s.output("out", Int(32)))
        return found

    def _array(self) -> tuple[Func, Func, Func, Func]:
        """A design with PEs, a loader, a feeder and a drainer."""
        i, j, k = self.i, self.j, self.k
        D, loader, feeder, drainer = t2s.funcs("D loader feeder drainer")
        D[i, j] = 0.0
        D[i, j] += self.A[i, k] * self.B[k, j]
        D.bound(i, 0, 4).bound(j, 0, 4).unroll(i, j)
        D.isolate_producer_chain(self.A, loader, feeder)
        D.isolate_consumer_chain(drainer, Func("unloader"))
        return D, loader, feeder, drainer

    def _then_lowered(
        self, design: Func, name: str, function: Func | None = None
    ) -> Callable[..., Any]:
        """A directive, and the design with it: some things are only seen there."""

        def call(*given: Any, **named: Any) -> Any:
            getattr(function or design, name)(*given, **named)
            if design is self.V:
                design[self.i] = self.i
            return t2s.lower(design)

        return call


def _hostile(w: World) -> list[Any]:
    """What nobody should give, and a few things that only sometimes fit."""
    undefined = Func("undefined")
    return [
        *(None, True, -1, 0, 1, 7, 1 << 31, 1 << 63, -(1 << 70), 1.5, -0.0, float("nan")),
        *(float("inf"), 2 + 1j, Fraction(1, 2), Decimal("1.5"), "", "x", "i j", "A", "a\nb", "é"),
        *("x" * 5000, b"x", [], [1, 2], [None], [[1], [1, 2]], (), (1, 2), {}, {"A": 1}, {1: 2}),
        *(set(), {1}, object(), len, int, range(3), iter([1, 2]), NotImplemented, ..., slice(1)),
        *(np.int64(3), np.uint8(200), np.float32(2), np.bool_(True), np.array(3)),
        *(np.zeros(0), np.zeros((0, 4), np.float32), np.ones((4, 4)), np.ones((4, 4), np.int8)),
        *(np.ones((4, 4), complex), np.ones((4, 4), object), np.array(["a", "b"])),
        *(np.full((4, 4), np.nan, np.float32), np.ma.masked_array(np.ones((4, 4)), mask=True)),
        *(np.asfortranarray(np.ones((4, 4), np.float32)), np.ones((4, 4), ">f4")),
        *(np.datetime64("2020-01-01"), np.matrix([[1, 2]]), np.ones((1,) * 20)),
        *(scipy.sparse.eye_array(3), scipy.sparse.eye_array(3).todok(), w.matrix),
        *(Int(32), Float(64), t2s.BFloat(), t2s.Bool(), Path("x"), Path("/nowhere/at/all")),
        *(w.i, w.k, w.A, w.C, w.M, w.y, undefined, w.A[w.i, w.j], w.i + 1, w.i > 0),
        *(
            w.kernel,
            sparse.csr,
            sparse.Tensor("Q", "ds"),
            dense_matrix(),
            gallery.csr(2),
        ),
        *(
            Rows,
            Zero,
            ASAP,
            Whole,
            t2s.lower(w.C),
            w.inputs,
            w.sparse,
        ),
    ]


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Make a call with one or two arguments that do not fit."""
    c = choices
    w = World()
    calls = w.calls()
    name = c.one_of(list(calls))
    function, given, named = calls[name]
    pool = _hostile(w)
    slots: list[Any] = [*range(len(given)), *named]
    for _ in range(c.between(1, 2)):
        if not slots:
            break
        slot, value = c.one_of(slots), c.one_of(pool)
        if c.chance(4) and isinstance(slot, int) and type(given[slot]) in (dict, list, tuple):
            given[slot] = _changed(c, given[slot], value)
        elif isinstance(slot, int):
            given[slot] = value
        else:
            named[slot] = value
    words = [*map(_brief, given), *(f"{key}={_brief(value)}" for key, value in named.items())]
    shown = f"{name}({', '.join(words)})"
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("a.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 2\n")
        try:
            return shown, guarded(lambda: _shown_result(function, given, named))
        finally:
            os.chdir(before)


def _shown_result(function: Callable[..., Any], given: list[Any], named: dict[str, Any]) -> None:
    """Call it, and print what comes out, which may fail too."""
    with contextlib.redirect_stdout(io.StringIO()):
        result = function(*given, **named)
        str(result), repr(result)


def _changed(c: Choices, holder: Any, value: Any) -> Any:
    """A container with one value of another kind in it."""
    if isinstance(holder, dict):
        return {**holder, c.one_of([*holder, "more"]): value}
    items = list(holder)
    if items:
        items[c.below(len(items))] = value
    return type(holder)(items)


def _brief(value: object) -> str:
    text = f"{value!r}"
    return text if len(text) <= 60 else f"{text[:57]}..."
