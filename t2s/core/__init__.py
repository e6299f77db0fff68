"""Expressions, types, operators, locations, errors: what every layer of t2s stands on."""
