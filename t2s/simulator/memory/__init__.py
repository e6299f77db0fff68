"""Memories: dynamic RAM with banks, rows and refresh, and banks that ports share on the chip.

``spec`` describes memories; ``dram``, ``units`` and ``banks`` model their behavior; ``requests``
and ``sharers`` derive the requests of PEs and machines; ``report`` has the measurements of a run.
"""
