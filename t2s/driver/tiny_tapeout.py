"""The verb ``tiny_tapeout``: a design as a project for a shuttle of Tiny Tapeout."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2s.core.child import written
from t2s.core.errors import UserError
from t2s.core.files import is_file, write_texts
from t2s.core.location import user_location
from t2s.core.validate import checked_folder, checked_seconds
from t2s.driver.chip_run import chip_run, chip_stage, megahertz, with_own_memory

if TYPE_CHECKING:
    from t2s.backends.verilog.flow.streams import Stream
    from t2s.simulator.devices import Device

_PLAIN = ("proc", "opt_clean", "memory -nomap", "opt_clean")
"""Passes of Yosys after which a design can be written as plain Verilog."""

_COUNTS = "cells.json"
TILES = ("1x1", "1x2", "2x2", "3x2", "4x2", "6x2", "8x2")


@dataclass(frozen=True, kw_only=True)
class TinyTapeout:
    """A project of Tiny Tapeout.

    Attributes
    ----------
    name: of the module, ``tt_um_`` and the name of the design.
    directory, files: the folder, and the files in it.
    streams: in the order of their numbers.
    cycles: of a run whose bytes never wait, which 8 pins do not allow: a bound from below.
    cells, area: standard cells of the design with its border, and their area in the unit of the
        library; ``None`` without ``liberty=``.
    """

    name: str
    directory: Path
    files: tuple[Path, ...]
    streams: tuple[Stream, ...]
    cycles: int
    cells: int | None
    area: float | None


def tiny_tapeout(
    design: Any,
    directory: str | os.PathLike[str],
    *,
    inputs: Mapping[str, Any] | None = None,
    title: str | None = None,
    author: str = "",
    description: str = "",
    tiles: str = "1x2",
    clock_mhz: float = 50.0,
    device: str | Device = "tiny-tapeout",
    liberty: str | os.PathLike[str] | None = None,
    time_limit: float = 600.0,
) -> TinyTapeout:
    """Write a design as a project of Tiny Tapeout, with its streams behind eight pins in and out.

    Parameters
    ----------
    inputs: of the run in the test of the project; without, integers that are made up.
    title, author, description, tiles: what ``info.yaml`` says; ``tiles`` is the size, ``"1x1"`` to
        ``"8x2"``, which the tools of the shuttle check.
    device: the latencies that the design is built with.
    liberty: a library of standard cells; Yosys maps the design to them and counts.
    time_limit: seconds for each run of Yosys.

    Needs the extra ``t2s-spatial[chips]``.  Raises ``UserError`` for what is not known,
    ``UnsupportedError`` for what is no chip and for more than 16 streams, and ``ChipError`` if
    Yosys is missing or fails.
    """
    from t2s.backends.base import Unsupported, refusal
    from t2s.backends.verilog.emit import NAME
    from t2s.backends.verilog.flow.flow import with_pins, with_streams, without_ports
    from t2s.backends.verilog.flow.self_test import memory_images
    from t2s.backends.verilog.flow.streams import packet
    from t2s.backends.verilog.flow.tiny_tapeout import MOST_STREAMS, Project, project_files
    from t2s.backends.verilog.flow.toolchain import check_tools, run_yosys
    from t2s.simulator.devices import find_device

    folder = checked_folder("the directory of tiny_tapeout", directory)
    checked_seconds("time_limit", time_limit)
    if tiles not in TILES:
        raise UserError(
            "tiles= must be the size of a project",
            location=user_location(),
            expected=", ".join(TILES),
            given=repr(tiles),
        )
    clock = megahertz(clock_mhz)
    library = None if liberty is None else _checked_library(liberty)
    check_tools(["yosys"])
    stage = chip_stage(design, inputs, "tiny_tapeout", without_ports)
    graph = stage.graph
    run = chip_run(stage, inputs, with_own_memory(find_device(device)))
    streamed = with_streams(graph, run.times, run.parameters, "generic")
    if len(streamed.streams) > MOST_STREAMS:
        why = (
            f"it has {len(streamed.streams)} PEs that load or store, and four pins choose among "
            f"{MOST_STREAMS}: vectors with lanes, or loaders with fewer PEs, take fewer streams"
        )
        subject = f"design {graph.name!r}"
        raise refusal(NAME, graph, [Unsupported(subject=subject, why=why)])
    name, sources = with_pins(streamed)
    with written(sources) as place:
        reading = f"read_slang --top {name} {' '.join(sources)}"
        run_yosys([reading, *_PLAIN, f"write_verilog -noattr {name}.v"], place, time_limit)
        verilog = (place / f"{name}.v").read_text(encoding="utf-8")
        cells, area = None, None
        if library is not None:
            run_yosys([reading, *_mapped(name, library)], place, time_limit)
            cells, area = _counted(place / _COUNTS)
    memory = memory_images(graph, run.arrays)
    files = project_files(
        name,
        verilog,
        streamed.streams,
        {stream.name: packet(stream, memory[stream.tensor]) for stream in streamed.streams},
        Project(
            title=graph.name if title is None else title,
            author=author,
            description=description,
            tiles=tiles,
            clock_hz=round(clock * 1e6),
        ),
    )
    return TinyTapeout(
        name=name,
        directory=folder,
        files=write_texts(folder, files, user_location()),
        streams=streamed.streams,
        cycles=run.cycles,
        cells=cells,
        area=area,
    )


def _checked_library(path: str | os.PathLike[str]) -> Path:
    """The library of cells, in an absolute path that passes of Yosys take as one word."""
    library = Path(path).absolute()
    if not is_file(library) or re.search(r"[\s;\"]", str(library)):
        raise UserError(
            "liberty= must name a library of cells in the Liberty format",
            location=user_location(),
            expected="a file, in a path without spaces",
            given=repr(os.fspath(path)),
        )
    return library


def _mapped(name: str, library: Path) -> Iterator[str]:
    """The passes of Yosys that map a design to the cells of a library, and count them."""
    yield f"synth -flatten -top {name}"
    yield f"dfflibmap -liberty {library}"
    yield f"abc -liberty {library}"
    yield "opt_clean"
    yield f"tee -q -o {_COUNTS} stat -json -liberty {library}"


def _counted(path: Path) -> tuple[int, float]:
    """Cells and their area, of what Yosys wrote about the whole design."""
    text = path.read_text(encoding="utf-8")
    found = json.loads(text[text.index("{") :])["design"]
    return int(found["num_cells"]), float(found["area"])
