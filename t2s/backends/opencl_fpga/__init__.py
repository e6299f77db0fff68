"""OpenCL for Intel FPGAs (``cl_intel_channels``): one kernel per node, PEs unrolled inside it.

``lockstep`` and ``links`` decide; ``kernels`` and ``machine_kernels`` build the AST; ``kernel_ast``
and the templates print it; ``emulator`` runs the result.
"""

from t2s.backends.opencl_fpga.backend import BACKEND, emulate
from t2s.backends.opencl_fpga.emulator import EmulationError, emulator_available

__all__ = ["BACKEND", "EmulationError", "emulate", "emulator_available"]
