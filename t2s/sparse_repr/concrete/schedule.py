"""Schedules of assignments.  Each directive is a value with the user's line."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int
from t2s.sparse_repr.concrete.external_directives import ExternalSchedule
from t2s.sparse_repr.concrete.pattern_directives import (
    LoopDirective,
    said_of_patterns,
    variable_name,
)
from t2s.sparse_repr.formats import Format, as_format
from t2s.sparse_repr.notation.ir import Access, Expression
from t2s.sparse_repr.notation.symbols import Notation, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLoops(LoopDirective):
    """The order of all loops, outermost first."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitVariable(LoopDirective):
    """``variable`` becomes ``outer * factor + inner``."""

    variable: str
    outer: str
    inner: str
    factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Locate(LoopDirective):
    """The dense level of a tensor at a variable is located into, not scanned."""

    tensor: str
    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanLevels(LoopDirective):
    """Dense levels are scanned even if the default is to locate into them.

    That of ``tensor`` at ``variable``; all of the tensor, or of all tensors, if one is empty.
    """

    tensor: str = ""
    variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelize(LoopDirective):
    """The coordinates of a variable are dealt to copies of its loop body."""

    variable: str
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseVariables(LoopDirective):
    """The directly nested loops over ``outer`` and ``inner`` become one over ``fused``."""

    outer: str
    inner: str
    fused: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectorize(LoopDirective):
    """``lanes`` coordinates of a variable at once, in the innermost loop."""

    variable: str
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip(LoopDirective):
    """The scanners of an intersection skip the coordinates that another operand lacks."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transpose(LoopDirective):
    """These tensors may be converted to a fitting order of levels; all if none is named."""

    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropZeros(LoopDirective):
    """Zeros of these results, or of the assignment's if there is none, are not stored."""

    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Precompute(LoopDirective):
    """A part of the expression is computed first, into a workspace.

    ``format`` and the variables ``over`` of the workspace are ``None`` if not specified.
    Streams compute it in a stage of its own, Capstan inside of the loops around the part.
    """

    value: Expression
    workspace: str
    format: Format | None = None
    over: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(ExternalSchedule):
    """A list of directives; every method returns an extended one.

    ``Schedule().reorder("i", "k", "j").transpose(B)``
    """

    directives: tuple[LoopDirective, ...] = ()

    def reorder(self, *variables: Any) -> Schedule:
        """The order of all loops, outermost first, over the variables after all splits."""
        names = tuple(variable_name(variable) for variable in variables)
        if len(names) == 1:
            names = tuple(names[0].replace(",", " ").split())
        return self._with(OrderLoops(variables=names, location=user_location()))

    def split(self, variable: Any, outer: Any, inner: Any, factor: int) -> Schedule:
        """Split a variable; the tensors at it are stored with a level for each part.

        A fused loop is split by position: ``factor`` entries, one after the other, are a part, and
        ``parallelize(outer, lanes)`` deals these parts.
        """
        location = user_location()
        count = as_int(factor)
        if count is None or count < 1:
            raise UserError(
                "the factor of a split is a positive integer",
                location=location,
                given=repr(factor),
            )
        names = variable_name(variable), variable_name(outer), variable_name(inner)
        split = SplitVariable(
            variable=names[0], outer=names[1], inner=names[2], factor=count, location=location
        )
        return self._with(split)

    def locate(self, tensor: Any, variable: Any) -> Schedule:
        """Locate into the dense level of a tensor instead of scanning it [SAM, sec. 4.2]."""
        return self._with(
            Locate(
                tensor=variable_name(tensor),
                variable=variable_name(variable),
                location=user_location(),
            )
        )

    def scan(self, tensor: Any = None, variable: Any = None) -> Schedule:
        """Scan the dense level of a tensor at a variable, and intersect it with the others.

        Without a variable it applies to all dense levels of the tensor, without a tensor to those
        of all tensors.  By default they are located into if another operand bounds the loop.
        """
        location = user_location()
        if tensor is None and variable is not None:
            raise UserError(
                "scan names a variable without a tensor",
                location=location,
                expected="scan(tensor, variable), scan(tensor), or scan() for all dense levels",
            )
        names = ["" if named is None else variable_name(named) for named in (tensor, variable)]
        return self._with(ScanLevels(tensor=names[0], variable=names[1], location=location))

    def parallelize(self, variable: Any, lanes: int) -> Schedule:
        """Deal the coordinates of a loop to ``lanes`` copies of its body [SAM, sec. 4.4].

        The results are joined in order after the copies, so nothing else changes.
        """
        location = user_location()
        count = as_int(lanes)
        if count is None or count < 1:
            raise UserError(
                "a loop is dealt to a positive number of lanes",
                location=location,
                given=repr(lanes),
            )
        name = variable_name(variable)
        return self._with(Parallelize(variable=name, lanes=count, location=location))

    def fuse(self, outer: Any, inner: Any, fused: Any) -> Schedule:
        """Fuse two directly nested loops.

        ``fused`` counts the coordinates of both, ``outer * extent(inner) + inner``: those that are
        there, one after the other.  So ``parallelize(fused, 4)`` deals entries, however long the
        rows are.  What is inside of the loops is computed in one list of entries.
        """
        names = [variable_name(variable) for variable in (outer, inner, fused)]
        return self._with(
            FuseVariables(outer=names[0], inner=names[1], fused=names[2], location=user_location())
        )

    def skip(self, variable: Any) -> Schedule:
        """Skip coordinates that another level lacks, where levels intersect [SAM, sec. 4.2]."""
        return self._with(Skip(variable=variable_name(variable), location=user_location()))

    def vectorize(self, variable: Any, lanes: int) -> Schedule:
        """Compute ``lanes`` coordinates of a variable at once: values are vectors.

        The variable is split by ``lanes``, and the inner part becomes the innermost loop, over
        the lanes.  It is a dense level of every tensor that has it: a compressed level becomes one
        of blocks with zeros in them, as in ``bcsr``.  A sum over the variable adds up the lanes
        as a balanced tree.
        """
        location = user_location()
        count = as_int(lanes)
        if count is None or count < 2:
            raise UserError("a vector has two lanes or more", location=location, given=repr(lanes))
        return self._with(
            Vectorize(variable=variable_name(variable), lanes=count, location=location)
        )

    def transpose(self, *tensors: Any) -> Schedule:
        """Allow that tensors are converted to an order of levels that fits the loops.

        Without an argument it applies to all tensors.  Dense tensors may always be converted.
        """
        names = tuple(variable_name(tensor) for tensor in tensors)
        return self._with(Transpose(tensors=names, location=user_location()))

    def drop_zeros(self, *tensors: Any) -> Schedule:
        """Do not store zeros of these tensors: the result, which is meant without an argument, and
        workspaces.

        By default a computed zero, such as ``max(A(i,j), 0)`` for a negative element of A, is
        stored.
        """
        names = tuple(variable_name(tensor) for tensor in tensors)
        return self._with(DropZeros(tensors=names, location=user_location()))

    def precompute(
        self,
        value: Notation,
        workspace: str | Notation,
        over: Any = None,
        format: Format | str | None = None,
    ) -> Schedule:
        """Compute a part of the expression first, into ``workspace``, a temporary.

        ``workspace`` is a name, or a ``Tensor`` whose format says how it is stored; where nobody
        says it the compiler chooses.  Its variables are ``over``, or those at which it is given:
        ``precompute(X[j, f] * W[f, k], T[j, k])``, and ``precompute(X[j, f] * W[f, k], "T(j,k)",
        "dd")`` with a format in place of ``over``.

        Streams compute the workspace in a stage of its own.  For Capstan it is on chip, with a
        format and its variables, and computed inside of the loops around the part, up to the first
        one over one of these variables; before all loops if the part has no other variables.
        """
        location = user_location()
        name, declared, variables = _workspace(workspace)
        if variables is not None and format is None and isinstance(over, Format | str):
            over, format = None, over
        if not isinstance(value, Notation) or name is None or (over is not None and variables):
            raise UserError(
                "precompute takes a part of the expression and a name",
                location=location,
                expected='such as precompute(C[i, k] * D[j, k], "T"), or T[i, j] of a tensor T',
                given=f"{value!r}, {workspace!r}"[:200],
            )
        if format is not None:
            declared = as_format(format, what=name, location=location)
            declared = declared.on_chip if isinstance(format, str) else declared
        if over is not None:
            listed = over if isinstance(over, tuple | list) else (over,)
            variables = tuple(variable_name(variable) for variable in listed)
        return self._with(
            Precompute(
                value=value.value,
                workspace=name,
                format=declared,
                over=variables,
                location=location,
            )
        )

    def _with(self, directive: LoopDirective) -> Schedule:
        return replace(self, directives=(*self.directives, directive))

    @property
    def order(self) -> OrderLoops | None:
        """The ``reorder``, if there is one."""
        reorders = [directive for directive in self.directives if isinstance(directive, OrderLoops)]
        return reorders[0] if reorders else None

    @property
    def splits(self) -> tuple[SplitVariable, ...]:
        """All splits of variables, in order; not those of fused loops."""
        fused = {fusion.fused for fusion in self.fused}
        splits = (split for split in self.directives if isinstance(split, SplitVariable))
        return tuple(split for split in splits if split.variable not in fused)

    @property
    def runs(self) -> tuple[SplitVariable, ...]:
        """The splits of fused loops, by position."""
        fused = {fusion.fused for fusion in self.fused}
        splits = (split for split in self.directives if isinstance(split, SplitVariable))
        return tuple(split for split in splits if split.variable in fused)

    @property
    def vectors(self) -> tuple[Vectorize, ...]:
        """All loops that are computed in vectors."""
        return tuple(directive for directive in self.directives if isinstance(directive, Vectorize))

    @property
    def fused(self) -> tuple[FuseVariables, ...]:
        """All pairs of fused loops."""
        return tuple(
            directive for directive in self.directives if isinstance(directive, FuseVariables)
        )

    def may_transpose(self, tensor: str) -> bool:
        """Whether a tensor may be converted to another order of levels."""
        transposes = [
            directive for directive in self.directives if isinstance(directive, Transpose)
        ]
        return any(not transpose.tensors or tensor in transpose.tensors for transpose in transposes)


