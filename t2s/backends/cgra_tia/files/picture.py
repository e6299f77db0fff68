"""Pictures of placed designs: the fabric, its cells, the units around it, and the nets.

In goes a ``PlacedDesign``, out comes SVG text without scripts and without anything loaded from
elsewhere; all texts in it are escaped.  What a cell is shows as its shape (squares have an FMA,
circles are control cells, triangles stream units), its node as its color.

A net is a line along its wires, with the color of its group, on a track of its own.  Behind the
lines the wires are as wide as they have tracks in use, and red where none is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.files.summary import (
    LARGEST_MAP,
    Wire,
    node_of,
    nodes_of,
    placement_table,
    tracks_of,
    wires_of,
)
from t2s.backends.cgra_tia.netlist import NetCell, PlacedDesign, Provenance, Site, StreamUnit
from t2s.backends.cgra_tia.place.buffer_sizing import RateCause, rate_limit
from t2s.backends.cgra_tia.place.sites import parts_of
from t2s.backends.cgra_tia.text.printer import print_instruction
from t2s.core.names import one_line
from t2s.core.svg import element, hover

_PITCH, _SIZE, _MARGIN = 44, 20, 30
"""Pixels from cell to cell, of a cell, and around the fabric, where the units are."""

_TRACK = 2.5
"""Pixels from track to track."""

_FULL = "#d22"
_PLAIN = "currentColor"

Point = tuple[float, float]
Fill = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What a picture shows: the fill of a part by name, more lines of its title, nets, wires.

    ``nets`` are the names of those that are drawn; ``busy`` the wires with the nets on them;
    ``caption`` is a line below that says what the colors mean.
    """

    fill: Fill
    titles: Mapping[str, str]
    nets: Collection[str]
    busy: Mapping[Wire, list[str]]
    caption: str = ""


def placement_svg(design: PlacedDesign, *, group: str | None = None) -> str:
    """The whole design; or with a ``group`` the nets of that group alone."""
    names = [net.name for net in design.netlist.nets if group in (None, net.group)]
    busy = tracks_of(design) if group is None else {}
    caption = "" if group is None else f"{len(names)} nets of {group}"
    look = _Look(fill=_by_node(design), titles={}, nets=names, busy=busy, caption=caption)
    return _drawn(design, look)


def tracks_svg(design: PlacedDesign) -> str:
    """How many tracks are in use between neighbors."""
    fill = _by_node(design)
    caption = f"tracks between neighbors as wide as many are taken; red: all {design.fabric.tracks}"
    busy = tracks_of(design)
    return _drawn(design, _Look(fill=fill, titles={}, nets=(), busy=busy, caption=caption))


def heat_svg(
    design: PlacedDesign, shares: Mapping[str, Mapping[str, float]], kind: str = "busy"
) -> str:
    """What parts did in a run: for the name of each the shares of its cycles, 0 to 1, by kind.

    The color goes from blue (none of its cycles were of that kind) to red (all were).  Parts that
    are not in ``shares`` have none.
    """

    def fill(name: str) -> str:
        share = shares.get(name, {}).get(kind)
        return (
            "none" if share is None else f"hsl({round(240 - 240 * min(max(share, 0), 1))},70%,55%)"
        )

    titles = {
        name: ", ".join(f"{what} {share:.1%}" for what, share in kinds.items())
        for name, kinds in shares.items()
    }
    caption = f"{kind} cycles: blue none of them, green half, red all"
    return _drawn(design, _Look(fill=fill, titles=titles, nets=(), busy={}, caption=caption))


def recurrence_svg(design: PlacedDesign) -> str:
    """The recurrence cycle that limits the initiation interval; no nets if there is none."""
    limit = rate_limit(design)
    parts, nets = ((), ()) if limit is None else (set(limit.parts), limit.nets)
    by_node = _by_node(design)
    caption = "a firing in every cycle: no recurrence limits the rate"
    if limit is not None:
        caption = f"{limit.tokens} firings in {limit.cycles} cycles through what has a color"
    if limit is not None and limit.cause is RateCause.TURNS:
        caption = f"a firing in every {limit.cycles} cycles: operations share what has a color"
    if limit is not None and limit.cause is RateCause.INSTRUCTIONS:
        caption = f"{limit.text}, which has a color"
    return _drawn(
        design,
        _Look(
            fill=lambda name: by_node(name) if name in parts else "none",
            titles={},
            nets=nets,
            busy={},
            caption=caption,
        ),
    )


