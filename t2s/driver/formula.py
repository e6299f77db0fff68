"""``cycles_formula``: the cycles of a design as a formula of its sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from t2s.core.errors import UserError
from t2s.core.intervals import linear_form
from t2s.core.location import user_location
from t2s.core.validate import as_int, checked_list
from t2s.driver.recognize import design_of
from t2s.driver.simulate import cycles, device_for
from t2s.driver.sizes import CyclesOfSizes, extents_of
from t2s.func.collect import AnyFunc, needed_funcs, output_funcs, structural_parameters
from t2s.func.func import Param
from t2s.spatial.directives.loops import Split, Tile

if TYPE_CHECKING:
    from t2s.explore.formula import CyclesFormula, NoFormula
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram

_TILES = 1000
"""About as many tiles, of all sizes together, tell whether memory limits a design."""


def cycles_formula(
    design: AnyFunc | Sequence[AnyFunc],
    sizes: Sequence[Param],
    inputs: Mapping[str, Any] | None = None,
    *,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    steps: Mapping[str, int] | None = None,
    checks: int = 10,
) -> CyclesFormula:
    """The cycles of a design as a formula of its sizes, from exact runs of small sizes.

    Parameters
    ----------
    design: a Func, or several.
    sizes: integer ``Param`` objects in the bounds of the design.
    inputs: its other scalars, as for ``t2s.cycles``.
    device, memory: as for ``t2s.cycles``.
    steps: by size, the elements of a tile, if not those that ``split`` and ``tile`` make.
    checks: sizes in whole tiles that the formula is compared with, and as many with ragged tiles.

    Returns a ``CyclesFormula``: ``formula(n=1000)`` is the count for a size, ``formula.expression``
    a sympy expression, and its text says for which sizes it holds.  Raises ``UserError``, with a
    size for which the closest candidate is wrong, if no formula holds, and where the bandwidth of
    memory limits the design: what units get of it does not repeat from tile to tile.
    """
    from t2s.explore.formula import CyclesFormula, fit_formula

    outputs = output_funcs(design)
    names = _names(outputs, sizes)
    tiles = _steps(outputs, names) | _checked_steps(names, steps or {})
    if (as_int(checks) or 0) < 1:
        raise UserError(
            "checks= must be a positive integer",
            location=user_location(),
            expected="how many sizes the formula is compared with",
            given=repr(checks),
        )
    others = dict(inputs or {})
    count = CyclesOfSizes(design, tiles, others, device=device, memory=memory)
    target = device_for(design_of(design), device, memory)
    unlimited = replace(target, memory=None, memory_bytes_per_second=None)

    def free(values: Mapping[str, int]) -> int:
        return cycles(design, {**others, **values}, device=unlimited)

    name = "_".join(func.name for func in outputs)
    if target != unlimited:
        _check_memory(name, target, tiles, count, free)
    fitted = fit_formula(count, tiles, design=name, device=target.name, checks=checks)
    if isinstance(fitted, CyclesFormula):
        return fitted
    raise _no_formula(name, target, fitted, free(fitted.sizes))


def _names(outputs: Sequence[AnyFunc], sizes: Sequence[Param]) -> list[str]:
    """The names of the sizes, which the bounds of the design must use."""
    checked = checked_list("sizes", sizes, Param, "a list of integer t2s.Param objects")
    names = [size.name for size in checked]
    structural = sorted(structural_parameters(outputs))
    if not names or len(set(names)) < len(names) or not set(names) <= set(structural):
        raise UserError(
            "sizes= must name different Params of the design's bounds",
            location=user_location(),
            expected=f"some of {', '.join(structural)}" if structural else "Params in its bounds",
            given=", ".join(names) or "no sizes",
            hint='n = t2s.Param(t2s.Int(32), name="n") declares a size for bound and RDom',
        )
    return names


def _checked_steps(names: Sequence[str], steps: Mapping[str, int]) -> dict[str, int]:
    checked = {name: as_int(step) or 0 for name, step in steps.items()}
    if not set(checked) <= set(names) or any(step < 1 for step in checked.values()):
        raise UserError(
            "steps= must map names of sizes to positive integers",
            location=user_location(),
            expected=f"names among {', '.join(names)}",
            given=repr(dict(steps)),
        )
    return checked


def _steps(outputs: Sequence[AnyFunc], names: Sequence[str]) -> dict[str, int]:
    """The elements of a tile along each size: ``split`` and ``tile`` divide the loops it bounds."""
    steps = dict.fromkeys(names, 1)
    for func in needed_funcs(outputs):
        factors = _tiles(func.plan)
        for variable, extent in extents_of(func):
            form = linear_form(extent)
            for name, coefficient in (form or ({}, 0))[0].items():
                if name in steps:
                    tile = factors.get(variable, 1)
                    steps[name] = lcm(steps[name], tile // gcd(tile, coefficient))
    return steps


def _tiles(plan: Sequence[object]) -> dict[str, int]:
    """The iterations of a variable in one iteration of the outermost loop it is split into."""
    origins: dict[str, str] = {}
    tiles: dict[str, int] = {}
    for directive in plan:
        match directive:
            case Split(loop=loop, outer=outer, factor=factor):
                splits = [(loop, outer, factor)]
            case Tile(loops=loops, outers=outers, factors=factors):
                splits = list(zip(loops, outers, factors, strict=True))
            case _:
                splits = []
        for loop, outer, factor in splits:
            variable = origins.pop(loop, loop)
            origins[outer] = variable
            tiles[variable] = tiles.get(variable, 1) * factor
    return tiles


def _check_memory(
    name: str,
    device: Device,
    tiles: Mapping[str, int],
    count: Callable[[Mapping[str, int]], int],
    free: Callable[[Mapping[str, int]], int],
) -> None:
    """Refuse a design that takes longer for further tiles than without the limits of memory."""
    few = round(_TILES ** (1 / len(tiles)))
    sizes = [{size: more * step for size, step in tiles.items()} for more in (few, few + few // 2)]
    taken, least = ([run(values) for values in sizes] for run in (count, free))
    if taken[1] - taken[0] != least[1] - least[0]:
        at = ", ".join(f"{size}={value}" for size, value in sizes[1].items())
        raise _shared_memory(name, device, at, taken[1], least[1])


def _shared_memory(name: str, device: Device, at: str, taken: int, free: int) -> UserError:
    return UserError(
        f"the cycles of {name} on {device.name} have no formula: memory is shared",
        location=user_location(),
        expected="a design that the bandwidth of memory does not limit",
        given=f"{taken:,} cycles at {at}, and {free:,} without limits of memory",
        hint="units compete for memory, which does not repeat from tile to tile; t2s.cycles counts "
        "single sizes",
    )


def _no_formula(name: str, device: Device, failure: NoFormula, free: int) -> UserError:
    """The error; memory is the cause if the counterexample is faster without its limits."""
    at = ", ".join(f"{size}={value}" for size, value in failure.sizes.items())
    if free < failure.cycles:
        return _shared_memory(name, device, at, failure.cycles, free)
    return UserError(
        f"the cycles of {name} on {device.name} have no formula",
        location=user_location(),
        expected="a polynomial in numbers of tiles that agrees with exact runs",
        given=f"{failure.cycles:,} cycles at {at}, where the closest one has {failure.predicted:,}",
        hint="steps= sets the elements of a tile of a size; t2s.cycles counts single sizes",
    )
