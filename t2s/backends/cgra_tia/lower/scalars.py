"""Scalars that users give when a design runs: arrays of one element, loaded once.

All PEs that use a scalar take it from one unit.  In each of them it goes round in a virtual buffer,
which becomes a register of the cell where it can (``residents``).
"""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.cgra_tia.lower.process import (
    CellProcess,
    StreamFacts,
    StreamTable,
    TokenStream,
)
from t2s.backends.cgra_tia.lower.process_reader import check_tensor, unit_of
from t2s.backends.cgra_tia.lower.registers import Replay
from t2s.backends.cgra_tia.lower.unit_nests import UnitNest
from t2s.backends.cgra_tia.netlist import AffineSum, UnitKind
from t2s.graph.graph import Graph, Tensor, TensorRole


def scalar_tensors(graph: Graph) -> tuple[Tensor, ...]:
    """An input of shape () for each parameter of a graph."""
    return tuple(
        Tensor(
            name=parameter.name,
            type=parameter.type,
            shape=(),
            role=TensorRole.INPUT,
            location=parameter.location,
        )
        for parameter in graph.parameters
    )


def settle_scalars(processes: Sequence[CellProcess], streams: StreamTable) -> list[Replay]:
    """Units for the scalars that processes use, and a buffer for each use."""
    tensors = {tensor.name: tensor for tensor in scalar_tensors(streams.graph)}
    replays: list[Replay] = []
    for process in processes:
        for name, sink in process.parameters.items():
            tensor = tensors[name]
            check_tensor(tensor, process.nest.subject, process.nest.location)
            source = TokenStream(array=name)
            streams.facts.setdefault(name, StreamFacts(capacity=1, location=tensor.location))
            if source not in streams.sources:
                once = UnitNest(loops=(), address=AffineSum())
                streams.sources[source] = unit_of(source, UnitKind.LOAD, tensor, once)
            firings = len(process.classes.codes) * process.classes.outer * process.classes.inner
            replays.append(
                Replay(
                    name=f"{process.name}.{name}",
                    source=source,
                    sink=sink,
                    tokens=1,
                    passes=firings,
                    blocks=1,
                    origin=process.origin,
                )
            )
    return replays
