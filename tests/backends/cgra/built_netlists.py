"""Netlists built by hand, for tests of everything that takes them."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.cgra_tia.fabric import EXTENDED_CORE, CellKind
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    StreamLoop,
    StreamUnit,
    TagCase,
    UnitKind,
)
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.core.types import Float, Type
from t2s.graph.graph import Tensor, TensorRole

Port = str | tuple[str, int]


def endpoint(port: Port) -> Endpoint:
    """``"name"`` or ``("name", port)``."""
    return Endpoint(part=port) if isinstance(port, str) else Endpoint(part=port[0], port=port[1])


class NetlistBuilder:
    """Collects parts and nets; programs are given as text without a label."""

    def __init__(self, name: str = "built") -> None:
        self.name = name
        self.cells: list[NetCell] = []
        self.units: list[StreamUnit] = []
        self.nets: list[Net] = []
        self.tensors: list[Tensor] = []

    def tensor(
        self,
        name: str,
        *shape: int,
        output: bool = False,
        type: Type | None = None,
    ) -> str:
        role = TensorRole.OUTPUT if output else TensorRole.INPUT
        self.tensors.append(Tensor(name=name, type=type or Float(64), shape=shape, role=role))
        return name

    def cell(self, name: str, text: str, kind: CellKind = CellKind.FMA) -> str:
        (program,) = parse_programs(f"<{name}>\n{text}", EXTENDED_CORE)
        self.cells.append(NetCell(name=name, kind=kind, program=program))
        return name

    def unit(
        self,
        kind: UnitKind,
        name: str,
        tensor: str | None = None,
        extents: Sequence[int | AffineSum] = (),
        strides: Sequence[int] = (),
        start: int = 0,
        tags: Sequence[TagCase] = (),
    ) -> str:
        loops = tuple(
            StreamLoop(
                name=f"i{number}", extent=e if isinstance(e, AffineSum) else AffineSum(constant=e)
            )
            for number, e in enumerate(extents)
        )
        address = AffineSum(constant=start, coefficients=tuple(strides))
        self.units.append(
            StreamUnit(
                name=name,
                kind=kind,
                loops=loops,
                tensor=tensor,
                address=address if tensor is not None else None,
                tags=tuple(tags),
            )
        )
        return name

    def load(
        self, name: str, tensor: str, extents: Sequence[int], strides: Sequence[int], start: int = 0
    ) -> str:
        return self.unit(UnitKind.LOAD, name, tensor, extents, strides, start)

    def store(
        self, name: str, tensor: str, extents: Sequence[int], strides: Sequence[int], start: int = 0
    ) -> str:
        return self.unit(UnitKind.STORE, name, tensor, extents, strides, start)

    def net(self, name: str, source: Port, *sinks: Port, tokens: int = 1) -> None:
        ends = tuple(NetSink(end=endpoint(sink), tokens=tokens) for sink in sinks)
        self.nets.append(Net(name=name, group=name, source=endpoint(source), sinks=ends))

    def netlist(self) -> Netlist:
        return Netlist(
            name=self.name,
            cells=tuple(self.cells),
            units=tuple(self.units),
            nets=tuple(self.nets),
            tensors=tuple(self.tensors),
        )
