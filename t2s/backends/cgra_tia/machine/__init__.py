"""Cycle-accurate interpreters of triggered instructions: the reference for everything else."""
