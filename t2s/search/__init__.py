"""Search for the best design: spaces, bounds, branch and bound, the journal, and workers."""
