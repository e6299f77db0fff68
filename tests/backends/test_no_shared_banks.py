"""Backends without a form for banks that machines share say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

import t2s
from t2s.backends.cgra_tia.lower import unsupported
from t2s.backends.cgra_tia.lower.control.refusals import check_memory
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered
from t2s.backends.kernels.design import check_vocabulary
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.backends.verilog.counted_nests import nests_of
from t2s.core.errors import UnsupportedError
from t2s.graph.graph import Graph, MemorySpace
from tests.backends.cgra import refused_designs
from tests.graph.gathers import Gathering
from tests.graph.machines import copying

GRAPH = Gathering().graph
BANKED = replace(
    GRAPH,
    tensors=tuple(
        replace(tensor, place=MemorySpace.SHARED) if tensor.name == "x" else tensor
        for tensor in GRAPH.tensors
    ),
)


def test_opencl() -> None:
    problems = [(problem.subject, problem.why) for problem in check_vocabulary(OPENCL, BANKED)]
    assert ("tensor 'x'", "banks that machines share are not supported in OpenCL") in problems


def test_verilog() -> None:
    problems = nests_of(BANKED)
    assert isinstance(problems, list)
    assert ("tensor 'x'", "banks that machines share are not supported in SystemVerilog") in [
        (problem.subject, problem.why) for problem in problems
    ]


def shared() -> Graph:
    """A design for the CGRA whose input is in banks, which no PE array reaches."""
    made = refused_designs.on_the_chip()
    x, y = made.tensors
    return replace(made, tensors=(replace(x, place=MemorySpace.SHARED), y))


def test_cells() -> None:
    first = unsupported(shared())[0]
    assert first.why == "'x' is an array in shared banks, and cells have none"


def test_blocks_of_cells() -> None:
    with pytest.raises(NotLowered) as caught:
        check_memory(BANKED.machines[0], BANKED)
    assert "'x' is in shared banks, and cells have none: give it MemorySpace.MEMORY" in str(
        caught.value
    )


def test_resources() -> None:
    graph = copying(place=MemorySpace.CHIP)
    closed = replace(graph.tensors[0], open=False, shape=(4,), place=MemorySpace.SHARED)
    with pytest.raises(UnsupportedError, match="'x', which is in shared banks"):
        t2s.resources(replace(graph, tensors=(closed, graph.tensors[1])), device="arria10")
