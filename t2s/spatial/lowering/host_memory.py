"""Lowering of functions on the host: they become layouts of tensors, and leave the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t2s.core.errors import InternalError, UnsupportedError
from t2s.core.expr import Expr, Index, Read, apply, const, index_names, simplify, substitute
from t2s.core.isl import Interval, LoopDomain, is_affine
from t2s.core.ops import Op
from t2s.graph.graph import Layout, Tensor, TensorRole
from t2s.spatial.analysis.padding import allocated_shape, origins_of
from t2s.spatial.analysis.token_order import position
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop
from t2s.spatial.work import LoadUnit, Relay, StoreTarget, StoreUnit, Work


def without_host(program: SpatialProgram) -> tuple[SpatialProgram, tuple[Tensor, ...]]:
    """The kernels of the device, and the tensors that the host orders for them."""
    tensors: list[Tensor] = []
    for kernel in program.kernels:
        if not kernel.on_host:
            continue
        tensors.append(_tensor(program, kernel))
        for unit in program.kernels:
            found = _unit(unit, kernel)
            if found is not None:
                program = program.with_kernel(found)
    device = tuple(k for k in program.kernels if not k.on_host)
    return replace(program, kernels=device), tuple(tensors)


def _unit(kernel: SpatialKernel, host: SpatialKernel) -> SpatialKernel | None:
    """A relay next to a kernel on the host, as the unit that loads or stores what that orders."""
    work: Work
    match host.work, kernel.work:
        case LoadUnit(value=value), _ if host.name in (o.producer for o in kernel.operands):
            loaded = Read(source=host.name, indices=(), type=value.type)
            work = LoadUnit(value=loaded, address=_address(kernel, host))
            return replace(kernel, operands=(), work=work)
        case StoreUnit(), Relay(value=relayed, stream=None) if (
            kernel.name == host.operands[0].producer
        ):
            target = StoreTarget(tensor=host.name, indices=())
            work = StoreUnit(value=relayed, store=target, address=_address(kernel, host))
            return replace(kernel, work=work)
    return None


def _address(kernel: SpatialKernel, host: SpatialKernel) -> tuple[Expr, ...]:
    return tuple(position(kernel, loop) for loop in layout_loops(host))


def _tensor(program: SpatialProgram, kernel: SpatialKernel) -> Tensor:
    loops = layout_loops(kernel)
    points: dict[str, Expr] = {
        loop.name: simplify(apply(Op.ADD, Index(name=loop.name), loop.minimum)) for loop in loops
    }
    match kernel.work:
        case StoreUnit(store=StoreTarget(tensor=name, indices=indices)):
            shape, role = program.temporal.function(name).shape, TensorRole.OUTPUT
        case LoadUnit(value=Read(source=name, indices=indices)):
            shape = next(a.shape for a in program.temporal.inputs if a.name == name)
            role = TensorRole.INPUT
        case _:
            raise InternalError(f"{kernel.name} on the host computes")
    alone = replace(program, kernels=(kernel,))
    padded = allocated_shape(alone, name, shape, origins_of(program))
    subscripts = [substitute(kernel.place(index), points) for index in indices]
    if role is TensorRole.INPUT and kernel.paddings:
        subscripts = _wrapped(subscripts, padded or shape, loops)
    return Tensor(
        name=kernel.name,
        type=kernel.value.type,
        shape=shape,
        role=role,
        padded=padded,
        layout=Layout(
            array=name,
            loops=tuple(loop.name for loop in loops),
            extents=tuple(loop.fixed[1] for loop in loops),
            indices=tuple(subscripts),
        ),
        location=kernel.location,
    )


def _wrapped(
    subscripts: Sequence[Expr], shape: Sequence[int], loops: Sequence[SpatialLoop]
) -> list[Expr]:
    """Subscripts that padded iterations would take out of the array, brought back into it.

    Padding in memory is behind an array, so ``A[5 - i]`` would leave it at the front.  Nobody uses
    what is loaded there, and the host has to find an element for it all the same.
    """
    domain = LoopDomain(
        [Interval(name=loop.name, minimum=const(0), extent=const(loop.fixed[1])) for loop in loops]
    )
    ranges = [domain.range_of(index) if is_affine(index) else None for index in subscripts]
    return [
        subscript
        if reached is None or (reached[0] >= 0 and reached[1] < extent)
        else simplify(apply(Op.MODULO, subscript, const(extent)))
        for subscript, reached, extent in zip(subscripts, ranges, shape, strict=True)
    ]


def layout_loops(kernel: SpatialKernel) -> tuple[SpatialLoop, ...]:
    """The dimensions of the array in memory, outermost first.

    PEs that work at the same time, and the lanes of vectors, are innermost: what is used at one
    time lies together.  Raises ``UnsupportedError`` for loops without constant bounds.
    """
    for loop in kernel.loops:
        if loop.constant is None:
            depends = ", ".join(sorted(index_names(loop.minimum) | index_names(loop.extent)))
            raise UnsupportedError(
                f"{kernel.name} runs on the host and its loop {loop.name} has no constant bounds",
                location=kernel.location,
                expected="loops whose minima and extents are numbers",
                given=f"bounds of {loop.name} depend on {depends}",
                hint="let the device load this operand without a function on the host",
            )
    order = (LoopExecution.SERIAL, LoopExecution.UNROLLED, LoopExecution.VECTOR)
    return tuple(loop for kind in order for loop in kernel.kind(kind))
