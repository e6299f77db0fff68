"""Sparse tensor algebra on streams: the experiments of papers/001, one file each."""
