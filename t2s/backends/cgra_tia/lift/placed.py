"""A placed design as a graph that ``simulate`` runs fast, and that agrees with the interpreter.

Each branch of a net is a channel with the latency and the capacity of its placement, plus the FMA's
pipeline where FMA results leave.  Similar cells are one array of PEs; so are similar units.  A cell
whose firings depend on tokens is a machine.  Operators themselves take no time: run the graph on
the device ``"ideal"``, or on a device that differs from it in its memory only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from t2s.backends.cgra_tia import program as isa
from t2s.backends.cgra_tia.fabric import CgraFabric, CoreParameters
from t2s.backends.cgra_tia.lift.address_units import sequence_value, unit_machine
from t2s.backends.cgra_tia.lift.cell_machines import (
    CellMachine,
    TokenChannel,
    slow_register,
    states_of,
)
from t2s.backends.cgra_tia.lift.classes import (
    ROUND,
    STEP,
    PartClass,
    Point,
    affine,
    affine_form,
    classes_of,
    inside,
    is_compute,
    mapped,
)
from t2s.backends.cgra_tia.lift.static_cells import StaticCells, StaticFirings, TagAction
from t2s.backends.cgra_tia.lift.word_expressions import (
    DOUBLE,
    FLOAT_OPERANDS,
    WORD,
    WordKinds,
    expression_of,
    immediate_constant,
    start_word,
)
from t2s.backends.cgra_tia.netlist import (
    Net,
    NetCell,
    PlacedDesign,
    StreamUnit,
    TagCase,
    UnitCondition,
    UnitKind,
)
from t2s.core.errors import UserError
from t2s.core.expr import (
    TRUE,
    Cast,
    Expr,
    Index,
    Local,
    Select,
    all_hold,
    apply,
    conjunction,
    const,
    digits,
    equals,
    unequal,
)
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    Register,
    RegisterRead,
    RegisterWrite,
    Role,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Channel, Graph, StreamType, Tensor
from t2s.graph.nodes import Machine, Node, PEArray
from t2s.graph.verify import verify_graph


def lift_placed(design: PlacedDesign, *, fused: bool = True) -> Graph:
    """The graph of a placed design: the same values and cycles as ``run_placed``.

    ``fused`` says whether ``fmac`` rounds once or twice.  An FMA result that goes to a register is
    a token until it is used.  Raises ``UserError`` for a program that is not a process of a Kahn
    network, and for operators that graphs do not have.
    """
    netlist = design.netlist
    kinds = WordKinds(netlist)
    firings = StaticCells(netlist).firings
    classes = classes_of(netlist, firings, kinds)
    links = links_of(design, classes, kinds)
    tensors = {tensor.name: tensor for tensor in netlist.tensors}
    core = design.fabric.core
    nodes: list[Node] = []
    channels = [channel for link in links for channel in (link.channel, link.tags) if channel]
    names = NameSupply([channel.name for channel in channels])
    for part_class in classes:
        if part_class.is_machine:
            landings = _landings(part_class, kinds, design.fabric, names)
            channels += landings.values()
            nodes.append(machine_of(part_class, links, landings, kinds, tensors, core, fused=fused))
        else:
            nodes.append(array_of(part_class, links, kinds, tensors, core, fused=fused))
    graph = Graph(
        name=netlist.name,
        nodes=tuple(nodes),
        channels=tuple(channels),
        tensors=netlist.tensors,
        location=netlist.location,
    )
    verify_graph(graph)
    return graph


def parts_of_nodes(design: PlacedDesign) -> dict[str, tuple[str, ...]]:
    """For each node of the lifted graph, the names of the cells or units that it stands for."""
    kinds = WordKinds(design.netlist)
    classes = classes_of(design.netlist, StaticCells(design.netlist).firings, kinds)
    return {
        part_class.name: tuple(part.name for part in part_class.parts) for part_class in classes
    }


def machine_of(
    part_class: PartClass,
    links: Sequence[Link],
    landings: Mapping[int, Channel],
    kinds: WordKinds,
    tensors: Mapping[str, Tensor],
    core: CoreParameters,
    *,
    fused: bool,
) -> Machine:
    """The node of a cell or a unit whose firings depend on tokens."""
    cell = part_class.first
    inputs = {
        link.input: TokenChannel(link.channel.name, link.tags.name if link.tags else "")
        for link in links
        if link.channel.sink == part_class.name
    }
    outputs: dict[int, list[TokenChannel]] = {}
    for link in links:
        if link.channel.source == part_class.name:
            tags = link.tags.name if link.tags is not None else ""
            outputs.setdefault(link.output, []).append(TokenChannel(link.channel.name, tags))
    if isinstance(cell, StreamUnit):
        tensor = tensors[cell.tensor or ""]
        return unit_machine(
            part_class.name, cell, tensor, inputs, outputs.get(0, ()), part_class.location
        )
    machine = CellMachine(
        name=part_class.name,
        label=repr(cell.name),
        program=cell.program,
        states=states_of(cell.program, repr(cell.name), inputs),
        inputs=inputs,
        outputs=outputs,
        core=core,
        input_types={port: kinds.input(cell.name, port) for port in range(core.inputs)},
        output_types={port: kinds.output(cell.name, port) for port in range(core.outputs)},
        register_types={n: kinds.register(cell.name, n) for n in range(core.registers)},
        scratchpad_type=kinds.scratchpad(cell.name),
        landings={number: channel.name for number, channel in landings.items()},
        fused=fused,
        endless=True,
        location=part_class.location,
    )
    return machine.build(Role.COMPUTE if is_compute(cell) else Role.RELAY)


def _landings(
    part_class: PartClass, kinds: WordKinds, fabric: CgraFabric, names: NameSupply
) -> dict[int, Channel]:
    """A channel from a cell to itself for each register that receives FMA results."""
    cell = part_class.first
    if not isinstance(cell, NetCell):
        return {}
    slow = map(slow_register, cell.program.instructions)
    registers = {number for number in slow if number is not None}
    return {
        number: Channel(
            name=names.fresh(f"{part_class.name}_r{number}"),
            stream=StreamType(element=kinds.register(cell.name, number)),
            source=part_class.name,
            sink=part_class.name,
            shape=(),
            source_index=(),
            sink_index=(),
            capacity=2,
            latency=max(1, fabric.fma_latency),
            location=part_class.location,
        )
        for number in sorted(registers)
    }


# Classes of parts as arrays of PEs: loops, receives, computation and sends.

FALSE = const(False, BOOL)


def array_of(
    part_class: PartClass,
    links: Sequence[Link],
    kinds: WordKinds,
    tensors: Mapping[str, Tensor],
    core: CoreParameters,
    *,
    fused: bool,
) -> PEArray:
    """The node of a class of cells or of units."""
    body = ArrayBody(
        part_class=part_class, links=links, kinds=kinds, tensors=tensors, core=core, fused=fused
    )
    match part_class.first:
        case StreamUnit() as unit:
            body.unit(unit)
            roles = {UnitKind.LOAD: Role.LOAD, UnitKind.STORE: Role.STORE}
            role = roles.get(unit.kind, Role.RELAY)
        case NetCell():
            assert part_class.firings is not None
            body.cell(part_class.firings)
            role = Role.COMPUTE if is_compute(part_class.first) else Role.RELAY
    return PEArray(
        name=part_class.name,
        role=role,
        space=part_class.space,
        exists=part_class.exists,
        loops=part_class.loops,
        registers=tuple(body.registers.values()),
        body=tuple(body.statements),
        location=part_class.location,
    )


@dataclass(slots=True, kw_only=True)
class ArrayBody:
    """Collects the statements and the registers of a node."""

    part_class: PartClass
    links: Sequence[Link]
    kinds: WordKinds
    tensors: Mapping[str, Tensor]
    core: CoreParameters
    fused: bool
    statements: list[Statement] = field(default_factory=list)
    registers: dict[int, Register] = field(default_factory=dict)
    _values: dict[int, Expr] = field(default_factory=dict)

    @property
    def _name(self) -> str:
        return self.part_class.first.name

    # -- units ---------------------------------------------------------------------------------

    def unit(self, unit: StreamUnit) -> None:
        """One step of a unit's nest."""
        value: Expr = const(0, WORD)
        if unit.tensor is not None:
            tensor = self.tensors[unit.tensor]
            indices = self._indices(unit, tensor)
            if unit.kind is UnitKind.STORE:
                self._receive(0, TRUE)
                stored = _converted(self._values[0], tensor.type)
                self.statements.append(Store(tensor=tensor.name, indices=indices, value=stored))
                return
            self.statements.append(
                Load(target="loaded", tensor=tensor.name, indices=indices, type=tensor.type)
            )
            loaded = Local(name="loaded", type=tensor.type)
            value = _converted(loaded, DOUBLE if tensor.type.is_float else WORD)
        elif unit.address is not None:
            value = sequence_value(self.part_class, unit.address)
        self._send(
            0, value, self._tag([(c.tag, _case(c, self.part_class.loop_names)) for c in unit.tags])
        )

    def _indices(self, unit: StreamUnit, tensor: Tensor) -> tuple[Expr, ...]:
        """The subscripts of a unit's address in its row-major array."""
        factors, constant = self.part_class.base
        names = self.part_class.space_names
        terms = dict(zip(names, factors, strict=True))
        if unit.address is not None:
            coefficients = zip(self.part_class.loop_names, unit.address.coefficients, strict=False)
            terms |= dict(coefficients)
        shape = tensor.allocated
        split = self._by_dimension(terms, constant, shape)
        return digits(affine(terms, constant), shape) if split is None else split

    def _by_dimension(
        self, terms: Mapping[str, int], constant: int, shape: Sequence[int]
    ) -> tuple[Expr, ...] | None:
        """An affine subscript for each dimension; ``None`` if one of them leaves its extent."""
        ranges = {d.name: (d.minimum, d.minimum + d.extent - 1) for d in self.part_class.space}
        for name, loop in zip(self.part_class.loop_names, self.part_class.nest.loops, strict=True):
            if any(loop.extent.coefficients):
                return None
            ranges[name] = (0, max(0, loop.extent.constant - 1))
        coefficients, rest = dict(terms), constant
        subscripts: list[Expr] = []
        stride = 1
        for extent in shape:
            stride *= extent
        for extent in shape:
            stride //= max(1, extent)
            own = {name: _quotient(factor, stride) for name, factor in coefficients.items()}
            at = _quotient(rest, stride)
            coefficients = {
                name: factor - own[name] * stride for name, factor in coefficients.items()
            }
            rest -= at * stride
            ends = [(factor * ranges[n][0], factor * ranges[n][1]) for n, factor in own.items()]
            low, high = at + sum(map(min, ends)), at + sum(map(max, ends))
            if low < 0 or high >= extent:
                return None
            subscripts.append(affine(own, at))
        return tuple(subscripts)

    # -- cells ---------------------------------------------------------------------------------

    def cell(self, firings: StaticFirings) -> None:
        """One firing of a cell."""
        steady = [(action.instruction, self._when(action)) for action in firings.actions]
        actions = self._after_prologue(firings.prologue, steady)
        for port in sorted({port for instruction, _ in actions for port in instruction.takes}):
            self._receive(port, _any(w for instruction, w in actions if port in instruction.takes))
        self._read_registers([instruction for instruction, _ in actions])
        for port in sorted({port for instruction, _ in actions for port in instruction.outputs}):
            sending = [(i, when) for i, when in actions if port in i.outputs]
            value = self._result(sending, self.kinds.output(self._name, port), f"out{port}")
            tags = [(_tag_of(instruction), when) for instruction, when in sending]
            self._send(port, value, self._tag(tags), _any(when for _, when in sending))
        for number, register in self.registers.items():
            writing = [(i, when) for i, when in actions if i.destination == isa.ToRegister(number)]
            if writing:
                value = self._result(writing, register.type, f"new{number}")
                when = _any(when for _, when in writing)
                condition = None if when == TRUE else when
                self.statements.append(
                    RegisterWrite(
                        register=register.name, indices=(), value=value, condition=condition
                    )
                )

    def _after_prologue(
        self, prologue: Sequence[isa.Instruction], steady: Sequence[tuple[isa.Instruction, Expr]]
    ) -> list[tuple[isa.Instruction, Expr]]:
        """All instructions, with the conditions under which they fire."""
        if not prologue:
            return list(steady)
        first, later = (equals(Index(name=ROUND), number) for number in (0, 1))
        actions: list[tuple[isa.Instruction, Expr]] = []
        for number, instruction in enumerate(prologue):
            own = equals(Index(name=STEP), number) if len(prologue) > 1 else None
            actions.append((instruction, all_hold(first, own)))
        return actions + [(i, all_hold(later, when)) for i, when in steady]

    def _read_registers(self, instructions: Sequence[isa.Instruction]) -> None:
        cell = self.part_class.first
        assert isinstance(cell, NetCell)
        initial = dict(cell.program.initial)
        read = {
            s.number for i in instructions for s in i.sources if isinstance(s, isa.FromRegister)
        }
        for number in sorted(read):
            type = self.kinds.register(self._name, number)
            start = start_word(initial.get(number, 0), type)
            self.registers[number] = Register(
                name=f"r{number}", type=type, shape=(), distance=1, initial=start
            )
            self.statements.append(
                RegisterRead(target=f"held{number}", register=f"r{number}", indices=(), type=type)
            )

    def _result(
        self, choices: Sequence[tuple[isa.Instruction, Expr]], type: Type, name: str
    ) -> Expr:
        """The result of the instruction that fires; one operator if all have the same."""
        forms = {(instruction.opcode, len(instruction.sources)) for instruction, _ in choices}
        if len(forms) == 1:
            operands = [
                _chosen([(self._operand(i, n, type), when) for i, when in choices])
                for n in range(len(choices[0][0].sources))
            ]
            value = self._computed(choices[0][0], operands)
        else:
            results = []
            for instruction, when in choices:
                count = len(instruction.sources)
                own = [self._operand(instruction, n, type) for n in range(count)]
                results.append((self._computed(instruction, own), when))
            value = _chosen(results)
        self.statements.append(Let(target=name, value=value))
        return Local(name=name, type=value.type)

    def _computed(self, instruction: isa.Instruction, operands: Sequence[Expr]) -> Expr:
        value = expression_of(instruction.opcode, operands, WORD, fused=self.fused)
        if value is None:
            position = instruction.position
            line = "" if position is None else f" in line {position.line}"
            raise UserError(
                f"graphs have no {instruction.opcode.value!r}, which {self._name!r} does{line}",
                location=self.part_class.location,
                expected="an operator on 64-bit integers or on floats that graphs have",
                given=instruction.opcode.value,
                hint="the interpreter runs it",
            )
        return value

    def _operand(self, instruction: isa.Instruction, number: int, result: Type) -> Expr:
        source: isa.Source = instruction.sources[number]
        match source:
            case isa.FromChannel(number=port):
                return self._values[port]
            case isa.FromRegister(number=register):
                return Local(name=f"held{register}", type=self.registers[register].type)
            case isa.Immediate(pattern=pattern):
                type = DOUBLE if instruction.opcode in FLOAT_OPERANDS else WORD
                if instruction.opcode is isa.Opcode.MOV:
                    type = result
                return immediate_constant(pattern, self.core, type)

    # -- ports ---------------------------------------------------------------------------------

    def _receive(self, port: int, when: Expr) -> None:
        """Take a token at an input, from the channel that ends at the PE."""
        mine = [
            link
            for link in self.links
            if link.channel.sink == self.part_class.name and link.input == port
        ]
        taken: list[tuple[Expr, Expr]] = []
        for number, link in enumerate(mine):
            name, type = f"in{port}_{number}", link.channel.stream.element
            condition = conjunction(link.receives, when)
            self.statements.append(
                Receive(target=name, channel=link.channel.name, type=type, condition=condition)
            )
            taken.append((Local(name=name, type=type), link.receives))
        self._values[port] = _chosen(taken)
        if len(taken) > 1:
            self.statements.append(Let(target=f"in{port}", value=self._values[port]))
            self._values[port] = Local(name=f"in{port}", type=self._values[port].type)

    def _send(self, port: int, value: Expr, tag: Expr, when: Expr = TRUE) -> None:
        """Put a token into every branch of the net at an output."""
        for link in self.links:
            if link.channel.source == self.part_class.name and link.output == port:
                condition = conjunction(link.sends, when)
                self.statements.append(
                    Send(channel=link.channel.name, value=value, condition=condition)
                )
                if link.tags is not None:
                    self.statements.append(
                        Send(channel=link.tags.name, value=tag, condition=condition)
                    )

    def _tag(self, cases: Sequence[tuple[int, Expr]]) -> Expr:
        """The tag of the first case that holds, 0 if none does."""
        result: Expr = const(0, INT32)
        for tag, when in reversed(cases):
            number = const(tag, INT32)
            result = (
                number
                if when == TRUE
                else Select(condition=when, if_true=number, if_false=result, type=INT32)
            )
        return result

    def _when(self, action: TagAction) -> Expr:
        """The condition under which an action happens in a step of the nest."""
        if action.tags is None:
            return TRUE
        nest = self.part_class.nest
        result: Expr = const(0 in action.tags, BOOL)
        for case in reversed(nest.tags):
            holds = _case(case, self.part_class.loop_names)
            if case.tag in action.tags:
                result = TRUE if TRUE in (holds, result) else _either(holds, result)
            elif holds == TRUE:
                result = FALSE
            elif result != FALSE:
                result = all_hold(~holds, result)
        return result


