"""Stages of the datapath of a PE: in which cycle after a firing each of its values is there.

Stage n has the values of what fired n cycles ago.  Nothing in the datapath waits: the firing has
reserved room for all that it sends.  Tokens are taken in stage 0 and loaded data come in that of
the load latency; an operator takes as many stages as the device says.  Values on a way through a
register file, from a read to a write, are computed within one stage, in which the file is read and
at whose end it is written, so that the next firing sees what this one has left; the registers that
the device counts for their operators follow behind.  Sums and products of floating-point numbers
have their registers on such a way, too, but for the last one, whose place the register file takes:
the interval of the node leaves time for them, or other elements of the file come in between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from t2s.backends.base import DeviceTimes, no_latency
from t2s.backends.verilog.float_operators import float_module
from t2s.backends.verilog.technology import GENERIC, Technology
from t2s.core.errors import UnsupportedError
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Local, Parameter
from t2s.core.identity_cache import IdentityCache
from t2s.core.ops import Op
from t2s.core.types import Kind
from t2s.core.walk import children, walk
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterRead,
    RegisterWrite,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Graph
from t2s.graph.nodes import Node, PEArray

LatencyOf = Callable[[Expr], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStages:
    """The stage in which a register file is read, and the one at whose end it is written.

    They are the same, unless operators with registers are on the way.
    """

    read: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """The stages of a node, the same for all classes of its PEs.

    Attributes
    ----------
    latency_of: registers of an operator.
    load_latency: the stage of loaded data.
    loads: the stage of the data of each load, where these differ: in machines.
    files: when each register file is read and written.
    stores: the stage of each store.
    late: the stage of the value of each channel.
    chip: whether times are constants, and so values are in stages at all.
    """

    latency_of: LatencyOf = no_latency
    load_latency: int = 0
    loads: tuple[int, ...] = ()
    files: Mapping[str, FileStages] = field(default_factory=dict)
    stores: tuple[int, ...] = ()
    late: Mapping[str, int] = field(default_factory=dict)
    chip: bool = False
    technology: Technology = GENERIC

    def file(self, register: str) -> FileStages:
        """When a register file is read and written."""
        return self.files.get(register, FileStages())


AT_ONCE = StagePlan()
"""Everything in the cycle of the firing."""


class ValueStages:
    """The stages of values over locals whose stages are known."""

    def __init__(
        self, plan: StagePlan, locals: Mapping[str, int | None], loops: Collection[str] = ()
    ) -> None:
        self.plan, self.locals, self.loops = plan, dict(locals), loops
        self._known = {feeding: IdentityCache[Expr, int | None]() for feeding in (False, True)}

    def at_once(self, expr: Expr, feeding: bool) -> bool:
        """Whether a value is on a way from a register file to one; here there are none."""
        return False

    def of(self, expr: Expr, feeding: bool) -> int | None:
        """The stage of a value; ``None`` for one that is the same in all firings."""
        return self._known[feeding].get(expr, lambda value: self._stage(value, feeding))

    def of_local(self, name: str) -> int | None:
        """The stage of a local."""
        return self.locals[name]

    def operands(self, expr: Expr, feeding: bool) -> int | None:
        """The stage in which all operands of a value are there."""
        stages = [self.of(c, feeding) for c in children(expr) if isinstance(c, Expr)]
        return max((stage for stage in stages if stage is not None), default=None)

    def registers(self, expr: Expr, feeding: bool) -> int:
        """The registers between the operands of a value and the value."""
        inside = self.operands(expr, feeding)
        return 0 if inside is None else (self.of(expr, feeding) or 0) - inside

    def _stage(self, expr: Expr, feeding: bool) -> int | None:
        match expr:
            case Local(name=name):
                return self.of_local(name)
            case Index(name=name) if name in self.loops:
                return 0
            case Const() | Index() | Parameter():
                return None
        inside = self.operands(expr, feeding)
        if inside is None or is_control(expr):
            return inside
        if self.at_once(expr, feeding):
            return inside + self.registers_at_once(expr)
        return inside + self.plan.latency_of(expr)

    def registers_at_once(self, expr: Expr) -> int:
        """Those of an operator on the way to a register file, which takes the place of the last."""
        pipelined = self.plan.chip and float_module(expr) is not None
        return self.plan.latency_of(expr) - 1 if pipelined else 0


class Stages(ValueStages):
    """The stages of the values of a node whose register files are read and written as said."""

    def __init__(self, node: PEArray, plan: StagePlan, files: Mapping[str, FileStages]) -> None:
        super().__init__(plan, {}, {loop.name for loop in node.loops})
        self.files = files
        self._feeding = _feeding(node.body)
        self._of_files: set[str] = set()
        written: set[str] = set()
        for statement in node.body:
            match statement:
                case Receive(target=target):
                    self.locals[target] = 0
                case Load(target=target):
                    self.locals[target] = plan.load_latency
                case RegisterRead(target=target, register=register):
                    # what is read after a write of the same firing is there when that is
                    file = files.get(register, FileStages())
                    self.locals[target] = file.written if register in written else file.read
                    self._of_files.add(target)
                case RegisterWrite(register=register):
                    written.add(register)
                case Let(target=target, value=value):
                    self.locals[target] = self.of(value, target in self._feeding)
                    if self.reads_files(value):
                        self._of_files.add(target)

    def feeds(self, target: str) -> bool:
        """Whether a local has an influence on what is written into a register file."""
        return target in self._feeding

    def reads_files(self, expr: Expr) -> bool:
        """Whether a value depends on what register files hold."""
        return any(isinstance(t, Local) and t.name in self._of_files for t in walk(expr))

    def at_once(self, expr: Expr, feeding: bool) -> bool:
        """Whether a value is on a way from a register file to one."""
        return feeding and self.reads_files(expr)

    def longest_way(self, node: PEArray, register: str, write: RegisterWrite) -> int:
        """The registers between the reads of a register file and a write, at most."""
        far: dict[str, int] = {}

        def behind(expr: Expr) -> int | None:
            if isinstance(expr, Local):
                return far.get(expr.name)
            ways = [behind(c) for c in children(expr) if isinstance(c, Expr)]
            longest = max((way for way in ways if way is not None), default=None)
            return None if longest is None else longest + self.registers_at_once(expr)

        for statement in node.body:
            match statement:
                case RegisterRead(target=target, register=name) if name == register:
                    far[target] = 0
                case Let(target=target, value=value) if (way := behind(value)) is not None:
                    far[target] = way
                case RegisterWrite() if statement is write:
                    break
        values = (write.value, write.condition, *write.indices)
        return max(behind(value) or 0 for value in values if value is not None)


def is_control(expr: Expr) -> bool:
    """Whether a value follows from the counters alone; it is computed ahead of its firing."""
    return not any(isinstance(term, Local) for term in walk(expr))


def _feeding(body: tuple[Statement, ...]) -> set[str]:
    """The locals that have an influence on what is written into register files."""
    feeding: set[str] = set()
    for statement in reversed(body):
        match statement:
            case RegisterWrite():
                feeding |= _locals_of(statement)
            case Let(target=target, value=value) if target in feeding:
                feeding |= _locals_of(value)
    return feeding


def _locals_of(term: Statement | Expr) -> set[str]:
    return {part.name for part in walk(term) if isinstance(part, Local)}


def plan_of(graph: Graph, node: PEArray, times: DeviceTimes, technology: Technology) -> StagePlan:
    """The stages of a node on a device.

    Raises ``UnsupportedError`` if a value is there too late for a channel or for memory, or if the
    technology cannot build an operator with the registers that the device says.
    """
    plan = StagePlan(
        latency_of=times.latency_of,
        load_latency=times.load_latency,
        late={c.name: times.channels[c.name].latency - 1 for c in graph.outputs_of(node.name)},
        chip=True,
        technology=technology,
    )
    _check_operators(node, plan)
    files = _stages_of_files(node, plan)
    stages = Stages(node, plan, files)
    _check_files(node, times.intervals[node.name], files)
    for statement in node.body:
        if isinstance(statement, Send):
            _check_send(node, statement, stages, plan)
    return StagePlan(
        latency_of=plan.latency_of,
        load_latency=plan.load_latency,
        files=files,
        stores=tuple(
            _stage_of_store(graph, node, statement, stages, times)
            for statement in node.body
            if isinstance(statement, Store)
        ),
        late=plan.late,
        chip=True,
        technology=technology,
    )


def _stages_of_files(node: PEArray, plan: StagePlan) -> dict[str, FileStages]:
    """When each register file is read and written."""
    files = {register.name: FileStages() for register in node.registers}
    most = plan.load_latency + sum(
        plan.latency_of(term) for term in walk(node) if isinstance(term, Expr)
    )
    while True:
        stages = Stages(node, plan, files)
        found = dict(files)
        for statement in node.body:
            if isinstance(statement, RegisterWrite):
                name = statement.register
                values = (statement.value, statement.condition, *statement.indices)
                ready = [stages.of(value, True) for value in values if value is not None]
                at = max((stage for stage in ready if stage is not None), default=0)
                way = stages.longest_way(node, name, statement)
                before = found[name]
                found[name] = FileStages(
                    read=max(before.read, at - way), written=max(before.written, at)
                )
        if found == files:
            return files
        files = found
        late = [name for name, file in files.items() if file.read > most]
        if late:
            raise UnsupportedError(
                f"the registers of {node.name!r} depend on one another through floating-point "
                "operators, which have registers of their own",
                location=node.location,
                given=", ".join(late),
                hint="compute the parts in Funcs of their own, which are nodes with channels in "
                "between",
            )


def _check_files(node: PEArray, interval: int, files: Mapping[str, FileStages]) -> None:
    """Raise ``UnsupportedError`` for a file that is written too late for the next firing."""
    for register in node.registers:
        file = files[register.name]
        needed = file.written + 1 - file.read
        there = interval * register.distance
        if needed > there:
            raise UnsupportedError(
                f"{node.name!r} cannot have written {register.name!r} before it is read again",
                location=node.location,
                expected=f"at most {there} cycles from a read to the read of what it becomes",
                given=f"{needed} cycles, of which the floating-point operators have all but one",
                hint="compute the parts in Funcs of their own, or split a loop over results and "
                "make its part the innermost one: then other sums are in between",
            )


def _check_send(node: PEArray, send: Send, stages: Stages, plan: StagePlan) -> None:
    at, needed = stages.of(send.value, False) or 0, plan.late[send.channel]
    if at > needed:
        raise UnsupportedError(
            f"{node.name!r} cannot have the value for {send.channel!r} in time",
            location=node.location,
            expected=f"the value {needed} cycles after the firing, as the device says",
            given=f"{at} cycles: it has been in a register file, which is written so late",
            hint="a device with a lower load latency, or load and use the data in nodes of their "
            "own",
        )


def _stage_of_store(
    graph: Graph, node: PEArray, store: Store, stages: Stages, times: DeviceTimes
) -> int:
    """The stage in which a store happens: as early as those who load need it."""
    at = stages.of(store.value, False) or 0
    loading = [
        n.name
        for n in graph.nodes
        if any(isinstance(t, Load) and t.tensor == store.tensor for t in walk(n))
    ]
    latest = 0 if node.name in loading else times.store_latency
    if loading and at > latest:
        raise UnsupportedError(
            f"{node.name!r} cannot store {store.tensor!r} in time for {loading[0]!r} to load it",
            location=node.location,
            expected=f"the value at most {latest} cycles after the firing",
            given=f"{at} cycles",
            hint="a device with a higher store latency, or compute the value in a node of its own",
        )
    return at


def _check_operators(node: PEArray, plan: StagePlan) -> None:
    """Raise ``UnsupportedError`` for latencies with which no operator can be built."""
    for term in walk(node):
        if isinstance(term, Expr) and not is_control(term):
            check_operator(node, term, plan)


def check_operator(node: Node, term: Expr, plan: StagePlan) -> None:
    """Raise ``UnsupportedError`` for a latency with which an operator cannot be built."""
    registers = _registers_of(term, plan.technology)
    if registers is None or registers[0] <= plan.latency_of(term) <= registers[1]:
        return
    assert isinstance(term, Apply)
    least, most = registers
    raise UnsupportedError(
        f"{node.name!r} computes {term.operator.value!r} of {term.type.scalar} with a "
        f"latency that {plan.technology.name} cannot build",
        location=node.location,
        expected=f"a latency of {least} to {most} cycles: so many registers it can have",
        given=f"{plan.latency_of(term)} cycles of the device",
        hint="set the operator_latencies of the device",
    )


def _registers_of(term: Expr, technology: Technology) -> tuple[int, int] | None:
    """The fewest and the most registers of an operator; ``None`` for one that has any number."""
    module = float_module(term)
    if module is not None:
        return module.registers
    if multiplier_operands(term, technology) is None:
        return None
    return technology.multiplier_registers


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """An operand of a multiplication, without casts that keep its value; ``bits`` with a sign."""

    value: Expr
    bits: int


def multiplier_operands(expr: Expr, technology: Technology) -> tuple[Factor, Factor] | None:
    """The operands of a product that is one multiplier; ``None`` for anything else."""
    match expr:
        case Apply(operator=Op.MULTIPLY, operands=(left, right), type=type) if (
            type.is_integer and type.lanes == 1
        ):
            factors = _factor(left), _factor(right)
        case _:
            return None
    if any(isinstance(factor.value, Const) for factor in factors):
        return None
    most = technology.multiplier_bits
    if most is not None and any(factor.bits > most for factor in factors):
        return None
    return factors


def _factor(expr: Expr) -> Factor:
    while isinstance(expr, Cast):
        inner, outer = expr.value.type, expr.type
        signed = inner.kind is Kind.INT
        if not (inner.is_integer and inner.bits < outer.bits):
            break
        if signed and outer.kind is not Kind.INT:
            break
        expr = expr.value
    return Factor(value=expr, bits=expr.type.bits + (expr.type.kind is Kind.UINT))
