"""Backends: each folder turns a ``Graph`` into files for one kind of hardware."""
