"""Sparse matrices in files, for benchmarks: some small ones are here, others are the user's."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "matrices"


def matrix_file(folder: Path, name: str) -> Path:
    """The file of a matrix; ends the program with where to get it, if it is not in ``folder``."""
    path = folder / f"{name}.mtx"
    if not path.is_file():
        raise SystemExit(
            f"no {path.name} in {folder}: get it from the SuiteSparse Matrix Collection (in Matrix "
            "Market format), put it into a folder, and name that by --matrices"
        )
    return path


def matrix_files(folder: Path) -> list[Path]:
    """The files of all matrices of a folder; ends the program if there are none."""
    paths = sorted(folder.glob("*.mtx"))
    if not paths:
        raise SystemExit(f"no .mtx files in {folder}")
    return paths
