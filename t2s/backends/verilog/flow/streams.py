"""A design with an AXI4-Stream for each of its load and store units, in place of memory.

What a load unit reads it takes from its stream, in the order in which it reads; what a store unit
stores it sends.  The design runs again and again: a run begins once all streams to it have a word,
and its results end with ``tlast``.  A host that never lets a stream wait sees the cycles of a
device whose memory has a port for each unit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2s.backends.base import DeviceTimes, Unsupported
from t2s.backends.text.expressions import If, Name, TargetExpression, TargetStatement, number
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import width_of
from t2s.backends.verilog.flow.surroundings import LIBRARY as COUNTING
from t2s.backends.verilog.flow.surroundings import Surroundings, lane_of
from t2s.backends.verilog.interfaces import LoadPort, StorePort
from t2s.backends.verilog.top import AccessNames, NodeNames, Top
from t2s.core.ops import Array
from t2s.graph.arrays import strides_of
from t2s.graph.body import Load, Store
from t2s.graph.control.accesses import accesses
from t2s.graph.control.domains import Domain, domains
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray

LIBRARY = ("streams.sv", *COUNTING)
MOST_WORDS = 1 << 24
"""Words of one stream in a run: their order is a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream at the border of a design.

    A word has ``lanes`` elements of ``bits`` bits each, which take whole bytes, the first one
    lowest.  ``elements`` are the first elements of all words of a run in order, as positions in
    row-major order in the tensor as it is allocated.
    """

    name: str
    tensor: str
    to_design: bool
    lanes: int
    bits: int
    elements: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of a word."""
        return self.lanes * _bytes(self.bits)


@dataclass(frozen=True, kw_only=True)
class StreamedDesign:
    """The files of a design with streams, its module, and the streams in order of their ports.

    ``names`` are those of the design in it.
    """

    names: Top
    module: str
    files: Mapping[str, str]
    streams: tuple[Stream, ...]


def not_streamed(graph: Graph, parameters: Mapping[str, Array]) -> list[Unsupported]:
    """The nodes whose streams have too many words to say in which order they come."""
    return [
        Unsupported(
            subject=f"node {node.name!r}",
            why=f"its PEs fire more than {MOST_WORDS:,} times in a run, too often for the order of "
            "the words of a stream to be listed; smaller tiles, each a run of its own, are not",
            location=node.location,
        )
        for node in graph.pe_arrays
        if any(isinstance(statement, Load | Store) for statement in node.body)
        if max(domain.firings for domain in domains(node, parameters)) > MOST_WORDS
    ]


def streamed_design(
    top: Top, times: DeviceTimes, parameters: Mapping[str, Array]
) -> StreamedDesign:
    """A design with streams; ``parameters`` are the values of scalars by name."""
    return _Builder(top, times, parameters).build()


def description(streams: Sequence[Stream]) -> str:
    """The streams for a host, as JSON: for each of them its tensor, and the elements in order."""
    described = {
        stream.name: {
            "tensor": stream.tensor,
            "direction": "to the design" if stream.to_design else "from the design",
            "lanes": stream.lanes,
            "bits": stream.bits,
            "elements": stream.elements,
        }
        for stream in streams
    }
    return json.dumps(described, indent=1) + "\n"


def packet(stream: Stream, memory: Array) -> list[int]:
    """The bytes of a run of a stream, of what is in its tensor as it is allocated."""
    width = _bytes(stream.bits)
    elements = np.ascontiguousarray(memory).reshape(-1, 1)
    patterns = elements.view(np.uint8)[:, :width]
    at = np.add.outer(np.array(stream.elements, np.int64), np.arange(stream.lanes))
    found: list[int] = patterns[at].reshape(-1).tolist()
    return found


