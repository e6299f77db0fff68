"""The blocks of the Sparse Abstract Machine (papers/001) as machines of the graph.

A constructor of a block returns a ``Block``: a machine whose channels are still called by the names
of its ports.  ``t2s.sparse_repr.streams`` connects blocks.
"""
