"""Capstan: parallel patterns as Spatial, as machines of a graph, and the units they use.

It takes programs of patterns, not graphs, so there is no ``BACKEND``: ``CapstanKernel`` emits.
"""
