"""``ResourceReport``: what a design takes of a device, node by node.

An estimate before synthesis: DSP and RAM blocks by the rules stated below in this file, and for
devices for which a backend can count them, LUTs, flip-flops and carry cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, frexp, prod
from typing import Any

from t2s.core.display import NotebookCard, NotebookDisplay, Table
from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Apply, Broadcast, Cast, Const, Expr, Local, ReduceLanes, Select
from t2s.core.location import SourceLocation, user_location
from t2s.core.logic import Logic
from t2s.core.ops import Op
from t2s.core.types import BFloat, Int, Type
from t2s.core.walk import children, walk
from t2s.graph.body import Let, Load, RegisterRead, Statement, Store
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Channel, Graph, MemorySpace
from t2s.graph.nodes import Choice, Machine, Node, Role, Rule, Search
from t2s.report.logic import LOGIC, ChipLogic
from t2s.simulator.devices import DEVICES, Device, Fabric, find_device


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResources:
    """The blocks and the logic of all PEs of a node.

    ``memory_blocks`` are the RAM blocks of its register files and buffers, ``fifo_blocks`` those of
    the channels it receives from, ``unit_blocks`` those of its load and store units.  ``logic`` is
    ``None`` where it is not estimated.
    """

    name: str
    role: Role
    location: SourceLocation | None
    pe_count: int
    dsp_blocks: int
    memory_blocks: int
    fifo_blocks: int
    unit_blocks: int
    logic: Logic | None = None

    @property
    def ram_blocks(self) -> int:
        return self.memory_blocks + self.fifo_blocks + self.unit_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """What the device has too few of, and the node that uses most of it.

    ``blocks`` is its name: "DSP", "RAM", "LUTs" or "flip-flops".
    """

    blocks: str
    needed: int
    available: int
    largest: NodeResources
    largest_takes: int
    hint: str

    @property
    def what(self) -> str:
        """Its name in a sentence."""
        return f"{self.blocks} blocks" if self.blocks in ("DSP", "RAM") else self.blocks

    @property
    def excess(self) -> int:
        return self.needed - self.available

    def __str__(self) -> str:
        return (
            f"{self.needed:,} {self.what} are needed and {self.available:,} are there, "
            f"{self.excess:,} too few; {self.largest.name} takes {self.largest_takes:,}: "
            f"{self.hint}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceReport(NotebookDisplay):
    """What a design takes of a device, by node in graph order; ``report["C"]`` is one node.

    ``chip`` is its logic with the clock that it may have; ``None`` where that is not estimated.
    """

    design: str
    device: Device
    nodes: tuple[NodeResources, ...]
    chip: ChipLogic | None = None

    def __iter__(self) -> Iterator[NodeResources]:
        return iter(self.nodes)

    def __getitem__(self, node: str) -> NodeResources:
        for row in self.nodes:
            if row.name == node:
                return row
        raise KeyError(node)

    @property
    def dsp_blocks(self) -> int:
        return sum(node.dsp_blocks for node in self.nodes)

    @property
    def ram_blocks(self) -> int:
        return sum(node.ram_blocks for node in self.nodes)

    @property
    def logic(self) -> Logic | None:
        """LUTs, flip-flops and carry cells of all nodes; ``None`` where they are not estimated."""
        return None if self.chip is None else self.chip.total

    def with_logic(self, chip: ChipLogic | None) -> ResourceReport:
        """The same with an estimate of the logic."""
        if chip is None:
            return self
        nodes = tuple(replace(node, logic=chip.nodes.get(node.name)) for node in self.nodes)
        return replace(self, nodes=nodes, chip=chip)

    @property
    def dsp_fraction(self) -> float | None:
        """The share of the device's DSP blocks; ``None`` if the device does not say."""
        return _fraction(self.dsp_blocks, self.device.dsp_blocks)

    @property
    def ram_fraction(self) -> float | None:
        """The share of the device's RAM blocks; ``None`` if the device does not say."""
        return _fraction(self.ram_blocks, self.device.ram_blocks)

    @property
    def fits(self) -> bool:
        """Whether the device has enough of all that is estimated."""
        return not self.overruns

    @property
    def overruns(self) -> tuple[Overrun, ...]:
        """What the device has too few of; empty if the design fits."""
        overruns: list[Overrun] = []
        dsps = [(node.dsp_blocks, node) for node in self.nodes]
        overruns += _overrun("DSP", dsps, self.device.dsp_blocks, _fewer_operators)
        rams = [(node.ram_blocks, node) for node in self.nodes]
        overruns += _overrun("RAM", rams, self.device.ram_blocks, _less_memory)
        if self.chip is not None:
            for what, there in zip(LOGIC, (self.chip.luts, self.chip.flip_flops), strict=True):
                places = [(_places(node, what), node) for node in self.nodes]
                overruns += _overrun(what, places, there, _less_logic)
        return tuple(overruns)

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The totals as (label, text)."""
        lines = [
            ("DSP blocks", _of(self.dsp_blocks, self.device.dsp_blocks)),
            ("RAM blocks", _of(self.ram_blocks, self.device.ram_blocks)),
            *self._logic_lines(),
            ("fits", "yes" if self.fits else "no"),
        ]
        return (*lines, *(("over budget", str(overrun)) for overrun in self.overruns))

    def _logic_lines(self) -> list[tuple[str, str]]:
        chip, logic = self.chip, self.logic
        if chip is None or logic is None:
            return []
        luts = f"{_of(logic.lut_places, chip.luts)}: {logic.luts:,} by themselves"
        luts += f", those of {logic.carry_cells:,} carry cells"
        luts += f" and {logic.small_rams:,} small memories"
        return [
            ("LUTs", luts),
            ("flip-flops", _of(logic.flip_flops, chip.flip_flops)),
            ("clock", str(chip.clock)),
        ]

    @property
    def table(self) -> Table:
        """One row per node."""
        rows = tuple(
            (
                node.name,
                node.role.value,
                f"{node.pe_count:,}",
                f"{node.dsp_blocks:,}",
                f"{node.memory_blocks:,}",
                f"{node.fifo_blocks:,}",
                f"{node.unit_blocks:,}",
                f"{node.ram_blocks:,}",
                *_logic_columns(node.logic),
            )
            for node in self.nodes
        )
        headers: tuple[str, ...]
        headers = ("node", "role", "PEs", "DSP", "memories", "FIFOs in", "memory units", "RAM")
        if self.chip is not None:
            headers += _LOGIC_HEADERS
        return Table(
            title="blocks by node (RAM = memories + FIFOs in + memory units)",
            headers=headers,
            rows=rows,
            left=frozenset({0, 1}),
        )

    @property
    def _title(self) -> str:
        what = "blocks" if self.chip is None else "blocks and logic"
        return f"{self.design} on {self.device.name}: estimated {what}"

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.summary)
        head = [f"{label.ljust(width)}  {text}" for label, text in self.summary]
        return "\n".join([self._title, *head, "", self.table.text()])

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        head = "\n".join(f"{label:12} {text}" for label, text in self.summary)
        return Group(Text(f"{self._title}\n{head}"), self.table.rich())

    def _card(self) -> NotebookCard:
        return NotebookCard(title=self._title, summary=self.summary, parts=(self.table,))


_LOGIC_HEADERS = ("LUT", "FF", "carry", "small RAM")


def _logic_columns(logic: Logic | None) -> tuple[str, ...]:
    if logic is None:
        return ()
    counts = (logic.luts, logic.flip_flops, logic.carry_cells, logic.small_rams)
    return tuple(f"{count:,}" for count in counts)


def _places(node: NodeResources, what: str) -> int:
    logic = node.logic or Logic()
    return logic.lut_places if what == "LUTs" else logic.flip_flops


_REPORTS: GraphCache[Device, ResourceReport] = GraphCache()


def estimate_resources(graph: Graph, device: str | Device = "arria10") -> ResourceReport:
    """Estimate the DSP and RAM blocks of a graph.

    Raises ``UserError`` for an unknown device and for one without blocks, such as ``ideal``, and
    ``UnsupportedError`` for machines with memories whose size depends on data.
    """
    target = find_device(device)
    fabric = target.fabric
    if fabric is None:
        counted = ", ".join(name for name, other in DEVICES.items() if other.fabric is not None)
        raise UserError(
            f"the device {target.name} has no DSP and RAM blocks to count",
            location=user_location(),
            expected=f"one of {counted}, or a Device with a fabric",
            given=target.name,
        )
    return _REPORTS.get(graph, target, lambda: _estimated(graph, target, fabric))


def _estimated(graph: Graph, device: Device, fabric: Fabric) -> ResourceReport:
    for machine in graph.machines:
        _check_memories(graph, machine)
    nodes = tuple(_node_resources(graph, node, fabric) for node in graph.nodes)
    return ResourceReport(design=graph.name, device=device, nodes=nodes)


def _check_memories(graph: Graph, machine: Machine) -> None:
    """Check that all on-chip memories of a machine have sizes that are known before the run."""
    parts = [f"the sorted memory {memory.name!r}" for memory in machine.memories]
    for statement in machine.statements():
        match statement:
            case Load(tensor=name) | Search(tensor=name) | Store(tensor=name):
                if graph.tensor(name).place is not MemorySpace.MEMORY:
                    parts.append(f"{name!r}, which is{graph.tensor(name).place_text}")
    if parts:
        raise UnsupportedError(
            f"the blocks of {machine.name!r} cannot be estimated",
            location=machine.location,
            expected="memories on the chip whose sizes do not depend on data",
            given=parts[0],
        )


def _node_resources(graph: Graph, node: Node, fabric: Fabric) -> NodeResources:
    return NodeResources(
        name=node.name,
        role=node.role,
        location=node.location,
        pe_count=node.pe_count,
        dsp_blocks=ceil(node.pe_count * dsp_blocks(node, fabric)),
        memory_blocks=node.pe_count * register_blocks(node, fabric),
        fifo_blocks=sum(fifo_blocks(channel, fabric) for channel in graph.inputs_of(node.name)),
        unit_blocks=node.pe_count * unit_blocks(node, fabric),
    )


def _overrun(
    blocks: str,
    taken: Iterable[tuple[int, NodeResources]],
    available: int | None,
    hint: Callable[[NodeResources], str],
) -> list[Overrun]:
    rows = list(taken)
    needed = sum(count for count, _ in rows)
    if available is None or needed <= available:
        return []
    most, largest = max(rows, key=lambda row: row[0])
    return [
        Overrun(
            blocks=blocks,
            needed=needed,
            available=available,
            largest=largest,
            largest_takes=most,
            hint=hint(largest),
        )
    ]


def _fewer_operators(node: NodeResources) -> str:
    return "unroll fewer PEs, use fewer lanes or a narrower type"


def _less_logic(node: NodeResources) -> str:
    return "unroll fewer PEs, or use narrower types and channels that are less deep"


def _less_memory(node: NodeResources) -> str:
    part = max(node.memory_blocks, node.fifo_blocks, node.unit_blocks)
    if part == node.memory_blocks:
        return "make the tile smaller, or buffer fewer loops"
    if part == node.fifo_blocks:
        return "make the channels less deep, or order the loops so that fewer tokens wait"
    return "load and store in fewer PEs"


def _fraction(needed: int, available: int | None) -> float | None:
    return needed / available if available else None


def _of(needed: int, available: int | None) -> str:
    if not available:
        return f"{needed:,}"
    return f"{needed:,} of {available:,} ({needed / available:.1%})"


# DSP and RAM blocks of one PE: its operators, memories, incoming FIFOs, load and store units.
#
# The rules, all of them estimates:
#
# * Operators take blocks; selections, conversions and other bit movement are logic and wires.
# * Every operator of a body is built once, however often its value is used, unless it is unused.
# * Expressions over indices and parameters only (subscripts, conditions) are counters and logic.
# * A multiplication by a constant power of two is a shift, or an addition to the exponent; where
#   products of floats are modules (``Fabric.shifts_floats``), those are like all others.
# * An integer multiplier is as wide as its operands were before they were widened: a product of two
#   int8 in int32 takes half a block, because synthesis finds that the upper bits repeat the sign.
# * For the types in ``Fabric.fused`` a block has a multiplier and an adder.  A *sum of products* is
#   a tree of additions, subtractions and sums of lanes over multiplications that nothing else uses.
#   With p products and a additions it takes max(p, a) blocks: each product's block lends its adder,
#   and further additions take a block each.  A dot product of 16 lanes with its accumulator has
#   p = a = 16 and takes 16 blocks.
# * Each alternative of a machine has its own operators; conditions are logic.

_ADDITIVE = (Op.ADD, Op.SUBTRACT)


def dsp_blocks(node: Node, fabric: Fabric) -> Fraction:
    """DSP blocks of one PE or machine; halves are blocks that two multipliers share."""
    if not isinstance(node, Machine):
        return _Counter(node.body, (), fabric).blocks()
    parts = (part for mode in node.modes for part in _parts(mode.choices))
    counters = (_Counter(statements, values, fabric) for statements, values in parts)
    return sum((counter.blocks() for counter in counters), Fraction(0))


def _parts(choices: Sequence[Choice]) -> Iterator[tuple[tuple[Statement, ...], tuple[Expr, ...]]]:
    """What is computed together in a machine: statements, and the values that are used outside."""
    for choice in choices:
        lets = [item for item in choice.body if isinstance(item, Let)]
        yield choice.body, tuple(Local(name=let.target, type=let.value.type) for let in lets)
        match choice.inside:
            case Rule(body=body, puts=puts):
                yield body, tuple(put.value for put in puts if put.value is not None)
            case inner:
                yield from _parts(inner)


class _Counter:
    """Counts over one body; a local that is used once stands for its expression.

    ``values`` are used beside what the statements use.
    """

    def __init__(
        self, statements: tuple[Statement, ...], values: tuple[Expr, ...], fabric: Fabric
    ) -> None:
        self.fabric = fabric
        self.statements = statements
        self.values = values
        self.lets = {item.target: item.value for item in statements if isinstance(item, Let)}
        self.counters: set[str] = set()  # locals that only indices and parameters go into
        self.uses = self._count_uses()
        for name, value in self.lets.items():
            if self.is_static(value):
                self.counters.add(name)

    def _count_uses(self) -> Counter[str]:
        """Uses of each local by what is built: statements backwards, unused values left out."""
        uses = Counter(
            term.name for value in self.values for term in walk(value) if isinstance(term, Local)
        )
        for statement in reversed(self.statements):
            if isinstance(statement, Let) and not uses[statement.target]:
                continue
            uses.update(term.name for term in walk(statement) if isinstance(term, Local))
        return uses

    def blocks(self) -> Fraction:
        total = sum((self.cost(value) for value in self.values), Fraction(0))
        for statement in self.statements:
            if isinstance(statement, Let):
                if self.uses[statement.target] > 1:  # once is counted where it is used
                    total += self.cost(statement.value)
                continue
            total += sum(
                (self.cost(child) for child in children(statement) if isinstance(child, Expr)),
                Fraction(0),
            )
        return total

    def inlined(self, expr: Expr) -> Expr:
        while isinstance(expr, Local) and expr.name in self.lets and self.uses[expr.name] == 1:
            expr = self.lets[expr.name]
        return expr

    def is_static(self, expr: Expr) -> bool:
        """Whether only indices, parameters and constants go in, and no float comes out."""
        return not expr.type.is_float and all(
            term.name in self.counters for term in walk(expr) if isinstance(term, Local)
        )

    def cost(self, expr: Expr) -> Fraction:
        expr = self.inlined(expr)
        if self.is_static(expr):
            return Fraction(0)
        scalar = expr.type.scalar
        if scalar in self.fabric.fused and self._is_sum(expr):
            return self._sum_of_products(expr)
        inner = sum(
            (self.cost(child) for child in children(expr) if isinstance(child, Expr)), Fraction(0)
        )
        match expr:
            case Apply(operator=Op.MULTIPLY) if _shifts(expr, self.fabric):
                return inner
            case Apply(operator=operator, operands=operands, type=type):
                each = self.fabric.dsp_cost(operator, self._built_for(operands))
                return inner + type.lanes * each
            case ReduceLanes(operator=operator, value=value):
                return inner + (value.type.lanes - 1) * self.fabric.dsp_cost(operator, scalar)
        return inner

    def _built_for(self, operands: Sequence[Expr]) -> Type:
        """The type that an operator has to take; a narrow one where integers were widened."""
        scalar = operands[0].type.scalar
        if scalar.is_float:
            small = (Op.MULTIPLY, BFloat()) in self.fabric.dsp_costs
            widened = (
                isinstance(operand, Cast) and operand.value.type.scalar == BFloat()
                for operand in map(self.inlined, operands)
            )
            return BFloat() if small and all(widened) else scalar
        if not scalar.is_integer:
            return scalar
        return Int(min(scalar.bits, max(map(self._bits_before_widening, operands))))

    def _bits_before_widening(self, operand: Expr) -> int:
        bits = operand.type.scalar.bits
        match operand:
            case Local(name=name) if name in self.lets:
                return self._bits_before_widening(self.lets[name])
            case Cast(value=value) if value.type.is_integer and value.type.scalar.bits < bits:
                return self._bits_before_widening(value)
            case Broadcast(value=value):
                return self._bits_before_widening(value)
            case Select(if_true=first, if_false=second):
                return max(self._bits_before_widening(first), self._bits_before_widening(second))
            case Const(value=value):
                needed = int(value).bit_length() + 1
                return next((fits for fits in (8, 16, 32) if fits >= needed), bits)
        return bits

    def _is_sum(self, expr: Expr) -> bool:
        match expr:
            case Apply(operator=operator) | ReduceLanes(operator=operator):
                return operator in _ADDITIVE
        return False

    def _sum_of_products(self, root: Expr) -> Fraction:
        scalar = root.type.scalar
        add = self.fabric.dsp_cost(Op.ADD, scalar)
        multiply = self.fabric.dsp_cost(Op.MULTIPLY, scalar)
        additions = products = 0
        rest = Fraction(0)
        pending = [root]
        while pending:
            match self.inlined(pending.pop()):
                case Apply(operator=Op.ADD | Op.SUBTRACT, operands=operands, type=type):
                    additions += type.lanes
                    pending += operands
                case ReduceLanes(operator=Op.ADD, value=value):
                    additions += value.type.lanes - 1
                    pending.append(value)
                case Apply(operator=Op.MULTIPLY, operands=operands, type=type) as product:
                    products += 0 if _shifts(product, self.fabric) else type.lanes
                    rest += sum((self.cost(operand) for operand in operands), Fraction(0))
                case leaf:
                    rest += self.cost(leaf)
        return rest + max(additions * add, products * multiply)


def _shifts(product: Apply, fabric: Fabric) -> bool:
    """Whether one operand is a constant power of two, which takes no multiplier."""
    if product.type.is_float and not fabric.shifts_floats:
        return False
    for operand in product.operands:
        value = operand.value if isinstance(operand, Broadcast) else operand
        if isinstance(value, Const) and abs(frexp(value.value)[0]) in (0.5, 0.0):
            return True
    return False


def register_blocks(node: Node, fabric: Fabric) -> int:
    """RAM blocks of the register files of one PE or machine."""
    match node:
        case Machine():
            firings = [path.statements for path in node.paths()]
        case _:
            firings = [node.body]
    return sum(
        max([1, *(_reads(statements, register.name) for statements in firings)])
        * fabric.ram_cost(prod(register.shape), _bits(register.type))
        for register in node.registers
    )


def fifo_blocks(channel: Channel, fabric: Fabric) -> int:
    """RAM blocks of all FIFOs of a channel."""
    return channel.element_count * fabric.ram_cost(channel.capacity, _bits(channel.stream.element))


def _reads(statements: Sequence[Statement], register: str) -> int:
    reads = (item.register for item in statements if isinstance(item, RegisterRead))
    return sum(name == register for name in reads)


def unit_blocks(node: Node, fabric: Fabric) -> int:
    """RAM blocks of the load and store units of one PE or machine."""
    statements = list(node.statements() if isinstance(node, Machine) else node.body)
    widths = [item.type for item in statements if isinstance(item, Load)]
    widths += [item.value.type for item in statements if isinstance(item, Store | Search)]
    return sum(fabric.ram_cost(fabric.burst_words, _bits(type)) for type in widths)


def _bits(type: Type) -> int:
    return (1 if type.is_bool else type.bits) * type.lanes
