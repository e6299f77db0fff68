"""From a graph to a netlist: every PE at its place, without counters.

In goes a ``Graph``; out comes a ``Netlist`` with a program for each cell, stream units in place of
loads, stores and loop counters, and nets in place of channels.  The passes, in their order:

* ``process_reader``: each PE on its own, its iterations in classes (``schedule``) in which it does
  the same, its body as a graph of operations (``values``), memory as units (``unit_nests``);
* ``registers``: register files as rings and virtual buffers, by what ``register_flow`` finds, or
  in ``scratchpads``;
* ``scalars``: what users give when the design runs;
* ``passing``: operands that are only handed on become multicast nets;
* ``cells``: an operation of its own for each cell (``operators``), its actions told apart by tags;
* ``sharing``: if asked for, several operations take turns in a cell;
* ``residents``: operands that never change stay in registers of cells;
* ``cell_programs``: instructions, within the sizes of a cell;
* ``assemble``, ``sequencers``: parts, nets, and the units that send tags.

Graphs of machines (sparse stream blocks) go through ``control`` instead.

Refused, with the user's node and line: vectors, types other than float64, int64 and int32,
operators that no cell has, guards by parameters, arrays that are stored and loaded again, accesses
that are no nest of 8 loops, register files that are no ring, no buffer and too much for a
scratchpad, and what is too large for a cell.
"""

from __future__ import annotations

from t2s.backends.base import Unsupported, refusal
from t2s.backends.cgra_tia.lower.design import lowered
from t2s.backends.cgra_tia.netlist import Netlist
from t2s.graph.graph import Graph


def lower_to_netlist(
    graph: Graph, *, contract: bool = True, interval: int = 1, fma_latency: int = 4
) -> Netlist:
    """The design as cells, units and nets.

    With ``contract`` a product that is only added to something is one fused operation with the
    sum, rounded once.  Up to ``interval`` operations of a PE share a cell, which does each of them
    once in so many cycles; with 1 every operation is a cell of its own.  ``fma_latency`` says how
    far they run ahead of one another.  Raises ``UnsupportedError`` if ``unsupported`` is not empty.
    """
    found = lowered(graph, contract=contract, interval=interval, fma_latency=fma_latency)
    if isinstance(found, Netlist):
        return found
    raise refusal("cgra_tia", graph, found)


def unsupported(graph: Graph, *, contract: bool = True) -> list[Unsupported]:
    """Everything that stands in the way of lowering a graph; empty if nothing does."""
    found = lowered(graph, contract=contract)
    return [] if isinstance(found, Netlist) else found
