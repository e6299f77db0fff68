"""The blocks of the Sparse Abstract Machine [SAM], one class each.

``draft.py`` drafts their machines, ``lists.py`` is the interface that diagrams use, and
``connections.py`` connects them to a graph.
"""