def _tag_of(instruction: isa.Instruction) -> int:
    destination = instruction.destination
    return destination.tag if isinstance(destination, isa.ToOutputs) else 0


def _quotient(number: int, stride: int) -> int:
    """The quotient, rounded towards zero."""
    return number // stride if number >= 0 else -(-number // stride)


def _either(left: Expr, right: Expr) -> Expr:
    return left if right == FALSE else right if left == FALSE else left | right


def _any(conditions: object) -> Expr:
    result: Expr = FALSE
    for condition in conditions:  # type: ignore[attr-defined]
        result = TRUE if TRUE in (condition, result) else _either(result, condition)
    return result


def _chosen(values: Sequence[tuple[Expr, Expr]]) -> Expr:
    """The value whose condition holds; one of them does."""
    result = values[-1][0]
    for value, when in reversed(values[:-1]):
        if value != result:
            result = Select(condition=when, if_true=value, if_false=result, type=result.type)
    return result


def _case(case: TagCase, names: Sequence[str]) -> Expr:
    return all_hold(*(_condition(condition, names) for condition in case.when))


def _condition(condition: UnitCondition, names: Sequence[str]) -> Expr:
    total = condition.sum
    factors = {n: f for n, f in zip(names, total.coefficients, strict=False) if f}
    if condition.equal and len(factors) == 1 and set(factors.values()) <= {1, -1}:
        ((name, factor),) = factors.items()
        return equals(Index(name=name), -total.constant * factor)
    value = affine(factors, total.constant)
    return apply(Op.EQUAL if condition.equal else Op.GREATER_EQUAL, value, const(0, INT32))


