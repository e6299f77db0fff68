"""Temporal definitions: what is computed, without space or time."""
