"""What a chip is built for: sizes of tensors, and inputs and results that fit these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.driver.design import Design, Stage
from t2s.driver.recognize import design_of
from t2s.graph.graph import Graph

if TYPE_CHECKING:
    from t2s.backends.base import DeviceTimes
    from t2s.backends.verilog.machine_ranges import Ranges, Sizes
    from t2s.backends.verilog.technology import Technology


@dataclass(frozen=True, kw_only=True)
class BuiltFor:
    """The sizes that a chip is built for, and what follows from them.

    ``ranges`` are those of its machines, ``in_block_rams`` the tensors that their look-up tables
    have no room for.
    """

    design: Design
    sizes: Sizes
    ranges: Ranges
    in_block_rams: frozenset[str]

    def inputs_of(self, graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of the graph of the chip, made of those of the design.

        Raises ``UserError`` for inputs of other sizes than the chip is built for.
        """
        from t2s.backends.verilog.flow.machine_memories import in_block_rams

        stage = self.design.only_stage(inputs, "verify")
        if graph.machines and in_block_rams(stage.graph, self.in_block_rams) != graph:
            raise UserError(
                "the inputs have other extents than the chip",
                location=user_location(),
                expected="arrays of the shapes and types for which it was synthesized",
                hint="synthesize it with these inputs",
            )
        given = given_of(stage)
        self._check(graph, given, "inputs")
        return given

    def check_results(self, graph: Graph, outputs: Mapping[str, Array]) -> None:
        """Raise ``UserError`` for results for which the chip has no room."""
        self._check(graph, outputs, "results")

    def _check(self, graph: Graph, arrays: Mapping[str, Any], what: str) -> None:
        from t2s.backends.verilog.machine_sizes import not_within

        first = next(not_within(graph, self.sizes, arrays), None)
        if first is not None:
            raise UserError(
                f"the {what} do not fit the chip: {first}",
                location=user_location(),
                expected="tensors of at most the sizes for which it was synthesized",
                hint="synthesize it with the largest inputs",
            )


def check_inputs(graph: Graph, inputs: Mapping[str, Any] | None) -> None:
    """Raise ``UserError`` for machines without inputs: made-up ones decide nothing sensible."""
    if graph.machines and inputs is None:
        raise UserError(
            f"what {graph.name} does in a cycle depends on its inputs",
            location=user_location(),
            expected="the tensors that it reads",
            given="no inputs",
            hint='pass them by name, as in t2s.synthesize(design, part, {"a": array, ...})',
        )


def given_of(stage: Stage) -> dict[str, Any]:
    """The inputs of the graph of a stage: arrays and scalars."""
    return {**stage.arrays, **stage.scalars}


def placed(stage: Stage) -> tuple[Stage, frozenset[str]]:
    """The stage with large tensors of machines in block RAM, where these can be, and their names.

    A load of such a tensor takes the load latency of the device.
    """
    from t2s.backends.verilog.flow.machine_memories import for_block_rams, in_block_rams

    graph = stage.graph
    lengths = {
        tensor.name: len(stage.arrays[tensor.array])
        for tensor in graph.tensors
        if tensor.open and tensor.array in stage.arrays
    }
    names = for_block_rams(graph, lengths)
    return replace(stage, graph=in_block_rams(graph, names)), names


def built_for(
    design: object,
    stage: Stage,
    arrays: Mapping[str, Array],
    times: DeviceTimes,
    technology: Technology,
    in_block_rams: frozenset[str],
) -> BuiltFor:
    """The sizes of a chip for inputs and results like ``arrays``, with the times of a device.

    Raises ``UnsupportedError`` for machines whose tensors are too large.
    """
    from t2s.backends.base import refusal
    from t2s.backends.verilog.emit import NAME
    from t2s.backends.verilog.flow.machine_memories import too_large
    from t2s.backends.verilog.machine_ranges import ranges_of
    from t2s.backends.verilog.machine_sizes import sizes_of

    graph = stage.graph
    sizes = sizes_of(graph, arrays, stage.extents)
    if problems := too_large(graph, sizes.lengths, times, technology):
        raise refusal(NAME, graph, problems)
    return BuiltFor(
        design=design_of(design),
        sizes=sizes,
        ranges=ranges_of(graph, sizes),
        in_block_rams=in_block_rams,
    )
