"""Scanners of coordinate lists (COO): levels in which a coordinate stands once for each element.

In a list sorted by all its coordinates the elements of one coordinate follow one another: a *run*.
A level puts each coordinate once, with the position of its run as the reference; the level below
finds where the run ends by searching for the next larger coordinate in all levels above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from t2s.core.expr import Expr, Local
from t2s.graph.body import Statement
from t2s.graph.graph import StreamType, Tensor
from t2s.graph.machine import Search
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, load
from t2s.sparse_repr.blocks.expressions import add, cast, one
from t2s.sparse_repr.blocks.scanners import Body, Values, scanner, segment


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueScanner(StreamBlock):
    """A compressed level with repeated coordinates: each of them once.

    Fiber ``r`` is ``positions[r]`` to ``positions[r + 1] - 1``.  Ports: ``ref``; ``crd``,
    ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    positions: Tensor
    coordinates: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element

        def open_fiber(fiber: Expr) -> tuple[Body, Values]:
            first, begin = load("begin", self.positions, fiber)
            second, finish = load("finish", self.positions, add(fiber, one(type)))
            return (first, second), (cast(begin, type), cast(finish, type))

        _runs(draft, reference, self.coordinates, open_fiber)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScanner(StreamBlock):
    """A singleton level below repeated coordinates: the run at ``r``, each coordinate once.

    ``above`` are the coordinates of the levels above, the outermost first, of which the first one
    is an outermost level: ``positions[1]`` is the length of the list.  Ports: ``ref``; ``crd``,
    ``out_ref``.
    """

    kind = BlockKind.SCAN
    role = Role.LOAD

    positions: Tensor
    above: tuple[Tensor, ...]
    coordinates: Tensor

    def draft(self, draft: Draft, reference: StreamType) -> None:
        type = reference.element

        def open_fiber(fiber: Expr) -> tuple[Body, Values]:
            first, length = load("length", self.positions, one(type))
            body: list[Statement] = [first]
            end = cast(length, type)
            for number, level in enumerate(self.above):
                here, own = load(f"own{number}", level, fiber)
                found = f"end{number}"
                search = Search(
                    target=found,
                    tensor=level.name,
                    begin=fiber,
                    end=end,
                    value=add(own, one(own.type)),
                )
                body += [here, search]
                end = Local(name=found, type=type)
            return tuple(body), (fiber, end)

        _runs(draft, reference, self.coordinates, open_fiber)


def _runs(
    draft: Draft,
    reference: StreamType,
    coordinates: Tensor,
    open_fiber: Callable[[Expr], tuple[Body, Values]],
) -> None:
    type = reference.element

    def element(values: Values, name: str) -> tuple[Body, tuple[Expr, ...], Values]:
        here, coordinate = load(name, coordinates, values[0])
        after = Local(name=f"{name}_after", type=type)
        search = Search(
            target=after.name,
            tensor=coordinates.name,
            begin=values[0],
            end=values[1],
            value=add(coordinate, one(coordinate.type)),
        )
        return (here, search), (coordinate, values[0]), (after, values[1])

    scanner(draft, reference, coordinates.type, segment(draft, type, open_fiber, element))
