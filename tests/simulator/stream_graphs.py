"""Random graphs of machines: sources, filters, joins, forks, loops, over streams with an end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from t2s.core.expr import Expr, Local, conjunction, const, equals, unequal
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Load, RegisterWrite, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor, TensorRole
from t2s.graph.nodes import (
    DONE,
    VALUE,
    Choice,
    Head,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    Put,
    Register,
    Role,
    Rule,
    SortedMemory,
)


def value(channel: str) -> Local:
    return Local(name=f"{channel}_value", type=INT32)


def is_value(channel: str) -> Expr:
    return equals(Local(name=f"{channel}_tag", type=INT32), VALUE)


def local(name: str) -> Local:
    return Local(name=name, type=INT32)


def write(register: str, to: Expr) -> RegisterWrite:
    return RegisterWrite(register=register, indices=(), value=to)


@dataclass
class Builder:
    """Collects the machines of a graph; a stream is a channel without a reader yet."""

    place: MemorySpace
    nodes: list[Machine] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    sinks: dict[str, str] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)

    def stream(self) -> str:
        name = f"s{len(self.sources)}"
        self.sources[name] = ""
        return name

    def tensor(self, name: str, role: TensorRole) -> str:
        self.tensors.append(
            Tensor(name=name, type=INT32, shape=(0,), role=role, open=True, place=self.place)
        )
        return name

    def machine(
        self,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        *modes: Mode,
        registers: tuple[str, ...] = (),
        memories: tuple[SortedMemory, ...] = (),
    ) -> None:
        name = f"n{len(self.nodes)}"
        self.sources |= dict.fromkeys(outputs, name)
        self.sinks |= dict.fromkeys(inputs, name)
        self.nodes.append(
            Machine(
                name=name,
                role=Role.COMPUTE,
                heads=tuple(Head(channel=c, value=f"{c}_value", tag=f"{c}_tag") for c in inputs),
                registers=tuple(
                    Register(name=r, type=INT32, shape=(), distance=1) for r in registers
                ),
                memories=memories,
                modes=modes,
            )
        )

    def graph(
        self,
        nodes: Sequence[Machine],
        capacity: Callable[[], int] = lambda: 2,
        latency: Callable[[], int] = lambda: 1,
    ) -> Graph:
        channels = tuple(
            Channel(
                name=name,
                stream=StreamType(element=INT32, nesting=1),
                source=source,
                sink=self.sinks[name],
                capacity=capacity(),
                latency=latency(),
            )
            for name, source in self.sources.items()
        )
        return Graph(
            name="random", nodes=tuple(nodes), channels=channels, tensors=tuple(self.tensors)
        )

    # -- machines -----------------------------------------------------------------------------

    def source(self, count: int) -> str:
        """The elements of an input, and the end."""
        out = self.stream()
        tensor = self.tensor(f"x{len(self.tensors)}", TensorRole.INPUT)
        load = Load(target="loaded", tensor=tensor, indices=(local("at"),), type=INT32)
        more = Rule(
            name="more",
            body=(load, write("at", local("at") + 1)),
            puts=(Put(channel=out, value=local("loaded")),),
            next="run",
        )
        self.machine(
            (),
            (out,),
            Mode(
                name="run",
                needs=(),
                choices=(
                    Choice(when=local("at") < count, inside=more),
                    Choice(inside=Rule(name="end", puts=(Put(channel=out, tag=const(DONE)),))),
                ),
            ),
            registers=("at",),
        )
        return out

    def sink(self, stream: str) -> None:
        """Stores what comes."""
        tensor = self.tensor(f"y{len(self.tensors)}", TensorRole.OUTPUT)
        store = Store(tensor=tensor, indices=(local("at"),), value=value(stream))
        keep = Rule(
            name="keep",
            body=(store, write("at", local("at") + 1)),
            takes=(stream,),
            next="run",
        )
        self.machine(
            (stream,),
            (),
            Mode(
                name="run",
                needs=(stream,),
                choices=(
                    Choice(when=is_value(stream), inside=keep),
                    Choice(inside=Rule(name="end", takes=(stream,))),
                ),
            ),
            registers=("at",),
        )

    def _end(self, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Choice:
        puts = tuple(Put(channel=out, tag=const(DONE)) for out in outputs)
        return Choice(inside=Rule(name="end", takes=inputs, puts=puts))

    def filter(self, stream: str, by: int) -> str:
        """Drops multiples of a number."""
        out = self.stream()
        keep = Rule(
            name="keep",
            takes=(stream,),
            puts=(Put(channel=out, value=value(stream) + 1),),
            next="run",
        )
        remainder = value(stream) % by
        inside = (
            Choice(when=unequal(remainder, 0), inside=keep),
            Choice(inside=Rule(name="drop", takes=(stream,), next="run")),
        )
        choices = (Choice(when=is_value(stream), inside=inside), self._end((stream,), (out,)))
        self.machine((stream,), (out,), Mode(name="run", needs=(stream,), choices=choices))
        return out

    def repeat(self, stream: str, times: int) -> str:
        """Sends each value several times before it takes it."""
        out = self.stream()
        put = (Put(channel=out, value=value(stream)),)
        again = Rule(name="again", body=(write("made", local("made") + 1),), puts=put, next="run")
        last = Rule(
            name="last", body=(write("made", const(0)),), takes=(stream,), puts=put, next="run"
        )
        inside = (
            Choice(when=local("made") < times - 1, inside=again),
            Choice(inside=last),
        )
        choices = (Choice(when=is_value(stream), inside=inside), self._end((stream,), (out,)))
        self.machine(
            (stream,),
            (out,),
            Mode(name="run", needs=(stream,), choices=choices),
            registers=("made",),
        )
        return out

    def fork(self, stream: str) -> tuple[str, str]:
        """Two copies."""
        left, right = self.stream(), self.stream()
        copy = Rule(
            name="copy",
            takes=(stream,),
            puts=tuple(Put(channel=out, value=value(stream)) for out in (left, right)),
            next="run",
        )
        choices = (
            Choice(when=is_value(stream), inside=copy),
            self._end((stream,), (left, right)),
        )
        self.machine((stream,), (left, right), Mode(name="run", needs=(stream,), choices=choices))
        return left, right

    def merge(self, left: str, right: str) -> str:
        """The smaller head goes first, the other one stays."""
        out = self.stream()

        def take(name: str, stream: str) -> Rule:
            put = Put(channel=out, value=value(stream))
            return Rule(name=name, takes=(stream,), puts=(put,), next="run")

        choices = (
            Choice(
                when=conjunction(is_value(left), is_value(right)),
                inside=(
                    Choice(
                        when=value(left) < value(right),
                        inside=take("smaller left", left),
                    ),
                    Choice(inside=take("smaller right", right)),
                ),
            ),
            Choice(when=is_value(left), inside=take("left", left)),
            Choice(when=is_value(right), inside=take("right", right)),
            self._end((left, right), (out,)),
        )
        self.machine((left, right), (out,), Mode(name="run", needs=(left, right), choices=choices))
        return out

    def select(self, control: str, stream: str) -> tuple[str, str]:
        """Takes from the stream for odd values of the control only; puts in varying order."""
        left, right = self.stream(), self.stream()
        odd = equals(value(control) % 2, 1)
        both = (Put(channel=right, value=value(control)), Put(channel=left, value=value(stream)))
        choices = (
            Choice(
                when=is_value(control),
                inside=(
                    Choice(
                        when=odd,
                        needs=(stream,),
                        inside=(
                            Choice(
                                when=is_value(stream),
                                inside=Rule(
                                    name="both", takes=(control, stream), puts=both, next="run"
                                ),
                            ),
                            Choice(inside=Rule(name="over", takes=(control,), next="run")),
                        ),
                    ),
                    Choice(
                        inside=Rule(
                            name="control",
                            takes=(control,),
                            puts=(
                                Put(channel=left, value=value(control)),
                                Put(channel=right, value=const(0)),
                            ),
                            next="run",
                        )
                    ),
                ),
            ),
            Choice(
                needs=(stream,),
                inside=(
                    Choice(
                        when=is_value(stream),
                        inside=Rule(name="rest", takes=(stream,), next="run"),
                    ),
                    self._end((control, stream), (left, right)),
                ),
            ),
        )
        self.machine(
            (control, stream), (left, right), Mode(name="run", needs=(control,), choices=choices)
        )
        return left, right

    def odd_end(self, stream: str, *, waits: bool) -> str:
        """Refuses a 6; at the end it waits for one token more, or ends before the end has come."""
        out = self.stream()
        keep = Rule(
            name="keep",
            takes=(stream,),
            puts=(Put(channel=out, value=value(stream)),),
            next="run",
        )
        end = Rule(name="end", puts=(Put(channel=out, tag=const(DONE)),))
        more = Rule(name="more", takes=(stream,), next="run")
        fine = Choice(when=unequal(value(stream), 6), inside=keep)
        choices = (
            Choice(when=is_value(stream), inside=(fine,)),
            Choice(inside=more if waits else end),
        )
        self.machine(
            (stream,),
            (out,),
            Mode(name="run", needs=(stream,), choices=choices, expected="no 6"),
        )
        return out

    def loop(self, stream: str) -> str:
        """Adds up in a loop of two machines that starts with a token in it."""
        out, forth, back = self.stream(), self.stream(), self.stream()
        start = Rule(name="start", puts=(Put(channel=forth, value=const(1)),), next="run")
        total = value(stream) + value(back)
        puts = (Put(channel=out, value=total), Put(channel=forth, value=total))
        step = Rule(name="step", takes=(stream, back), puts=puts, next="run")
        self.machine(
            (stream, back),
            (out, forth),
            Mode(name="begin", needs=(), choices=(Choice(inside=start),)),
            Mode(
                name="run",
                needs=(stream, back),
                choices=(
                    Choice(when=is_value(stream), inside=step),
                    self._end((stream, back), (out, forth)),
                ),
            ),
        )
        send = Rule(
            name="send", takes=(forth,), puts=(Put(channel=back, value=value(forth)),), next="run"
        )
        self.machine(
            (forth,),
            (back,),
            Mode(
                name="run",
                needs=(forth,),
                choices=(
                    Choice(when=is_value(forth), inside=send),
                    Choice(inside=Rule(name="end", takes=(forth,))),
                ),
            ),
        )
        return out

    def sort(self, stream: str) -> str:
        """Counts equal values in a sorted memory, and sends the distinct ones with their counts."""
        out = self.stream()
        memory = SortedMemory(name="points", keys=(INT32,), type=INT32, operator=Op.ADD)
        first = MemoryFirst(targets=("point",), value="count", memory="points")
        size = MemorySize(target="size", memory="points")
        add = Rule(
            name="add",
            body=(MemoryAdd(memory="points", keys=(value(stream),), value=const(1)),),
            takes=(stream,),
            next="run",
        )
        put = Put(
            channel=out,
            value=local("point") * 10 + local("count"),
        )
        drain = Rule(name="drain", body=(MemoryDrop(memory="points"),), puts=(put,), next="drain")
        self.machine(
            (stream,),
            (out,),
            Mode(
                name="run",
                needs=(stream,),
                choices=(
                    Choice(when=is_value(stream), inside=add),
                    Choice(inside=Rule(name="full", takes=(stream,), next="drain")),
                ),
            ),
            Mode(
                name="drain",
                needs=(),
                choices=(
                    Choice(
                        body=(size, first),
                        inside=(
                            Choice(when=local("size") > 0, inside=drain),
                            self._end((), (out,)),
                        ),
                    ),
                ),
            ),
            memories=(memory,),
        )
        return out


_KINDS = ("filter", "repeat", "fork", "diamond", "join", "select", "loop", "sort", "odd end")


@st.composite
def stream_graphs(draw: st.DrawFn) -> Graph:
    """A graph; it may come to a deadlock."""
    builder = Builder(draw(st.sampled_from((MemorySpace.MEMORY, MemorySpace.CHIP))))
    streams = [builder.source(draw(st.integers(0, 12))) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, 6))):
        stream = streams.pop(draw(st.integers(0, len(streams) - 1)))
        kind = draw(st.sampled_from(_KINDS))
        if kind in ("join", "select") and streams:
            other = streams.pop(draw(st.integers(0, len(streams) - 1)))
            if kind == "join":
                streams.append(builder.merge(stream, other))
            else:
                streams.extend(builder.select(stream, other))
        elif kind == "fork":
            streams.extend(builder.fork(stream))
        elif kind == "diamond":
            left, right = builder.fork(stream)
            streams.append(builder.merge(builder.sort(left), right))
        elif kind == "odd end":
            streams.append(builder.odd_end(stream, waits=draw(st.booleans())))
        elif kind == "repeat":
            streams.append(builder.repeat(stream, draw(st.integers(1, 3))))
        elif kind == "loop":
            streams.append(builder.loop(stream))
        elif kind == "sort":
            streams.append(builder.sort(stream))
        else:
            streams.append(builder.filter(stream, draw(st.integers(2, 4))))
    for stream in streams:
        builder.sink(stream)
    units = [
        replace(
            node,
            interval=draw(st.sampled_from((1, 1, 1, 3))),
            latency=draw(st.sampled_from((0, 0, 0, 4))),
        )
        for node in builder.nodes
    ]
    return builder.graph(
        draw(st.permutations(units)),
        lambda: draw(st.integers(1, 5)),
        lambda: draw(st.sampled_from((1, 1, 2, 7))),
    )


def sorted_and_not() -> Graph:
    """A stream and its sorted copy, merged: the plain one waits for all of the other."""
    builder = Builder(MemorySpace.CHIP)
    left, right = builder.fork(builder.source(9))
    builder.sink(builder.merge(builder.sort(left), right))
    graph = builder.graph(builder.nodes)
    return graph
