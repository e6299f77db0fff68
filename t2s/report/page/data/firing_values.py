"""Values of single firings: what a PE took, computed, and sent.

Results keep no values of firings, so they are computed again by the plain engine, from the inputs,
and for windows near the beginning of a run, which take no more than ``MOST_FIRINGS`` firings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.report.page.data.space_time import Observed

MOST_FIRINGS = 20_000
"""Firings until the end of a window that shows values."""


def values_of(
    observed: Observed, inputs: Mapping[str, object] | None
) -> Mapping[str, Mapping[int, Sequence[str]]]:
    """Texts of the firings of loop nests, by window and by the number of the node, row by row."""
    return {}
