"""The rules that every graph obeys, checked before anything reads it.

``verify_graph`` runs after lowering and around every rewriting of a graph.  The first broken rule
is raised as a ``GraphError`` that names the node, channel or tensor, shows the user's line that
made it, and says what was expected and what was given.

The rules, in the order they are checked: texts are names (``verify_names``), which are unique;
regions form a tree; tensors, parameters, channels and registers have proper types and extents;
layouts stay inside of the user's arrays, and those of outputs fill them; loop bounds depend on what
lies outside them; bodies are well typed, bind locals before their use and keep control static; load
and store units have exactly one access; every channel has one ``Send`` in its source and one
``Receive`` in its sink, and index maps of its rank.  Machines have rules of their own
(``verify_machine``), and PE arrays use neither streams with nesting nor open tensors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from t2s.core.expr import Const, Expr, conjuncts
from t2s.core.intervals import interval
from t2s.core.isl import LoopDomain, NotAffine, is_affine
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.graph.arrays import verify_arrays, verify_layout
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.cache import GraphCache
from t2s.graph.graph import (
    LARGEST,
    Channel,
    Graph,
    MemorySpace,
    ScalarParameter,
    Tensor,
    TensorRole,
)
from t2s.graph.machine_shapes import firsts_of_shapes
from t2s.graph.nodes import Machine, Node, PEArray, Register, Role
from t2s.graph.verify_expr import (
    ExprScope,
    GraphError,
    Subject,
    one_of,
    refuse_lanes,
    spell,
    verify_condition,
    verify_expr,
    verify_extents,
    verify_index,
    verify_indices,
    verify_scalar_type,
    verify_strong,
    verify_texts,
)
from t2s.graph.verify_machine import accesses_of, verify_machine, verify_memories, verify_promises

__all__ = ["GraphError", "verify_graph"]


_SOUND: GraphCache[None, None] = GraphCache()


def verify_graph(graph: Graph) -> None:
    """Raise ``GraphError`` at the first rule that ``graph`` breaks; see the module's docstring.

    Graphs are immutable, so one that passed is not checked again.
    """
    _SOUND.get(graph, None, lambda: _verify(graph))


def _verify(graph: Graph) -> None:
    alike = frozenset(node.name for node in graph.machines) - firsts_of_shapes(graph)
    verify_texts(graph, alike)
    _verify_names("node", graph.nodes)
    _verify_names("channel", graph.channels)
    _verify_names("tensor", graph.tensors)
    _verify_names("parameter", graph.parameters)
    _verify_regions(graph)
    for tensor in graph.tensors:
        subject = Subject.of("tensor", tensor)
        verify_scalar_type(subject, tensor.type)
        verify_extents(subject, () if tensor.open else tensor.padded or tensor.shape)
        _verify_place(graph, subject, tensor)
        verify_promises(graph, subject, tensor)
        _verify_ascending(graph, subject, tensor)
        _verify_padding(subject, tensor)
        verify_layout(subject, tensor)
    verify_arrays(graph)
    for parameter in graph.parameters:
        verify_scalar_type(Subject.of("parameter", parameter), parameter.type)
    for channel in graph.channels:
        _verify_fifos(channel)
    for node in graph.nodes:
        _verify_node(graph, node, inside=node.name not in alike)
    verify_memories(graph)
    users = _users(graph)
    for channel in graph.channels:
        _verify_end(graph, channel, Send, users)
        _verify_end(graph, channel, Receive, users)


def _verify_names(kind: str, items: Iterable[Node | Channel | Tensor | ScalarParameter]) -> None:
    first: dict[str, Node | Channel | Tensor | ScalarParameter] = {}
    for item in items:
        if item.name in first:
            raise Subject.of(kind, item).error(
                f"the name is taken by another {kind}",
                expected=f"every {kind} of a graph to have a name of its own",
                given=f"two {kind}s named {item.name!r}",
                hint="take fresh names from a NameSupply",
                notes=[(first[item.name].location, f"the first {kind} of that name is made here")],
            )
        first[item.name] = item


def _verify_node_names(graph: Graph, node: PEArray, subject: Subject) -> None:
    """Indices, locals, registers and parameters share one name space: that of a PE's variables."""
    uses = [(parameter.name, "a parameter") for parameter in graph.parameters]
    uses += [(dimension.name, "a space dimension") for dimension in node.space]
    uses += [(loop.name, "a loop") for loop in node.loops]
    uses += [(register.name, "a register") for register in node.registers]
    for statement in node.body:
        match statement:
            case Receive() | Let() | Load() | RegisterRead():
                uses.append((statement.target, "a local"))
    first: dict[str, str] = {}
    for name, use in uses:
        if name in first:
            raise subject.error(
                f"the name {name!r} is used twice",
                expected="distinct names for space dimensions, loops, registers, locals and "
                "the graph's parameters",
                given=f"{first[name]} and {use} named {name!r}",
                hint="take fresh names from a NameSupply",
            )
        first[name] = use


