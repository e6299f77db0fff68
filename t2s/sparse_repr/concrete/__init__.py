"""Concrete index notation: the loops of an assignment, schedules, their meaning in numpy."""
