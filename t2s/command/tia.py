"""``t2s tia``: assemble, disassemble and run programs of triggered instructions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from t2s import triggered
from t2s.command.output import failed, without_lines
from t2s.core.errors import T2SError, UserError
from t2s.core.files import write_file
from t2s.core.ops import Array

tia = typer.Typer(help="Assemble, disassemble and run triggered instructions.")

SHOWN_WORDS = 16
CORES = {"A": triggered.PUBLIC_CORE, "B": triggered.EXTENDED_CORE}

File = Annotated[Path, typer.Argument(help="a text: a block <NAME> for each element, row by row")]
Profile = Annotated[str, typer.Option(help="A, the public core, or B, the extended one")]
Strict = Annotated[bool, typer.Option(help="treat warnings as errors")]


@tia.command("run")
def run_text(
    file: File,
    memory: Annotated[
        Path | None, typer.Option(help="a .npy file, or a text of numbers: the memory at the start")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="rows of the array")] = None,
    columns: Annotated[int | None, typer.Option(help="columns of the array")] = None,
    words: Annotated[int | None, typer.Option(help="words of the memory")] = None,
    max_cycles: Annotated[
        int, typer.Option(help="the cycle after which a run is aborted")
    ] = triggered.MOST_CYCLES,
    trace: Annotated[bool, typer.Option(help="the instruction of every cycle")] = False,
    strict: Strict = False,
    out: Annotated[
        Path | None, typer.Option(help="a .npy or .txt file for the memory at the end")
    ] = None,
) -> None:
    """Print cycles, the activity of each element, and the words of memory that changed."""
    console = Console(highlight=False)
    try:
        start = _memory(memory)
        result = triggered.run(
            file,
            start,
            rows=rows,
            columns=columns,
            words=words,
            max_cycles=max_cycles,
            trace=trace,
            strict=strict,
        )
        if out is not None:
            _write_memory(out, result.memory)
    except (T2SError, OSError) as error:
        raise _failed(error) from None
    if result.trace is not None:
        console.out(_trace(result.trace))
    console.out(str(result))
    console.out(_changes(start, result.memory))
    if out is not None:
        console.out(f"wrote {out}")


@tia.command("assemble")
def assemble_text(
    file: File,
    hex_file: Annotated[
        Path | None, typer.Option("--hex", help="write the words as hexadecimal digits")
    ] = None,
    binary: Annotated[Path | None, typer.Option(help="write the words as they are")] = None,
    profile: Profile = "A",
    strict: Strict = False,
) -> None:
    """Print the words of a text, one per line, or write them to files."""
    console = Console(highlight=False)
    try:
        program = triggered.assemble(file, _core(profile), strict=strict)
        if hex_file is not None:
            write_file(hex_file, program.hex.encode())
        if binary is not None:
            write_file(binary, program.binary)
        text = program.hex.rstrip()
    except (T2SError, OSError) as error:
        raise _failed(error) from None
    written = [path for path in (hex_file, binary) if path is not None]
    console.out("\n".join(f"wrote {path}" for path in written) if written else text)


@tia.command("disassemble")
def disassemble_words(
    file: Annotated[Path, typer.Argument(help="words, as hexadecimal digits or as they are")],
    profile: Profile = "A",
) -> None:
    """Print the text of words."""
    try:
        text = triggered.disassemble(file, _core(profile)).text
    except (T2SError, OSError) as error:
        raise _failed(error) from None
    Console(highlight=False).out(text.rstrip())


def _failed(error: Exception) -> typer.Exit:
    """Print an error, and return the exit of the command."""
    # the message quotes the line of the assembly text
    of_text = isinstance(error, triggered.TriggeredTextError)
    return failed(str(error) if of_text else without_lines(str(error)))


def _core(profile: str) -> triggered.CoreParameters:
    if profile not in CORES:
        raise UserError(f"unknown profile {profile}", expected="A or B")
    return CORES[profile]


def _memory(path: Path | None) -> Array:
    """The numbers of a file."""
    if path is None:
        return np.zeros(0, np.int64)
    if path.suffix == ".npy":
        try:
            return np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise UserError(
                f"{path} holds no array", expected="an array that numpy saved", given=str(error)
            ) from None
    numbers = path.read_text(encoding="utf-8", errors="replace").replace(",", " ").split()
    words = []
    for place, number in enumerate(numbers):
        try:
            words.append(int(number, 0) if number[:1] != "0" or "x" in number else int(number))
        except ValueError:
            raise UserError(
                f"{path} has a word that is not a number",
                expected="whole numbers, with blanks or commas between, as 12, -3 or 0xff",
                given=f"{number!r}, number {place}",
            ) from None
    return np.array(words, object if any(abs(word) >> 63 for word in words) else np.int64)


def _write_memory(path: Path, memory: Array) -> None:
    if path.suffix == ".npy":
        with path.open("wb") as file:
            np.save(file, memory)
    else:
        write_file(path, "".join(f"{word}\n" for word in memory.tolist()).encode())


def _changes(start: Array, end: Array) -> str:
    """The words that a run changed."""
    before = np.zeros(end.size, np.int64)
    before[: start.size] = start.astype(np.int64) & 0xFFFFFFFF
    places = np.flatnonzero(before != end)
    lines = [f"words of the memory that changed: {len(places)}"]
    shown = places[:SHOWN_WORDS].tolist()
    lines += [f"  [{place}] {before[place]} -> {end[place]}" for place in shown]
    if len(places) > SHOWN_WORDS:
        lines.append(f"  and {len(places) - SHOWN_WORDS} more")
    return "\n".join(lines)


def _trace(trace: Array) -> str:
    """One line per cycle: the numbers of the instructions that fired, ``-`` for none."""
    width = len(str(len(trace) - 1))
    rows = (
        " ".join(f"{number if number >= 0 else '-':>3}" for number in row) for row in trace.tolist()
    )
    return "\n".join(f"{cycle:>{width}}: {row}" for cycle, row in enumerate(rows)) + "\n"
