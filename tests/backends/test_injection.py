"""Text from a graph file is data: it is refused when it is read, or harmless wherever it lands."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Param, Place, RDom, Var
from t2s.backends.opencl_fpga import BACKEND as OPENCL
from t2s.backends.opencl_fpga import emulator_available
from t2s.backends.verilog import BACKEND as VERILOG
from t2s.core.errors import UserError
from t2s.core.names import LONGEST_NAME, is_name, one_line
from t2s.graph.graph import Graph
from t2s.graph.printer import graph_to_dot
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import GraphError
from tests.graph.machines import copying

PAYLOADS = (
    "x\nINJECTED",
    "x\rINJECTED",
    "x\u2028INJECTED",
    "x\\",
    "x \\ ",
    '"); INJECTED("',
    '" + INJECTED + "',
    '"""\nINJECTED\n"""',
    "'); INJECTED('",
    "*/ INJECTED /*",
    "{{ INJECTED }}",
    "</text><script>INJECTED</script>",
    "x\0INJECTED",
    "\ud800",
    "",
)


def host_ordered() -> Graph:
    """A design with a parameter, PEs, a layout of the host and an accumulator."""
    x, scale = ImageParam(Int(32), 2, name="X"), Param(Int(32), name="scale")
    i, k = Var("i"), RDom(0, 4, name="k")
    y, loader, serializer = Func("Y"), Func("X_loader"), Func("X_serializer", place=Place.HOST)
    y[i] = 0
    y[i] += x[i, k] * scale
    y.bound(i, 0, 4)
    y.update().isolate_producer_chain(x, serializer, loader)
    return t2s.lower(y)


DESIGNS = {"dense": host_ordered, "machine": copying}


def texts(item: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths to all texts of a JSON document that are not classes, enums or floats."""
    match item:
        case dict():
            for key, value in item.items():
                if key not in ("class", "enum", "float"):
                    yield from texts(value, (*path, key))
        case list():
            for position, value in enumerate(item):
                yield from texts(value, (*path, position))
        case str():
            yield path


def with_text(document: Any, path: tuple[str | int, ...], text: str) -> str:
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = text
    return json.dumps(copy)


def everything(graph: Graph) -> dict[str, str]:
    """All texts that are made of a graph, by file."""
    files = {"graph.dot": graph_to_dot(graph)}
    for backend in (OPENCL, VERILOG):
        if not backend.supports(graph):
            files |= backend.emit(graph)
    return files


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_no_text_of_a_file_reaches_code(design: str) -> None:
    original = DESIGNS[design]()
    document = json.loads(graph_to_json(original))
    harmless = everything(original)
    kinds: set[tuple[str | int, ...]] = set()
    read = 0
    for path in texts(document["graph"], ("graph",)):
        kind = tuple(step for step in path if isinstance(step, str))
        if kind in kinds:
            continue
        kinds.add(kind)
        for payload in PAYLOADS:
            try:
                graph = graph_from_json(with_text(document, path, payload))
            except UserError:
                continue
            read += 1
            for name, text in everything(graph).items():
                assert text.encode(), name
                for line in set(text.splitlines()) - set(harmless[name].splitlines()):
                    assert not line.lstrip().startswith("INJECTED"), (path, payload, name)
                    assert not line.rstrip().endswith("\\"), (path, payload, name)
                if name.endswith(".py"):
                    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(harmless[name]))
    assert len(kinds) >= 10
    assert read  # files of the user's program and descriptions may be any text
    assert read <= 6 * len(PAYLOADS)


def test_the_text_of_the_refusal() -> None:
    document = json.loads(graph_to_json(copying()))
    with pytest.raises(UserError) as caught:
        graph_from_json(with_text(document, ("graph", "name"), "Y\nINJECTED"))
    assert str(caught.value) == (
        "the text is not a graph in JSON: graph.name is wrong\n"
        "  expected: a name: letters, digits and underscores, no more than 1,000\n"
        '  given:    "Y\\nINJECTED"'
    )


@pytest.mark.parametrize("backend", ["opencl_fpga", "verilog"])
def test_graphs_made_by_hand_are_checked_too(backend: str, tmp_path: Path) -> None:
    graph = replace(host_ordered(), name='Y"')
    with pytest.raises(GraphError) as caught:
        t2s.emit(graph, backend, tmp_path)
    assert str(caught.value).splitlines()[0] == ("the name of a Graph of graph 'Y\"' is invalid")
    assert not list(tmp_path.iterdir())


def test_names() -> None:
    assert all(is_name(name) for name in ("A_1", "é", "x" * LONGEST_NAME))
    assert not is_name("x" * (LONGEST_NAME + 1))
    assert not any(is_name(payload) for payload in PAYLOADS)


def test_one_line() -> None:
    for payload in PAYLOADS:
        text = one_line(payload)
        assert text.isprintable()
        assert not text.rstrip().endswith("\\")
    assert one_line("gemm.py:12") == "gemm.py:12"


WORDS = "NULL M_PI NAN linux lambda None module kernel \U0001d53d \uff46"


def named(func: str, array: str, variable: str, parameter: str) -> Func:
    x, scale = ImageParam(Int(32), 1, name=array), Param(Int(32), name=parameter)
    i, k = Var(variable), RDom(0, 3, name=f"{variable}_r")
    y, loader = Func(func), Func(f"{func}_x")
    y[i] = 0
    y[i] += x[i + k] * scale
    y.bound(i, 0, 4)
    y.isolate_producer(x, loader)
    y.unroll(i)
    return y


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.skipif(not emulator_available(), reason="the emulator is not installed")
@pytest.mark.parametrize("word", WORDS.split())
def test_words_that_mean_something_to_opencl_or_python(word: str) -> None:
    design = named(word, f"{word}_a", f"{word}_i", f"{word}_p")
    other = named("F", word, "i", "p")
    for y, x, p in ((design, f"{word}_a", f"{word}_p"), (other, word, "p")):
        inputs = {x: np.arange(6, dtype=np.int32), p: np.int32(2)}
        assert list(t2s.emulate(y, inputs)[y.name]) == [6, 12, 18, 24]
