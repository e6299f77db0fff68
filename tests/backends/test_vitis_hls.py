"""The emitted C++ for Vitis HLS, compiled by g++, against the meaning of the graph, bit for bit.

Streams are as deep as the text says, so a depth that does not suffice is a deadlock.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import runpy
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import t2s
from benchmarks.random_graphs import random_graph
from benchmarks.random_shared import gatherers
from benchmarks.vitis_hls import Verdict, judge
from t2s.backends.vitis_hls import BACKEND, SimulationError, backend, emulate, runner
from t2s.backends.vitis_hls.top import TopDesign, top_design
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Local, Select, const, equals
from t2s.core.types import INT32, Float, Int
from t2s.driver import hardware
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Loop, Machine
from tests.backends import designs
from tests.backends.buffers import double_buffer
from tests.backends.builders import channel, load, store, tensor
from tests.backends.builders import graph as graph_of
from tests.backends.emulated import GEMMS, check_emulated, random_inputs
from tests.backends.test_opencl_machines import INPUTS, merging
from tests.backends.triangles import triangular_array
from tests.examples.systolic import Sizes, dot_product
from tests.examples.systolic import random_inputs as random_values
from tests.examples.test_golden_opencl import EXAMPLES, SMALLEST, module_of
from tests.graph.test_ports import product
from tests.hand_graphs import index, systolic_gemm
from tests.spatial.test_host import systolic

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
Array = Any


def check(graph: Graph, parameters: Mapping[str, Array] | None = None) -> None:
    check_emulated(emulate, graph, parameters, exact_depths=True)


@pytest.mark.parametrize(
    "graph",
    [
        systolic_gemm(2, 3, 4, tile_rows=2, tile_columns=2, lanes=4, element=Float(32)),
        designs.triangular(per_pe=True),
        designs.feedback_loop(),
        designs.reconvergent(),
        double_buffer(writes=2, repeats=2, pes=2, lanes=10),
    ],
    ids=lambda graph: graph.name,
)
def test_values(graph: Graph) -> None:
    check(graph)


@pytest.mark.slow
@pytest.mark.parametrize(
    "graph",
    [
        designs.relay_chain(),
        designs.serial_feeder(),
        designs.serial_feeder(pes=5, block=4, rounds=5, extra=2),
        designs.scatter_gather(),
        designs.triangular(),
        designs.running_total(),
        designs.leftwards(),
        designs.circulating(),
        designs.circulating(uneven=True),
        designs.through_memory(),
        double_buffer(periods=2),
        triangular_array(4, 3),
    ],
    ids=lambda graph: graph.name,
)
def test_more_values(graph: Graph) -> None:
    check(graph)


def several_statements() -> list[t2s.Func]:
    """Sums that go through memory: in a row, to two readers in another order, and by vectors."""
    A = t2s.ImageParam(Int(32), 2, name="A")
    i, j = t2s.variables("i j")
    k = t2s.RDom(0, 8, name="k")

    def sums(name: str, term: Callable[[], Any]) -> t2s.Func:
        func = t2s.Func(name)
        func[i, j] = 0
        func[i, j] += term()
        return func.bound(i, 0, 8).bound(j, 0, 8)

    first = sums("first", lambda: A[i, k] * A[j, k])
    second = sums("second", lambda: first[i, k] * A[k, j])
    third = sums("third", lambda: second[i, k] - first[j, k] * A[i, k])
    left = sums("left", lambda: first[k, i] + j)
    right = sums("right", lambda: t2s.max(first[j, k], i))
    both = sums("both", lambda: left[i, k] * right[j, k])
    wide = [sums("rows", lambda: A[i, k] + A[j, k])]
    wide.append(sums("again", lambda: wide[0][i, k] + wide[0][k, j]))
    for func in wide:
        inner = t2s.Var("inner")
        func.update().split(j, j, inner, 4).reorder(k, inner, j, i).unroll(inner)
    return [third, both, wide[1]]


def test_results_in_memory() -> None:
    """Functions that load wait for the call of those that store, with the same pointer."""
    top = top_of(designs.through_memory())
    assert [[call.function for call in stage.calls] for stage in top.stages] == [
        ["x_load", "write_"],
        ["read_", "y_store"],
    ]
    assert [port.name for port in top.ports] == ["x", "kept", "y"]
    stages = [len(top_of(t2s.lower(func)).stages) for func in several_statements()]
    assert stages == [3, 3, 2]
    check(t2s.lower(several_statements()[0]))


@pytest.mark.slow
def test_more_results_in_memory() -> None:
    for func in several_statements()[1:]:
        check(t2s.lower(func))


@pytest.mark.slow
@pytest.mark.parametrize("case", GEMMS)
def test_gemm(case: str) -> None:
    shape, (rows, columns), lanes, element = GEMMS[case]
    check(systolic_gemm(*shape, tile_rows=rows, tile_columns=columns, lanes=lanes, element=element))


def example(name: str) -> Graph:
    """An example at its smallest size."""
    module = module_of(name)
    tiny = (module.TINY,) if hasattr(module, "TINY") else ()
    return t2s.lower(module.design(*(SMALLEST.get(name) or tiny)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SMALLEST, "lu", "pairhmm"])
def test_examples(name: str) -> None:
    """Ragged nests, several stages, feedback between functions."""
    graph = example(name)
    check(graph, {p.name: p.type.numpy.type(2) for p in graph.parameters})


def test_tensors_of_one_element() -> None:
    """A tensor without dimensions is one element in memory."""
    graph = graph_of(
        "single",
        (load("x_load", "x", "x_in", (), ()), store("y_store", "y", "x_in", (), ())),
        (channel("x_in", "x_load", "y_store"),),
        (tensor("x"), tensor("y", role="output")),
    )
    check(graph)


def test_a_tensor_that_no_function_uses() -> None:
    """Host programs and test benches have it all the same."""
    loops = (Loop(name="i", minimum=const(0), extent=const(3)),)
    graph = graph_of(
        "unused",
        (
            load("x_load", "x", "x_in", loops, (index("i"),)),
            store("y_store", "y", "x_in", loops, (index("i"),)),
        ),
        (channel("x_in", "x_load", "y_store"),),
        (tensor("other", 4), tensor("x", 3), tensor("y", 3, role="output")),
    )
    files = BACKEND.emit(graph)
    for path in ("unused_host.cpp", "unused_host.py", "unused_tb.cpp"):
        assert "other" in files[path]


def test_machines() -> None:
    graph = merging()
    found = emulate(graph, INPUTS, exact_depths=True)
    np.testing.assert_array_equal(found["y"], interpret_graph(graph, INPUTS)["y"])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(first, first + 8) for first in range(0, 40, 8)], ids=str)
def test_random_graphs(seeds: range) -> None:
    """Values; deadlocks and tokens that are left over are errors, as in the simulator."""
    for seed in seeds:
        verdict, why = judge(random_graph(seed))
        assert verdict is not Verdict.WRONG, f"{seed}: {why}"
        # what is left are channels at whose ends there are different numbers of tokens
        assert verdict is not Verdict.REFUSED or "tokens" in why, f"{seed}: {why}"


UNARY = (t2s.sqrt, t2s.exp, t2s.log, t2s.tanh, t2s.floor, t2s.ceil, abs, lambda value: -value)


@pytest.mark.parametrize(
    "type", [t2s.Float(16), pytest.param(t2s.BFloat(16), marks=pytest.mark.slow)]
)
def test_16_bit_floats(type: t2s.Type) -> None:
    """All operators and casts, rounded as in the interpreter: to the last bit, and to infinity."""
    a, b, y = t2s.ImageParam(type, 1, name="a"), t2s.ImageParam(type, 1, name="b"), t2s.Func("y")
    n, o = t2s.Var("n"), t2s.Var("o")
    u, v = a[n], b[n]
    wide = [t2s.cast(t2s.Float(64), u) / 3.1, t2s.cast(t2s.Float(32), u) * 1.7]
    integers = [t2s.cast(kind(bits), u) for kind in (t2s.Int, t2s.UInt) for bits in (8, 32, 64)]
    results = [u + v, u - v, u * v, u / v, t2s.min(u, v), t2s.max(u, v), t2s.fma(u, v, u)]
    results += [function(u) for function in UNARY]
    results += [t2s.cast(type, value) for value in (*wide, *integers, u < v, u == v)]
    chosen = results[0]
    for number, result in enumerate(results[1:], 1):
        chosen = t2s.select(o == number, result, chosen)
    y[n, o] = chosen
    y.bound(n, 0, 200).bound(o, 0, len(results))
    random = np.random.default_rng(3)
    bits = random.integers(0, 1 << 16, (2, 200)).astype(np.uint16)
    near = (random.standard_normal((2, 200)) * 9).astype(type.numpy).view(np.uint16)
    bits[:, 60:] = near[:, 60:]
    inputs = {"a": bits[0].view(type.numpy), "b": bits[1].view(type.numpy)}
    expected = t2s.interpret(y, inputs).astype(np.float32)
    found = t2s.emulate(y, inputs, backend="vitis_hls")["y"]
    assert found.dtype == type.numpy
    np.testing.assert_array_equal(found.astype(np.float32), expected)


@pytest.mark.slow
def test_scalars() -> None:
    check(designs.scaled(Int(16)), {"alpha": np.int16(7), "count": np.int32(3)})


def test_the_verb_takes_a_func() -> None:
    """Vectors fill the ports of memory."""
    func = dot_product(t2s.Int(32), Sizes(rows=2, columns=3, tile=(2, 1), steps=3, lanes=4))
    inputs = random_values(func.lower())
    found = func.emulate(inputs, backend="vitis_hls")
    np.testing.assert_array_equal(found["C"], inputs["A"] @ inputs["B"].T)


def test_neighbors_share_accesses(golden: Any) -> None:
    """One word for a row of PEs, and three words of two for six PEs side by side."""
    graph = t2s.lower(product((2, 6), rows=True, size=(4, 12)))
    check(graph)
    text = BACKEND.emit(graph)["C.cpp"]
    golden("vitis_hls/words.cpp", text[text.index("static void B_load") : text.index("// C comp")])
    row = BACKEND.emit(t2s.lower(product((2, 4), rows=True)))["C.cpp"]
    assert "C_word.s[jj] = from_C.s[ii][jj];" in row


@pytest.mark.slow
def test_neighbors_share_accesses_along_either_dimension() -> None:
    for options in (
        {"size": (6, 8), "pes": (1, 8), "forward": False},
        {"size": (4, 64), "pes": (2, 32)},
        {"size": (5, 7), "pes": (2, 2)},
        {"size": (6, 12), "pes": (2, 6), "order": "jj ii"},
    ):
        check(t2s.lower(product(**options, rows=True)))


@pytest.mark.slow
def test_functions_on_the_host() -> None:
    """Layouts are those of the user's arrays; the top is not called like a function of a node."""
    func = systolic()
    graph = func.lower()
    text = BACKEND.emit(graph)["C.cpp"]
    assert 'extern "C" void C_top(const int32_x4 *A_serializer, ' in text
    assert "loads 1 vector of 4 elements of A_serializer per firing" in text
    shapes = {tensor.array: tensor.shape for tensor in graph.tensors}
    random = np.random.default_rng(1)
    inputs = {name: random.integers(-9, 9, shapes[name], np.int32) for name in "AB"}
    found = func.emulate(inputs, backend="vitis_hls", exact_depths=True)
    np.testing.assert_array_equal(found["C"], t2s.interpret(func, inputs))