def placement_html(design: PlacedDesign) -> str:
    """The picture, and the table under it."""
    return f"<div>{placement_svg(design)}{placement_table(design).html()}</div>"


def _color(number: int, lightness: int = 62) -> str:
    """Colors of neighboring numbers are far apart."""
    return f"hsl({number * 137 % 360},60%,{lightness}%)"


def _by_node(design: PlacedDesign) -> Fill:
    """The color of the node of a part."""
    nodes = nodes_of(design)
    colors = {part.name: _color(nodes[node_of(part)]) for part in parts_of(design.netlist)}
    return lambda name: colors[name]


def _drawn(design: PlacedDesign, look: _Look) -> str:
    fabric = design.fabric
    width, height = (2 * _MARGIN + _PITCH * count for count in (fabric.columns, fabric.rows))
    body = [
        *_places(design),
        *_busy_wires(design, look.busy),
        *_nets(design, look.nets),
        *_parts(design, look),
    ]
    if look.caption:
        caption = one_line(look.caption)
        body.append(element("text", text=caption, x=4, y=height + 8, fill=_PLAIN))
        height += 14
    title = _title(f"{design.netlist.name} on {fabric.name}")
    drawing = element(
        "svg",
        "\n".join(("", title, *body, "")),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        font_family="sans-serif",
        font_size=7,
    )
    return f"{drawing}\n"


def _title(*lines: str) -> str:
    return hover("\n".join(map(one_line, lines)))


def _center(cell: tuple[int, int]) -> Point:
    """The middle of a cell: across and down."""
    row, column = cell
    return _MARGIN + _PITCH * (column + 0.5), _MARGIN + _PITCH * (row + 0.5)


def _shape(kind: CellKind, at: Point, size: float, *children: str, **look: Any) -> str:
    """A square, a circle or a triangle."""
    x, y = at
    half = size / 2
    match kind:
        case CellKind.FMA:
            return element(
                "rect", *children, x=x - half, y=y - half, width=size, height=size, **look
            )
        case CellKind.CONTROL:
            return element("circle", *children, cx=x, cy=y, r=half, **look)
        case CellKind.UNIT:
            top, low = f"{x:g} {y - half:g}", f"{x + half:g} {y + half:g} H {x - half:g}"
            return element("path", *children, d=f"M {top} L {low} Z", **look)


def _places(design: PlacedDesign) -> Iterator[str]:
    """All cells of the fabric, faintly, in one group."""
    fabric = design.fabric
    shapes = (
        _shape(fabric.kind_at(row, column), _center((row, column)), _SIZE)
        for row in range(fabric.rows)
        for column in range(fabric.columns)
    )
    yield element(
        "g", "\n".join(("", *shapes, "")), fill="none", stroke=_PLAIN, stroke_opacity=0.25
    )


def _unit_center(design: PlacedDesign, site: Site) -> Point:
    """The place of a unit beside its cell, outside of the fabric."""
    fabric = design.fabric
    position, number = divmod(site.slot, fabric.units_per_position)
    x, y = _center((site.row, site.column))
    along = _PITCH * ((number + 1) / (fabric.units_per_position + 1) - 0.5)
    away = _PITCH / 2 + _MARGIN / 2
    lengths = (fabric.columns, fabric.rows, fabric.columns, fabric.rows)
    side = 0
    while position >= lengths[side]:
        position -= lengths[side]
        side += 1
    shifts = ((along, -away), (away, along), (along, away), (-away, along))
    return x + shifts[side][0], y + shifts[side][1]


def _lane(wire: Wire, track: float) -> tuple[Point, Point]:
    """A track of a wire, as seen in its direction to the right of the middle."""
    (x, y), (to_x, to_y) = map(_center, wire)
    right, down = (to_x - x) / _PITCH, (to_y - y) / _PITCH
    shift = _TRACK * (track + 0.7)
    return (x - down * shift, y + right * shift), (to_x - down * shift, to_y + right * shift)


