"""The documentation site: all pages and examples are in it, and it loads nothing from elsewhere."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import t2s
from tests.browser import asked_for, needs_chromium, opened_browser, show
from tests.sources import ROOT

HOOKS = ROOT / "docs" / "hooks"
LOADING = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
"""Elements that make a browser load something, with the attribute that says what."""


def examples() -> list[str]:
    folder = ROOT / "examples"
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*.py"))


def keys_of(file: Path, name: str) -> list[str]:
    """The keys of a dict at the top of a file."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            assert isinstance(node.target, ast.Name)
            if node.target.id == name:
                return [ast.literal_eval(key) for key in node.value.keys if key is not None]
    raise LookupError(name)


def test_every_example_has_a_picture() -> None:
    assert keys_of(HOOKS / "gallery_pictures.py", "PICTURES") == examples()


def test_every_example_is_in_the_table() -> None:
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([^`]+)`", text))
    assert [n for n in examples() if n not in named and n.split("/")[0] not in named] == []


def test_every_page_is_in_the_navigation() -> None:
    named = re.findall(r"^ +- (?:[\w ]+: )?(\S+\.md)$", navigation(), re.MULTILINE)
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert pages <= set(named)
    assert len(named) == len(set(named))


def navigation() -> str:
    return (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]


class Loads(HTMLParser):
    """What a page loads, and how many pictures and names it has."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.pictures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "id" in given:
            self.names.add(given["id"] or "")
        if tag in LOADING and (target := given.get(LOADING[tag])):
            self.loaded.append(target)
        self.pictures += tag == "svg" and given.get("role") in ("img", "group")


def read(page: Path) -> Loads:
    found = Loads()
    found.feed(page.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as users do; whatever leads nowhere ends the build."""
    folder = tmp_path_factory.mktemp("site")
    mkdocs = shutil.which("mkdocs", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    program = [mkdocs] if mkdocs else [sys.executable, "-m", "mkdocs"]  # -m adds the folder here
    command = [*program, "build", "--strict", "--site-dir", str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert made.returncode == 0, made.stderr[-3000:]
    return folder


@pytest.mark.slow
def test_the_site_is_whole(site: Path) -> None:
    pages = {path: read(path) for path in site.rglob("*.html")}
    assert {path.name for path in pages} >= {"index.html", "which_design.html", "language.html"}
    for path, page in pages.items():
        assert [target for target in page.loaded if "//" in target] == [], path
        text = path.read_text(encoding="utf-8")
        assert "<!-- picture" not in text
        assert str(ROOT) not in text
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import\s+)[\"']?(https?:)?//", path.read_text("utf-8"))
    assert read(site / "tutorial.html").pictures == 6
    assert read(site / "which_design.html").pictures == 2
    gallery = read(site / "gallery.html")
    anchors = {name.replace("/", "-").removesuffix(".py") for name in examples()}
    assert anchors <= gallery.names
    assert gallery.pictures >= len(anchors)
    names = read(site / "api" / "t2s.html").names
    documented = [name for name in t2s.__all__ if callable(getattr(t2s, name))]
    assert [name for name in documented if f"t2s.{name}" not in names] == []
    assert {"t2s.Func.tile", "t2s.Func.space_time_transform"} <= names


@pytest.mark.slow
@needs_chromium
def test_the_site_in_a_browser(site: Path, tmp_path: Path) -> None:
    """No errors, no requests but for its files, no wider than the window, the system's colors."""
    with opened_browser(tmp_path) as driver:
        for name in ("index", "gallery", "tutorial", "command_line", "api/t2s"):
            for width, dark in ((1280, False), (390, True), (1280, True)):
                show(driver, (site / f"{name}.html").as_uri(), width, dark)
                assert driver.get_log("browser") == []
                asked = asked_for(driver)
                assert asked
                assert all(one.startswith(("file:", "data:")) for one in asked), asked
                assert driver.execute_script("return document.documentElement.scrollWidth") <= width
                color = "return getComputedStyle(document.body).backgroundColor"
                shade = re.findall(r"\d+", driver.execute_script(color))[:3]
                assert (sum(map(int, shade)) < 384) == dark


@pytest.mark.slow
def test_pages_that_are_made_by_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HOOKS))
    import docstrings
    import pages

    made: Any = docstrings.as_markdown(
        "``x``.\n\nParameters\n----------\na, b: what\n    follows.\n"
    )
    assert made == "`x`.\n\n**Parameters**\n\n* `a, b`: what\n    follows.\n"
    text = "[a](../examples/README.md#Sparse) [b](../t2s/graph/nodes.py) [c](memory.md)"
    assert pages.with_links(text, "streams.md") == "[a](examples.md#Sparse) b [c](memory.md)"
    assert pages.with_links("[a](docs/memory.md)", "index.md") == "[a](memory.md)"
    fenced = "```python\nf[i](memory.md)\n```"
    assert pages.with_links(fenced, "streams.md") == fenced
    page = "```python\nx = [1]\n```\n\n<!-- picture: Table(x) -->\n\n```python\nraise\n```\n"
    given = page.replace("x = [1]", "from tests.test_site import Table; x = [1]")
    assert '<div class="t2s-picture"><p>[1]</p></div>' in pages.with_pictures(given, "page.md")
    with pytest.raises(NameError, match="nothing"):
        pages.with_pictures("<!-- picture: nothing -->", "page.md")


class Table:
    """Something with HTML."""

    def __init__(self, value: object) -> None:
        self.value = value

    def html(self) -> str:
        """Its text."""
        return f"<p>{self.value}</p>"
