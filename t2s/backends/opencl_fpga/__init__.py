"""OpenCL for Intel FPGAs (``cl_intel_channels``): one kernel per node, PEs unrolled inside it.

``lockstep`` and ``links`` decide, ``kernels`` builds the target AST, ``printer`` and the templates
spell it, ``emulator`` runs the result.
"""

from t2s.backends.opencl_fpga.backend import BACKEND
from t2s.backends.opencl_fpga.emulator import EmulationError, emulate, emulator_available

__all__ = ["BACKEND", "EmulationError", "emulate", "emulator_available"]