def _busy_wires(design: PlacedDesign, busy: Mapping[Wire, list[str]]) -> Iterator[str]:
    """A bar for each wire, as wide as it has tracks in use."""
    most = design.fabric.tracks
    for wire, nets in sorted(busy.items()):
        (x, y), (to_x, to_y) = _lane(wire, (len(nets) - 1) / 2)
        color, opacity = (_FULL, 0.45) if len(nets) >= most else (_PLAIN, 0.15)
        yield element(
            "path",
            _title(f"{len(nets)} of {most} tracks", *nets),
            d=f"M {x:g} {y:g} L {to_x:g} {to_y:g}",
            stroke=color,
            stroke_opacity=opacity,
            stroke_width=_TRACK * len(nets),
        )


def _nets(design: PlacedDesign, names: Collection[str]) -> Iterator[str]:
    """A line for each net."""
    tracks = tracks_of(design) if names else {}
    units = {unit.name for unit in design.netlist.units}
    groups = {name: n for n, name in enumerate(dict.fromkeys(n.group for n in design.netlist.nets))}
    for net in design.netlist.nets:
        if net.name not in names:
            continue
        steps = []
        for wire in wires_of(design, net.name):
            (x, y), (to_x, to_y) = _lane(wire, tracks[wire].index(net.name))
            steps.append(f"M {x:g} {y:g} L {to_x:g} {to_y:g}")
        for part in (net.source.part, *(sink.end.part for sink in net.sinks)):
            if part in units:  # to the cell at which it reaches the wires
                site = design.sites[part]
                (x, y), (to_x, to_y) = _unit_center(design, site), _center((site.row, site.column))
                steps.append(f"M {x:g} {y:g} L {to_x:g} {to_y:g}")
        branches = design.branches[net.name]
        title = _title(
            f"{net.name} of {net.group}",
            f"from {net.source.part}",
            *(
                f"to {sink.end.part}: {len(branch.path) - 1} hops, latency {branch.latency},"
                f" capacity {branch.capacity}"
                for sink, branch in zip(net.sinks, branches, strict=True)
            ),
        )
        if steps:
            color = _color(groups[net.group], 45)
            yield element("path", title, d=" ".join(steps), fill="none", stroke=color)


def _parts(design: PlacedDesign, look: _Look) -> Iterator[str]:
    """A shape for each part, with a title."""
    small = max(design.fabric.rows, design.fabric.columns) <= LARGEST_MAP
    for cell in design.netlist.cells:
        site = design.sites[cell.name]
        at = _center((site.row, site.column))
        title = _title(*_part_title(design, cell, look))
        yield _shape(cell.kind, at, _SIZE, title, fill=look.fill(cell.name), stroke=_PLAIN)
        if small and cell.origin is not None and cell.origin.point:
            label = ",".join(map(str, cell.origin.point))
            yield element(
                "text", text=label, x=at[0], y=at[1] + 2.5, text_anchor="middle",
                pointer_events="none",
            )  # fmt: skip
    for unit in design.netlist.units:
        at = _unit_center(design, design.sites[unit.name])
        title = _title(*_part_title(design, unit, look))
        yield _shape(CellKind.UNIT, at, _SIZE / 2, title, fill=look.fill(unit.name), stroke=_PLAIN)


def _part_title(design: PlacedDesign, part: NetCell | StreamUnit, look: _Look) -> Iterator[str]:
    """The lines of the title of a part."""
    yield part.name
    yield from _origin_lines(part.origin)
    if part.name in look.titles:
        yield look.titles[part.name]
    if isinstance(part, NetCell):
        for instruction in part.program.instructions:
            yield print_instruction(instruction, design.fabric.core)
    else:
        tensor = "" if part.tensor is None else f" {part.tensor}"
        yield f"{part.kind.value}{tensor} over {', '.join(loop.name for loop in part.loops)}"


def _origin_lines(origin: Provenance | None) -> Iterator[str]:
    if origin is not None:
        yield (
            f"{origin.node} at {', '.join(map(str, origin.point))}" if origin.point else origin.node
        )
        if origin.location is not None:
            yield f"{origin.location}: {origin.location.source_line}".rstrip(": ")
