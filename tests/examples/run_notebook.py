"""Run a notebook from top to bottom: ``python run_notebook.py NOTEBOOK EXECUTED``.

In a process of its own, because the machinery of Jupyter leaves sockets behind.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(notebook: Path, executed: Path) -> None:
    """Write the notebook with its outputs; raises what a cell raises."""
    import nbformat
    from nbclient import NotebookClient

    cells = nbformat.read(notebook, as_version=4)
    NotebookClient(cells, timeout=300, kernel_name="python3").execute()
    nbformat.write(cells, executed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
