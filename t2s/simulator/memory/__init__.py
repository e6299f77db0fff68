"""Memories: dynamic RAM with banks, rows and refresh, and banks that ports share on the chip.

``spec`` says what a memory is, ``dram``, ``units`` and ``banks`` what it does, ``requests`` and
``sharers`` what PEs and machines ask it for, and ``report`` what came of it in a run.
"""
