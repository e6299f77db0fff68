"""Capstan parallel patterns in Spatial.  Nothing is here yet: there is no ``BACKEND``."""
