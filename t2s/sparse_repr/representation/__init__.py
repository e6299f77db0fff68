"""Sparse matrices as chains of invertible transformations [Sparse T2S].

A chain starts from the dense matrix and packs, blocks and schedules it.  Everything else follows
from the chain: ``build`` makes the arrays in memory, ``inverse_map`` says how hardware finds the
row and the column of a value while it streams by, and ``decode`` undoes the chain.
"""
