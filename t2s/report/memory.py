"""RAM blocks: the memories of one PE, the FIFOs it receives from, and its load and store units.

The rules, all of them estimates:

* A memory of w words of b bits takes the fewest blocks among the shapes of ``Fabric.ram_shapes``:
  ceil(w / words) x ceil(b / bits).  Memories of at most ``Fabric.logic_words`` words take none.
* A register file is a memory with one write and one read port; every further read of a body needs
  a copy.  Both banks of a double buffer count.
* A FIFO is a memory of its capacity.  The pipeline registers that a device adds to it are logic.
* A load or store unit has a FIFO of ``Fabric.burst_words`` words, as wide as the access.  A machine
  has a unit for every load, search and store of its rules.

The board's own memory controllers are not part of a design and are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from t2s.core.types import Type
from t2s.graph.body import Load, RegisterRead, Statement, Store
from t2s.graph.graph import Channel
from t2s.graph.machine import Machine, Search
from t2s.graph.nodes import Node
from t2s.simulator.fabric import Fabric


def register_blocks(node: Node, fabric: Fabric) -> int:
    """RAM blocks of the register files of one PE or machine."""
    match node:
        case Machine():
            firings = [path.statements for path in node.paths()]
        case _:
            firings = [node.body]
    return sum(
        max([1, *(_reads(statements, register.name) for statements in firings)])
        * fabric.ram_cost(prod(register.shape), _bits(register.type))
        for register in node.registers
    )


def fifo_blocks(channel: Channel, fabric: Fabric) -> int:
    """RAM blocks of all FIFOs of a channel."""
    return channel.element_count * fabric.ram_cost(channel.capacity, _bits(channel.stream.element))


def _reads(statements: Sequence[Statement], register: str) -> int:
    reads = (item.register for item in statements if isinstance(item, RegisterRead))
    return sum(name == register for name in reads)


def unit_blocks(node: Node, fabric: Fabric) -> int:
    """RAM blocks of the load and store units of one PE or machine."""
    statements = list(node.statements() if isinstance(node, Machine) else node.body)
    widths = [item.type for item in statements if isinstance(item, Load)]
    widths += [item.value.type for item in statements if isinstance(item, Store | Search)]
    return sum(fabric.ram_cost(fabric.burst_words, _bits(type)) for type in widths)


def _bits(type: Type) -> int:
    return (1 if type.is_bool else type.bits) * type.lanes
