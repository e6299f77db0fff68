"""Models of other frameworks as programs of index notation."""
