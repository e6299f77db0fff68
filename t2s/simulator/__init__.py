"""The cycle simulator: a graph and its inputs in, values, exact cycles and stalls out.

``run.simulate`` and ``run.simulate_cycles`` are the entry points.  ``program`` checks and flattens
a graph, an engine runs it, ``report`` explains what happened, deadlocks included.  The native
engine computes ``values`` by generated code and ``times`` separately; ``memory`` models DRAMs and
banks.
"""
