"""Programs of triggered instructions: written by hand, assembled, and run cycle by cycle.

A program has a block for each processing element, row by row::

    <adder>
    when %p == XXXXXXX0: add %r0, %r0, $5; set %p = ZZZZZZZ1;
    when %p == XXXXXXX1: halt;

``assemble`` turns a text into words and ``disassemble`` turns words into a text, both like the
public tools for triggered instructions; ``run`` counts the cycles that their simulator counts.
``compile`` turns a design into such a text.  Refused, with line and column, is what these tools
refuse, and what they accept and generate wrong code for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.backends.cgra_tia.fabric import (
    EXTENDED_CORE,
    FABRICS,
    PUBLIC_CORE,
    CgraFabric,
    CoreParameters,
    Profile,
)
from t2s.backends.cgra_tia.machine.profile_a import (
    MOST_CYCLES,
    PublicRun,
    TriggeredDeadlockError,
    TriggeredLimitError,
    run_public,
)
from t2s.backends.cgra_tia.program import CellProgram
from t2s.backends.cgra_tia.text.checks import check_programs
from t2s.backends.cgra_tia.text.encoding import (
    decode_programs,
    encode_program,
    words_of_file,
    words_to_binary,
    words_to_hex,
)
from t2s.backends.cgra_tia.text.parser import parse_programs
from t2s.backends.cgra_tia.text.places import TriggeredTextError
from t2s.backends.cgra_tia.text.printer import print_programs
from t2s.core.errors import UserError
from t2s.core.files import write_texts
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.renaming import warn_renamed
from t2s.core.validate import as_int, checked_folder
from t2s.driver.design import Design
from t2s.driver.recognize import design_of
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.graph import Graph

if TYPE_CHECKING:
    from t2s.backends.cgra_tia.profile_a import PublicDesign

MEMORY_WORDS = 32_786
"""Words of the public test systems' memory: the least that a run has."""

__all__ = [
    "EXTENDED_CORE",
    "MOST_CYCLES",
    "PUBLIC_CORE",
    "CoreParameters",
    "PublicRun",
    "TriggeredDeadlockError",
    "TriggeredDesign",
    "TriggeredDesignRun",
    "TriggeredLimitError",
    "TriggeredProgram",
    "TriggeredTextError",
    "assemble",
    "compile",
    "disassemble",
    "run",
]


@dataclass(frozen=True, kw_only=True, repr=False)
class TriggeredProgram:
    """The programs of some processing elements, in the order of the text."""

    programs: tuple[CellProgram, ...]
    core: CoreParameters = field(default=PUBLIC_CORE)

    @property
    def text(self) -> str:
        """The programs as a text, without the comments of the original."""
        return print_programs(self.programs, self.core)

    @property
    def words(self) -> tuple[int, ...]:
        """The words (32 bits): for each program its registers, and then its instructions."""
        return tuple(
            word for program in self.programs for word in encode_program(program, self.core)
        )

    @property
    def hex(self) -> str:
        """The words as hexadecimal digits, one word per line."""
        return words_to_hex(self.words)

    @property
    def binary(self) -> bytes:
        """The words as little-endian bytes."""
        return words_to_binary(self.words)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        count = sum(len(program.instructions) for program in self.programs)
        return f"<TriggeredProgram: {len(self.programs)} elements, {count} instructions>"


@dataclass(frozen=True, kw_only=True)
class TriggeredDesignRun:
    """A run of a design: its ``outputs`` by name, and the run of its program."""

    outputs: Mapping[str, Array] = field(repr=False)
    run: PublicRun

    @property
    def cycles(self) -> int:
        """The number of the last cycle, from 0."""
        return self.run.cycles


