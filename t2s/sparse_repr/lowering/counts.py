"""How many blocks of each kind a diagram has, as papers/001 counts them in Table 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from t2s.sparse_repr.lowering.diagram import (
    AnyBlock,
    Compute,
    Count,
    Deal,
    Diagram,
    Drop,
    DropMissing,
    Fill,
    Flatten,
    Gather,
    Join,
    JoinKind,
    Load,
    Locate,
    Reduce,
    Regroup,
    Repeat,
    Root,
    Scan,
    ScanJoin,
    Scatter,
    Spread,
    SumLanes,
    WriteLevel,
    WriteValues,
)

PUBLISHED_KINDS = (
    "level scanner",
    "repeat",
    "intersect",
    "union",
    "ALU",
    "reduce",
    "coordinate drop",
    "level writer",
    "array",
)
"""The columns of papers/001, Table 1."""

KINDS = (*PUBLISHED_KINDS, "locate", "parallelizer", "serializer", "flatten", "regroup")
"""All kinds of blocks.  A join of several inputs is one block."""


def block_counts(diagrams: Iterable[Diagram]) -> Mapping[str, int]:
    """The number of blocks of every kind in ``KINDS``; roots are not counted."""
    found: Counter[str] = Counter()
    for diagram in diagrams:
        for block in diagram.blocks:
            if isinstance(block, ScanJoin):
                found["level scanner"] += len(block.sides)
            kind = _kind(block)
            if kind is not None:
                found[kind] += 1
    return {kind: found[kind] for kind in KINDS}


def _kind(block: AnyBlock) -> str | None:
    match block:
        case Scan() | Count():
            return "level scanner"
        case Repeat():
            return "repeat"
        case Join(kind=kind) | ScanJoin(kind=kind):
            return "intersect" if kind is JoinKind.INTERSECT else "union"
        case Compute() | Fill() | SumLanes() | Spread():
            return "ALU"
        case Reduce():
            return "reduce"
        case Drop() | DropMissing():
            return "coordinate drop"
        case WriteLevel() | WriteValues():
            return "level writer"
        case Load() | Scatter():
            return "array"
        case Locate():
            return "locate"
        case Deal():
            return "parallelizer"
        case Gather():
            return "serializer"
        case Flatten():
            return "flatten"
        case Regroup():
            return "regroup"
        case Root():
            return None
