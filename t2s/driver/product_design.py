"""Products with a sparse matrix in a representation, as designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from t2s.core.arrays import named_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.design import Array, Design, Stage, Stages
from t2s.driver.graph_design import split_scalars
from t2s.driver.product import (
    Product,
    bytes_moved,
    interpret_product,
    lower_product,
    parts_of,
    product_of,
    split_inputs,
)
from t2s.graph.graph import Graph
from t2s.graph.printer import print_graph
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.report.product_report import ProductFacts, ProductReport
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True)
class ProductDesign(Design):
    """A Func that reads the values of a ``MatrixParam``; its graph depends on the matrix."""

    func: ScheduledFunc

    @property
    def name(self) -> str:
        return self.func.name

    def lower(self, given: Mapping[str, Any]) -> Graph:
        return lower_product(self.func, self._matrix(given))[0]

    def loops(self, given: Mapping[str, Any]) -> str:
        return print_graph(self.lower(given))

    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        return lower_product(self.func, self._matrix(given))[1]

    def interpret(self, inputs: Mapping[str, Any]) -> Array:
        return interpret_product(self.func, named_inputs(inputs))

    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        matrix, others = split_inputs(self.func, named_inputs({} if inputs is None else inputs))
        product = product_of(self.func, matrix)
        graph, arrays = parts_of(product)
        arrays, scalars = split_scalars(graph, {**arrays, **others})
        explain = partial(_explain, facts_of(product))
        return (yield Stage(graph=graph, arrays=arrays, scalars=scalars, explain=explain))

    def _matrix(self, given: Mapping[str, Any]) -> object:
        return split_inputs(self.func, given)[0]


def _explain(facts: ProductFacts, result: SimResult) -> tuple[tuple[str, str], ...]:
    """The lines of a product's report."""
    from t2s.report.product_report import report_product

    report = report_product(facts, result)
    return () if report is None else report.lines


def product_report(func: ScheduledFunc, matrices: Mapping[str, Any], result: Any) -> ProductReport:
    """Break down the cycles of a product's run; see ``t2s.representation.product_report``."""
    from t2s.report.product_report import report_product

    product = product_of(func, split_inputs(func, matrices)[0])
    _check_run(func, product, result)
    report = report_product(facts_of(product), result)
    if report is None:
        raise UserError(
            f"the result is not a whole run of {func.name}",
            location=user_location(),
            expected=f"a run of {func.name} that finished, with this matrix",
            given=f"a run of {result.graph}: {result.ending.value}",
        )
    return report


def _check_run(func: ScheduledFunc, product: Product, result: SimResult) -> None:
    """Refuse a run of another design or matrix, for which the figures would be wrong."""
    from t2s.simulator.program.build import digest_of

    graph, arrays = parts_of(product)
    ran = result.program.graph
    names, wanted = [[node.name for node in each.nodes] for each in (ran, graph)]
    same = names == wanted and ran.tensors == graph.tensors
    if not same or result.program.digest not in ("", digest_of(graph, arrays)):
        raise UserError(
            f"the result is not a run of {func.name} with this matrix",
            location=user_location(),
            expected=f"a run of {func.name} with {product.storage!r}",
            given=f"a run of {result.graph}"
            + (" with another matrix" if same else ", of other parts or sizes"),
        )


def facts_of(product: Product) -> ProductFacts:
    """The properties of a product that its report needs."""
    from t2s.report.product_report import ProductFacts

    nodes, circuit = product.nodes, product.circuit
    reduction = nodes.reduction.name
    levels = (f"{reduction}_level_{level}" for level in range(1, circuit.node_count))
    return ProductFacts(
        padding=product.storage.padding,
        balance=product.storage.balance,
        moved=bytes_moved(product),
        decoded=product.decoded,
        multiplier=nodes.multiplier.name,
        decoder=nodes.decoder.name,
        vector=nodes.vector_loader.name,
        relay=f"{nodes.vector_feeder.name}_relay",
        banks=product.bank_firings,
        circuits=(reduction, *levels),
    )
