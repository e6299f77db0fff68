"""The methods of ``Streams`` that bring streams about and join them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.graph.graph import StreamKind, Tensor
from t2s.sparse_repr.blocks import (
    coordinate_lists,
    joins,
    locators,
    plumbing,
    repeats,
    scanners,
    skipping,
)
from t2s.sparse_repr.blocks.draft import Block
from t2s.sparse_repr.connections import Connections, Stream

Side = Sequence[Stream]
"""One side of a join: the coordinates, and what is beside them."""


class Iteration(Connections):
    """Blocks that bring streams about, and join them."""

    def root(self, name: str = "root") -> Stream:
        """The reference of the only fiber of an outermost level, nested 1 deep."""
        block = self._drafted(plumbing.root, self.index)
        return self.place(block, name, {})[0]

    def play(
        self, values: Tensor, tags: Tensor, kind: StreamKind, nesting: int, name: str = "play"
    ) -> Stream:
        """A stream from memory, token by token."""
        block = self._drafted(plumbing.player, values, tags, kind, nesting)
        return self.place(block, name, {})[0]

    def scan_compressed(
        self, ref: Stream, positions: Tensor, coordinates: Tensor, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """Coordinates and references of a compressed level."""
        block = self._drafted(scanners.compressed_scanner, ref.type, positions, coordinates)
        crd, out_ref = self._scan(block, ref, name)
        self.comes_from(crd, positions, coordinates)
        return crd, out_ref

    def scan_dense(self, ref: Stream, size: int, name: str = "scan") -> tuple[Stream, Stream]:
        """Coordinates and references of a dense level."""
        return self._scan(self._drafted(scanners.dense_scanner, ref.type, size), ref, name)

    def scan_singleton(
        self, ref: Stream, coordinates: Tensor, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """The coordinate and the reference of each fiber of a singleton level."""
        block = self._drafted(scanners.singleton_scanner, ref.type, coordinates)
        return self._scan(block, ref, name)

    def scan_unique(
        self, ref: Stream, positions: Tensor, coordinates: Tensor, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """Each coordinate of a compressed level with repeated coordinates, and its run."""
        block = self._drafted(coordinate_lists.unique_scanner, ref.type, positions, coordinates)
        return self._scan(block, ref, name)

    def scan_run(
        self,
        ref: Stream,
        positions: Tensor,
        above: Sequence[Tensor],
        coordinates: Tensor,
        name: str = "scan",
    ) -> tuple[Stream, Stream]:
        """Each coordinate of a singleton level in runs of the levels ``above`` it."""
        block = self._drafted(coordinate_lists.run_scanner, ref.type, positions, above, coordinates)
        return self._scan(block, ref, name)

    def scan_linked_list(
        self,
        ref: Stream,
        heads: Tensor,
        coordinates: Tensor,
        followers: Tensor,
        name: str = "scan",
    ) -> tuple[Stream, Stream]:
        """Coordinates and references of a linked-list level."""
        block = self._drafted(scanners.linked_list_scanner, ref.type, heads, coordinates, followers)
        return self._scan(block, ref, name)

    def scan_bitvector(
        self, ref: Stream, words: Tensor, ranks: Tensor, words_per_fiber: int, name: str = "scan"
    ) -> tuple[Stream, Stream]:
        """Words and ranks of a bitvector level."""
        block = self._drafted(scanners.bitvector_scanner, ref.type, words, ranks, words_per_fiber)
        return self._scan(block, ref, name)

    def _scan(self, block: Block, ref: Stream, name: str) -> tuple[Stream, Stream]:
        crd, out_ref = self.place(block, name, {"ref": ref})
        return crd, out_ref

    def repeat(self, crd: Stream, ref: Stream, name: str = "repeat") -> Stream:
        """Each token of ``ref`` as often as its list in ``crd`` has coordinates."""
        block = self._drafted(repeats.repeat, crd.type, ref.type)
        return self.place(block, name, {"crd": crd, "ref": ref})[0]

    def intersect(
        self, *sides: Side, name: str = "intersect"
    ) -> tuple[Stream, tuple[tuple[Stream, ...], ...]]:
        """The coordinates that all sides have, and for each side what is beside them."""
        return self._join(joins.intersect, sides, name)

    def intersect_skipping(
        self,
        *levels: tuple[Stream, Tensor, Tensor],
        lag: int = skipping.LAG,
        name: str = "intersect",
    ) -> tuple[Stream, tuple[Stream, ...]]:
        """Scan and intersect compressed levels, skipping coordinates that another side lacks.

        ``levels`` are (references, positions, coordinates); returns the common coordinates, and
        the references of each side.  A scanner is at most ``lag`` coordinates ahead.
        """
        sides: list[tuple[Stream, Stream]] = []
        for ref, positions, coordinates in levels:
            scanner = self._drafted(
                skipping.skipping_scanner, ref.type, positions, coordinates, lag=lag
            )
            crd, out = self.place(scanner, "scan", {"ref": ref}, later=["skip"])
            self.comes_from(crd, positions, coordinates)
            self.require_order(crd)
            sides.append((crd, out))
        types = [(crd.type, [ref.type]) for crd, ref in sides]
        block = self._drafted(joins.intersect, types, skipping=True)
        inputs: dict[str, Stream] = {}
        for n, (crd, ref) in enumerate(sides):
            inputs |= {f"crd{n}": crd, f"in{n}_0": ref}
        outs = self.place(block, name, inputs)
        count = len(sides)
        for (crd, _), wish in zip(sides, outs[count + 1 :], strict=True):
            self.connect(wish, crd.node, "skip", lag)
        return outs[count], outs[:count]

    def union(
        self, *sides: Side, name: str = "union"
    ) -> tuple[Stream, tuple[tuple[Stream, ...], ...]]:
        """The coordinates that any side has, and for each side what is beside them, or N."""
        return self._join(joins.union, sides, name)

    def _join(
        self, make: Callable[..., Block], sides: Sequence[Side], name: str, *, count: bool = True
    ) -> tuple[Stream, tuple[tuple[Stream, ...], ...]]:
        """Up to ``MOST_SIDES`` sides in one block, more of them in a tree of blocks."""
        if len(sides) < 2 or not all(sides):
            raise UserError(
                f"{name!r} joins one side" if all(sides) else f"{name!r} joins a side of nothing",
                location=user_location(),
                expected="2 sides or more, each with its coordinates",
                given=f"{len(sides)}, of {', '.join(str(len(side)) for side in sides)} streams",
            )
        if not all(sides):
            raise UserError(
                f"a side of {name!r} is empty",
                location=user_location(),
                expected="coordinates, and any streams beside them",
                given="no stream",
            )
        most = joins.MOST_SIDES
        if len(sides) > most:
            first, rest = sides[:most], sides[most:]
            crd, inside = self._join(make, first, name, count=count)
            merged = [crd, *(stream for side in inside for stream in side)]
            crd, others = self._join(make, [merged, *rest], name, count=False)
            beside = iter(others[0])
            back = tuple(tuple(next(beside) for _ in side[1:]) for side in first)
            return crd, (*back, *others[1:])
        for side in sides:
            self.require_order(side[0])
        inputs = {f"crd{n}": side[0] for n, side in enumerate(sides)}
        inputs |= {
            f"in{n}_{at}": stream
            for n, side in enumerate(sides)
            for at, stream in enumerate(side[1:])
        }
        types = [(side[0].type, [stream.type for stream in side[1:]]) for side in sides]
        outs = self.place(self._drafted(make, types), name, inputs, count=count)
        crd, beside = outs[-1], iter(outs[:-1])
        return crd, tuple(tuple(next(beside) for _ in side[1:]) for side in sides)

    def locate_dense(
        self, crd: Stream, fiber: Stream, size: int, *beside: Stream, name: str = "locate"
    ) -> tuple[Stream, ...]:
        """Coordinates, their references in fibers of a dense level, and what is beside them."""
        types = [stream.type for stream in beside]
        block = self._drafted(locators.dense_locator, crd.type, fiber.type, size, types)
        return self._locate(block, crd, fiber, beside, name)

    def locate_compressed(
        self,
        crd: Stream,
        fiber: Stream,
        positions: Tensor,
        coordinates: Tensor,
        *beside: Stream,
        keep: bool = False,
        name: str = "locate",
    ) -> tuple[Stream, ...]:
        """The same in a compressed level; a coordinate that is missing is dropped, or N."""
        block = self._drafted(
            locators.compressed_locator,
            crd.type,
            fiber.type,
            positions,
            coordinates,
            [stream.type for stream in beside],
            keep=keep,
        )
        return self._locate(block, crd, fiber, beside, name)

    def _locate(
        self, block: Block, crd: Stream, fiber: Stream, beside: Sequence[Stream], name: str
    ) -> tuple[Stream, ...]:
        others = {f"in{n}": stream for n, stream in enumerate(beside)}
        return self.place(block, name, {"crd": crd, "fiber": fiber, **others})
