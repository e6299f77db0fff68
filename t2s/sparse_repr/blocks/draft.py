"""Blocks: their base class, the draft of their machines, and rules that many of them share.

A ``StreamBlock`` is a frozen dataclass of the parameters of a block.  For the types of its streams
it drafts its machine, whose channels are named by the ports of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import signature
from typing import Any

from t2s.core.errors import UserError
from t2s.core.expr import all_hold, equals
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.validate import as_int
from t2s.core.walk import Term, children
from t2s.graph.body import Role
from t2s.graph.build import In, MachineDraft, Out, put, rule, when
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import DONE, Choice, Machine


class BlockKind(Enum):
    """The kind of a block, for counting [SAM, Table 1]."""

    SCAN = "level scanner"
    REPEAT = "repeat"
    INTERSECT = "intersect"
    UNION = "union"
    COMPUTE = "ALU"
    REDUCE = "reduce"
    DROP = "coordinate drop"
    WRITE = "level writer"
    ARRAY = "array"
    LOCATE = "locate"
    ROOT = "root"
    CONVERT = "convert"
    PARALLEL = "parallel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block(Term):
    """A machine that names its ports in place of channels, with the tensors that it uses."""

    kind: BlockKind
    machine: Machine
    inputs: tuple[In, ...]
    outputs: tuple[Out, ...]
    tensors: tuple[Tensor, ...] = ()


class StreamBlock(Term):
    """Base of the blocks: a frozen dataclass of the parameters of its machine.

    ``draft`` writes the machine, for the types of the streams that go into its ports in order.
    """

    __slots__ = ()

    kind: BlockKind
    role: Role = Role.RELAY

    def draft(self, draft: Draft, *inputs: Any, **_: Any) -> None:
        """Write the machine for inputs of these types.  Composite blocks have no machine."""
        raise NotImplementedError

    def block(self, inputs: Sequence[StreamType], location: SourceLocation | None) -> Block:
        """The machine for inputs of these types, with its ports and tensors."""
        draft = Draft(self.kind, self.role, location)
        taken = signature(self.draft)
        try:
            taken.bind(draft, *inputs)
        except TypeError:
            raise UserError(
                f"a block {type(self).__name__} does not take {len(inputs)} streams",
                location=location,
                expected=f"the streams {', '.join(tuple(taken.parameters)[1:]) or 'of none'}",
            ) from None
        for term in children(self):
            if isinstance(term, Tensor):
                draft.tensor(term)
        self.draft(draft, *inputs)
        return draft.block()


class Draft(MachineDraft):
    """The parts of a block, collected."""

    def __init__(self, kind: BlockKind, role: Role, location: SourceLocation | None) -> None:
        super().__init__("block", role, location=location)
        self._kind = kind
        self._outputs: list[Out] = []
        self._tensors: dict[str, Tensor] = {}
        self._start: str | None = None
        self._interval, self._latency = 1, 0

    def takes(self, *, interval: int, latency: int) -> None:
        """Set the cycles between firings, and those of a token besides its operators."""
        self._interval, self._latency = interval, latency

    def input(self, port: str, stream: StreamType) -> In:
        """An input port."""
        return self.take(port, stream, f"{port}_value", f"{port}_tag")

    def output(self, port: str, type: Type, kind: StreamKind, nesting: int) -> Out:
        """An output port."""
        stream = StreamType(element=type, kind=kind, nesting=nesting)
        self._outputs.append(Out(port=port, stream=stream))
        return self._outputs[-1]

    def tensor(self, tensor: Tensor) -> Tensor:
        """Say that the block uses a tensor."""
        self._tensors[tensor.name] = tensor
        return tensor

    def start(self, mode: str) -> None:
        """Set the mode at the start; the default is the first one."""
        self._start = mode

    def block(self) -> Block:
        """The block of these parts."""
        self.modes.sort(key=lambda mode: self._start not in (None, mode.name))
        return Block(
            kind=self._kind,
            machine=self.machine(interval=self._interval, latency=self._latency),
            inputs=tuple(self.inputs),
            outputs=tuple(self._outputs),
            tensors=tuple(self._tensors.values()),
        )


def pass_done(source: In, *outputs: Out) -> Choice:
    """Pass the end of the stream on, and end the machine."""
    return when(
        source.is_done,
        rule("done", None, takes=[source], puts=[put(o, tag=DONE) for o in outputs]),
    )


def ends(inputs: Sequence[In], *outputs: Out, after: str = "run") -> list[Choice]:
    """Pass on a stop, or the end, that all inputs have in common."""
    first, *others = inputs
    same = [equals(first.tag, other.tag) for other in others]
    puts = [put(o, tag=first.tag) for o in outputs]
    return [
        when(all_hold(first.is_stop, *same), rule("stop", after, takes=inputs, puts=puts)),
        when(all_hold(first.is_done, *same), rule("done", None, takes=inputs, puts=puts)),
    ]


def check_number(
    what: str,
    value: int,
    least: int,
    location: SourceLocation | None,
    *,
    most: int | None = None,
) -> None:
    """Raise ``UserError`` for a parameter that is not an integer in its range."""
    number = as_int(value)
    if number is None or number < least:
        raise UserError(
            f"{what} must be an integer of at least {least}", location=location, given=repr(value)
        )
    if most is not None and number > most:
        raise UserError(f"{what} must be at most {most}", location=location, given=repr(value))
