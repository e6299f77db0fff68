"""Tensor index notation: expressions, their text, their meaning in numpy."""
