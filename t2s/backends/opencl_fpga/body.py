"""The body of a PE as statements inside the unrolled space loops of its kernel."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.opencl_fpga.c_types import is_struct, lane, lane_at, storage_name
from t2s.backends.opencl_fpga.conditions import only_use
from t2s.backends.opencl_fpga.expressions import is_aligned
from t2s.backends.opencl_fpga.kernel_ast import (
    CastTo,
    For,
    element,
)
from t2s.backends.opencl_fpga.kernel_scope import KernelScope, where
from t2s.backends.opencl_fpga.port_forms import is_selected, receive, send
from t2s.backends.text.expressions import (
    Do,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Unary,
    binary,
    call,
    number,
)
from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.graph import body as graph
from t2s.graph.graph import Tensor


def lower_body(scope: KernelScope) -> list[TargetStatement]:
    """The body of one PE, in order; under the node's guard where not all PEs take part."""
    statements = [s for statement in scope.node.body for s in _statement(scope, statement)]
    guard = scope.node.guard
    return where(None if guard is None else scope.lower(guard), statements)


def _statement(scope: KernelScope, statement: graph.Statement) -> list[TargetStatement]:
    match statement:
        case graph.Receive():
            return receive(scope, statement)
        case graph.Send():
            return send(scope, statement)
        case graph.Let(target=target, value=value):
            return scope.bind(target, value.type, scope.lower(value))
        case graph.Load():
            return _load(scope, statement)
        case graph.Store():
            return _store(scope, statement)
        case graph.RegisterRead(target=target, register=register, indices=indices, type=type):
            kept = _register(scope, register, indices, last=True)
            if _read_where_used(scope, statement):
                scope.expressions.locals[target] = kept
                return []
            return scope.bind(target, type, kept)
        case graph.RegisterWrite():
            return _register_write(scope, statement)
    raise TypeError(f"{statement.__class__.__name__} has no OpenCL form")


def _read_where_used(scope: KernelScope, read: graph.Load | graph.RegisterRead) -> bool:
    """Whether a value is used by one access, and still is where it was read at that time."""
    body = scope.node.body
    used_at = only_use(read.target, body)
    if used_at is None:
        return False
    match body[used_at]:
        case graph.Send(channel=channel) if is_selected(scope, scope.node.sends[channel]):
            return False
    between = body[body.index(read) + 1 : used_at + 1]
    match read:
        case graph.Load(tensor=tensor):
            kept = not scope.is_intermediate(tensor)
            return kept and not any(isinstance(s, graph.Store) for s in between)
        case graph.RegisterRead(register=register):
            return not any(
                isinstance(s, graph.RegisterWrite) and s.register == register for s in between
            )


# ------------------------------------------------------------------------------------ memory


def _load(scope: KernelScope, statement: graph.Load) -> list[TargetStatement]:
    tensor = scope.design.graph.tensor(statement.tensor)
    type = statement.type
    if not is_struct(type):
        value = _loaded(scope, tensor, statement.indices, type)
        if statement.condition is None and _read_where_used(scope, statement):
            scope.expressions.locals[statement.target] = value
            return []
        return scope.bind_where(statement.target, type, statement.condition, value)
    name, position = scope.tensors[tensor.name], _address(scope, tensor, statement.indices)

    def fill(variable: TargetExpression) -> list[TargetStatement]:
        each = element(name, binary("+", position, Name(name="lane")))
        return [_lanes(type, (Set(target=lane_at(variable, "lane", type), value=each),))]

    return scope.bind_by(statement.target, type, statement.condition, fill)


def _loaded(
    scope: KernelScope, tensor: Tensor, indices: tuple[Expr, ...], type: Type
) -> TargetExpression:
    """A scalar or built-in vector in memory.

    Tensors that other kernels write are volatile, so that no cache in this kernel keeps old
    values; ``vload`` does not take volatile pointers.
    """
    name, position = scope.tensors[tensor.name], _address(scope, tensor, indices)
    if type.lanes == 1:
        return element(name, position)
    if not scope.is_intermediate(tensor.name):
        place = Unary(operator="&", operand=element(name, position))
        return call(f"vload{type.lanes}", number(0), place)
    if is_aligned(indices, tensor.allocated, type.lanes):
        return _as_vector(name, position, type)
    lanes = (element(name, binary("+", position, number(at))) for at in range(type.lanes))
    return CastTo(type=storage_name(type), values=tuple(lanes))