# ----------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    "graph",
    [
        systolic_gemm(2, 3, 4, tile_rows=2, tile_columns=2, lanes=4, element=Float(32)),
        designs.triangular(per_pe=True),
        designs.feedback_loop(),
        designs.through_memory(),
    ],
    ids=lambda graph: graph.name,
)
def test_text(graph: Graph, golden: Any) -> None:
    golden(f"vitis_hls/{graph.name}.cpp", BACKEND.emit(graph)[f"{graph.name}.cpp"])


def write(graph: Graph, folder: Path) -> TopDesign:
    for path, text in BACKEND.emit(graph).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    return top_of(graph)


def top_of(graph: Graph) -> TopDesign:
    design = backend.analyzed(graph)
    assert not isinstance(design, list)
    return top_design(design)


def test_no_warnings_and_a_build_with_make(tmp_path: Path) -> None:
    for number, graph in enumerate((designs.triangular(), designs.scaled(Int(16)))):
        folder = tmp_path / str(number)
        folder.mkdir()
        stem = write(graph, folder).stem
        strict = ["-std=c++14", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
        command = ["g++", *strict, "-fsyntax-only", "-I.", "-It2s_sim", f"{stem}.cpp"]
        subprocess.run([*command, f"{stem}_tb.cpp"], cwd=folder, check=True)
    if shutil.which("make") is not None:
        made = subprocess.run(
            ["make", "csim"], cwd=folder, capture_output=True, text=True, check=True
        )
        assert "y: 4 elements, sum" in made.stdout


def acyclic() -> list[Graph]:
    """Designs of which no functions send data in a circle: AMD's C simulation can run them."""
    return [
        designs.triangular(per_pe=True),
        designs.scatter_gather(),
        systolic_gemm(2, 3, 4, tile_rows=2, tile_columns=2, lanes=4, element=Float(32)),
        t2s.lower(product((2, 6), rows=True, size=(5, 12))),
        *map(example, ("mttkrp", "trsm")),
    ]


STRICT = ("-std=c++14", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")


@pytest.mark.slow
@pytest.mark.parametrize("header", ["ours", "AMD's"])
def test_strict_compilers_and_the_header_of_amd(
    header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text with AMD's own streams, in text order, as Vitis simulates it."""
    if header == "AMD's":
        package = importlib.util.find_spec("conifer")
        if package is None or package.origin is None:
            pytest.skip("conifer, which has AMD's hls_stream.h, is not installed")
        stream = Path(package.origin).parent / "external" / "hls" / "hls_stream.h"
        text = f"#pragma GCC system_header\n{stream.read_text()}"
        files = backend.emit_files
        monkeypatch.setattr(
            backend,
            "emit_files",
            lambda graph, top: {**files(graph, top), "t2s_sim/hls_stream.h": text},
        )
    monkeypatch.setattr(runner, "FLAGS", (*STRICT, "-fwrapv", "-ffp-contract=off"))
    for graph in acyclic():
        check(graph)


def test_a_wide_array_has_the_same_text() -> None:
    """The number of PEs is a number in the text: 10 x 26 PEs take no more lines than 2 x 2."""
    example = runpy.run_path(str(EXAMPLES / "gemm" / "gemm.py"))["C"]
    assert len(BACKEND.emit(t2s.lower(example))["C.cpp"].splitlines()) <= 170
    small, large = (
        BACKEND.emit(systolic_gemm(1, 1, 4, tile_rows=rows, tile_columns=columns, lanes=1))
        for rows, columns in ((2, 2), (10, 26))
    )
    lengths = [len(files["gemm.cpp"].splitlines()) for files in (small, large)]
    assert lengths[0] <= 160
    assert lengths[1] <= lengths[0] * 1.1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("V", "V"),
        ("read", "read_"),
        ("main", "main_"),
        ("class", "class_"),
        ("DATAFLOW", "DATAFLOW_"),
        ("float_x4", "float_x4_"),
        ("sum_int32_t", "sum_int32_t_"),
        ("t2s_process", "v_t2s_process"),
        ("a__b", "a_b"),
    ],
)
def test_identifiers(name: str, expected: str) -> None:
    assert backend.VITIS_HLS.identifier(name) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["V", "read", "write", "main", "DATAFLOW", "gemm", "stream"])
