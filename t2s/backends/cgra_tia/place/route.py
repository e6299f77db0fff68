"""Routing: a tree of wires for each net, such that no two nets need the same track.

The result is a path of cells from the source of each net to each of its sinks.  Nets without a
route are refused, with the place that is too narrow.

Negotiated congestion (the PathFinder algorithm): at first every net takes its shortest tree, and
wires may be used by more nets than there are tracks.  Then the nets on overused wires are rerouted
repeatedly, while the cost of such wires grows with each round in which they were overused.  All
costs are integers, and ties are broken by the number of the cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.backends.cgra_tia.netlist import Net
from t2s.core.errors import UnsupportedError
from t2s.core.location import SourceLocation

_WIRE = 16
"""The cost of a wire that nobody else wants."""

_DEPTH = 16
"""The cost of each hop from the source on: without it branches get long to save a wire."""

MOST_ROUNDS = 80
_PATIENCE = 12
"""Rounds of negotiation, and how many without fewer overused wires are enough."""

_SIDES = {(-1, 0): "north", (0, 1): "east", (1, 0): "south", (0, -1): "west"}
"""Where a neighbor is, by rows down and columns to the right."""

Path = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Terminals:
    """A net as the router sees it: the numbers of the cells of its source and of its sinks."""

    net: Net
    source: int
    sinks: tuple[int, ...]


class _Mesh:
    """The wires of a fabric: a wire goes from a cell to a neighbor, and has some tracks."""

    def __init__(self, fabric: CgraFabric) -> None:
        self.columns = fabric.columns
        self.tracks = fabric.tracks
        count = fabric.rows * fabric.columns
        self.neighbors: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        wires = 0
        for cell in range(count):
            row, column = divmod(cell, fabric.columns)
            for y, x in (
                (row - 1, column),
                (row, column + 1),
                (row + 1, column),
                (row, column - 1),
            ):
                if 0 <= y < fabric.rows and 0 <= x < fabric.columns:
                    self.neighbors[cell].append((y * fabric.columns + x, wires))
                    wires += 1
        self.used = [0] * wires
        self.history = [0] * wires
        self.ends = [
            (cell, other) for cell, around in enumerate(self.neighbors) for other, _ in around
        ]

    def price(self, wire: int, pressure: int) -> int:
        """The cost of a wire for one more net."""
        over = self.used[wire] + 1 - self.tracks
        price = _WIRE + self.history[wire]
        return price * (1 + pressure * over) if over > 0 else price

    @property
    def overused(self) -> list[int]:
        """The wires with more nets than tracks."""
        return [wire for wire, used in enumerate(self.used) if used > self.tracks]


class _Tree:
    """The wires of one net: for each cell that it reaches, the previous cell and the wire."""

    def __init__(self, source: int) -> None:
        self.before: dict[int, tuple[int, int]] = {source: (-1, -1)}
        self.depth: dict[int, int] = {source: 0}

    @property
    def wires(self) -> Iterator[int]:
        return (wire for _, wire in self.before.values() if wire >= 0)

    def path(self, cell: int) -> list[int]:
        """The cells from the source to a cell."""
        path = [cell]
        while (cell := self.before[cell][0]) >= 0:
            path.append(cell)
        return path[::-1]


def routed(
    nets: Sequence[Terminals],
    fabric: CgraFabric,
    told: Callable[[int, int], None],
    rounds: int = MOST_ROUNDS,
) -> list[tuple[Path, ...]]:
    """The paths of each net to its sinks; ``told`` gets each round and its overused wires.

    Raises ``UnsupportedError`` if nets remain that need the same track.
    """
    mesh = _Mesh(fabric)
    trees: list[_Tree | None] = [None] * len(nets)
    waiting = list(range(len(nets)))
    fewest, since = len(mesh.used) + 1, 0
    for number in range(rounds):
        for index in waiting:
            _lift(mesh, trees[index])
            trees[index] = _tree_for(mesh, nets[index], number)
        crowded = set(mesh.overused)
        told(number, len(crowded))
        if not crowded:
            break
        since = since + 1 if len(crowded) >= fewest else 0
        fewest = min(fewest, len(crowded))
        if since > _PATIENCE:
            break
        for wire in crowded:
            mesh.history[wire] += _WIRE // 2 * (mesh.used[wire] - mesh.tracks)
        waiting = [
            index for index, tree in enumerate(trees) if tree and not crowded.isdisjoint(tree.wires)
        ]
    if mesh.overused:
        raise _too_narrow(mesh, fabric, nets, trees)
    return [
        tuple(_as_path(tree.path(sink), fabric) for sink in net.sinks)
        for net, tree in zip(nets, trees, strict=True)
        if tree is not None
    ]


def _as_path(cells: Sequence[int], fabric: CgraFabric) -> Path:
    return tuple((cell // fabric.columns, cell % fabric.columns) for cell in cells)


def _lift(mesh: _Mesh, tree: _Tree | None) -> None:
    """Release the wires of a net."""
    if tree is not None:
        for wire in tree.wires:
            mesh.used[wire] -= 1


def _tree_for(mesh: _Mesh, net: Terminals, pressure: int) -> _Tree:
    """A tree for a net: nearest sinks first, each joined to the tree at the best place."""
    tree = _Tree(net.source)
    row, column = divmod(net.source, mesh.columns)
    distances = {
        sink: abs(sink // mesh.columns - row) + abs(sink % mesh.columns - column)
        for sink in net.sinks
    }
    for sink in sorted(distances, key=lambda sink: (distances[sink], sink)):
        if sink not in tree.before:
            _join(mesh, tree, sink, pressure)
    for wire in tree.wires:
        mesh.used[wire] += 1
    return tree


def _join(mesh: _Mesh, tree: _Tree, sink: int, pressure: int) -> None:
    """Add the cheapest path from the tree to a sink (A*, with the distance as the estimate)."""
    columns = mesh.columns
    row, column = divmod(sink, columns)
    step = _WIRE + _DEPTH
    best = {cell: depth * _DEPTH for cell, depth in tree.depth.items()}
    before: dict[int, tuple[int, int]] = {}
    queue: list[tuple[int, int, int]] = []
    for cell, cost in best.items():
        away = abs(cell // columns - row) + abs(cell % columns - column)
        heappush(queue, (cost + away * step, cell, cost))
    while queue:
        _, cell, cost = heappop(queue)
        if cell == sink:
            break
        if cost > best[cell]:
            continue
        for other, wire in mesh.neighbors[cell]:
            if other in tree.before:
                continue
            through = cost + mesh.price(wire, pressure) + _DEPTH
            if through < best.get(other, through + 1):
                best[other] = through
                before[other] = (cell, wire)
                away = abs(other // columns - row) + abs(other % columns - column)
                heappush(queue, (through + away * step, other, through))
    way = []
    while sink not in tree.before:
        way.append((sink, *before[sink]))
        sink = before[sink][0]
    for cell, parent, wire in reversed(way):
        tree.before[cell] = (parent, wire)
        tree.depth[cell] = tree.depth[parent] + 1


def _too_narrow(
    mesh: _Mesh, fabric: CgraFabric, nets: Sequence[Terminals], trees: Sequence[_Tree | None]
) -> UnsupportedError:
    """The refusal: the wire that lacks most tracks, and the nets there."""
    worst = max(mesh.overused, key=lambda wire: (mesh.used[wire], -wire))
    (row, column), (other_row, other_column) = (
        divmod(cell, fabric.columns) for cell in mesh.ends[worst]
    )
    side = _SIDES[other_row - row, other_column - column]
    crowding = [
        net.net for net, tree in zip(nets, trees, strict=True) if tree and worst in set(tree.wires)
    ]
    groups = Counter(net.group for net in crowding)
    shares = ", ".join(f"{count} of {group}" for group, count in sorted(groups.items()))
    location: SourceLocation | None = next((net.location for net in crowding if net.location), None)
    return UnsupportedError(
        f"the nets cannot be routed on the fabric {fabric.name!r}: they meet at the {side} side of"
        f" cell r{row:02}_c{column:02}",
        location=location,
        expected=f"at most {fabric.tracks} nets between two neighbors, one on each track",
        given=f"{mesh.used[worst]} there ({shares}), and too many at {len(mesh.overused)} places",
        hint="try another seed, a larger fabric, or one with more tracks:"
        f" tracks={mesh.used[worst]}",
    )
