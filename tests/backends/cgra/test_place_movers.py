"""Rings and virtual buffers that are longer than a channel of the fabric can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import t2s
from t2s.backends.cgra_tia.fabric import FABRICS
from t2s.backends.cgra_tia.lower import lower_to_netlist
from t2s.backends.cgra_tia.machine.extended import run_placed
from t2s.backends.cgra_tia.netlist import Netlist
from t2s.backends.cgra_tia.place import place_netlist
from t2s.backends.cgra_tia.place.movers import with_movers
from t2s.backends.cgra_tia.place.slack import rate_limit
from tests.backends.cgra.designs import gemm


def _netlist() -> Netlist:
    """Sixteen sums go round through two FMAs, four elements of A and of B in their buffers."""
    return lower_to_netlist(t2s.lower(gemm(1, 1, 2, 4, 4, 3, buffered=True)))


@pytest.mark.parametrize("depth", [3, 5, 16, 17])
def test_what_does_not_fit_is_in_pieces(depth: int) -> None:
    fabric = replace(FABRICS["cgra8"], name=f"depth{depth}", most_depth=depth)
    netlist = _netlist()
    longer = with_movers(netlist, fabric)
    sinks = [sink for net in longer.nets for sink in net.sinks]
    assert max(sink.tokens for sink in sinks) <= depth
    assert len(longer.cells) - len(netlist.cells) == sum(
        -(-sink.tokens // depth) - 1 for net in netlist.nets for sink in net.sinks
    )
    asked = sum(sink.tokens for net in netlist.nets for sink in net.sinks)
    assert sum(sink.tokens for sink in sinks) >= asked
    assert with_movers(longer, fabric) is longer


@pytest.mark.filterwarnings("ignore::t2s.T2SWarning")
@pytest.mark.parametrize("depth", [3, 5, 17])
def test_values_are_those_of_deep_channels(depth: int) -> None:
    fabric = replace(FABRICS["cgra8"], name=f"depth{depth}", most_depth=depth)
    a, b = (np.arange(24.0).reshape(shape) % 5 - 2 for shape in ((4, 6), (6, 4)))
    design = place_netlist(_netlist(), fabric, moves=0)
    found = run_placed(design, {"A": a, "B": b})
    np.testing.assert_array_equal(found.outputs["C"], a @ b)
    limit = rate_limit(design)
    assert limit is None or limit.tokens > depth  # all that go round count, not those of a piece
