"""From a placed design back to a graph, for the engines that run graphs.

The input is what was read from text, never what the text was made of.  Refused are cells that are
not processes of a Kahn network: programs in which it matters whether a token has arrived yet.
"""

from __future__ import annotations

from t2s.backends.cgra_tia.lift.placed import lift_placed

__all__ = ["lift_placed"]
