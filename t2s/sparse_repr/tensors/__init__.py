"""Tensors in memory: the arrays of their levels, and conversions."""
