"""Words per cycle of banked memories: ``python benchmarks/banked.py`` from the root folder.

First a unit alone with random addresses, beside the 32 and 80 % of its banks' peak that Capstan's
abstract gives for memories in order and out of order.  Then the network in front of units that take
all that comes, with full vectors to random units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from rich.console import Console
from rich.table import Table

from t2s.simulator.memory.spec import Banked
from tests.simulator.memory.plain_banks import BankedModel

Vectors = Callable[[int], Sequence[int]]
"""The next vector of a port."""


def words_per_cycle(banked: Banked, vectors: Vectors, ports: int, cycles: int) -> float:
    """Words that are served in a cycle while so many ports always have another vector."""
    model = BankedModel(banked)
    for _ in range(cycles):
        for port in range(ports):
            if model.has_room(port):
                model.ask(port, vectors(port))
        model.step()
    return model.served / cycles


def random_banks(banked: Banked, seed: int = 1) -> Vectors:
    """Words of any bank of a unit."""
    random = Random(seed)
    return lambda port: [random.randrange(banked.banks) for _ in range(banked.lanes)]


def random_units(banked: Banked, seed: int = 1) -> Vectors:
    """Words of any unit, each lane with banks of its own."""
    random = Random(seed)
    return lambda port: [
        random.randrange(banked.ports) * banked.banks + lane for lane in range(banked.lanes)
    ]


def alone(queue_depth: int, rounds: int, cycles: int = 4000) -> float:
    """The share of the banks' peak of a single unit."""
    banked = Banked(ports=1, queue_depth=queue_depth, rounds=rounds, link_depth=32)
    return words_per_cycle(banked, random_banks(banked), 1, cycles) / banked.banks


def network(lane_moves: int, cycles: int = 1000) -> float:
    """Words per port and cycle of the network."""
    banked = Banked(lane_moves=lane_moves, rounds=64, queue_depth=64)
    return words_per_cycle(banked, random_units(banked), banked.ports, cycles) / banked.ports


def main() -> None:
    table = Table(title="a unit alone, random addresses")
    for header in ("queue", "rounds", "share of peak"):
        table.add_column(header, justify="right")
    for depth, rounds in ((1, 1), (8, 2), (16, 1), (16, 2)):
        table.add_row(str(depth), str(rounds), f"{alone(depth, rounds):.1%}")
    Console().print(table)
    table = Table(title="16 ports, full vectors to random units")
    for header in ("lane moves", "words per port and cycle"):
        table.add_column(header, justify="right")
    for moves in (0, 1, 2):
        table.add_row(str(moves), f"{network(moves):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
