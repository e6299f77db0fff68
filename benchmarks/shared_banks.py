"""Machines that gather from shared banks: ``python benchmarks/shared_banks.py`` from the root.

``banked.py`` has the figures of the model alone; these are those of whole runs, through an engine:
as many machines as the network has ports gather a random vector of 16 words in every cycle, if the
banks let them.  Cycles are exact; only the last lines are times of this computer.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from t2s.core.expr import Expr, Index, Local
from t2s.core.ops import Array
from t2s.core.types import INT32
from t2s.graph.body import Load, RegisterWrite, Role
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Register, Rule, SpaceDimension
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import Banked
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate

LANES = 16
VECTOR = INT32.with_lanes(LANES)
AT, P = Local(name="at", type=INT32), Index(name="p")
WORDS = 1 << 12


def gatherers(machines: int, vectors: int) -> Graph:
    """Machines side by side that gather so many vectors each, and machines that drop them."""
    begin: Expr = AT * LANES
    taken, found = Local(name="taken", type=VECTOR), Local(name="found", type=VECTOR)
    body = (
        Load(target="taken", tensor="take", indices=(P, begin), type=VECTOR),
        Load(target="found", tensor="x", indices=(taken,), type=VECTOR),
    )
    gather = Rule(name="gather", body=body, puts=(Put(channel="c", value=found),))
    drop = Rule(name="drop", takes=("c",))
    gathers = Channel(
        name="c",
        stream=StreamType(element=VECTOR),
        source="gather",
        sink="drop",
        shape=(machines,),
        source_index=(P,),
        sink_index=(P,),
        capacity=4,
    )
    take = Tensor(
        name="take",
        type=INT32,
        shape=(machines, vectors * LANES),
        role=TensorRole.INPUT,
        place=MemorySpace.CHIP,
    )
    x = replace(take, name="x", shape=(WORDS,), place=MemorySpace.SHARED)
    head = Head(channel="c", value="got")
    nodes = (
        _counting("gather", machines, vectors, gather),
        _counting("drop", machines, vectors, drop, head),
    )
    return Graph(name="gatherers", nodes=nodes, channels=(gathers,), tensors=(take, x))


def _counting(
    name: str, machines: int, steps: int, step: Rule, head: Head | None = None
) -> Machine:
    further = RegisterWrite(register="at", indices=(), value=AT + 1)
    more = Choice(
        when=AT < steps,
        needs=() if head is None else (head.channel,),
        inside=replace(step, body=(*step.body, further), next="run"),
    )
    return Machine(
        name=name,
        role=Role.COMPUTE,
        space=(SpaceDimension(name="p", minimum=0, extent=machines),),
        heads=() if head is None else (head,),
        registers=(Register(name="at", type=INT32, shape=(), distance=1),),
        modes=(Mode(name="run", needs=(), choices=(more, Choice(inside=Rule(name="end")))),),
    )


def random_units(machines: int, vectors: int, seed: int = 1) -> Array:
    """Words of any unit, each lane with banks of its own."""
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, WORDS // LANES, (machines, vectors, LANES))
    return (rows * LANES + np.arange(LANES)).reshape(machines, -1).astype(np.int32)


def random_words(machines: int, vectors: int, seed: int = 1) -> Array:
    """Any words."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, WORDS, (machines, vectors * LANES), np.int32)


def other_units(machines: int, vectors: int, other: int = 5) -> Array:
    """Machine p asks unit p xor ``other``."""
    units = np.arange(machines)[:, None] ^ other
    words = units * LANES + np.arange(vectors * LANES) % LANES
    return words.astype(np.int32)


def run(
    banked: Banked | None, take: Array, engine: str = "native", max_cycles: int | None = None
) -> SimResult:
    """The machines that gather these words, on a device with these banks."""
    machines, vectors = take.shape[0], take.shape[1] // LANES
    device = DEVICES["ideal"].with_banked(banked)
    inputs = {"take": take, "x": np.arange(WORDS, dtype=np.int32)}
    graph = gatherers(machines, vectors)
    return simulate(graph, inputs, device=device, engine=engine, max_cycles=max_cycles)


def words_per_port(banked: Banked, take: Array, engine: str = "native") -> float:
    """Words per machine and cycle."""
    return take.size / take.shape[0] / run(banked, take, engine).cycles


def alone(queue_depth: int, rounds: int, vectors: int = 4000, engine: str = "native") -> float:
    """The share of the banks' peak that one machine gets of one unit with random words."""
    banked = Banked(ports=1, queue_depth=queue_depth, rounds=rounds, link_depth=32, outstanding=128)
    return words_per_port(banked, random_words(1, vectors), engine) / banked.banks


def network(lane_moves: int, cycles: int = 2000, engine: str = "native") -> float:
    """Words per port and cycle of 16 machines on a network in front of units that take all.

    Counted over so many cycles, in which all machines have more to ask for.
    """
    banked = Banked(lane_moves=lane_moves, rounds=64, queue_depth=64, outstanding=256)
    result = run(banked, random_units(16, cycles), engine, max_cycles=cycles)
    assert result.shared is not None
    return result.shared.words_per_cycle / banked.ports


def main() -> None:
    table = Table(title="one machine and one unit, random words")
    for header in ("queue", "rounds", "share of peak"):
        table.add_column(header, justify="right")
    for depth, rounds in ((1, 1), (8, 2), (16, 1), (16, 2)):
        table.add_row(str(depth), str(rounds), f"{alone(depth, rounds):.1%}")
    Console().print(table)
    table = Table(title="16 machines, full vectors")
    for header in ("words", "lane moves", "words per port and cycle"):
        table.add_column(header, justify="right")
    for moves in (0, 1, 2):
        table.add_row("of any unit", str(moves), f"{network(moves):.2f}")
    table.add_row("of unit p xor 5", "1", f"{words_per_port(Banked(), other_units(16, 1000)):.2f}")
    one = words_per_port(Banked(), random_units(1, 1000))
    table.add_row("one machine alone", "1", f"{one:.2f}")
    whole = words_per_port(Banked(), random_words(16, 1000))
    table.add_row("any, as Capstan is", "1", f"{whole:.2f}")
    Console().print(table)
    take = random_words(16, 20_000)
    for _ in range(2):
        begin = process_time()
        result = run(Banked(), take)
        seconds = process_time() - begin
    vectors = take.size // LANES
    print(f"{vectors:,} vectors in {result.cycles:,} cycles and {seconds:.2f} s of CPU: "
          f"{vectors / seconds / 1e6:.2f} M vectors/s")  # fmt: skip
    print(result.shared)


if __name__ == "__main__":
    main()
