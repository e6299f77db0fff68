"""Mistakes in asking for resources."""

from __future__ import annotations

import t2s
from tests.errors.designs import product
from tests.errors.refusal import refused


def test_a_device_without_blocks() -> None:
    C = product().C
    with refused("""
            the device ideal has no DSP and RAM blocks to count
              --> t2s.resources(C, device="ideal")
              expected: one of arria10, stratix10, or a Device with a fabric
              given:    ideal
            """):
        t2s.resources(C, device="ideal")
