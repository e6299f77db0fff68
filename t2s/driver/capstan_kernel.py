"""``CapstanKernel``: an assignment compiled to parallel patterns that fit the chip."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.files import write_texts
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.types import Float, Int, Type
from t2s.driver.assignment_design import warn_of_narrow_sums
from t2s.driver.design import ChipKernel
from t2s.patterns.interpret import PatternOutcome, interpret_patterns
from t2s.patterns.ir import PatternProgram
from t2s.patterns.printer import patterns_to_dot, print_patterns
from t2s.sparse_repr.binding import Binding, bind, stored_places
from t2s.sparse_repr.concrete.interpret import interpret_program
from t2s.sparse_repr.concrete.ir import ConcreteProgram, print_program
from t2s.sparse_repr.concrete.pattern_directives import SetEnvironment
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.evaluate import evaluate
from t2s.sparse_repr.notation.ir import Assignment, print_assignment
from t2s.sparse_repr.notation.legality import with_semiring
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.stardust.build import build_scheduled
from t2s.sparse_repr.stardust.host import (
    check_capacity,
    check_segments,
    host_arguments,
    host_arrays,
    made_tensor,
)
from t2s.sparse_repr.stardust.lower import LoweredPatterns, lower_to_patterns
from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.backends.capstan.machines.chip_times import CapstanTimes
    from t2s.backends.capstan.resources import ChipResources
    from t2s.driver.capstan_result import CapstanResult
    from t2s.graph.graph import Graph
    from t2s.simulator.memory.spec import Dram


TYPES = (Int(32), Float(32), Int(64), Float(64))
OWN_MEMORY = "hbm2e-1800"
"""The memory of the chip, if no other one is named."""


@dataclass(frozen=True, slots=True)
class _StartedPatterns:
    """What the patterns are given."""

    binding: Binding
    lowered: LoweredPatterns
    arguments: Mapping[str, Any]
    arrays: Mapping[str, Array]


class CapstanKernel(ChipKernel, NotebookDisplay):
    """An assignment for Capstan.

    Attributes
    ----------
    assignment: the index notation.
    program: the scheduled concrete index notation: loops, patterns, workspaces on chip.
    """

    chip = "capstan"

    def __init__(
        self,
        assignment: Assignment,
        schedule: Schedule | None = None,
        semiring: Semiring = PLUS_TIMES,
    ) -> None:
        self.assignment = with_semiring(assignment, semiring)
        fitted = fitted_program(self.assignment, schedule or Schedule(), TYPES[0])
        self.program: ConcreteProgram = fitted.program
        self._resources = fitted.resources
        self._lowered: dict[Type, LoweredPatterns] = {TYPES[0]: fitted.lowered}
        self._graphs: dict[tuple[Type, CapstanTimes], Graph] = {}

    def __repr__(self) -> str:
        return f"<CapstanKernel {print_assignment(self.assignment)}>"

    def __str__(self) -> str:
        return print_program(self.program)

    def _card(self) -> NotebookCard:
        """Its loops, its memories, and the units of the chip that it takes."""
        summary = (("statement", print_assignment(self.assignment)),)
        loops = Preformatted(title="", text=str(self))
        memories = Preformatted(title="memories", text=self.memories())
        units = self._resources.picture() if self._resources is not None else None
        title = repr(self)[1:-1]
        return NotebookCard(title=title, summary=summary, parts=(loops, memories, units))

    def lowered(self, type: Type) -> LoweredPatterns:
        """The patterns for a type of values, with the meaning of their arguments."""
        if type not in TYPES:
            raise UnsupportedError(
                f"Capstan computes no values of type {type}",
                location=user_location(),
                expected=f"one of {', '.join(map(str, TYPES))}",
                hint="compute in float32: interpret(inputs, type=t2s.Float(32))",
            )
        if type not in self._lowered:
            self._lowered[type] = lower_to_patterns(self.program, type)
        return self._lowered[type]

    def patterns(self, type: Type | None = None) -> PatternProgram:
        """The program of parallel patterns, for values of 32-bit integers if no type is given."""
        return self.lowered(TYPES[0] if type is None else type).program

    def print_patterns(self, type: Type | None = None) -> str:
        """The program of parallel patterns as text: each memory with the rule that chose it."""
        return print_patterns(self.patterns(type))

    def to_dot(self) -> str:
        """Nested patterns, memories, and transfers between them, as DOT text."""
        return patterns_to_dot(self.patterns())

    def memories(self) -> str:
        """A table of the memories: content, kind, and the rule that chose it."""
        rows = [("array", "memory", "rule")]
        rows += [
            (str(memory.holds or memory.name), memory.kind.value, memory.rule)
            for memory in self.patterns().declared()
        ]
        unique = list(dict.fromkeys(rows))
        wide = [max(len(row[column]) for row in unique) for column in range(2)]
        lines = [f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c}".rstrip() for a, b, c in unique]
        return "\n".join(lines) + "\n"

    def resources(self) -> ChipResources:
        """The units of the chip that the program takes: used, available, and which one limits.

        A table in a terminal and in a notebook; ``t2s/backends/capstan/resources.py`` has the
        rules.  Memory controllers and shuffle networks are those of [Stardust], compute and memory
        units are estimates.
        """
        if self._resources is None:
            raise backend_missing("resources()")
        return self._resources

    def spatial(self, type: Type | None = None) -> str:
        """The complete Spatial program, for values of 32-bit integers if no type is given."""
        if not backend_is_there():
            raise backend_missing("spatial()")
        (text,) = self._files(type).values()
        return text

    def emit(
        self,
        folder: str | os.PathLike[str],
        *,
        type: Type | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> tuple[Path, ...]:
        """Write the Spatial program into a folder (created if missing); returns the paths.

        With ``inputs`` also the files that it reads, its arguments, and the results of the
        patterns; the program then asserts that its results are equal.
        """
        if not backend_is_there():
            raise backend_missing("emit()")
        files = self._files(type) if inputs is None else self._checked_files(inputs, type)
        return write_texts(Path(folder), files, user_location())

    def _files(self, type: Type | None) -> dict[str, str]:
        from t2s.backends.capstan.emit import emit_spatial

        return emit_spatial(self.patterns(type))

    def _checked_files(self, inputs: Mapping[str, Any], type: Type | None) -> dict[str, str]:
        from t2s.backends.capstan.emit import data_files, emit_spatial

        started, outcome = self._run(inputs, type)
        program = started.lowered.program
        data = data_files(program, started.arrays, started.arguments, outcome)
        return {**emit_spatial(program, checked=True), **data}

    def bind(self, inputs: Mapping[str, Any], type: Type | None = None) -> Binding:
        """The inputs as the host stores them; ``t2s.sparse.simulate`` has the accepted kinds."""
        return bind(self.assignment, self.program, inputs, type)

    def run_patterns(self, inputs: Mapping[str, Any], *, type: Type | None = None) -> SparseTensor:
        """The result of the patterns, one statement after the other, as it is stored.

        Raises ``UserError`` for what does not fit on chip.
        """
        started, outcome = self._run(inputs, type)
        result = made_tensor(
            started.lowered, self.assignment, started.binding, outcome, started.arguments
        )
        warn_of_narrow_sums(self.assignment, started.binding, result)
        return result

    def graph(self, type: Type | None = None, times: CapstanTimes | None = None) -> Graph:
        """The units of the chip as a graph of machines, for 32-bit integers if no type is given.

        ``times`` are other latencies and sizes of the chip.

        Raises ``UnsupportedError``, with the user's line, for patterns that have no units yet.
        """
        if not backend_is_there():
            raise backend_missing("graph()")
        from t2s.backends.capstan.machines.chip_times import TIMES
        from t2s.backends.capstan.machines.lower import machines_of

        key = TYPES[0] if type is None else type, TIMES if times is None else times
        if key not in self._graphs:
            self._graphs[key] = machines_of(self.patterns(key[0]), key[1])
        return self._graphs[key]

    def simulate(
        self,
        inputs: Mapping[str, Any],
        *,
        memory: str | Dram | None = None,
        type: Type | None = None,
        engine: str = "native",
        max_cycles: int | None = None,
        progress: bool | None = None,
        times: CapstanTimes | None = None,
    ) -> CapstanResult:
        """Run the patterns on the chip's units, cycle by cycle.

        ``memory`` is a ``Dram``, the name of one (``"hbm2e-1800"``, which is taken if none is
        named, ``"ddr4-2133x4"``, ...), or ``"ideal"``: no latency and no limit.  Values are those
        of ``run_patterns``, bit by bit, and never depend on the memory; ``engine``, ``max_cycles``
        and ``progress`` are those of ``t2s.simulate``.  ``times`` are other latencies and sizes of
        the chip.  Raises ``UnsupportedError`` for patterns that have no units yet, and
        ``CycleLimitError`` at ``max_cycles``.
        """
        if not backend_is_there():
            raise backend_missing("simulate()")
        from t2s.backends.capstan.machines.chip_times import TIMES
        from t2s.driver.capstan_result import (
            CapstanResult,
            capstan_device,
            entries_of,
            memory_name,
            outcome_of,
            run_units,
        )

        chip = TIMES if times is None else times
        memory = OWN_MEMORY if memory is None else memory
        started = self._start(inputs, type)
        program = started.lowered.program
        run = run_units(
            self.graph(started.binding.type, chip),
            started.arrays,
            started.arguments,
            capstan_device(memory, chip),
            engine,
            max_cycles,
            progress,
        )
        outcome = outcome_of(program, run, started.arguments)
        tensor = made_tensor(
            started.lowered, self.assignment, started.binding, outcome, started.arguments
        )
        warn_of_narrow_sums(self.assignment, started.binding, tensor)
        return CapstanResult(
            tensor=tensor,
            memory=memory_name(memory),
            times=chip,
            run=run,
            program=program,
            entries=entries_of(started.binding.given.values()),
        )

    def _start(self, inputs: Mapping[str, Any], type: Type | None) -> _StartedPatterns:
        """Prepare the inputs.  Raises ``UserError`` if something does not fit on chip."""
        binding = self.bind(inputs, type)
        lowered = self.lowered(binding.type)
        arguments = host_arguments(lowered, binding)
        check_capacity(lowered.program, arguments)
        check_segments(lowered.program, binding)
        arrays = host_arrays(lowered.program, binding)
        return _StartedPatterns(binding, lowered, arguments, arrays)

    def _run(
        self, inputs: Mapping[str, Any], type: Type | None
    ) -> tuple[_StartedPatterns, PatternOutcome]:
        started = self._start(inputs, type)
        program = started.lowered.program
        return started, interpret_patterns(program, started.arrays, started.arguments)

    def interpret(
        self, inputs: Mapping[str, Any], *, level: str = "patterns", type: Type | None = None
    ) -> Array:
        """The result as a dense array: of the ``"notation"``, the ``"loops"``, the ``"patterns"``.

        Loops and patterns are interpreted, so use them for small inputs.
        """
        if level == "patterns":
            return self.run_patterns(inputs, type=type).to_dense()
        binding = self.bind(inputs, type)
        kind = binding.type.numpy
        dense = {name: value.to_dense() for name, value in binding.given.items()}
        places = stored_places(self.program, binding)
        match level:
            case "notation":
                result = evaluate(self.assignment, dense, kind, places)
            case "loops":
                result = interpret_program(self.program, dense, binding.extents, kind, places)
            case _:
                raise UserError(
                    f"there is no level {level!r}",
                    location=user_location(),
                    expected="notation, loops or patterns",
                )
        warn_of_narrow_sums(self.assignment, binding, result)
        return result


# Fitting programs of patterns to the chip, and refusing those that do not fit.

OUTER_FACTORS = (16, 12, 8, 4, 2, 1)
"""What ``outer_par="fit"`` tries, as in [Stardust, Table 6]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedProgram:
    """A scheduled program, its patterns for one type of values, and their resources.

    ``resources`` is ``None`` if ``t2s.backends.capstan`` is not installed: the patterns can be
    interpreted then, but not checked for fit.
    """

    program: ConcreteProgram
    lowered: LoweredPatterns
    resources: ChipResources | None


