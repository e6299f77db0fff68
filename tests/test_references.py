"""References: the repository names only what its reader has."""

from __future__ import annotations

import re

import pytest

from tests.sources import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.structure]  # run with the linters

KINDS = (".py", ".md", ".toml", ".yml", ".jinja")
FOLDERS = ("t2s", "tests", "benchmarks", "examples", "docs")
CITED = re.compile(r"\[([A-Z][\w -]+), (?:sec\.|Tables?|Figs?\.) ")
"""A place in a publication."""


def _texts() -> dict[str, str]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    paths += list(ROOT.glob("*"))
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
        if path.suffix in KINDS
    }


def test_nothing_outside_of_the_repository_is_named() -> None:
    private = re.compile(r"papers/" r"\d|\.\./" r"shared|(?<!\w)DESIGN" r"\.md")
    assert [name for name, text in _texts().items() if private.search(text)] == []


def test_every_citation_is_a_reference() -> None:
    known = set(re.findall(r"^\| \[([^\]]+)\]", _texts()["docs/references.md"], re.MULTILINE))
    cited = {name for text in _texts().values() for name in CITED.findall(text)}
    assert {"SAM", "Stardust"} <= cited <= known
