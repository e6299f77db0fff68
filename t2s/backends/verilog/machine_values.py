"""The values of the tokens of a machine that come behind its firing, in stages."""

from __future__ import annotations

from t2s.backends.text.expressions import number
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of
from t2s.backends.verilog.interfaces import Interface
from t2s.backends.verilog.machine_stages import SentStages, wide_factors
from t2s.backends.verilog.staged_values import StagedValues
from t2s.core.expr import Expr, Local
from t2s.core.walk import walk


class MachineValues(StagedValues):
    """Writes them; their locals are called as the signals of the machine."""

    def __init__(self, interface: Interface) -> None:
        self.sent = SentStages(interface.plan, {})
        super().__init__(interface.plan, self.sent, interface.identifiers, {})

    def value(self, stem: str, value: Expr) -> tuple[str, int]:
        """The signal of a value, and its stage."""
        for term in walk(value):
            if isinstance(term, Local):
                self.names[term.name] = term.name
                self.wires[term.name] = term.name, self.sent.of_local(term.name) or 0, term.type
        stage = self.sent.sent(value)
        name = self.named(stem, bits_of(value.type))
        self.body += self.writer.assign(name, self.at(value, stage, feeding=False))
        return name, stage

    def product(self, expr: Expr, stage: int, feeding: bool) -> str | None:
        factors = wide_factors(expr, self.plan.technology)
        if factors is None:
            return super().product(expr, stage, feeding)
        bits = expr.type.bits
        parameters = (("WIDTH", number(bits)),)
        return self.multiplier("multiply_wide", parameters, factors, bits, expr, stage, feeding)

    def items(self) -> list[ast.Item]:
        """What has been written, with all delays asked for."""
        if not self.pipeline.moves and not self.body:
            return []
        return [
            ast.Heading(text="what comes behind a firing"),
            *self.declarations,
            *self.writer.declarations,
            *self.pipeline.declarations,
            *self.instances,
            ast.AlwaysComb(body=tuple(self.body)),
            ast.AlwaysFF(body=tuple(self.pipeline.moves)),
        ]
