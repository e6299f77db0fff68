"""Funcs as a design: one of them, or several outputs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from t2s.core.arrays import named_inputs
from t2s.core.errors import UnsupportedError
from t2s.core.validate import as_int
from t2s.driver.design import Array, Design, Stage, Stages, Values
from t2s.driver.graph_design import split_scalars
from t2s.func.collect import AnyFunc, needed_funcs, output_funcs, structural_parameters
from t2s.func.freeze import freeze
from t2s.func.func import TemporalFunc
from t2s.func.interpret import interpret_program
from t2s.func.ir import TemporalProgram
from t2s.func.overflow import warn_of_narrow_sums
from t2s.graph.graph import Graph
from t2s.report.reasons import LoopReason
from t2s.sparse_repr.representation import parameter as sparse
from t2s.spatial.ir import SpatialProgram
from t2s.spatial.lowering.to_graph import lower_to_graph
from t2s.spatial.pipeline import build_spatial
from t2s.spatial.printer import print_loop_nest
from t2s.spatial.schedule import ScheduledFunc


@dataclass(frozen=True)
class _Lowered:
    """A lowered program: temporal and spatial form, graph, and the reasons for its loops."""

    program: TemporalProgram
    spatial: SpatialProgram
    reasons: Mapping[tuple[str, str], LoopReason]

    @cached_property
    def graph(self) -> Graph:
        return lower_to_graph(self.spatial)


_MOST = 4
"""Cached programs per output, for example of several sizes."""

_LOWERED: WeakKeyDictionary[AnyFunc, dict[object, _Lowered]] = WeakKeyDictionary()
"""By the (first) output of a design, as verbs make a ``FuncDesign`` each.

Engines cache what they prepare by the identity of the graph, so a second verb on a design takes a
fraction of the first one's time.
"""


@dataclass(frozen=True)
class FuncDesign(Design):
    """A Func or several; integer parameters that shapes depend on become constants."""

    design: AnyFunc | Sequence[AnyFunc]

    @property
    def name(self) -> str:
        return "_".join(func.name for func in output_funcs(self.design))

    def lower(self, given: Mapping[str, Any]) -> Graph:
        return self._lowered(given).graph

    @property
    def funcs(self) -> dict[str, ScheduledFunc]:
        """All Funcs of the design, by name."""
        needed = needed_funcs(output_funcs(self.design))
        return {other.name: other for other in needed if isinstance(other, ScheduledFunc)}

    def loops(self, given: Mapping[str, Any]) -> str:
        return print_loop_nest(self._lowered(given).spatial)

    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        return {}

    def interpret(self, inputs: Mapping[str, Any]) -> Values:
        inputs = named_inputs(inputs)
        refuse_sparse(self.design)
        outputs = output_funcs(self.design)
        constants = constants_of(outputs, inputs)
        program, arrays = freeze(outputs, constants), without(inputs, constants)
        results = interpret_program(program, arrays)
        warn_of_narrow_sums(program, arrays)
        if isinstance(self.design, TemporalFunc):
            only: Array = results[self.design.name]
            return only
        return {output.name: results[output.name] for output in outputs}

    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        named = named_inputs({} if inputs is None else inputs)
        constants = constants_of(self.design, named)
        lowered, values = self._lowered(constants), without(named, constants)
        arrays, scalars = split_scalars(lowered.graph, values)
        result = yield Stage(
            graph=lowered.graph, arrays=arrays, scalars=scalars, reasons=lowered.reasons
        )
        # a run that only counts cycles, or was cut short, has no values to check
        if result.outputs:
            warn_of_narrow_sums(lowered.program, values)
        return result

    def _lowered(self, given: Mapping[str, Any]) -> _Lowered:
        """The program for these constants, frozen and lowered again only if something was added."""
        refuse_sparse(self.design)
        constants = {n: v if (number := as_int(v)) is None else number for n, v in given.items()}
        funcs = self.funcs
        # Definitions and directives are append-only, so their counts tell whether one was added;
        # hashing the program would walk its shared expressions exponentially often.
        state = tuple(
            (id(func), len(func.written), len(func.bounds), len(func.journal), len(func.plan))
            for func in funcs.values()
        )
        outputs = output_funcs(self.design)
        key = (tuple(map(id, outputs)), tuple(constants.items()), state)
        cache = _LOWERED.setdefault(outputs[0], {})
        if key not in cache:
            program = freeze(self.design, constants)  # proofs about domains: 10 ms or more
            spatial = build_spatial(program, funcs, constants)
            cache[key] = _Lowered(program, spatial, reasons_of(spatial, funcs))
            while len(cache) > _MOST:
                del cache[next(iter(cache))]
        return cache[key]


def reasons_of(
    program: SpatialProgram, funcs: Mapping[str, ScheduledFunc]
) -> dict[tuple[str, str], LoopReason]:
    """The reason for each loop of a design, with the line of its directive if there is one."""
    journal = [directive for func in funcs.values() for _, directive in func.journal]
    reasons: dict[tuple[str, str], LoopReason] = {}
    for kernel in program.kernels:
        for loop in kernel.loops:
            locations = (d.location for d in journal if d.text and d.text in loop.reason)
            location = next(locations, None)
            reasons[kernel.name, loop.name] = LoopReason(text=loop.reason, location=location)
    return reasons


def constants_of(design: object, inputs: Mapping[str, Any]) -> dict[str, int]:
    """The scalars that shapes depend on; all others are run-time inputs."""
    return {
        name: number
        for name in sorted(structural_parameters(output_funcs(design)))
        if (number := as_int(inputs.get(name))) is not None
    }


def without(inputs: Mapping[str, Any], constants: Mapping[str, int]) -> dict[str, Any]:
    """The inputs without those that became constants of a graph."""
    return {name: value for name, value in inputs.items() if name not in constants}


def is_sparse(design: object) -> bool:
    """Whether a design is a Func that reads a ``MatrixParam``."""
    if not isinstance(design, TemporalFunc):
        return False
    kinds = sparse.Values | sparse.DecodedCoordinate
    return any(isinstance(s, kinds) for w in design.written for s in w.symbols.values())


def refuse_sparse(design: object) -> None:
    """Raise ``UnsupportedError`` if a Func of a dense design reads a sparse matrix."""
    for func in needed_funcs(output_funcs(design)):
        if is_sparse(func):
            raise UnsupportedError(
                f"{func.name} is a product of a sparse matrix, which is a design of its own",
                location=func.written[-1].location,
                expected=f"{func.name} alone, to interpret, lower or simulate"
                if func is not design
                else f"interpret, lower or simulate of {func.name}",
                given="a design of several Funcs" if func is not design else "its loop nest",
                hint="let the next design read the result of this one as an input"
                if func is not design
                else "its hardware follows from the representation: no loop nest to print",
            )
