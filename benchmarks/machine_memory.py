"""How much of a DRAM machines get: ``python benchmarks/machine_memory.py`` from the root folder.

Machines that read a vector of 16 int32 in every cycle, each from an array of its own, alone or with
as many that write what these read, beside a loader and an unloader of the dense language.  At 1 GHz
a machine moves 64 GB/s if nothing holds it.  Cycles are exact; nothing here is a time of this
computer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

import t2s
from t2s import Func, ImageParam, Int
from t2s.core.expr import Local
from t2s.core.types import INT32, Type
from t2s.graph.body import Load, RegisterWrite, Role, Store
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Choice, Head, Machine, Mode, Put, Register, Rule
from t2s.simulator.devices import DEVICES
from t2s.simulator.report.result import SimResult

LANES = 16
VECTOR = Type(INT32.kind, INT32.bits, LANES)
AT, VALUE = Local(name="at", type=INT32), Local(name="value", type=VECTOR)


def counting(name: str, words: int, step: Rule, head: Head | None) -> Machine:
    """A machine that takes a step for every vector."""
    further = RegisterWrite(register="at", indices=(), value=AT + LANES)
    choices = (
        Choice(
            when=AT < words,
            needs=() if head is None else (head.channel,),
            inside=replace(step, body=(*step.body, further), next="run"),
        ),
        Choice(inside=Rule(name="end")),
    )
    return Machine(
        name=name,
        role=Role.LOAD if head is None else Role.STORE,
        heads=() if head is None else (head,),
        registers=(Register(name="at", type=INT32, shape=(), distance=1),),
        modes=(Mode(name="run", needs=(), choices=choices),),
    )


def pair(number: int, words: int, *, write: bool) -> tuple[Machine, Machine]:
    """A machine that reads an array, and one that writes another one or drops what it takes."""
    channel = f"c{number}"
    load = Load(target="value", tensor=f"x{number}", indices=(AT,), type=VECTOR)
    read = Rule(name="read", body=(load,), puts=(Put(channel=channel, value=VALUE),))
    store = (Store(tensor=f"y{number}", indices=(AT,), value=VALUE),) if write else ()
    take = Rule(name="take", body=store, takes=(channel,))
    head = Head(channel=channel, value="value")
    return (
        counting(f"read{number}", words, read, None),
        counting(f"take{number}", words, take, head),
    )


def machines_that(count: int, words: int, *, write: bool) -> Graph:
    """So many pairs."""
    tensors = [
        Tensor(name=f"{name}{number}", type=INT32, shape=(words,), role=role)
        for name, role in (("x", TensorRole.INPUT), ("y", TensorRole.OUTPUT))[: 1 + write]
        for number in range(count)
    ]
    return Graph(
        name="arrays",
        nodes=tuple(node for number in range(count) for node in pair(number, words, write=write)),
        channels=tuple(
            Channel(
                name=f"c{number}",
                stream=StreamType(element=VECTOR),
                source=f"read{number}",
                sink=f"take{number}",
            )
            for number in range(count)
        ),
        tensors=tuple(tensors),
    )


def copied(words: int) -> Func:
    """y = x in the dense language, 16 int32 at a time."""
    x, y, (i, ii) = ImageParam(Int(32), 1, name="x"), Func("y"), t2s.variables("i ii")
    loader, unloader = t2s.funcs("loader unloader")
    y[i] = x[i] + 1
    y.bound(i, 0, words).split(i, i, ii, LANES).vload(x)
    y.isolate_producer(x, loader).isolate_consumer(unloader)
    unloader.vstore(y)
    return y


def run(count: int, words: int, memory: str, *, write: bool) -> SimResult:
    """Machines on a memory."""
    x = np.arange(words, dtype=np.int32)
    inputs = {f"x{number}": x for number in range(count)}
    graph = machines_that(count, words, write=write)
    return t2s.simulate(graph, inputs, device=DEVICES["ideal"], memory=memory)


def share(result: SimResult) -> str:
    assert result.memory is not None
    return f"{result.memory.share_of_peak:.1%}"


def main() -> None:
    table = Table(title="machines and a DRAM")
    for header in ("memory", "readers", "writers", "bytes", "cycles", "of peak"):
        table.add_column(header, justify="left" if header == "memory" else "right")
    for memory in ("ddr4-2133", "ddr4-2133x4", "hbm2e-1800"):
        total = 1 << (22 if memory == "hbm2e-1800" else 18)
        x = np.arange(total, dtype=np.int32)
        units = t2s.simulate(copied(total), {"x": x}, device="ideal", memory=memory)
        table.add_row(
            memory, "loader", "unloader", f"{8 * total:,}", f"{units.cycles:,}", share(units)
        )
        for count, write in ((1, True), (1, False), (32, False), (16, True), (64, True)):
            result = run(count, total // count, memory, write=write)
            bytes = 4 * total * (1 + write)
            writers = str(count if write else 0)
            table.add_row(
                "", str(count), writers, f"{bytes:,}", f"{result.cycles:,}", share(result)
            )
    Console().print(table)


if __name__ == "__main__":
    main()
