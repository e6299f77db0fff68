"""From the control of a program to the shapes and masks of the run-ahead timing code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.flatten import ACCESS, RECEIVES_END, STORES, USES_BEGIN, USES_END, Control
from t2s.simulator.native.emit_timing import ALWAYS, NEVER, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one node (a PE or a machine) uses the run-ahead code.

    ``ports`` are the channel elements of its ports, ``steps`` those of the steps of its shape, and
    ``masks`` has a row for each of its codes.
    """

    shape: Shape
    ports: tuple[int, ...]
    masks: NDArray[np.int64]

    @property
    def steps(self) -> tuple[int, ...]:
        """The channel element of each step."""
        return tuple(self.ports[port] for port, _ in self.shape.steps)


def layout_of(control: Control, instance: int, rows: int, code_bytes: int) -> Layout | None:
    """The layout of a node with so many rows; ``None`` if two of its rows wait in other orders."""
    first = int(control.row_start[instance])
    table = control.rows[first : first + rows]
    receives, sends, takes = [], [], []
    for row in table:
        begin, middle, end = (int(row[column]) for column in (USES_BEGIN, RECEIVES_END, USES_END))
        needed = [int(use) for use in control.uses[begin:middle]]
        receives.append(needed)
        takes.append([use for use, t in zip(needed, control.taken[begin:middle], strict=True) if t])
        sends.append([int(use) for use in control.uses[middle:end]])
    inputs, outputs = _common_order(receives), _common_order(sends)
    if inputs is None or outputs is None:
        return None
    columns = _Columns(rows)
    steps = [columns.of(element in row for row in receives) for element in inputs]
    steps += [columns.of(element in row for row in sends) for element in outputs]
    moves = [columns.of(element in row for row in takes) for element in inputs]
    moves += steps[len(inputs) :]
    shape = Shape(
        receives=(True,) * len(inputs) + (False,) * len(outputs),
        moves=tuple(moves),
        steps=tuple(enumerate(steps)),
        stores=columns.of(bool(access & STORES) for access in table[:, ACCESS]),
        columns=len(columns.masks),
        code_bytes=code_bytes,
    )
    masks = np.zeros((max(1, rows), max(1, shape.columns)), np.int64)
    for column, mask in enumerate(columns.masks):
        masks[:, column] = np.where(mask, -1, 0)
    return Layout(shape=shape, ports=(*inputs, *outputs), masks=masks)


class _Columns:
    """Numbers columns of masks; equal columns are one."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.masks: list[tuple[bool, ...]] = []

    def of(self, holds: Iterable[bool]) -> int:
        """The column that says where something holds."""
        mask = tuple(holds)
        if all(mask) and mask:
            return ALWAYS
        if not any(mask):
            return NEVER
        if mask not in self.masks:
            self.masks.append(mask)
        return self.masks.index(mask)


def _common_order(rows: Sequence[Sequence[int]]) -> list[int] | None:
    """The elements of all rows in an order that each row agrees with; ``None`` if there is none."""
    followers: dict[int, set[int]] = {element: set() for row in rows for element in row}
    for row in rows:
        for earlier, later in zip(row, row[1:], strict=False):
            followers[earlier].add(later)
    order: list[int] = []
    while followers:
        later = {element for after in followers.values() for element in after}
        free = [element for element in followers if element not in later]
        if not free:
            return None
        order.append(free[0])
        del followers[free[0]]
    return order
