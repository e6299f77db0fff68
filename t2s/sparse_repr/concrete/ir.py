"""Concrete index notation: the loops and the arrays of an assignment.

A program is a list of *stages* that run one after another; each stage is one graph.  A stage is a
loop nest: ``Forall`` over a variable, ``Where`` a producer computes a temporary that its consumer
reads in the same iteration, and ``Assign`` at the bottom.  A stage stores one tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from t2s.core.location import SourceLocation
from t2s.core.walk import Term, walk
from t2s.sparse_repr.formats import Format, Part
from t2s.sparse_repr.notation.ir import (
    Access,
    Choice,
    Expression,
    Sum,
    Unary,
    accesses,
    print_expression,
)
from t2s.sparse_repr.notation.support import elsewhere, vanishes
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring, TypedNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Term):
    """``result = value``, or ``result += value`` if ``accumulate``; no sums inside.

    It is computed over a ``semiring`` of its own, or over that of the program.  A temporary that is
    ``everywhere`` has a value at all coordinates, zero where nothing was computed.
    """

    result: Access
    value: Expression
    accumulate: bool = False
    semiring: Semiring | None = None
    everywhere: bool = False


class LoopPattern(Enum):
    """The parallel pattern that computes a loop; the value is what users write."""

    FOREACH = "foreach"
    REDUCTION = "reduction"


EMPTY = 1 / 4
"""Least share of empty rows for which rows are compressed: others take twice the room then."""

ROOM = 1 << 20
"""Elements of the largest temporary that is stored densely because that is faster to look up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forall(Term):
    """The statement for every coordinate of a variable, in increasing order.

    ``located`` names tensors whose level here is not scanned: the other operands' coordinates
    locate into it.  Of those ``by_default``, for which nobody asked, dense levels are meant; others
    of the same tensor are scanned.  The coordinates are dealt to ``lanes`` copies of the body in
    turn.  With ``skip`` the scanners of an intersection skip what another operand lacks.  ``fused``
    names the loop that this one and the one right around it make together; the lanes are its, which
    get ``run`` of its coordinates in turn.  ``vector`` iterations, the innermost ones, are computed
    at once.  With ``everything`` all coordinates are visited, whatever the operands store.

    For Capstan the loop is computed by a ``pattern``, ``factor`` iterations at a time: a number, or
    the environment variable that gives it.  A loop with ``communicate`` ends with the transfer of
    the result.
    """

    variable: str
    body: Statement
    located: tuple[str, ...] = ()
    by_default: tuple[str, ...] = ()
    lanes: int = 1
    run: int = 1
    skip: bool = False
    fused: str = ""
    vector: int = 0
    everything: bool = False
    pattern: LoopPattern | None = None
    factor: int | str = 1
    communicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Where(Term):
    """The consumer reads the temporary that the producer computes."""

    consumer: Statement
    producer: Statement


