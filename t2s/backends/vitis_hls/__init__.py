"""C++ for Vitis HLS: one function per node, PEs unrolled inside it, and a dataflow region as top.

``backends/kernels`` decides and builds the AST of the functions; ``dialect`` spells it, ``top``
adds the dataflow region, and ``runner`` runs the result with g++.
"""

from t2s.backends.vitis_hls.backend import BACKEND, emulate
from t2s.backends.vitis_hls.runner import SimulationError

__all__ = ["BACKEND", "SimulationError", "emulate"]
