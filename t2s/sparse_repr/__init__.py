"""Sparse tensors: formats, index notation, concrete index notation, and streams.

From top to bottom: ``notation`` is what is computed, ``concrete`` in which loops, ``lowering`` by
which blocks; ``levels``, ``formats`` and ``tensors`` say how tensors are stored.  ``blocks`` holds
the blocks of the Sparse Abstract Machine, and ``streams.Streams`` connects them into the same
``Graph`` that ``t2s.spatial`` writes.  ``representation`` has sparse matrices as chains of
transformations.
"""
