"""The array kernel: times of arrays of identical PEs, stepped side by side in vector lanes."""
