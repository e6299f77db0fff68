"""Designs on a coarse-grained reconfigurable array of triggered instructions.

>>> placed = t2s.cgra.place(C, {"A": a, "B": b})                                # doctest: +SKIP
>>> placed.run({"A": a, "B": b}).cycles                                          # doctest: +SKIP
"""

from __future__ import annotations

from t2s.backends.cgra_tia.fabric import CgraFabric
from t2s.driver.placement import Placement, place, read_placement

__all__ = ["CgraFabric", "Placement", "place", "read_placement"]
