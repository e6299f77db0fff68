"""``simulate`` and ``cycles``: run a design cycle by cycle.

Consumers import heavy libraries, so they are imported inside the functions that need them:
``import t2s`` stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.renaming import by_name
from t2s.core.validate import checked_kind
from t2s.driver.design import ChipKernel, Design, Stage
from t2s.driver.page_writer import StageContext
from t2s.driver.recognize import design_of
from t2s.graph.arrays import check_graph_inputs

if TYPE_CHECKING:
    from t2s.driver.assignment_design import SparseResult
    from t2s.driver.capstan_kernel import CapstanKernel
    from t2s.driver.capstan_result import CapstanResult
    from t2s.driver.program_design import CompiledProgram
    from t2s.driver.program_result import ProgramResult
    from t2s.driver.recognize import DenseDesign, SparseDesign
    from t2s.graph.graph import Graph
    from t2s.report.product_report import ProductReport
    from t2s.report.reasons import AblationStep
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.random_stalls import RandomStalls
    from t2s.simulator.report.result import SimResult


class RunOptions(TypedDict, total=False):
    """The keywords of ``simulate``, as a type that editors can complete."""

    device: str | Device
    memory: str | Dram | None
    engine: str
    max_cycles: int | None
    progress: bool | None
    stalls: RandomStalls | None


@overload
def simulate(
    design: DenseDesign, inputs: Mapping[str, Any], **options: Unpack[RunOptions]
) -> SimResult: ...


@overload
def simulate(
    design: SparseDesign, inputs: Mapping[str, Any], **options: Unpack[RunOptions]
) -> SparseResult: ...


@overload
def simulate(
    design: CompiledProgram, inputs: Mapping[str, Any], **options: Unpack[RunOptions]
) -> ProgramResult: ...


@overload
def simulate(
    design: CapstanKernel, inputs: Mapping[str, Any], **options: Unpack[RunOptions]
) -> CapstanResult: ...


@overload
def simulate(design: object, inputs: Mapping[str, Any], **options: Unpack[RunOptions]) -> Any: ...


def simulate(
    design: object,
    inputs: Mapping[str, Any],
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
) -> Any:
    """Run a design cycle by cycle on a device and return outputs, cycles and stalls.

    ``design`` is a Func or a tuple of Funcs, a product of a sparse matrix, an assignment or a
    program of ``t2s.sparse``, or a graph; ``inputs`` holds arrays, matrices, tensors and scalars by
    name.  Returns a ``SimResult``, and for an assignment, whose stages run one after the other, a
    ``SparseResult`` with the tensor and the ``SimResult`` of each stage; for a program a
    ``ProgramResult`` with all tensors.  A ``CapstanKernel`` runs
    on its own chip, with HBM2E at 1800 GB/s if no ``memory`` is named, and gives a
    ``CapstanResult``.

    ``memory`` replaces the memory of the device: a ``Dram`` or the name of one (``"ddr4-2133"``,
    ``"ddr4-2133x2"``, ``"ddr4-2133x4"``, ``"hbm2e"``, ``"hbm2e-1800"``), or ``"ideal"``,
    constant latency and bandwidth.
    ``engine`` is ``"native"`` or ``"python"``; both give the same values and cycles.  A run that
    reaches ``max_cycles`` returns a partial result without outputs; for an assignment it raises
    ``CycleLimitError``, as there is no tensor.  The limit is for all graphs of a design together.
    Ctrl-C in a program raises ``ProgramInterrupted``, which has the statements that are ``done``.
    ``stalls`` holds up load and store units now and then, as ``t2s.RandomStalls`` says.  Raises
    ``UserError`` for inputs that do not fit, ``DeadlockError`` if the design stops before its end.
    A design that is too large for the device runs too; ``warnings`` of the result say so, and its
    text shows them.
    """
    given = {} if inputs is None else inputs
    options = _RunOptions(
        device=device,
        memory=memory,
        engine=engine,
        max_cycles=max_cycles,
        progress=progress,
        stalls=stalls,
    )
    return _run_of(design).result(given, options)


def cycles(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
) -> int:
    """The exact cycle count of a design.

    ``inputs`` are needed only where control depends on them: matrices, the tensors of an
    assignment, scalars in bounds.  The other arguments are those of ``simulate``.  A run that is
    cut short has no count: it raises ``CycleLimitError`` at ``max_cycles`` and ``RunInterrupted``
    at Ctrl-C, both with what was measured until then as ``result``.
    """
    options = _RunOptions(
        device=device, memory=memory, max_cycles=max_cycles, progress=progress, stalls=stalls
    )
    return _run_of(design).cycles(inputs, options)


def times(
    design: object, inputs: Mapping[str, Any] | None = None, *, device: str | Device = "ideal"
) -> Any:
    """The result that ``cycles`` counts: where all cycles went, and no outputs."""
    options = _RunOptions(device=device, memory=None, max_cycles=None, progress=False, stalls=None)
    return _StagedRun(design_of(design)).times(inputs, options)


def cycles_within(
    design: Design, inputs: Mapping[str, Any], *, device: str | Device, most: int | None
) -> int | None:
    """The exact cycles of a design; ``None`` as soon as it is certain that it takes more than so.

    Raises ``KeyboardInterrupt`` at Ctrl-C.
    """
    from t2s.simulator.limits import Limits
    from t2s.simulator.program.build import build_program
    from t2s.simulator.run import run_to_the_end

    target = device_for(design, device)

    def run(stage: Stage) -> SimResult:
        graph = graph_on(design, stage, target)
        program = build_program(graph, target, stage.arrays, stage.scalars, None, context_of(stage))
        limits = Limits(max_cycles=_left(most, stage), give_up=most is not None)
        result = run_to_the_end(program, "native", limits, None)
        if result.interrupted:
            raise KeyboardInterrupt
        if not result.finished:
            raise _TooMany
        return result

    try:
        found = int(design.begin(inputs).run(run).cycles)
    except _TooMany:
        return None
    return found if most is None or found <= most else None


class _TooMany(Exception):
    """A run takes more cycles than it may."""


@dataclass(frozen=True, kw_only=True)
class _RunOptions:
    """The arguments of ``simulate`` other than the design and its inputs."""

    device: str | Device
    memory: str | Dram | None
    engine: str = "native"
    max_cycles: int | None
    progress: bool | None
    stalls: RandomStalls | None


def _run_of(design: object) -> _ChipRun | _StagedRun:
    return _ChipRun(design) if isinstance(design, ChipKernel) else _StagedRun(design_of(design))


@dataclass(frozen=True)
class _ChipRun:
    """A run of a kernel on the chip that it was compiled for."""

    kernel: ChipKernel

    def result(self, inputs: Mapping[str, Any], options: _RunOptions) -> Any:
        _check_chip(self.kernel, options.device, options.stalls)
        return self.kernel.simulate(
            inputs,
            memory=options.memory,
            engine=options.engine,
            max_cycles=options.max_cycles,
            progress=options.progress,
        )

    def cycles(self, inputs: Mapping[str, Any] | None, options: _RunOptions) -> int:
        return int(self.result({} if inputs is None else inputs, options).cycles)


@dataclass(frozen=True)
class _StagedRun:
    """A run of a design's stages on a device, one after the other."""

    design: Design

    def result(self, inputs: Mapping[str, Any], options: _RunOptions) -> Any:
        from t2s.simulator.run import simulate as simulate_graph

        begun = self.design.begin(inputs)
        target = device_for(self.design, options.device, options.memory)

        def run(stage: Stage) -> SimResult:
            graph = graph_on(self.design, stage, target)
            return simulate_graph(
                graph,
                stage.arrays,
                parameters=stage.scalars,
                device=target,
                engine=options.engine,
                max_cycles=_left(options.max_cycles, stage),
                progress=options.progress,
                stalls=options.stalls,
                context=context_of(stage),
            )

        return self._within_limit(begun.run(run), options)

    def _within_limit(self, result: Any, options: _RunOptions) -> Any:
        if options.max_cycles is not None:
            error = self.design.limit_error(result, options.max_cycles)
            if error is not None:
                raise error
        return result

    def cycles(self, inputs: Mapping[str, Any] | None, options: _RunOptions) -> int:
        return int(self.times(inputs, options).cycles)

    def times(self, inputs: Mapping[str, Any] | None, options: _RunOptions) -> Any:
        """A complete run whose values are computed only where control depends on them."""
        from t2s.simulator.report.errors import require_complete
        from t2s.simulator.run import simulate as simulate_graph
        from t2s.simulator.run import simulate_cycles

        begun = self.design.without_values().begin(inputs)
        target = device_for(self.design, options.device, options.memory)
        common: dict[str, Any] = {
            "device": target,
            "progress": options.progress,
            "stalls": options.stalls,
        }

        def run(stage: Stage) -> SimResult:
            graph, scalars = graph_on(self.design, stage, target), stage.scalars
            limit = _left(options.max_cycles, stage)
            more = {**common, "max_cycles": limit, "context": context_of(stage)}
            if inputs is not None and graph.machines:
                return require_complete(
                    simulate_graph(graph, stage.arrays, parameters=scalars, **more)
                )
            if inputs is not None and stage.arrays:
                scalars = check_graph_inputs(graph, stage.arrays, scalars)[1]
            return require_complete(simulate_cycles(graph, parameters=scalars, **more))

        return self._within_limit(begun.run(run), options)


