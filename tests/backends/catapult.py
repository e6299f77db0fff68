"""A toy backend that shows what another dialect takes: C++ with ``ac_channel`` for Catapult.

Integers, scalars and designs without circles only.  Everything about loops, PEs, registers and
channels is decided in ``backends/kernels``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.base import Unsupported, refusal
from t2s.backends.kernels.design import analyze, channels_of, lower_kernels, structs_of
from t2s.backends.kernels.dialect import Access, Define, Dialect, StateArray
from t2s.backends.kernels.kernel_ast import (
    For,
    MethodCall,
    TypedName,
    While,
    declarator,
    dimensions,
    lines,
)
from t2s.backends.kernels.kernels import arguments_of
from t2s.backends.kernels.operators import Helpers
from t2s.backends.kernels.scope import file_scope
from t2s.backends.text.expressions import Do, TargetExpression, TargetStatement
from t2s.backends.text.identifiers import plain
from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.graph.graph import Graph


class Catapult(Dialect):
    """``ac_channel``, ``#pragma hls_unroll``, arrays as arguments."""

    title = "Catapult"
    native_lanes = frozenset()
    endless = False
    flattens = True

    def unsupported_type(self, type: Type) -> str | None:
        return "only integers are supported" if type.is_float or type.lanes > 1 else None

    def scalar_name(self, type: Type) -> str:
        return {Kind.INT: "int", Kind.UINT: "unsigned", Kind.BOOL: "bool"}[type.kind]

    def identifier(self, name: str, *, variable: bool = False) -> str:
        return f"{plain(name)}_" if plain(name) in ("int", "for", "read", "write") else plain(name)

    def read_channel(self, source: TargetExpression) -> TargetExpression:
        return MethodCall(base=source, method="read")

    def write_channel(self, target: TargetExpression, value: TargetExpression) -> Do:
        return Do(call=MethodCall(base=target, method="write", arguments=(value,)))

    def control_fence(self) -> list[TargetStatement]:
        return []

    def passed_on(self, value: TargetExpression) -> TargetExpression:
        return value

    def protocol_error(self, machine: str, mode: TargetExpression) -> list[TargetStatement]:
        return []

    def tensor_parameter(self, name: str, type: Type, *, stored: bool, shared: bool) -> TypedName:
        return TypedName(type=f"{self.scalar_name(type)} *", name=name)

    def vector_load(self, access: Access) -> TargetExpression | None:
        return None

    def vector_store(self, access: Access, value: TargetExpression) -> list[TargetStatement] | None:
        return None

    def banks(self, type: Type, extents: tuple[int, ...]) -> tuple[int, ...]:
        return extents

    def array_attributes(self, array: StateArray) -> tuple[str, ...]:
        return ()

    def function(self, operator: Op, type: Type) -> str | None:
        return None

    def absolute(self, operand: TargetExpression, type: Type, define: Define) -> TargetExpression:
        return operand

    def saturated(
        self, value: TargetExpression, source: Type, target: Type, define: Define
    ) -> TargetExpression:
        return value

    def inside_loop(self, loop: For | While) -> list[str]:
        unrolled = isinstance(loop, For) and loop.unroll
        return ["#pragma hls_unroll yes"] if unrolled else []


@dataclass(frozen=True)
class CatapultBackend:
    """Functions, and a top function that calls them in the order of the graph."""

    name: str = "catapult"
    timed: bool = False

    def supports(self, graph: Graph) -> list[Unsupported]:
        design = analyze(Catapult(), graph)
        return design if isinstance(design, list) else []

    def emit(self, graph: Graph) -> Mapping[str, str]:
        dialect = Catapult()
        design = analyze(dialect, graph)
        if isinstance(design, list):
            raise refusal(self.name, graph, design)
        scope, helpers = file_scope(design), Helpers(dialect)
        kernels = lower_kernels(design, scope, helpers)
        streams = channels_of(design, scope)
        text = ["#include <ac_channel.h>"]
        for struct in structs_of(design, scope):
            fields = " ".join(f"{declarator(field)};" for field in struct.fields)
            text.append(f"struct {struct.name} {{ {fields} }};")
        text += [
            f"static ac_channel<{each.type}> {each.name}{dimensions(each.dimensions)};"
            for each in streams
        ]
        for function in (*helpers.functions, *kernels):
            kind = getattr(function, "type", "void")
            parameters = ", ".join(map(declarator, function.parameters))
            text += [f"static {kind} {function.name}({parameters}) {{"]
            text += [*lines(function.body, dialect), "}"]
        arguments = ", ".join(f"int *{tensor.name}" for tensor in graph.tensors)
        text.append(f'extern "C" void {plain(graph.name)}_top({arguments}) {{')
        for kernel, node in zip(kernels, design.graph.nodes, strict=True):
            tensors, _ = arguments_of(design, design.nodes[node.name])
            text.append(f"    {kernel.name}({', '.join(tensors)});")
        return {f"{plain(graph.name)}.cpp": "\n".join([*text, "}", ""])}


BACKEND = CatapultBackend()
