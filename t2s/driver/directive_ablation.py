"""Ablation of directives: the cycles of a design with its first 0, 1, 2, ... directives."""

from __future__ import annotations

from copy import copy
from typing import Any

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.func_design import FuncDesign
from t2s.driver.recognize import design_of
from t2s.func.collect import output_funcs
from t2s.func.freeze import freeze
from t2s.graph.nodes import Role
from t2s.report.reasons import AblationStep
from t2s.simulator.devices import Device
from t2s.simulator.run import simulate_cycles
from t2s.spatial.directive import Directive
from t2s.spatial.lowering.to_graph import lower_to_graph
from t2s.spatial.pipeline import build_spatial
from t2s.spatial.schedule import ScheduledFunc

MOST_CYCLES = 10**12
"""Cycles after which a step is abandoned."""

MOST_STEPS = 64


def ablation_of(design: Any, device: Device, graph: str) -> tuple[AblationStep, ...]:
    """One step for the design without directives, and one for each prefix of its directives.

    Raises ``UserError`` for a design without directives or not made of Funcs, and if ``name``, the
    name of the simulated graph, is not that of its first output.
    """
    started = design_of(design)
    if not isinstance(started, FuncDesign):
        raise UserError(
            f"{started.name} has no ladder of directives",
            location=user_location(),
            expected="a Func with directives, or several",
            given=repr(design)[:200],
        )
    outputs = [func.name for func in output_funcs(started.design)]
    if graph not in outputs:
        raise UserError(
            "the ladder is that of another design",
            location=user_location(),
            expected=f"the design of this result, {graph}",
            given=", ".join(outputs),
        )
    steps = [(name, *entry) for name, func in started.funcs.items() for entry in func.journal]
    rungs = [_ablation_step(started, device, steps, 0)]
    rungs += [
        _ablation_step(started, device, steps, n) for n in range(1, min(len(steps), MOST_STEPS) + 1)
    ]
    return tuple(rungs)


Step = tuple[str, str, Directive]
"""The Func whose journal holds it, the Func that it is about, and the directive."""


def _ablation_step(
    design: FuncDesign, device: Device, steps: list[Step], count: int
) -> AblationStep:
    directive = steps[count - 1][2] if count else None
    text = "no directive" if directive is None else directive.text
    location = None if directive is None else directive.location
    try:
        funcs = {name: _with_first(func, steps[:count]) for name, func in design.funcs.items()}
        program = freeze(output_funcs(design.design), {})
        graph = lower_to_graph(build_spatial(program, funcs, {}))
        result = simulate_cycles(graph, device=device, max_cycles=MOST_CYCLES)
    except UserError as error:
        return AblationStep(
            directive=text, location=location, cycles=None, pes=None, problem=error.message
        )
    pes = sum(n.pe_count for n in result.nodes.values() if n.role is Role.COMPUTE)
    if not result.finished:
        problem = f"more than {result.cycles:,} cycles"
        return AblationStep(
            directive=text, location=location, cycles=None, pes=pes, problem=problem
        )
    return AblationStep(directive=text, location=location, cycles=result.cycles, pes=pes)


def _with_first(func: ScheduledFunc, steps: list[Step]) -> ScheduledFunc:
    """A Func with only those of its directives that are among the steps."""
    changed = copy(func)
    changed.journal = [(about, directive) for name, about, directive in steps if name == func.name]
    changed.plan = [directive for about, directive in changed.journal if about == func.name]
    return changed
