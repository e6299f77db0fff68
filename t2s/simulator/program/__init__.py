"""From a graph and a device to a ``SimProgram``: all checks, and the control of every firing."""
