"""Tensors in memory: the arrays of their levels, and the ways in and out."""
