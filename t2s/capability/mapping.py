"""A mapping: a part of a statement, and the function that computes it, with the proof as text."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.capability.conditions import Mode, mode_name
from t2s.capability.description import ExternalFunction
from t2s.capability.ir import ALWAYS, Condition
from t2s.core.walk import Term
from t2s.sparse_repr.notation.ir import Access, Expression, print_expression


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandView(Term):
    """A tensor of the statement as an operand; ``modes`` are the dimensions that the function sees.

    Fixed variables are not among them; a mode without variables has extent 1.
    """

    name: str
    access: Access
    modes: tuple[Mode, ...]
    transposed: bool = False

    @property
    def whole(self) -> bool:
        """Whether the function sees the tensor without any reshaping."""
        return self.modes == tuple((name,) for name in self.access.variables)

    def __str__(self) -> str:
        seen = ",".join(mode_name(mode) for mode in self.modes)
        text = f"{self.name} is {print_expression(self.access)}"
        return text if self.whole else f"{text} seen as ({seen})"


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """How a function computes a part.

    Attributes
    ----------
    function: the function, whose capability matches.
    part: what it computes, with the sums that are private to it.
    result: the modes of the result, in the function's order, after the ``fixed`` variables.
    images: the mode of each variable of the capability; ``lists``: the modes of each list.
    operands: the view behind each tensor of the capability; ``reads``: all accesses it stands for.
    fixed: variables that are constant in a call, with loops around it; ``fixed_sums`` are those
        over which the results of calls are summed.
    summed: the modes over which the function sums.
    promoted: variables of the capability that have extent 1.
    condition: what the extents of the modes must satisfy.
    exact: the modes that may be padded with zeros, because every factor that is summed has them.
    whole: the modes that are not tiled: those of sparse operands, and those that only some terms
        sum over.
    proof: the correspondence of names, line by line.
    numbers: constants that are operands, by the names of the scalars that stand for them.
    """

    function: ExternalFunction
    part: Expression
    result: tuple[Mode, ...]
    images: tuple[tuple[str, Mode], ...]
    lists: tuple[tuple[str, tuple[Mode, ...]], ...]
    operands: tuple[OperandView, ...]
    reads: tuple[tuple[str, Access], ...] = ()
    fixed: tuple[str, ...] = ()
    fixed_sums: tuple[str, ...] = ()
    summed: tuple[Mode, ...] = ()
    promoted: tuple[str, ...] = ()
    condition: Condition = ALWAYS
    exact: tuple[Mode, ...] = ()
    whole: tuple[Mode, ...] = ()
    proof: tuple[str, ...] = ()
    numbers: tuple[tuple[str, float | int], ...] = ()

    @property
    def fixed_free(self) -> tuple[str, ...]:
        """The fixed variables that index the result."""
        return tuple(name for name in self.fixed if name not in self.fixed_sums)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the result, in the order of the workspace."""
        return (*self.fixed_free, *(name for mode in self.result for name in mode))

    @property
    def transposed(self) -> tuple[OperandView, ...]:
        """The operands whose modes the function sees in another order."""
        return tuple(operand for operand in self.operands if operand.transposed)

    @property
    def tensors(self) -> tuple[OperandView, ...]:
        """The operands that are tensors of the statement, not constants."""
        numbers = dict(self.numbers)
        return tuple(operand for operand in self.operands if operand.access.tensor not in numbers)

    def operand(self, name: str) -> OperandView:
        """The operand of that name; ``KeyError`` if there is none."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise KeyError(name)

    def __repr__(self) -> str:
        return f"<{print_expression(self.part)} by {self.function.name}>"

    def __str__(self) -> str:
        return "\n".join((f"{print_expression(self.part)} is {self.function.name}", *self.proof))
