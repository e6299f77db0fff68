"""The ``t2s`` command."""
