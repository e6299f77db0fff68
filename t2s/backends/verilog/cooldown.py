"""The wait between two firings of a PE or of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldown:
    """The register that counts down to the next firing, where the interval is not 1.

    ``interval`` is ``None`` where it is an input of the module.
    """

    name: str
    interval: int | None

    @property
    def _type(self) -> ast.Bits:
        if self.interval is None:
            return ast.WORD
        return ast.Bits(width=(self.interval - 1).bit_length())

    def declarations(self) -> list[ast.Item]:
        """The register."""
        return [] if self.interval == 1 else [ast.variable(self.name, self._type)]

    def conditions(self) -> list[TargetExpression]:
        """What has to hold for a firing."""
        if self.interval == 1:
            return []
        return [Binary(operator="==", left=Name(name=self.name), right=number(0))]

    def updates(self, fires: TargetExpression) -> tuple[TargetStatement, ...]:
        """What a cycle does to the register."""
        if self.interval == 1:
            return ()
        rest: TargetExpression
        if self.interval is None:
            rest = Binary(operator="-", left=Name(name=port.INTERVAL), right=number(1))
        else:
            rest = number(self.interval - 1)
        register = Name(name=self.name)
        less = Binary(operator="-", left=register, right=number(1))
        waits = If(
            condition=Binary(operator="!=", left=register, right=number(0)),
            then=(ast.put(register, ast.Resize(bits=self._type.width, value=less), clocked=True),),
        )
        cools = ast.put(register, rest, clocked=True)
        return (If(condition=fires, then=(cools,), otherwise=(waits,)),)

    def resets(self) -> tuple[TargetStatement, ...]:
        """What reset does to the register."""
        return () if self.interval == 1 else (ast.put(self.name, number(0), clocked=True),)
