"""A diagram: the blocks of a stage and the streams between them, before extents are known.

The blocks are those of the Sparse Abstract Machine (papers/001, section 3).  A stream of depth d is
a list of lists, d deep, of tokens: coordinates, references or values; depth 0 is a single token.
A reference may be empty (N): there is nothing below it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.walk import Term
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


class TokenKind(Enum):
    """What the tokens of a stream are."""

    COORDINATE = "coordinate"
    REFERENCE = "reference"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Term):
    """A stream: its number in the diagram, what its tokens are, and how deep it is nested.

    Values of several ``lanes`` are vectors.
    """

    number: int
    kind: TokenKind
    depth: int
    lanes: int = 1
    about: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(Term):
    """Base of the blocks.

    ``variable`` is the loop that the block belongs to, the innermost one; ``""`` outside of loops.
    """

    variable: str = ""
    location: SourceLocation | None = field(default=None, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root(Block):
    """The reference 0, once."""

    output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(Block):
    """Level scanner: the fiber of every reference.  An empty reference has an empty fiber."""

    tensor: str
    level: int
    reference: Stream
    coordinate: Stream
    child: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Block):
    """All coordinates of the variable for every token of ``reference``, whatever it is."""

    reference: Stream
    coordinate: Stream


class JoinKind(Enum):
    """Which coordinates a joiner lets through."""

    INTERSECT = "intersect"
    UNION = "union"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(Term):
    """An input of a joiner: coordinates and the streams that go with them."""

    coordinate: Stream
    references: tuple[Stream, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Block):
    """Intersecter or unioner of any number of inputs; ``outputs`` follow the references in order.

    A union gives empty references for the inputs that do not have the coordinate.
    """

    kind: JoinKind
    sides: tuple[Side, ...]
    coordinate: Stream
    outputs: tuple[Stream, ...]


class Manner(Enum):
    """How scanners and their joiner work together."""

    WORDS = "words"
    SKIPPING = "skipping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned(Term):
    """A level of a tensor and the references of its fibers."""

    tensor: str
    level: int
    reference: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanJoin(Block):
    """Scanners and the joiner of what they scan, in one of the manners of papers/001, 4.2 and 4.3.

    ``WORDS``: bitvector levels, joined word by word.  ``SKIPPING``: compressed levels, whose
    intersecter tells the scanners how far to go.
    """

    kind: JoinKind
    manner: Manner
    sides: tuple[Scanned, ...]
    coordinate: Stream
    outputs: tuple[Stream, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat(Block):
    """Every token of ``input``, once for each coordinate of its fiber in ``by``."""

    input: Stream
    by: Stream
    output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Locate(Block):
    """``reference * scale + coordinate * stride``: where a dense level has a coordinate.

    ``scale`` and ``stride`` are products of extents of variables.  Empty references stay empty.
    Without ``reference`` it is zero.
    """

    coordinate: Stream
    reference: Stream | None
    scale: tuple[str, ...]
    stride: tuple[str, ...]
    output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Block):
    """Array in load mode: the value at every reference, zero at an empty one.

    With an output of several lanes a reference is the number of a vector.
    """

    tensor: str
    reference: Stream
    output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(Block):
    """A constant for every token of ``by``."""

    value: float | int
    by: Stream
    output: Stream


class Lost(Enum):
    """When there is nothing to compute, instead of a value: what is not stored is N.

    ``NEVER``: N is a zero as any other.  A product has nothing if ``ANY`` operand is N, a sum if
    ``ALL`` are.
    """

    NEVER = "never"
    ANY = "any"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(Block):
    """ALU: an operator on two streams of values, or on a stream and a constant.

    Where there is nothing to compute it puts N, or zero unless ``optional``.
    """

    operator: Op
    left: Stream | float | int
    right: Stream | float | int | None
    output: Stream
    lost: Lost = Lost.NEVER
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLanes(Block):
    """ALU: the sum of the lanes of every vector, as a balanced tree."""

    input: Stream
    output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Block):
    """ALU: every value in all lanes of a vector."""

    input: Stream
    output: Stream


class Empty(Enum):
    """What a scalar reducer makes of an empty fiber; ``MISSING`` is N."""

    ZERO = "zero"
    DROP = "drop"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(Block):
    """Reducer: sums out the level above the ``coordinates``, which are the levels it keeps.

    ``by`` are the coordinates of the level above the one that is summed out.  It is needed where
    stop tokens alone do not tell a fiber that is empty from one that holds empty fibers only.
    """

    coordinates: tuple[Stream, ...]
    value: Stream
    outputs: tuple[Stream, ...]
    output: Stream
    empty: Empty = Empty.ZERO
    by: Stream | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Block):
    """Coordinate dropper: outer coordinates whose inner fiber is empty, and these fibers."""

    outer: Stream
    inner: Stream
    outer_output: Stream
    inner_output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class DropMissing(Block):
    """Value dropper: coordinates whose value is N, and these."""

    coordinate: Stream
    value: Stream
    coordinate_output: Stream
    value_output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal(Block):
    """Parallelizer: the items of streams of one shape, ``run`` of them to each lane in turn."""

    inputs: tuple[Stream, ...]
    lanes: tuple[tuple[Stream, ...], ...]
    run: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(Block):
    """Serializer: what lanes made of the items of ``order``, in their order."""

    order: Stream
    parts: tuple[Stream, ...]
    output: Stream
    run: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatten(Block):
    """Two levels of coordinates as one, ``outer * extent + inner``, and what is beside ``inner``.

    ``extent`` is that of a variable.
    """

    outer: Stream
    inner: Stream
    extent: str
    beside: tuple[Stream, ...]
    coordinate: Stream
    outputs: tuple[Stream, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regroup(Block):
    """What belongs to the items of two levels that were flattened, in the lists of ``like``."""

    input: Stream
    like: Stream
    output: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLevel(Block):
    """Level writer; ``empty_fibers``: those are stored too.

    ``above`` are the coordinates of the level above, if there is one, which a linked list needs.
    In a list of coordinates ``coordinate`` has been repeated for every entry below it.
    """

    tensor: str
    level: int
    coordinate: Stream
    above: Stream | None = None
    empty_fibers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteValues(Block):
    """Level writer of values, one after the other."""

    tensor: str
    value: Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter(Block):
    """Array in store mode: every value to its reference; the others stay zero."""

    tensor: str
    reference: Stream
    value: Stream


AnyBlock = (
    Root
    | Scan
    | Count
    | Join
    | ScanJoin
    | Repeat
    | Locate
    | Load
    | Fill
    | Compute
    | SumLanes
    | Spread
    | Reduce
    | Drop
    | DropMissing
    | Deal
    | Gather
    | Flatten
    | Regroup
    | WriteLevel
    | WriteValues
    | Scatter
)


class LoopKind(Enum):
    """How a loop finds its coordinates."""

    RANGE = "range"
    SCAN = "scan"
    INTERSECT = "intersect"
    UNION = "union"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopInfo(Term):
    """A loop of the stage: its variable, how it iterates, the loop around it."""

    name: str
    variable: str
    kind: LoopKind
    parent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram(Term):
    """The blocks of a stage, sources first, its loops, the tensor that it writes, the semiring.

    Reducers and sums of lanes add as the semiring does, and an empty reference is its zero.
    """

    blocks: tuple[AnyBlock, ...]
    loops: tuple[LoopInfo, ...]
    result: str
    semiring: Semiring = PLUS_TIMES
