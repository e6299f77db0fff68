"""Sparse tensor algebra on streams: the experiments of [SAM], one file each."""
