"""Runs passes of Yosys in a process of its own: ``python yosys_child.py PASS ...``.

Yosys is a library with a global state that prints to the standard output and may end its process,
so it never runs in the process of a user.  This file imports nothing of t2s, for a quick start.
"""

import sys
from collections.abc import Sequence


def main(passes: Sequence[str]) -> None:
    """Run the passes on one design, in the present folder."""
    from pyosys import libyosys

    design = libyosys.Design()
    for each in passes:
        libyosys.run_pass(each, design)


if __name__ == "__main__":
    main(sys.argv[1:])
