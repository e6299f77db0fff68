"""The notebooks: kept without outputs, on public names alone, and they run from top to bottom."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000


def test_there_are_notebooks_of_three_kinds() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["dense", "exploration", "sparse"]


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
@pytest.mark.filterwarnings("ignore")  # of the machinery of Jupyter
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a kernel of its own; a cell that raises fails, and so do the asserts in cells."""
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent.parent))
    manager: Any = AsyncKernelManager()
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, display_name="Python 3", language="python")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, km=manager, timeout=300).execute()
    pages = [
        output["data"]["text/html"]
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert len(pages) >= 4
    assert all(len(page.encode()) < MOST_BYTES for page in pages)
    assert sum("<svg" in page for page in pages) >= 3
    assert not any("<script" in page or "://" in page for page in pages)
