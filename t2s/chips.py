"""Designs as parts of chips whose tools t2s does not run.

>>> kernel = t2s.chips.rtl_kernel(C, "kernel", data_bits=512)                    # doctest: +SKIP
"""

from __future__ import annotations

from t2s.driver.rtl_kernel import RtlKernel, rtl_kernel

__all__ = ["RtlKernel", "rtl_kernel"]
