"""The chip as a picture: compute and memory units in a checkerboard, controllers around it.

The units of a pattern, a memory or a transfer have one color.  Where they are is schematic: the
grid is walked in serpentine lines, and each takes the next free units of its kind; no tool of the
real chip places them so.  The shuffle networks are a column beside the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from t2s.backends.capstan.unit_count import CHIP, ChipUnit, OwnedUnits
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture

_SIDE = 20
"""Tiles in a row and in a column: half of them compute, half of them store."""

_PITCH, _TILE = 16, 13
_LEFT, _TOP = 34, 40
_LEGEND = _LEFT + (_SIDE + 5) * _PITCH
_LINE = 16


def chip_picture(program: str, owned: tuple[OwnedUnits, ...]) -> SvgPicture:
    """The units that a program takes, by what they are for; the same bytes for the same program.

    Units that the chip does not have are not drawn; the line on top counts them.
    """
    owners = tuple(dict.fromkeys(one.owner for one in owned))
    colors = {owner: PALETTE[n % len(PALETTE)] for n, owner in enumerate(owners)}
    drawn = [
        _unit(unit, place, owner, colors)
        for unit in ChipUnit
        for place, owner in _placed(unit, owned)
    ]
    legend = _legend(owned, colors)
    height = max(_TOP + (_SIDE + 3) * _PITCH, _TOP + _LINE * (len(owners) + 2))
    used = {unit: sum(one.used for one in owned if one.unit is unit) for unit in ChipUnit}
    said = ", ".join(f"{used[unit]} of {CHIP[unit]} {unit.value}" for unit in ChipUnit)
    return picture(
        _LEGEND + 300,
        height,
        element("text", text=f"{program}: {said}", x=_LEFT - _PITCH, y=16),
        *drawn,
        *legend,
        title=f"units of the chip for {program}",
        description=f"{said}. Squares compute, circles are memories, bars at the border memory "
        "controllers, the column at the right shuffle networks. Their places are schematic.",
    )


def _placed(unit: ChipUnit, owned: tuple[OwnedUnits, ...]) -> Iterator[tuple[int, str | None]]:
    """The numbers of the units of a kind, and whose each is: in the order of the program."""
    owners = [one.owner for one in owned if one.unit is unit for _ in range(one.used)]
    for place in range(CHIP[unit]):
        yield place, owners[place] if place < len(owners) else None


def _unit(unit: ChipUnit, place: int, owner: str | None, colors: dict[str, str]) -> str:
    """One unit at its place, in the color of its owner."""
    fill = "none" if owner is None else colors[owner]
    said = hover(f"{unit.value} {place}: {owner or 'free'}")
    look: dict[str, Any] = {"fill": fill, "stroke": "currentColor", "stroke_opacity": 0.4}
    match unit:
        case ChipUnit.PCU | ChipUnit.PMU:
            x, y = _tile(place, unit is ChipUnit.PMU)
            if unit is ChipUnit.PCU:
                return element("rect", said, x=x, y=y, width=_TILE, height=_TILE, **look)
            half = _TILE / 2
            return element("circle", said, cx=x + half, cy=y + half, r=half, **look)
        case ChipUnit.MC:
            x, y, across = _border(place)
            width, height = (_TILE, 7) if across else (7, _TILE)
            return element("rect", said, x=x, y=y, width=width, height=height, **look)
        case ChipUnit.SHUFFLE:
            x, y = _LEFT + (_SIDE + 2) * _PITCH, _TOP + place * _PITCH
            return element("rect", said, x=x, y=y, width=2 * _TILE, height=_TILE, rx=5, **look)


def _tile(number: int, memory: bool) -> tuple[int, int]:
    """The corner of a compute or memory unit: serpentine lines over the squares of its color."""
    row, along = divmod(number, _SIDE // 2)
    if row % 2:
        along = _SIDE // 2 - 1 - along
    column = 2 * along + (row + memory) % 2
    return _LEFT + column * _PITCH, _TOP + row * _PITCH


def _border(number: int) -> tuple[int, int, bool]:
    """The corner of a memory controller in the ring, clockwise, and whether it lies across."""
    side, along = divmod(number, _SIDE)
    near, far = -10, _SIDE * _PITCH
    step = along * _PITCH
    back = (_SIDE - 1) * _PITCH - step
    x, y = ((step, near), (far, step), (back, far), (near, back))[side]
    return _LEFT + x, _TOP + y, side % 2 == 0


def _legend(owned: tuple[OwnedUnits, ...], colors: dict[str, str]) -> Iterator[str]:
    """A line for each owner: its color, and its units by kind."""
    for line, (owner, color) in enumerate(colors.items()):
        y = _TOP + line * _LINE
        used = {
            unit: sum(one.used for one in owned if (one.unit, one.owner) == (unit, owner))
            for unit in ChipUnit
        }
        said = ", ".join(f"{count} {unit.value}" for unit, count in used.items() if count)
        yield element("rect", x=_LEGEND, y=y, width=_TILE, height=_TILE, fill=color)
        yield element("text", text=f"{owner}: {said}", x=_LEGEND + 20, y=y + 11)
    y = _TOP + len(colors) * _LINE + 11
    yield element("text", text="places are schematic", x=_LEGEND, y=y, fill_opacity=0.6)