def fitted_program(assignment: Assignment, schedule: Schedule, type: Type) -> FittedProgram:
    """The program of a schedule, with the largest fitting ``outer_par`` for ``"fit"``.

    Raises ``UserError``, with the table of units, for a program that does not fit.
    """
    outer = _outer_par(schedule)
    if outer is None or outer.value is not None:
        fitted = _counted(assignment, schedule, type)
    else:
        for factor in OUTER_FACTORS:
            chosen = replace(outer, value=factor)
            directives = tuple(
                chosen if directive is outer else directive for directive in schedule.directives
            )
            fitted = _counted(assignment, Schedule(directives=directives), type)
            if fitted.resources is None:
                raise backend_missing("outer_par='fit'")
            if fitted.resources.fits:
                break
    if fitted.resources is not None and not fitted.resources.fits:
        _refuse(fitted, fitted.resources, outer)
    return fitted


def backend_is_there() -> bool:
    """Whether the folder ``t2s/backends/capstan`` is installed; patterns do not need it."""
    return find_spec("t2s.backends.capstan") is not None


def backend_missing(wanted: str) -> UnsupportedError:
    """The error if the backend is needed but not installed."""
    return UnsupportedError(
        f"{wanted} needs the Capstan backend, which is not installed",
        location=user_location(),
        expected="the package t2s.backends.capstan",
        hint="install t2s whole; without this backend kernel.interpret(inputs) runs the patterns",
    )


