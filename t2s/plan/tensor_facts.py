"""What is known of a tensor before a run, from which times are predicted."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from t2s.sparse_repr.formats import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """What is known of a tensor before a run.

    ``stored`` is how many values it has, a count or an expectation; ``order`` its modes in memory,
    the outermost first; ``sparse`` whether it stores some of its elements only.
    """

    shape: tuple[int, ...]
    stored: float
    order: tuple[int, ...]
    sparse: bool = False

    @property
    def elements(self) -> int:
        """All of them, stored or not."""
        return prod(self.shape)

    @property
    def density(self) -> float:
        """The share of the elements that are stored."""
        return self.stored / self.elements if self.elements else 0.0

    def strides(self, itemsize: int) -> tuple[int, ...]:
        """Bytes from one element to the next along each mode of a dense tensor."""
        found = [0] * len(self.shape)
        step = itemsize
        for mode in reversed(self.order):
            found[mode] = step
            step *= max(1, self.shape[mode])
        return tuple(found)


def facts_of(shape: tuple[int, ...], format: Format, stored: float | None = None) -> TensorFacts:
    """What is known of a tensor of a shape in a format; all of it is stored if nothing is said."""
    sparse = not (format.plain and all(level.full for level in format.levels))
    count = prod(shape) if stored is None or not sparse else stored
    order = format.modes if format.plain else tuple(range(len(shape)))
    return TensorFacts(shape=shape, stored=count, order=order, sparse=sparse)
