"""A diagram: the blocks of a stage and the wires between them, before extents are known.

The blocks are those of the Sparse Abstract Machine [SAM, sec. 3], classes of
``sparse_repr/blocks``.  A stream of depth d is a list of lists, d deep, of tokens: coordinates,
references or values; depth 0 is a single token.  A reference may be empty (N): there is nothing
below it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from t2s.core.charts import ChartArrow, ChartBox, layered_chart
from t2s.core.location import SourceLocation
from t2s.core.svg import PALETTE, SvgPicture
from t2s.core.walk import Term
from t2s.graph.graph import Region
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.lists import DiagramBlock
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


class TokenKind(Enum):
    """What the tokens of a stream are."""

    COORDINATE = "coordinate"
    REFERENCE = "reference"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramWire(Term):
    """A stream: its number in the diagram, what its tokens are, and how deep it is nested.

    Values of several ``lanes`` are vectors.
    """

    number: int
    kind: TokenKind
    depth: int
    lanes: int = 1
    about: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired(Term):
    """A block and its wires.

    ``loop`` is the loop that the block belongs to, the innermost one; ``""`` outside of loops.
    """

    block: DiagramBlock
    inputs: tuple[DiagramWire, ...]
    outputs: tuple[DiagramWire, ...]
    loop: str = ""
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram(Term):
    """The blocks of a stage, sources first, its loops, the tensor that it writes, the semiring.

    A loop is a region of the graph, whose index is its variable.  Reducers and sums of lanes add as
    the semiring does, and an empty reference is its zero.
    """

    blocks: tuple[Wired, ...]
    loops: tuple[Region, ...]
    result: str
    semiring: Semiring = PLUS_TIMES


PUBLISHED_KINDS = tuple(
    kind.value
    for kind in (
        BlockKind.SCAN,
        BlockKind.REPEAT,
        BlockKind.INTERSECT,
        BlockKind.UNION,
        BlockKind.COMPUTE,
        BlockKind.REDUCE,
        BlockKind.DROP,
        BlockKind.WRITE,
        BlockKind.ARRAY,
    )
)
"""The columns of [SAM, Table 1]."""

KINDS = (*PUBLISHED_KINDS, "locate", "parallelizer", "serializer", "flatten", "regroup")
"""All kinds of blocks.  A join of several inputs is one block."""


def block_counts(diagrams: Iterable[Diagram]) -> Mapping[str, int]:
    """The number of blocks of every kind in ``KINDS``; roots are not counted."""
    wired = (one for diagram in diagrams for one in diagram.blocks)
    found = Counter(kind for one in wired for kind in one.block.counted)
    return {kind: found[kind] for kind in KINDS}


_MEMORY = (BlockKind.SCAN, BlockKind.ARRAY, BlockKind.LOCATE)


def diagram_picture(diagram: Diagram) -> SvgPicture | None:
    """The blocks in layers, with their wires; ``None`` where there are too many."""
    senders = {
        wire.number: str(number)
        for number, wired in enumerate(diagram.blocks)
        for wire in wired.outputs
    }
    boxes, arrows = [], []
    for number, wired in enumerate(diagram.blocks):
        kind = wired.block.kind
        color = PALETTE[2 if kind in _MEMORY else 1 if kind is BlockKind.WRITE else 0]
        below = f"in loop {wired.loop}" if wired.loop else ""
        said = repr(wired.block)
        title = kind.value
        boxes.append(
            ChartBox(name=str(number), title=title, below=below, said=said[:300], color=color)
        )
        arrows += [
            ChartArrow(
                source=senders[wire.number],
                sink=str(number),
                said=f"{wire.kind.value} {wire.about}".strip(),
            )
            for wire in wired.inputs
            if wire.number in senders
        ]
    return layered_chart(f"the blocks that write {diagram.result}", boxes, arrows)
