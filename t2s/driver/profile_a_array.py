"""Designs on small arrays of the public tools: compile them, fill their memory, read their results.

A design of one graph becomes what ``t2s.triggered.compile`` returns: the assembly, and the
addresses of its arrays in memory.  ``backends/cgra_tia/profile_a`` refuses what it cannot express.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.design import Array, Design
from t2s.driver.recognize import design_of
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.graph import Graph

if TYPE_CHECKING:
    from t2s.backends.cgra_tia.profile_a import PublicDesign


@dataclass(frozen=True, kw_only=True)
class ProfileADesign:
    """A design, its graph, and its program."""

    source: Design
    graph: Graph
    compiled: PublicDesign

    def memory(self, inputs: Mapping[str, Any]) -> Array:
        """The initial memory of a run on some inputs (uint32)."""
        stage = next(self.source.stages(inputs))
        if stage.graph is not self.graph and stage.graph != self.graph:
            raise UserError(
                f"{self.graph.name!r} was compiled for other inputs",
                location=user_location(),
                expected="inputs from which the same graph follows",
                given="extents, matrices or tensors of another size or structure",
                hint="compile the design with these inputs",
            )
        arrays, _ = check_graph_inputs(self.graph, dict(stage.arrays), dict(stage.scalars))
        words: Array = self.compiled.memory.filled(arrays)
        return words

    def outputs(self, memory: Array) -> dict[str, Array]:
        """The results by name, from the final memory."""
        outputs: dict[str, Array] = self.compiled.memory.outputs(memory)
        return outputs

    @property
    def files(self) -> dict[str, str]:
        """The assembly, and the array's shape and tensors' addresses as JSON, by file name."""
        places = {"shape": self.compiled.shape, "starts": dict(self.compiled.memory.starts)}
        name = self.graph.name
        return {
            f"{name}.tia": self.compiled.text,
            f"{name}.memory.json": json.dumps(places) + "\n",
        }


def compiled_design(
    design: object, inputs: Mapping[str, Any] | None, shape: tuple[int, int] | None, seed: int
) -> ProfileADesign:
    """Compile a design for an array of a shape (``None``: a single PE)."""
    from t2s.backends.cgra_tia.profile_a import compile_public

    recognized = design_of(design)
    graph = recognized.only_stage(inputs, "triggered.compile").graph
    return ProfileADesign(
        source=recognized, graph=graph, compiled=compile_public(graph, shape, seed=seed)
    )
