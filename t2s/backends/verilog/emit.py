"""The files of a design: library, modules of the nodes, top and testbench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

from t2s.backends.base import DeviceTimes, refusal
from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.counted_nests import nests_of
from t2s.backends.verilog.data_types import bits_of, signal_names
from t2s.backends.verilog.interfaces import Interface
from t2s.backends.verilog.limits import Bounds
from t2s.backends.verilog.machine_module import MachineModule
from t2s.backends.verilog.pe import PEModule
from t2s.backends.verilog.testbench import Testbench
from t2s.backends.verilog.top import LIBRARY, top_module, top_of
from t2s.core.gc_pause import gc_paused
from t2s.core.ops import C_FUNCTIONS
from t2s.graph.graph import Graph
from t2s.graph.nodes import Machine, Node, SpaceDimension

_LIBRARY = Path(__file__).parent / "library"
_FIRST = ("operators.sv", "floats.sv", "stalls.sv", "fifo.sv")
_LAST = ("floats.cpp", "main.cpp")
_OF_EACH_FUNCTION = {
    "  // functions of C": (
        '  import "DPI-C" pure function {word} t2s_{name}_{suffix}(input {word} a);'
    ),
    "// functions of C": (
        "T2S_ONE({name}, {suffix}, {number}, {pattern}, std::{name}(static_cast<double>(a)))"
    ),
}
"""What follows a line of the library, for each operator that is a function of C."""

_WIDTHS = (
    {"suffix": "f32", "number": "float", "pattern": "unsigned int", "word": "int unsigned"},
    {
        "suffix": "f64",
        "number": "double",
        "pattern": "unsigned long long",
        "word": "longint unsigned",
    },
)

NAME = "verilog"


@gc_paused()
def files_of(graph: Graph, timing: DeviceTimes, bounds: Bounds) -> Mapping[str, str]:
    """The files, with FIFOs that have room for ``bounds`` and a testbench set to ``timing``.

    They are in the order in which a compiler has to read them.  Raises ``UnsupportedError`` if
    ``supports`` is not empty.
    """
    nests = nests_of(graph)
    if isinstance(nests, list):
        raise refusal(NAME, graph, nests)
    top = top_of(graph)
    taken = {names.module for _, names in top.nodes}
    modules = signal_names((*LIBRARY, top.module, *taken))
    files = {name: _text(name) for name in _FIRST}
    for interface, names in top.nodes:
        name = modules.fresh(f"{names.module}_pe")
        node = interface.node
        if isinstance(node, Machine):
            machine = MachineModule(graph, interface, node, name, modules)
            built, space = machine.build(), machine.space
        else:
            pe = PEModule(interface, node, nests[node.name], name)
            built, space = (pe.build(),), pe.space
        array = array_module(interface, names.module, name, tuple(space.values()))
        files[f"{names.module}.sv"] = ast.print_modules((*built, array))
    sources = [*files, "top.sv", "testbench.sv"]
    files["top.sv"] = ast.print_modules((top_module(top, bounds),))
    files["testbench.sv"] = ast.print_modules((Testbench(top, timing, bounds).build(),))
    command = ("-Wno-fatal --cc --exe --build --top-module testbench", *sources, *_LAST)
    files["verilator.f"] = "\n".join((*command, ""))
    return {**files, **{name: _text(name) for name in _LAST}}


def _text(name: str) -> str:
    """A file of the library, with a line in it for each operator that is a function of C."""
    lines = (_LIBRARY / name).read_text(encoding="utf-8").splitlines()
    return "".join(f"{line}\n" for text in lines for line in (text, *_functions_of_c(text)))


def _functions_of_c(place: str) -> list[str]:
    pattern = _OF_EACH_FUNCTION.get(place)
    if pattern is None:
        return []
    return [pattern.format(name=name, **of) for name in C_FUNCTIONS.values() for of in _WIDTHS]


# The module of a node: its PEs, and the connections from their ports to elements of channels.

PE = "pe"
ELEMENT = "at"


def array_module(
    interface: Interface, name: str, pe_module: str, space: Sequence[str]
) -> ast.HardwareModule:
    """The module ``name`` of a node, over instances of ``pe_module``.

    ``space`` are the ports of a PE that get its coordinates in the array.
    """
    node, places = interface.node, interface.node.place_count
    fresh = interface.identifiers.fresh
    pe = fresh(PE)
    ports = [
        ast.input_port(port.CLOCK),
        ast.input_port(port.RESET),
        ast.input_port(port.INTERVAL, ast.WORD),
    ]
    ports += [ast.input_port(text, bits_of(p.type)) for p, text in interface.parameters]
    declarations: list[ast.Item] = []
    routes: list[ast.Item] = []
    connections: list[tuple[str, TargetExpression]] = [
        (text, Name(name=text)) for text in (port.CLOCK, port.RESET, port.INTERVAL)
    ]
    connections += zip(space, _place(node, pe), strict=True)
    connections += [(text, Name(name=text)) for _, text in interface.parameters]

    def each(text: str, type: ast.Bits) -> Name:
        """A variable with an element for each PE, connected to the PE's port ``text``."""
        wire = fresh(f"pe_{text}")
        declarations.append(ast.variable(wire, type, places))
        connections.append((text, ast.element(wire, Name(name=pe))))
        return Name(name=wire)

    for taking in interface.taking:
        count = taking.channel.element_count
        ports += [
            ast.input_port(taking.valid, ast.BIT, count),
            ast.input_port(taking.token, taking.type, count),
        ]
        ports.append(ast.output_port(taking.pop, ast.BIT, count))
        where, pop = each(taking.at, ast.WORD), each(taking.pop, ast.BIT)
        at = ast.element(where.name, Name(name=pe))
        connections += [
            (taking.valid, ast.element(taking.valid, at)),
            (taking.token, ast.element(taking.token, at)),
        ]
        routes.append(_pops(taking.pop, count, places, pop.name, where.name))
    for sending in interface.sending:
        count = sending.channel.element_count
        ports += [
            ast.input_port(sending.space, ast.BIT, count),
            ast.output_port(sending.push, ast.BIT, count),
        ]
        ports.append(ast.output_port(sending.value, sending.type, count))
        where, push = each(sending.at, ast.WORD), each(sending.push, ast.BIT)
        value = each(sending.value, sending.type)
        at = ast.element(where.name, Name(name=pe))
        connections.append((sending.space, ast.element(sending.space, at)))
        names = (push.name, where.name, value.name)
        routes.append(_pushes(sending.push, sending.value, count, places, names))
    for straight in interface.straight:
        text = straight.variable.name
        ports.append(replace(straight, variable=replace(straight.variable, count=places)))
        connections.append((text, ast.element(text, Name(name=pe))))
    instance = ast.Instance(module=pe_module, name="one", connections=tuple(connections))
    repeat = ast.Generate(variable=pe, count=places, label="place", items=(instance,))
    if routes:
        routes.insert(0, ast.Heading(text="from PEs to channels"))
    items = (*declarations, repeat, *routes)
    return ast.HardwareModule(name=name, about=_about(node), ports=tuple(ports), items=items)


