"""The verbs: from the user's objects to graphs, and from graphs to numbers and files."""
