"""A product of a sparse matrix in space: from a representation and a schedule to one graph.

``product.py`` says what is built; the other files each write one part of the graph.  All machines
run in step: in every step, each of them handles one value (or one block of values) of its stream.
"""
