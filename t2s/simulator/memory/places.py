"""The placement of tensors: addresses in the device's memory, and words in shared banks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.location import user_location
from t2s.graph.body import Load, Statement
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Machine, Search
from t2s.graph.verify_machine import accesses_of
from t2s.simulator.memory.spec import Banked, Dram

ALIGNMENT = 4096
"""The alignment of tensors, which follow one another in the order of the graph."""


def addresses_of(graph: Graph) -> tuple[Mapping[str, int], int]:
    """The address of every tensor by name, and the first address behind all of them.

    Tensors in shared banks have none.  For an open tensor it is the address that it would have if
    empty; see ``bases_of``.
    """
    addresses: dict[str, int] = {}
    end = 0
    for tensor in graph.tensors:
        if tensor.place is MemorySpace.SHARED:
            continue
        addresses[tensor.name] = end
        size = tensor.type.bytes
        for extent in tensor.allocated:
            size *= extent
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return addresses, end


def bases_of(graph: Graph, dram: Dram) -> tuple[Mapping[str, int], int]:
    """The address of every tensor by name, and the bytes available to each open one.

    Open tensors, whose lengths are unknown before the run, share the remaining space.
    """
    fixed, end = addresses_of(graph)
    waiting = [tensor.name for tensor in graph.tensors if tensor.open]
    if not waiting:
        return fixed, 0
    room = (dram.capacity - end) // len(waiting) // ALIGNMENT * ALIGNMENT
    return {**fixed, **{name: end + at * room for at, name in enumerate(waiting)}}, room


def too_long(graph: Graph, tensor: str, dram: Dram, room: int) -> UserError:
    """The error for an open tensor that does not fit into memory."""
    return UserError(
        f"{tensor!r} of {graph.name!r} does not fit into memory {dram.name!r}",
        location=graph.tensor(tensor).location or user_location(),
        expected=f"at most {room:,} bytes, what all other tensors leave to it",
        given="more",
        hint="simulate a smaller problem, or describe a larger memory",
    )


# Words in shared banks.
#
# Shared tensors follow one another in the order of the graph, each aligned to the number of lanes;
# an open one gets 2^24 words of addresses, whatever its extent.
#
# A swizzled tensor is aligned to the total number of banks, and a hash distributes its words over
# the units: the unit of a word is the exclusive or of all digits of its address in base ``ports``,
# so neighbors are in different units, and so are words a power of two apart.  The digits above the
# lowest one are the address within the unit.  Its bank is the exclusive or of every second digit of
# that, from the lowest one on, or, if ``banks`` is not a power of two, its remainder.

_MOST_WORDS = 1 << 31
_OPEN_WORDS = 1 << 24


def uses_shared_banks(graph: Graph) -> bool:
    """Whether machines access tensors in shared banks."""
    shared = {tensor.name for tensor in graph.tensors if tensor.place is MemorySpace.SHARED}
    return bool(shared) and any(accesses_of(node) & shared for node in graph.machines)


def bases_in_banks(graph: Graph, banked: Banked) -> Mapping[str, int]:
    """The first word of every shared tensor by name; ``UserError`` if they do not fit."""
    bases: dict[str, int] = {}
    end = 0
    for tensor in graph.tensors:
        if tensor.place is not MemorySpace.SHARED:
            continue
        aligned = banked.ports * banked.banks if tensor.swizzled else banked.lanes
        bases[tensor.name] = -(-end // aligned) * aligned
        end = bases[tensor.name] + (_OPEN_WORDS if tensor.open else prod(tensor.allocated))
        if tensor.swizzled:
            end = -(-end // aligned) * aligned
        if end >= _MOST_WORDS:
            raise UserError(
                f"{tensor.name!r} of {graph.name!r} does not fit into shared banks",
                location=tensor.location or user_location(),
                expected=f"fewer than {_MOST_WORDS:,} words of all shared tensors",
                given=f"{end:,}",
                hint="leave large tensors in the device's memory",
            )
    return bases


def most_loads(graph: Graph, node: Machine, banked: Banked) -> int:
    """The largest number of vectors that a firing of a machine loads from shared banks."""
    counts = (
        sum(-(-words // banked.lanes) for words in _shared_words(graph, path.statements))
        for path in node.paths()
    )
    return max(counts, default=0)


def _shared_words(graph: Graph, statements: Sequence[Statement]) -> Iterator[int]:
    """The words of each load from shared banks."""
    for statement in statements:
        match statement:
            case Load(tensor=name, type=type) | Search(tensor=name, value=Expr(type=type)):
                tensor = graph.tensor(name)
                if tensor.place is MemorySpace.SHARED:
                    yield type.bytes // tensor.type.bytes
