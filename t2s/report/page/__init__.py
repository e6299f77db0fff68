"""The report page: one HTML file that says what a run did, where its cycles went, and why.

Each view has a file: a frozen model, how it follows from a run, and a function that draws it as a
fragment of HTML or SVG, which other pages may use alone.  ``model`` is all of a page,
``render`` puts it into the template.
"""

from __future__ import annotations
