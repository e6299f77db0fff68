"""All machines of a graph as cells, units and nets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from t2s.backends.base import Unsupported
from t2s.backends.cgra_tia.lower.control import flat_blocks as flat
from t2s.backends.cgra_tia.lower.control.block_cells import BlockCell, cells_of
from t2s.backends.cgra_tia.lower.control.decision_trees import joined, rotated, with_single_tests
from t2s.backends.cgra_tia.lower.control.memory_streams import StreamedBlock, with_streams
from t2s.backends.cgra_tia.lower.control.refusals import BlockRefusals
from t2s.backends.cgra_tia.lower.control.sequences import (
    TokenLoop,
    Tokens,
    sequence_of,
    tokens_of,
)
from t2s.backends.cgra_tia.lower.control.unfold import unfolded
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered
from t2s.backends.cgra_tia.netlist import (
    AffineSum,
    Endpoint,
    Net,
    NetCell,
    Netlist,
    NetSink,
    Provenance,
    StreamUnit,
    UnitKind,
)
from t2s.core.expr import Const, Local
from t2s.core.names import NameSupply
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import Machine

ROOM = 32
"""Tokens that a stream between blocks can hold; one of the graph that holds fewer holds those."""


def netlist_of_machines(graph: Graph, *, contract: bool) -> Netlist | list[Unsupported]:
    """The netlist of a graph of machines, or every reason why there is none."""
    blocks, problems = _unfolded(graph)
    if problems:
        return problems
    return _BlockWiring(graph=graph, contract=contract).netlist(blocks)


def _unfolded(graph: Graph) -> tuple[dict[str, flat.FlatBlock], list[Unsupported]]:
    """All blocks, for the tags that can arrive: unfolded until no new tags are found."""
    tags: dict[str, frozenset[int]] = {channel.name: frozenset() for channel in graph.channels}
    blocks: dict[str, flat.FlatBlock] = {}
    problems: dict[str, Unsupported] = {}
    waiting = [machine.name for machine in graph.machines]
    machines = {machine.name: machine for machine in graph.machines}
    while waiting:
        name = waiting.pop(0)
        try:
            ties = flat.ties_of(graph, machines[name], blocks)
            blocks[name] = unfolded(graph, machines[name], tags, ties)
        except NotLowered as refused:
            problems[name] = refused.problem
            continue
        for firing in flat.firings_of(blocks[name]):
            for put in firing.puts:
                if put.tag not in tags[put.channel]:
                    tags[put.channel] |= {put.tag}
                    sink = graph.channel(put.channel).sink
                    if sink not in waiting and sink not in problems:
                        waiting.append(sink)
        sinks = dict.fromkeys(channel.sink for channel in graph.outputs_of(name))
        waiting += [
            sink
            for sink in sinks
            if sink in blocks
            and sink not in (*waiting, *problems)
            and blocks[sink].ties
            and blocks[sink].ties != flat.ties_of(graph, machines[sink], blocks)
        ]
    return blocks, [problems[name] for name in machines if name in problems]


@dataclass(frozen=True, slots=True)
class _LoadedFrom:
    """Elements of a tensor, at the addresses of a stream plus ``offset``."""

    stream: str
    tensor: str
    offset: int


@dataclass(kw_only=True)
class _BlockWiring:
    """Collects the parts.

    ``origins`` are the sources of channels: an output, another channel (by name) that carries the
    same, or loaded elements.
    """

    graph: Graph
    contract: bool
    cells: list[NetCell] = field(default_factory=list)
    units: list[StreamUnit] = field(default_factory=list)
    origins: dict[str, Endpoint | str | _LoadedFrom] = field(default_factory=dict)
    sinks: dict[Endpoint, list[NetSink]] = field(default_factory=dict)
    names: NameSupply = field(default_factory=NameSupply)
    _loaded: dict[tuple[Endpoint, str, int], Endpoint] = field(default_factory=dict)
    _wanted: list[tuple[str, Endpoint]] = field(default_factory=list)
    _owners: dict[str, flat.FlatBlock] = field(default_factory=dict)

    def netlist(self, blocks: Mapping[str, flat.FlatBlock]) -> Netlist | list[Unsupported]:
        problems: list[Unsupported] = []
        static = self._sequences(blocks)
        types = {tensor.name: tensor.type for tensor in self.graph.tensors}
        for name, block in blocks.items():
            if name in static:
                continue
            machine = self.graph.node(name)
            assert isinstance(machine, Machine)
            try:
                streamed = with_streams(self._kept_alive(block), types)
                tested = rotated(with_single_tests(streamed.block))
                self._smaller(streamed, [joined(tested), tested], BlockRefusals(machine))
            except NotLowered as refused:
                problems.append(refused.problem)
        if problems:
            return problems
        for channel, end in self._wanted:
            self._sink(self._source(channel), end, self._room(channel))
        return Netlist(
            name=self.graph.name,
            cells=tuple(self.cells),
            units=tuple(self.units),
            nets=tuple(
                Net(
                    name=f"{source.part}.out{source.port}",
                    group=f"{source.part}.out{source.port}",
                    source=source,
                    sinks=tuple(sinks),
                    location=self._owners[source.part].location,
                )
                for source, sinks in self.sinks.items()
            ),
            tensors=tuple(
                replace(tensor, place=MemorySpace.MEMORY) for tensor in self.graph.tensors
            ),
            location=self.graph.location,
        )

    # -------------------------------------------------------------------------------- blocks

    def _sequences(self, blocks: Mapping[str, flat.FlatBlock]) -> set[str]:
        """Blocks that become ``seq`` units, and these units."""
        tokens: dict[str, Tokens] = {}
        sequences: dict[str, dict[str, TokenLoop]] = {}
        waiting = list(blocks)
        while waiting:
            name = waiting.pop(0)
            put = tokens_of(blocks[name], tokens) if name not in sequences else None
            if put is None:
                continue
            loops = {channel: sequence_of(own) for channel, own in put.items()}
            if any(loop is None for loop in loops.values()):
                continue
            tokens |= put
            sequences[name] = {c: loop for c, loop in loops.items() if loop is not None}
            waiting += [self.graph.channel(channel).sink for channel in put]
        for name, channels in sequences.items():
            units: dict[TokenLoop, Endpoint] = {}
            for channel, loop in channels.items():
                if self.graph.channel(channel).sink in sequences:
                    continue
                if loop not in units:
                    unit = loop.unit(self.names.fresh(f"{name}.seq"), _origin(blocks[name]))
                    self._add(unit, blocks[name])
                    units[loop] = Endpoint(part=unit.name)
                self.origins[channel] = units[loop]
        return set(sequences)

    def _kept_alive(self, block: flat.FlatBlock) -> flat.FlatBlock:
        """Give a block that may act while no token is in flight a token that it takes last.

        A run is over when no token is left, so without it the run could end too early.
        """
        if block.heads and not _outlives(block):
            return block
        unit = StreamUnit(
            name=self.names.fresh(f"{block.name}.alive"),
            kind=UnitKind.SEQUENCE,
            origin=_origin(block),
        )
        self._add(unit, block)
        self.origins[unit.name] = Endpoint(part=unit.name)
        return flat.with_last_head(block, unit.name)

    def _smaller(
        self, streamed: StreamedBlock, forms: Sequence[flat.FlatBlock], refusals: BlockRefusals
    ) -> None:
        """Add the cells of the first form of a block that fits, or else refuse the first form.

        Joined firings usually take fewer instructions, but not always.
        """
        problem: NotLowered | None = None
        for form in forms:
            try:
                self._block(replace(streamed, block=form), refusals)
            except NotLowered as refused:
                problem = problem or refused
            else:
                return
        assert problem is not None
        raise problem

    def _block(self, streamed: StreamedBlock, refusals: BlockRefusals) -> None:
        """Add the cells of a block (none if it only forwards tokens) and its units."""
        block = streamed.block
        addressed = {name: f"?{name}" if name in block.loaded else name for name in block.outputs}
        head = _passed_on(block)
        if head is not None:
            self.origins |= dict.fromkeys(addressed.values(), head)
        else:
            first = flat.alike(block)
            ports: dict[str, Endpoint] = {}
            for cell in cells_of(block, refusals, contract=self.contract):
                self._cell(block, cell)
                for name, port in cell.outputs.items():
                    ports[name] = Endpoint(part=cell.name, port=port)
            for name, key in addressed.items():
                if first[name] in ports:
                    self.origins[key] = ports[first[name]]
        for name, tensor in block.loaded.items():
            self.origins[name] = _LoadedFrom(f"?{name}", tensor, 0)
        for loaded in streamed.heads:
            self.origins[loaded.channel] = _LoadedFrom(loaded.stream, loaded.tensor, loaded.offset)
            self._owners.setdefault(loaded.stream, block)
        for asked in streamed.asked:
            unit = self._unit(UnitKind.LOAD_AT, asked.tensor, block)
            self.origins[asked.answers] = Endpoint(part=unit)
            self._wanted.append((asked.asks, Endpoint(part=unit)))
        for stores in streamed.stores:
            unit = self._unit(UnitKind.STORE_AT, stores.tensor, block)
            self._wanted.append((stores.addresses, Endpoint(part=unit)))
            self._wanted.append((stores.values, Endpoint(part=unit, port=1)))

    def _cell(self, block: flat.FlatBlock, cell: BlockCell) -> None:
        net_cell = NetCell(
            name=cell.name, kind=cell.kind, program=cell.program, origin=_origin(block)
        )
        self._owners[cell.name] = block
        self.cells.append(net_cell)
        for name, port in cell.inputs.items():
            self._wanted.append((name, Endpoint(part=cell.name, port=port)))
        for output, port in cell.loops:
            source, end = (Endpoint(part=cell.name, port=number) for number in (output, port))
            self._sink(source, end, 2)

    def _unit(self, kind: UnitKind, tensor: str, block: flat.FlatBlock, offset: int = 0) -> str:
        """Add a unit that loads or stores at the addresses that it receives."""
        name = self.names.fresh(f"{block.name}.{tensor}")
        unit = StreamUnit(
            name=name,
            kind=kind,
            tensor=tensor,
            address=AffineSum(constant=offset) if offset else None,
            origin=_origin(block),
        )
        self._add(unit, block)
        return name

    def _add(self, unit: StreamUnit, block: flat.FlatBlock) -> None:
        self.units.append(unit)
        self._owners[unit.name] = block

    # ---------------------------------------------------------------------------------- nets

    def _source(self, channel: str) -> Endpoint:
        """The output at which the tokens of a channel originate."""
        match self.origins[channel]:
            case Endpoint() as end:
                return end
            case _LoadedFrom(stream=stream, tensor=tensor, offset=offset):
                source = self._source(stream)
                key = (source, tensor, offset)
                if key not in self._loaded:
                    block = self._owners.get(stream) or self._owners[source.part]
                    unit = self._unit(UnitKind.LOAD_AT, tensor, block, offset)
                    self._loaded[key] = Endpoint(part=unit)
                    self._sink(source, Endpoint(part=unit), 1)
                return self._loaded[key]
            case other:
                return self._source(other)

    def _sink(self, source: Endpoint, end: Endpoint, tokens: int) -> None:
        self.sinks.setdefault(source, []).append(NetSink(end=end, tokens=tokens))

    def _room(self, channel: str) -> int:
        """The tokens that a channel holds; channels to and from units hold what is in flight."""
        known = {known_channel.name for known_channel in self.graph.channels}
        return min(self.graph.channel(channel).capacity, ROOM) if channel in known else 1


def _outlives(block: flat.FlatBlock) -> bool:
    """Whether a block may take the end of a stream and go on."""

    def goes_on(tree: flat.Tree, ended: frozenset[str]) -> bool:
        match tree:
            case flat.HeadWait(heads=heads, cases=cases):
                for tags, below in cases:
                    ending = {h for h, tag in zip(heads, tags, strict=True) if tag == flat.DONE_TAG}
                    if goes_on(below, ended | ending):
                        return True
                return False
            case flat.ValueTest(yes=yes, no=no):
                return goes_on(yes, ended) or goes_on(no, ended)
            case flat.Fetch(then=then) | flat.Ask(then=then):
                return goes_on(then, ended)
            case flat.Firing(takes=takes, after=after):
                return after is not None and bool(ended & set(takes))

    return any(goes_on(tree, frozenset()) for tree in block.trees.values())


def _origin(block: flat.FlatBlock) -> Provenance:
    return Provenance(node=block.name, location=block.location)


def _passed_on(block: flat.FlatBlock) -> str | None:
    """The head that a block copies to all of its outputs, if it does nothing else."""
    tree = block.trees[block.first]
    if not isinstance(tree, flat.HeadWait) or len(tree.heads) != 1 or not block.outputs:
        return None
    (head,) = tree.heads
    for (tag,), below in tree.cases:
        if not isinstance(below, flat.Firing) or below.takes != (head,) or below.stores:
            return None
        if below.after != block.first and not (below.after is None and tag == flat.DONE_TAG):
            return None
        puts = {put.channel: put for put in below.puts}
        if puts.keys() != block.outputs.keys() or any(put.tag != tag for put in puts.values()):
            return None
        values = [put.value for put in puts.values()]
        passed = [isinstance(v, Local) and v.name == block.values[head] for v in values]
        if tag == flat.VALUE_TAG and not all(passed):
            return None
        if any(isinstance(value, Const) and value.value for value in values):
            return None
        if tag != flat.VALUE_TAG and any(not isinstance(v, Const | None) for v in values):
            return None
    return head
