"""Designs as texts in the public grammar of triggered instructions, for small arrays of profile A."""

from __future__ import annotations

from t2s.backends.cgra_tia.public.compile import MemoryMap, PublicDesign, compile_public

__all__ = ["MemoryMap", "PublicDesign", "compile_public"]
