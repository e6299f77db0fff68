"""The base of every layer: expressions, types, operators, locations, errors."""
