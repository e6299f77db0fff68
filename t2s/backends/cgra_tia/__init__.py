"""Assembly for coarse-grained reconfigurable arrays of triggered instructions.

A graph becomes programs of cells, stream units and nets (``lower/``), which get places and wires on
a fabric (``place/``) and are written as text and a placement file (``text/``, ``files/``).  What
runs is what was written: read again, it is stepped through instruction by instruction
(``machine/``), or becomes a graph that the simulator runs to the same cycle (``lift/``).
"""

from t2s.backends.cgra_tia.backend import BACKEND

__all__ = ["BACKEND"]