def _left(max_cycles: int | None, stage: Stage) -> int | None:
    """The cycles that a limit leaves for a stage: that of graphs before it is used up."""
    if max_cycles is None or not stage.before:
        return max_cycles
    return max(1, max_cycles - stage.before)


def _check_chip(kernel: ChipKernel, device: str | Device, stalls: RandomStalls | None) -> None:
    """Raise ``UserError`` for options that a kernel with its own chip cannot take."""
    name = device if isinstance(device, str) else device.name
    if name not in ("ideal", kernel.chip) or stalls is not None:
        raise UserError(
            f"{kernel!r} runs on its own chip, whose units nothing holds up at random",
            location=user_location(),
            expected=f"device={kernel.chip!r} or none, and no stalls",
            given=f"device={name!r}, stalls={stalls!r}",
            hint='memory="ddr4-2133x4" puts it on another memory',
        )


def context_of(stage: Stage) -> StageContext:
    """The context that a stage adds to the results of its runs."""
    return StageContext(
        graph=stage.graph,
        ends=stage.ends,
        reasons=stage.reasons,
        explain=stage.explain,
        ablation=_ablation,
    )


def _ablation(design: object, result: SimResult) -> tuple[AblationStep, ...]:
    """The contribution of each directive to the cycles of a result's design."""
    from t2s.driver.directive_ablation import ablation_of

    return ablation_of(design, result.device, result.graph)


