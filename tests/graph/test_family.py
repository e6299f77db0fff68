"""Families of graphs: the graphs of other sizes, and none where numbers have no formula."""

from __future__ import annotations

import pytest

from t2s.core.expr import const
from t2s.graph.body import Role
from t2s.graph.build import GraphParts, index, loop, space
from t2s.graph.family import Parameters, family_of, structure_of
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray


def counted(n: int, m: int, capacity: int | None = None) -> Graph:
    """A node of 4 PEs that counts to ``n * m``, and whose condition ends at ``3 * n + 2``."""
    parts = GraphParts()
    parts.nodes.append(
        PEArray(
            name="pe",
            role=Role.COMPUTE,
            space=(space("p", 4),),
            loops=(loop("i", n * m),),
            active=index("i") < const(3 * n + 2),
            body=(),
        )
    )
    parts.link("c", index("i").type, "pe", "pe", shape=(4,), capacity=capacity or n + 2 * m)
    return parts.graph("counted", None)


def at(n: int, m: int) -> Parameters:
    return ((n,), (m,))


POINTS = [(2, 2), (2, 9), (3, 5), (5, 3), (7, 11), (30, 40)]


def test_a_family_gives_the_graphs_of_other_sizes() -> None:
    graphs = [(at(*point), counted(*point)) for point in POINTS]
    family = family_of(graphs[:4] + graphs[5:], graphs[4:5])
    assert family is not None
    assert len(family.formulas) == 3
    for n, m in [(4, 4), (29, 2), (3, 39), (30, 30)]:
        assert family.graph(at(n, m)) == counted(n, m)
    assert at(30, 40) in family
    assert at(31, 40) not in family
    assert at(1, 40) not in family


@pytest.mark.parametrize("wrong", [(7, 11), (3, 5)])
def test_no_family_where_a_graph_has_another_number(wrong: tuple[int, int]) -> None:
    """Whether the family would be fitted to that graph, or only has to give it."""
    graphs = [
        (at(*point), counted(*point, capacity=1 if point == wrong else None)) for point in POINTS
    ]
    assert family_of(graphs[:4], graphs[4:]) is None


def test_graphs_of_another_structure_are_no_family() -> None:
    graphs = [(at(*point), counted(*point)) for point in POINTS]
    other = GraphParts()
    other.nodes += [
        *counted(4, 4).nodes,
        PEArray(name="q", role=Role.COMPUTE, space=(), loops=(), body=()),
    ]
    other.channels += counted(4, 4).channels
    assert family_of([*graphs, (at(4, 4), other.graph("counted", None))], []) is None
    assert family_of(graphs, [(at(4, 4), other.graph("counted", None))]) is None


def test_numbers_are_apart_from_the_structure() -> None:
    structure, numbers = structure_of(counted(3, 5))
    assert structure == structure_of(counted(4, 7))[0]
    assert 15 in numbers
    assert 11 in numbers