def _verify_regions(graph: Graph) -> None:
    for name, count in Counter(region.name for region in graph.regions).items():
        if count > 1:
            raise Subject(text=f"region {name!r}", location=graph.location).error(
                "the name is taken by another region",
                expected="every region of a graph to have a name of its own",
                given=f"{count} regions named {name!r}",
            )
    parents = {region.name: region.parent for region in graph.regions}
    for region in graph.regions:
        subject = Subject(text=f"region {region.name!r}", location=graph.location)
        path, parent = [region.name], region.parent
        while parent is not None:
            if parent not in parents:
                raise subject.error(
                    "the parent region does not exist",
                    expected=one_of(parents),
                    given=repr(parent),
                )
            path.append(parent)
            if parent in path[:-1]:
                raise subject.error(
                    "the region lies inside itself",
                    expected="parents that lead to an outermost region",
                    given=" in ".join(path),
                )
            parent = parents[parent]


def _verify_place(graph: Graph, subject: Subject, tensor: Tensor) -> None:
    """Open tensors have one dimension and lie as they are; they, those on the chip and those in
    shared banks belong to machines."""
    if tensor.swizzled and tensor.place is not MemorySpace.SHARED:
        raise subject.error(
            "it is swizzled, but not in shared banks",
            expected="MemorySpace.SHARED, or a tensor that is not swizzled",
            given=str(tensor.place),
        )
    if tensor.streamed and tensor.place is not MemorySpace.MEMORY:
        raise subject.error(
            "it is streamed, but not in the device's memory",
            expected="MemorySpace.MEMORY, or a tensor that is not streamed",
            given=str(tensor.place),
        )
    if tensor.in_parts and tensor.place is not MemorySpace.MEMORY:
        raise subject.error(
            "it is stored in parts, but not in the device's memory",
            expected="MemorySpace.MEMORY, or a tensor that is not stored in parts",
            given=str(tensor.place),
        )
    if not tensor.open and tensor.place is MemorySpace.MEMORY:
        return
    if tensor.open and (
        tensor.shape != (0,) or tensor.padded is not None or tensor.layout is not None
    ):
        raise subject.error(
            "an open tensor has a shape",
            expected="the shape (0,), no padding and no layout",
            given=tensor.shape_text,
        )
    for node in graph.pe_arrays:
        if tensor.name in accesses_of(node):
            raise subject.error(
                f"the PE array {node.name!r} uses it",
                expected="machines alone to use open tensors, those on the chip and shared ones",
                given=tensor.shape_text,
                notes=[(node.location, f"node {node.name!r} is made here")],
            )


def _verify_ascending(graph: Graph, subject: Subject, tensor: Tensor) -> None:
    if tensor.ascending is None:
        return
    named = [t for t in graph.tensors if t.name == tensor.ascending]
    lists = [t for t in (tensor, *named) if t.role is TensorRole.INPUT and len(t.shape) == 1]
    if len(lists) != 2 or tensor.layout is not None:
        raise subject.error(
            "it ascends between positions that are not inputs",
            expected="two inputs of one dimension",
            given=f"{tensor.shape_text} between {tensor.ascending!r}",
        )


def _verify_padding(subject: Subject, tensor: Tensor) -> None:
    padded = tensor.padded
    if padded is None:
        return
    same_rank = len(padded) == len(tensor.shape)
    if not same_rank or any(not 0 <= b <= a for a, b in zip(padded, tensor.shape, strict=True)):
        raise subject.error(
            "the padded shape does not hold the shape",
            expected=f"the same rank, and no extent below that of {tensor.shape}",
            given=str(padded),
        )


def _verify_node(graph: Graph, node: Node, *, inside: bool) -> None:
    """Check a node; what is inside of it only if no node that is the same was checked before."""
    subject = Subject.of("node", node)
    verify_extents(subject, tuple(d.extent for d in node.space), "the space domain")
    for register in node.registers:
        _verify_register(subject, register)
    if node.region is not None and all(node.region != region.name for region in graph.regions):
        raise subject.error(
            "the region does not exist",
            expected=one_of(region.name for region in graph.regions),
            given=repr(node.region),
        )
    match node:
        case PEArray():
            _verify_pe_array(graph, node, subject)
        case Machine() if inside:
            verify_machine(graph, node, _static_scope(graph, node, subject))