class _Builder:
    def __init__(self, top: Top, times: DeviceTimes, parameters: Mapping[str, Array]) -> None:
        self.top, self.parameters, self.fresh = top, parameters, top.identifiers.fresh
        own = ("run", "rests", "counted", "there_all")
        self.run, self.rests, self.counted, self.there = map(self.fresh, own)
        self.around = Surroundings(top, times, parameters, reset=self.rests, cycles=self.counted)
        self.streams: list[Stream] = []
        self.ports: list[ast.ModulePort] = []
        self.waited_for: list[str] = []

    def build(self) -> StreamedDesign:
        module = self.fresh(f"{self.top.graph.name}_streams")
        units = [item for interface in self.top.nodes for item in self._units(*interface)]
        items = [
            *(ast.variable(name) for name in (self.run, self.rests, self.there)),
            ast.variable(self.counted, ast.WORD),
            ast.ContinuousAssignment(
                target=Name(name=self.rests), value=ast.negation(Name(name=self.run))
            ),
            *self.around.chip(),
            ast.Heading(text="a stream for each unit"),
            *units,
            *self._runs(),
            *self.around.counting(),
        ]
        built = ast.HardwareModule(
            name=module,
            about=(f"{self.top.graph.name} with an AXI4-Stream for each of its units.",),
            ports=(
                ast.input_port(port.CLOCK),
                ast.input_port(port.RESET),
                ast.output_port("cycles", ast.WORD),
                *self.ports,
            ),
            items=tuple(items),
        )
        return StreamedDesign(
            names=self.top,
            module=module,
            files={"streamed.sv": ast.print_modules((built,))},
            streams=tuple(self.streams),
        )

    def _runs(self) -> Iterator[ast.Item]:
        body: list[TargetStatement] = [ast.put(self.there, ast.TRUE)]
        for name in self.waited_for:
            missing = ast.negation(Name(name=name))
            body.append(If(condition=missing, then=(ast.put(self.there, ast.FALSE),)))
        yield ast.AlwaysComb(body=tuple(body))
        yield ast.Instance(
            module="stream_run",
            name=self.fresh("runs"),
            connections=(
                (port.CLOCK, Name(name=port.CLOCK)),
                (port.RESET, Name(name=port.RESET)),
                ("there", Name(name=self.there)),
                ("over", Name(name=self.around.over)),
                ("counted", Name(name=self.counted)),
                ("run", Name(name=self.run)),
                ("cycles", Name(name="cycles")),
            ),
        )

    # ------------------------------------------------------------------------------------- units

    def _units(self, interface: port.Interface, names: NodeNames) -> Iterator[ast.Item]:
        """The streams of the PEs of a node, which fire when these have words and space."""
        node = interface.node
        if not isinstance(node, PEArray) or not interface.memory:
            return
        of_node = domains(node, self.parameters)
        # a design that is reset fires, too
        run: TargetExpression = Name(name=self.run)
        conditions = [[run] for _ in range(node.place_count)]
        for load, access in zip(interface.loads, names.loads, strict=True):
            orders = _orders(of_node, load.statement, self.top.graph)
            for place, elements in enumerate(orders):
                if not node.there[place]:
                    continue
                stream = self._stream(load, access, place, elements)
                there = self.fresh(f"{stream.name}_there")
                self.waited_for += [there] if elements else []
                enable = ast.element(access.enable, place)
                conditions[place].append(ast.either(ast.negation(enable), Name(name=there)))
                yield ast.variable(there)
                yield from self._input(interface, names, access, stream, place, there)
        for store, access in zip(interface.stores, names.stores, strict=True):
            orders = _orders(of_node, store.statement, self.top.graph)
            for place, elements in enumerate(orders):
                if not node.there[place]:
                    continue
                stream = self._stream(store, access, place, elements)
                space = self.fresh(f"{stream.name}_space")
                conditions[place].append(Name(name=space))
                yield ast.variable(space)
                yield from self._output(store, access, stream, place, space)
            yield from self.around.last_store(store, access.enable, node.place_count)
        for place, needed in enumerate(conditions):
            granted = ast.element(names.granted, place)
            yield ast.ContinuousAssignment(target=granted, value=ast.both(*needed))

    def _stream(
        self, access: LoadPort | StorePort, names: AccessNames, place: int, elements: list[int]
    ) -> Stream:
        stream = Stream(
            name=self.fresh(f"{names.enable}_{place}"),
            tensor=access.tensor.name,
            to_design=isinstance(access, LoadPort),
            lanes=access.type.lanes,
            bits=width_of(access.tensor.type),
            elements=tuple(elements),
        )
        self.streams.append(stream)
        data = ast.Bits(width=8 * stream.bytes)
        taken, given = (
            (ast.input_port, ast.output_port)
            if stream.to_design
            else (ast.output_port, ast.input_port)
        )
        self.ports += [taken(f"{stream.name}_tdata", data), taken(f"{stream.name}_tvalid")]
        self.ports += [] if stream.to_design else [taken(f"{stream.name}_tlast")]
        self.ports.append(given(f"{stream.name}_tready"))
        return stream

    def _input(
        self,
        interface: port.Interface,
        names: NodeNames,
        access: AccessNames,
        stream: Stream,
        place: int,
        there: str,
    ) -> Iterator[ast.Item]:
        word = self.fresh(f"{stream.name}_word")
        yield ast.variable(word, ast.Bits(width=8 * stream.bytes))
        takes = ast.both(ast.element(names.fires, place), ast.element(access.enable, place))
        yield ast.Instance(
            module="input_stream",
            name=self.fresh(f"{stream.name}_end"),
            parameters=(
                ("WIDTH", number(8 * stream.bytes)),
                ("DELAY", number(interface.plan.load_latency)),
            ),
            connections=(
                (port.CLOCK, Name(name=port.CLOCK)),
                (port.RESET, Name(name=port.RESET)),
                *self._wires(stream, ("tdata", "tvalid", "tready")),
                ("there", Name(name=there)),
                ("take", takes),
                ("data", Name(name=word)),
            ),
        )
        for lane in range(stream.lanes):
            yield ast.ContinuousAssignment(
                target=lane_of(ast.element(access.data, place), stream.lanes, lane),
                value=_part(word, stream, lane),
            )

    def _output(
        self, store: StorePort, access: AccessNames, stream: Stream, place: int, space: str
    ) -> Iterator[ast.Item]:
        word = self.fresh(f"{stream.name}_word")
        yield ast.variable(word, ast.Bits(width=8 * stream.bytes))
        data = ast.element(access.data, place)
        body: list[TargetStatement] = [ast.put(word, number(0))]
        body += [
            ast.put(_part(word, stream, lane), lane_of(data, stream.lanes, lane))
            for lane in range(stream.lanes)
        ]
        yield ast.AlwaysComb(body=tuple(body))
        yield ast.Instance(
            module="output_stream",
            name=self.fresh(f"{stream.name}_end"),
            parameters=(
                ("WIDTH", number(8 * stream.bytes)),
                ("STAGE", number(store.stage)),
                ("LAST", number(max(1, len(stream.elements)))),
            ),
            connections=(
                (port.CLOCK, Name(name=port.CLOCK)),
                (port.RESET, Name(name=port.RESET)),
                ("run", Name(name=self.run)),
                ("space", Name(name=space)),
                ("put", ast.element(access.enable, place)),
                ("data", Name(name=word)),
                *self._wires(stream, ("tdata", "tvalid", "tlast", "tready")),
            ),
        )

    def _wires(
        self, stream: Stream, signals: tuple[str, ...]
    ) -> Iterator[tuple[str, TargetExpression]]:
        for signal in signals:
            yield signal, Name(name=f"{stream.name}_{signal}")


def _orders(
    node_domains: Sequence[Domain], statement: Load | Store, graph: Graph
) -> list[list[int]]:
    """For each PE of a node, the first elements of its accesses by a statement, in order."""
    strides = strides_of(graph.tensor(statement.tensor).allocated)
    return [
        accesses(statement, strides, domain, pe, np.arange(domain.firings))[1].tolist()
        for domain in node_domains
        for pe in range(domain.pe_count)
    ]


def _bytes(bits: int) -> int:
    return -(-bits // 8)


def _part(word: str, stream: Stream, lane: int) -> TargetExpression:
    low = 8 * _bytes(stream.bits) * lane
    return ast.Slice(base=Name(name=word), high=low + stream.bits - 1, low=low)
