"""Graphs built by hand, below every front end: fixtures for simulator and backend tests."""

from __future__ import annotations

from t2s.core.expr import (
    Broadcast,
    Expr,
    Index,
    Local,
    ReduceLanes,
    Select,
    conjunction,
    const,
    equals,
)
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Loop, PEArray, Register, Role, SpaceDimension


def loop(name: str, extent: int, minimum: int = 0) -> Loop:
    return Loop(name=name, minimum=const(minimum), extent=const(extent))


def space(name: str, extent: int) -> SpaceDimension:
    return SpaceDimension(name=name, minimum=0, extent=extent)


def index(name: str) -> Index:
    return Index(name=name)


def systolic_gemm(
    rows: int,
    columns: int,
    depth: int,
    *,
    tile_rows: int = 1,
    tile_columns: int = 1,
    lanes: int = 1,
    element: Type = INT32,
    capacity: int = 2,
) -> Graph:
    """C = A B^T on a ``rows`` x ``columns`` array; each PE owns tile_rows x tile_columns results.

    A is (rows * tile_rows, depth * lanes), B is (columns * tile_columns, depth * lanes); time loops
    are k, ti, tj, so the accumulation distance is tile_rows * tile_columns.
    """
    vector = element.with_lanes(lanes)
    ii, jj, ti, tj, k = (index(name) for name in ("ii", "jj", "ti", "tj", "k"))
    loops = (loop("k", depth), loop("ti", tile_rows), loop("tj", tile_columns))
    row = ii * tile_rows + ti
    column = jj * tile_columns + tj
    first, last = equals(k, 0), equals(k, depth - 1)
    a, b = Local(name="a", type=vector), Local(name="b", type=vector)
    product = a * b
    term = product if lanes == 1 else ReduceLanes(operator=Op.ADD, value=product, type=element)
    previous = Local(name="previous", type=element)
    total = Local(name="total", type=element)
    zero = const(0.0 if element.is_float else 0, element)

    def load_unit(name: str, tensor: str, space_name: str, extent: int, at: Expr) -> PEArray:
        return PEArray(
            name=name,
            role=Role.LOAD,
            space=(space(space_name, extent),),
            loops=loops,
            body=(
                Load(
                    target="value",
                    tensor=tensor,
                    indices=(at, k * lanes),
                    type=vector,
                ),
                Send(channel=f"{tensor}_in", value=Local(name="value", type=vector)),
            ),
        )

    array = PEArray(
        name="C",
        role=Role.COMPUTE,
        space=(space("ii", rows), space("jj", columns)),
        loops=loops,
        registers=(
            Register(
                name="accumulator",
                type=element,
                shape=(tile_rows, tile_columns),
                distance=tile_rows * tile_columns,
            ),
        ),
        body=(
            Receive(target="a0", channel="A_in", type=vector, condition=equals(jj, 0)),
            Receive(
                target="a1",
                channel="A_pass",
                type=vector,
                condition=jj > 0,
            ),
            Let(
                target="a",
                value=Select(
                    condition=equals(jj, 0),
                    if_true=Local(name="a0", type=vector),
                    if_false=Local(name="a1", type=vector),
                    type=vector,
                ),
            ),
            Receive(target="b0", channel="B_in", type=vector, condition=equals(ii, 0)),
            Receive(
                target="b1",
                channel="B_pass",
                type=vector,
                condition=ii > 0,
            ),
            Let(
                target="b",
                value=Select(
                    condition=equals(ii, 0),
                    if_true=Local(name="b0", type=vector),
                    if_false=Local(name="b1", type=vector),
                    type=vector,
                ),
            ),
            Send(channel="A_pass", value=a, condition=jj < columns - 1),
            Send(channel="B_pass", value=b, condition=ii < rows - 1),
            RegisterRead(target="previous", register="accumulator", indices=(ti, tj), type=element),
            Let(
                target="total",
                value=Select(condition=first, if_true=zero, if_false=previous, type=element) + term,
            ),
            RegisterWrite(register="accumulator", indices=(ti, tj), value=total),
            Send(channel="C_out", value=total, condition=last),
        ),
    )
    store = PEArray(
        name="C_store",
        role=Role.STORE,
        space=(space("ii", rows), space("jj", columns)),
        loops=loops[1:],
        body=(
            Receive(target="value", channel="C_out", type=element),
            Store(tensor="C", indices=(row, column), value=Local(name="value", type=element)),
        ),
    )

    def channel(
        name: str,
        stream: Type,
        source: str,
        sink: str,
        shape: tuple[int, ...],
        source_index: tuple[Expr, ...],
        sink_index: tuple[Expr, ...],
    ) -> Channel:
        return Channel(
            name=name,
            stream=StreamType(element=stream),
            source=source,
            sink=sink,
            shape=shape,
            source_index=source_index,
            sink_index=sink_index,
            capacity=capacity,
        )

    one = const(1)
    return Graph(
        name="gemm",
        nodes=(
            load_unit("A_load", "A", "ii", rows, row),
            load_unit("B_load", "B", "jj", columns, column),
            array,
            store,
        ),
        channels=(
            channel("A_in", vector, "A_load", "C", (rows,), (ii,), (ii,)),
            channel("B_in", vector, "B_load", "C", (columns,), (jj,), (jj,)),
            channel("A_pass", vector, "C", "C", (rows, columns), (ii, jj + one), (ii, jj)),
            channel("B_pass", vector, "C", "C", (rows, columns), (ii + one, jj), (ii, jj)),
            channel("C_out", element, "C", "C_store", (rows, columns), (ii, jj), (ii, jj)),
        ),
        tensors=(
            Tensor(
                name="A",
                type=element,
                shape=(rows * tile_rows, depth * lanes),
                role=TensorRole.INPUT,
            ),
            Tensor(
                name="B",
                type=element,
                shape=(columns * tile_columns, depth * lanes),
                role=TensorRole.INPUT,
            ),
            Tensor(
                name="C",
                type=element,
                shape=(rows * tile_rows, columns * tile_columns),
                role=TensorRole.OUTPUT,
            ),
        ),
    )


__all__ = ["Broadcast", "conjunction", "index", "loop", "space", "systolic_gemm"]


def depths_of(graph: Graph) -> dict[str, int]:
    """The capacity of every channel."""
    return {channel.name: channel.capacity for channel in graph.channels}
