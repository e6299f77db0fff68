"""Designs as texts in the grammar of the public tools, for small arrays of profile A."""

from __future__ import annotations

from t2s.backends.cgra_tia.profile_a.compile import PublicDesign, compile_public

__all__ = ["PublicDesign", "compile_public"]
