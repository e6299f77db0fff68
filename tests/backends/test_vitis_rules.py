"""The rules of C++ for Vitis HLS, read off the trees of functions: what no compiler here checks.

Each rule finds the defect that is put into a tree for it.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, TypeVar

import pytest

import t2s
from benchmarks.random_graphs import random_graph
from benchmarks.random_machines import random_machines
from t2s.backends.kernels import kernel_ast as ast
from t2s.backends.kernels.registers import plan_registers
from t2s.backends.kernels.scope import KernelDesign
from t2s.backends.text.expressions import Call, Do, Literal, Name, Set, Unary, call, number
from t2s.backends.vitis_hls import backend
from t2s.backends.vitis_hls.dialect import VITIS_HLS
from t2s.backends.vitis_hls.top import Call as TopCall
from t2s.backends.vitis_hls.top import TopDesign, top_design
from t2s.core.types import INT32, Float
from t2s.graph.control.shared_nest import keeps_together
from t2s.graph.graph import Graph
from t2s.graph.nodes import Machine, PEArray
from t2s.graph.ports import busiest_port
from t2s.graph.semantics import pe_points
from tests.backends import designs
from tests.backends.buffers import double_buffer
from tests.backends.test_opencl_machines import MATRIX, cisr, merging
from tests.backends.test_vitis_hls import example, several_statements
from tests.examples.test_golden_opencl import SMALLEST
from tests.graph.test_ports import product
from tests.hand_graphs import systolic_gemm

Loop = ast.For | ast.While | ast.Forever
Broken = Iterator[str]
T = TypeVar("T")


def terms(value: Any) -> Iterator[Any]:
    """A tree and everything in it."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from terms(each)
    elif dataclasses.is_dataclass(value):
        yield value
        for field in dataclasses.fields(value):
            yield from terms(getattr(value, field.name))


def found(value: Any, kind: type[T]) -> list[T]:
    return [term for term in terms(value) if isinstance(term, kind)]


def is_over_time(term: Any) -> bool:
    return isinstance(term, ast.While | ast.Forever) or (
        isinstance(term, ast.For) and not term.unroll
    )


def root(expression: Any) -> str:
    """The variable of an access: ``x`` of ``x[i].s[j]``."""
    while not isinstance(expression, Name):
        expression = expression.base
    return expression.name


def fields(expression: Any) -> int:
    """The number of structs around an element: 2 for ``x.s[i].s`` and for ``x[i].s[j].s``."""
    count = 0
    while not isinstance(expression, Name):
        count += isinstance(expression, ast.FieldOf)
        expression = expression.base
    return count


@dataclass(frozen=True)
class Emitted:
    """A design with its tree."""

    design: KernelDesign
    top: TopDesign

    @property
    def pointers(self) -> frozenset[str]:
        return frozenset(port.name for port in self.top.ports)


def emitted(graph: Graph) -> Emitted | None:
    design = backend.analyzed(graph)
    return None if isinstance(design, list) else Emitted(design, top_design(design))


# ------------------------------------------------------------------------------- the rules


def two_ends(it: Emitted) -> Broken:
    """One function writes a stream and one reads it, and the top passes it to these two."""
    ends: dict[tuple[str, str], list[str]] = {}
    for function in it.top.functions:
        for method in ("read", "write"):
            for name in _streams_used(function, method):
                ends.setdefault((name, method), []).append(function.name)
    for stream in it.top.streams:
        for method in ("read", "write"):
            users = ends.get((stream.name, method), [])
            if len(users) != 1:
                yield f"{stream.name}: {method} by {users}"
        passed = [each.function for each in it.top.calls if stream.name in each.arguments]
        if len(passed) != 2:
            yield f"{stream.name}: passed to {passed}"


def _streams_used(function: ast.KernelDefinition, method: str) -> set[str]:
    uses = [use for use in found(function.body, ast.MethodCall) if use.method == method]
    streams = {root(use.base) for use in uses}
    if method == "read":
        polls = [use for use in found(function.body, Call) if use.function == "T2S_POLL"]
        streams |= {root(use.arguments[0]) for use in polls}
    return streams


