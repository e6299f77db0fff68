"""Hooks of mkdocs: the pages that are not in this folder, links to them, and pictures.

* The first page, examples, benchmarks, contributing and the changelog are files of the repository.
* ``gallery.md`` has the examples with their pictures, ``api/*.md`` the public names of each module.
* A comment ``<!-- picture: EXPRESSION -->`` becomes what notebooks show of the expression, in the
  names of the page's own programs up to there, which are run.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gallery_pictures import PICTURES, pictures_of
from mkdocs.structure.files import File, Files

import t2s

ROOT = Path(__file__).parent.parent.parent

REPOSITORY = {
    "README.md": "index.md",
    "examples/README.md": "examples.md",
    "benchmarks/README.md": "benchmarks.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files of the repository that are pages of the site, under other names."""

MODULES = ("t2s", *(f"t2s.{name}" for name in t2s._MODULES), "t2s.external.call")
"""The public modules, with a page of the API each."""

COMMENT = re.compile(r"^<!-- picture: (.+) -->$", re.MULTILINE)
"""Where a picture comes; an expression of Python."""

_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made here."""
    made = {page: (ROOT / name).read_text("utf-8") for name, page in REPOSITORY.items()}
    made["gallery.md"] = gallery()
    for module in MODULES:
        made[f"api/{module}.md"] = api_page(module)
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links as they are on the site, programs without marks of the tests, and pictures."""
    name = page.file.src_uri
    if COMMENT.search(markdown):
        markdown = with_pictures(markdown, name)
    markdown = markdown.replace("```python raises\n", "```python\n")
    if name == "gallery.md" or name.startswith("api/"):
        return markdown
    return with_links(markdown, name)


def with_links(markdown: str, name: str) -> str:
    """A page whose links lead to pages of the site; links to other files are their texts."""
    back = {page: file for file, page in REPOSITORY.items()}
    source = back.get(name, f"docs/{name}")

    def link(found: re.Match[str]) -> str:
        text, target, place = found[1], found[2], found[3] or ""
        path = os.path.normpath(os.path.join(os.path.dirname(source), target)).replace(os.sep, "/")
        page = REPOSITORY.get(path)
        if page is None and path.startswith("docs/"):
            page = path.removeprefix("docs/")
        return text if page is None else f"[{text}]({page}{place})"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def with_pictures(markdown: str, name: str) -> str:
    """A page with what its comments ask for; raises what its programs raise."""
    values: dict[str, Any] = {"__name__": name}
    made = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for kind, text in _steps(markdown):
            with contextlib.redirect_stdout(io.StringIO()):
                if kind == "program":
                    exec(compile(text, name, "exec", dont_inherit=True), values)
                else:
                    made.append(shown(eval(text, values)))
    pictures = iter(made)
    return COMMENT.sub(lambda _: next(pictures), markdown)


def _steps(markdown: str) -> Iterator[tuple[str, str]]:
    """Programs and expressions of pictures, in order, up to the last picture."""
    found = [(at.start(), "program", at[1]) for at in _PROGRAM.finditer(markdown)]
    found += [(at.start(), "picture", at[1]) for at in COMMENT.finditer(markdown)]
    found.sort()
    last = max(number for number, step in enumerate(found) if step[1] == "picture")
    for _, kind, text in found[: last + 1]:
        yield kind, text


def shown(value: Any) -> str:
    """What notebooks show of an object, as a block of HTML in a page of Markdown."""
    return _block(value._repr_html_() if hasattr(value, "_repr_html_") else value.html())


def _block(html: str) -> str:
    """HTML on one line, since Markdown would read others, and without folders of this machine."""
    line = html.replace("\n", "&#10;").replace(f"{ROOT}/", "")
    return f'<div class="t2s-picture">{line}</div>'


def gallery() -> str:
    """All examples in the order of their table, with what it says of them and their pictures."""
    text = (ROOT / "examples" / "README.md").read_text("utf-8")
    parts = [
        "# Gallery\n\nEvery example of the repository, with a picture that t2s made of it when "
        "this page was built: the graph (loads green, computing blue, stores orange), what the PEs "
        "of each node did, what it takes of a chip, or the steps of a plan. Most are in a small "
        "size here, where filling and draining take more of the cycles than they would. Point at a "
        "part to read its numbers; `t2s run FILE` runs an example in full size.\n"
    ]
    left = dict.fromkeys(PICTURES)
    for line in text.splitlines():
        if line.startswith("## ") and line != "## Notebooks":
            parts.append(f"\n{line}\n")
        found = re.match(r"\| (`[^|]+) \| (.+) \|$", line)
        if found is None:
            continue
        names = [_file_of(name) for name in re.findall(r"`([^`]+)`", found[1])]
        if any(name in left for name in names):
            parts.append(f"\n### {found[2][:1].upper()}{found[2][1:]}\n")
        for name in names:
            if name in left:
                del left[name]
                parts.append(_entry(name))
    if left:
        raise LookupError(f"examples/README.md does not name {', '.join(left)}")
    return "".join(parts)


def _file_of(name: str) -> str:
    """The file of an example, which the table names by its folder where it is alone there."""
    return name if "." in name else f"{name}/{name}.py"


def _entry(name: str) -> str:
    anchor = name.replace("/", "-").removesuffix(".py")
    return f"\n#### `{name}` {{ #{anchor} }}\n\n{_block(pictures_of(name))}\n"


def api_page(name: str) -> str:
    """The public names of a module."""
    module = importlib.import_module(name)
    names = sorted(module.__all__, key=str.lower)
    blocks = "".join(f"\n::: {name}.{one}\n" for one in names if _is_documented(module, one))
    return f"# {name}\n\n{(module.__doc__ or '').splitlines()[0]}\n{blocks}"


def _is_documented(module: Any, name: str) -> bool:
    value = getattr(module, name)
    return callable(value) or bool(getattr(value, "__file__", ""))
