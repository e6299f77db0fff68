"""A design as a project of Tiny Tapeout: its streams, byte by byte, at eight pins in and out.

A host names one of up to 16 streams, and writes or reads a byte of it in each clock.  The folder
has what a shuttle of Tiny Tapeout takes: ``info.yaml``, plain Verilog, a page, and a test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from t2s.backends.text.expressions import (
    Binary,
    If,
    Literal,
    Name,
    TargetExpression,
    TargetStatement,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.flow.streams import Stream, StreamedDesign

LIBRARY = ("bytes.sv",)
MOST_STREAMS = 16
_BYTE = ast.Bits(width=8)
_NUMBER = ast.Bits(width=4)
_TEST = Path(__file__).parent / "library" / "tiny_tapeout_test.py.in"

PINS: Mapping[str, tuple[str, ...]] = {
    "ui": tuple(f"byte to the design [{bit}]" for bit in range(8)),
    "uo": tuple(f"byte from the design [{bit}]" for bit in range(8)),
    "uio": (
        *(f"number of the stream [{bit}]" for bit in range(4)),
        "write a byte",
        "read a byte",
        "a byte can be written",
        "a byte can be read",
    ),
}
"""What each pin is; the last two of ``uio`` go out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a user says of a project, in ``info.yaml``."""

    title: str
    author: str
    description: str
    tiles: str
    clock_hz: int


def pins_module(name: str, streamed: StreamedDesign) -> ast.HardwareModule:
    """The module with the pins of a tile, around a design with streams."""
    select, write, read = (Name(name=each) for each in ("stream", "write", "read"))
    reset = Name(name=port.RESET)
    inputs = [stream for stream in streamed.streams if stream.to_design]
    outputs = [stream for stream in streamed.streams if not stream.to_design]
    numbers = {stream.name: at for at, stream in enumerate(streamed.streams)}

    def chosen(stream: Stream) -> TargetExpression:
        return Binary(operator="==", left=select, right=number(numbers[stream.name]))

    def gathered(target: str, values: list[tuple[Stream, str]]) -> ast.AlwaysComb:
        body: list[TargetStatement] = [ast.put(target, number(0))]
        for stream, value in values:
            put = ast.put(target, Name(name=f"{stream.name}_{value}"))
            body.append(If(condition=chosen(stream), then=(put,)))
        return ast.AlwaysComb(body=tuple(body))

    pins = Name(name="uio_in")
    items: list[ast.Item] = [
        ast.variable(port.RESET),
        ast.variable("stream", _NUMBER),
        *(ast.variable(each) for each in ("write", "read", "ready", "valid")),
        ast.variable("cycles", ast.WORD),
        ast.ContinuousAssignment(target=reset, value=ast.negation(Name(name="rst_n"))),
        ast.ContinuousAssignment(target=select, value=ast.Slice(base=pins, high=3, low=0)),
        ast.ContinuousAssignment(target=write, value=ast.Element(base=pins, index=number(4))),
        ast.ContinuousAssignment(target=read, value=ast.Element(base=pins, index=number(5))),
    ]
    connections: list[tuple[str, TargetExpression]] = [
        (port.CLOCK, Name(name="clk")),
        (port.RESET, reset),
        ("cycles", Name(name="cycles")),
    ]
    for stream in streamed.streams:
        signals = ["tdata", "tvalid", *([] if stream.to_design else ["tlast"]), "tready"]
        for signal in signals:
            wide = ast.Bits(width=8 * stream.bytes) if signal == "tdata" else ast.BIT
            items.append(ast.variable(f"{stream.name}_{signal}", wide))
            connections.append((f"{stream.name}_{signal}", Name(name=f"{stream.name}_{signal}")))
        items += _end(stream, ast.both(chosen(stream), write if stream.to_design else read))
    items.append(ast.Instance(module=streamed.module, name="core", connections=tuple(connections)))
    items += [
        gathered("ready", [(stream, "ready") for stream in inputs]),
        gathered("valid", [(stream, "valid") for stream in outputs]),
        gathered("uo_out", [(stream, "byte") for stream in outputs]),
        ast.ContinuousAssignment(
            target=Name(name="uio_out"),
            value=ast.Concatenation(
                parts=(Name(name="valid"), Name(name="ready"), Literal(text="6'd0"))
            ),
        ),
        ast.ContinuousAssignment(target=Name(name="uio_oe"), value=Literal(text="8'b11000000")),
    ]
    return ast.HardwareModule(
        name=name,
        about=("The pins of a tile of Tiny Tapeout.",),
        ports=(
            ast.input_port("ui_in", _BYTE),
            ast.output_port("uo_out", _BYTE),
            ast.input_port("uio_in", _BYTE),
            ast.output_port("uio_out", _BYTE),
            ast.output_port("uio_oe", _BYTE),
            *(ast.input_port(each) for each in ("ena", "clk", "rst_n")),
        ),
        items=tuple(items),
    )


def _end(stream: Stream, accessed: TargetExpression) -> Iterator[ast.Item]:
    """Between a stream and the bytes at the pins."""
    told = "ready" if stream.to_design else "valid"
    yield ast.variable(f"{stream.name}_{told}")
    byte = Name(name="ui_in")
    if not stream.to_design:
        byte = Name(name=f"{stream.name}_byte")
        yield ast.variable(byte.name, _BYTE)
    yield ast.Instance(
        module="byte_input" if stream.to_design else "byte_output",
        name=f"{stream.name}_bytes",
        parameters=(("BYTES", number(stream.bytes)),),
        connections=(
            (port.CLOCK, Name(name="clk")),
            (port.RESET, Name(name=port.RESET)),
            ("write" if stream.to_design else "read", accessed),
            ("value", byte),
            (told, Name(name=f"{stream.name}_{told}")),
            *(
                (signal, Name(name=f"{stream.name}_{signal}"))
                for signal in ("tdata", "tvalid", "tready")
            ),
        ),
    )


def project_files(
    name: str,
    verilog: str,
    streams: tuple[Stream, ...],
    packets: Mapping[str, list[int]],
    project: Project,
) -> dict[str, str]:
    """The files of a project whose module is ``name``, by their paths in the folder.

    ``packets`` are the bytes of each stream in a run, which the test writes and expects.
    """
    run = {
        "streams": [
            {"name": one.name, "to_design": one.to_design, "bytes": packets[one.name]}
            for one in streams
        ]
    }
    return {
        "info.yaml": _info(name, project),
        f"src/{name}.v": verilog,
        "docs/info.md": _page(streams, project),
        "test/test.py": _TEST.read_text(encoding="utf-8"),
        "test/run.json": json.dumps(run) + "\n",
        "test/Makefile": _MAKEFILE.format(name=name),
        "test/requirements.txt": "cocotb>=2.1,<3\n",
    }


def _info(name: str, project: Project) -> str:
    """``info.yaml``; texts are written as JSON, which YAML includes."""
    said = {
        "title": project.title,
        "author": project.author,
        "description": project.description,
        "language": "SystemVerilog",
    }
    lines = ["yaml_version: 6", "project:"]
    lines += [f"  {key}: {json.dumps(value)}" for key, value in said.items()]
    lines += [f"  clock_hz: {project.clock_hz}", f"  tiles: {json.dumps(project.tiles)}"]
    lines += [f"  top_module: {name}", "  source_files:", f"    - {name}.v", "pinout:"]
    for group, pins in PINS.items():
        lines += [f"  {group}[{bit}]: {json.dumps(what)}" for bit, what in enumerate(pins)]
    return "\n".join((*lines, ""))


_MAKEFILE = """SIM ?= icarus
TOPLEVEL_LANG = verilog
VERILOG_SOURCES = $(CURDIR)/../src/{name}.v
COCOTB_TOPLEVEL = {name}
COCOTB_TEST_MODULES = test
include $(shell cocotb-config --makefiles)/Makefile.sim
"""


def _page(streams: tuple[Stream, ...], project: Project) -> str:
    rows = [
        f"| {at} | {one.name} | {'written' if one.to_design else 'read'} | {one.tensor} "
        f"| {one.bytes} | {len(one.elements)} |"
        for at, one in enumerate(streams)
    ]
    table = "\n".join(rows)
    return f"""# {project.title}

{project.description}

## How it works

The design has {len(streams)} streams of words, and `uio[3:0]` is the number of one of them. In a
clock in which `uio[4]` and `uio[6]` are 1, the byte at `ui` is written to it; in one in which
`uio[5]` and `uio[7]` are 1, the byte at `uo` is read from it. The lowest byte of a word comes
first. A run begins when each stream that is written has a word.

| number | stream | is | tensor | bytes of a word | words in a run |
|---|---|---|---|---|---|
{table}

`test/run.json` has the bytes of a run.

## How to test

Run `make` in `test`, or write the bytes of a run and read those of its results.
"""
