"""What host programs say of the tensors: their shapes in memory, and how they are laid out."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass

from t2s.backends.kernels.dialect import Dialect
from t2s.core.expr import Cast, Expr, Index
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.graph.graph import Graph, Layout, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTensor:
    """A tensor in device memory, with its shape there."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    allocated: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLayout:
    """How the host rearranges ``array``, of ``shape`` and padded to ``padded``, into a tensor.

    ``loops`` are the dimensions of the tensor, ``indices`` the subscripts of the array over them,
    in Python.
    """

    tensor: str
    array: str
    shape: tuple[int, ...]
    padded: tuple[int, ...]
    loops: tuple[str, ...]
    indices: tuple[str, ...]


def host_tensors(graph: Graph) -> tuple[HostTensor, ...]:
    """The tensors of a graph."""
    return tuple(
        HostTensor(
            name=t.name,
            dtype=t.type.numpy.name,
            shape=t.shape if t.layout is None else t.allocated,
            role=t.role.value,
            allocated=t.allocated,
        )
        for t in graph.tensors
    )


def host_layouts(dialect: Dialect, graph: Graph) -> tuple[HostLayout, ...]:
    """The layouts of those that have one."""
    return tuple(_host_layout(dialect, t, t.layout) for t in graph.tensors if t.layout is not None)


def _host_layout(dialect: Dialect, tensor: Tensor, layout: Layout) -> HostLayout:
    names = dialect.variables(keyword.kwlist)
    loops = {name: names.fresh(name) for name in layout.loops}
    return HostLayout(
        tensor=tensor.name,
        array=tensor.array,
        shape=tensor.shape,
        padded=tensor.padded or tensor.shape,
        loops=tuple(loops.values()),
        indices=tuple(_python(index, loops) for index in layout.indices),
    )


def _python(index: Expr, loops: Mapping[str, str]) -> str:
    """A quasi-affine subscript of a layout as Python code for numpy arrays."""

    def rule(node: Term) -> Term | None:
        match node:
            case Cast(value=value):
                return value
            case Index(name=name):
                return Index(name=loops[name])
        return None

    return show(rewrite(index, rule))