def _about(node: Node) -> tuple[str, ...]:
    shape = " x ".join(str(dimension.extent) for dimension in node.space)
    kind = "machine" if isinstance(node, Machine) else "PE"
    what = f"{shape} {kind}s" if node.space else f"one {kind}"
    return (f"The {node.role.value} node {node.name}: {what}.",)


def _place(node: Node, pe: str) -> list[TargetExpression]:
    """The point of the space domain of PE number ``pe``, in row-major order."""
    coordinates: list[TargetExpression] = []
    for at, dimension in enumerate(node.space):
        inside = prod(other.extent for other in node.space[at + 1 :])
        coordinates.append(_coordinate(dimension, inside, at == 0, pe))
    return coordinates


def _coordinate(
    dimension: SpaceDimension, inside: int, outermost: bool, pe: str
) -> TargetExpression:
    place: TargetExpression = Name(name=pe)
    if inside > 1:
        place = Binary(operator="/", left=place, right=number(inside))
    if not outermost:
        place = Binary(operator="%", left=place, right=number(dimension.extent))
    if dimension.minimum:
        place = Binary(operator="+", left=place, right=number(dimension.minimum))
    return ast.Resize(bits=32, value=place)


def _pops(pop: str, count: int, places: int, pops: str, where: str) -> ast.Item:
    clear: TargetStatement = ast.UnrolledFor(
        variable=ELEMENT,
        count=count,
        body=(ast.put(ast.element(pop, Name(name=ELEMENT)), ast.FALSE),),
    )
    at = ast.element(where, Name(name=PE))
    set_one = If(
        condition=ast.element(pops, Name(name=PE)),
        then=(ast.put(ast.element(pop, at), ast.element(pops, Name(name=PE))),),
    )
    return ast.AlwaysComb(body=(clear, ast.UnrolledFor(variable=PE, count=places, body=(set_one,))))


def _pushes(
    push: str, value: str, count: int, places: int, names: tuple[str, str, str]
) -> ast.Item:
    pushes, where, values = names
    element_index, pe_index = Name(name=ELEMENT), Name(name=PE)
    clear = ast.UnrolledFor(
        variable=ELEMENT,
        count=count,
        body=(
            ast.put(ast.element(push, element_index), ast.FALSE),
            ast.put(ast.element(value, element_index), ast.ZEROS),
        ),
    )
    at = ast.element(where, pe_index)
    then = (
        ast.put(ast.element(push, at), ast.element(pushes, pe_index)),
        ast.put(ast.element(value, at), ast.element(values, pe_index)),
    )
    set_one = If(condition=ast.element(pushes, pe_index), then=then)
    return ast.AlwaysComb(body=(clear, ast.UnrolledFor(variable=PE, count=places, body=(set_one,))))
