"""Directives on products of sparse matrices: values, and the fluent API [Sparse T2S, sec. 2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.func.func import ImageParam, Var
from t2s.reduction.carry import Target
from t2s.reduction.circuits import Structure
from t2s.spatial.arguments import LoopVariable
from t2s.spatial.directive import SparseDirective
from t2s.spatial.schedule import IsolatingFunc, ScheduledFunc


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStructure(SparseDirective):
    """The function loads these parts of the structure, named by their Vars."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferAll(SparseDirective):
    """The function keeps all of ``operand`` on the chip; in ``banks``, or a copy for each use."""

    operand: str
    banks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousReduction(SparseDirective):
    """In an iteration of ``loop``, results are completed one after the other."""

    loop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctReduction(SparseDirective):
    """Different iterations of ``loop`` have different results."""

    loop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolateReduction(SparseDirective):
    """Local sums move into ``function``; the rest adds those."""

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CombineReduction(SparseDirective):
    """The reductions of all iterations of ``loop`` become one."""

    loop: str
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionCircuit(SparseDirective):
    """The function is a circuit of this structure."""

    structure: Structure
    levels: int


MOST_LEVELS = 6


class SparseFunc(IsolatingFunc):
    """A Func whose definition may read a matrix in a representation."""

    def load_structure(self, *parts: Var, design: ScheduledFunc | None = None) -> Self:
        """Load parts of the structure, named by the Vars of the chain.

        ``design`` is the Func it belongs to, for a Func that was not isolated from another one.
        """
        names = self._structure(parts)
        if design is not None:
            self._belong(design)
        return self._add(
            LoadStructure(
                parts=names, location=user_location(), text=f"load_structure({', '.join(names)})"
            )
        )

    def buffer(
        self,
        operand: ImageParam | ScheduledFunc,
        loop: LoopVariable | None = None,
        *,
        double: bool = True,
        banks: int | None = None,
    ) -> Self:
        """Keep the tokens of ``operand`` in one iteration of ``loop`` on chip; without a loop, all.

        A double buffer fills one half while it sends from the other; a single one does both in
        turn.  Buffers without a loop belong to products of sparse matrices: every multiplier has a
        copy, or all share one that is dealt to ``banks``, a power of two.
        """
        if loop is not None:
            return super().buffer(operand, loop, double=double)
        name = self._operand("buffer", operand)
        text = f"buffer({name})" if banks is None else f"buffer({name}, banks={banks})"
        if banks is not None and self._positive("buffer", "number of banks", banks) & (banks - 1):
            raise UserError(
                f"the number of banks of buffer on {self.name} has to be a power of two",
                location=user_location(),
                expected="1, 2, 4, 8, ...",
                given=str(banks),
            )
        return self._add(
            BufferAll(operand=name, banks=banks or 0, location=user_location(), text=text)
        )

    def is_continuous_reduction(self, loop: LoopVariable) -> Self:
        """Promise that within an iteration of ``loop`` each result is completed before the next.

        Checked against the matrix when the design is lowered for it.
        """
        name = self._one_loop("is_continuous_reduction", loop)
        return self._add(
            ContinuousReduction(
                loop=name, location=user_location(), text=f"is_continuous_reduction({name})"
            )
        )

    def is_distinct_reduction(self, loop: LoopVariable) -> Self:
        """Promise that different iterations of ``loop`` reduce to different results.

        Checked against the matrix when the design is lowered for it.
        """
        name = self._one_loop("is_distinct_reduction", loop)
        return self._add(
            DistinctReduction(
                loop=name, location=user_location(), text=f"is_distinct_reduction({name})"
            )
        )

    def isolate_reduction(self, function: ScheduledFunc) -> Self:
        """Move the first level of the reduction into ``function``: local sums, with their targets.

        This Func reduces the local sums.
        """
        names = self._partners("isolate_reduction", (function,))
        directive = IsolateReduction(
            function=names[0], location=user_location(), text=f"isolate_reduction({names[0]})"
        )
        self._add(directive)
        function.isolated_from = self
        function.feeds = True
        self.isolated.append(function)
        return self

    def combine_reduction(self, loop: LoopVariable, target: Target) -> Self:
        """Combine the reductions of all iterations of ``loop`` into one."""
        name = self._one_loop("combine_reduction", loop)
        if not isinstance(target, Target):
            raise UserError(
                f"combine_reduction on {self.name} needs to know the targets",
                location=user_location(),
                expected="SameTarget or MaybeDifferentTarget",
                given=repr(target),
            )
        text = f"combine_reduction({name}, {target!r})"
        return self._add(
            CombineReduction(loop=name, target=target, location=user_location(), text=text)
        )

    def reduction_circuit(self, structure: Structure, levels: int) -> Self:
        """Build the reduction as a circuit of ``structure`` with ``levels`` levels of adders.

        2 to the power of ``levels`` partial sums of a result are in flight at the same time; steps
        stall if that is less than the latency of an addition.
        """
        if not isinstance(structure, Structure):
            raise UserError(
                f"reduction_circuit on {self.name} needs a structure",
                location=user_location(),
                expected="Tree or LinearArray",
                given=repr(structure),
            )
        checked = self._positive("reduction_circuit", "number of levels", levels)
        if checked > MOST_LEVELS:
            raise UserError(
                f"reduction_circuit on {self.name} has too many levels",
                location=user_location(),
                expected=f"1 to {MOST_LEVELS}: {2**MOST_LEVELS} partial sums",
                given=str(levels),
            )
        text = f"reduction_circuit({structure!r}, {checked})"
        return self._add(
            ReductionCircuit(
                structure=structure, levels=checked, location=user_location(), text=text
            )
        )

    def _one_loop(self, what: str, loop: LoopVariable) -> str:
        names = self._loops(what, loop)
        if len(names) != 1:
            raise UserError(
                f"{what} on {self.name} takes one loop",
                location=user_location(),
                expected=f"for example {what}({names[0]})",
                given=", ".join(names),
            )
        return names[0]

    def _structure(self, parts: tuple[object, ...]) -> tuple[str, ...]:
        names = tuple(part.name for part in parts if isinstance(part, Var))
        if not parts or len(names) != len(parts):
            raise UserError(
                f"load_structure on {self.name} needs parts of a structure",
                location=user_location(),
                expected="the Vars of a chain's Length and Index",
                given=", ".join(map(repr, parts)) or "nothing",
            )
        self._distinct("load_structure", names)
        return names

    def _belong(self, design: ScheduledFunc) -> None:
        if not isinstance(design, ScheduledFunc) or self.written or self.isolated_from is not None:
            raise UserError(
                f"load_structure on {self.name}: {self.name} cannot become a part of {design!r}",
                location=user_location(),
                expected="a Func of its own, and the Func of the design",
                given=f"design={design!r}",
            )
        self.isolated_from = design
        design.isolated.append(self)
