"""Designs as parts of chips that others make: kernels for FPGAs of AMD, projects for a shuttle.

>>> kernel = t2s.chips.rtl_kernel(C, "kernel", data_bits=512)                    # doctest: +SKIP
>>> project = t2s.chips.tiny_tapeout(C, "project", tiles="2x2")                  # doctest: +SKIP
"""

from __future__ import annotations

from t2s.driver.rtl_kernel import RtlKernel, rtl_kernel
from t2s.driver.tiny_tapeout import TinyTapeout, tiny_tapeout

__all__ = ["RtlKernel", "TinyTapeout", "rtl_kernel", "tiny_tapeout"]
