"""Edited files: graphs in JSON, Matrix Market, .tns and index notation with a few bytes changed.

Reading and running them ends in a result or in an error of t2s, soon, and never in anything else.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import t2s
from benchmarks.hunt.choices import Choices
from benchmarks.hunt.run import guarded
from benchmarks.hunt.verdict import Kind, Verdict
from t2s import Float, Func, ImageParam, Int, RDom, Var, sparse
from t2s.graph.arrays import TensorRole
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.representation import read_matrix

MATRICES = (
    "%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 1.5\n2 3 -2\n3 4 1e3\n",
    "%%MatrixMarket matrix coordinate integer symmetric\n% a comment\n3 3 3\n1 1 1\n2 1 5\n3 3 7\n",
    "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n",
    "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n",
    "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 3 4\n",
)
TENSORS = (
    "1 1 1 2.5\n2 3 1 -1\n4 4 4 1e10\n",
    "# comment\n1 2 3\n2 1 4\n",
    "1 1 9007199254740993\n",
)
NOTATION = (
    "y(i) = A(i,j) * x(j)",
    "X(i,j) = B(i,k) * C(k,j) + D(i,j)",
    "X(i) = min(a(i), b(i)) - 2 * c(i)",
)
SCHEDULES = ("reorder(i,j), parallelize(i,4)", "split(i,i0,i1,32), locate(x,j)", "skip(j)")


def _graphs() -> list[str]:
    a, b = ImageParam(Int(32), 2, name="A"), ImageParam(Float(32), 1, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 3, name="k")
    c, d = Func("C"), Func("D")
    c[i, j] = 0
    c[i, j] += a[i, k] * a[k, j]
    c.bound(i, 0, 3).bound(j, 0, 3).unroll(i)
    d[i] = t2s.select(i > 0, b[i], 1.5)
    d.bound(i, 0, 4).isolate_producer(b, Func("L"))
    return [graph_to_json(t2s.lower(c)), graph_to_json(t2s.lower(d))]


GRAPHS = tuple(_graphs())
_WORDS = ("-1", "0", "99999999999999999999", "null", '"x"', "[]", "{}", "nan", "1e999", "\x00", "")


def edited(c: Choices, text: str) -> str:
    """The text with some pieces removed, repeated, swapped or replaced."""
    for _ in range(c.between(1, 4)):
        if not text:
            return text
        at = c.below(len(text))
        end = min(len(text), at + c.between(1, 12))
        match c.below(6):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + chr(c.between(32, 126)) + text[at + 1 :]
            case 2:
                text = text[:end] + text[at:end] + text[end:]
            case 3:
                text = text[:at] + c.one_of(_WORDS) + text[end:]
            case 4:
                text = text[:at] + c.one_of(["\n", "\t", " ", "é", "\ufeff", "\r\n"]) + text[at:]
            case 5:
                text = text[:at]
    return text


def edited_document(c: Choices, text: str) -> str:
    """JSON with some values replaced by others of the document, or by odd ones."""
    document = json.loads(text)
    places: list[tuple[Any, Any]] = []

    def visit(item: Any) -> None:
        entries = item.items() if isinstance(item, dict) else enumerate(item)
        for key, value in list(entries):
            places.append((item, key))
            if isinstance(value, dict | list):
                visit(value)

    visit(document["graph"])
    for _ in range(c.between(1, 3)):
        (holder, key), (other, name) = c.one_of(places), c.one_of(places)
        odd = [0, -1, 1 << 40, None, "x", [], 0.5, True]
        new = json.loads(json.dumps(other[name])) if c.chance(2) else c.one_of(odd)
        try:
            holder[key] = new
        except (IndexError, KeyError):
            continue
    return json.dumps(document)


def judge(choices: Choices, hardware: bool) -> tuple[str, Verdict]:
    """Edit a file, read it and use what it holds."""
    c = choices
    kind = c.below(6)
    if kind == 0:
        text = edited(c, c.one_of(GRAPHS))
    elif kind == 1:
        text = edited_document(c, c.one_of(GRAPHS))
    else:
        text = edited(c, c.one_of((MATRICES, TENSORS, NOTATION, SCHEDULES)[kind - 2]))
    shown = f"{('JSON', 'JSON', '.mtx', '.tns', 'notation', 'schedule')[kind]}: {text!r}"
    verdict = guarded(lambda: _USES[kind](text))
    if verdict.detail == "deadlock":
        verdict = replace(verdict, kind=Kind.REFUSED)
    return shown, verdict


def _graph(text: str) -> None:
    graph = graph_from_json(text)
    inputs = {
        t.array: np.zeros(t.shape, t.type.numpy)
        for t in graph.tensors
        if t.role is TensorRole.INPUT and np.prod(t.shape, dtype=object) < 1 << 24
    }
    t2s.simulate(graph, inputs, max_cycles=20_000, progress=False)
    t2s.cycles(graph, max_cycles=20_000)


def _reads(suffix: str) -> Any:
    def read(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"a{suffix}"
            path.write_text(text, encoding="utf-8")
            if suffix == ".mtx":
                with contextlib.suppress(t2s.errors.UserError):
                    read_matrix(path, Float(32))
            sparse.read(path)

    return read


def _notation(text: str) -> None:
    assignment = sparse.parse(text)
    inputs = {
        t.name: np.ones((2,) * t.format.order)
        for t in assignment.tensors
        if t.name != assignment.result.tensor
    }
    sparse.simulate(assignment, inputs, max_cycles=20_000)


def _schedule(text: str) -> None:
    kernel = sparse.compile(sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}), text)
    sparse.simulate(kernel, {"A": np.eye(3), "x": np.ones(3)}, max_cycles=20_000)


_USES = (_graph, _graph, _reads(".mtx"), _reads(".tns"), _notation, _schedule)
