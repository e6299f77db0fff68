"""The blocks of the Sparse Abstract Machine [SAM], one class each.

``draft.py`` has what they are written with, ``lists.py`` what diagrams ask of them, and
``connections.py`` connects them.
"""
