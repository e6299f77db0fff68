"""Backends without a form for gathers say so."""

from __future__ import annotations

import pytest

from t2s.backends.cgra_tia.lower.control.refusals import BlockRefusals
from t2s.backends.cgra_tia.lower.not_lowered import NotLowered
from t2s.backends.kernels.design import check_vocabulary
from t2s.backends.opencl_fpga.dialect import OPENCL
from t2s.backends.verilog.counted_nests import nests_of
from tests.graph.gathers import Gathering

GRAPH = Gathering().graph


def test_opencl() -> None:
    whys = [problem.why for problem in check_vocabulary(OPENCL, GRAPH)]
    assert "machines that gather or scatter are not supported in OpenCL" in whys


def test_verilog() -> None:
    problems = nests_of(GRAPH)
    assert isinstance(problems, list)
    assert [(problem.subject, problem.why) for problem in problems] == [
        ("node 'gather'", "it gathers or scatters, which is not supported in SystemVerilog yet")
    ]


def test_cells() -> None:
    with pytest.raises(NotLowered, match="block 'gather'") as caught:
        BlockRefusals(GRAPH.machines[0]).check_machine(GRAPH)
    assert "it accesses 'x' by a vector of indices, and cells load and store" in str(caught.value)
