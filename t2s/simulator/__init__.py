"""The cycle simulator: a graph and its inputs in, values, exact cycles and stalls out.

``run.simulate`` and ``run.simulate_cycles`` are the ways in.  ``program`` checks and flattens a
graph, an ``engine`` runs it, ``result`` says what happened, ``deadlock`` explains why a run could
not end.
"""
