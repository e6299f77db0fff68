"""The page as text: the views of all runs in one template, with the style and the script inside."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from importlib.resources import files

import jinja2
from markupsafe import Markup

from t2s.report.page.data.page_model import PageModel, RunModel
from t2s.report.page.views.chip_view import chip_map_view
from t2s.report.page.views.deadlock_view import deadlock_view
from t2s.report.page.views.dram_view import dram_view
from t2s.report.page.views.flame_view import flame_view
from t2s.report.page.views.loop_view import ladder_view, nests_view
from t2s.report.page.views.markup import script_data, table_view, tag
from t2s.report.page.views.roof_view import roofline_view
from t2s.report.page.views.space_time_view import space_time_view

Section = tuple[str, str, str]
"""Its identity, its title and its HTML."""


def page_text(model: PageModel) -> str:
    """The page; the same text for the same model."""
    folder = files("t2s.report.page")
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
    text: str = _template().render(
        title=model.title,
        runs=runs,
        cycles=sum(run.cycles for run in model.runs),
        sources=Markup(script_data("sources", list(shelf))),
        style=Markup(folder.joinpath("page.css").read_text("utf-8")),
        script=Markup(folder.joinpath("page.js").read_text("utf-8")),
    )
    return text


def _shelved(html: str, shelf: dict[str, int]) -> str:
    """A view whose lines of the user are on the page's shelf, once each, and here by number."""

    def number(found: re.Match[str]) -> str:
        return f'data-source="{shelf.setdefault(unescape(found[1]), len(shelf))}"'

    return re.sub(r'data-source="([^"]*)"', number, html)


@cache
def _template() -> jinja2.Template:
    text = files("t2s.report.page").joinpath("page.html.jinja").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(text)


def sections(run: RunModel, number: int) -> list[Section]:
    """The views of a run, in order."""
    name = f"run{number}"
    found: list[Section] = []
    if run.deadlock is not None:
        found.append((f"{name}-deadlock", "Deadlock", deadlock_view(run.deadlock)))
    stalls = tag("details", tag("summary", text="as a table"), table_view(run.stalls))
    found.append((f"{name}-flame", "Where the cycles went", flame_view(run.flame) + stalls))
    seen = (
        tag("p", text=run.unseen)
        if run.space_time is None
        else space_time_view(run.space_time, f"{name}-diagram")
    )
    found.append((f"{name}-space-time", "Space and time", seen))
    found.append((f"{name}-chip", "The array as it lies", chip_map_view(run.chip)))
    found.append((f"{name}-loops", "Loop nests", nests_view(run.nests)))
    if run.ladder:
        found.append((f"{name}-ladder", "What each directive bought", ladder_view(run.ladder)))
    if run.roofline is not None:
        found.append((f"{name}-roofline", "Roofline", roofline_view(run.roofline)))
    found.append((f"{name}-resources", "Resources", _resources(run)))
    memory = "" if run.dram is None else dram_view(run.dram)
    if run.shared is not None:
        memory += "".join(
            table_view(table) for table in (run.shared.table, run.shared.sharer_table)
        )
    if memory:
        found.append((f"{name}-memory", "Memory", memory))
    return found


def _resources(run: RunModel) -> str:
    if run.resources is None:
        return tag("p", text=run.resource_problem)
    lines = "".join(
        tag("li", tag("strong", text=f"{label}: "), tag("span", text=text))
        for label, text in run.resource_summary
    )
    return tag("ul", lines, class_="plain") + table_view(run.resources)
