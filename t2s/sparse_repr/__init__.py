"""Sparse tensors: formats, representations and index notation.  Nothing is here yet.

This front end will write the same ``Graph`` as ``t2s.spatial``.
"""
