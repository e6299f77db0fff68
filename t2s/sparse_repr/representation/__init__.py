"""Sparse matrices as chains of invertible transformations [Sparse T2S].

A chain starts from the dense matrix and packs, blocks and schedules it.  Everything else is derived
from the chain: ``build`` makes the arrays in memory, ``inverse_map`` describes how hardware
recovers the row and the column of a streamed value, and ``decode`` undoes the chain.
"""
