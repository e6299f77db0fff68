"""Analyses of kernels for the passes and the lowering; nothing here changes a program."""