Statement = Assign | Forall | Where


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Term):
    """A tensor as a stage reads or writes it, if that differs from how the user's is stored.

    Each mode of the view is a part of a mode of ``source``; several parts of one mode are equal
    there (a diagonal).  ``reasons`` say what the view is for.
    """

    name: str
    source: str
    parts: tuple[tuple[Part, ...], ...]
    format: Format
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWorkspace(Term):
    """A temporary that a stage stores and a later one reads, by whole variables.

    ``value`` is what it is assigned, in index notation.  Its format is what the user ``declared``,
    or the compiler's choice.  ``apart``: it is summed up apart from factors that it was multiplied
    with.  ``roomy``: all of its levels may be dense where the call shows that there is room.
    ``padded``: it has zeros of a dense array, which are not stored where the call shows that all
    operands are finite.  ``rows`` are inputs: where many of their rows are empty so are its own,
    which are compressed then.
    """

    result: Access
    value: Expression
    format: Format
    declared: bool = False
    apart: bool = False
    roomy: bool = False
    padded: bool = False
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescan(Term):
    """A sum in which the same fiber of ``factor`` is scanned again in all iterations of a loop.

    It is one of ``level``, the first compressed one; with loops in this ``order`` the loop is the
    one over ``again``.  The factors ``first`` may be
    computed before, into a dense array that is looked up.
    """

    term: Sum
    factor: Access
    level: int
    first: tuple[Expression, ...]
    again: str
    order: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScan(Term):
    """An input whose compressed rows are scanned again in all iterations of the loop ``again``.

    The loop over the rows, ``row``, visits those that another input has, ``by``.  So the level of
    the rows may be dense, and looked up, where the call shows that this takes fewer cycles.
    """

    access: Access
    by: Access
    row: str
    again: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor(Term):
    """A tensor that stages use: the format in which they do."""

    name: str
    format: Format


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLoop(Term):
    """A variable as ``outer * factor + inner``.

    ``exact``: the factor has to divide the extent, since the expression is summed over coordinates
    where nothing is stored, and there must be none beyond the end.
    """

    variable: str
    outer: str
    inner: str
    factor: int
    exact: bool = False
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedVariable(Term):
    """A variable along which tensors are divided into blocks of a size: its loops are over blocks.

    ``exact``: the size has to divide the extent, since what is computed beyond the end would count.
    """

    variable: str
    size: int
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Adaptation:
    """Choices that follow from the inputs of a call.

    There are terms to sum in two stages, ``dense`` workspaces, those that store no zeros, and
    ``hollow`` ones, many of whose rows are empty; and inputs whose rows are ``looked_up``.
    """

    apart: frozenset[Sum] = frozenset()
    dense: frozenset[str] = frozenset()
    without_zeros: frozenset[str] = frozenset()
    hollow: frozenset[str] = frozenset()
    looked_up: frozenset[str] = frozenset()


