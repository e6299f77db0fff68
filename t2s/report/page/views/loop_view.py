"""The loop nests: a table for each node; and the ladder of directives."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.names import counted
from t2s.report.page.data.loop_rows import NestModel
from t2s.report.page.data.source_lines import source_lines
from t2s.report.page.views.markup import rows_view, source_link, tag
from t2s.report.reasons import Rung

_MOST_OPEN = 8
"""Nests that are all shown; of more the user opens one."""


def nests_view(nests: Sequence[NestModel]) -> str:
    """The loops of all nodes."""
    words = (
        "Firings are those of one PE in one run through the loop; cycles the mean time that this "
        "took, from the node's first to its last firing by the number of runs."
    )
    if len(nests) <= _MOST_OPEN:
        return tag("p", text=words, class_="note") + "".join(nest_view(nest) for nest in nests)
    folded = (
        tag(
            "details",
            tag("summary", text=f"{nest.node}: {counted(nest.firings, 'firing')}"),
            nest_view(nest),
        )
        for nest in nests
    )
    return tag("p", text=words, class_="note") + "".join(folded)


def nest_view(nest: NestModel) -> str:
    """The loops of one node."""
    rows = [
        [
            f"{'· ' * row.depth}{row.keyword} {row.name}",
            row.trips,
            _mean(row.firings),
            _mean(row.cycles),
            row.reason,
            source_link(row.source),
        ]
        for row in nest.rows
    ]
    pes, firings = counted(nest.pes, "PE"), counted(nest.firings, "firing")
    span = "" if nest.cycles is None else f" in {counted(nest.cycles, 'cycle')}"
    title = f"{nest.node}: {nest.role}, {pes}, {nest.interval}, {firings}{span}"
    headers = ("loop", "trips", "firings", "cycles", "made by", "line")
    inside = rows_view(title, headers, rows, frozenset({0, 4, 5}), elements=frozenset({5}))
    return tag("div", inside, class_="nest") if rows else tag("p", text=title)


def _mean(number: float | None) -> str:
    return "-" if number is None else f"{number:,.1f}".removesuffix(".0")


def ladder_view(rungs: Sequence[Rung]) -> str:
    """What each directive bought."""
    counted = [rung.cycles for rung in rungs if rung.cycles]
    most = max(counted, default=1)
    rows, before = [], None
    for rung in rungs:
        bought = "" if before is None or rung.cycles is None else f"{before / rung.cycles:,.2f} ×"
        before = rung.cycles or before
        share = (rung.cycles or 0) / most * 100
        bar = tag("span", tag("span", class_="bar", style=f"width:{share:.2f}%"), class_="bars")
        rows.append(
            [
                rung.directive,
                rung.problem if rung.cycles is None else f"{rung.cycles:,}",
                bought,
                "-" if rung.pes is None else f"{rung.pes:,}",
                bar,
                source_link(source_lines(rung.location)),
            ]
        )
    headers = ("with", "cycles", "faster", "compute PEs", "", "line")
    title = "the design with its first directives, one more in each row"
    return rows_view(title, headers, rows, frozenset({0, 4, 5}), elements=frozenset({4, 5}))
