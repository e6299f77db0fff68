"""What the tests of ``verify_graph`` share: the check of a whole text, and the common hints."""

from __future__ import annotations

import pytest

from t2s.graph.graph import Graph
from t2s.graph.verify import GraphError, verify_graph

FRESH = "  hint:     take fresh names from a NameSupply"
SCOPE = (
    "  hint:     indices come from the node's own space and outer loops; locals are bound by an"
    " earlier statement"
)
STATIC = "  hint:     control never depends on data; select between values instead"
CAST = "  hint:     insert a Cast, or change the declared type"
DISTINCT = (
    "  expected: distinct names for space dimensions, loops, registers, locals and the graph's"
    " parameters"
)


def refuse(graph: Graph, *lines: str) -> None:
    """The graph is refused with exactly these lines."""
    with pytest.raises(GraphError) as caught:
        verify_graph(graph)
    assert str(caught.value).splitlines() == list(lines)