def _workspace(
    workspace: object,
) -> tuple[str | None, Format | None, tuple[str, ...] | None]:
    """The name of a workspace, and its format and variables if specified."""
    match workspace:
        case str():
            parsed = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*(?:\(([\w\s,]*)\))?\s*", workspace)
            if parsed is None:
                return None, None, None
            if parsed[2] is None:
                return parsed[1], None, None
            names = (name.strip() for name in parsed[2].split(","))
            return parsed[1], None, tuple(name for name in names if name)
        case Tensor():
            return workspace.name, workspace.format, None
        case Notation(value=Access(tensor=name, variables=variables)):
            return (
                name,
                workspace.tensors[name].format if name in workspace.tensors else None,
                variables,
            )
    return None, None, None


def check_once(schedule: Schedule) -> None:
    """Raise ``UserError`` for duplicate directives of a loop."""
    seen: dict[Hashable, LoopDirective] = {}
    for directive in schedule.directives:
        described = _said(directive)
        if described is None:
            continue
        about, text, expected = described
        key = type(directive), about
        if key in seen:
            raise UserError(
                f"{text} twice",
                location=directive.location,
                expected=expected,
                notes=[(seen[key].location, "the first time is here")],
            )
        seen[key] = directive


def _said(directive: LoopDirective) -> tuple[Hashable, str, str] | None:
    """The subject of a directive, its effect on it, and how to combine duplicates."""
    match directive:
        case OrderLoops():
            return None, "the loops are ordered", "one reorder() of all loops"
        case SplitVariable(variable=name, outer=outer, inner=inner):
            expected = f"one split of {name}; its parts {outer} and {inner} can be split again"
            return name, f"{name} is split", expected
        case Parallelize(variable=name):
            return (
                name,
                f"the loop over {name} is dealt to lanes",
                f"one parallelize({name!r}, ...)",
            )
        case Vectorize(variable=name):
            return name, f"{name} is computed in vectors", f"one vectorize({name!r}, ...)"
        case Skip(variable=name):
            return name, f"coordinates of {name} are skipped", f"one skip({name!r})"
        case Locate(tensor=tensor, variable=name):
            text = f"the level of {tensor} at {name} is located into"
            return (tensor, name), text, f"one locate({tensor!r}, {name!r})"
        case ScanLevels(tensor=tensor, variable=name):
            levels = f"the level of {tensor} at {name} is" if name else "dense levels are"
            return (tensor, name), f"{levels} scanned", "one scan() for each level"
        case Precompute(workspace=name):
            return name, f"{name} is computed first", "a name of its own for each workspace"
    return said_of_patterns(directive)
