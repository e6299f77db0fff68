"""From an engine's counters to results for the user: stalls, deadlocks, tables."""
