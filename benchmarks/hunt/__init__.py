"""Hunts for wrong numbers: random programs as a stranger would write them, judged by oracles.

``python -m benchmarks.hunt dense --count 10000`` draws programs, runs each by everything that
claims to know its result, and counts: legal, refused (by message), wrong, crashed, hung.  A hunt
is seeded and can be resumed; what it finds is made small and printed as a program.
"""
