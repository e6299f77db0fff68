"""Interpreters of triggered instructions, cycle by cycle: the meaning that all else is held to."""
