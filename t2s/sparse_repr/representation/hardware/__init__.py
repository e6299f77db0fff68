"""A product of a sparse matrix in space: from a representation and a schedule to one graph.

``product.py`` describes the design; every other file writes one part of the graph.  All machines
run in lockstep: in every step, each handles one value (or one block of values) of its stream.
"""
