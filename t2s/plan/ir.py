"""Plans: steps in order, over tensors with formats.  Each step writes one tensor.

``CallStep`` is a mapping of a part to a function, which may be hardware of the simulator;
``LoopsStep`` is an assignment that we compute; ``ConvertStep`` stores a tensor in another format;
``MoveStep`` puts it into another memory; ``CheckStep`` looks at the values of an input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from t2s.capability.hardware import HostLink, MemoryOf
from t2s.capability.ir import Condition
from t2s.capability.mapping import Mapping
from t2s.capability.solver import Proof
from t2s.core.location import SourceLocation
from t2s.core.walk import Term
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import Assignment, accesses


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertStep(Term):
    """``target`` is ``source`` in another format, or with its modes in another order."""

    target: str
    source: str
    format: Format
    modes: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStep(Term):
    """The values of an input have a property that it is declared to have."""

    tensor: str
    property: str
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStep(Term):
    """A tensor is copied over a link from one memory into another; it stays where it was, too."""

    tensor: str
    source: MemoryOf
    target: MemoryOf
    link: HostLink


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopsStep(Term):
    """An assignment that we compute."""

    assignment: Assignment


@dataclass(frozen=True, kw_only=True, eq=False)
class CallStep:
    """Calls of a function, as a mapping says.

    ``reads`` are the tensors of the plan that the operands are; ``meaning`` is the statement that
    the calls compute, which is also the fallback where the condition does not hold in a run, if
    ``falls_back``.  ``tiles`` and ``pads`` say what may be done about a condition; ``proof`` is
    what is known of it before a run.
    """

    target: str
    mapping: Mapping
    reads: tuple[tuple[str, str], ...]
    meaning: Assignment
    tiles: bool
    pads: bool
    falls_back: bool
    proof: Proof
    location: SourceLocation | None = None


Step = ConvertStep | CheckStep | MoveStep | LoopsStep | CallStep


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanProgram:
    """A plan of an assignment.

    ``tensors`` are the formats of all that is given and written; ``facts`` what the user says of
    extents; ``result`` is the tensor that the last step writes.
    """

    assignment: Assignment
    steps: tuple[Step, ...]
    tensors: tuple[tuple[str, Format], ...]
    facts: tuple[tuple[Condition, SourceLocation], ...]
    result: str

    @property
    def calls(self) -> tuple[CallStep, ...]:
        """The steps that call functions."""
        return tuple(step for step in self.steps if isinstance(step, CallStep))

    def format_of(self, name: str) -> Format:
        """The format of a tensor; ``KeyError`` if there is none."""
        return dict(self.tensors)[name]


def target_of(step: Step) -> str | None:
    """The tensor that a step writes, if it writes one."""
    match step:
        case CheckStep() | MoveStep():
            return None
        case LoopsStep(assignment=assignment):
            return assignment.result.tensor
        case _:
            return step.target


def sources_of(step: Step) -> tuple[str, ...]:
    """The tensors that a step reads."""
    match step:
        case CheckStep(tensor=name) | MoveStep(tensor=name) | ConvertStep(source=name):
            return (name,)
        case CallStep(reads=reads):
            return tuple(dict.fromkeys(name for _, name in reads))
        case LoopsStep(assignment=assignment):
            read = (access.tensor for access in accesses(assignment.value))
            return tuple(dict.fromkeys(read))
        case _:
            assert_never(step)
