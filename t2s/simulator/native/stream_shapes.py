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


def layout_of(control: Control, instance: int, rows: int, code_bytes: int) -> Layout:
    """The layout of a node with so many rows."""
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
    in_ports, out_ports = list(dict.fromkeys(inputs)), list(dict.fromkeys(outputs))
    columns = _Columns(rows)
    steps: list[tuple[int, int]] = []
    for order, uses, ports, first_port in (
        (inputs, receives, in_ports, 0),
        (outputs, sends, out_ports, len(in_ports)),
    ):
        along = [_used(order, row) for row in uses]
        for position, element in enumerate(order):
            port = first_port + ports.index(element)
            steps.append((port, columns.of(position in used for used in along)))
    moves = [columns.of(element in row for row in takes) for element in in_ports]
    moves += [columns.of(element in row for row in sends) for element in out_ports]
    shape = Shape(
        receives=(True,) * len(in_ports) + (False,) * len(out_ports),
        moves=tuple(moves),
        steps=tuple(steps),
        stores=columns.of(bool(access & STORES) for access in table[:, ACCESS]),
        columns=len(columns.masks),
        code_bytes=code_bytes,
    )
    masks = np.zeros((max(1, rows), max(1, shape.columns)), np.int64)
    for column, mask in enumerate(columns.masks):
        masks[:, column] = np.where(mask, -1, 0)
    return Layout(shape=shape, ports=(*in_ports, *out_ports), masks=masks)


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


def _common_order(rows: Sequence[Sequence[int]]) -> list[int]:
    """A sequence that has every row as a subsequence: elements repeat where rows disagree."""
    order: list[int] = []
    for row in dict.fromkeys(map(tuple, rows)):
        order = _merged(order, list(row))
    return order


def _merged(left: list[int], right: list[int]) -> list[int]:
    """The shortest sequence that has both as subsequences."""
    common = np.zeros((len(left) + 1, len(right) + 1), np.int64)
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            same = left[i] == right[j]
            common[i, j] = (
                common[i + 1, j + 1] + 1 if same else max(common[i + 1, j], common[i, j + 1])
            )
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            merged.append(left[i])
            i, j = i + 1, j + 1
        elif common[i + 1, j] >= common[i, j + 1]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def _used(order: Sequence[int], row: Sequence[int]) -> set[int]:
    """The positions in ``order`` at which a row goes along it."""
    found: set[int] = set()
    at = -1
    for element in row:
        at = order.index(element, at + 1)
        found.add(at)
    return found
