"""From the complete spatial program to the graph: kernels become nodes, operands channels."""
