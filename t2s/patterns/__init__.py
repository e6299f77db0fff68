"""Parallel patterns with explicit memories: the contract between sparse kernels and Capstan."""
