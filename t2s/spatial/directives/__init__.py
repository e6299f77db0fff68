"""Directives, and the passes that carry them out; one file each."""