def _verify_pe_array(graph: Graph, node: PEArray, subject: Subject) -> None:
    _verify_node_names(graph, node, subject)
    scope = _static_scope(graph, node, subject)
    verify_condition(node.exists, replace(scope, parameters={}), "the space domain")
    for loop in node.loops:
        for what, bound in (("minimum", loop.minimum), ("extent", loop.extent)):
            verify_index(bound, scope, f"the {what} of loop {loop.name!r}")
        scope = replace(scope, indices=scope.indices | {loop.name})
    verify_condition(node.active, scope, "the iterations that there are")
    _verify_role(node, subject)
    body = BodyVerifier(graph=graph, node=node, static=scope)
    for statement in node.body:
        body.verify(statement)
    verify_bounds(graph, node)


def _static_scope(graph: Graph, node: Node, subject: Subject, *, loops: bool = False) -> ExprScope:
    """What static expressions of a node may use: space, parameters and, if asked, its loops."""
    space = frozenset(dimension.name for dimension in node.space)
    inside = node.loops if loops and isinstance(node, PEArray) else ()
    return ExprScope(
        subject=subject,
        indices=space | {loop.name for loop in inside},
        parameters={parameter.name: parameter.type for parameter in graph.parameters},
    )


def _verify_register(subject: Subject, register: Register) -> None:
    own = Subject(
        text=f"register {register.name!r} of {subject.text}",
        location=register.location or subject.location,
    )
    verify_strong(own, register.type)
    verify_extents(own, register.shape)
    if register.distance < 1:
        raise own.error(
            "the distance is below 1",
            expected="at least one firing between a write and the next read",
            given=str(register.distance),
        )
    if repr(register.initial) != "0":
        start = Const(value=register.initial, type=register.type.scalar)
        verify_expr(start, ExprScope(subject=own, indices=frozenset(), parameters={}), "its start")


def _verify_role(node: PEArray, subject: Subject) -> None:
    """A load unit loads once per firing, a store unit stores once; other nodes do neither."""
    for kind, role in ((Load, Role.LOAD), (Store, Role.STORE)):
        count = sum(isinstance(statement, kind) for statement in node.body)
        expected = 1 if node.role is role else 0
        if count != expected:
            raise subject.error(
                f"a node of role {node.role.value} has the wrong number of {kind.__name__}"
                " statements",
                expected=f"exactly {expected}" if expected else "none",
                given=str(count),
                hint=f"give every {kind.__name__} a {role.value} node of its own",
            )


def _verify_fifos(channel: Channel) -> None:
    subject = Subject.of("channel", channel)
    verify_strong(subject, channel.stream.element)
    verify_extents(subject, channel.shape)
    for what, value, least in (
        ("capacity", channel.capacity, 1),
        ("latency", channel.latency, 1),
        ("nesting", channel.stream.nesting, 0),
    ):
        if not least <= value <= LARGEST:
            below, limit = ("below", least) if value < least else ("above", LARGEST)
            raise subject.error(
                f"the {what} is {below} {limit}",
                expected=f"a {what} of at {'least' if value < least else 'most'} {limit}",
                given=str(value),
            )
    if channel.stream.values_under_tags and not channel.stream.nesting:
        raise subject.error(
            "its tokens keep values under tags that they do not have",
            expected="a nesting of at least 1",
            given="nesting 0: values alone",
        )


_Users = dict[tuple[type[Statement], str], list[PEArray]]
"""PE arrays by what they do with a channel, ``Send`` or ``Receive``: once for each statement."""


def _users(graph: Graph) -> _Users:
    users: _Users = {}
    for node in graph.pe_arrays:
        for statement in node.body:
            if isinstance(statement, Send | Receive):
                users.setdefault((type(statement), statement.channel), []).append(node)
    return users


