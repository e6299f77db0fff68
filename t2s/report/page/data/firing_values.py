"""Values of single firings: the tokens that a PE took, and the values that it sent.

Results keep no values of firings, so they are computed again by the plain engine, from the inputs,
for windows near the beginning of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import TensorRole
from t2s.report.page.data.space_time import FiringTexts, Observed
from t2s.simulator.engine_python import watch_firings
from t2s.simulator.program.build import build_program

MOST_STEPS = 40_000
"""PEs times cycles that are computed again."""

_MOST_LANES = 4


def values_of(observed: Observed, inputs: Mapping[str, Any] | None) -> FiringTexts:
    """Texts of the firings in windows that end early, by PE and cycle; none without inputs.

    Raises ``UserError`` if an array of the graph is not among the inputs.
    """
    program = observed.program
    most = MOST_STEPS // max(1, program.pe_count)
    ends = [line.last for _, line in observed.lines if line.is_exact and line.last <= most]
    if inputs is None or not ends:
        return {}
    given = named_inputs(inputs)
    arrays = {t.array for t in program.graph.tensors if t.role is TensorRole.INPUT}
    missing = sorted(arrays - set(given))
    if missing:
        raise UserError(
            f"the report has no {missing[0]} to show values with",
            location=user_location(),
            expected=f"inputs with {', '.join(sorted(arrays))}",
            given=", ".join(given) or "no inputs",
            hint="without inputs= the page shows loop indices and no values",
        )
    graph = program.graph
    built = build_program(
        graph, program.device, {name: given[name] for name in arrays}, program.parameters
    )
    texts: dict[tuple[int, int], str] = {}

    def told(pe: int, cycle: int, taken: Mapping[str, Array], sent: Mapping[str, Array]) -> None:
        texts[pe, cycle] = f"{_said('took', taken)}{_said('sent', sent)}".removeprefix("; ")

    watch_firings(replace(program, inputs=built.inputs), max(ends), told)
    return texts


def _said(verb: str, tokens: Mapping[str, Any]) -> str:
    found = [f"{name} {_number(value)}" for name, value in tokens.items() if value is not None]
    return f"; {verb} {', '.join(found)}" if found else ""


def _number(value: Any) -> str:
    """A value, or the first lanes of a vector; machines send a value with its tag."""
    if isinstance(value, tuple):
        return " tag ".join(_number(part) for part in value)
    lanes = np.asarray(value).reshape(-1).tolist()
    shown = [f"{one:.6g}" if isinstance(one, float) else str(one) for one in lanes[:_MOST_LANES]]
    more = ", …" if len(lanes) > _MOST_LANES else ""
    return shown[0] if len(lanes) == 1 else f"[{', '.join(shown)}{more}]"
