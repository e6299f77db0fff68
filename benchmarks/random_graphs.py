"""Placeholder."""
def random_graph(seed): raise NotImplementedError
def random_device(seed): raise NotImplementedError