def _converted(value: Expr, type: Type) -> Expr:
    if value.type == type:
        return value
    if type.is_bool:
        return unequal(value, 0)
    return Cast(value=value, type=type)


# Branches of nets as channel arrays between classes of parts.
#
# All branches from one port of a class to one port of another that have the same latency and the
# same capacity are one *bundle*.  A firing sends into all branches of its net, so those that lead
# to different sinks are different channels: a bundle has one for each value of those coordinates of
# the sink that the source does not give (A[i, k] for all j: one channel for each j), or one for
# each distance between source and sink.  Branches that are of no such form have channels of their
# own.

_Ends = tuple[Point, Point]
"""Where a branch starts and where it ends."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A channel, the ports at its ends, and where in the classes it is used.

    ``tags`` is the channel beside it for the tags of its tokens, if the sink looks at them.
    """

    channel: Channel
    output: int
    input: int
    sends: Expr
    receives: Expr
    tags: Channel | None = None


@dataclass(frozen=True, slots=True)
class _Bundle:
    source: str
    output: int
    sink: str
    input: int
    latency: int
    capacity: int


def links_of(
    design: PlacedDesign, classes: Sequence[PartClass], kinds: WordKinds
) -> tuple[Link, ...]:
    """The channels of a design."""
    owner = {part.name: part_class for part_class in classes for part in part_class.parts}
    by_name = {part_class.name: part_class for part_class in classes}
    bundles: dict[_Bundle, list[_Ends]] = {}
    origins: dict[_Bundle, Net] = {}
    slow = _slow_outputs(design)
    for net in design.netlist.nets:
        source = owner[net.source.part]
        extra = design.fabric.fma_latency * ((net.source.part, net.source.port) in slow)
        for sink, branch in zip(net.sinks, design.branches[net.name], strict=True):
            target = owner[sink.end.part]
            bundle = _Bundle(
                source.name,
                net.source.port,
                target.name,
                sink.end.port,
                branch.latency + extra,
                branch.capacity + extra,
            )
            ends = source.points[net.source.part], target.points[sink.end.part]
            bundles.setdefault(bundle, []).append(ends)
            origins.setdefault(bundle, net)
    names = NameSupply()
    links: list[Link] = []
    for bundle, pairs in bundles.items():
        net = origins[bundle]
        stream = StreamType(element=kinds.output(net.source.part, net.source.port))
        for branch_pairs in _bundled(by_name, bundle, pairs):
            name = names.fresh(f"{bundle.source}_to_{bundle.sink}_{bundle.input}")
            link = _link(by_name, bundle, branch_pairs, name, stream)
            assert link is not None
            channel = replace(link.channel, location=net.location)
            tags = None
            if by_name[bundle.sink].is_machine:
                stream_of_tags = StreamType(element=INT32)
                tags = replace(channel, name=names.fresh(f"{name}_tag"), stream=stream_of_tags)
            links.append(replace(link, channel=channel, tags=tags))
    return tuple(links)


