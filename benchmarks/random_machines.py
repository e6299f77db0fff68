"""Random graphs of machines for the referee, with inputs: streams with stops, and their end.

Sources put tokens with any tags; what follows takes streams apart and joins them, keeps registers,
register files and sorted memories, searches and looks up, and stores what comes out.  Several
machines side by side are gathered by a chain of machines; now and then a stream ends in an array of
PEs.  Types, lanes, expressions, depths and latencies are random, and so are the places of tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from benchmarks.random_parts import ORDER, TREES, Parts
from t2s.core.expr import Cast, Expr, Index, Local, ReduceLanes, apply, conjunction, const
from t2s.core.ops import Op
from t2s.core.types import INT32, Int, Type, UInt
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Statement, Store
from t2s.graph.graph import Channel, Graph, Place, StreamType, Tensor, TensorRole
from t2s.graph.machine import (
    DONE,
    EMPTY,
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
    Rule,
    Search,
    SortedMemory,
)
from t2s.graph.nodes import Loop, Node, PEArray, Register, Role, SpaceDimension

KEYS = (Int(8), Int(16), INT32, Int(64), UInt(8), UInt(32))
P = Index(name="p")


@dataclass(frozen=True)
class Flow:
    """A stream that nobody takes yet, of ``places`` machines side by side."""

    name: str
    type: Type
    nesting: int
    places: int

    @property
    def value(self) -> Local:
        return Local(name=f"{self.name}_value", type=self.type)

    @property
    def tag(self) -> Local:
        return Local(name=f"{self.name}_tag", type=INT32)

    def has(self, tag: int) -> Expr:
        """Whether the head has a tag."""
        return apply(Op.EQUAL, self.tag, const(tag))


@dataclass(kw_only=True)
class Builder:
    """What has been made so far; channels are made when both of their ends are known."""

    random: Random
    parts: Parts
    nodes: list[Node] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)
    made: dict[str, Flow] = field(default_factory=dict)
    chains: set[str] = field(default_factory=set)
    tensors: list[Tensor] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)

    def flow(self, type: Type, nesting: int, places: int) -> Flow:
        """A new stream."""
        made = Flow(f"s{len(self.made)}", type, nesting, places)
        self.made[made.name] = made
        return made

    def tensor(
        self,
        type: Type,
        role: TensorRole,
        values: np.ndarray | None = None,
        *,
        open: bool = False,
        board: bool = False,
    ) -> str:
        """A new tensor, of the shape of its ``values`` if any; ``board``: not on the chip."""
        name = f"t{len(self.tensors)}"
        shape = (0,) if open or values is None else values.shape
        place = Place.MEMORY if board else self.random.choice([Place.CHIP, Place.MEMORY])
        self.tensors.append(
            Tensor(name=name, type=type.scalar, shape=shape, role=role, open=open, place=place)
        )
        if values is not None:
            self.inputs[name] = values.astype(type.scalar.numpy)
        return name

    def machine(
        self,
        inputs: Sequence[Flow],
        outputs: Sequence[Flow],
        modes: Sequence[Mode],
        registers: Sequence[Register] = (),
        memories: Sequence[SortedMemory] = (),
    ) -> None:
        """A new node."""
        name = f"n{len(self.nodes)}"
        for flow in outputs:
            self.ends[flow.name] = (name, "")
        for flow in inputs:
            self.ends[flow.name] = (self.ends[flow.name][0], name)
        places = max(flow.places for flow in (*inputs, *outputs))
        heads = tuple(
            Head(channel=f.name, value=f.value.name, tag=f.tag.name if f.nesting else None)
            for f in inputs
        )
        self.nodes.append(
            Machine(
                name=name,
                role=self.random.choice([Role.COMPUTE, Role.LOAD, Role.STORE]),
                space=(SpaceDimension(name="p", minimum=0, extent=places),) if places > 1 else (),
                heads=heads,
                registers=tuple(registers),
                memories=tuple(memories),
                modes=tuple(modes),
            )
        )

    def channel(self, flow: Flow) -> Channel:
        """The channel of a stream."""
        source, sink = self.ends[flow.name]
        sent: tuple[Expr, ...] = (P,) if flow.places > 1 else ()
        received = sent
        if flow.name in self.chains:  # to the next machine
            sent = (apply(Op.ADD, P, const(1)),)
        elif sink and flow.places > 1 and self.single(sink):
            received = (const(flow.places - 1),)
        return Channel(
            name=flow.name,
            stream=StreamType(element=flow.type, nesting=flow.nesting),
            source=source,
            sink=sink,
            shape=(flow.places + (flow.name in self.chains),) if flow.places > 1 else (),
            source_index=sent,
            sink_index=received,
            capacity=self.random.randint(1, 4),
            latency=self.random.randint(1, 4),
        )

    def single(self, name: str) -> bool:
        """Whether the node of that name is one machine."""
        return next(node for node in self.nodes if node.name == name).space == ()


def random_machines(seed: int) -> tuple[Graph, dict[str, Any]]:
    """A graph, and its inputs."""
    random = Random(seed)
    made = Builder(random=random, parts=Parts(random=random))
    for _ in range(random.randint(1, 3)):
        made.flows.append(_source(made, random.choice([1, 1, 1, 2, 3])))
    for _ in range(random.randint(1, 6)):
        flow = made.flows.pop(random.randrange(len(made.flows)))
        same = [f for f in made.flows if f.places == flow.places]
        kinds = [_change, _change, _fork, _sort, _lookup]
        kind = random.choice([*kinds, _scratch] if flow.places == 1 else kinds)
        if same and random.random() < 0.4:
            made.flows.remove(same[0])
            made.flows.append(_join(made, flow, same[0]))
        else:
            made.flows += kind(made, flow)
    for flow in made.flows:
        one = _gather(made, flow) if flow.places > 1 else flow
        (_to_array if random.random() < 0.25 else _sink)(made, one)
    order = list(made.nodes)
    random.shuffle(order)
    graph = Graph(
        name=f"machines_{seed}",
        nodes=tuple(order),
        channels=tuple(made.channel(flow) for flow in made.made.values()),
        tensors=tuple(made.tensors),
    )
    return graph, made.inputs


# ------------------------------------------------------------------------------------- shorthand


def _register(name: str, type: Type = INT32, *shape: int) -> Register:
    return Register(name=name, type=type, shape=shape, distance=1)


def _local(name: str, type: Type = INT32) -> Local:
    return Local(name=name, type=type)


def _plus(left: Expr, right: int) -> Expr:
    return apply(Op.ADD, left, const(right))


def _write(name: str, value: Expr, *at: Expr) -> RegisterWrite:
    return RegisterWrite(register=name, indices=at, value=value)


def _count() -> RegisterWrite:
    return _write("count", _plus(_local("count"), 1))


def _modulo(size: int) -> Expr:
    return apply(Op.MODULO, _local("count"), const(size))


def _choice(inside: Rule | Sequence[Choice], when: Expr | None = None, **more: Any) -> Choice:
    return Choice(when=when, inside=inside if isinstance(inside, Rule) else tuple(inside), **more)


def _run(name: str, needs: Sequence[Flow], *choices: Choice) -> Mode:
    return Mode(name=name, needs=tuple(flow.name for flow in needs), choices=choices)


def _end(inputs: Sequence[Flow], outputs: Sequence[Flow]) -> Rule:
    puts = tuple(Put(channel=out.name, tag=const(DONE)) for out in outputs)
    return Rule(name="end", takes=tuple(flow.name for flow in inputs), puts=puts)


def _scalar(made: Builder, value: Expr) -> Expr:
    """One number of a value."""
    if value.type.lanes == 1:
        return value
    operator = made.random.choice(TREES)
    return ReduceLanes(operator=operator, value=value, type=value.type.scalar)


def _test(made: Builder, *known: Expr) -> Expr:
    """A condition on values of one type."""
    type = known[0].type
    left, right = (_scalar(made, made.parts.value(type, known, 1)) for _ in range(2))
    return apply(made.random.choice(ORDER), left, right)


def _passed(flow: Flow, *outputs: Flow) -> Choice:
    """Tokens that are no value go through; what has another tag than a value is zero."""
    puts = tuple(Put(channel=out.name, tag=flow.tag) for out in outputs)
    return _choice(Rule(name="pass", takes=(flow.name,), puts=puts, next="run"))


# -------------------------------------------------------------------------------------- machines


def _source(made: Builder, places: int) -> Flow:
    """Tokens from memory, and the end."""
    random, type = made.random, made.parts.type()
    out = made.flow(type, random.randint(1, 3), places)
    count = random.randint(0, 9)
    generator = np.random.default_rng(random.randrange(1 << 30))
    values = generator.integers(0, 9, (places, max(1, count) * type.lanes))
    tags = generator.choice([VALUE] * 5 + [EMPTY, *range(1, out.nesting)], (places, max(1, count)))
    X = made.tensor(type, TensorRole.INPUT, values if places > 1 else values[0])
    T = made.tensor(INT32, TensorRole.INPUT, tags if places > 1 else tags[0])
    at, row = _local("count"), (P,) if places > 1 else ()
    wide = apply(Op.MULTIPLY, at, const(type.lanes))
    value, tag = _local("loaded", type), _local("kind")
    body = (
        Load(target="kind", tensor=T, indices=(*row, at), type=INT32),
        Load(target="loaded", tensor=X, indices=(*row, wide), type=type),
    )
    more = Rule(
        name="more",
        body=(_count(),),
        puts=(Put(channel=out.name, value=value, tag=tag),),
        next="run",
    )
    run = _run(
        "run",
        (),
        _choice([_choice(more)], apply(Op.LESS, at, const(count)), body=body),
        _choice(_end((), (out,))),
    )
    made.machine((), (out,), (run,), (_register("count"),))
    return out


def _change(made: Builder, flow: Flow) -> list[Flow]:
    """Values are changed by what is kept of earlier ones, dropped or repeated."""
    type, size = flow.type, made.random.randint(1, 3)
    out = made.flow(type, flow.nesting, flow.places)
    kept, old = _local("kept", type), _local("old", type)
    new = made.parts.value(type, [flow.value, kept, old], 2)
    first: list[Statement] = [
        RegisterRead(target="old", register="file", indices=(_modulo(size),), type=type),
        Let(target="new", value=new),
    ]
    write: list[Statement] = [_write("file", _local("new", type), _modulo(size)), _count()]
    again = RegisterRead(target="again", register="file", indices=(const(0),), type=type)
    puts = (Put(channel=out.name, value=made.parts.value(type, [_local("again", type), old], 1)),)
    taken = (flow.name,)
    rules = [
        _choice(
            Rule(name="keep", body=(*write, again), takes=taken, puts=puts, next="run"),
            _test(made, flow.value, kept),
        ),
        _choice(
            Rule(
                name="twice",
                body=(_count(), _write("kept", _local("new", type))),
                puts=(Put(channel=out.name, value=_local("new", type)),),
                next="run",
            ),
            apply(Op.EQUAL, _modulo(3), const(1)),
        ),
        _choice(Rule(name="drop", body=(_count(),), takes=taken, next="run")),
    ]
    run = _run(
        "run",
        (flow,),
        _choice(rules, flow.has(VALUE), body=tuple(first)),
        _choice(_end((flow,), (out,)), flow.has(DONE)),
        _passed(flow, out),
    )
    registers = (_register("count"), _register("kept", type), _register("file", type, size))
    made.machine((flow,), (out,), (run,), registers)
    return [out]


def _fork(made: Builder, flow: Flow) -> list[Flow]:
    """Values go one way, or both."""
    left = made.flow(flow.type, flow.nesting, flow.places)
    right = made.flow(flow.type, flow.nesting, flow.places)
    put = {out.name: Put(channel=out.name, value=flow.value) for out in (left, right)}
    both = (put[right.name], put[left.name])
    rules = [
        _choice(
            Rule(name="both", body=(_count(),), takes=(flow.name,), puts=both, next="run"),
            _test(made, flow.value),
        ),
        _choice(
            Rule(
                name="one",
                body=(_count(),),
                takes=(flow.name,),
                puts=(put[left.name],),
                next="run",
            )
        ),
    ]
    run = _run(
        "run",
        (flow,),
        _choice(_end((flow,), (left, right)), flow.has(DONE)),
        _choice(rules, flow.has(VALUE)),
        _passed(flow, left, right),
    )
    made.machine((flow,), (left, right), (run,), (_register("count"),))
    return [left, right]


def _join(made: Builder, left: Flow, right: Flow) -> Flow:
    """Looks at the right side for some values of the left one only."""
    out = made.flow(left.type, left.nesting, left.places)
    a, b = (left.name,), (right.name,)
    cast = _converted(made, right.value, left.type)
    mixed = made.parts.value(left.type, [left.value, cast], 2)
    with_right = [
        _choice(
            Rule(
                name="both",
                takes=(*b, *a),
                puts=(Put(channel=out.name, value=mixed),),
                next="run",
            ),
            right.has(VALUE),
        ),
        _choice(
            Rule(
                name="alone", takes=a, puts=(Put(channel=out.name, value=left.value),), next="run"
            ),
            right.has(DONE),
        ),
        _choice(Rule(name="skip", body=(_count(),), takes=b, next="run")),
    ]
    only = Rule(
        name="left",
        body=(_count(),),
        takes=a,
        puts=(Put(channel=out.name, value=left.value),),
        next="run",
    )
    run = _run(
        "run",
        (left,),
        _choice(
            [
                _choice(with_right, apply(Op.NOT_EQUAL, _modulo(3), const(2)), needs=b),
                _choice(only),
            ],
            left.has(VALUE),
        ),
        _choice(Rule(name="over", takes=a, next="rest"), left.has(DONE)),
        _passed(left, out),
    )
    rest = _run(
        "rest",
        (right,),
        _choice(_end((right,), (out,)), right.has(DONE)),
        _choice(Rule(name="rest", takes=b, next="rest")),
    )
    made.machine((left, right), (out,), (run, rest), (_register("count"),))
    return out


def _converted(made: Builder, value: Expr, type: Type) -> Expr:
    """A value as another type; where lanes differ, a constant of it."""
    if value.type.lanes != type.lanes or value.type.is_float != type.is_float:
        return made.parts.constant(type)
    return Cast(value=value, type=type)


def _sort(made: Builder, flow: Flow) -> list[Flow]:
    """Combines values with equal keys, and puts them in order at each stop."""
    if flow.type.lanes > 1 or flow.type.is_float:
        return _change(made, flow)
    random, type = made.random, flow.type
    out = made.flow(type, flow.nesting, flow.places)
    keys = tuple(random.choice(KEYS) for _ in range(random.randint(1, 3)))
    memory = SortedMemory(name="points", keys=keys, type=type, operator=random.choice(TREES))
    sources = [apply(Op.MODULO, flow.value, const(n, type)) for n in (3, 4, 2)]
    add = MemoryAdd(
        memory="points",
        keys=tuple(
            Cast(value=source, type=key) for source, key in zip(sources, keys, strict=False)
        ),
        value=flow.value,
    )
    names = tuple(f"key{n}" for n in range(len(keys)))
    first = MemoryFirst(targets=names, value="total", memory="points")
    size = MemorySize(target="size", memory="points")
    found = [Cast(value=_local(n, key), type=type) for n, key in zip(names, keys, strict=True)]
    value = made.parts.value(type, [_local("total", type), *found], 2)
    take = _run(
        "run",
        (flow,),
        _choice(Rule(name="add", body=(add,), takes=(flow.name,), next="run"), flow.has(VALUE)),
        _choice(Rule(name="skip", takes=(flow.name,), next="run"), flow.has(EMPTY)),
        _choice(
            Rule(name="full", body=(_write("stop", flow.tag),), takes=(flow.name,), next="drain")
        ),
    )
    drain = Rule(
        name="drain",
        body=(MemoryDrop(memory="points"),),
        puts=(Put(channel=out.name, value=value),),
        next="drain",
    )
    stop = Rule(name="stop", puts=(Put(channel=out.name, tag=_local("stop")),), next="run")
    choices = [
        _choice(drain, apply(Op.GREATER, _local("size"), const(0))),
        _choice(stop, apply(Op.NOT_EQUAL, _local("stop"), const(DONE))),
        _choice(_end((), (out,))),
    ]
    draining = _run("drain", (), _choice(choices, body=(size, first)))
    made.machine((flow,), (out,), (take, draining), (_register("stop"),), (memory,))
    return [out]


def _lookup(made: Builder, flow: Flow) -> list[Flow]:
    """The place of a value in a sorted list."""
    if flow.type.lanes > 1 or flow.type.is_float:
        return _change(made, flow)
    random, count = made.random, made.random.randint(1, 6)
    generator = np.random.default_rng(random.randrange(1 << 30))
    key, position = random.choice(KEYS), random.choice([INT32, Int(64), UInt(32)])
    sorted_list = np.sort(generator.integers(0, 9, count))
    table = made.tensor(key, TensorRole.INPUT, sorted_list, open=random.random() < 0.5)
    out = made.flow(flow.type, flow.nesting, flow.places)
    search = Search(
        target="found",
        tensor=table,
        begin=Cast(value=_modulo(count + 1), type=position),
        end=const(random.randint(0, count), position),
        value=Cast(value=flow.value, type=key),
    )
    found = Cast(value=_local("found", position), type=flow.type)
    seen = Rule(
        name="seen",
        body=(_count(),),
        takes=(flow.name,),
        puts=(Put(channel=out.name, value=found),),
        next="run",
    )
    run = _run(
        "run",
        (flow,),
        _choice([_choice(seen)], flow.has(VALUE), body=(search,)),
        _choice(_end((flow,), (out,)), flow.has(DONE)),
        _passed(flow, out),
    )
    made.machine((flow,), (out,), (run,), (_register("count"),))
    return [out]


def _scratch(made: Builder, flow: Flow) -> list[Flow]:
    """What has been stored some values ago, from a tensor of the machine's own."""
    type, random = flow.type, made.random
    tensor = made.tensor(type, TensorRole.OUTPUT, open=True)
    out = made.flow(type, flow.nesting, 1)
    size, width = random.randint(1, 4), const(type.lanes)
    at = apply(Op.MULTIPLY, _modulo(size), width)
    load = Load(target="old", tensor=tensor, indices=(at,), type=type)
    store = Store(tensor=tensor, indices=(_plus(at, random.randint(0, 1)),), value=flow.value)
    swap = Rule(
        name="swap",
        body=(load, store, _count()),
        takes=(flow.name,),
        puts=(Put(channel=out.name, value=_local("old", type)),),
        next="run",
    )
    run = _run(
        "run",
        (flow,),
        _choice(swap, flow.has(VALUE)),
        _choice(_end((flow,), (out,)), flow.has(DONE)),
        _passed(flow, out),
    )
    made.machine((flow,), (out,), (run,), (_register("count"),))
    return [out]


