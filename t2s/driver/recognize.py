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


def design_of(value: object) -> Design:
    """The design of an object.  Raises ``UserError`` for anything else."""
    match value:
        case Design():
            return value
        case Graph() | Network():
            from t2s.driver.graph_design import GraphDesign

            return GraphDesign(value.graph() if isinstance(value, Network) else value)
        case TemporalFunc() | tuple() | list():
            from t2s.driver.func_design import FuncDesign, is_sparse

            if isinstance(value, ScheduledFunc) and is_sparse(value):
                from t2s.driver.product_design import ProductDesign

                return ProductDesign(value)
            return FuncDesign(value)
    from t2s.driver.assignment_design import assignment_design

    design = assignment_design(value)
    if design is not None:
        return design
    from t2s.driver.program_design import CompiledProgram

    if isinstance(value, CompiledProgram):
        return value.design()
    raise UserError(
        f"{value!r} is not a design",
        location=user_location(),
        expected="a Func, a tuple of Funcs, an assignment or program of t2s.sparse or a Graph",
        given=f"an object of type {value.__class__.__name__}",
    )