@dataclass(frozen=True, kw_only=True, repr=False)
class TriggeredDesign:
    """A design as a program for an array, or for a single PE."""

    source: Design
    graph: Graph
    compiled: PublicDesign

    @cached_property
    def text(self) -> str:
        """The programs of all PEs, row by row, with the user's lines as comments."""
        return self.compiled.text

    @cached_property
    def program(self) -> TriggeredProgram:
        """The assembled text."""
        return assemble(self.text, strict=True)

    @property
    def starts(self) -> Mapping[str, int]:
        """The first word of each tensor in the memory, which holds them row by row."""
        return self.compiled.starts

    def memory(self, inputs: Mapping[str, Any]) -> Array:
        """The words of the memory (uint32) before a run: these inputs, and zeros for results."""
        stage = next(self.source.stages(inputs))
        if stage.graph is not self.graph and stage.graph != self.graph:
            raise UserError(
                f"{self.graph.name!r} was compiled for other inputs",
                location=user_location(),
                expected="inputs from which the same graph follows",
                given="extents, matrices or tensors of another size or structure",
                hint="compile the design with these inputs",
            )
        arrays, _ = check_graph_inputs(self.graph, dict(stage.arrays), dict(stage.scalars))
        return self.compiled.memory(arrays)

    def outputs(self, memory: Any) -> dict[str, Array]:
        """The results by name, from the words of the memory after a run."""
        return self.compiled.outputs(np.asarray(memory))

    def run(self, inputs: Mapping[str, Any], **options: Any) -> TriggeredDesignRun:
        """Run it on some inputs; ``options`` are those of ``t2s.triggered.run``."""
        rows, columns = self.compiled.shape or (None, None)
        result = run(self.program, self.memory(inputs), rows=rows, columns=columns, **options)
        return TriggeredDesignRun(outputs=self.outputs(result.memory), run=result)

    def write(self, directory: str | Path) -> tuple[Path, ...]:
        """The old name of ``emit``."""
        warn_renamed("compiled.write(folder)", "compiled.emit(folder)")
        return self.emit(directory)

    def emit(self, directory: str | Path) -> tuple[Path, ...]:
        """Write ``NAME.tia`` and ``NAME.memory.json`` (shape of the array, tensor addresses)."""
        folder = checked_folder("the directory", directory)
        name, layout = self.graph.name, {"shape": self.compiled.shape, "starts": dict(self.starts)}
        files = {f"{name}.tia": self.text, f"{name}.memory.json": json.dumps(layout) + "\n"}
        return write_texts(folder, files, user_location())

    def __repr__(self) -> str:
        return f"<TriggeredDesign {self.graph.name} on {self.compiled.where}>"


def compile(
    design: object,
    inputs: Mapping[str, Any] | None = None,
    *,
    rows: int | None = None,
    columns: int | None = None,
    seed: int = 0,
) -> TriggeredDesign:
    """Compile a design on int32 or uint32 to assembly for the public tools.

    ``rows`` and ``columns`` are those of the array; without both it is a single PE.  ``inputs`` are
    what the design's graph depends on, and ``seed`` chooses among arrangements.

    Raises ``UnsupportedError``, with the user's line, for what such an array cannot do.
    """
    from t2s.backends.cgra_tia.profile_a import compile_public

    shape = None
    if rows is not None or columns is not None:
        shape = _positive("rows", rows), _positive("columns", columns)
    source = design_of(design)
    graph = source.only_stage(inputs, "triggered.compile").graph
    compiled = compile_public(graph, shape, seed=seed)
    return TriggeredDesign(source=source, graph=graph, compiled=compiled)


Core = CoreParameters | CgraFabric | str


def assemble(
    text: str | os.PathLike[str],
    core: Core = PUBLIC_CORE,
    *,
    strict: bool = False,
    check: bool = True,
) -> TriggeredProgram:
    """The programs of a text, or of the file at a ``Path``.

    ``core`` are the sizes of a processing element, or a fabric (or its name) with such a core.
    ``strict`` turns warnings into errors.  Without ``check`` a text may be a fragment: whole
    programs are not checked.

    Raises ``UserError``, with line and column, for a text that is wrong, or that the public
    assembler would generate wrong code for.
    """
    source, file = _source(text)
    parameters = _core(core)
    programs = parse_programs(source, parameters, file)
    if check:
        check_programs(programs, parameters, text=source, file=file, strict=strict)
    return TriggeredProgram(programs=programs, core=parameters)


def disassemble(code: Any, core: Core = PUBLIC_CORE) -> TriggeredProgram:
    """The programs of a sequence of words, of the content of a file, or of the file at a ``Path``.

    Raises ``UserError`` for words that do not encode programs.
    """
    parameters = _core(core)
    if isinstance(code, os.PathLike):
        code = _content(Path(code))
    if isinstance(code, str):
        code = code.encode("ascii", "replace")
    if isinstance(code, bytes | bytearray):
        return TriggeredProgram(
            programs=decode_programs(words_of_file(bytes(code)), parameters), core=parameters
        )
    words = [as_int(word) for word in np.asarray(code).reshape(-1)]
    known = [word for word in words if word is not None and 0 <= word < 1 << 32]
    if len(known) != len(words):
        raise UserError(
            "the code has elements that are not words",
            location=user_location(),
            expected="whole numbers of 32 bits, bytes, or the path of a file",
            given=repr(code)[:80],
        )
    return TriggeredProgram(programs=decode_programs(known, parameters), core=parameters)


