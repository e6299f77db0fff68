"""Sparse tensors: formats, index notation, concrete index notation and its lowering to streams.

From top to bottom: ``notation`` is what is computed, ``concrete`` in which loops, ``lowering`` by
which blocks; ``levels``, ``formats`` and ``tensors`` say how tensors are stored.
"""
