"""Find out which kind of design a user's object is.

A kind is imported only if the object may be of it, because each imports a whole front end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.design import Design
from t2s.func.func import TemporalFunc
from t2s.graph.graph import Graph
from t2s.graph.network import Network
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.driver.assignment_design import AssignmentDesign, Compiled
    from t2s.sparse_repr.notation.ir import Assignment
    from t2s.sparse_repr.notation.symbols import Tensor

    # arguments of verbs, by the kind of result that they lead to
    DenseDesign: TypeAlias = ScheduledFunc | Sequence[ScheduledFunc] | Graph | Network
    SparseDesign: TypeAlias = Tensor | Assignment | Compiled | AssignmentDesign


def design_of(given: object) -> Design:
    """The design of an object.  Raises ``UserError`` for anything else."""
    match given:
        case Design():
            return given
        case Graph() | Network():
            from t2s.driver.graph_design import GraphDesign

            return GraphDesign(given.graph() if isinstance(given, Network) else given)
        case TemporalFunc() | tuple() | list():
            from t2s.driver.func_design import FuncDesign, is_sparse

            if isinstance(given, ScheduledFunc) and is_sparse(given):
                from t2s.driver.product_design import ProductDesign

                return ProductDesign(given)
            return FuncDesign(given)
    from t2s.driver.assignment_design import assignment_design

    found = assignment_design(given)
    if found is not None:
        return found
    raise UserError(
        f"{given!r} is not a design",
        location=user_location(),
        expected="a Func, a tuple of Funcs, an assignment of t2s.sparse or a Graph",
        given=f"an object of type {given.__class__.__name__}",
    )
