"""A page read back: the data of its space-time diagrams, and what a reader without style sees."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from t2s.report.page.space_time import inflated, unpacked


@dataclass(frozen=True)
class ReadStrip:
    """A window of a diagram: edges, states by row and bin, causes, and points by node."""

    name: str
    exact: bool
    first: int
    last: int
    before: list[int]
    edges: np.ndarray
    cycles: np.ndarray
    causes: np.ndarray
    points: dict[int, np.ndarray]
    values: dict[int, list[str]]
    rows: list[Any]

    @property
    def states(self) -> np.ndarray:
        """By ``PEState``; what is not in the first four is idle."""
        bins = np.diff(self.edges) * np.array([[row[2]] for row in self.rows])
        idle = bins - self.cycles.sum(axis=0)
        return np.concatenate([self.cycles, idle[None]])


def strips_of(page: Path, run: int = 1) -> list[ReadStrip]:
    text = page.read_text(encoding="utf-8")
    found = re.search(rf'id="run{run}-diagram-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])

    def array(packed: Any) -> np.ndarray:
        return unpacked(packed["data"], tuple(packed["shape"]))

    return [
        ReadStrip(
            name=strip["name"],
            exact=strip["exact"],
            first=strip["first"],
            last=strip["last"],
            before=strip["before"],
            edges=array(strip["edges"]),
            cycles=array(strip["cycles"]),
            causes=array(strip["causes"]),
            points={one["node"]: array(one["points"]) for one in strip["points"]},
            values={
                one["node"]: json.loads(inflated(one["values"]))
                for one in strip["points"]
                if one["values"]
            },
            rows=data["rows"],
        )
        for strip in data["strips"]
    ]


def shown(page: Path) -> str:
    """The text of a page, without scripts, styles and tags."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", " ", text))
