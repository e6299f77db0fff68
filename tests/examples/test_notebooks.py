"""The notebooks: kept without outputs, on public names alone, and they run from top to bottom."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000


def test_there_are_notebooks_of_five_kinds() -> None:
    kinds = ["dense", "exploration", "models", "search", "sparse"]
    assert [path.stem for path in NOTEBOOKS] == kinds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    assert notebook["nbformat"] == 4
    assert [cell["id"] for cell in notebook["cells"]] == [
        f"{path.stem}-{number:02}" for number in range(len(notebook["cells"]))
    ]
    for cell in notebook["cells"]:
        assert not cell["metadata"]
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            for node in ast.walk(ast.parse("".join(cell["source"]))):
                if isinstance(node, ast.ImportFrom):
                    name = node.module or ""
                    assert not name.startswith("t2s.") or name == "t2s.sparse"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path) -> None:
    """Each in a kernel of its own; a cell that raises fails, and so do the asserts in cells."""
    executed = tmp_path / path.name
    command = [sys.executable, str(Path(__file__).parent / "run_notebook.py"), path, executed]
    root = str(FOLDER.parent.parent)
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    pages = [
        output["data"]["text/html"]
        for cell in json.loads(executed.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    html = ["".join(page) for page in pages]
    assert len(html) >= 4
    assert all(len(page.encode()) < MOST_BYTES for page in html)
    assert sum("<svg" in page for page in html) >= 3
    assert not any("<script" in page or "://" in page for page in html)
