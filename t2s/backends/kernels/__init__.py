"""Kernels of loops, registers and channels for a graph, in a C-like dialect that a backend has.

``lockstep`` and ``links`` decide; ``kernels`` and ``machine_kernels`` build the AST; ``kernel_ast``
prints it; ``dialect`` has what differs between languages.
"""