def run(
    program: TriggeredProgram | str | os.PathLike[str],
    memory: Any = (),
    *,
    rows: int | None = None,
    columns: int | None = None,
    words: int | None = None,
    max_cycles: int = MOST_CYCLES,
    trace: bool = False,
    strict: bool = False,
) -> PublicRun:
    """Run a program, or a text, as the public simulator does.

    ``memory`` are the initial words; the memory has ``words`` of them, and at least as many as
    ``memory`` (default: 32,786, as in the public test systems).  The elements are an array of
    ``rows`` and ``columns``. Without either, a single element has two read ports and a write port
    of its own, and a square number of elements is a square.  ``trace`` records the instruction of
    every cycle.

    Raises ``UserError`` like ``assemble``, and for operators that no public simulator has,
    addresses beyond the memory, deadlocks, and runs that do not end within ``max_cycles``.
    """
    if not isinstance(program, TriggeredProgram):
        program = assemble(program, strict=strict)
    if program.core.profile is not Profile.PUBLIC:
        raise UserError(
            "a program of profile B does not run alone",
            location=user_location(),
            expected="a program of the public core, or a placed design",
            given=f"{len(program.programs)} cells for the extended core",
            hint="its stream units and nets are in a placement file",
        )
    return run_public(
        program.programs,
        _memory(memory, words),
        program.core,
        shape=_shape(len(program.programs), rows, columns),
        max_cycles=_positive("max_cycles", max_cycles),
        keep_trace=trace,
    )


def _source(text: object) -> tuple[str, str]:
    """The text, and the name of its file."""
    if isinstance(text, str):
        if "\n" not in text and text.endswith(".tia"):
            raise UserError(
                f"{text!r} is a file name, not a program",
                location=user_location(),
                expected="the text of a program, or the Path of a file",
                given="a str without a line break",
                hint=f"pathlib.Path({text!r}) names the file",
            )
        return text, "<text>"
    if not isinstance(text, os.PathLike):
        raise UserError(
            "not the text of a program",
            location=user_location(),
            expected="a str, or the Path of a file",
            given=repr(text)[:80],
        )
    content = _content(Path(text))
    try:
        return content.decode("utf-8"), os.fspath(text)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{os.fspath(text)!r} is not a text",
            location=user_location(),
            expected="a text in UTF-8",
            given=f"byte {error.start} is {content[error.start]:#x}",
        ) from None


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UserError(
            f"{os.fspath(path)!r} cannot be read",
            location=user_location(),
            expected="a file",
            given=getattr(error, "strerror", None) or str(error),
        ) from None


def _core(core: object) -> CoreParameters:
    match core:
        case CoreParameters():
            return core
        case CgraFabric():
            return core.core
        case str() if core in FABRICS:
            return FABRICS[core].core
    raise UserError(
        "unknown core",
        location=user_location(),
        expected=f"CoreParameters, a CgraFabric, or one of {', '.join(FABRICS)}",
        given=repr(core),
    )


def _memory(memory: Any, words: int | None) -> Array:
    """The initial memory: the user's words, then zeros."""
    try:
        initial = np.asarray(memory)
    except ValueError:  # ragged lists
        initial = np.zeros((0, 0))
    whole_numbers = initial.dtype.kind in "iub" or not initial.size
    fits = whole_numbers and all(-(1 << 31) <= int(word) < 1 << 32 for word in initial.reshape(-1))
    if initial.ndim != 1 or not fits:
        raise UserError(
            "the memory is not a list of words",
            location=user_location(),
            expected="one dimension of whole numbers that fit into 32 bits",
            given=f"{initial.dtype} of shape {initial.shape}",
        )
    size = MEMORY_WORDS if words is None else _positive("words", words)
    full = np.zeros(max(size, initial.size), np.uint32)
    full[: initial.size] = initial.astype(np.int64) & 0xFFFFFFFF
    return full


def _positive(name: str, value: object) -> int:
    if (number := as_int(value)) is not None and number > 0:
        return number
    raise UserError(
        f"{name} must be a positive integer",
        location=user_location(),
        expected="a whole number of at least 1",
        given=repr(value),
    )


def _shape(count: int, rows: object, columns: object) -> tuple[int, int] | None:
    """Rows and columns of the array, or ``None`` for a single element."""
    side = round(count**0.5)
    if rows is None and columns is None:
        if count == 1:
            return None
        rows = columns = side
    elif rows is None:
        rows = -(-count // _positive("columns", columns))
    elif columns is None:
        columns = -(-count // _positive("rows", rows))
    height, width = _positive("rows", rows), _positive("columns", columns)
    if height * width == count:
        return height, width
    raise UserError(
        f"{count} programs do not fill an array of {height} rows and {width} columns",
        location=user_location(),
        expected="a program for each element, row by row",
        given=f"{count} programs, {height * width} elements",
        hint="pass rows=... and columns=...; an idle element has a program of one halt",
    )
