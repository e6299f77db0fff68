"""Reports about designs: what a graph takes of a device (``resources``)."""
