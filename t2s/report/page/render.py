"""The page as HTML: the views of all runs in one template, with style and script included."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import unescape
from importlib.resources import files

import jinja2
from markupsafe import Markup

from t2s.core.display import Table
from t2s.core.names import counted, printable
from t2s.report.page.chip import chip_map_view
from t2s.report.page.deadlock import deadlock_view
from t2s.report.page.dram import dram_view
from t2s.report.page.flame import flame_view
from t2s.report.page.loops import ladder_view, nests_view
from t2s.report.page.markup import script_data, table_view, tag
from t2s.report.page.model import PageModel, RunModel
from t2s.report.page.roofline import roofline_view
from t2s.report.page.space_time import space_time_view

Section = tuple[str, str, str]
"""Its identity, its title and its HTML."""


def page_text(model: PageModel) -> str:
    """The page; equal models give the same text."""
    shelf: dict[str, int] = {}
    runs = [
        {
            "run": run,
            "identity": f"run{number}",
            "sections": [
                (key, title, Markup(_shelved(html, shelf)))
                for key, title, html in sections(run, number)
            ],
        }
        for number, run in enumerate(model.runs, 1)
    ]
    text: str = _template("page.html.jinja").render(
        title=f"{model.title}: {counted(sum(run.cycles for run in model.runs), 'cycle')}",
        stages=Markup(table_view(stage_table(model))) if len(runs) > 1 else "",
        sections=[(key, title, Markup(html)) for key, title, html in model.sections],
        runs=runs,
        cycles=sum(run.cycles for run in model.runs),
        sources=Markup(script_data("sources", list(shelf))),
        style=Markup(_page_file("page.css")),
        script=Markup(_page_file("page.js")),
    )
    return printable(text)


def stage_table(model: PageModel) -> Table:
    """The cycles of each of several stages, and its limit."""
    total = sum(run.cycles for run in model.runs)
    rows = [
        (
            str(number),
            run.name,
            f"{run.cycles:,}",
            _share(run.cycles, total),
            run.limit.sentence.partition(":")[0],
        )
        for number, run in enumerate(model.runs, 1)
    ]
    rows.append(("", "all", f"{total:,}", _share(total, total), ""))
    headers = ("stage", "computes", "cycles", "share", "what limits it")
    return Table(title="stages", headers=headers, rows=tuple(rows), left=frozenset({1, 4}))


def _share(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else "-"


def _shelved(html: str, shelf: dict[str, int]) -> str:
    """A view with its source lines replaced by numbers into the page's list, which has each
    once.
    """

    def number(match: re.Match[str]) -> str:
        return f'data-source="{shelf.setdefault(unescape(match[1]), len(shelf))}"'

    return re.sub(r'data-source="([^"]*)"', number, html)


def plain_page(
    title: str, sentence: str, banners: Sequence[str], sections: Sequence[Section]
) -> str:
    """A page without a script: banners, a sentence and sections, in the style of all pages."""
    text: str = _template("comparison.html.jinja").render(
        title=title,
        sentence=sentence,
        banners=banners,
        sections=[(key, name, Markup(html)) for key, name, html in sections],
        style=Markup(_page_file("page.css")),
    )
    return printable(text)


def _page_file(name: str) -> str:
    return files("t2s.report.page").joinpath(name).read_text("utf-8")


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_page_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def sections(run: RunModel, number: int) -> list[Section]:
    """The views of a run, in order."""
    name = f"run{number}"
    sections: list[Section] = []
    if run.deadlock is not None:
        sections.append((f"{name}-deadlock", "Deadlock", deadlock_view(run.deadlock)))
    stalls = tag("details", tag("summary", text="as a table"), table_view(run.stalls))
    sections.append((f"{name}-flame", "Where the cycles went", flame_view(run.flame) + stalls))
    seen = (
        tag("p", text=run.unseen)
        if run.space_time is None
        else space_time_view(run.space_time, f"{name}-diagram")
    )
    sections.append((f"{name}-space-time", "Space and time", seen))
    sections.append((f"{name}-chip", "The array as it lies", chip_map_view(run.chip)))
    sections.append((f"{name}-loops", "Loop nests", nests_view(run.nests)))
    if run.ladder:
        sections.append((f"{name}-ladder", "What each directive bought", ladder_view(run.ladder)))
    if run.roofline is not None:
        sections.append((f"{name}-roofline", "Roofline", roofline_view(run.roofline)))
    sections.append((f"{name}-resources", "Resources", _resources(run)))
    memory = "" if run.dram is None else dram_view(run.dram)
    if run.shared is not None:
        memory += "".join(
            table_view(table) for table in (run.shared.table, run.shared.sharer_table)
        )
    if memory:
        sections.append((f"{name}-memory", "Memory", memory))
    return sections


def _resources(run: RunModel) -> str:
    if run.units:
        return "".join(map(table_view, run.units))
    if run.resources is None:
        return tag("p", text=run.resource_problem)
    lines = "".join(
        tag("li", tag("strong", text=f"{label}: "), tag("span", text=text))
        for label, text in run.resource_summary
    )
    return tag("ul", lines, class_="plain") + table_view(run.resources)
