"""Sparse tensors: representations as chains of transformations (``representation``).

This front end will write the same ``Graph`` as ``t2s.spatial``.
"""
