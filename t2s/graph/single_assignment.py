"""Tensors that several machines use: copies of inputs, and tensors of single assignment.

Each element of a tensor of single assignment is stored once, and not loaded before, by whichever
machine; then no value depends on time (``Tensor.once``).  The interpreter and the plain engine,
which fires machines in the order of time, keep such tensors in lists that check that.
"""

from __future__ import annotations

from typing import Any, SupportsIndex

from t2s.core.errors import InternalError
from t2s.graph.graph import Graph, Place, Tensor, TensorRole
from t2s.graph.verify_expr import Subject


def verify_promises(graph: Graph, subject: Subject, tensor: Tensor) -> None:
    """Copies are those of inputs in memory, and what is stored once is stored at all."""
    if tensor.once and (tensor.role is TensorRole.INPUT or not tensor.open):
        raise subject.error(
            "it cannot be stored once",
            expected="an open output or intermediate",
            given=f"{tensor.role.value} {tensor.shape_text}",
        )
    if tensor.copy_of is None:
        return
    copied = [t for t in graph.tensors if t.name == tensor.copy_of]
    right = [
        t
        for t in copied
        if t.copy_of is None and t.layout is None and t.place is Place.MEMORY
        if (t.role, t.type, t.shape, t.padded, t.open)
        == (TensorRole.INPUT, tensor.type, tensor.shape, tensor.padded, tensor.open)
    ]
    alike = tensor.role is TensorRole.INPUT and tensor.layout is None
    if not right or not alike or tensor.place is Place.MEMORY:
        raise subject.error(
            f"it is no copy of {tensor.copy_of!r}",
            expected="an input on the chip, of the type and the shape of an input in memory",
            given=f"{tensor.shape_text} beside {copied[0].shape_text if copied else 'nothing'}",
        )


class StoredOnce(list[Any]):
    """A list that grows, and knows which of its elements were stored and loaded."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._stored: set[int] = set()
        self._loaded: set[int] = set()

    def __getitem__(self, at: Any) -> Any:
        self._loaded.update(self._places(at))
        return super().__getitem__(at)

    def __setitem__(self, at: Any, value: Any) -> None:
        for place in self._places(at):
            if place in self._stored or place in self._loaded:
                before = "stored" if place in self._stored else "loaded"
                raise InternalError(
                    f"element {place} of {self._name!r} is stored, and was {before} before: in a"
                    " tensor of single assignment each is stored once, before it is loaded"
                )
            self._stored.add(place)
        super().__setitem__(at, value)

    def _places(self, at: slice | SupportsIndex) -> range:
        """The elements that are meant, also behind the end."""
        if isinstance(at, slice):
            return range(at.start or 0, len(self) if at.stop is None else at.stop)
        return range(at.__index__(), at.__index__() + 1)
