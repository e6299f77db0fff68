"""Stages of concrete index notation as loops that run on this CPU, or that are printed as C."""
