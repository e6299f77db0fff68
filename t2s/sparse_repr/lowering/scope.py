"""The state of the lowering at a place in a loop nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.graph.graph import Region, RegionKind
from t2s.sparse_repr.blocks.lists import DiagramBlock
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.lowering.diagram import DiagramWire, TokenKind, Wired
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.semiring import Semiring


class Blocks:
    """The blocks made so far, and the numbers of their streams.

    Those that follow are of a ``semiring``, if that is not the diagram's.
    """

    def __init__(self) -> None:
        self.blocks: list[Wired] = []
        self.loops: list[Region] = []
        self.semiring: Semiring | None = None
        self._streams = 0

    def stream(
        self,
        kind: TokenKind,
        depth: int,
        about: str = "",
        lanes: int = 1,
        axes: tuple[str, ...] = (),
    ) -> DiagramWire:
        """A new stream."""
        self._streams += 1
        return DiagramWire(
            number=self._streams, kind=kind, depth=depth, about=about, lanes=lanes, axes=axes
        )

    def like(self, stream: DiagramWire, depth: int | None = None) -> DiagramWire:
        """A new stream with tokens of the same kind."""
        deep = stream.depth if depth is None else depth
        return self.stream(stream.kind, deep, stream.about, stream.lanes, stream.axes)

    def add(
        self,
        block: DiagramBlock,
        inputs: Sequence[DiagramWire],
        outputs: Sequence[DiagramWire],
        loop: str,
        location: SourceLocation | None = None,
    ) -> None:
        """Append a block of a loop."""
        wired = Wired(
            block=block,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            loop=loop,
            semiring=self.semiring,
            location=location,
        )
        self.blocks.append(wired)

    def add_loop(self, variable: str, kind: RegionKind, parent: str | None) -> str:
        """Add a loop, under a name that is unique in the diagram."""
        name = NameSupply(loop.name for loop in self.loops).fresh(variable)
        self.loops.append(Region(name=name, index=variable, kind=kind, parent=parent))
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class NestOperand:
    """The state of an operand in the enclosing loops.

    Attributes
    ----------
    stream: its references (values, for a temporary that needs no more loops) at this depth.
    level: the next level of the tensor.
    missing: the reference may be empty here.
    together: operands of which at least one is not empty here, if ``missing``.
    lanes: elements of a vector, once the loop over its lanes has been entered.
    pending: of a temporary that is a fiber: the coordinates of the levels that no loop has entered
    yet, outermost first; ``stream`` are the values below the last of them.
    unsure: it is the value of a sum, and is zero also where there is nothing to sum.
    """

    stream: DiagramWire
    level: int = 0
    missing: bool = False
    together: frozenset[Access] = frozenset()
    lanes: int = 1
    pending: tuple[DiagramWire, ...] = ()
    unsure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLevel:
    """A loop of a nest: its variable, its name in the diagram, and its final coordinates.

    ``filled``: its fibers are never empty; ``covered``: they have all coordinates of the variable.
    """

    variable: str
    region: str
    coordinate: DiagramWire
    filled: bool
    covered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NestScope:
    """The loops around a statement, and the state of its operands.

    Attributes
    ----------
    loops: the loops around, outermost first.
    operands: by access, including accesses of temporaries.
    root: the reference 0 at depth 0.
    void: variables of extent 0.
    lane, width: the loop over the lanes of vectors, and their number, once it has been entered.
    around: the variables of the loops around the producer that this is in; none at the top.
    kept: the variables that the result of the statement has, in its order, and those around it.
    skip: whether scanners of the loop being entered skip coordinates that other sides lack.
    """

    program: ConcreteProgram
    blocks: Blocks
    root: Callable[[], DiagramWire]
    loops: tuple[LoopLevel, ...] = ()
    operands: dict[Access, NestOperand] = field(default_factory=dict)
    void: frozenset[str] = frozenset()
    around: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    skip: bool = False
    lane: str = ""
    width: int = 1

    @property
    def semiring(self) -> Semiring:
        """The semiring of what is computed here."""
        return self.blocks.semiring or self.program.semiring

    @property
    def depth(self) -> int:
        """Number of loops around."""
        return len(self.loops)

    @property
    def region(self) -> str:
        """The name of the innermost loop."""
        return self.loops[-1].region if self.loops else ""

    @property
    def driver(self) -> DiagramWire:
        """A stream with a token for every iteration: the innermost coordinates, or the root."""
        return self.loops[-1].coordinate if self.loops else self.root()

    def with_operand(self, access: Access, operand: NestOperand) -> NestScope:
        """The scope with one more operand."""
        return replace(self, operands={**self.operands, access: operand})
