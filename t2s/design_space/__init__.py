"""The space of designs of a definition: points, directives that make them, bounds, and search."""