def _verify_end(
    graph: Graph, channel: Channel, kind: type[Send] | type[Receive], all_users: _Users
) -> None:
    """One end of a channel: its node exists and uses it exactly once, and no other node does."""
    subject = Subject.of("channel", channel)
    side, verb, end, index = (
        ("source", "sends to", channel.source, channel.source_index)
        if kind is Send
        else ("sink", "receives from", channel.sink, channel.sink_index)
    )
    users = all_users.get((kind, channel.name), [])
    try:
        node = graph.node(end)
    except KeyError:
        names = [node.name for node in graph.nodes]
        raise subject.error(
            f"the {side} node does not exist", expected=one_of(names), given=repr(end)
        ) from None
    for user in users:
        if user.name != end:
            raise subject.error(
                f"node {user.name!r} {verb} it but is not its {side}",
                expected=f"{kind.__name__} statements in node {end!r} only",
                given=f"a {kind.__name__} in node {user.name!r}",
                hint="give every pair of nodes a channel of its own",
                notes=[(user.location, f"node {user.name!r} is made here")],
            )
    if isinstance(node, PEArray) and channel.stream.nesting:
        raise subject.error(
            f"its {side} node {end!r} is a PE array",
            expected="machines at both ends of a stream with stop tokens",
            given=f"nesting {channel.stream.nesting}",
            hint="let a machine take the stops out of the stream before the array",
            notes=[(node.location, f"node {end!r} is made here")],
        )
    if isinstance(node, PEArray) and len(users) != 1:
        raise subject.error(
            f"its {side} node {end!r} does not use it exactly once",
            expected=f"one {kind.__name__} statement",
            given=str(len(users)),
            hint=f"merge the {kind.__name__} statements under one condition"
            if users
            else f"remove the channel, or add a {kind.__name__}",
            notes=[(node.location, f"node {end!r} is made here")],
        )
    scope = _static_scope(graph, node, subject, loops=True)
    verify_indices(index, len(channel.shape), scope, f"the {side} index")


# The rules of bodies: statements well typed, locals bound before use, control static, and indices
# inside of the extents of registers and memory in every iteration.


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyVerifier:
    """Checks the statements of one body in order; ``locals`` are those bound so far."""

    graph: Graph
    node: PEArray
    static: ExprScope
    locals: dict[str, Type] = field(default_factory=dict)

    def verify(self, statement: Statement) -> None:
        """Check one statement and bind its target."""
        match statement:
            case Receive(channel=name, target=target, type=type, condition=condition):
                what = f"Receive from channel {name!r}"
                verify_condition(condition, self.static, what)
                self._types_equal(what, self._channel(name, what).stream.element, type)
                self.locals[target] = type
            case Send(channel=name, value=value, condition=condition):
                what = f"Send to channel {name!r}"
                verify_condition(condition, self.static, what)
                self._value(value, what)
                self._types_equal(what, self._channel(name, what).stream.element, value.type)
            case Let(target=target, value=value):
                self._value(value, f"Let of {target!r}")
                self.locals[target] = value.type
            case Load(target=target, tensor=name, indices=indices, type=type):
                verify_condition(statement.condition, self.static, f"Load of tensor {name!r}")
                self._access(f"Load of tensor {name!r}", name, indices, type)
                self.locals[target] = type
            case Store(tensor=name, indices=indices, value=value, condition=condition):
                what = f"Store to tensor {name!r}"
                verify_condition(condition, self.static, what)
                self._value(value, what)
                self._access(what, name, indices, value.type)
                self._not_an_input(what, self.graph.tensor(name))
            case RegisterRead(target=target, register=name, indices=indices, type=type):
                self._register(f"RegisterRead of {name!r}", name, indices, type)
                self.locals[target] = type
            case RegisterWrite(register=name, indices=indices, value=value, condition=condition):
                what = f"RegisterWrite of {name!r}"
                verify_condition(condition, self._dynamic(), what)
                self._value(value, what)
                self._register(what, name, indices, value.type)

    def _dynamic(self) -> ExprScope:
        return replace(self.static, locals=self.locals)

    def _value(self, value: Expr, what: str) -> None:
        verify_expr(value, self._dynamic(), f"the value of {what}")

    def _types_equal(self, what: str, expected: Type, given: Type) -> None:
        if expected != given:
            raise self.static.subject.error(
                f"{what} has the wrong type",
                expected=spell(expected),
                given=spell(given),
                hint="insert a Cast, or change the declared type",
            )

    def _channel(self, name: str, what: str) -> Channel:
        try:
            return self.graph.channel(name)
        except KeyError:
            raise self.static.subject.error(
                f"{what}: unknown channel",
                expected=one_of(channel.name for channel in self.graph.channels),
                given=repr(name),
            ) from None

    def _tensor(self, name: str, what: str) -> Tensor:
        try:
            return self.graph.tensor(name)
        except KeyError:
            raise self.static.subject.error(
                f"{what}: unknown tensor",
                expected=one_of(tensor.name for tensor in self.graph.tensors),
                given=repr(name),
            ) from None

    def _access(self, what: str, name: str, indices: tuple[Expr, ...], type: Type) -> None:
        tensor = self._tensor(name, what)
        shape = tensor.allocated
        refuse_lanes(indices, self.static, what)
        verify_indices(indices, len(shape), self.static, what)
        self._types_equal(what, tensor.type.with_lanes(type.lanes), type)
        innermost = shape[-1] if shape else 1
        if innermost < type.lanes:
            raise self.static.subject.error(
                f"{what}: {type.lanes} lanes do not fit into the last dimension",
                expected=f"a last dimension of at least {type.lanes}",
                given=f"shape {shape}",
                hint="choose a shorter vector, or pad the tensor",
            )

    def _not_an_input(self, what: str, tensor: Tensor) -> None:
        if tensor.role is TensorRole.INPUT:
            raise self.static.subject.error(
                f"{what}: an input is not written",
                expected="a tensor of role output or intermediate",
                given=f"role {tensor.role.value}",
                notes=[(tensor.location, f"tensor {tensor.name!r} is made here")],
            )

    def _register(self, what: str, name: str, indices: tuple[Expr, ...], type: Type) -> None:
        registers = {register.name: register for register in self.node.registers}
        if name not in registers:
            raise self.static.subject.error(
                f"{what}: unknown register",
                expected=one_of(registers),
                given=repr(name),
            )
        verify_indices(indices, len(registers[name].shape), self.static, what)
        self._types_equal(what, registers[name].type, type)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """``lanes`` elements of ``name`` from ``indices`` on, where ``condition`` holds."""

    verb: str
    name: str
    indices: tuple[Expr, ...]
    shape: tuple[int, ...]
    lanes: int = 1
    condition: Expr | None = None
    declared: SourceLocation | None = None