def _gather(made: Builder, flow: Flow) -> Flow:
    """All streams of machines side by side in one: each adds its own to that of the one before."""
    last = const(flow.places - 1)
    chain = made.flow(flow.type, flow.nesting, flow.places)
    out = made.flow(flow.type, flow.nesting, flow.places)
    made.chains.add(chain.name)
    ends = apply(Op.EQUAL, P, last)

    def onward(name: str, taken: Flow, after: str) -> list[Choice]:
        """Pass a token on: to the outside from the last machine, to the next one else."""
        return [
            _choice(
                Rule(
                    name=f"{name} {'out' if to is out else 'on'}",
                    takes=(taken.name,),
                    puts=(Put(channel=to.name, value=taken.value, tag=taken.tag),),
                    next=after,
                ),
                ends if to is out else None,
            )
            for to in (out, chain)
        ]

    def finish(name: str, taken: Flow) -> list[Choice]:
        return [
            _choice(
                Rule(
                    name=f"{name} {to.name}",
                    takes=(taken.name,),
                    puts=(Put(channel=to.name, tag=const(DONE)),),
                ),
                ends if to is out else None,
            )
            for to in (out, chain)
        ]

    alone = apply(Op.EQUAL, P, const(0))
    own = _run(
        "run",
        (flow,),
        _choice(finish("only", flow), conjunction(flow.has(DONE), alone)),
        _choice(Rule(name="turn", takes=(flow.name,), next="others"), flow.has(DONE)),
        _choice(onward("own", flow, "run")),
    )
    others = _run(
        "others",
        (chain,),
        _choice(finish("last", chain), chain.has(DONE)),
        _choice(onward("other", chain, "others")),
    )
    made.ends[chain.name] = (f"n{len(made.nodes)}", "")
    made.machine((flow, chain), (chain, out), (own, others))
    name = made.ends[chain.name][0] or made.nodes[-1].name
    made.ends[chain.name] = (name, name)
    return out


