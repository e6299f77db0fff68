"""Directives for external functions, which compute parts of an assignment [Mosaic, sec. 5].

A schedule only knows the name and the capability of a function, or just its name as text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.renaming import warn_renamed
from t2s.core.validate import as_int
from t2s.sparse_repr.concrete.ir import LoopPattern
from t2s.sparse_repr.concrete.pattern_directives import (
    LoopDirective,
    PatternSchedule,
    variable_name,
)
from t2s.sparse_repr.notation.ir import Expression
from t2s.sparse_repr.notation.symbols import Notation, Tensor


@runtime_checkable
class ComputesParts(Protocol):
    """The interface of an external function for schedules."""

    @property
    def name(self) -> str:
        """Its name, for plans and errors."""

    @property
    def capability(self) -> Any:
        """The statement that it computes."""


FunctionOrName = ComputesParts | str


@dataclass(frozen=True, slots=True, kw_only=True)
class BindPart(LoopDirective):
    """A part is computed by a function, as it stands; ``trusted`` properties are not checked."""

    value: Expression
    function: FunctionOrName = field(compare=False)
    trusted: bool = False
    fallback: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPart(LoopDirective):
    """A part is computed by a function, with any reshaping that makes it match."""

    value: Expression
    function: FunctionOrName = field(compare=False)
    trusted: bool = False
    fallback: bool = True
    pad: bool = True
    densify: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FixVariables(LoopDirective):
    """These variables are constant in each call of the function that is bound next."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteOperand(LoopDirective):
    """A tensor gets a dimension of extent 1 at a position, for the function that is bound next."""

    tensor: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumeExtents(LoopDirective):
    """A condition that the extents of the statement's variables satisfy; checked in every run."""

    condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsOnDevice(LoopDirective):
    """The rest of the assignment is computed by streams on a device, reached over a link."""

    device: Any = field(compare=False)
    link: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInOrder(LoopDirective):
    """A dense tensor is copied with its modes in this order in memory, and read from the copy."""

    tensor: str
    modes: tuple[int, ...]


EXTERNAL_DIRECTIVES = (
    BindPart,
    MapPart,
    FixVariables,
    PromoteOperand,
    AssumeExtents,
    StreamsOnDevice,
    StoreInOrder,
)


class ExternalSchedule(PatternSchedule):
    """The methods of a schedule for external functions."""

    __slots__ = ()

    directives: tuple[LoopDirective, ...]

    @property
    def has_external(self) -> bool:
        """Whether external functions compute parts, so that the result is a plan."""
        return any(isinstance(directive, EXTERNAL_DIRECTIVES) for directive in self.directives)

    def bind(
        self, part: Notation, function: FunctionOrName, *, trusted: bool = False, else_: Any = True
    ) -> Self:
        """Compute a part of the expression by an external function, as it stands.

        ``trusted`` properties of operands are not checked on their values.  With ``else_=None`` a
        failing condition in a run is an error; otherwise the part is then computed by loops.
        """
        location = user_location()
        _check_part("bind", part, function, location)
        return self._with(
            BindPart(
                value=part.value,
                function=function,
                trusted=trusted,
                fallback=else_ is not None,
                location=location,
            )
        )

    def map(
        self,
        part: Any,
        function: Any,
        factor: int | None = None,
        *,
        trusted: bool = False,
        pad: bool = True,
        densify: bool = False,
        else_: Any = True,
    ) -> Self:
        """Compute a part of the expression by an external function: ``map(B[i, j] * x[j], f)``.

        Variables are fixed, fused and promoted, operands transposed and converted, and extents
        tiled to match the statement of the function, with as few fixed variables as possible.
        ``pad=False`` forbids padded tiles; ``densify`` allows sparse operands to become dense.

        Raises ``UserError`` for anything but a part and a function.
        """
        known = isinstance(function, str) and function in {pattern.value for pattern in LoopPattern}
        if known or isinstance(function, LoopPattern) or not isinstance(part, Notation):
            # the name that a pattern of a loop had until release 0.1
            warn_renamed("map(variable, pattern)", "parallel(variable, pattern)")
            return self.parallel(part, function, factor)
        location = user_location()
        _check_part("map", part, function, location)
        return self._with(
            MapPart(
                value=part.value,
                function=function,
                trusted=trusted,
                fallback=else_ is not None,
                pad=pad,
                densify=densify,
                location=location,
            )
        )

    def fix(self, *variables: Any) -> Self:
        """Hold these variables constant in each call of the function that is bound next."""
        names = tuple(variable_name(variable) for variable in variables)
        location = user_location()
        if not names:
            raise UserError(
                "fix names no variable",
                location=location,
                expected="the variables that are constant in a call, such as fix(i, k)",
            )
        return self._with(FixVariables(variables=names, location=location))

    def promote(self, tensor: Any = None, position: Any = None) -> Self:
        """Give a tensor a dimension of extent 1 at a position, for the function bound next.

        Raises ``UserError`` for a position that the tensor does not have.
        """
        if tensor is None and position is None:
            warn_renamed("promote()", "promote_sums()")  # until release 0.1
            return self.promote_sums()
        at = as_int(position)
        location = user_location()
        order = tensor.order if isinstance(tensor, Tensor) else None
        if at is None or at < 0 or (order is not None and at > order):
            raise UserError(
                "a dimension is added at a position of a tensor",
                location=location,
                expected=f"a position from 0 to {order if order is not None else 'the order'}",
                given=repr(position),
            )
        return self._with(
            PromoteOperand(tensor=variable_name(tensor), position=at, location=location)
        )

    def streams(self, device: Any = "ideal", *, link: Any = None) -> Self:
        """Compute the rest of the assignment by streams, on a device of the simulator.

        ``link`` is an ``external.HostLink`` to the device's memory.  Where a part is computed on
        the same device its link is taken if none is given; without any the memory is the host's.
        """
        return self._with(StreamsOnDevice(device=device, link=link, location=user_location()))

    def store(self, tensor: Any, *modes: int) -> Self:
        """Copy a dense tensor with its modes in this order in memory: ``store(D, 1, 0)``.

        Later parts read the copy, by columns here.
        """
        location = user_location()
        numbers = tuple(as_int(mode) for mode in modes)
        if not modes or sorted(numbers, key=str) != list(range(len(modes))):
            raise UserError(
                "a tensor is stored with its modes in some order",
                location=location,
                expected="each mode once, the first one outermost, such as store(D, 1, 0)",
                given=", ".join(map(repr, modes)) or "no modes",
            )
        order = tuple(number for number in numbers if number is not None)
        return self._with(
            StoreInOrder(tensor=variable_name(tensor), modes=order, location=location)
        )

    def assume(self, condition: str) -> Self:
        """Declare a condition on the extents of variables: ``assume("i % 16 == 0 and j <= 255")``.

        Conditions of functions are proved from it, and every run checks it.
        """
        location = user_location()
        if not isinstance(condition, str):
            raise UserError(
                "what is assumed of extents is a text",
                location=location,
                expected='such as "i % 16 == 0 and j <= 255"',
                given=repr(condition),
            )
        return self._with(AssumeExtents(condition=condition, location=location))


def _check_part(what: str, part: object, function: object, location: SourceLocation) -> None:
    if not isinstance(part, Notation) or not isinstance(function, ComputesParts | str):
        raise UserError(
            f"{what} takes a part of the expression and a function",
            location=location,
            expected=f"such as {what}(B[i, j] * C[j, k], external.blas.sgemm)",
            given=f"{part!r}, {function!r}"[:200],
        )