def one_function_for_a_pointer(it: Emitted) -> Broken:
    """In a stage, of which the top passes a pointer to at least one."""
    for pointer in it.pointers:
        users = [
            [each.function for each in stage.calls if pointer in each.arguments]
            for stage in it.top.stages
        ]
        if max(map(len, users)) != 1:
            yield f"{pointer}: passed to {users}"


def stages_in_order(it: Emitted) -> Broken:
    """A stage that loads what an earlier one stored has the same pointer, and none loads before."""
    stage_of = {
        call.function: (number, call)
        for number, stage in enumerate(it.top.stages)
        for call in stage.calls
    }
    uses: dict[str, list[tuple[int, bool, str]]] = {}
    tensors = {port.name: port.tensor for port in it.top.ports}
    for function in it.top.functions:
        number, call = stage_of[function.name]
        for parameter, argument in zip(function.parameters, call.arguments, strict=False):
            if argument in tensors:
                stores = not parameter.type.startswith("const ")
                uses.setdefault(tensors[argument], []).append((number, stores, argument))
    for tensor, given in uses.items():
        stored = [(number, name) for number, stores, name in given if stores]
        loaded = {number for number, stores, _ in given if not stores}
        for number in loaded if stored else ():
            own = {name for at, stores, name in given if at == number}
            if max(stored)[0] >= number or not own & {name for _, name in stored}:
                yield f"{tensor}: loaded in stage {number} by {own}, stored as {stored}"


def pipelined(it: Emitted) -> Broken:
    """The innermost loops over time, and no others; with what memory takes as their interval."""
    machines = {VITIS_HLS.identifier(machine.name) for machine in it.design.graph.machines}
    helpers = {helper.name: helper for helper in it.top.helpers}
    for function in it.top.functions:
        pointers = {p.name for p in function.parameters if p.type.endswith("*")}
        for loop in filter(is_over_time, terms(function.body)):
            inside = [other for other in terms(loop.body) if is_over_time(other)]
            called = {use.function for use in found(loop.body, Call)} & helpers.keys()
            inside += [o for name in called for o in terms(helpers[name].body) if is_over_time(o)]
            memory = any(root(use) in pointers for use in found(loop.body, ast.Subscript))
            pipeline = getattr(loop, "pipeline", None)
            if (pipeline is None) != bool(inside):
                yield f"{function.name}: pipeline {pipeline} around {len(inside)} loops"
            if pipeline is not None:
                flushes = "style=flp" in " ".join(VITIS_HLS.inside_loop(loop))
                if pipeline.interval != 1 and not memory and function.name not in machines:
                    yield f"{function.name}: II {pipeline.interval} without memory"
                if flushes == memory:
                    yield f"{function.name}: flushes: {flushes}, memory: {memory}"


def as_in_the_model(it: Emitted) -> Broken:
    """The device model with a port for each tensor takes as long as the text says."""
    source = it.design.source or it.design.graph
    if source is not it.design.graph and not source.machines:
        return  # each PE is a function, with ports of its own, as the text finds out only
    functions = iter(_functions(it))
    for node in source.nodes:
        apart = source is not it.design.graph and not (
            isinstance(node, PEArray) and keeps_together(source, node)
        )
        own = [next(functions) for _ in (pe_points(node) if apart else (None,))]
        busiest = busiest_port(source, node)
        intervals = [p.interval for each in own for p in found(each.body, ast.Pipeline)]
        expected = 1 if busiest is None else busiest[1]
        if intervals and max(intervals) != expected and not isinstance(node, Machine):
            yield f"{node.name}: {intervals} in the text, {busiest} in the model"


def _functions(it: Emitted) -> list[ast.KernelDefinition]:
    """In the order of the graph; the text has senders first."""
    by_call = {function.name: function for function in it.top.functions}
    order = [VITIS_HLS.identifier(node.name) for node in it.design.graph.nodes]
    return [by_call[name] for name in order]


