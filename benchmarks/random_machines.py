"""Random graphs of machines for the referee, with inputs: streams with stops, and their end.

Sources put tokens with any tags; what follows takes streams apart and joins them, keeps registers,
register files and sorted memories, searches and looks up, and stores what comes out.  Several
machines side by side are gathered by a chain of machines; now and then a stream ends in an array of
PEs.  Types, lanes, expressions, depths and latencies are random, and so are the places of tensors.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from benchmarks.random_machine_parts import (
    Builder,
    Flow,
    P,
    choice,
    comparison,
    count_up,
    ended,
    local,
    mode,
    modulo,
    passed,
    register,
    write,
)
from benchmarks.random_parts import TREES, Parts
from t2s.core.expr import Cast, Expr, Index, conjunction, const, equals, unequal
from t2s.core.types import INT32, Int, Type, UInt
from t2s.graph.body import Let, Load, Receive, RegisterRead, Statement, Store
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.nodes import (
    DONE,
    EMPTY,
    VALUE,
    Choice,
    Loop,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    PEArray,
    Put,
    Role,
    Rule,
    Search,
    SortedMemory,
)

KEYS = (Int(8), Int(16), INT32, Int(64), UInt(8), UInt(32))


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


def endless(graph: Graph) -> Graph:
    """The graph with machines that begin again, for ever, where they ended.

    Sources, which wait for nobody, still end; so do machines whose first mode needs no token.
    """
    nodes = [
        replace(node, endless=True, modes=tuple(_again(mode, node) for mode in node.modes))
        if isinstance(node, Machine) and node.heads and node.modes[0].needs
        else node
        for node in graph.nodes
    ]
    return replace(graph, name=f"{graph.name}_endless", nodes=tuple(nodes))


def _again(mode: Mode, node: Machine) -> Mode:
    return replace(mode, choices=tuple(_begins(choice, node) for choice in mode.choices))


def _begins(choice: Choice, node: Machine) -> Choice:
    match choice.inside:
        case Rule(next=None) as rule:
            return replace(choice, inside=replace(rule, next=node.modes[0].name))
        case Rule():
            return choice
        case inner:
            return replace(choice, inside=tuple(_begins(one, node) for one in inner))


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
    at, row = local("count"), (P,) if places > 1 else ()
    wide = at * type.lanes
    value, tag = local("loaded", type), local("kind")
    body = (
        Load(target="kind", tensor=T, indices=(*row, at), type=INT32),
        Load(target="loaded", tensor=X, indices=(*row, wide), type=type),
    )
    more = Rule(
        name="more",
        body=(count_up(),),
        puts=(Put(channel=out.name, value=value, tag=tag),),
        next="run",
    )
    run = mode(
        "run",
        (),
        choice([choice(more)], at < count, body=body),
        choice(ended((), (out,))),
    )
    made.machine((), (out,), (run,), (register("count"),))
    return out


def _change(made: Builder, flow: Flow) -> list[Flow]:
    """Values are changed by what is kept of earlier ones, dropped or repeated."""
    type, size = flow.type, made.random.randint(1, 3)
    out = made.flow(type, flow.nesting, flow.places)
    kept, old = local("kept", type), local("old", type)
    new = made.parts.value(type, [flow.value, kept, old], 2)
    first: list[Statement] = [
        RegisterRead(target="old", register="file", indices=(modulo(size),), type=type),
        Let(target="new", value=new),
    ]
    writes: list[Statement] = [write("file", local("new", type), modulo(size)), count_up()]
    again = RegisterRead(target="again", register="file", indices=(const(0),), type=type)
    puts = (Put(channel=out.name, value=made.parts.value(type, [local("again", type), old], 1)),)
    taken = (flow.name,)
    rules = [
        choice(
            Rule(name="keep", body=(*writes, again), takes=taken, puts=puts, next="run"),
            comparison(made, flow.value, kept),
        ),
        choice(
            Rule(
                name="twice",
                body=(count_up(), write("kept", local("new", type))),
                puts=(Put(channel=out.name, value=local("new", type)),),
                next="run",
            ),
            equals(modulo(3), 1),
        ),
        choice(Rule(name="drop", body=(count_up(),), takes=taken, next="run")),
    ]
    run = mode(
        "run",
        (flow,),
        choice(rules, flow.has(VALUE), body=tuple(first)),
        choice(ended((flow,), (out,)), flow.has(DONE)),
        passed(flow, out),
    )
    registers = (register("count"), register("kept", type), register("file", type, size))
    made.machine((flow,), (out,), (run,), registers)
    return [out]


def _fork(made: Builder, flow: Flow) -> list[Flow]:
    """Values go one way, or both."""
    left = made.flow(flow.type, flow.nesting, flow.places)
    right = made.flow(flow.type, flow.nesting, flow.places)
    put = {out.name: Put(channel=out.name, value=flow.value) for out in (left, right)}
    both = (put[right.name], put[left.name])
    rules = [
        choice(
            Rule(name="both", body=(count_up(),), takes=(flow.name,), puts=both, next="run"),
            comparison(made, flow.value),
        ),
        choice(
            Rule(
                name="one",
                body=(count_up(),),
                takes=(flow.name,),
                puts=(put[left.name],),
                next="run",
            )
        ),
    ]
    run = mode(
        "run",
        (flow,),
        choice(ended((flow,), (left, right)), flow.has(DONE)),
        choice(rules, flow.has(VALUE)),
        passed(flow, left, right),
    )
    made.machine((flow,), (left, right), (run,), (register("count"),))
    return [left, right]


def _join(made: Builder, left: Flow, right: Flow) -> Flow:
    """Looks at the right side for some values of the left one only."""
    out = made.flow(left.type, left.nesting, left.places)
    a, b = (left.name,), (right.name,)
    cast = _converted(made, right.value, left.type)
    mixed = made.parts.value(left.type, [left.value, cast], 2)
    with_right = [
        choice(
            Rule(
                name="both",
                takes=(*b, *a),
                puts=(Put(channel=out.name, value=mixed),),
                next="run",
            ),
            right.has(VALUE),
        ),
        choice(
            Rule(
                name="alone", takes=a, puts=(Put(channel=out.name, value=left.value),), next="run"
            ),
            right.has(DONE),
        ),
        choice(Rule(name="skip", body=(count_up(),), takes=b, next="run")),
    ]
    only = Rule(
        name="left",
        body=(count_up(),),
        takes=a,
        puts=(Put(channel=out.name, value=left.value),),
        next="run",
    )
    run = mode(
        "run",
        (left,),
        choice(
            [
                choice(with_right, unequal(modulo(3), 2), needs=b),
                choice(only),
            ],
            left.has(VALUE),
        ),
        choice(Rule(name="over", takes=a, next="rest"), left.has(DONE)),
        passed(left, out),
    )
    rest = mode(
        "rest",
        (right,),
        choice(ended((right,), (out,)), right.has(DONE)),
        choice(Rule(name="rest", takes=b, next="rest")),
    )
    made.machine((left, right), (out,), (run, rest), (register("count"),))
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
    sources = [flow.value % const(n, type) for n in (3, 4, 2)]
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
    found = [Cast(value=local(n, key), type=type) for n, key in zip(names, keys, strict=True)]
    value = made.parts.value(type, [local("total", type), *found], 2)
    take = mode(
        "run",
        (flow,),
        choice(Rule(name="add", body=(add,), takes=(flow.name,), next="run"), flow.has(VALUE)),
        choice(Rule(name="skip", takes=(flow.name,), next="run"), flow.has(EMPTY)),
        choice(
            Rule(name="full", body=(write("stop", flow.tag),), takes=(flow.name,), next="drain")
        ),
    )
    drain = Rule(
        name="drain",
        body=(MemoryDrop(memory="points"),),
        puts=(Put(channel=out.name, value=value),),
        next="drain",
    )
    stop = Rule(name="stop", puts=(Put(channel=out.name, tag=local("stop")),), next="run")
    choices = [
        choice(drain, local("size") > 0),
        choice(stop, unequal(local("stop"), DONE)),
        choice(ended((), (out,))),
    ]
    draining = mode("drain", (), choice(choices, body=(size, first)))
    made.machine((flow,), (out,), (take, draining), (register("stop"),), (memory,))
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
        begin=Cast(value=modulo(count + 1), type=position),
        end=const(random.randint(0, count), position),
        value=Cast(value=flow.value, type=key),
    )
    found = Cast(value=local("found", position), type=flow.type)
    seen = Rule(
        name="seen",
        body=(count_up(),),
        takes=(flow.name,),
        puts=(Put(channel=out.name, value=found),),
        next="run",
    )
    run = mode(
        "run",
        (flow,),
        choice([choice(seen)], flow.has(VALUE), body=(search,)),
        choice(ended((flow,), (out,)), flow.has(DONE)),
        passed(flow, out),
    )
    made.machine((flow,), (out,), (run,), (register("count"),))
    return [out]


def _scratch(made: Builder, flow: Flow) -> list[Flow]:
    """What has been stored some values ago, from a tensor of the machine's own."""
    type, random = flow.type, made.random
    tensor = made.tensor(type, TensorRole.OUTPUT, open=True)
    out = made.flow(type, flow.nesting, 1)
    size, width = random.randint(1, 4), const(type.lanes)
    at = modulo(size) * width
    load = Load(target="old", tensor=tensor, indices=(at,), type=type)
    store = Store(tensor=tensor, indices=(at + random.randint(0, 1),), value=flow.value)
    swap = Rule(
        name="swap",
        body=(load, store, count_up()),
        takes=(flow.name,),
        puts=(Put(channel=out.name, value=local("old", type)),),
        next="run",
    )
    run = mode(
        "run",
        (flow,),
        choice(swap, flow.has(VALUE)),
        choice(ended((flow,), (out,)), flow.has(DONE)),
        passed(flow, out),
    )
    made.machine((flow,), (out,), (run,), (register("count"),))
    return [out]


