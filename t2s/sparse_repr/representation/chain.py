"""The user's chain of transformations; every step is checked at the line that writes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import T2SError, UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import is_name
from t2s.core.types import Float
from t2s.core.validate import as_int
from t2s.func.func import Var
from t2s.sparse_repr.representation import chain_steps as steps
from t2s.sparse_repr.representation.chain_layout import (
    BlockPadding,
    ChainLayout,
    Index,
    Length,
    MatrixDimension,
    NamedStructure,
    Policy,
    WholeExtent,
)
from t2s.sparse_repr.representation.encode import build_storage
from t2s.sparse_repr.representation.inverse_map import inverse_map
from t2s.sparse_repr.tensors.coordinates import Coordinates

Target = MatrixDimension | Var


@dataclass(frozen=True, kw_only=True, repr=False)
class Chain(NotebookDisplay):
    """A chain that starts from the dense matrix; every method returns a longer chain.

    Chains are values: they can be stored, shared between matrices, and extended in several ways.
    """

    layout: ChainLayout = field(default_factory=ChainLayout)
    written: tuple[str, ...] = ("dense()",)
    names: tuple[NamedStructure, ...] = ()
    location: SourceLocation = field(default_factory=user_location)

    def __repr__(self) -> str:
        return ".".join(self.written)

    def _card(self) -> NotebookCard:
        return _chain_card("Chain", self)

    def skew(self, dimension: MatrixDimension) -> Chain:
        """Add the diagonal of every value, ``j - i + rows - 1``, as a dimension ``Diagonals``.

        ``skew(Columns)`` replaces the columns.  It has to be the first step.
        """
        text = f"skew({dimension!r})"
        return self._then(text, steps.skew(self.layout, self._place(text), dimension))

    def pack(self, dimension: Target, *structure: NamedStructure) -> Chain:
        """Keep only nonzeros along a dimension, and record their positions.

        ``pack(Columns, Index(col_idx), Length(row_len))`` packs every row: ``Index`` records the
        column of each value, ``Length`` the number of values of each row.  A dimension that is
        already blocked keeps or drops whole blocks.  Packing the other dimension afterwards drops
        empty rows; without a length that separates the rows, it records the row of every value.
        """
        text = _call("pack", dimension, *structure)
        at = self._place(text)
        index = at.structure(structure, Index)
        length = at.structure(structure, Length)
        layout = steps.pack(self.layout, at, dimension, index, length)
        return self._then(text, layout, *structure)

    def block(
        self,
        dimension: Target,
        factor: int | WholeExtent,
        padding: BlockPadding,
        length: Length | None = None,
    ) -> Chain:
        """Divide a dimension into blocks of ``factor``.

        Along the packed dimension: every row is split into blocks of ``factor`` values;
        ``Length(b)`` records their number, ``Zero`` pads the last one, ``Longest`` pads all rows of
        a block of rows (or of the matrix) to the number of blocks of the longest.  Along the other
        dimension: ``factor`` rows become a block of rows, padded with empty rows.  Before ``pack``:
        blocks are dense, and packing keeps or drops them as a whole.
        """
        parts = () if length is None else (length,)
        text = _call("block", dimension, factor, padding, *parts)
        at = self._place(text)
        at.structure(parts, Length, (Length,))
        layout = steps.block(self.layout, at, dimension, factor, padding, length)
        return self._then(text, layout, *parts)

    def schedule(
        self,
        dimension: Target,
        machines: int,
        policy: Policy,
        padding: BlockPadding,
        index: Index | None = None,
    ) -> Chain:
        """Assign rows, columns or blocks to machines; the last step of a chain.

        All machines get the same number of values: ``padding`` fills their ends.  ``Index(job)``
        records the order of jobs, where it does not follow from lengths alone (``LongestFirst``).
        """
        parts = () if index is None else (index,)
        text = _call("schedule", dimension, machines, policy, padding, *parts)
        at = self._place(text)
        at.structure(parts, Index, (Index,))
        layout = steps.schedule(self.layout, at, dimension, machines, policy, padding, index)
        return self._then(text, layout, *parts)

    def _place(self, text: str) -> steps.StepPlace:
        return steps.StepPlace(
            text=text,
            before=repr(self),
            location=user_location(),
            known={part.name: part for part in self.names},
        )

    def _then(self, text: str, layout: ChainLayout, *names: NamedStructure) -> Chain:
        return replace(
            self, layout=layout, written=(*self.written, text), names=(*self.names, *names)
        )


class Representation(NotebookDisplay):
    """A named chain, which can be declared before it is defined.

    ``CISR = Representation("CISR")``, then ``CISR.define(A.dense().pack(...).schedule(...))``.
    """

    def __init__(self, name: str) -> None:
        self.location = user_location()
        if not isinstance(name, str) or not is_name(name):
            raise UserError(
                "a Representation needs a name that is a Python identifier",
                location=self.location,
                expected='a name such as "CISR"',
                given=repr(name),
            )
        self.name = name
        self._chain: Chain | None = None

    def __repr__(self) -> str:
        return f"Representation {self.name}"

    def _card(self) -> NotebookCard:
        if self._chain is None:
            return NotebookCard(title=repr(self), summary=(("chain", "not defined yet"),))
        return _chain_card(repr(self), self._chain)

    def define(self, chain: Chain) -> Representation:
        """Define the representation by a chain that ends with a schedule."""
        location = user_location()
        check_chain(f"Representation {self.name}", chain, location)
        if self._chain is not None:
            raise UserError(
                f"Representation {self.name} is defined twice",
                location=location,
                notes=((self._chain.location, "it was defined as this chain"),),
                hint="make another Representation",
            )
        self._chain = chain
        return self

    @property
    def chain(self) -> Chain:
        """The chain; raises ``UserError`` if it is not defined yet."""
        if self._chain is None:
            raise UserError(
                f"Representation {self.name} is used before it is defined",
                location=user_location(),
                expected=f"{self.name}.define(A.dense().pack(...).schedule(...)) above this line",
                notes=((self.location, f"{self.name} was declared here"),),
            )
        return self._chain


def _chain_card(title: str, chain: Chain) -> NotebookCard:
    """The steps of a chain, its decoder, and a small matrix as an example."""
    steps_text = Preformatted(title="", text="\n    .".join(chain.written))
    structure = ", ".join(part.name for part in chain.names) or "none"
    summary = (("structure", structure),)
    if chain.layout.schedule is None:
        return NotebookCard(title=title, summary=summary, parts=(steps_text,))
    decoder = Preformatted(title="how a place is found again", text=str(inverse_map(chain.layout)))
    try:
        stored = build_storage(chain.layout, _example(), Float(32), "the example")
    except T2SError:  # a chain for other matrices
        return NotebookCard(title=title, summary=summary, parts=(steps_text, decoder))
    example = replace(stored._card(), title="An example: this matrix in this representation")
    return NotebookCard(title=title, summary=summary, parts=(steps_text, decoder, example))


def _example() -> Coordinates:
    """A 16 x 16 band matrix with a long row and an empty row."""
    rows, columns = np.divmod(np.arange(256), 16)
    entries = (abs(rows - columns) <= 1) | (rows == 5) | ((7 * rows + 3 * columns) % 11 == 0)
    entries &= rows != 9
    modes = rows[entries], columns[entries]
    return Coordinates(shape=(16, 16), modes=modes, values=np.ones(entries.sum(), np.float32))


def dense_matrix() -> Chain:
    """The dense matrix: where every chain starts."""
    return Chain()


def check_chain(what: str, chain: object, location: SourceLocation) -> None:
    """Raise ``UserError`` unless ``chain`` is a complete chain."""
    if not isinstance(chain, Chain):
        raise UserError(
            f"{what} is defined by something that is not a chain",
            location=location,
            expected="for example A.dense().pack(...).schedule(...)",
            given=repr(chain),
        )
    if chain.layout.schedule is None:
        raise UserError(
            f"{what} does not end with a schedule",
            location=location,
            expected="a last step such as schedule(Rows, 4, ASAP, Zero)",
            given=repr(chain),
            hint="a schedule gives every value a machine and a position in its stream",
        )


def _call(name: str, *arguments: object) -> str:
    return f"{name}({', '.join(_shown(argument) for argument in arguments)})"


def _shown(argument: object) -> str:
    if isinstance(argument, Var):
        return argument.name
    number = as_int(argument)
    return repr(argument if number is None else number)