def partitioned(it: Emitted) -> Broken:
    """Arrays in block RAM in the dimensions that unrolled loops index, and in no others."""
    capacities: dict[Any, int] = {each.name: each.value for each in it.top.capacities}
    vectors = {struct.name for struct in it.top.structs if re.search(r"_x\d+$", struct.name)}
    for function in it.top.functions:
        accesses: dict[str, list[tuple[Any, ...]]] = {}
        for subscript, unrolled in _subscripts(function.body, frozenset()):
            field = ".s" * fields(subscript.base)
            kinds = tuple(_fixed(index, unrolled) for index in subscript.indices)
            accesses.setdefault(root(subscript) + field, []).append(kinds)
        for declared in found(function.body, ast.Declare):
            sizes = {declared.name: tuple(capacities.get(d, d) for d in declared.dimensions)}
            if declared.type not in vectors:
                struct = next((s for s in it.top.structs if s.name == declared.type), None)
                sizes[f"{declared.name}.s"] = () if struct is None else struct.fields[0].dimensions
            for name, dimensions in sizes.items():
                unrolled = _unrolled(accesses.get(name, []), dimensions)
                split = _split(declared, name, dimensions)
                where = f"{function.name}: {name}{list(dimensions)}"
                if unrolled - split:
                    yield f"{where} is not partitioned along {unrolled}"
                rest = prod(size for at, size in enumerate(dimensions) if at not in unrolled)
                in_memory = any("BIND_STORAGE" in text for text in declared.attributes)
                if split - unrolled and (in_memory or rest * _bytes(declared.type) > 64):
                    yield f"{where} is partitioned along {split}"


def _unrolled(accesses: list[tuple[str | None, ...]], dimensions: tuple[int, ...]) -> set[int]:
    """The dimensions that unrolled loops index, or several constants."""
    several: set[int] = set()
    for at, size in enumerate(dimensions):
        kinds = {access[at] for access in accesses} - {None}
        if size > 1 and ("unrolled" in kinds or len(kinds) > 1):
            several.add(at)
    return several


def _subscripts(
    value: Any, unrolled: frozenset[str]
) -> Iterator[tuple[ast.Subscript, frozenset[str]]]:
    """All subscripts, with the unrolled loops around them."""
    if isinstance(value, tuple):
        for each in value:
            yield from _subscripts(each, unrolled)
    elif dataclasses.is_dataclass(value):
        if isinstance(value, ast.Subscript):
            yield value, unrolled
        if isinstance(value, ast.For) and value.unroll:
            unrolled |= {value.name}
        for field in dataclasses.fields(value):
            yield from _subscripts(getattr(value, field.name), unrolled)


def _fixed(index: Any, unrolled: frozenset[str]) -> str | None:
    """What an index is once all is unrolled: that, or a constant; ``None`` for others."""
    names = {name.name for name in found(index, Name)}
    if names & unrolled:
        return "unrolled"
    return None if names else str(index)


def _split(declared: ast.Declare, name: str, dimensions: tuple[int, ...]) -> set[int]:
    split: set[int] = set()
    for text in declared.attributes:
        kind = r"(?:complete|cyclic factor=\d+)"
        match = re.fullmatch(rf"ARRAY_PARTITION variable={re.escape(name)} {kind} dim=(\d)", text)
        if match is not None:
            every, dim = range(len(dimensions)), int(match[1])
            split |= {at for at in every if dimensions[at] > 1} if dim == 0 else {dim - 1}
    return split


