"""``place``: a design on a coarse-grained reconfigurable array, as triggered instructions.

A ``Placement`` is a design like any other: ``t2s.simulate``, ``cycles``, ``verilate``,
``fit_depths`` and all other verbs accept it.  They do not run the original graph, but the one that
its text and placement file describe: each cell is a node or a PE of a node, each branch of a net a
channel with the latency of its wires (``backends/cgra_tia/lift``).

The source is a design that is one graph, or a folder that ``Placement.emit`` has written.  Refused,
with the user's line, are designs for which the fabric lacks operators, cells or wires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from t2s.core.arrays import named_inputs
from t2s.core.display import NotebookDisplay
from t2s.core.errors import UserError
from t2s.core.files import write_texts
from t2s.core.gc_pause import gc_paused
from t2s.core.location import user_location
from t2s.core.renaming import warn_renamed
from t2s.core.svg import SvgPicture
from t2s.core.validate import as_int, checked_folder, checked_kind
from t2s.driver.design import Array, Design, Stage, Stages, Values
from t2s.driver.graph_design import GraphDesign
from t2s.driver.recognize import design_of
from t2s.graph.graph import Graph

if TYPE_CHECKING:
    from t2s.backends.cgra_tia.fabric import CgraFabric
    from t2s.backends.cgra_tia.machine.profile_b import PlacedRun
    from t2s.backends.cgra_tia.netlist import PlacedDesign
    from t2s.backends.cgra_tia.place import Progress
    from t2s.driver.assignment_design import SparseResult
    from t2s.simulator.devices import Device
    from t2s.simulator.report.result import SimResult

MOST_TURNS = 16
"""The most operations per cell, which has as many instructions."""


@dataclass(frozen=True, repr=False)
class Placement(Design, NotebookDisplay):
    """A design whose cells have sites and whose nets have wires.

    ``placed`` is the content of the files.  ``source`` is the original design, which knows the
    user's inputs and results; ``None`` if the placement was read from files.
    """

    placed: PlacedDesign
    source: Design | None = None
    unplaced: Graph | None = field(default=None, repr=False)
    fused: bool = True

    @property
    def name(self) -> str:
        return self.placed.netlist.name

    @cached_property
    def graph(self) -> Graph:
        """The placed machine as a graph."""
        from t2s.backends.cgra_tia.lift.placed import lift_placed

        return lift_placed(self.placed, fused=self.fused)

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The assembly, the placement file and the picture, by file name."""
        from t2s.backends.cgra_tia.files import write_files

        return write_files(self.placed)

    def write(self, directory: str | Path) -> tuple[Path, ...]:
        """The old name of ``emit``."""
        warn_renamed("placement.write(folder)", "placement.emit(folder)")
        return self.emit(directory)

    def emit(self, directory: str | Path) -> tuple[Path, ...]:
        """Write the files into a folder (made if missing) and return their paths."""
        return write_texts(checked_folder("the directory", directory), self.files, user_location())

    def run(self, inputs: Mapping[str, Any], **options: Any) -> PlacedRun:
        """Interpret the instructions, cycle by cycle: the reference for ``t2s.simulate``.

        ``options`` are those of ``t2s.backends.cgra_tia.machine.profile_b.run_placed``.
        """
        from t2s.backends.cgra_tia.machine.profile_b import run_placed

        if self.source is None:
            return run_placed(self.placed, named_inputs(inputs), fused=self.fused, **options)
        arrays = _arrays(self._checked(next(self.source.stages(inputs))))
        return run_placed(self.placed, arrays, fused=self.fused, **options)

    def picture(self, group: str | None = None) -> SvgPicture:
        """Cells, units and nets on the fabric, or only the nets of one ``group``.

        ``groups`` has the names.  Raises ``UserError`` for an unknown one.
        """
        from t2s.backends.cgra_tia.files.picture import placement_svg

        if group is not None and group not in self.groups:
            _refuse_name("net group", group, self.groups)
        return SvgPicture(placement_svg(self.placed, group=group))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the channel arrays that nets are elements of."""
        return tuple(dict.fromkeys(net.group for net in self.placed.netlist.nets))

    def picture_of_tracks(self) -> SvgPicture:
        """The tracks in use between neighbors; red where none is left."""
        from t2s.backends.cgra_tia.files.picture import tracks_svg

        return SvgPicture(tracks_svg(self.placed))

    def picture_of_limit(self) -> SvgPicture:
        """The recurrence cycle that keeps the design from firing in every cycle."""
        from t2s.backends.cgra_tia.files.picture import recurrence_svg

        return SvgPicture(recurrence_svg(self.placed))

    def picture_of_run(
        self, run: PlacedRun | SimResult | SparseResult, kind: str = "busy"
    ) -> SvgPicture:
        """The share of cycles of one kind for each part in a run: blue for none, red for all.

        ``run`` is the result of ``Placement.run`` or of ``t2s.simulate`` on the placement.  The
        simulator counts similar parts together, so each of them has the mean.  ``kind`` is
        ``"busy"``, ``"starved"``, ``"blocked"``, ``"waiting"`` or ``"idle"``.  Raises ``UserError``
        for another kind, and for a run of another design.
        """
        from t2s.backends.cgra_tia.files.picture import heat_svg
        from t2s.backends.cgra_tia.machine.profile_b import SHARES, PlacedRun
        from t2s.driver.assignment_design import SparseResult
        from t2s.simulator.report.result import SimResult

        if kind not in SHARES:
            _refuse_name("kind of cycles", kind, SHARES)
        match run:
            case PlacedRun():
                shares = run.shares()
            case SimResult():
                shares = self._shares(run)
            case SparseResult(stages=(SimResult() as only,)):
                shares = self._shares(only)
            case _:
                expected = "a result of Placement.run, or of t2s.simulate of a placement"
                checked_kind("the run", run, PlacedRun, expected)
        if set(shares) != set(self.placed.sites):
            raise UserError(
                f"the run of {getattr(run, 'name', self.name)!r} is not of this placement of "
                f"{self.name!r}",
                location=user_location(),
                expected="a run of the same cells and units",
                given=f"one of {len(shares)} parts, and the placement has {len(self.placed.sites)}",
                hint="placement.picture_of_run(placement.run(inputs))",
            )
        return SvgPicture(heat_svg(self.placed, shares, kind))

    def _shares(self, result: SimResult) -> dict[str, dict[str, float]]:
        """The shares of cycles of each part, from those of the lifted nodes."""
        from t2s.backends.cgra_tia.lift.placed import parts_of_nodes
        from t2s.backends.cgra_tia.machine.profile_b import SHARES

        known = parts_of_nodes(self.placed)
        of_parts: dict[str, dict[str, float]] = {}
        for name, row in result.nodes.items():
            parts = known.get(name, (name,))
            cycles = max(result.cycles * len(parts), 1)
            shares = {kind: getattr(row, kind) / cycles for kind in SHARES}
            of_parts |= dict.fromkeys(parts, shares)
        return of_parts

    def lower(self, given: Mapping[str, Any]) -> Graph:
        return GraphDesign(self.graph).lower(given)

    def loops(self, given: Mapping[str, Any]) -> str:
        return GraphDesign(self.graph).loops(given)

    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        return {} if self.source is None else self.source.structure(given)

    def interpret(self, inputs: Mapping[str, Any]) -> Values:
        return (self.source or GraphDesign(self.graph)).interpret(inputs)

    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        if self.source is None:
            return (yield from GraphDesign(self.graph).stages(inputs))
        stages = self.source.stages(inputs)
        stage = self._checked(next(stages))
        result = yield Stage(graph=self.graph, arrays=_arrays(stage), scalars={})
        try:
            stages.send(result)
        except StopIteration as end:
            return end.value

    def _checked(self, stage: Stage) -> Stage:
        """The source's stage, checked to be the one that was placed."""
        if stage.graph is not self.unplaced and stage.graph != self.unplaced:
            raise UserError(
                f"{self.name!r} was placed for other inputs",
                location=user_location(),
                expected="inputs from which the same graph follows",
                given="extents, matrices or tensors of another size or structure",
                hint="place the design with these inputs",
            )
        return stage

    def on_device(self, device: Device) -> Device:
        if any(device.operator_latencies.values()) or device.conversion_latency:
            raise UserError(
                f"the latencies of {self.name!r} are those of its fabric, and not of a device",
                location=user_location(),
                expected='device="ideal", or a device without latencies of operators',
                given=f"device {device.name!r}",
                hint='memory="ddr4-2133" puts it on another memory',
            )
        return device

    def __str__(self) -> str:
        from t2s.backends.cgra_tia.files.summary import placement_map, placement_table

        return f"{placement_table(self.placed).text()}\n\n{placement_map(self.placed)}\n"

    def __repr__(self) -> str:
        return f"<Placement of {self.name} on {self.placed.fabric.name}>"

    def _repr_html_(self) -> str:
        from t2s.backends.cgra_tia.files.picture import placement_html

        return placement_html(self.placed)


