"""The values of a graph in machine code, apart from time."""
