"""``Parameter``: a sparse matrix as an input of a program."""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.core.types import Type
from t2s.func.expression import Symbol
from t2s.sparse_repr.representation.build import build_storage
from t2s.sparse_repr.representation.chain import Chain, Representation, check_chain, dense
from t2s.sparse_repr.representation.inverse_map import InverseMap, inverse_map
from t2s.sparse_repr.representation.matrix import coordinates_of
from t2s.sparse_repr.representation.storage import Storage


class Parameter(Symbol):
    """A matrix in a representation: ``A = Parameter(Float(32), 2, CISR, name="A")``.

    ``representation`` is a ``Representation``, which may be defined later, or a chain.
    """

    kind = "Parameter"

    def __init__(
        self, type: Type, dimensions: int, representation: Representation | Chain, *, name: str
    ) -> None:
        super().__init__(name)
        if not isinstance(type, Type) or type.is_bool or dimensions != 2:
            raise UserError(
                f"Parameter {name} needs an element type and two dimensions",
                location=self.location,
                expected='for example Parameter(Float(32), 2, CISR, name="A")',
                given=f"{type}, {dimensions}",
            )
        if not isinstance(representation, Representation):
            check_chain(f"Parameter {name}", representation, self.location)
        self.type = type
        self.representation = representation

    @property
    def chain(self) -> Chain:
        """The chain of this matrix; raises ``UserError`` where it is not defined yet."""
        if isinstance(self.representation, Representation):
            return self.representation.chain
        return self.representation

    def dense(self) -> Chain:
        """The dense representation, where the chain of this matrix starts."""
        return dense()

    @property
    def decoder(self) -> InverseMap:
        """The inverse map of the chain; ``print`` shows it."""
        return inverse_map(self.chain.layout)

    def store(self, matrix: object) -> Storage:
        """The arrays of a matrix in this representation.

        ``matrix`` is a scipy.sparse matrix, a numpy array or a ``Storage``, with elements of
        exactly the type of the parameter.  Raises ``UserError`` for indices out of range, for
        entries out of order or twice at one place, and for representations that are too large.
        """
        if isinstance(matrix, Storage):
            matrix = matrix.coordinates()
        entries = coordinates_of(matrix, self.type, f"the matrix for {self.name}")
        return build_storage(self.chain.layout, entries, self.type, f"Parameter {self.name}")
