"""Capabilities of external functions, and matching parts of an assignment with them."""
