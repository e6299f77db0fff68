"""From concrete index notation to blocks of the Sparse Abstract Machine, and to the graph."""
