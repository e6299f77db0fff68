"""Sparse tensors as streams: the blocks of the Sparse Abstract Machine, and how to connect them.

``blocks`` holds the blocks, ``streams.Streams`` connects them into the same ``Graph`` that
``t2s.spatial`` writes.  ``representation`` has sparse matrices as chains of transformations.
"""
