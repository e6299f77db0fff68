"""Values by plain loop nests, for nodes whose tokens can be traced to memory before the run."""