def _slow_outputs(design: PlacedDesign) -> set[tuple[str, int]]:
    """The outputs of cells that results of the FMA leave from."""
    return {
        (cell.name, port)
        for cell in design.netlist.cells
        for instruction in cell.program.instructions
        if instruction.opcode in isa.ON_FMA
        for port in instruction.outputs
    }


def _bundled(
    classes: Mapping[str, PartClass], bundle: _Bundle, pairs: Sequence[_Ends]
) -> list[list[_Ends]]:
    """The branches of a bundle by the channels that they are elements of."""
    stream = StreamType(element=INT32)

    def fits(branches: Sequence[_Ends]) -> bool:
        return _link(classes, bundle, branches, "trial", stream) is not None

    for bundles in (_by_free_axes(pairs), _by_offset(pairs)):
        if all(map(fits, bundles)):
            return bundles
    return [
        some
        for branches in _by_offset(pairs)
        for some in ([branches] if fits(branches) else ([pair] for pair in branches))
    ]


def _by_free_axes(pairs: Sequence[_Ends]) -> list[list[_Ends]]:
    """The pairs by the coordinates of the sink that the source does not give."""
    sources, sinks = [source for source, _ in pairs], [sink for _, sink in pairs]
    free = [
        axis
        for axis in range(len(sinks[0]))
        if affine_form(sources, [sink[axis] for sink in sinks]) is None
    ]
    return _grouped(pairs, [tuple(sink[axis] for axis in free) for sink in sinks])


