"""The cycle simulator: a graph and its inputs in, values, exact cycles and stalls out.

``run.simulate`` and ``run.simulate_cycles`` are the ways in.  ``program`` checks and flattens a
graph, an ``engine`` runs it, ``report`` says what happened and why a run could not end.  The native
engine writes code with ``emit`` for ``values`` and finds ``times`` apart from them; ``memory`` is
what a DRAM does.
"""