UNKNOWN_SIZES = Adaptation()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcreteProgram(Term):
    """The stages in order, and the tensors that they use.

    ``tensors`` has the formats of all tensors of the stages: the user's, views, workspaces.
    ``result`` is the user's result; ``written`` the tensor that the last stage stores for it.
    ``workspaces`` are the results of the assignments before the last one, and ``value`` is what
    that one assigns to the result, in index notation; ``None`` if there is only one.
    Of the tensors ``without_zeros`` that stages write no zeros are stored.
    ``rescans`` are sums that the call may show to be better computed in two stages, and
    ``row_scans`` inputs whose rows it may show to be better looked up.
    ``blocks`` are the variables whose loops are over blocks.
    A program for Capstan has an ``environment``; ``on_chip`` are workspaces that producers make.
    """

    stages: tuple[Statement, ...]
    tensors: tuple[StoredTensor, ...]
    views: tuple[View, ...]
    splits: tuple[SplitLoop, ...]
    result: str
    written: str
    workspaces: tuple[StageWorkspace, ...] = ()
    without_zeros: tuple[str, ...] = ()
    rescans: tuple[Rescan, ...] = ()
    row_scans: tuple[RowScan, ...] = ()
    blocks: tuple[BlockedVariable, ...] = ()
    value: Expression | None = None
    semiring: Semiring = PLUS_TIMES
    environment: tuple[tuple[str, int], ...] = ()
    on_chip: tuple[StoredTensor, ...] = ()
    location: SourceLocation | None = field(default=None, compare=False)

    def workspace_of(self, stored: str) -> tuple[View | None, StageWorkspace] | None:
        """The workspace that a stage stores, and the view of it that it does if it is one.

        Other stages read the workspace, or other views of it.
        """
        sources = {view.name: view for view in self.views}
        view = sources.get(stored)
        for workspace in self.workspaces:
            if workspace.result.tensor in (stored, None if view is None else view.source):
                return view, workspace
        return None

    def workspace_names(self, workspace: StageWorkspace) -> set[str]:
        """The names under which stages write or read a workspace."""
        name = workspace.result.tensor
        return {name, *(view.name for view in self.views if view.source == name)}

    @property
    def fused(self) -> tuple[tuple[str, str, str], ...]:
        """The two variables of every fused loop, and its own name."""
        return tuple(
            (loop.variable, loop.body.variable, loop.body.fused)
            for stage in self.stages
            for loop in walk(stage)
            if isinstance(loop, Forall) and isinstance(loop.body, Forall) and loop.body.fused
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of blocks along the variables that have some."""
        return {blocked.variable: blocked.size for blocked in self.blocks}

    def grid(self, extents: Mapping[str, int]) -> dict[str, int]:
        """How far the loops go, for the extents of all variables."""
        sizes = self.sizes
        return {name: -(-extent // sizes.get(name, 1)) for name, extent in extents.items()}

    def format_of(self, name: str) -> Format:
        """The format of a tensor in the stages; ``KeyError`` if there is none."""
        for tensor in (*self.tensors, *self.on_chip):
            if tensor.name == name:
                return tensor.format
        raise KeyError(name)


def split_names(names: Sequence[str], splits: Sequence[SplitLoop]) -> tuple[str, ...]:
    """The names, with the parts of split variables in their place."""
    expanded = list(names)
    for split in splits:
        if split.variable in expanded:
            at = expanded.index(split.variable)
            expanded[at : at + 1] = [split.outer, split.inner]
    return tuple(expanded)


def result_of(statement: Statement) -> Access:
    """The result of a statement."""
    match statement:
        case Assign(result=result):
            return result
        case Forall(body=body):
            return result_of(body)
        case Where(consumer=consumer):
            return result_of(consumer)


def loops_of(statement: Statement) -> tuple[str, ...]:
    """The loops around the assignment at the bottom, outermost first; not those of producers."""
    match statement:
        case Assign():
            return ()
        case Forall(variable=variable, body=body):
            return (variable, *loops_of(body))
        case Where(consumer=consumer):
            return loops_of(consumer)


def semiring_of(statement: Statement, otherwise: Semiring) -> Semiring:
    """The semiring of the assignment at the bottom of a statement."""
    return next(assigns_of(statement)).semiring or otherwise


def assigns_of(statement: Statement) -> Iterator[Assign]:
    """All assignments of a statement."""
    return (term for term in walk(statement) if isinstance(term, Assign))


def reads_of(statement: Statement) -> tuple[Access, ...]:
    """The external reads of a statement, without temporaries of its own producers."""
    assigns = tuple(assigns_of(statement))
    temporaries = {assign.result.tensor for assign in assigns[1:]}
    temporaries |= {
        result_of(term.producer).tensor for term in walk(statement) if isinstance(term, Where)
    }
    return tuple(
        access
        for assign in assigns
        for access in accesses(assign.value)
        if access.tensor not in temporaries
    )


def print_program(program: ConcreteProgram) -> str:
    """All stages, with the views and splits they need."""
    lines = [f"{s.variable} = {s.factor}*{s.outer} + {s.inner}" for s in program.splits]
    lines += _blocks(program)
    lines += [_view(program, view) for view in program.views]
    lines += [
        f"{print_expression(workspace.result)} is stored as {workspace.format}"
        + ("" if workspace.declared else ", by default")
        + (f", and densely up to {ROOM:,} elements" if workspace.roomy else "")
        + (", and without zeros where all operands are finite" if workspace.padded else "")
        + (
            f", and sparser where many rows of {' or '.join(workspace.rows)} are empty"
            if workspace.rows
            else ""
        )
        for workspace in program.workspaces
    ]
    lines += [
        f"{print_expression(scan.factor)} is scanned again for every {scan.again}, by default, and "
        f"{'*'.join(map(print_expression, scan.first))} is looked up where that takes fewer cycles"
        for scan in program.rescans
    ]
    lines += [
        f"rows of {print_expression(scan.access)} are scanned again for every {scan.again}, by"
        f" default, and looked up where that takes fewer cycles"
        for scan in program.row_scans
    ]
    lines += [f"zeros of {name} are not stored" for name in program.without_zeros]
    lines += _functions_of_nothing(program)
    lines += [f"{name} = {value}" for name, value in program.environment]
    lines += [f"{tensor.name} is stored as {tensor.format}" for tensor in program.on_chip]
    for stage in program.stages:
        lines += _lines(stage, 0)
    return "".join(f"{line}\n" for line in lines)


def _blocks(program: ConcreteProgram) -> Iterator[str]:
    """The variables that are divided into blocks, by the size of the blocks."""
    by_size: dict[int, list[str]] = {}
    for blocked in program.blocks:
        by_size.setdefault(blocked.size, []).append(blocked.variable)
    for size, names in by_size.items():
        yield f"{', '.join(names)} in blocks of {size}"


def _functions_of_nothing(program: ConcreteProgram) -> Iterator[str]:
    """Functions and choices that are not zero where their operands, which are sparse, are not."""
    formats = {tensor.name: tensor.format for tensor in program.tensors}
    formats |= {view.source: view.format for view in program.views}
    semiring = program.semiring
    values: list[Expression] = [workspace.value for workspace in program.workspaces]
    values += [] if program.value is None else [program.value]
    for value in values:
        everywhere = "" if vanishes(value, semiring) else ", so all coordinates are visited"
        for term in dict.fromkeys(walk(value)):
            match term:
                case Unary(value=operand):
                    decides = operand
                case Choice(condition=decides):
                    pass
                case _:
                    continue
            number = elsewhere(term, None, semiring)
            names = dict.fromkeys(
                access.tensor
                for access in accesses(decides)
                if access.tensor in formats
                and not all(level.full for level in formats[access.tensor].levels)
            )
            if names and isinstance(number, TypedNumber) and vanishes(decides, semiring):
                yield (
                    f"{print_expression(term)} is {number.of(np.dtype(np.float64)):g} where"
                    f" {' and '.join(names)} stores nothing{everywhere}"
                )


def _view(program: ConcreteProgram, view: View) -> str:
    why = "; ".join(view.reasons)
    if view.source == program.result and view.name == program.written:
        return f"{view.source} is converted from {view.name}, stored as {view.format}: {why}"
    return f"{view.name} is {view.source} stored as {view.format}: {why}"


def _lines(statement: Statement, depth: int) -> Iterator[str]:
    indent = "  " * depth
    match statement:
        case Assign(result=result, value=value, accumulate=accumulate):
            sign = "+=" if accumulate else "="
            ring = statement.semiring or PLUS_TIMES
            over = f"  # over ({ring.add.value}, {ring.multiply.value})"
            over = over if ring != PLUS_TIMES else ""
            yield f"{indent}{print_expression(result)} {sign} {print_expression(value)}{over}"
        case Forall(variable=variable, body=body, by_default=chosen, lanes=lanes):
            located = [name for name in statement.located if name not in chosen]
            notes = [f"fused with the loop around it: {statement.fused}"] if statement.fused else []
            notes += [f"locate {', '.join(located)}"] if located else []
            notes += [f"locate {', '.join(chosen)}, by default"] if chosen else []
            notes += ["skip"] if statement.skip else []
            notes += ["all coordinates"] if statement.everything else []
            notes += [f"{statement.vector} at once"] if statement.vector else []
            turn = f" of {statement.run} at a time" if statement.run > 1 else ""
            notes += [f"{lanes} lanes{turn}"] if lanes > 1 else []
            if statement.pattern is not None:
                notes += [f"{statement.pattern.value} by {statement.factor}"]
            notes += ["communicate behind it"] if statement.communicate else []
            note = f"  # {'; '.join(notes)}" if notes else ""
            yield f"{indent}for {variable}:{note}"
            yield from _lines(body, depth + 1)
        case Where(consumer=consumer, producer=producer):
            yield f"{indent}with {print_expression(result_of(producer))}:"
            yield from _lines(producer, depth + 1)
            yield from _lines(consumer, depth)
