"""Sparse tensors: formats, index notation, concrete index notation, and streams.

From top to bottom: ``notation`` defines the computation, ``concrete`` its loops, ``lowering`` its
blocks; ``levels``, ``formats`` and ``tensors`` define the storage of tensors.  ``blocks`` holds
the blocks of the Sparse Abstract Machine, and ``streams.Streams`` connects them into the same
``Graph`` that ``t2s.spatial`` writes.  ``representation`` has sparse matrices as chains of
transformations.
"""
