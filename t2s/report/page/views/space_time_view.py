"""The space-time diagram: PEs down, cycles across; the script draws it from packed counters."""

from __future__ import annotations

import json

from t2s.report.page.data.packed import deflated
from t2s.report.page.data.space_time import SpaceTimeModel, Strip
from t2s.report.page.views.markup import legend, script_data, tag


def space_time_view(model: SpaceTimeModel, identity: str) -> str:
    """The diagram with its buttons; ``identity`` tells the diagrams of a page apart."""
    whole = model.strips[0]
    windows = [
        tag("button", text=_named(strip), type="button", data_strip=number)
        for number, strip in enumerate(model.strips)
    ]
    moves = [
        tag("button", text=text, type="button", data_move=move, aria_label=said)
        for text, move, said in (
            ("+", "in", "zoom in"),
            ("−", "out", "zoom out"),
            ("◀", "left", "earlier"),
            ("▶", "right", "later"),
        )
    ]
    said = (
        f"Space-time diagram: {len(model.rows):,} rows of PEs, cycles {whole.first:,} to "
        f"{whole.last:,}. Arrow keys move the cell, plus and minus zoom, Home shows the whole run."
    )
    canvas = tag("canvas", tabindex=0, role="img", aria_label=said, height=360)
    status = tag("p", class_="status", aria_live="polite", text="Point at a cell, or use the keys.")
    return tag(
        "div",
        legend(),
        tag("div", *windows, *moves, class_="tools", role="group", aria_label="windows and zoom"),
        canvas,
        status,
        script_data(f"{identity}-data", space_time_json(model)),
        class_="space-time",
        id=identity,
        data_source_of=f"{identity}-data",
    )


def _named(strip: Strip) -> str:
    return strip.name


def space_time_json(model: SpaceTimeModel) -> dict[str, object]:
    """What the script reads, and what tests read back."""
    return {
        "nodes": model.nodes,
        "channels": model.channels,
        "rows": [[row.node, row.label, row.count] for row in model.rows],
        "strips": [_strip(strip) for strip in model.strips],
    }


def _strip(strip: Strip) -> dict[str, object]:
    return {
        "name": strip.name,
        "exact": strip.exact,
        "first": strip.first,
        "last": strip.last,
        "before": strip.before,
        "edges": strip.edges.to_json(),
        "cycles": strip.cycles.to_json(),
        "causes": strip.causes.to_json(),
        "points": [
            {
                "node": one.node,
                "loops": one.loops,
                "points": one.points.to_json(),
                "rules": one.rules,
                "values": deflated(json.dumps(one.values).encode()) if one.values else "",
            }
            for one in strip.points
        ],
    }