def test_names_of_nodes_and_tensors(name: str) -> None:
    """A user may call a function, a tensor and the design like anything in C++."""
    A, B = t2s.ImageParam(t2s.Int(32), 1, name="A"), t2s.Func(name)
    i = t2s.Var("i")
    B[i] = A[i] + 1
    B.bound(i, 0, 5)
    check(t2s.lower(B.isolate_producer(A, t2s.Func(f"{name}_in"))))


AC_CHANNEL = """
#include <deque>
template <typename T> struct ac_channel {
    std::deque<T> tokens;
    T read() { T token = tokens.front(); tokens.pop_front(); return token; }
    void write(const T &token) { tokens.push_back(token); }
};
"""


def test_another_dialect_is_a_folder_and_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C++ for Catapult: ``catapult.py`` beside this file, and a line of the registry."""
    line = {"catapult": "tests.backends.catapult"}
    monkeypatch.setattr(hardware, "BACKENDS", {**hardware.BACKENDS, **line})
    graph = designs.triangular(per_pe=True)
    (path,) = t2s.emit(graph, "catapult", tmp_path)
    text = path.read_text()
    assert "#pragma hls_unroll yes" in text
    assert "#pragma HLS" not in text
    (tmp_path / "ac_channel.h").write_text(AC_CHANNEL)
    command = ["g++", "-shared", "-fPIC", "-fwrapv", f"-I{tmp_path}", str(path)]
    subprocess.run([*command, "-o", tmp_path / "design.so"], check=True)
    inputs = random_inputs(graph)
    expected = interpret_graph(graph, inputs)
    memory = {
        each.name: inputs.get(each.name, np.zeros(each.allocated, np.int32))
        for each in graph.tensors
    }
    top = ctypes.CDLL(str(tmp_path / "design.so"))[f"{graph.name}_top"]
    top(*(values.ctypes.data_as(ctypes.c_void_p) for values in memory.values()))
    for name, values in expected.items():
        np.testing.assert_array_equal(memory[name], values)
    with pytest.raises(UnsupportedError, match="only integers are supported"):
        t2s.emit(designs.scaled(Float(32)), "catapult", tmp_path)


def ragged() -> Graph:
    """A copy of ``x[i, j]`` for ``j < i // 2``, empty at first and at every third ``i``."""
    i, j = index("i"), index("j")
    count = Select(condition=equals(i % 3, const(2)), if_true=const(0), if_false=i // 2, type=INT32)
    loops = (
        Loop(name="i", minimum=const(0), extent=const(7)),
        Loop(name="j", minimum=const(0), extent=count),
    )
    return graph_of(
        "ragged",
        (load("x_load", "x", "x_in", loops, (i, j)), store("y_store", "y", "x_in", loops, (i, j))),
        (channel("x_in", "x_load", "y_store"),),
        (tensor("x", 7, 3), tensor("y", 7, 3, role="output")),
    )


def test_a_ragged_nest_is_one_loop() -> None:
    """Bounds depend on the loops around, empty loops are skipped, and counters start again."""
    graph = ragged()
    text = BACKEND.emit(graph)["ragged.cpp"]
    assert text.count("while (i < 7) {\n        #pragma HLS PIPELINE II=1\n") == 2
    assert "for (int j" not in text
    check(graph)


def test_intervals_of_memory() -> None:
    """Accesses of a firing on one bundle take a cycle each: in the comment and the pipeline."""
    text = BACKEND.emit(systolic_gemm(8, 2, 4, tile_rows=2, tile_columns=2, lanes=4))["gemm.cpp"]
    load = text[text.index("// A_load") : text.index("// B_load")]
    assert "loads 8 vectors of A per firing on gmem_A, one in a cycle: II 8" in load
    assert "#pragma HLS PIPELINE II=8\n" in load


# ------------------------------------------------------------------------ what goes wrong


def changed_files(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """Let ``emulate`` compile other text than it would."""
    files = backend.emit_files

    def changed(graph: Graph, top: TopDesign) -> dict[str, str]:
        return {path: change(text) for path, text in files(graph, top).items()}

    monkeypatch.setattr(backend, "emit_files", changed)


def test_a_deadlock_names_functions_and_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = designs.serial_feeder()
    inputs = random_inputs(graph)
    changed_files(
        monkeypatch, lambda text: text.replace("hls::stream<int32_t, 3>", "hls::stream<int32_t, 1>")
    )
    begun = time.process_time()
    with pytest.raises(SimulationError) as caught:
        emulate(graph, inputs, exact_depths=True)
    assert time.process_time() - begun < 1
    message = str(caught.value)
    assert message.startswith("'serial_feeder' deadlocks in C simulation\n")
    assert re.search(r"waiting: feeder writes feed\[\d\]", message)
    assert re.search(r"waiting: \w+ reads feed\[\d\]", message)
    deep = emulate(graph, inputs)  # deeper streams, as by default
    for name, value in interpret_graph(graph, inputs).items():
        np.testing.assert_array_equal(deep[name], value)


def test_a_protocol_error_names_the_machine() -> None:
    graph = merging()
    high = {name: values + 200 for name, values in INPUTS.items()}
    with pytest.raises(SimulationError) as caught:
        emulate(graph, high)
    assert str(caught.value).splitlines()[0] == "merge: tokens that the protocol does not allow"


def refused(graph: Graph) -> str:
    with pytest.raises(UnsupportedError) as caught:
        BACKEND.emit(graph)
    return str(caught.value).splitlines()[0]


def around_memory() -> Graph:
    """Elements go to a reader through memory and around it: it cannot wait for the last one."""
    graph = designs.through_memory()
    nodes = {node.name: node for node in graph.pe_arrays}
    write, read = nodes["write"], nodes["read"]
    nodes["write"] = replace(
        write, body=(*write.body, Send(channel="around", value=Local(type=INT32, name="value")))
    )
    around = Receive(target="other", channel="around", type=INT32)
    total = Local(type=INT32, name="value") + Local(type=INT32, name="other")
    sent = replace(read.body[-1], value=total)
    nodes["read"] = replace(read, body=(*read.body[:-1], around, sent))
    wire = channel("around", "write", "read", capacity=12)
    return replace(
        graph,
        name="around_memory",
        nodes=tuple(nodes[node.name] for node in graph.nodes),
        channels=(*graph.channels, wire),
    )


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    start = "the vitis_hls backend cannot emit "
    assert refused(around_memory()) == (
        f"{start}'around_memory': tensor 'kept': tensors that one function stores and another one "
        "loads while both run are not supported in Vitis HLS; stream() sends results to their "
        "reader without memory"
    )
    graph = merging()
    machines = tuple(
        replace(node, endless=True) if isinstance(node, Machine) else node for node in graph.nodes
    )
    assert refused(replace(graph, nodes=machines)) == (
        f"{start}'merging': node 'merge': endless machines are not supported in Vitis HLS"
    )
    shared = tuple(replace(tensor, place=MemorySpace.SHARED) for tensor in graph.tensors)
    assert refused(replace(graph, tensors=shared)) == (
        f"{start}'merging': tensor 'a': banks that machines share are not supported in Vitis HLS"
    )
    gathering, _ = gatherers(0, Random(0))
    assert refused(gathering) == (
        f"{start}{gathering.name!r}: node 'gather3': gathers and scatters are not supported in "
        "Vitis HLS"
    )
    subjects = [problem.subject for problem in BACKEND.supports(gathering)]
    assert len(subjects) == len(set(subjects))
    monkeypatch.setattr(backend, "MOST_KERNELS", 3)
    assert refused(graph) == (
        f"{start}'merging': the design: it would be 4 functions, one for each machine and PE; 3 "
        "are the most"
    )


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = designs.running_total()
    monkeypatch.setattr(runner.shutil, "which", lambda name: None)
    with pytest.raises(UserError) as caught:
        emulate(graph, random_inputs(graph))
    assert str(caught.value).splitlines() == [
        "no C++ compiler is installed",
        "  expected: g++ or clang++ on the path",
        "  hint:     on Debian: apt install g++",
    ]


def test_the_time_limit_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    first = "    const char *folder ="
    endless = "    for (volatile int i = 0; i < 1; i = 0) {}\n"
    changed_files(monkeypatch, lambda text: text.replace(first, endless + first))
    graph = designs.running_total()
    with pytest.raises(SimulationError, match=r"was not done in C simulation after 0.5 s"):
        emulate(graph, random_inputs(graph), time_limit=0.5)


def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = designs.running_total()
    monkeypatch.setattr(runner, "FLAGS", ("-no-such-option",))
    with pytest.raises(SimulationError, match="no-such-option"):
        emulate(graph, random_inputs(graph))


def test_inputs_are_checked() -> None:
    graph = designs.running_total()
    inputs = random_inputs(graph)
    name = next(iter(inputs))
    with pytest.raises(UserError, match=name):
        emulate(graph, {name: inputs[name][:-1]})
    with pytest.raises(UserError, match=f"the input {name} is missing"):
        emulate(graph, {})
    with pytest.raises(UserError, match=r"(?s)int32.*float64"):
        emulate(graph, {name: inputs[name] + 0.5})
    with pytest.raises(UserError, match="is not emulated"):
        t2s.emulate(graph, inputs, backend="verilog")


# ----------------------------------------------------------------------------- the host


FAKE_PYXRT = '''
import numpy as np, sys, subprocess, pathlib

class xclBOSyncDirection:
    XCL_BO_SYNC_BO_TO_DEVICE, XCL_BO_SYNC_BO_FROM_DEVICE = 0, 1

class xclbin:
    def __init__(self, path):
        if not pathlib.Path(path).exists():
            raise RuntimeError(f"No such file {path}")

class device:
    def __init__(self, number):
        if pathlib.Path("no_card").exists():
            raise RuntimeError("No such device with index '0'")
    def load_xclbin(self, xclbin): return pathlib.Path("kernel.xclbin").read_text()

class bo:
    normal = 0
    def __init__(self, device, size, flags, group):
        self.data, self.group = bytearray(size), group
    def write(self, data, seek): self.data[seek : seek + len(data)] = data
    def read(self, size, skip): return np.frombuffer(bytes(self.data[skip : skip + size]), np.int8)
    def sync(self, direction, size, offset): ...

class _Run:
    def wait(self): ...

class kernel:
    shared = 0
    def __init__(self, device, uuid, name, mode):
        if uuid not in ("", name):
            raise RuntimeError(f"No such kernel '{name}'")
    def group_id(self, argument): return argument
    def __call__(self, *arguments):
        """The last pointer becomes twice the first one, times the last scalar."""
        pointers = [a for a in arguments if isinstance(a, bo)]
        scalars = [a for a in arguments if not isinstance(a, bo)]
        first = np.frombuffer(bytes(pointers[0].data), np.int32)
        found = (first * scalars[0] if scalars else first).astype(np.int32)
        pointers[-1].data[: found.nbytes] = found.tobytes()[: len(pointers[-1].data)]
        return _Run()
'''


def test_host_program_in_python(tmp_path: Path) -> None:
    """Against a pyxrt that multiplies by the first scalar; and ``--pack`` for the test bench."""
    graph = designs.scaled(Int(32))
    top = write(graph, tmp_path)
    (tmp_path / "pyxrt.py").write_text(textwrap.dedent(FAKE_PYXRT))
    x = np.array([3, -4, 5, 6], np.int32)
    np.savez(tmp_path / "inputs.npz", x=x, alpha=np.int32(2), count=np.int32(4))
    (tmp_path / "kernel.xclbin").write_text("")

    def host(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, f"{top.stem}_host.py", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = host("--xclbin", "kernel.xclbin", "--inputs", "inputs.npz", "--outputs", "out.npz")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], 2 * x)
    assert host("--pack", "data", "--inputs", "inputs.npz").returncode == 0
    np.testing.assert_array_equal(np.fromfile(tmp_path / "data" / "x.bin", np.int32), x)
    for arguments, said in (
        (("--xclbin", "none.xclbin", "--inputs", "inputs.npz"), "No such file none.xclbin"),
        (("--xclbin", "kernel.xclbin"), "not given: x, alpha, count"),
        (("--inputs", "inputs.npz"), "--xclbin or --pack is needed"),
        (("--xclbin", "kernel.xclbin", "--inputs", "none.npz"), "none.npz"),
    ):
        failed = host(*arguments)
        assert failed.returncode == 1
        assert len(failed.stderr.splitlines()) == 1
        assert said in failed.stderr
    run = ("--xclbin", "kernel.xclbin", "--inputs", "inputs.npz", "--outputs", "out.npz")
    (tmp_path / "kernel.xclbin").write_text("another")
    assert host(*run).stderr == f"scaled_host.py: No such kernel '{top.function}'\n"
    (tmp_path / "no_card").touch()
    failed = host(*run)
    assert failed.returncode == 1
    assert failed.stderr == "scaled_host.py: No such device with index '0'\n"
    np.savez(tmp_path / "inputs.npz", x=x[:3], alpha=np.int32(2), count=np.int32(4))
    failed = host("--pack", "data", "--inputs", "inputs.npz")
    assert "x must have shape (4,), not (3,)" in failed.stderr


def test_host_program_in_cpp(tmp_path: Path) -> None:
    include = Path("/usr/include/xrt")
    if not (include / "xrt" / "xrt_kernel.h").exists():
        pytest.skip("libxrt-dev is not installed")
    stem = write(designs.scaled(Int(32)), tmp_path).stem
    command = ["g++", "-std=c++17", f"-I{include}", f"{stem}_host.cpp", "-lxrt_coreutil"]
    subprocess.run([*command, "-pthread", "-o", "host"], cwd=tmp_path, check=True)
    failed = subprocess.run([tmp_path / "host"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("usage:")