def _by_offset(pairs: Sequence[_Ends]) -> list[list[_Ends]]:
    """The pairs by how far the sink is from the source, as where a chain goes on in a new row."""
    return _grouped(pairs, [_difference(sink, source) for source, sink in pairs])


def _difference(sink: Point, source: Point) -> Point:
    """How far two points are from each other; what only one of them has stands as it is."""
    return tuple(a - b for a, b in zip_longest(sink, source, fillvalue=0))


def _grouped(pairs: Sequence[_Ends], labels: Sequence[Point]) -> list[list[_Ends]]:
    groups: dict[Point, list[_Ends]] = {}
    for pair, label in zip(pairs, labels, strict=True):
        groups.setdefault(label, []).append(pair)
    return list(groups.values())


def _link(
    classes: Mapping[str, PartClass],
    bundle: _Bundle,
    pairs: Sequence[_Ends],
    name: str,
    stream: StreamType,
) -> Link | None:
    """A channel for these pairs of points; ``None`` if they are not of its form."""
    source, sink = classes[bundle.source], classes[bundle.sink]
    from_points, to_points = [q for q, _ in pairs], [p for _, p in pairs]
    if len(set(from_points)) != len(from_points):
        return None
    sends = inside(source.space_names, from_points, list(source.points.values()))
    receives = inside(sink.space_names, to_points, list(sink.points.values()))
    low = tuple(map(min, zip(*from_points, strict=True)))
    high = tuple(map(max, zip(*from_points, strict=True)))
    elements = [_difference(point, low) for point in from_points]
    own = mapped(source.space_names, from_points, elements)
    indices = mapped(sink.space_names, to_points, elements)
    if indices is None or own is None or sends is None or receives is None:
        return None
    channel = Channel(
        name=name,
        stream=stream,
        source=source.name,
        sink=sink.name,
        shape=tuple(b - a + 1 for a, b in zip(low, high, strict=True)),
        source_index=own,
        sink_index=indices,
        capacity=bundle.capacity,
        latency=bundle.latency,
    )
    return Link(
        channel=channel, output=bundle.output, input=bundle.input, sends=sends, receives=receives
    )
