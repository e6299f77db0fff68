"""Mistakes in asking for resources."""

from __future__ import annotations

from dataclasses import replace

import t2s
from t2s.core.errors import UnsupportedError
from t2s.core.location import user_location
from t2s.graph.graph import MemorySpace
from tests.errors.designs import product
from tests.errors.refusal import refused
from tests.graph.machines import copying


def test_a_device_without_blocks() -> None:
    C = product().C
    with refused("""
            the device ideal has no DSP and RAM blocks to count
              --> t2s.resources(C, device="ideal")
              expected: one of arria10, stratix10, alveo_u55c, aup_zu3, ecp5-25k, ecp5-45k,
                        ecp5-85k, gw2a-18, ccgm1a1, xc7a35t, xc7a100t, or a Device with a
                        fabric
              given:    ideal
            """):
        t2s.resources(C, device="ideal")


def test_a_machine_with_a_memory_that_depends_on_data() -> None:
    graph = copying(place=MemorySpace.CHIP)
    source, sink = graph.nodes
    here = replace(source, location=user_location())
    with refused(
        """
            the blocks of 'source' cannot be estimated
              --> here = replace(source, location=user_location())
              expected: memories on the chip whose sizes do not depend on data
              given:    'x', which is on the chip
            """,
        UnsupportedError,
    ):
        t2s.resources(replace(graph, nodes=(here, sink)))
