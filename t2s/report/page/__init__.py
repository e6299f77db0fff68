"""The report page: one HTML file that says what a run did, where its cycles went, and why.

``data`` takes the numbers of a run apart, one frozen model for each view; ``views`` draws each of
them as a fragment of HTML or SVG, which other pages may use alone; ``render.py`` has them together.
"""
