"""What a command says about an output beside numpy's: equal, near, or an error.

Infinities and NaN have to stand where numpy has them; finite values may differ by what rounding in
another order gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s.core.errors import T2SError

Array = np.ndarray[Any, Any]

TOLERANCE = {16: 2e-2, 32: 1e-5, 64: 1e-13}
"""Largest difference, relative to the largest element, by the bits of the type."""


def compare(
    given: Array, expected: Array, *, what: str = "", tolerance: float | None = None
) -> str:
    """One line: whether an output matches numpy, exactly or within a tolerance.

    ``what`` is said first, if it is given; ``tolerance`` is that of the type if it is not.  Raises
    ``T2SError`` for an output that does not match.
    """
    said = f"{what}: " if what else ""
    floats = expected.dtype.kind not in "iub"
    if np.array_equal(given, expected, equal_nan=floats):
        return f"{said}matches numpy exactly"
    if given.shape != expected.shape or not floats:
        raise T2SError(f"{said}does not match numpy")
    wide, reference = given.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wide) & np.isfinite(reference)
    same = finite | (wide == reference) | (np.isnan(wide) & np.isnan(reference))
    if not same.all():
        place = tuple(int(at) for at in np.argwhere(~same)[0])
        shown = f" at {place}" if place else ""
        raise T2SError(
            f"{said}differs from numpy: {given[place]} where numpy has {expected[place]}{shown}"
        )
    scale = float(np.max(np.abs(reference[finite]), initial=0.0)) or 1.0
    difference = float(np.max(np.abs(wide[finite] - reference[finite]), initial=0.0)) / scale
    allowed = TOLERANCE[expected.dtype.itemsize * 8] if tolerance is None else tolerance
    if difference > allowed:
        raise T2SError(
            f"{said}differs from numpy by {difference:.1e} of the largest element, "
            f"allowed {allowed:.0e}"
        )
    return (
        f"{said}matches numpy (largest difference {difference:.1e} of the largest element, "
        f"allowed {allowed:.0e})"
    )
