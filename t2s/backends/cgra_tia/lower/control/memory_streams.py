"""Memory as streams: loads and stores of flat blocks become addresses that are sent to units.

A value that is loaded only to be sent is replaced by its address, and an ``ldx`` unit behind the
output loads it (``FlatBlock.loaded``).  An element that is loaded for each value of a head, at that
value plus a constant, is loaded by a unit before the block and arrives as a head of its own, beside
the other head or in its place.  For all other loads the block sends a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.lower.control import flat_blocks as flat
from t2s.core.expr import Apply, Cast, Expr, Local
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term, rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedHead:
    """A head that a unit loads: elements of ``tensor`` at ``stream`` plus ``offset``."""

    channel: str
    stream: str
    tensor: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLoad:
    """A load by request: the channels to the unit and back."""

    asks: str
    answers: str
    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStreams:
    """The channels from a block to the unit that stores for it."""

    addresses: str
    values: str
    tensor: str


@dataclass(frozen=True, kw_only=True)
class StreamedBlock:
    """A block without memory accesses, and the units that have to be connected to it."""

    block: flat.FlatBlock
    heads: tuple[LoadedHead, ...]
    asked: tuple[AskedLoad, ...]
    stores: tuple[StoreStreams, ...]


def with_streams(block: flat.FlatBlock, types: Mapping[str, Type]) -> StreamedBlock:
    """A block with streams in place of loads and stores; ``types`` are those of tensor elements."""
    block = _loaded_outputs(block)
    block, heads = _loaded_heads(block)
    block, asked = _asked(block)
    block, stores = _stored(block, types)
    return StreamedBlock(block=block, heads=heads, asked=asked, stores=stores)


def _mapped(block: flat.FlatBlock, change: Callable[[flat.Tree], flat.Tree]) -> flat.FlatBlock:
    trees = {state: flat.changed(tree, change) for state, tree in block.trees.items()}
    return replace(block, trees=trees)


def _loads(block: flat.FlatBlock) -> dict[str, flat.Fetch]:
    """The fetches of a block, by the local that they bind."""
    return {part.target: part for part in flat.all_parts(block) if isinstance(part, flat.Fetch)}


# ------------------------------------------------------------------------------------ outputs


def _loaded_outputs(block: flat.FlatBlock) -> flat.FlatBlock:
    """Outputs whose values are all elements of one tensor, loaded only to be put there."""
    fetches = _loads(block)
    tensors: dict[str, set[str | None]] = {}
    for part in flat.all_parts(block):
        for put in part.puts if isinstance(part, flat.Firing) else ():
            if put.tag != flat.VALUE_TAG:
                continue
            known = fetches.get(put.value.name) if isinstance(put.value, Local) else None
            tensors.setdefault(put.channel, set()).add(None if known is None else known.tensor)
    loaded = {
        channel: tensor
        for channel, found in tensors.items()
        if len(found) == 1 and (tensor := next(iter(found))) is not None
    }

    def addressed(part: flat.Tree) -> flat.Tree:
        if not isinstance(part, flat.Firing):
            return part
        puts = tuple(
            replace(put, value=fetches[put.value.name].index)
            if put.channel in loaded and isinstance(put.value, Local) and put.tag == flat.VALUE_TAG
            else put
            for put in part.puts
        )
        return replace(part, puts=puts)

    found = replace(_mapped(block, addressed), loaded=loaded)
    return _without_unused(found)


def _used_locals(block: flat.FlatBlock) -> set[str]:
    expressions = (expr for part in flat.all_parts(block) for expr in flat.expressions_of(part))
    return set[str]().union(*map(flat.local_names, expressions))


def _without_unused(block: flat.FlatBlock) -> flat.FlatBlock:
    """The block without fetches whose result is unused."""
    used = _used_locals(block)
    return _mapped(
        block,
        lambda part: (
            part.then if isinstance(part, flat.Fetch) and part.target not in used else part
        ),
    )


# -------------------------------------------------------------------------------------- heads


def _loaded_heads(block: flat.FlatBlock) -> tuple[flat.FlatBlock, tuple[LoadedHead, ...]]:
    """Heads for which the same elements are loaded with every value that is taken."""
    loaded: list[LoadedHead] = []
    for channel in list(block.heads):
        name = block.values[channel]
        common = _common(block, channel, name)
        if not common:
            continue
        places = {
            place: f"{block.name}.{channel}.{place[0]}.{place[1]}" for place in sorted(common)
        }
        locals_ = {place: f"{name}.{place[0]}.{place[1]}" for place in places}
        replaced: dict[str, Expr] = {}
        types: dict[tuple[str, int], Type] = {}
        for fetch in _loads(block).values():
            place = _place(fetch, name)
            if place in places:
                types[place] = fetch.type
                replaced[fetch.target] = Local(name=locals_[place], type=fetch.type)
        block = _with_locals(block, replaced)
        keep = name in _used_locals(block)
        block = _beside(block, channel, tuple(places.values()), keep=keep)
        for place, head in places.items():
            block.heads[head], block.values[head] = types[place], locals_[place]
            loaded.append(
                LoadedHead(channel=head, stream=channel, tensor=place[0], offset=place[1])
            )
    return block, tuple(loaded)


def _place(fetch: flat.Fetch, name: str) -> tuple[str, int]:
    """The tensor and the offset, if the address is the value of a head plus a constant."""
    match _plain(fetch.index):
        case Local(name=found) if found == name:
            return fetch.tensor, 0
        case Apply(operator=Op.ADD, operands=(left, right)):
            by = flat.number_of(right)
            inner = _plain(left)
            if by is not None and isinstance(inner, Local) and inner.name == name:
                return fetch.tensor, by
    return "", 0


def _plain(expr: Expr) -> Expr:
    while isinstance(expr, Cast) and expr.type.is_integer and expr.value.type.is_integer:
        expr = expr.value
    return expr


def _common(block: flat.FlatBlock, channel: str, name: str) -> set[tuple[str, int]]:
    """What is loaded on every path to a firing that takes a value from a head."""
    sets: list[set[tuple[str, int]]] = []

    def visit(tree: flat.Tree, value: bool, loads: frozenset[tuple[str, int]]) -> None:
        match tree:
            case flat.HeadWait(heads=heads, cases=cases):
                for tags, below in cases:
                    own = dict(zip(heads, tags, strict=True)).get(channel)
                    visit(below, value if own is None else own == flat.VALUE_TAG, loads)
            case flat.ValueTest(yes=yes, no=no):
                visit(yes, value, loads)
                visit(no, value, loads)
            case flat.Fetch(then=then):
                visit(then, value, loads | {_place(tree, name)})
            case flat.Ask(then=then):
                visit(then, value, loads)
            case flat.Firing(takes=takes) if value and channel in takes:
                sets.append({place for place in loads if place[0]})

    for tree in block.trees.values():
        visit(tree, False, frozenset())
    return set[tuple[str, int]]().union(*sets[:1]).intersection(*sets)


def _with_locals(block: flat.FlatBlock, replaced: Mapping[str, Expr]) -> flat.FlatBlock:
    """The block without some fetches, and with expressions in place of their results."""

    def rule(node: Term) -> Term | None:
        return replaced.get(node.name) if isinstance(node, Local) else None

    trees = {
        state: flat.with_expressions(tree, lambda e: rewrite(e, rule))
        for state, tree in block.trees.items()
    }
    return _mapped(
        replace(block, trees=trees),
        lambda part: (
            part.then if isinstance(part, flat.Fetch) and part.target in replaced else part
        ),
    )


def _beside(
    block: flat.FlatBlock, channel: str, more: tuple[str, ...], *, keep: bool
) -> flat.FlatBlock:
    """The block with more heads beside one, or in its place; their tags are the same."""
    group = (channel, *more) if keep else more

    def one(part: flat.Tree) -> flat.Tree:
        match part:
            case flat.Firing(takes=takes) if channel in takes:
                remaining = tuple(name for name in takes if name != channel)
                return replace(part, takes=(*remaining, *group))
            case flat.HeadWait(heads=heads, cases=cases) if channel in heads:
                at = heads.index(channel)
                wider = (*heads[:at], *group, *heads[at + 1 :])
                return flat.HeadWait(
                    heads=wider,
                    cases=tuple(
                        ((*tags[:at], *(tags[at],) * len(group), *tags[at + 1 :]), below)
                        for tags, below in cases
                    ),
                )
        return part

    result = _mapped(block, one)
    heads, values = dict(result.heads), dict(result.values)
    if not keep:
        del heads[channel], values[channel]
    return replace(result, heads=heads, values=values)


# ------------------------------------------------------------------------------ asking, storing


def _asked(block: flat.FlatBlock) -> tuple[flat.FlatBlock, tuple[AskedLoad, ...]]:
    """Loads by request: a unit for each tensor and each of its loads on one path."""
    requests: dict[tuple[str, int], AskedLoad] = {}
    heads, values, outputs = dict(block.heads), dict(block.values), dict(block.outputs)

    def visit(tree: flat.Tree, before: tuple[str, ...], answers: tuple[str, ...]) -> flat.Tree:
        match tree:
            case flat.Fetch(target=target, type=type, tensor=tensor, index=index, then=then):
                place = (tensor, before.count(tensor))
                name = f"{block.name}.{tensor}.{place[1]}"
                asked = AskedLoad(asks=f"{name}.asks", answers=f"{name}.answers", tensor=tensor)
                requests.setdefault(place, asked)
                heads[asked.answers], outputs[asked.asks] = type, index.type
                values[asked.answers] = asked.answers
                answer = Local(name=asked.answers, type=type)

                def rule(node: Term) -> Term | None:
                    return answer if isinstance(node, Local) and node.name == target else None

                below = flat.with_expressions(then, lambda e: rewrite(e, rule))
                below = visit(below, (*before, tensor), (*answers, asked.answers))
                return flat.Ask(asks=asked.asks, answers=asked.answers, index=index, then=below)
            case flat.HeadWait(heads=waits, cases=cases):
                return flat.HeadWait(
                    heads=waits,
                    cases=tuple((tags, visit(below, before, answers)) for tags, below in cases),
                )
            case flat.ValueTest(condition=condition, yes=yes, no=no):
                return flat.ValueTest(
                    condition=condition,
                    yes=visit(yes, before, answers),
                    no=visit(no, before, answers),
                )
            case flat.Firing(takes=takes):
                return replace(tree, takes=(*takes, *answers))
        return tree

    trees = {state: visit(tree, (), ()) for state, tree in block.trees.items()}
    result = replace(block, trees=trees, heads=heads, values=values, outputs=outputs)
    return result, tuple(requests.values())


def _stored(
    block: flat.FlatBlock, types: Mapping[str, Type]
) -> tuple[flat.FlatBlock, tuple[StoreStreams, ...]]:
    """The block with stores as an address and a value, put into two channels."""
    stores: dict[str, StoreStreams] = {}
    outputs = dict(block.outputs)

    def one(part: flat.Tree) -> flat.Tree:
        if not isinstance(part, flat.Firing) or not part.stores:
            return part
        puts = list(part.puts)
        for store in part.stores:
            name = f"{block.name}.{store.tensor}"
            streams = stores.setdefault(
                store.tensor,
                StoreStreams(
                    addresses=f"{name}.address", values=f"{name}.value", tensor=store.tensor
                ),
            )
            outputs[streams.addresses] = store.index.type
            outputs[streams.values] = types[store.tensor]
            puts.append(flat.FlatPut(channel=streams.values, value=store.value, tag=flat.VALUE_TAG))
            puts.append(
                flat.FlatPut(channel=streams.addresses, value=store.index, tag=flat.VALUE_TAG)
            )
        return replace(part, puts=tuple(puts), stores=())

    result = _mapped(block, one)
    return replace(result, outputs=outputs), tuple(stores.values())
