"""Linked lists, which grow in any order of fibers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.plumbing import Counted, Root
from t2s.sparse_repr.blocks.repeats import Repeat
from t2s.sparse_repr.blocks.scanners import LinkedListScanner
from t2s.sparse_repr.blocks.writers import LinkedListWriter
from t2s.sparse_repr.levels.level import (
    Array,
    Arrays,
    GraphLevel,
    Level,
    LevelStreams,
    Packed,
    Unpacked,
    firsts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedList(Level):
    """``head`` of every fiber, then ``next`` from node to node: node n is n + 1, and 0 is none."""

    letter = "l"
    title = "linked list"
    array_names = ("head", "crd", "next")
    scanned = True

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        first = firsts(parents, coordinates)
        owner, stored = parents[first], coordinates[first]
        head = np.zeros(count, np.int64)
        begins = np.flatnonzero(firsts(owner, np.zeros_like(owner)))
        head[owner[begins]] = begins + 1
        follow = np.arange(2, len(owner) + 2)
        follow[np.append(begins[1:], len(owner))[: len(begins)] - 1] = 0
        arrays = {"head": head, "crd": stored, "next": follow.astype(np.int64)}
        return Packed(arrays=arrays, positions=np.cumsum(first) - 1, count=len(stored))

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        positions: list[int] = []
        owner: list[int] = []
        for number, parent in enumerate(parents):
            node = int(arrays["head"][parent])
            while node > 0:
                positions.append(node - 1)
                owner.append(number)
                node = int(arrays["next"][node - 1])
        where = np.array(positions, np.int64)
        return Unpacked(
            parents=np.array(owner, np.int64), coordinates=arrays["crd"][where], positions=where
        )

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        head, following, nodes = arrays["head"], arrays["next"], len(arrays["crd"])
        if len(head) != count or len(following) != nodes:
            return f"head of {count} nodes, and next as long as crd"
        links = np.concatenate([head, following])
        if not np.array_equal(np.sort(links[links != 0]), np.arange(1, nodes + 1)):
            return f"each of the nodes 1 to {nodes} once, in head or in next"
        return None

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        heads, coordinates, followers = (level.array(of) for of in self.array_names)
        block = LinkedListScanner(heads=heads, coordinates=coordinates, followers=followers)
        return level.to.pair(block, name, reference)

    def has_writer(self, dropping: int) -> bool:
        """Whether blocks write it: below at most one level that leaves coordinates out."""
        return dropping < 2

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        to, fiber = level.to, f"{name}_fiber"
        if given.above is None:
            (parents,) = to.put(Root(type=to.index), "root")
        else:
            (parents,) = to.put(Counted(), fiber, given.above)
        block = LinkedListWriter(
            heads=level.array("head"),
            stored=level.array("crd"),
            followers=level.array("next"),
            tails=level.array("tail"),
        )
        (fibers,) = to.put(Repeat(), fiber, given.coordinate, parents)
        to.put(block, name, given.coordinate, fibers)

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        head = np.zeros(count, np.int64)
        head[: len(stored["head"])] = stored["head"][:count]
        return {"head": head, "crd": stored["crd"], "next": stored["next"]}
