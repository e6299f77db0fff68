"""The modules of a node: those of its PEs, by class, and the one of the array around them.

A PE that always uses the same element of a channel is wired to it.  Only where the element moves
while the design runs, or where several PEs may use one element, there is logic between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from t2s.backends.text.expressions import If, Name, TargetExpression, TargetStatement, number
from t2s.backends.text.identifiers import Identifiers
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.counted_nests import CountedNest
from t2s.backends.verilog.data_types import bits_of
from t2s.backends.verilog.interfaces import Interface, SendingPort, TakingPort, interface_of
from t2s.backends.verilog.machine_module import MachineModule
from t2s.backends.verilog.pe import PEModule
from t2s.backends.verilog.pe_classes import PEClass, classes_of, columns_of, fixed_elements
from t2s.backends.verilog.storage import firings_of_places
from t2s.backends.verilog.top import Top
from t2s.core.expr import index_names
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Channel
from t2s.graph.nodes import Machine, Node, PEArray
from t2s.graph.semantics import space_points

PE = "pe"
ELEMENT = "at"

Elements = tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A class of PEs: its interface, the module of one PE, and its parameters by space index."""

    of: PEClass
    interface: Interface
    module: str
    space: Mapping[str, str]


def pe_names(node: Node) -> tuple[str, ...]:
    """The name of the instance at each place, from its coordinates: ``pe_1_0``, ``pe_minus1``."""
    return tuple(
        PE + "".join(f"_{at}" if at >= 0 else f"_minus{-at}" for at in point)
        for point in space_points(node)
    )


