"""How a kernel uses the tensors that are its parameters: wide, and how often in one firing."""

from __future__ import annotations

from collections.abc import Mapping

from t2s.backends.kernels.lockstep import LockstepNode
from t2s.backends.kernels.scope import KernelDesign
from t2s.core.expr import Expr
from t2s.core.intervals import from_linear_form, linear_form
from t2s.graph.ports import accesses_of_body
from t2s.graph.ports import wide_tensors as wide_tensors_of


def in_vectors(index: Expr, lanes: int) -> Expr:
    """The index of a vector whose first element has an aligned index."""
    form = linear_form(index)
    assert form is not None
    coefficients, constant = form
    scaled = {name: value // lanes for name, value in coefficients.items()}
    return from_linear_form((scaled, constant // lanes))


def wide_tensors(design: KernelDesign, node: LockstepNode) -> dict[str, int]:
    """Tensors that are parameters of vectors, with their lanes.

    A node accesses nothing else of such a tensor than aligned vectors of one length.
    """
    return wide_tensors_of(design.graph, node.body) if design.dialect.wide_parameters else {}


def accesses_per_firing(node: LockstepNode, wide: Mapping[str, int]) -> dict[str, int]:
    """How often the PEs of a node access each tensor in one firing."""
    return accesses_of_body(node.body, node.space, node.ranges, node.guard, wide)
