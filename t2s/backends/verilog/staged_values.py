"""Values in stages: the wires of each stage, and the registers and operators between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.backends.text.expressions import Name, TargetExpression, TargetStatement, number
from t2s.backends.text.identifiers import Identifiers
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of
from t2s.backends.verilog.expressions import ExpressionWriter
from t2s.backends.verilog.float_operators import FloatModule, float_module
from t2s.backends.verilog.stages import Factor, StagePlan, ValueStages, multiplier_operands
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Local, Parameter
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term, rebuild

Names = Mapping[str, str | TargetExpression]


class Pipeline:
    """The registers between stages: each holds what a signal was one cycle earlier."""

    def __init__(self, identifiers: Identifiers) -> None:
        self.identifiers = identifiers
        self.declarations: list[ast.Item] = []
        self.moves: list[TargetStatement] = []
        self.resets: list[TargetStatement] = []
        self._after: dict[tuple[str, int], str] = {}

    def after(self, name: str, type: ast.Bits, cycles: int, *, reset: bool = False) -> str:
        """The signal ``name`` as it was some cycles ago; with ``reset`` 0 before the start."""
        earlier = name
        for cycle in range(1, cycles + 1):
            key = name, cycle
            if key not in self._after:
                register = self.identifiers.fresh(f"{name}_after_{cycle}")
                self.declarations.append(ast.variable(register, type))
                self.moves.append(ast.put(register, Name(name=earlier), clocked=True))
                if reset:
                    self.resets.append(ast.put(register, ast.ZEROS, clocked=True))
                self._after[key] = register
            earlier = self._after[key]
        return earlier

    def begin(self, name: str, register: str) -> None:
        """Take an existing register for the signal as it was one cycle ago."""
        self._after[name, 1] = register


class StagedValues:
    """Writes values as they are in a stage.

    ``wires`` has for each local its signal, the stage of that, and its type; ``declarations``,
    ``body`` (statements of a combinational block), ``instances`` and ``pipeline`` are what has been
    written.
    """

    def __init__(
        self, plan: StagePlan, stages: ValueStages, identifiers: Identifiers, names: Names
    ) -> None:
        self.plan, self.stages, self.identifiers = plan, stages, identifiers
        self.pipeline = Pipeline(identifiers)
        self.names = dict(names)
        self.wires: dict[str, tuple[str, int, Type]] = {}
        self.writer = ExpressionWriter(names=self.names, identifiers=identifiers)
        self.declarations: list[ast.Declaration] = []
        self.body: list[TargetStatement] = []
        self.instances: list[ast.Item] = []
        self._named_values: dict[tuple[Expr, bool], Local] = {}

    def at(self, expr: Expr, stage: int, *, feeding: bool) -> Expr:
        """A value as it is in a stage, over locals of that stage.

        What is narrow is computed early and waits: a comparison, not its operands.
        """
        match expr:
            case Index(name=name):
                return self.index(name, expr, stage)
            case Const() | Parameter():
                return expr
            case Local(name=name):
                return self.later(name, stage)
        ready = self.stages.of(expr, feeding)
        if ready is None:
            return expr
        if isinstance(expr, Cast) and self.stages.registers(expr, feeding) == 0:
            return replace(expr, value=self.at(expr.value, stage, feeding=feeding))
        if stage == ready and self.stages.registers(expr, feeding) == 0:
            return self.here(expr, stage, feeding)
        return self.later(self.named_value(expr, feeding, "part").name, stage)

    def index(self, name: str, expr: Index, stage: int) -> Expr:
        """An index as it is in a stage; here they are the same in all firings."""
        return expr

    def here(self, expr: Expr, stage: int, feeding: bool) -> Expr:
        """An operator without registers, in the stage of its operands."""

        def operand(term: Term) -> Term:
            return self.at(term, stage, feeding=feeding) if isinstance(term, Expr) else term

        return rebuild(expr, operand)

    def named_value(self, expr: Expr, feeding: bool, stem: str) -> Local:
        """A local for a value, in a wire of the stage in which it is computed."""
        key = expr, feeding
        if key in self._named_values:
            return self._named_values[key]
        inside = self.stages.operands(expr, feeding) or 0
        registers = self.stages.registers(expr, feeding)
        local = Local(name=f"{stem}@{len(self.wires)}", type=expr.type)
        module = float_module(expr)
        if module is not None and registers:
            assert isinstance(expr, Apply)
            name = self._float_result(module, expr, inside, feeding)
            inside += registers
        elif registers and (product := self.product(expr, inside, feeding)) is not None:
            value = ast.Resize(bits=expr.type.bits, value=Name(name=product))
            name = self.named(stem, bits_of(expr.type))
            self.body.append(ast.put(name, value))
            inside += registers
        else:
            here = self.here(expr, inside, feeding)
            name = self.named(stem, bits_of(expr.type))
            self.body += self.writer.assign(name, here)
        self.wires[local.name] = name, inside, expr.type
        self.names[local.name] = name
        self._named_values[key] = local
        return local

    def signal(self, expr: Expr, stage: int, feeding: bool) -> TargetExpression:
        value = self.writer.scalar(self.at(expr, stage, feeding=feeding))
        self.body += self.writer.take_before()
        return value

    def product(self, expr: Expr, stage: int, feeding: bool) -> str | None:
        """A product in a multiplier of the library; ``None`` for what is written as it is."""
        factors = multiplier_operands(expr, self.plan.technology)
        if factors is None:
            return None
        left, right = factors
        bits = left.bits + right.bits
        parameters = (("LEFT", number(left.bits)), ("RIGHT", number(right.bits)))
        return self.multiplier("multiply", parameters, factors, bits, expr, stage, feeding)

    def multiplier(
        self,
        module: str,
        parameters: tuple[tuple[str, TargetExpression], ...],
        factors: tuple[Factor, Factor],
        bits: int,
        expr: Expr,
        stage: int,
        feeding: bool,
    ) -> str:
        """A multiplier; it returns the wire of its product, which has so many bits."""
        operands = [
            (text, ast.Resize(bits=factor.bits, value=self.signal(factor.value, stage, feeding)))
            for text, factor in zip(("left", "right"), factors, strict=True)
        ]
        product = self.named("product", ast.Bits(width=bits, signed=True))
        registers = self.stages.registers(expr, feeding)
        self.instances.append(
            ast.Instance(
                module=module,
                name=self.identifiers.fresh("multiplier"),
                parameters=(*parameters, ("STAGES", number(registers))),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    *operands,
                    ("product", Name(name=product)),
                ),
            )
        )
        return product

    def _float_result(self, module: FloatModule, expr: Apply, stage: int, feeding: bool) -> str:
        """A module for each lane, with all registers but perhaps the last."""
        operands = []
        for stem, value in zip(("left", "right"), expr.operands, strict=True):
            subtrahend = stem == "right" and expr.operator is Op.SUBTRACT
            there = self.at(value, stage, feeding=feeding)
            name = self.named(stem, bits_of(value.type))
            negated = Apply(operator=Op.NEGATE, operands=(there,), type=value.type)
            self.body += self.writer.assign(name, negated if subtrahend else there)
            operands.append((stem, name))
        result = self.named(module.result, bits_of(expr.type))
        latency = self.plan.latency_of(expr)
        output = latency == self.stages.registers(expr, feeding)
        for lane in range(expr.type.lanes):
            lanes = None if expr.type.lanes == 1 else lane
            self.instances.append(
                ast.Instance(
                    module=module.name,
                    name=self.identifiers.fresh(f"{module.name}_{lane}"),
                    parameters=(
                        *((name, number(value)) for name, value in module.parameters),
                        ("STAGES", number(latency)),
                        ("OUTPUT", number(int(output))),
                    ),
                    connections=(
                        (port.CLOCK, Name(name=port.CLOCK)),
                        *((stem, _lane(name, lanes)) for stem, name in operands),
                        (module.result, _lane(result, lanes)),
                    ),
                )
            )
        return result

    def later(self, local: str, stage: int) -> Local:
        """A local as it is in a later stage than that of its wire."""
        name, since, type = self.wires[local]
        if stage <= since:
            return Local(name=local, type=type)
        later = f"{local}@{stage}"
        self.names[later] = self.pipeline.after(name, bits_of(type), stage - since)
        return Local(name=later, type=type)

    def declare(self, name: str, type: ast.Bits, count: int | None = None) -> None:
        self.declarations.append(ast.variable(name, type, count))

    def named(self, stem: str, type: ast.Bits) -> str:
        name = self.identifiers.fresh(stem)
        self.declare(name, type)
        return name


def _lane(name: str, lane: int | None) -> TargetExpression:
    return Name(name=name) if lane is None else ast.element(name, lane)
