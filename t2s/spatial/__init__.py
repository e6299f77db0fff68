"""Spatial mapping: directives, the loop-nest program they shape, and its lowering to a graph."""
