"""Compiled parts of the native engine: times (numba) and values (LLVM)."""
