"""Sparse tensor algebra: from index notation, formats and a schedule to streams, values and cycles.

>>> A, x, y = Tensor("A", csr), Tensor("x", dense(1)), Tensor("y", dense(1))    # doctest: +SKIP
>>> y[i] = A[i, j] * x[j]                                                       # doctest: +SKIP
>>> result = t2s.sparse.simulate(y, {"A": matrix, "x": vector})                 # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.driver.assignment_design import SparseResult, assignment_of
from t2s.driver.capstan_kernel import CapstanKernel
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.imported_model import ImportedModel, from_onnx, from_torch
from t2s.driver.program_result import ProgramResult, StatementRun
from t2s.driver.sparse_search import search
from t2s.driver.sparse_search_result import SparsePoint, SparseSearchResult
from t2s.driver.statement_program import (
    Program,
    checked_formats,
    program_of_tensors,
    program_of_text,
)
from t2s.driver.words import Words
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.schedule_text import parse_schedule
from t2s.sparse_repr.formats import (
    Format,
    bcsr,
    coo,
    csc,
    csf,
    csr,
    dcsc,
    dcsr,
    dense,
    make_format,
    scalar,
)
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.notation.parse import as_mapping, parse_assignment, parse_format
from t2s.sparse_repr.notation.symbols import (
    Notation,
    Tensor,
    erf,
    exp,
    gelu,
    gelu_erf,
    largest,
    layernorm,
    log,
    maximum,
    mean,
    minimum,
    relu,
    rsqrt,
    sigmoid,
    silu,
    smallest,
    softmax,
    sqrt,
    stored,
    summation,
    tanh,
    where,
)
from t2s.sparse_repr.semiring import (
    MAX_PLUS,
    MAX_TIMES,
    MIN_MAX,
    MIN_PLUS,
    PLUS_TIMES,
    Semiring,
    make_semiring,
)
from t2s.sparse_repr.streams import UNBOUNDED, EmptyFiber, Stream, Streams
from t2s.sparse_repr.tensors.interchange import tensor, to_pydata, to_scipy
from t2s.sparse_repr.tensors.random_graph import random_graph
from t2s.sparse_repr.tensors.tensor import (
    SparseTensor,
    from_coordinates,
    from_dense,
    from_levels,
)
from t2s.sparse_repr.tensors.tensor_files import read, write

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.memory.spec import Dram
    from t2s.simulator.random_stalls import RandomStalls

__all__ = [
    "MAX_PLUS",
    "MAX_TIMES",
    "MIN_MAX",
    "MIN_PLUS",
    "PLUS_TIMES",
    "CapstanKernel",
    "EmptyFiber",
    "Format",
    "ImportedModel",
    "Kernel",
    "Notation",
    "Op",
    "Program",
    "ProgramResult",
    "Schedule",
    "Semiring",
    "SparsePoint",
    "SparseResult",
    "SparseSearchResult",
    "SparseTensor",
    "StatementRun",
    "Stream",
    "Streams",
    "Tensor",
    "Words",
    "bcsr",
    "compile",
    "coo",
    "csc",
    "csf",
    "csr",
    "dcsc",
    "dcsr",
    "dense",
    "erf",
    "exp",
    "from_coordinates",
    "from_dense",
    "from_levels",
    "from_onnx",
    "from_torch",
    "gelu",
    "gelu_erf",
    "interpret",
    "largest",
    "layernorm",
    "log",
    "make_format",
    "make_semiring",
    "maximum",
    "mean",
    "minimum",
    "parse",
    "program",
    "random_graph",
    "read",
    "relu",
    "rsqrt",
    "scalar",
    "schedule",
    "search",
    "sigmoid",
    "silu",
    "simulate",
    "smallest",
    "softmax",
    "sqrt",
    "stored",
    "summation",
    "tanh",
    "tensor",
    "to_pydata",
    "to_scipy",
    "verilate",
    "where",
    "write",
]

Array = np.ndarray[Any, Any]
Design = Kernel | Tensor | Assignment


@overload
def compile(design: Design, *, semiring: Semiring = PLUS_TIMES) -> Kernel: ...


# Any, because a schedule with external functions gives an ExternalPlan, which types cannot tell
@overload
def compile(
    design: Design,
    schedule: Schedule | str | None = None,
    *,
    semiring: Semiring = PLUS_TIMES,
    target: Literal["streams"] = "streams",
) -> Kernel | Any: ...


@overload
def compile(
    design: Design,
    schedule: Schedule | str | None = None,
    *,
    semiring: Semiring = PLUS_TIMES,
    target: Literal["capstan"],
) -> CapstanKernel: ...


@overload
def compile(
    design: Design,
    schedule: Schedule | str | None = None,
    *,
    semiring: Semiring = PLUS_TIMES,
    target: str = "streams",
) -> Kernel | CapstanKernel | Any: ...


def compile(
    design: Design,
    schedule: Schedule | str | None = None,
    *,
    semiring: Semiring = PLUS_TIMES,
    target: str = "streams",
) -> Kernel | CapstanKernel | Any:
    """Compile an assignment to loops and blocks, over a semiring.

    ``design`` is the result tensor of an assignment in Python (``y`` after ``y[i] = ...``), or what
    ``parse`` returns; ``schedule`` may be the text that ``t2s.sparse.schedule`` takes.  For the
    target ``"capstan"`` the kernel has parallel patterns in place of blocks.  A schedule with
    external functions (``bind`` or ``map`` of a part) gives an ``external.ExternalPlan``.  Raises
    ``UserError`` if the schedule does not fit.
    """
    if target not in ("streams", "capstan"):
        raise UserError(
            f"unknown target {target!r}",
            location=user_location(),
            expected="streams or capstan",
        )
    if isinstance(design, Kernel):
        if schedule is not None or semiring != PLUS_TIMES or target != "streams":
            raise UserError(
                "this kernel is compiled already",
                location=user_location(),
                expected="an assignment, where a schedule or a semiring is given",
                given=repr(design),
                hint="compile its assignment: t2s.sparse.compile(kernel.assignment, schedule)",
            )
        return design
    if isinstance(schedule, str):
        schedule = parse_schedule(schedule, location=user_location())
    if not isinstance(schedule, Schedule | None):
        raise UserError(
            "this is not a schedule",
            location=user_location(),
            expected='a Schedule, or its directives as a text such as "reorder(i,k,j)"',
            given=repr(schedule),
        )
    if not isinstance(design, Tensor | Assignment):
        raise UserError(
            "this is not an assignment",
            location=user_location(),
            expected="the result tensor of an assignment, or what t2s.sparse.parse returns",
            given=repr(design),
        )
    if target == "streams" and schedule is not None and schedule.has_external:
        from t2s.driver.external_plan import compile_plan

        return compile_plan(assignment_of(design), schedule, semiring)
    kind = Kernel if target == "streams" else CapstanKernel
    return kind(assignment_of(design), schedule, semiring)


def _kernel(design: Design, schedule: Schedule | str | None, verb: str) -> Kernel:
    """The kernel that a verb runs.  Raises ``UserError`` for a schedule that makes a plan."""
    kernel = compile(design, schedule)
    if isinstance(kernel, Kernel):
        return kernel
    from t2s.driver.external_plan import refuse_plan

    raise refuse_plan(kernel, verb)


def parse(
    text: str,
    formats: Mapping[str, Format | str] | Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Assignment:
    """An assignment in text: ``parse("y(i) = A(i,j)*x(j)", {"A": csr})``.

    ``formats`` maps names to formats or to their letters (``"ds:1,0"``), or lists options such as
    ``"A:ds:1,0"``; tensors without a format are dense.  ``shapes`` gives the extents of variables
    that no input has.
    """
    location = user_location()
    options = isinstance(formats, list | tuple) and all(isinstance(o, str) for o in formats)
    if not options and not isinstance(formats, Mapping):
        raise UserError(
            "formats must map tensor names to formats",
            location=location,
            expected='names and formats, such as {"A": csr}, or a list such as ["A:ds"]',
            given=repr(formats),
        )
    if not isinstance(formats, Mapping):
        _check_once([option.removeprefix("-f=").split(":")[0] for option in formats], location)
        formats = dict(parse_format(option, location=location) for option in formats)
    return parse_assignment(text, formats, shapes, location=location)


def _check_once(names: Sequence[str], location: SourceLocation) -> None:
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise UserError(
            f"there are two formats for {twice[0]}",
            location=location,
            expected="one format for each tensor",
        )


def program(
    statements: str | Sequence[Tensor],
    formats: Mapping[str, Format | str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Program:
    """Statements that read each other's results, as a text or as a list of assigned tensors.

    A text has a statement on each line, in an order in which they can be computed, and comments
    behind ``#``; ``formats`` and ``shapes`` are those of ``parse``.  A tensor without a format is
    dense, but a result that is zero wherever an operand stores nothing has the pattern of that
    operand.  Tensors of a list come in any order, each with the format that it was declared with.

    Each tensor is assigned once.  Raises ``UserError`` for statements that cannot be computed one
    after the other.
    """
    location = user_location()
    if isinstance(statements, str):
        given = as_mapping("formats", formats, 'names and formats, such as {"A": csr}', location)
        sized = as_mapping("shapes", shapes, 'names and shapes, such as {"y": (3,)}', location)
        return program_of_text(statements, checked_formats(given, location), sized, location)
    if not isinstance(statements, list | tuple):
        raise UserError(
            "this is not a program",
            location=location,
            expected="the text of statements, or a list of tensors that were assigned to",
            given=repr(statements),
        )
    if formats is not None or shapes is not None:
        raise UserError(
            "the tensors of a program have their own formats and shapes",
            location=location,
            expected="formats= and shapes= for a text only",
            hint='declare them where the tensors are made: Tensor("H", csr, shape=(3, 4))',
        )
    return program_of_tensors(statements, location)


def schedule(text: str) -> Schedule:
    """A schedule in text: ``schedule("split(i,i0,i1,32), parallelize(i0,4)")``."""
    return parse_schedule(text, location=user_location())


def simulate(
    design: Design,
    inputs: Mapping[str, Any],
    *,
    schedule: Schedule | str | None = None,
    type: Type | None = None,
    device: str | Device = "ideal",
    memory: str | Dram | None = None,
    engine: str = "native",
    max_cycles: int | None = None,
    progress: bool | None = None,
    stalls: RandomStalls | None = None,
    capacity: int = UNBOUNDED,
    latency: int = 1,
    balance: bool = True,
) -> SparseResult:
    """Compile an assignment and run it cycle by cycle.

    ``inputs`` maps the names of the tensors that are read to a ``SparseTensor``, a sparse object of
    scipy or pydata/sparse, an array or a number; each is stored in the format that its tensor
    declares.  Values are computed in ``type``, by default numpy's result type of all inputs; a
    value that it cannot represent is refused.  All channels have ``capacity`` and ``latency``; with
    ``balance``, a channel parallel to a longer path gets extra capacity for the difference in
    cycles.

    A stage that is cut short has no tensor: ``CycleLimitError`` after ``max_cycles`` cycles and
    ``RunInterrupted`` at Ctrl-C carry the measurements so far as ``result``.
    """
    kernel = _kernel(design, schedule, "simulate")
    return kernel.simulate(
        inputs,
        type=type,
        device=device,
        memory=memory,
        engine=engine,
        max_cycles=max_cycles,
        progress=progress,
        stalls=stalls,
        capacity=capacity,
        latency=latency,
        balance=balance,
    )


def verilate(
    design: Design,
    inputs: Mapping[str, Any],
    *,
    schedule: Schedule | str | None = None,
    type: Type | None = None,
    device: str | Device = "ideal",
    stalls: RandomStalls | None = None,
    capacity: int = UNBOUNDED,
    latency: int = 1,
    balance: bool = True,
    time_limit: float = 60.0,
) -> SparseResult:
    """Compile an assignment and run its SystemVerilog in Verilator.

    Arguments, result and cycles are those of ``simulate``.  Each stage is
    built once, which takes some ten seconds, and may run for ``time_limit`` seconds.  See
    ``t2s.verilate`` for what it needs and what it refuses.
    """
    kernel = _kernel(design, schedule, "verilate")
    return kernel.verilate(
        inputs,
        type=type,
        device=device,
        stalls=stalls,
        capacity=capacity,
        latency=latency,
        balance=balance,
        time_limit=time_limit,
    )


def interpret(design: Design, inputs: Mapping[str, Any], *, type: Type | None = None) -> Array:
    """The result by numpy, dense, in the type of ``simulate``: the oracle of every assignment."""
    return compile(design).interpret(inputs, type=type)