def _as_vector(name: str, position: TargetExpression, type: Type) -> TargetExpression:
    """Aligned lanes in volatile memory, as one access."""
    pointer = CastTo(
        type=f"__global volatile {storage_name(type)} *",
        values=(Unary(operator="&", operand=element(name, position)),),
    )
    return Unary(operator="*", operand=pointer)


def _store(scope: KernelScope, statement: graph.Store) -> list[TargetStatement]:
    tensor = scope.design.graph.tensor(statement.tensor)
    type = statement.value.type
    name, position = scope.tensors[tensor.name], _address(scope, tensor, statement.indices)
    value = scope.lower(statement.value)
    target = element(name, position)
    stored: list[TargetStatement]
    if type.lanes == 1:
        stored = [Set(target=target, value=value)]
    elif is_struct(type):
        each = element(name, binary("+", position, Name(name="lane")))
        stored = [_lanes(type, (Set(target=each, value=lane_at(value, "lane", type)),))]
    elif not scope.is_intermediate(tensor.name):
        place = Unary(operator="&", operand=target)
        stored = [Do(call=call(f"vstore{type.lanes}", value, number(0), place))]
    elif is_aligned(statement.indices, tensor.allocated, type.lanes):
        stored = [Set(target=_as_vector(name, position, type), value=value)]
    else:
        stored = [
            Set(
                target=element(name, binary("+", position, number(at))),
                value=lane(value, at, type),
            )
            for at in range(type.lanes)
        ]
    return where(scope.condition(statement.condition), stored)


def _lanes(type: Type, body: tuple[TargetStatement, ...]) -> For:
    return For(name="lane", start=number(0), stop=number(type.lanes), body=body, unroll=True)


def _address(scope: KernelScope, tensor: Tensor, indices: tuple[Expr, ...]) -> TargetExpression:
    return scope.expressions.address(indices, tensor.allocated)


# --------------------------------------------------------------------------------- registers


def pe_indices(scope: KernelScope) -> tuple[TargetExpression, ...]:
    """The place of a PE in the arrays that hold the registers of all PEs."""
    return tuple(
        binary("-", scope.index(d.name), number(d.minimum)) if d.minimum else scope.index(d.name)
        for d in scope.node.space
    )


def _register(
    scope: KernelScope, register: str, indices: Sequence[Expr], *, last: bool
) -> TargetExpression:
    """An element of a register file; of a rotating one the last (oldest) or the first."""
    plan = scope.plans[register]
    name = scope.registers[register]
    if plan.rotating:
        return element(name, *pe_indices(scope), number(plan.length - 1 if last else 0))
    pairs = zip(indices, plan.register.shape, strict=True)
    inner = tuple(scope.lower(index) for index, size in pairs if size > 1)
    if plan.memory is not None:
        return element(name, *inner, *pe_indices(scope))
    return element(name, *pe_indices(scope), *inner)


def _register_write(scope: KernelScope, statement: graph.RegisterWrite) -> list[TargetStatement]:
    plan = scope.plans[statement.register]
    value = scope.lower(statement.value)
    target = _register(scope, statement.register, statement.indices, last=False)
    written: list[TargetStatement] = [Set(target=target, value=value)]
    if plan.rotating:
        written.insert(0, _shift(scope, statement.register, plan.length))
    return where(scope.condition(statement.condition), written)


def _shift(scope: KernelScope, register: str, length: int) -> For:
    age = scope.identifiers.fresh("age")
    name, place = scope.registers[register], pe_indices(scope)
    older = element(name, *place, Name(name=age))
    younger = element(name, *place, binary("-", Name(name=age), number(1)))
    return For(
        name=age,
        start=number(length - 1),
        stop=number(1),
        body=(Set(target=older, value=younger),),
        down=True,
        unroll=True,
    )