def _sink(made: Builder, flow: Flow) -> None:
    """Stores values and tags."""
    Y = made.tensor(flow.type, TensorRole.OUTPUT, open=True)
    T = made.tensor(INT32, TensorRole.OUTPUT, open=True)
    at = _local("count")
    wide = apply(Op.MULTIPLY, at, const(flow.type.lanes))
    body = (
        Store(tensor=Y, indices=(wide,), value=flow.value),
        Store(tensor=T, indices=(at,), value=flow.tag),
        _count(),
    )
    run = _run(
        "run",
        (flow,),
        _choice(_end((flow,), ()), flow.has(DONE)),
        _choice(Rule(name="keep", body=body, takes=(flow.name,), next="run")),
    )
    made.machine((_single(flow),), (), (run,), (_register("count"),))


def _single(flow: Flow) -> Flow:
    """The stream as one machine takes it."""
    return Flow(flow.name, flow.type, flow.nesting, 1)


def _to_array(made: Builder, flow: Flow) -> None:
    """A fixed number of values goes on to a PE, which changes and stores them."""
    type, count = flow.type, made.random.randint(1, 5)
    out = made.flow(type, 0, 1)
    more = apply(Op.LESS, _local("count"), const(count))

    def fill(name: str, after: str, value: Expr, *takes: str) -> Rule:
        puts = (Put(channel=out.name, value=value),)
        return Rule(name=name, body=(_count(),), takes=takes, puts=puts, next=after)

    run = _run(
        "run",
        (flow,),
        _choice(Rule(name="over", takes=(flow.name,), next="fill"), flow.has(DONE)),
        _choice(fill("value", "run", flow.value, flow.name), conjunction(flow.has(VALUE), more)),
        _choice(Rule(name="drop", takes=(flow.name,), next="run")),
    )
    filling = _run(
        "fill",
        (),
        _choice(fill("fill", "fill", made.parts.constant(type)), more),
        _choice(Rule(name="end")),
    )
    made.machine((_single(flow),), (out,), (run, filling), (_register("count"),))
    shape = np.zeros(count * type.lanes)
    Y = made.tensor(type, TensorRole.OUTPUT, shape, board=True)
    made.inputs.pop(Y)
    n = Index(name="n")
    value = made.parts.value(type, [_local("value", type)], 2)
    name = f"n{len(made.nodes)}"
    where = apply(Op.MULTIPLY, n, const(type.lanes))
    made.nodes.append(
        PEArray(
            name=name,
            role=Role.STORE,
            space=(),
            loops=(Loop(name="n", minimum=const(0), extent=const(count)),),
            body=(
                Receive(target="value", channel=out.name, type=type),
                Store(tensor=Y, indices=(where,), value=value),
            ),
        )
    )
    made.ends[out.name] = (made.ends[out.name][0], name)
