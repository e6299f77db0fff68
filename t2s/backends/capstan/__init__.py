"""Capstan parallel patterns as Spatial: programs, their parser, what they mean, and what they take.

It takes programs of patterns, not graphs, so there is no ``BACKEND``: ``CapstanKernel`` emits.
"""
