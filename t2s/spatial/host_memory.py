"""Lowering of functions on the host: they become layouts of tensors, and leave the device."""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Index, Read, apply, simplify, substitute
from t2s.core.ops import Op
from t2s.graph.graph import Layout, Tensor, TensorRole
from t2s.graph.nodes import Role
from t2s.spatial.directives import Place
from t2s.spatial.ir import Kernel, SpatialProgram
from t2s.spatial.operands import StoreTarget
from t2s.spatial.padding import allocated_shape, origins_of
from t2s.spatial.passes.host import layout_loops
from t2s.spatial.passes.streams import position


def without_host(program: SpatialProgram) -> tuple[SpatialProgram, tuple[Tensor, ...]]:
    """The kernels of the device, and the tensors that the host orders for them."""
    tensors: list[Tensor] = []
    for kernel in program.kernels:
        if kernel.runs_on is not Place.HOST:
            continue
        tensors.append(_tensor(program, kernel))
        if kernel.store is None:
            loaded = Read(source=kernel.name, indices=(), type=kernel.value.type)
            units = [
                replace(reader, role=Role.LOAD, operands=(), value=loaded)
                for reader in program.kernels
                if _takes_from(reader, kernel)
            ]
        else:
            writer = program.kernel(kernel.operands[0].producer)
            target = StoreTarget(tensor=kernel.name, indices=())
            units = [replace(writer, role=Role.STORE, store=target)]
        for unit in units:
            address = tuple(position(unit, loop) for loop in layout_loops(kernel))
            program = program.with_kernel(replace(unit, address=address))
    device = tuple(k for k in program.kernels if k.runs_on is Place.DEVICE)
    return replace(program, kernels=device), tuple(tensors)


def _takes_from(kernel: Kernel, producer: Kernel) -> bool:
    return any(operand.producer == producer.name for operand in kernel.operands)


def _tensor(program: SpatialProgram, kernel: Kernel) -> Tensor:
    loops = layout_loops(kernel)
    points: dict[str, Expr] = {
        loop.name: simplify(apply(Op.ADD, Index(name=loop.name), loop.minimum)) for loop in loops
    }
    if kernel.store is not None:
        function = program.temporal.function(kernel.store.tensor)
        name, indices, shape = function.name, kernel.store.indices, function.shape
        role = TensorRole.OUTPUT
    elif isinstance(kernel.value, Read):
        array = next(a for a in program.temporal.inputs if a.name == kernel.value.source)
        name, indices, shape = array.name, kernel.value.indices, array.shape
        role = TensorRole.INPUT
    else:
        raise InternalError(f"{kernel.name} on the host computes")
    return Tensor(
        name=kernel.name,
        type=kernel.value.type,
        shape=shape,
        role=role,
        padded=allocated_shape(
            replace(program, kernels=(kernel,)), name, shape, origins_of(program)
        ),
        layout=Layout(
            array=name,
            loops=tuple(loop.name for loop in loops),
            extents=tuple(loop.constant[1] for loop in loops if loop.constant is not None),
            indices=tuple(substitute(kernel.place(index), points) for index in indices),
        ),
        location=kernel.location,
    )
