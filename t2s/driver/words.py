"""The words that the graphs of a kernel load and store, by the tensors that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.graph.body import Load, Store
from t2s.graph.nodes import Machine, Search

if TYPE_CHECKING:
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, slots=True)
class Words:
    """Elements of arrays that were loaded and stored: values, coordinates and positions."""

    loaded: int = 0
    stored: int = 0

    def __add__(self, other: Words) -> Words:
        return Words(self.loaded + other.loaded, self.stored + other.stored)


def total_words(parts: Iterable[Mapping[str, Words]]) -> dict[str, Words]:
    """The words of several graphs together, by tensor."""
    total: dict[str, Words] = {}
    for part in parts:
        for name, words in part.items():
            total[name] = total.get(name, Words()) + words
    return total


def words_of(result: SimResult | HardwareResult, tensor_of: Mapping[str, str]) -> dict[str, Words]:
    """The words of every tensor in a run of a graph of machines.

    ``tensor_of`` maps the graph's arrays to tensors.  A load of a vector counts all of its lanes,
    and a search one word.  Raises ``UserError`` for a run of which no firings are known.
    """
    from t2s.report.page.traffic import rule_counts
    from t2s.simulator.report.result import SimResult

    if not isinstance(result, SimResult) or result.machine_trace is None:
        raise UserError(
            "the words of this run were not counted",
            location=user_location(),
            expected='a simulation with engine="native", which records what every block did',
            given=repr(result),
        )
    program = result.program.traced(result.machine_trace)
    words = dict.fromkeys(tensor_of.values(), Words())
    for timing in program.nodes:
        if not isinstance(timing.node, Machine):
            continue
        paths = timing.node.paths()
        for instance in range(timing.first, timing.instances.stop):
            counts = rule_counts(program, instance)
            for count, path in zip(counts.tolist(), paths, strict=False):
                for statement in path.statements:
                    match statement:
                        case Load(tensor=array, type=type):
                            moved = array, Words(loaded=count * type.lanes)
                        case Search(tensor=array):
                            moved = array, Words(loaded=count)
                        case Store(tensor=array, value=value):
                            moved = array, Words(stored=count * value.type.lanes)
                        case _:
                            continue
                    array, more = moved
                    if array in tensor_of:
                        words[tensor_of[array]] += more
    return words