def _bytes(type: str) -> int:
    bits = re.search(r"\d+", type)
    scalar = {"float": 4, "double": 8, "bool": 1}.get(type.split("_")[0])
    lanes = re.search(r"_x(\d+)$", type)
    return (scalar or int(bits[0]) // 8 if bits else scalar or 4) * (int(lanes[1]) if lanes else 1)


def dependences(it: Emitted) -> Broken:
    """Distances are those of the analysis, for arrays in block RAM, each where it can be seen."""
    for name, function in zip(
        (node.name for node in it.design.graph.nodes), _functions(it), strict=True
    ):
        if name not in it.design.nodes:
            continue
        plans = plan_registers(it.design.nodes[name], whole_nest=True).values()
        expected = sorted(str(p.apart) for p in plans if p.in_memory and p.apart != 1)
        loops = [loop for loop in terms(function.body) if isinstance(loop, ast.For | ast.While)]
        if not any(loop.pipeline for loop in loops):
            continue
        given = [pair for loop in loops for pair in loop.independent]
        if sorted(str(apart) for _, apart in given) != expected:
            yield f"{function.name}: {given}, where {expected} are the distances"
        in_memory = {
            d.name
            for d in found(function.body, ast.Declare)
            if any("BIND_STORAGE" in text for text in d.attributes)
        }
        if {array for array, _ in given} - in_memory:
            yield f"{function.name}: {given} of {in_memory}"


def ends(it: Emitted) -> Broken:
    """A dataflow region waits for all functions: no loop goes on for ever."""
    for function in it.top.functions:
        for loop in filter(is_over_time, terms(function.body)):
            match loop:
                case ast.Forever():
                    yield f"{function.name}: while (1)"
                case ast.For(name=name, body=body):
                    if name in _assigned(body):
                        yield f"{function.name}: {name} is assigned in its loop"
                case ast.While(condition=condition, body=body):
                    tested = {name.name for name in found(condition, Name)}
                    if not tested & _assigned(body):
                        yield f"{function.name}: nothing changes {tested}"


def _assigned(body: Any) -> set[str]:
    targets = [term.target for term in found(body, Set)]
    targets += [term.target for term in found(body, ast.Increment)]
    targets += [term.operand for term in found(body, Unary) if term.operator == "++"]
    return {target.name for target in targets if isinstance(target, Name)}


def calls(it: Emitted) -> Broken:
    """Functions call helpers that are defined before, and nothing that allocates or recurs."""
    known: set[str] = set()
    for function in (*it.top.helpers, *it.top.functions):
        for used in found(function.body, Call):
            if used.function not in known and not used.function.startswith(("hls::", "T2S_")):
                yield f"{function.name}: calls {used.function}"
        if isinstance(function, ast.HelperFunction):
            known.add(function.name)


def names(it: Emitted) -> Broken:
    """No name is a word or a macro of C++, and none hides another one of its function."""
    top = it.top
    outside = [top.function, *(each.name for each in (*top.helpers, *top.functions, *top.structs))]
    outside += [stage.function for stage in top.stages]
    outside += [each.name for each in (*top.streams, *top.parameters)]
    if len(outside) != len(set(outside)):
        yield f"twice: {sorted(name for name in outside if outside.count(name) > 1)}"
    inside: list[str] = []
    for function in (*top.functions, *top.helpers):
        parameters = [parameter.name.strip("(&)") for parameter in function.parameters]
        inside += parameters
        for name, hides in _declarations(function.body, frozenset(parameters)):
            inside.append(name)
            if hides:
                yield f"{function.name}: {name} hides another variable"
    for name in {*outside, *inside} & reserved():
        yield f"{name} has a meaning in C++"


def _declarations(body: Iterable[Any], visible: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """The variables of a block, and whether each hides one around it."""
    for statement in body:
        own: list[str] = []
        match statement:
            case ast.Declare(name=name):
                own = [name]
            case ast.DeclareAll(variables=variables):
                own = [name for name, _ in variables]
            case ast.For(name=name, body=inner):
                yield name, name in visible
                yield from _declarations(inner, visible | {name})
            case ast.Switch(cases=cases):
                for case in cases:
                    yield from _declarations(case.body, visible)
            case _:
                for part in ("body", "then", "otherwise"):
                    yield from _declarations(getattr(statement, part, ()), visible)
        yield from ((name, name in visible) for name in own)
        visible |= set(own)


@cache
def reserved() -> frozenset[str]:
    """The words of C++, and the macros of all headers that the files include."""
    headers = ("cstdint", "cstdio", "cstdlib", "cmath", "climits", "unistd.h", "string", "fstream")
    text = "".join(f"#include <{header}>\n" for header in headers)
    command = ["g++", "-std=c++14", "-dM", "-E", "-x", "c++", "-"]
    made = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    macros = re.findall(r"^#define (\w+)", made.stdout, re.MULTILINE)
    words = """and asm auto bitand bitor bool break case catch char class compl const continue
    default delete do double else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new not operator or private protected public register return short
    signed sizeof static struct switch template this throw true try typedef typeid typename union
    unsigned using virtual void volatile while xor nullptr constexpr decltype noexcept hls std
    main"""
    return frozenset((*macros, *words.split()))


RULES: tuple[Callable[[Emitted], Broken], ...] = (
    two_ends,
    one_function_for_a_pointer,
    stages_in_order,
    pipelined,
    as_in_the_model,
    partitioned,
    dependences,
    ends,
    calls,
    names,
)


def broken(it: Emitted) -> dict[str, list[str]]:
    said = {rule.__name__: list(rule(it)) for rule in RULES}
    return {name: texts for name, texts in said.items() if texts}


# ------------------------------------------------------------------------------- the tests


def check(graphs: Iterable[Graph]) -> None:
    said = [(graph.name, broken(it)) for graph in graphs if (it := emitted(graph)) is not None]
    assert [(name, rules) for name, rules in said if rules] == []
    assert len(said) > 5


def gemm() -> Graph:
    return systolic_gemm(2, 3, 4, tile_rows=2, tile_columns=2, lanes=4, element=Float(32))


def test_every_golden_and_hand_graph() -> None:
    check(
        (
            gemm(),
            designs.triangular(per_pe=True),
            designs.feedback_loop(),
            designs.reconvergent(),
            designs.triangular(),
            designs.relay_chain(),
            designs.scatter_gather(),
            designs.running_total(),
            designs.circulating(),
            designs.through_memory(),
            *map(t2s.lower, several_statements()),
            double_buffer(periods=2),
            double_buffer(writes=2, repeats=2, pes=2, lanes=10),
            merging(),
            t2s.lower(cisr.spmv(machines=4, fused=1), {"A": MATRIX}),
            *(product(pes).lower() for pes in ((2, 4), (4, 2), (1, 8), (6, 1))),
            product((2, 6), rows=True, size=(6, 12), order="jj ii").lower(),
            product((4, 2), 4).lower(),
            product((4, 2), 4, first=1).lower(),
        )
    )


def test_random_graphs() -> None:
    check(random_graph(seed) for seed in range(20))


@pytest.mark.slow
def test_examples_and_more_random_graphs() -> None:
    check(map(example, (*SMALLEST, "lu", "pairhmm")))
    check(random_graph(seed) for seed in range(20, 200))
    check(random_machines(seed)[0] for seed in range(20))


Change = Callable[[Any], Any]
"""A term of a tree in a changed form, or ``None``."""


def changed(value: Any, change: Change) -> Any:
    """A tree with the first term that changes, from outside to inside."""
    return _changed(value, change)[0]


def _changed(value: Any, change: Change) -> tuple[Any, bool]:
    if isinstance(value, tuple):
        for at, each in enumerate(value):
            other, done = _changed(each, change)
            if done:
                return (*value[:at], other, *value[at + 1 :]), True
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        other = change(value)
        if other is not None:
            return other, True
        for field in dataclasses.fields(value):
            part, done = _changed(getattr(value, field.name), change)
            if done:
                return dataclasses.replace(value, **{field.name: part}), True
    return value, False


def on(kind: type, when: Callable[[Any], Any] = lambda term: True, **fields: Any) -> Change:
    """Terms of a kind with other fields: values, or functions of the term."""

    def change(term: Any) -> Any:
        if not isinstance(term, kind) or not when(term):
            return None
        new = {name: value(term) if callable(value) else value for name, value in fields.items()}
        return dataclasses.replace(term, **new)

    return change


def memory(loop: Any) -> bool:
    return loop.pipeline is not None and loop.pipeline.memory


def pipeline(loop: Any) -> bool:
    return loop.pipeline is not None


def bind_storage(declared: Any) -> bool:
    return any("BIND_STORAGE" in text for text in declared.attributes)


def partition(declared: Any) -> bool:
    return any("ARRAY_PARTITION" in text for text in declared.attributes)


def whole(declared: Any) -> tuple[str, ...]:
    return (*declared.attributes, f"ARRAY_PARTITION variable={declared.name} complete dim=0")


def one_more(pairs: Any) -> Any:
    return tuple((array, (apart or 0) + 1) for array, apart in pairs)


def _second_pointer(top: TopDesign) -> Any:
    """Where a stage loads what another one stored, with a pointer to the same tensor."""
    if len(top.stages) == 1:
        return None
    port = next(port for port in top.ports if port.name == "kept")
    ports = (*top.ports, dataclasses.replace(port, name="other"))
    return changed(
        dataclasses.replace(top, ports=ports),
        on(TopCall, lambda call: call.arguments == ("kept", "back"), arguments=("other", "back")),
    )


DEFECTS: dict[str, tuple[Callable[[Emitted], Broken], Change]] = {
    "two functions write a stream": (
        two_ends,
        on(ast.MethodCall, lambda call: call.method == "read", method="write"),
    ),
    "a stream is not passed": (two_ends, on(TopCall, arguments=lambda call: call.arguments[:1])),
    "a pointer is passed twice": (
        one_function_for_a_pointer,
        on(TopCall, lambda call: "y" in call.arguments, arguments=("x", "y")),
    ),
    "a pointer of its own to what another stage stored": (
        stages_in_order,
        lambda top: _second_pointer(top) if isinstance(top, TopDesign) else None,
    ),
    "a stage too early": (stages_in_order, on(TopDesign, stages=lambda top: top.stages[::-1])),
    "a loop without a pipeline": (pipelined, on(ast.For, pipeline, pipeline=None)),
    "a pipeline around a loop": (
        pipelined,
        on(ast.For, lambda loop: not pipeline(loop), pipeline=ast.Pipeline()),
    ),
    "a pipeline of memory flushes": (pipelined, on(ast.Pipeline, memory=lambda p: not p.memory)),
    "an interval without memory": (
        pipelined,
        on(ast.Pipeline, lambda p: not p.memory, interval=2),
    ),
    "an interval that the model has not": (as_in_the_model, on(ast.Pipeline, interval=7)),
    "an array of PEs in one memory": (partitioned, on(ast.Declare, partition, attributes=())),
    "a memory in registers": (partitioned, on(ast.Declare, bind_storage, attributes=whole)),
    "another distance": (
        dependences,
        on(ast.For, lambda loop: loop.independent, independent=lambda f: one_more(f.independent)),
    ),
    "a distance too much": (
        dependences,
        on(ast.For, lambda f: pipeline(f) and not f.independent, independent=(("y", 3),)),
    ),
    "while (1)": (
        ends,
        lambda term: ast.Forever(body=term.body) if is_over_time(term) else None,
    ),
    "a loop that starts again": (
        ends,
        on(
            ast.For,
            pipeline,
            body=lambda loop: (*loop.body, Set(target=Name(name=loop.name), value=number(0))),
        ),
    ),
    "a condition that does not change": (
        ends,
        lambda term: (
            ast.While(condition=Literal(text="true"), body=term.body)
            if is_over_time(term)
            else None
        ),
    ),
    "malloc": (
        calls,
        on(ast.For, pipeline, body=lambda loop: (*loop.body, Do(call=call("malloc")))),
    ),
    "a macro as a name": (names, on(ast.Declare, name="EOF")),
    "a word as a name": (names, on(ast.Declare, name="register")),
    "a loop that hides another": (
        names,
        on(
            ast.For,
            lambda loop: not pipeline(loop),
            body=lambda loop: (dataclasses.replace(loop, body=loop.body),),
        ),
    ),
}


@pytest.fixture(scope="module")
def sound() -> list[Emitted]:
    graphs = (
        double_buffer(periods=2),
        designs.triangular(per_pe=True),
        gemm(),
        designs.divided(INT32, (3,), 4),
        designs.through_memory(),
    )
    return [it for graph in graphs if (it := emitted(graph)) is not None]


def test_each_rule_finds_its_defect(sound: list[Emitted]) -> None:
    """In at least one of some designs, all of which keep all rules as they are."""
    for name, (rule, change) in DEFECTS.items():
        texts = [text for it in sound for text in rule(Emitted(it.design, changed(it.top, change)))]
        assert texts, name
    assert {rule for rule, _ in DEFECTS.values()} == set(RULES)
