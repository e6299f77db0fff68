"""From what a user has to graphs, and from there to numbers and files: the verbs."""
