"""The functions of the counts, and a short way to describe one over numpy."""

from __future__ import annotations

from benchmarks.mosaic.functions import NINE, THREE, add8, described, saxpy, sdot, sgemm

__all__ = ["NINE", "THREE", "add8", "described", "saxpy", "sdot", "sgemm"]