def _gather(made: Builder, flow: Flow) -> Flow:
    """All streams of machines side by side in one: each adds its own to that of the one before."""
    last = const(flow.places - 1)
    chain = made.flow(flow.type, flow.nesting, flow.places)
    out = made.flow(flow.type, flow.nesting, flow.places)
    made.chains.add(chain.name)
    ends = equals(P, last)

    def onward(name: str, taken: Flow, after: str) -> list[Choice]:
        """Pass a token on: to the outside from the last machine, to the next one else."""
        return [
            choice(
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
            choice(
                Rule(
                    name=f"{name} {to.name}",
                    takes=(taken.name,),
                    puts=(Put(channel=to.name, tag=const(DONE)),),
                ),
                ends if to is out else None,
            )
            for to in (out, chain)
        ]

    alone = equals(P, 0)
    own = mode(
        "run",
        (flow,),
        choice(finish("only", flow), conjunction(flow.has(DONE), alone)),
        choice(Rule(name="turn", takes=(flow.name,), next="others"), flow.has(DONE)),
        choice(onward("own", flow, "run")),
    )
    others = mode(
        "others",
        (chain,),
        choice(finish("last", chain), chain.has(DONE)),
        choice(onward("other", chain, "others")),
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
    at = local("count")
    wide = at * flow.type.lanes
    body = (
        Store(tensor=Y, indices=(wide,), value=flow.value),
        Store(tensor=T, indices=(at,), value=flow.tag),
        count_up(),
    )
    run = mode(
        "run",
        (flow,),
        choice(ended((flow,), ()), flow.has(DONE)),
        choice(Rule(name="keep", body=body, takes=(flow.name,), next="run")),
    )
    made.machine((_single(flow),), (), (run,), (register("count"),))


def _single(flow: Flow) -> Flow:
    """The stream as one machine takes it."""
    return Flow(flow.name, flow.type, flow.nesting, 1)


def _to_array(made: Builder, flow: Flow) -> None:
    """A fixed number of values goes on to a PE, which changes and stores them."""
    type, count = flow.type, made.random.randint(1, 5)
    out = made.flow(type, 0, 1)
    more = local("count") < count

    def fill(name: str, after: str, value: Expr, *takes: str) -> Rule:
        puts = (Put(channel=out.name, value=value),)
        return Rule(name=name, body=(count_up(),), takes=takes, puts=puts, next=after)

    run = mode(
        "run",
        (flow,),
        choice(Rule(name="over", takes=(flow.name,), next="fill"), flow.has(DONE)),
        choice(fill("value", "run", flow.value, flow.name), conjunction(flow.has(VALUE), more)),
        choice(Rule(name="drop", takes=(flow.name,), next="run")),
    )
    filling = mode(
        "fill",
        (),
        choice(fill("fill", "fill", made.parts.constant(type)), more),
        choice(Rule(name="end")),
    )
    made.machine((_single(flow),), (out,), (run, filling), (register("count"),))
    shape = np.zeros(count * type.lanes)
    Y = made.tensor(type, TensorRole.OUTPUT, shape, board=True)
    made.inputs.pop(Y)
    n = Index(name="n")
    value = made.parts.value(type, [local("value", type)], 2)
    name = f"n{len(made.nodes)}"
    where = n * type.lanes
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
