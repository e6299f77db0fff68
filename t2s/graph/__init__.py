"""The PE/channel graph: the one contract between front ends and consumers.

Front ends write a ``Graph`` and never read one; the simulator, the reports and the backends read
it and know nothing above it.  See ``docs/architecture.md``.
"""
