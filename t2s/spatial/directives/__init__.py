"""Directives: what the user asks for, and the pass that carries it out; one file each."""