def verify_bounds(graph: Graph, node: PEArray) -> None:
    """Raise ``GraphError`` for an access that leaves its register file or tensor."""
    accesses = [access for access in _accesses(graph, node) if access.indices]
    if not accesses:
        return
    accesses = [access for access in accesses if not _stays_inside(node, access)]
    if not accesses:
        return
    try:
        nest = node.iterations()
    except NotAffine:
        return
    for access in accesses:
        if all(is_affine(part) for part in conjuncts(access.condition)):
            _verify_access(node, access, nest.restricted(*conjuncts(access.condition)))


def _stays_inside(node: PEArray, access: _Access) -> bool:
    """Whether intervals prove the access right, as they often do; isl takes far longer."""
    ranges: dict[str, tuple[int, int]] = {}
    for bounds in (*(d.interval for d in node.space), *(loop.interval for loop in node.loops)):
        if bounds.constant is not None:
            low, extent = bounds.constant
            ranges[bounds.name] = low, low + max(extent, 1) - 1
    for dimension, (index, extent) in enumerate(zip(access.indices, access.shape, strict=True)):
        width = access.lanes if dimension == len(access.shape) - 1 else 1
        reached = interval(index, ranges)
        if reached is None or reached[0] < 0 or reached[1] + width > extent:
            return False
    return True


def _verify_access(node: PEArray, access: _Access, used: LoopDomain) -> None:
    if used.is_empty():
        return
    for dimension, (index, extent) in enumerate(zip(access.indices, access.shape, strict=True)):
        width = access.lanes if dimension == len(access.shape) - 1 else 1
        range_ = used.range_of(index) if is_affine(index) else None
        if range_ is None or (range_[0] >= 0 and range_[1] + width <= extent):
            continue
        raise GraphError(
            f"{node.name!r} {access.verb} outside of {access.name!r}",
            location=node.location,
            expected=f"indices 0 to {extent - 1} in dimension {dimension} of {access.shape}",
            given=f"indices {range_[0]} to {range_[1] + width - 1}",
            hint="guard the access with a condition, or give the tensor the shape it is used with",
            notes=[(access.declared, f"{access.name!r} is declared here")],
        )


def _accesses(graph: Graph, node: PEArray) -> Iterator[_Access]:
    shapes = {register.name: register.shape for register in node.registers}
    for statement in node.body:
        match statement:
            case RegisterRead(register=name, indices=indices):
                yield _Access(verb="reads", name=name, indices=indices, shape=shapes[name])
            case RegisterWrite(register=name, indices=indices, condition=condition):
                yield _Access(
                    verb="writes",
                    name=name,
                    indices=indices,
                    shape=shapes[name],
                    condition=condition,
                )
            case Load(tensor=name) | Store(tensor=name):
                tensor = graph.tensor(name)
                loads = isinstance(statement, Load)
                type = statement.type if isinstance(statement, Load) else statement.value.type
                yield _Access(
                    verb="loads" if loads else "stores",
                    name=name,
                    indices=statement.indices,
                    shape=tensor.allocated,
                    lanes=type.lanes,
                    condition=statement.condition,
                    declared=tensor.location,
                )
