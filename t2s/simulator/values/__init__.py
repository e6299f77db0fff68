"""The values of a graph by machine code, independent of time."""
