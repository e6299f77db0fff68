"""Reports: what a graph takes of a device, and where the cycles of a sparse product went."""
