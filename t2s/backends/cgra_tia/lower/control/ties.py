"""Heads that come and go with another one: references beside coordinates.

Where a block puts two streams in the same rules, with one tag or with a value beside an empty
token, and another block takes them in the same rules, then the tag of one says that of the other,
but for whether it is empty.  A cell that needs no value of such a head need not see it: it is taken
by the cell that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.lower.control.flat import (
    EMPTY_TAG,
    VALUE_TAG,
    Firing,
    FlatBlock,
    HeadWait,
    Tree,
    all_parts,
    changed,
    expressions_of,
    firings_of,
)
from t2s.core.expr import Expr, Local
from t2s.core.walk import walk
from t2s.graph.graph import Graph
from t2s.graph.machine import Machine


def ties_of(graph: Graph, machine: Machine, blocks: Mapping[str, FlatBlock]) -> dict[str, str]:
    """For heads of a machine those that they are tied to, by what is known of their sources."""
    found: dict[str, str] = {}
    takes = [path.rule.takes for path in machine.paths()]
    leaders: list[str] = []
    for head in (one.channel for one in machine.heads):
        channel = graph.channel(head)
        if channel.stream.values_under_tags:
            continue
        source = blocks.get(channel.source)
        firings = [] if source is None else firings_of(source)
        for leader in leaders:
            same = graph.channel(leader).source == channel.source
            together = all((head in own) == (leader in own) for own in takes)
            if same and together and all(_alike(firing, leader, head) for firing in firings):
                found[head] = leader
                break
        else:
            leaders.append(head)
    return found


def _alike(firing: Firing, leader: str, head: str) -> bool:
    """Whether a firing puts both, with tags that go together, or none."""
    one, other = (
        [put.tag for put in firing.puts if put.channel == name] for name in (leader, head)
    )
    return one == other or (one, other) == ([VALUE_TAG], [EMPTY_TAG])


def without_ties(block: FlatBlock) -> FlatBlock:
    """The block without tied heads of which it needs nothing."""
    for tied in block.ties:
        value = block.values.get(tied)
        expressions = [e for part in all_parts(block) for e in expressions_of(part)]
        if value is None or any(_reads(expr, value) for expr in expressions):
            continue
        trees = {state: changed(tree, _Untied(tied)) for state, tree in block.trees.items()}
        narrow = replace(
            block,
            trees=trees,
            heads={name: type for name, type in block.heads.items() if name != tied},
            values={name: own for name, own in block.values.items() if name != tied},
        )
        waits = (part.heads for part in all_parts(narrow) if isinstance(part, HeadWait))
        if not any(tied in heads for heads in waits):
            block = narrow
    return block


def _reads(expr: Expr, name: str) -> bool:
    return any(isinstance(part, Local) and part.name == name for part in walk(expr))


@dataclass(frozen=True, slots=True)
class _Untied:
    """Takes a head out of a part of a tree, if its tags choose nothing."""

    head: str

    def __call__(self, part: Tree) -> Tree:
        match part:
            case Firing(takes=takes):
                return replace(part, takes=tuple(name for name in takes if name != self.head))
            case HeadWait(heads=heads, cases=cases) if self.head in heads:
                at = heads.index(self.head)
                narrow = [((*tags[:at], *tags[at + 1 :]), below) for tags, below in cases]
                left = dict(narrow)
                if any(left[tags] != below for tags, below in narrow):
                    return part
                others = (*heads[:at], *heads[at + 1 :])
                return HeadWait(heads=others, cases=tuple(left.items())) if others else left[()]
        return part
