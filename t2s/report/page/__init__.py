"""The report page: one HTML file that shows what a run did, where its cycles went, and why.

Each view has a file: a frozen model, a function that derives it from a run, and one that draws it
as a fragment of HTML or SVG, which other pages may use by itself.  ``model`` combines the views of
a page, ``render`` fills the template.
"""

from __future__ import annotations
