"""From the control of a program to the shapes and masks of the run-ahead timing code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.program.flatten import ACCESS, RECEIVES_END, USES_BEGIN, USES_END, Control
from t2s.simulator.program.trace import STORES
from t2s.simulator.times.run_ahead_emit import ALWAYS, NEVER, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """How one node (a PE or a machine) uses the run-ahead code.

    ``ports`` are the channel elements of its ports, and ``masks`` has a row for each of its codes.
    """

    shape: Shape
    ports: tuple[int, ...]
    masks: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPorts:
    """A row: the channel elements needed (in order), taken and sent to (in order)."""

    needs: list[int]
    takes: list[int]
    puts: list[int]
    stores: bool


class Rows:
    """The rows of a control, which many controls share: equal if they are the same arrays."""

    def __init__(self, control: Control) -> None:
        self.rows, self.uses = control.rows, control.uses
        self.row_start, self.taken = control.row_start, control.taken
        self._key = tuple(map(id, (self.rows, self.uses, self.row_start, self.taken)))

    def count(self, instance: int) -> int:
        """Number of rows of a node."""
        following = instance + 1 < len(self.row_start)
        end = self.row_start[instance + 1] if following else len(self.rows)
        return int(end - self.row_start[instance])

    def ports(self, instance: int) -> list[RowPorts]:
        """What the rows of a node do with channel elements."""
        first = int(self.row_start[instance])
        found: list[RowPorts] = []
        for row in self.rows[first : first + self.count(instance)]:
            begin, middle, end = (int(row[n]) for n in (USES_BEGIN, RECEIVES_END, USES_END))
            needs = self.uses[begin:middle].tolist()
            taken = self.taken[begin:middle].tolist()
            found.append(
                RowPorts(
                    needs=needs,
                    takes=[use for use, takes in zip(needs, taken, strict=True) if takes],
                    puts=self.uses[middle:end].tolist(),
                    stores=bool(int(row[ACCESS]) & STORES),
                )
            )
        return found

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._key == other._key


def twins(rows: Rows, instances: int) -> tuple[tuple[int, ...], ...]:
    """Channel elements whose tokens always move together, if capacity and latency are the same.

    All of a group go from one node to one node, in the same rows and in the same order among each
    other.  A coordinate and its reference are such a pair.
    """
    sends: dict[int, list[tuple[int, int]]] = {}
    needs: dict[int, list[tuple[int, int, bool]]] = {}
    for instance in range(instances):
        for number, row in enumerate(rows.ports(instance)):
            for element in row.puts:
                sends.setdefault(element, []).append((instance, number))
            for element in row.needs:
                taken = element in row.takes
                needs.setdefault(element, []).append((instance, number, taken))
    groups: dict[tuple[object, ...], list[int]] = {}
    for element, sent in sends.items():
        key = (*sent, *needs.get(element, []))
        groups.setdefault(key, []).append(element)
    alike = [group for group in groups.values() if len(group) > 1]
    wanted = {element for group in alike for element in group}
    orders: dict[int, list[list[int]]] = {element: [] for element in wanted}
    for instance in range(instances):
        for row in rows.ports(instance):
            for order in (row.needs, row.puts):
                for element in wanted.intersection(order):
                    orders[element].append(order)
    return tuple(
        tuple(group)
        for group in alike
        if all(_keeps_order(order, group) for element in group for order in orders[element])
    )


def _keeps_order(order: Sequence[int], group: Sequence[int]) -> bool:
    return [element for element in order if element in group] == list(group)


def layout_of(
    rows: Rows, instance: int, code_bytes: int, dropped: Collection[int] = ()
) -> RowLayout:
    """The layout of a node, without the channel elements that are ``dropped``."""
    table = rows.ports(instance)

    def kept(elements: list[int]) -> list[int]:
        return [element for element in elements if element not in dropped]

    receives, sends = [kept(row.needs) for row in table], [kept(row.puts) for row in table]
    takes = [kept(row.takes) for row in table]
    inputs, outputs = common_order(receives), common_order(sends)
    in_ports, out_ports = list(dict.fromkeys(inputs)), list(dict.fromkeys(outputs))
    columns = _Columns(len(table))
    steps: list[tuple[int, int]] = []
    for order, uses, ports, first_port in (
        (inputs, receives, in_ports, 0),
        (outputs, sends, out_ports, len(in_ports)),
    ):
        along = [used_positions(order, row) for row in uses]
        for position, element in enumerate(order):
            port = first_port + ports.index(element)
            steps.append((port, columns.of(position in used for used in along)))
    moving = [columns.of(element in row for row in takes) for element in in_ports]
    moving += [columns.of(element in row for row in sends) for element in out_ports]
    moves = list(dict.fromkeys(moving))
    shape = Shape(
        receives=(True,) * len(in_ports) + (False,) * len(out_ports),
        groups=tuple(moves.index(column) for column in moving),
        moves=tuple(moves),
        steps=tuple(steps),
        stores=columns.of(row.stores for row in table),
        columns=len(columns.masks),
        code_bytes=code_bytes,
    )
    masks = np.zeros((max(1, len(table)), max(1, shape.columns)), np.int64)
    for column, mask in enumerate(columns.masks):
        masks[:, column] = np.where(mask, -1, 0)
    return RowLayout(shape=shape, ports=(*in_ports, *out_ports), masks=masks)


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


def common_order(rows: Sequence[Sequence[int]]) -> list[int]:
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


def used_positions(order: Sequence[int], row: Sequence[int]) -> set[int]:
    """The positions in ``order`` at which a row goes along it."""
    found: set[int] = set()
    at = -1
    for element in row:
        at = order.index(element, at + 1)
        found.add(at)
    return found