class ArrayModules:
    """Builds the modules of a node.

    ``interface`` is that of the node of ``top``, ``name`` the name of the module of the array,
    ``modules`` the names of modules in use.  ``nest`` is ``None`` for a machine.
    """

    def __init__(
        self,
        top: Top,
        interface: Interface,
        name: str,
        nest: CountedNest | None,
        modules: Identifiers,
    ) -> None:
        self.top, self.graph, self.interface, self.name = top, top.graph, interface, name
        self.nest, self.modules = nest, modules
        self.node = interface.node
        self.classes = classes_of(self.node)
        self.taken = self._wires(self.graph.inputs_of(self.node.name), taken=True)
        self.sent = self._wires(self.graph.outputs_of(self.node.name), taken=False)
        self.items: list[ast.Item] = []
        self.routes: list[ast.Item] = []
        self.connections: list[list[tuple[str, TargetExpression]]] = [
            [] for _ in range(self.node.place_count)
        ]

    def _wires(self, channels: tuple[Channel, ...], *, taken: bool) -> dict[str, Elements | None]:
        """The element of each channel at every place; ``None`` for a channel whose element moves.

        A place that does not use the channel has no element.
        """
        wires: dict[str, Elements | None] = {}
        for channel in channels:
            index = channel.sink_index if taken else channel.source_index
            elements = fixed_elements(self.node, index, channel.shape)
            if elements is not None:
                users = self._users(channel.name, Receive if taken else Send)
                used = {place: elements[place] for place in users}
                inside = [element for element in used.values() if element is not None]
                elements = (
                    tuple(used.get(place) for place in range(self.node.place_count))
                    if len(inside) == len(set(inside))
                    else None
                )
            wires[channel.name] = elements
        return wires

    def _users(self, channel: str, kind: type[Receive | Send]) -> tuple[int, ...]:
        """The places whose PEs may use a channel."""
        return tuple(
            place
            for of in self.classes
            if isinstance(of.node, Machine)
            or any(isinstance(s, kind) and s.channel == channel for s in of.node.body)
            for place in of.places
        )

    # --------------------------------------------------------------------------------- modules

    def build(self) -> tuple[ast.HardwareModule, ...]:
        """The modules of the PEs, and then that of the array."""
        built: list[ast.HardwareModule] = []
        members: list[_Member] = []
        for of in self.classes:
            member = self._member(of)
            members.append(member)
            built += self._module(member)
        return (*built, self._array(members))

    def _member(self, of: PEClass) -> _Member:
        moving = [n for n, wires in (*self.taken.items(), *self.sent.items()) if wires is None]
        interface = interface_of(
            self.graph,
            of.node,
            interval=self.interface.interval,
            plan=self.interface.plan,
            stores=of.stores,
            moving=moving,
            whole=self.node,
            ranges=self.interface.ranges,
        )
        used = set(index_names(of.node))
        ends: tuple[TakingPort | SendingPort, ...] = (*interface.taking, *interface.sending)
        for end in ends:
            if end.at is not None:
                taken = isinstance(end, TakingPort)
                index = end.channel.sink_index if taken else end.channel.source_index
                used = used.union(*(index_names(expr) for expr in index))
        fresh = interface.identifiers.fresh
        return _Member(
            of=of,
            interface=interface,
            module=self.modules.fresh(f"{self.name}_pe"),
            space={d.name: fresh(d.name) for d in self.node.space if d.name in used},
        )

    def _module(self, member: _Member) -> tuple[ast.HardwareModule, ...]:
        match member.of.node:
            case Machine() as machine:
                return MachineModule(
                    self.graph,
                    member.interface,
                    machine,
                    member.space,
                    member.module,
                    self.modules,
                ).build()
            case PEArray() as array:
                assert self.nest is not None
                pe = PEModule(
                    member.interface,
                    array,
                    member.space,
                    self.nest,
                    member.module,
                    never_full=self.top.never_full,
                    ends_with_tokens=self._ends_with_tokens(member.of),
                )
                return (pe.build(),)

    def _ends_with_tokens(self, of: PEClass) -> bool:
        """Whether PEs of a class, behind their last firing, wait for a token that never comes.

        They are those that take a token in each firing of an element that gets no more.
        """
        node = of.node
        if not self.interface.plan.chip or not isinstance(node, PEArray):
            return False
        firings = firings_of_places(node)
        if firings is None:
            return False

        def all_taken(channel: str) -> bool:
            elements, sent = self.taken[channel], self.top.sent[channel]
            if elements is None or sent is None:
                return False
            ends = [(elements[place], firings[place]) for place in of.places]
            return all(at is not None and sent[at] <= fires for at, fires in ends)

        always = (s for s in node.body if isinstance(s, Receive) and s.condition is None)
        return any(all_taken(receive.channel) for receive in always)

    def _array(self, members: list[_Member]) -> ast.HardwareModule:
        interface, places = self.interface, self.node.place_count
        ports = port.control_ports(interface)
        ports += [ast.input_port(text, bits_of(p.type)) for p, text in interface.parameters]
        for place in range(places):
            self.connections[place] += [
                (p.variable.name, Name(name=p.variable.name)) for p in port.control_ports(interface)
            ]
        whole_parameters = dict(interface.parameters)
        for member in members:
            for parameter, text in member.interface.parameters:
                self._connect(member, text, Name(name=whole_parameters[parameter]))
        for taking in interface.taking:
            count = taking.channel.element_count
            ports += [
                ast.input_port(taking.valid, ast.BIT, count),
                ast.input_port(taking.token, taking.type, count),
                ast.output_port(taking.pop, ast.BIT, count),
            ]
            self._take(taking, members)
        for sending in interface.sending:
            count = sending.channel.element_count
            ports += [
                ast.input_port(sending.space, ast.BIT, count),
                ast.output_port(sending.push, ast.BIT, count),
                ast.output_port(sending.value, sending.type, count),
            ]
            self._send(sending, members)
        ports += [
            replace(straight, variable=replace(straight.variable, count=places))
            for straight in interface.straight
        ]
        for member in members:
            self._straight(member)
        self._absent(members)
        if self.routes:
            self.routes.insert(0, ast.Heading(text="from PEs to channels"))
        return ast.HardwareModule(
            name=self.name,
            about=_about(self.node),
            ports=tuple(ports),
            items=(*self.items, *self._instances(members), *self.routes),
        )

    def _connect(self, member: _Member, text: str, value: TargetExpression) -> None:
        """Connect a port of all PEs of a class."""
        for place in member.of.places:
            self.connections[place].append((text, value))

    def _instances(self, members: list[_Member]) -> list[ast.Item]:
        columns = columns_of(self.node)
        wanted = pe_names(self.node)
        fresh = self.interface.identifiers.fresh
        of_place = {place: member for member in members for place in member.of.places}
        items: list[ast.Item] = []
        for place in sorted(of_place):
            member = of_place[place]
            point = {name: int(column[place]) for name, column in columns.items()}
            items.append(
                ast.Instance(
                    module=member.module,
                    name=fresh(wanted[place]),
                    parameters=tuple(
                        (text, number(point[index])) for index, text in member.space.items()
                    ),
                    connections=tuple(self.connections[place]),
                )
            )
        return items

    # -------------------------------------------------------------------------------- channels

    def _each(self, text: str, type: ast.Bits) -> str:
        """A new variable with an element for each place."""
        wire = self.interface.identifiers.fresh(f"{PE}_{text}")
        self.items.append(ast.variable(wire, type, self.node.place_count))
        return wire

    def _take(self, whole: TakingPort, members: list[_Member]) -> None:
        """Connect the receiving ends of a channel."""
        channel = whole.channel
        elements = self.taken[channel.name]
        ends = {
            place: end
            for member in members
            for end in member.interface.taking
            if end.channel.name == channel.name
            for place in member.of.places
        }
        if elements is None:
            moving = _Moving(
                to=self._each(f"{channel.name}_from", port.element_type(channel)),
                moves=self._each(f"{channel.name}_pop", ast.BIT),
            )
            for place in range(self.node.place_count):
                if place not in ends:
                    self._idle(moving, place)
                    continue
                end, at = ends[place], ast.element(moving.to, place)
                assert end.at is not None
                self.connections[place] += [
                    (end.at, at),
                    (end.pop, ast.element(moving.moves, place)),
                    (end.valid, ast.Element(base=Name(name=whole.valid), index=at)),
                    (end.token, ast.Element(base=Name(name=whole.token), index=at)),
                ]
            self.routes.append(self._pops(whole, moving))
            return
        for place, end in ends.items():
            element = elements[place]
            if element is None:
                pairs = ((end.valid, ast.FALSE), (end.token, ast.ZEROS), (end.pop, ast.OPEN))
                self.connections[place] += pairs
                continue
            pairs_of = ((end.valid, whole.valid), (end.token, whole.token), (end.pop, whole.pop))
            self.connections[place] += [(text, ast.element(o, element)) for text, o in pairs_of]
        for element in range(channel.element_count):
            if element not in elements:
                self._tie(whole.pop, element, ast.FALSE)

    def _send(self, whole: SendingPort, members: list[_Member]) -> None:
        """Connect the sending ends of a channel."""
        channel = whole.channel
        elements = self.sent[channel.name]
        ends = {
            place: end
            for member in members
            for end in member.interface.sending
            if end.channel.name == channel.name
            for place in member.of.places
        }
        if elements is None:
            moving = _Moving(
                to=self._each(f"{channel.name}_to", port.element_type(channel)),
                moves=self._each(f"{channel.name}_push", ast.BIT),
            )
            values = self._each(f"{channel.name}_value", whole.type)
            for place in range(self.node.place_count):
                if place not in ends:
                    self._idle(moving, place)
                    self._tie(values, place, ast.ZEROS)
                    continue
                end, at = ends[place], ast.element(moving.to, place)
                assert end.at is not None
                self.connections[place] += [
                    (end.at, at),
                    (end.push, ast.element(moving.moves, place)),
                    (end.value, ast.element(values, place)),
                    (end.space, ast.Element(base=Name(name=whole.space), index=at)),
                ]
            self.routes += self._pushes(whole, moving, values)
            return
        for place, end in ends.items():
            element = elements[place]
            if element is None:
                pairs = ((end.space, ast.FALSE), (end.push, ast.OPEN), (end.value, ast.OPEN))
                self.connections[place] += pairs
                continue
            pairs_of = ((end.space, whole.space), (end.push, whole.push), (end.value, whole.value))
            self.connections[place] += [(text, ast.element(o, element)) for text, o in pairs_of]
        for element in range(channel.element_count):
            if element not in elements:
                self._tie(whole.push, element, ast.FALSE)
                self._tie(whole.value, element, ast.ZEROS)

    def _tie(self, name: str, element: int, value: TargetExpression) -> None:
        self.routes.append(ast.ContinuousAssignment(target=ast.element(name, element), value=value))

    def _idle(self, moving: _Moving, place: int) -> None:
        """The signals of a PE that does not use a channel."""
        self._tie(moving.to, place, ast.ZEROS)
        self._tie(moving.moves, place, ast.FALSE)

    def _pops(self, whole: TakingPort, moving: _Moving) -> ast.Item:
        each, places = Name(name=PE), self.node.place_count
        clear = ast.UnrolledFor(
            variable=ELEMENT,
            count=whole.channel.element_count,
            body=(ast.put(ast.element(whole.pop, Name(name=ELEMENT)), ast.FALSE),),
        )
        moves = ast.element(moving.moves, each)
        popped = ast.element(whole.pop, ast.element(moving.to, each))
        set_one = If(condition=moves, then=(ast.put(popped, ast.TRUE),))
        loop = ast.UnrolledFor(variable=PE, count=places, body=(set_one,))
        return ast.AlwaysComb(body=(clear, loop))

    def _pushes(self, whole: SendingPort, moving: _Moving, values: str) -> list[ast.Item]:
        """The pushes of PEs, and their values, which come later."""
        each, element = Name(name=PE), Name(name=ELEMENT)
        pushes = self._routed(
            whole,
            (ast.put(ast.element(whole.push, element), ast.FALSE),),
            ast.element(moving.moves, each),
            (ast.put(ast.element(whole.push, ast.element(moving.to, each)), ast.TRUE),),
        )
        arrives: TargetExpression = ast.element(moving.moves, each)
        to: TargetExpression = ast.element(moving.to, each)
        items: list[ast.Item] = []
        if whole.late:
            width = port.element_type(whole.channel).width
            late = self._each(f"{whole.channel.name}_late", ast.Bits(width=width + 1))
            for place in range(self.node.place_count):
                now = (ast.element(moving.to, place), ast.element(moving.moves, place))
                items.append(
                    ast.Instance(
                        module="delay",
                        name=self.interface.identifiers.fresh(
                            f"{whole.channel.name}_delay_{place}"
                        ),
                        parameters=(("WIDTH", number(width + 1)), ("CYCLES", number(whole.late))),
                        connections=(
                            (port.CLOCK, Name(name=port.CLOCK)),
                            (port.RESET, Name(name=port.RESET)),
                            ("now", ast.Concatenation(parts=now)),
                            ("later", ast.element(late, place)),
                        ),
                    )
                )
            both = ast.element(late, each)
            arrives = ast.Element(base=both, index=number(0))
            to = ast.Slice(base=both, high=width, low=1)
        value = self._routed(
            whole,
            (ast.put(ast.element(whole.value, element), ast.ZEROS),),
            arrives,
            (ast.put(ast.element(whole.value, to), ast.element(values, each)),),
        )
        return [pushes, *items, value]

    def _routed(
        self,
        whole: SendingPort,
        clear: tuple[TargetStatement, ...],
        condition: TargetExpression,
        then: tuple[TargetStatement, ...],
    ) -> ast.Item:
        """A block that clears what every element gets, and then sets it from PEs."""
        elements = whole.channel.element_count
        return ast.AlwaysComb(
            body=(
                ast.UnrolledFor(variable=ELEMENT, count=elements, body=clear),
                ast.UnrolledFor(
                    variable=PE,
                    count=self.node.place_count,
                    body=(If(condition=condition, then=then),),
                ),
            )
        )

    # ------------------------------------------------------------------- memory, and the control

    def _straight(self, member: _Member) -> None:
        """Connect the ports that a PE has at the array; tie those of accesses that it lacks."""
        whole, one = self.interface, member.interface
        pairs: list[tuple[str, str]] = [(port.FIRES, port.FIRES), (port.FINISHED, port.FINISHED)]
        loads = dict(zip(member.of.loads, one.loads, strict=True))
        for at, load in enumerate(whole.loads):
            own = loads.get(at)
            if own is None:
                self._without(member, load.enable, load.address)
            else:
                pairs += [(own.enable, load.enable), (own.address, load.address)]
                pairs.append((own.data, load.data))
        stores = dict(zip(member.of.stores, one.stores, strict=True))
        for at, store in enumerate(whole.stores):
            mine = stores.get(at)
            if mine is None:
                self._without(member, store.enable, store.address, store.data)
            else:
                pairs += [(mine.enable, store.enable), (mine.address, store.address)]
                pairs.append((mine.data, store.data))
        for mine_search, search in zip(one.searches, whole.searches, strict=True):
            pairs += [
                (getattr(mine_search, field), getattr(search, field))
                for field in ("enable", "begin", "end", "value", "found")
            ]
        if whole.memory:
            pairs += [(name, name) for name in (port.READY, port.MOVED, port.GRANTED)]
        if whole.may_fail:
            pairs.append((port.FAULT, port.FAULT))
        for place in member.of.places:
            self.connections[place] += [
                (inside, ast.element(outside, place)) for inside, outside in pairs
            ]

    def _without(self, member: _Member, *names: str) -> None:
        for place in member.of.places:
            for name in names:
                self._tie(name, place, ast.ZEROS)

    def _absent(self, members: list[_Member]) -> None:
        """Places without a PE never fire."""
        there = {place for member in members for place in member.of.places}
        for place in range(self.node.place_count):
            if place not in there:
                for straight in self.interface.straight:
                    if straight.direction is ast.Direction.OUTPUT:
                        name = straight.variable.name
                        value = ast.TRUE if name == port.FINISHED else ast.ZEROS
                        self._tie(name, place, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moving:
    """The ends of a channel whose elements move: the element of each PE, and whether it moves."""

    to: str
    moves: str


def _about(node: Node) -> tuple[str, ...]:
    shape = " x ".join(str(dimension.extent) for dimension in node.space)
    kind = "machine" if isinstance(node, Machine) else "PE"
    what = f"{shape} {kind}s" if node.space else f"one {kind}"
    return (f"The {node.role.value} node {node.name}: {what}.",)
