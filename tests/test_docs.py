"""The documents are programs: every ``python`` block of README.md and docs/*.md is run.

The blocks of a document share one namespace and run in order, in an empty working directory.  They
are compiled under the document's own name and line numbers, so that errors point into it.

* ``text`` after a ``python`` block is what the block prints, without empty lines at its end.
* ``text`` after a ``python raises`` block is the text of the ``UserError`` that it raises.

``pytest --update-golden`` rewrites the ``text`` blocks in place; read the diff before you commit.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import t2s
from t2s.spatial.schedule import ScheduledFunc

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
LANGUAGE = ROOT / "docs" / "language.md"
OTHERS = (ROOT / "examples" / "README.md", ROOT / "benchmarks" / "README.md")
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md")), *OTHERS]

# Writing a text block moves the lines behind it, and with them the line numbers in later texts.
MOST_UPDATES = 4

COMMANDS = [
    "python -m pip install . && t2s run examples/gemm/gemm.py",
    'python -m pip install ".[test]" && python -m pytest -n auto -m "not slow"',
]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its info string, its text, and the line its text starts at, from 1."""

    info: str
    text: str
    line: int

    @property
    def program(self) -> bool:
        return self.info in ("python", "python raises")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A ``text`` block and what it should say."""

    block: Block
    actual: str


def blocks_of(document: Path) -> list[Block]:
    found: list[Block] = []
    info: str | None = None
    body: list[str] = []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("```"):
            body.append(line)
        elif info is None:
            info, body = line.removeprefix("```").strip(), []
        else:
            text = "".join(f"{part}\n" for part in body)
            found.append(Block(info=info, text=text, line=number - len(body)))
            info = None
    assert info is None, f"{document.name}: a block is not closed"
    return found


def run_document(document: Path) -> Iterator[Shown]:
    """Run all programs of a document; yields what its ``text`` blocks should say."""
    namespace: dict[str, object] = {"__name__": document.stem}
    blocks = blocks_of(document)
    for block, following in zip(blocks, [*blocks[1:], None], strict=False):
        if not block.program:
            continue
        actual = run_block(document, block, namespace)
        if following is not None and following.info == "text":
            yield Shown(block=following, actual=actual)
        elif actual:
            pytest.fail(f"{place(document, block)}: no text block shows this:\n{actual}")


def run_block(document: Path, block: Block, namespace: dict[str, object]) -> str:
    """What a block prints, or the text of the error that it raises."""
    padding = "\n" * (block.line - 1)
    code = compile(padding + block.text, str(document), "exec", dont_inherit=True)
    printed = io.StringIO()
    raised = None
    with contextlib.redirect_stdout(printed):
        if block.info == "python":
            exec(code, namespace)
        else:
            with pytest.raises(t2s.errors.UserError) as caught:
                exec(code, namespace)
            raised = str(caught.value)
    if raised is not None and printed.getvalue():
        pytest.fail(f"{place(document, block)}: prints before it raises")
    text = (printed.getvalue() if raised is None else raised).rstrip("\n")
    text = text.replace(f"{ROOT}/", "").replace(f"{Path.cwd()}/", "")
    return f"{text}\n" if text else ""


def place(document: Path, block: Block) -> str:
    return f"{document.relative_to(ROOT)}:{block.line}"


def rewrite(document: Path, shown: list[Shown]) -> bool:
    """Write the right text into all ``text`` blocks; whether anything changed."""
    before = document.read_text(encoding="utf-8")
    lines = before.splitlines(keepends=True)
    for item in reversed(shown):
        start = item.block.line - 1
        lines[start : start + item.block.text.count("\n")] = [item.actual]
    after = "".join(lines)
    document.write_text(after, encoding="utf-8", newline="\n")
    linecache.checkcache(str(document))
    return after != before


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_programs_print_what_the_document_shows(
    document: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if request.config.getoption("--update-golden"):
        updates = (rewrite(document, list(run_document(document))) for _ in range(MOST_UPDATES))
        assert not all(updates), f"{document.name}: its output differs from run to run"
        return
    wrong = [item for item in run_document(document) if item.block.text != item.actual]
    for item in wrong:
        diff = difflib.unified_diff(
            item.block.text.splitlines(),
            item.actual.splitlines(),
            place(document, item.block),
            "now",
            lineterm="",
        )
        pytest.fail("\n".join(diff), pytrace=False)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_text_block_belongs_to_a_program(document: Path) -> None:
    blocks = blocks_of(document)
    for before, block in zip([None, *blocks], blocks, strict=False):
        assert block.info in ("", "text", "sh", "python", "python raises"), place(document, block)
        if block.info == "text":
            assert before is not None, place(document, block)
            assert before.program, place(document, block)
        if before is not None and before.info == "python raises":
            assert block.info == "text", place(document, before)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files(document: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)#]+)", prose):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_the_first_page_is_a_map() -> None:
    """At most fifteen links, and all of them lead somewhere."""
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", README.read_text(encoding="utf-8"))
    assert len(set(targets)) <= 15
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_readme_has_the_two_commands() -> None:
    """``.ci/run`` takes them from the README and executes them."""
    assert [block.text.strip() for block in blocks_of(README) if block.info == "sh"] == COMMANDS


def test_the_readme_program_has_at_most_twenty_lines() -> None:
    program = next(block for block in blocks_of(README) if block.program)
    lines = [line for line in program.text.splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("import ", "from "))]) <= 20


def test_every_directive_has_an_entry() -> None:
    headings = re.findall(r"^### (.*)$", LANGUAGE.read_text(encoding="utf-8"), re.MULTILINE)
    described = {name for heading in headings for name in re.findall(r"\w+", heading)}
    methods = {name for name, value in vars(ScheduledFunc).items() if callable(value)}
    assert {name for name in methods - {"update"} if not name.startswith("_")} <= described


def test_every_public_name_is_mentioned() -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    assert [name for name in t2s.__all__ if not re.search(rf"\b{name}\b", text)] == []
