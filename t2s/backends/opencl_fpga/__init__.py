"""OpenCL for Intel FPGAs (``cl_intel_channels``): one kernel per node, PEs unrolled inside it.

``backends/kernels`` decides and builds the AST; ``dialect`` and the templates spell it;
``emulator`` runs the result.
"""

from t2s.backends.opencl_fpga.backend import BACKEND, emulate
from t2s.backends.opencl_fpga.emulator import EmulationError, emulator_available

__all__ = ["BACKEND", "EmulationError", "emulate", "emulator_available"]
