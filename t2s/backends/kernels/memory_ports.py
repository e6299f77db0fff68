"""How a kernel uses the tensors that are its parameters: wide, and how often in one firing."""

from __future__ import annotations

from collections.abc import Mapping

from t2s.backends.kernels.lockstep import LockstepNode
from t2s.backends.kernels.scope import KernelDesign
from t2s.graph.ports import Wide, accesses_of_body
from t2s.graph.ports import wide_tensors as wide_tensors_of


def wide_tensors(design: KernelDesign, node: LockstepNode) -> dict[str, Wide]:
    """Tensors that are parameters of vectors."""
    if not design.dialect.wide_parameters:
        return {}
    return wide_tensors_of(design.graph, node.body, node.space, node.guard)


def accesses_per_firing(node: LockstepNode, wide: Mapping[str, Wide]) -> dict[str, int]:
    """How often the PEs of a node access each tensor in one firing."""
    return accesses_of_body(node.body, node.space, node.ranges, node.guard, wide)
