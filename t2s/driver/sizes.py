"""The cycles of a design at many sizes, most of which need no lowering.

A design of other sizes mostly lowers to a graph that differs in numbers only
(``graph/family.py``).  So ``CyclesOfSizes`` lowers a design for some sizes, and makes the graphs of
others from these.  Sizes are *alike* if the same of them are single tiles, and the last tiles are
ragged in the same way; each kind has a family of its own, or none, and is then lowered every time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import gcd
from random import Random
from typing import Any

from t2s.core.errors import InternalError, T2SError, T2SWarning
from t2s.core.expr import Expr, Index, Parameter
from t2s.core.intervals import linear_form
from t2s.core.walk import Term, rewrite
from t2s.driver.func_design import FuncDesign
from t2s.driver.recognize import design_of
from t2s.driver.simulate import cycles, device_for
from t2s.func.collect import AnyFunc, needed_funcs, output_funcs
from t2s.func.func import RVar
from t2s.graph.family import GraphFamily, Parameters, family_of
from t2s.graph.graph import Graph
from t2s.simulator.devices import Device
from t2s.simulator.memory.spec import Dram
from t2s.simulator.program.build import take_as_verified
from t2s.simulator.report.errors import require_complete
from t2s.simulator.run import simulate_cycles
from t2s.spatial.directives.loops import Split, Tile

LOWERED_BEFORE = 8
"""Sizes of a kind that are lowered before a family is sought, which has to give their graphs."""

FITTED = 8
"""Other graphs, which a family is fitted to."""

MOST_CONFIRMED = 16
"""The most sizes whose graphs are kept, for a family that reaches further."""

CHECKED = 24
"""One in so many graphs of a family is lowered all the same, and compared."""

FEWEST_TILES = 32
"""A family reaches to so many tiles at least."""

Raggedness = tuple[tuple[bool, bool], ...]
"""For each level of tiles, whether one is empty at the end, and whether all others are whole."""

Kind = tuple[tuple[bool, Raggedness], ...]
"""For each size, whether it is a single tile, and how its last tile is ragged."""


@dataclass(kw_only=True)
class _Alike:
    """Sizes of one kind: the graphs that were lowered, and the family if there is one.

    ``unserved`` counts the sizes for which there was no graph of the family, and ``served`` has the
    cycles of those for which there was one.
    """

    lowered: dict[Parameters, Graph] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    family: GraphFamily | None = None
    unserved: int = 0
    served: list[tuple[dict[str, int], int]] = field(default_factory=list)


class CyclesOfSizes:
    """Call it with the sizes by name for the exact cycles, the number that ``t2s.cycles`` gives.

    Parameters
    ----------
    design, inputs, device, memory: as for ``t2s.cycles``; ``inputs`` are those other than sizes.
    steps: for each size, the elements of a tile, so that graphs depend on the number of tiles.
    """

    def __init__(
        self,
        design: AnyFunc | Sequence[AnyFunc],
        steps: Mapping[str, int],
        inputs: Mapping[str, Any] | None = None,
        *,
        device: str | Device = "ideal",
        memory: str | Dram | None = None,
    ) -> None:
        self.design = design_of(design)
        self.steps = dict(steps)
        inner = _tiles(output_funcs(design), self.steps)
        self.tiles = {name: (*inner[name], step) for name, step in self.steps.items()}
        self.inputs = dict(inputs or {})
        self.device = device_for(self.design, device, memory)
        self.kinds: dict[Kind, _Alike] = {}
        self.lowerings = 0
        self._random = Random(0)

    def __call__(self, sizes: Mapping[str, int]) -> int:
        graph = self.graph_of_family(sizes) if isinstance(self.design, FuncDesign) else None
        if graph is not None:
            scalars = {parameter.name for parameter in graph.parameters}
            known = {name: v for name, v in (self.inputs | dict(sizes)).items() if name in scalars}
            with suppress(T2SError):  # what is wrong is for the lowered design to say
                result = simulate_cycles(graph, parameters=known, device=self.device)
                taken = require_complete(result).cycles
                self.kinds[self._kind(sizes)].served.append((dict(sizes), taken))
                return taken
        taken = self._cycles_of_lowered(sizes)
        if isinstance(self.design, FuncDesign):
            lowered = self.kinds[self._kind(sizes)].lowered
            if len(lowered) < MOST_CONFIRMED:
                lowered[self._parameters(sizes)] = self._lowered(sizes)
        return taken

    def graph_of_family(self, sizes: Mapping[str, int]) -> Graph | None:
        """The graph for some sizes, but for locations; ``None`` if it has to be lowered."""
        parameters, kind = self._parameters(sizes), self._kind(sizes)
        alike = self.kinds.setdefault(kind, _Alike())
        for name, size in sizes.items():
            alike.most[name] = max(size, alike.most.get(name, 1))
        if alike.family is None or parameters not in alike.family:
            alike.unserved += 1
            if alike.unserved == LOWERED_BEFORE + 1:
                alike.family = self._family(kind, alike)
                alike.unserved = 0 if alike.family else alike.unserved
        family = alike.family
        if family is None or parameters not in family:
            return None
        graph = family.graph(parameters)
        if graph is None:
            return None
        if self._random.randrange(CHECKED) == 0 and not family.gives(
            parameters, self._lowered(sizes)
        ):
            self._give_up(alike)
            return None
        take_as_verified(graph, family.example)
        return graph

    def _give_up(self, alike: _Alike) -> None:
        """Drop the family of a kind that has other graphs as well, and check what it gave."""
        alike.family, alike.unserved = None, LOWERED_BEFORE + 2
        for sizes, taken in alike.served:
            if self._cycles_of_lowered(sizes) != taken:
                raise InternalError(f"the cycles of {self.design.name} were wrong at {sizes}")

    def _cycles_of_lowered(self, sizes: Mapping[str, int]) -> int:
        return cycles(self.design, {**self.inputs, **sizes}, device=self.device)

    def _lowered(self, sizes: Mapping[str, int]) -> Graph:
        self.lowerings += 1
        with warnings.catch_warnings():
            # of slow buffers, for example, at sizes that nobody asked for
            warnings.simplefilter("ignore", T2SWarning)
            return self.design.begin({**self.inputs, **sizes}).first.graph

    # kinds of sizes, and their families

    def _parameters(self, sizes: Mapping[str, int]) -> Parameters:
        return tuple(
            (sizes[name],) if step == 1 else (sizes[name], -(-sizes[name] // step))
            for name, step in self.steps.items()
        )

    def _kind(self, sizes: Mapping[str, int]) -> Kind:
        return tuple(
            (sizes[name] <= step, self._raggedness(name, -sizes[name] % step))
            for name, step in self.steps.items()
        )

    def _raggedness(self, name: str, missing: int) -> Raggedness:
        """How the last tile of a size is ragged in which so many elements are missing."""
        return tuple((missing >= tile, missing % tile == 0) for tile in self.tiles[name])

    def _family(self, kind: Kind, alike: _Alike) -> GraphFamily | None:
        """The family of the sizes of a kind; ``None`` if there is none.

        It may be that of another kind.  A new one is fitted to sizes that are drawn, since those
        that were asked for may be proportional to one another, and has to give the graphs of these.
        """
        drawn = self._drawn(kind, alike.most, Random(repr(kind)))
        made: dict[Parameters, Graph] = {}

        def make(count: int) -> None:
            for sizes in drawn:
                parameters = self._parameters(sizes)
                if parameters not in made and parameters not in alike.lowered:
                    with suppress(T2SError):  # too large for a counter, for example
                        made[parameters] = self._lowered(sizes)
                if len(made) >= count:
                    break

        make(2)
        known = alike.lowered | made
        families = (other.family for other in self.kinds.values() if other.family is not None)
        for family in families:
            if all(family.gives(*graph) for graph in known.items()):
                return family.over(known)
        make(FITTED)
        graphs = [*made.items(), *alike.lowered.items()]
        return family_of(graphs[:FITTED], graphs[FITTED:]) if len(graphs) > FITTED else None

    def _drawn(
        self, kind: Kind, most: Mapping[str, int], random: Random
    ) -> Iterator[dict[str, int]]:
        """Sizes of a kind: the corners of a range, and between them.

        The range reaches to twice the largest sizes that were asked for.  Sizes are about evenly
        spread over its orders of magnitude.
        """
        for number in range(4 * FITTED):
            drawn: dict[str, int] = {}
            for (name, step), (single, ragged) in zip(self.steps.items(), kind, strict=True):
                span = max(FEWEST_TILES, 2 * most[name] // step)
                where = number if number < 2 else random.random()
                tiles = 1 if single else 1 + int(span**where)
                missing = [x for x in range(step) if self._raggedness(name, x) == ragged]
                drawn[name] = tiles * step - random.choice(missing)
            yield drawn


def _tiles(outputs: Sequence[AnyFunc], steps: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """By size, the elements of all tiles that are smaller than a step."""
    tiles: dict[str, set[int]] = {name: set() for name in steps}
    for func in needed_funcs(outputs):
        factors = _factors(func.plan)
        for variable, extent in extents_of(func):
            form = linear_form(extent)
            for name, coefficient in ({} if form is None else form[0]).items():
                for factor in factors.get(variable, ()):
                    tile = factor // gcd(factor, coefficient)
                    if name in tiles and 1 < tile < steps[name]:
                        tiles[name].add(tile)
    return {name: tuple(sorted(found)) for name, found in tiles.items()}


def _factors(plan: Sequence[object]) -> dict[str, set[int]]:
    """By variable, the iterations of it in an iteration of each loop that it is split into."""
    units: dict[str, tuple[str, int]] = {}
    factors: dict[str, set[int]] = {}
    for directive in plan:
        match directive:
            case Split(loop=loop, outer=outer, inner=inner, factor=factor):
                splits = [(loop, outer, inner, factor)]
            case Tile(loops=loops, outers=outers, inners=inners, factors=by):
                splits = list(zip(loops, outers, inners, by, strict=True))
            case _:
                splits = []
        for loop, outer, inner, factor in splits:
            variable, unit = units.pop(loop, (loop, 1))
            units[outer], units[inner] = (variable, unit * factor), (variable, unit)
            factors.setdefault(variable, set()).add(unit * factor)
    return factors


def extents_of(func: AnyFunc) -> list[tuple[str, Expr]]:
    """The loops that a Func declares, with their extents as expressions of indices."""
    extents = [(bound.variable, bound.extent.node) for bound in func.bounds]
    symbols = [symbol for written in func.written for symbol in written.symbols.values()]
    extents += [(s.name, s.extent.node) for s in symbols if isinstance(s, RVar)]
    return [(name, _with_indices(extent)) for name, extent in extents]


def _with_indices(extent: Expr) -> Expr:
    """The expression with parameters as indices, of which there are linear forms."""

    def rule(term: Term) -> Term | None:
        return Index(name=term.name) if isinstance(term, Parameter) else None

    return rewrite(extent, rule)
