"""Runs Yosys in a process of its own: ``python yosys_child.py JOB.json``.

Yosys is a library with a global state that prints to the standard output and may end its process,
so it never runs in the process of a user.  This file imports nothing of t2s, for a quick start.
"""

import json
import sys
from pathlib import Path


def main(job: str) -> None:
    """Run the passes of a job, in the present folder."""
    from pyosys import libyosys

    design = libyosys.Design()
    for command in json.loads(Path(job).read_text(encoding="utf-8"))["commands"]:
        libyosys.run_pass(command, design)


if __name__ == "__main__":
    main(sys.argv[1])