def _refuse_name(what: str, name: object, names: Sequence[str]) -> NoReturn:
    raise UserError(
        f"unknown {what} {name!r}",
        location=user_location(),
        expected=f"one of {', '.join(names)}",
        given=repr(name),
    )


def _arrays(stage: Stage) -> dict[str, Any]:
    """The inputs of a placed design; scalars become arrays of one element."""
    return {**stage.arrays, **stage.scalars}


@gc_paused()
def place(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    fabric: str | CgraFabric | None = None,
    seed: int = 0,
    balanced: bool = True,
    contract: bool = True,
    interval: int = 1,
    progress: Progress | None = None,
) -> Placement:
    """Compile a design to triggered instructions, and place and route them on a fabric.

    Parameters
    ----------
    design: a Func or several, a product, an assignment or a graph, of one stage.
    inputs: what its graph depends on: constants, a matrix, the tensors of an assignment.
    fabric: ``"cgra8"``, ``"cgra16"``, ``"cgra32"`` or a ``CgraFabric``; ``None`` takes the smallest
        of these three that has enough cells.
    seed: chooses among placements; a seed gives the same files on every machine.
    balanced: whether all channels of an array get the latency of the longest one.
    contract: whether ``x + a * b`` of floats becomes one operation, which rounds once.
    interval: how many operations of a PE may share a cell, at most 16.  They take turns, so that
        the design fires once in that many cycles.
    progress: called with the current step, how much of it is done, and its total.

    Raises ``UnsupportedError`` for designs that the machine cannot express and ``UserError`` for
    those that do not fit, with the user's line [T2S-Tensor, sec. V.C].
    """
    from t2s.backends.cgra_tia.backend import placed_graph

    turns = as_int(interval)
    if turns is None or not 1 <= turns <= MOST_TURNS:
        raise UserError(
            "interval= must be the number of operations that share a cell",
            location=user_location(),
            expected=f"a whole number from 1 to {MOST_TURNS}",
            given=repr(interval),
            hint="interval=2 puts two operations of a PE on a cell, at half the rate",
        )
    source = design_of(design).with_small_joins()
    graph = source.only_stage(inputs, "place").graph
    placed = placed_graph(
        graph,
        None if fabric is None else find_fabric(fabric),
        seed=seed,
        balanced=balanced,
        contract=contract,
        interval=turns,
        progress=progress,
    )
    return Placement(placed, source=source, unplaced=graph)


def read_placement(directory: str | Path) -> Placement:
    """Read a design that ``Placement.emit`` or ``t2s.emit(..., "cgra_tia", ...)`` has written.

    Raises ``UserError``, with file, line and column, for anything else.
    """
    from t2s.backends.cgra_tia.files import read_files

    folder = checked_folder("the directory", directory)
    if not folder.is_dir():
        raise UserError(
            f"no such folder: {str(directory)!r}",
            location=user_location(),
            expected="a folder with a .tia file and a .placement.json file",
            given="a path to nothing, or to a file",
        )
    texts = {}
    for path in sorted(folder.iterdir()):
        if path.name.endswith((".tia", ".placement.json")):
            texts[path.name] = path.read_bytes().decode("utf-8", "replace")
    return Placement(read_files(texts))


def find_fabric(fabric: str | CgraFabric) -> CgraFabric:
    """The fabric of that name, or the fabric itself; a ``UserError`` lists the names."""
    from t2s.backends.cgra_tia.fabric import FABRICS, CgraFabric

    if isinstance(fabric, str) and fabric in FABRICS:
        return FABRICS[fabric]
    expected = f"one of {', '.join(FABRICS)}, or a CgraFabric"
    return checked_kind("the fabric", fabric, CgraFabric, expected)