def product_report(
    design: object,
    result: SimResult,
    inputs: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> ProductReport:
    """Break down the cycles of a sparse product: ``product_report(y, run, {"A": a})``.

    Padding, balance, stalls of reductions, and the fraction of the bound that the run reached, with
    the cause if that is below 90 %.  ``result`` is a run of ``design``, or of its graph, with the
    matrix.  Raises ``UserError`` for other designs and for runs that were cut short.
    """
    from t2s.driver.product_design import ProductDesign
    from t2s.driver.product_design import product_report as report_of_product
    from t2s.simulator.report.result import SimResult

    recognized = design_of(design)
    if not isinstance(recognized, ProductDesign):
        raise UserError(
            f"{design!r} is not a product of a sparse matrix",
            location=user_location(),
            expected="a Func that reads the values of a t2s.representation.MatrixParam",
            given=repr(design),
        )
    checked_kind(
        "the result", result, SimResult, f"what t2s.simulate({recognized.name}, ...) returned"
    )
    return report_of_product(recognized.func, by_name("product_report", inputs, keywords), result)


def graph_on(design: Design, stage: Stage, target: Device) -> Graph:
    """The graph of a stage, with the user's arrays in the device's memory if it has one."""
    return stage.graph if target.memory is None else design.in_memory(stage.graph)


def device_for(design: Design, device: str | Device, memory: str | Dram | None = None) -> Device:
    """The device of that name, with ``memory`` if given, checked for the design."""
    from t2s.simulator.devices import find_device

    target = design.on_device(find_device(device))
    return target if memory is None else target.with_memory(memory)