def _outer_par(schedule: Schedule) -> SetEnvironment | None:
    settings = (
        directive for directive in schedule.directives if isinstance(directive, SetEnvironment)
    )
    return next((directive for directive in settings if directive.name == "bp"), None)


def _counted(assignment: Assignment, schedule: Schedule, type: Type) -> FittedProgram:
    program = build_scheduled(assignment, schedule)
    lowered = lower_to_patterns(program, type)
    return FittedProgram(program=program, lowered=lowered, resources=_resources(lowered))


def _resources(lowered: LoweredPatterns) -> ChipResources | None:
    if not backend_is_there():
        return None
    from t2s.backends.capstan.resources import count_resources

    return count_resources(lowered.program)


def _refuse(
    fitted: FittedProgram, resources: ChipResources, directive: SetEnvironment | None
) -> None:
    over = [row for row in resources if row.used > row.available]
    table = "\n".join(f"            {line}".rstrip() for line in str(resources).splitlines())
    raise UserError(
        f"the program does not fit the chip with outer_par {resources.outer_par}",
        location=fitted.program.location if directive is None else directive.location,
        expected=", ".join(f"at most {row.available} {row.unit.value}" for row in over),
        given=table.lstrip(),
        hint='environment(outer_par="fit") takes the largest of '
        f"{', '.join(map(str, reversed(OUTER_FACTORS)))} that fits"
        if resources.outer_par > 1
        else "smaller factors in map(), or fewer tensors in one kernel",
    )
