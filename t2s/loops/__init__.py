"""Stages of concrete index notation as loops, compiled for this CPU or printed as C."""
