"""Capstan parallel patterns as Spatial: complete programs, their parser, and what they mean.

It takes programs of patterns, not graphs, so there is no ``BACKEND``: ``CapstanKernel`` emits.
"""
