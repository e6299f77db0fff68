"""Memories: dynamic RAM with banks, rows and refresh, by the times of its commands.

``spec`` says what a memory is, ``presets`` names some, ``model`` is the plain model of one and the
oracle of the compiled one in ``times/dram_kernel.py``; ``port`` and ``requests`` say which lines of
memory a load or store unit asks for, ``report`` what came of it.
"""
