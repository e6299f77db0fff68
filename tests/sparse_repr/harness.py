"""Run one block, or a small graph of them, on token streams written as in the literature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from t2s.core.types import INT32, Float, Type
from t2s.graph.graph import StreamKind
from t2s.graph.interpret import interpret_graph
from t2s.simulator.run import simulate
from t2s.sparse_repr.streams import Stream, Streams
from tests.sparse_repr.tokens import Tokens, arrays_of, depth_of, tokens_of

FLOAT = Float(64)


class Bench:
    """A graph under test: inputs are played, outputs recorded."""

    def __init__(self, **options: Any) -> None:
        self.streams = Streams("bench", **options)
        self.inputs: dict[str, Any] = {}
        self._outputs: list[str] = []

    def play(
        self,
        tokens: Tokens,
        type: Type = INT32,
        kind: StreamKind = StreamKind.COORDINATE,
        nesting: int | None = None,
    ) -> Stream:
        name = f"in{len(self.inputs)}"
        values = self.streams.tensor(f"{name}_values", type)
        tags = self.streams.tensor(f"{name}_tags", INT32)
        self.inputs[values.name], self.inputs[tags.name] = arrays_of(tokens, type)
        return self.streams.play(values, tags, kind, nesting or depth_of(tokens))

    def array(self, name: str, values: Sequence[Any], type: Type = INT32) -> Any:
        self.inputs[name] = np.array(values, type.numpy)
        return self.streams.tensor(name, type)

    def record(self, name: str, stream: Stream) -> None:
        values = self.streams.output(f"{name}_values", stream.type.element)
        tags = self.streams.output(f"{name}_tags", INT32)
        self.streams.record(stream, values, tags)
        self._outputs.append(name)

    def run(self, *, timed: bool = False) -> dict[str, Any]:
        """The recorded streams and the other outputs."""
        graph = self.streams.graph()
        if timed:
            result = simulate(graph, self.inputs, engine="python")
            found = dict(result.outputs)
        else:
            found = interpret_graph(graph, self.inputs)
        for name in self._outputs:
            found[name] = tokens_of(found.pop(f"{name}_values"), found.pop(f"{name}_tags"))
        return found


Build = Callable[[Bench], Mapping[str, Stream]]


def streams_of(build: Build, *, timed: bool = False, **options: Any) -> dict[str, Any]:
    """What the streams that ``build`` returns carry."""
    bench = Bench(**options)
    for name, stream in build(bench).items():
        bench.record(name, stream)
    return bench.run(timed=timed)
