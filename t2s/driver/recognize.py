"""Which kind of design an object of the user is."""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.design import Design
from t2s.driver.func_design import FuncDesign, is_sparse
from t2s.driver.graph_design import GraphDesign
from t2s.func.func import TemporalFunc
from t2s.graph.builder import Network
from t2s.graph.graph import Graph
from t2s.spatial.schedule import ScheduledFunc


def design_of(given: object) -> Design:
    """The design that an object is.  Raises ``UserError`` for what is none."""
    match given:
        case Design():
            return given
        case Graph():
            return GraphDesign(given)
        case Network():
            return GraphDesign(given.graph())
        case ScheduledFunc() if is_sparse(given):
            from t2s.driver.product_design import ProductDesign  # if there are such products

            return ProductDesign(given)
        case TemporalFunc() | tuple() | list():
            return FuncDesign(given)
    from t2s.driver.assignment_design import assignment_design  # index notation, if it is in use

    found = assignment_design(given)
    if found is not None:
        return found
    raise UserError(
        f"{given!r} is not a design",
        location=user_location(),
        expected="a Func, a tuple of Funcs, an assignment of t2s.sparse or a Graph",
        given=f"an object of type {given.__class__.__name__}",
    )
