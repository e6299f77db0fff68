"""What is known at a place of a loop nest while it becomes a diagram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from t2s.core.location import SourceLocation
from t2s.sparse_repr.blocks.lists import DiagramBlock
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.lowering.diagram import LoopInfo, LoopKind, TokenKind, Wire, Wired
from t2s.sparse_repr.notation.ir import Access


class Blocks:
    """The blocks made so far, and the numbers of their streams."""

    def __init__(self) -> None:
        self.blocks: list[Wired] = []
        self.loops: list[LoopInfo] = []
        self._streams = 0

    def stream(self, kind: TokenKind, depth: int, about: str = "", lanes: int = 1) -> Wire:
        """A new stream."""
        self._streams += 1
        return Wire(number=self._streams, kind=kind, depth=depth, about=about, lanes=lanes)

    def like(self, stream: Wire, depth: int | None = None) -> Wire:
        """A new stream of the same tokens."""
        deep = stream.depth if depth is None else depth
        return self.stream(stream.kind, deep, stream.about, stream.lanes)

    def add(
        self,
        block: DiagramBlock,
        inputs: Sequence[Wire],
        outputs: Sequence[Wire],
        loop: str,
        location: SourceLocation | None = None,
    ) -> None:
        """Add a block of a loop after the others."""
        made = Wired(
            block=block,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            loop=loop,
            location=location,
        )
        self.blocks.append(made)

    def add_loop(self, variable: str, kind: LoopKind, parent: str | None) -> str:
        """A loop level; its name is unique in the diagram."""
        same = sum(loop.variable == variable for loop in self.loops)
        name = variable if not same else f"{variable}_{same + 1}"
        self.loops.append(LoopInfo(name=name, variable=variable, kind=kind, parent=parent))
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """How far an operand has come in the loops around.

    Attributes
    ----------
    stream: its references (values, for a temporary that needs no more loops) at this depth.
    level: the next level of the tensor.
    missing: the reference may be empty here.
    together: the operands of which at least one is not empty here, if ``missing``.
    lanes: elements of a vector, once the loop over its lanes has been entered.
    pending: of a temporary with a fiber: the coordinates that go with ``stream``, one level down.
    """

    stream: Wire
    level: int = 0
    missing: bool = False
    together: frozenset[Access] = frozenset()
    lanes: int = 1
    pending: Wire | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The loops around a statement, and where its operands are.

    Attributes
    ----------
    variables: the loops around, outermost first.
    regions: the names of these loops in the diagram.
    coordinates: the final coordinates of each loop.
    filled: for each loop, whether its fibers are never empty.
    covered: for each loop, whether it visits all coordinates of its variable.
    operands: by access; temporaries by an access too.
    root: the reference 0 at depth 0.
    void: variables of extent 0.
    lane, width: the loop over the lanes of vectors, and their number, once it has been entered.
    skip: whether scanners of the loop that is entered skip what others lack.
    """

    program: ConcreteProgram
    blocks: Blocks
    root: Callable[[], Wire]
    variables: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    coordinates: tuple[Wire, ...] = ()
    filled: tuple[bool, ...] = ()
    covered: tuple[bool, ...] = ()
    operands: dict[Access, Operand] = field(default_factory=dict)
    void: frozenset[str] = frozenset()
    skip: bool = False
    lane: str = ""
    width: int = 1

    @property
    def depth(self) -> int:
        """Number of loops around."""
        return len(self.variables)

    @property
    def region(self) -> str:
        """The name of the innermost loop."""
        return self.regions[-1] if self.regions else ""

    def with_operand(self, access: Access, operand: Operand) -> Scope:
        """The scope with one more operand."""
        return replace(self, operands={**self.operands, access: operand})
