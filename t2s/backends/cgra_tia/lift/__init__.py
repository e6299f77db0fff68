"""From decoded programs and placed designs back to a graph, for the engines that run graphs.

In goes what was read from text, never what it was made of.  ``element_graph.py`` takes programs of
profile A, ``placed.py`` a ``PlacedDesign``.  Refused is what is not a process of a Kahn network:
programs in which it matters whether a token is there already.
"""

from __future__ import annotations

from t2s.backends.cgra_tia.lift.element_graph import lift_array, memory_after
from t2s.backends.cgra_tia.lift.placed import lift_placed

__all__ = ["lift_array", "lift_placed", "memory_after"]
