"""The rules of machines: modes and rules that exist, heads used where they are needed, types.

Names: every input channel has one head; modes and rules have names of their own; a name is bound
once on the way to a rule.  Control: a rule takes heads that it needs and puts at most one token
into a channel, with a tag if the stream has nesting.  Every channel is taken from and put into by
some rule, and no cycle of modes is without effect.  Memory: a tensor that a machine stores into is
accessed by no other node, so that no value depends on timing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

from t2s.core.errors import InternalError
from t2s.core.expr import Expr
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Statement, Store, by_lanes
from t2s.graph.graph import LARGEST, Graph, MemorySpace, Tensor, TensorRole
from t2s.graph.nodes import (
    Choice,
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Mode,
    Put,
    Rule,
    Search,
    SortedMemory,
)
from t2s.graph.verify_expr import (
    ExprScope,
    Subject,
    one_of,
    spell,
    verify_condition,
    verify_expr,
    verify_lanes,
)

_ON_THE_WAY = (Let, Load, Search, RegisterRead, MemorySize, MemoryFirst)
_IN_RULES = (*_ON_THE_WAY, Store, RegisterWrite, MemoryAdd, MemoryDrop)


def verify_machine(graph: Graph, node: Machine, static: ExprScope) -> None:
    """Check a machine; ``static`` has its space dimensions and the parameters in scope."""
    _MachineVerifier(graph, node, static).verify()


@dataclass(frozen=True, slots=True)
class _KnownWay:
    """What is known on the way to a rule: heads that are there, and locals."""

    needs: tuple[str, ...]
    locals: dict[str, Type]


class _MachineVerifier:
    def __init__(self, graph: Graph, node: Machine, static: ExprScope) -> None:
        self.graph = graph
        self.node = node
        self.static = replace(static, in_machine=True)
        self.subject = static.subject
        self.inputs = {channel.name: channel for channel in graph.inputs_of(node.name)}
        self.outputs = {channel.name: channel for channel in graph.outputs_of(node.name)}
        self.heads = {head.channel: head for head in node.heads}
        self.registers = {register.name: register for register in node.registers}
        self.memories = {memory.name: memory for memory in node.memories}
        self.modes = {mode.name: mode for mode in node.modes}

    def verify(self) -> None:
        self._names()
        self._heads()
        self._waits_for_somebody()
        self._takes_time()
        for memory in self.node.memories:
            self._memory_is_right(memory)
        if not self.node.modes:
            self._broken("it has no modes", "at least one mode", "none")
        start = {r.name: r.type for r in self.node.registers if not r.shape}
        for mode in self.node.modes:
            self._mode(mode, start)
        self._all_used()
        self._comes_on()

    def _broken(self, problem: str, expected: str, given: str, hint: str | None = None) -> None:
        raise self.subject.error(problem, expected=expected, given=given, hint=hint)

    def _distinct(self, kind: str, names: Iterable[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                self._broken(
                    f"the name {name!r} is used twice", f"{kind} of distinct names", repr(name)
                )
            seen.add(name)

    def _waits_for_somebody(self) -> None:
        if self.node.endless and not self.inputs:
            self._broken(
                "it is endless and has no input",
                "an input, on which it waits for ever",
                "no input channel",
                "give it a channel, or let it end and leave endless out",
            )

    def _takes_time(self) -> None:
        interval, latency = self.node.interval, self.node.latency
        if not 1 <= interval <= LARGEST:
            self._broken(
                "its interval is not a number of cycles",
                f"an interval from 1 to {LARGEST}",
                str(interval),
            )
        if not 0 <= latency <= LARGEST:
            self._broken(
                "its latency is not a number of cycles",
                f"a latency from 0 to {LARGEST}",
                str(latency),
            )

    def _names(self) -> None:
        fixed = [p.name for p in self.graph.parameters] + [d.name for d in self.node.space]
        fixed += [register.name for register in self.node.registers]
        fixed += [name for head in self.node.heads for name in (head.value, head.tag) if name]
        self._distinct("parameters, space dimensions, registers and heads", fixed)
        self._distinct("memories", (memory.name for memory in self.node.memories))
        self._distinct("modes", (mode.name for mode in self.node.modes))
        self._distinct("rules", (path.rule.name for path in self.node.paths()))
        self._distinct("heads", (head.channel for head in self.node.heads))

    def _heads(self) -> None:
        if set(self.heads) != set(self.inputs):
            wrong = sorted(set(self.heads) ^ set(self.inputs))
            self._broken(
                "its heads are not those of its input channels",
                ", ".join(sorted(self.inputs)) or "no heads",
                ", ".join(sorted(self.heads)) or "no heads",
                f"look at {wrong[0]!r}",
            )
        for head in self.node.heads:
            nesting = self.inputs[head.channel].stream.nesting
            if (head.tag is None) != (nesting == 0):
                self._broken(
                    f"the head of channel {head.channel!r} does not fit its stream",
                    "no tag" if nesting == 0 else f"a tag: the nesting is {nesting}",
                    "no tag" if head.tag is None else f"the tag {head.tag!r}",
                )

    def _memory_is_right(self, memory: SortedMemory) -> None:
        if not all(key.is_integer and key.lanes == 1 for key in memory.keys):
            self._broken(
                f"the keys of memory {memory.name!r} are not integers",
                "scalar integers",
                ", ".join(map(str, memory.keys)),
            )

    def _mode(self, mode: Mode, registers: dict[str, Type]) -> None:
        what = f"mode {mode.name!r}"
        way = self._needed(_KnownWay((), dict(registers)), mode.needs, what)
        self._choices(mode.choices, way, what)

    def _needed(self, way: _KnownWay, needs: tuple[str, ...], what: str) -> _KnownWay:
        local = dict(way.locals)
        for name in needs:
            if name not in self.heads:
                self._broken(f"{what} needs an unknown head", one_of(self.heads), repr(name))
            if name in way.needs or needs.count(name) > 1:
                self._broken(f"{what} needs a head twice", "each head once", repr(name))
            head = self.heads[name]
            local[head.value] = self.inputs[name].stream.element
            if head.tag is not None:
                local[head.tag] = INT32
        return _KnownWay((*way.needs, *needs), local)

    def _choices(self, choices: tuple[Choice, ...], way: _KnownWay, what: str) -> None:
        if not choices:
            self._broken(f"{what} has no alternatives", "at least one", "none")
        for choice in choices:
            scope = replace(self.static, locals=way.locals)
            verify_condition(choice.when, scope, f"an alternative of {what}")
            inner = self._needed(way, choice.needs, what)
            for statement in choice.body:
                self._statement(statement, inner, what, _ON_THE_WAY)
            match choice.inside:
                case Rule() as rule:
                    self._rule(rule, inner)
                case nested:
                    self._choices(nested, inner, what)

    def _rule(self, rule: Rule, way: _KnownWay) -> None:
        what = f"rule {rule.name!r}"
        inner = _KnownWay(way.needs, dict(way.locals))
        for statement in rule.body:
            self._statement(statement, inner, what, _IN_RULES)
        for name in rule.takes:
            if name not in way.needs or rule.takes.count(name) > 1:
                self._broken(
                    f"{what} takes a head that it does not need, or takes it twice",
                    one_of(way.needs),
                    repr(name),
                )
        self._distinct(f"{what} to put into channels", (put.channel for put in rule.puts))
        for put in rule.puts:
            self._put(put, inner, what)
        if rule.next is not None and rule.next not in self.modes:
            self._broken(
                f"the mode after {what} does not exist", one_of(self.modes), repr(rule.next)
            )

    def _put(self, put: Put, way: _KnownWay, what: str) -> None:
        if put.channel not in self.outputs:
            self._broken(
                f"{what} puts into a channel that is not its own",
                one_of(self.outputs),
                repr(put.channel),
            )
        stream = self.outputs[put.channel].stream
        if put.tag is not None:
            if not stream.nesting:
                self._broken(
                    f"{what} puts a tag into channel {put.channel!r}",
                    "no tags: the nesting is 0",
                    "a tag",
                )
            self._value(put.tag, INT32, way, f"the tag of {what}")
        if put.value is not None:
            self._value(put.value, stream.element, way, f"what {what} puts into {put.channel!r}")

    def _value(self, value: Expr, type: Type, way: _KnownWay, what: str) -> None:
        verify_expr(value, replace(self.static, locals=way.locals), what)
        if value.type != type:
            self._broken(f"{what} has the wrong type", spell(type), spell(value.type))

    def _bind(self, target: str, type: Type, way: _KnownWay, what: str) -> None:
        if target in way.locals or target in self.static.indices | set(self.static.parameters):
            self._broken(f"{what}: the name {target!r} is taken", "a fresh name", repr(target))
        way.locals[target] = type

    def _statement(
        self, statement: Statement, way: _KnownWay, what: str, allowed: tuple[type[Statement], ...]
    ) -> None:
        if not isinstance(statement, allowed):
            self._broken(
                f"{what} has a statement that is not allowed there",
                ", ".join(kind.__name__ for kind in allowed),
                type(statement).__name__,
            )
        match statement:
            case Load() | Store() | RegisterWrite() if statement.condition is not None:
                self._broken(
                    f"{what} holds a statement with a condition",
                    "no conditions: alternatives choose",
                    type(statement).__name__,
                )
        match statement:
            case Let(target=target, value=value):
                verify_expr(value, replace(self.static, locals=way.locals), f"{what}: {target!r}")
                self._bind(target, value.type, way, what)
            case Load(target=target, tensor=name, indices=indices, type=type_):
                self._access(name, indices, type_, way, what)
                self._bind(target, type_, way, what)
            case Search():
                self._search(statement, way, what)
            case Store(tensor=name, indices=indices, value=value):
                tensor = self._access(name, indices, value.type, way, what)
                self._value(value, value.type, way, f"what {what} stores")
                if tensor.role is TensorRole.INPUT:
                    self._broken(f"{what} stores into an input", "an output", repr(name))
            case RegisterRead(target=target, register=name, indices=indices, type=type_):
                self._register(name, indices, type_, way, what)
                self._bind(target, type_, way, what)
            case RegisterWrite(register=name, indices=indices, value=value):
                self._register(name, indices, value.type, way, what)
                self._value(value, value.type, way, f"what {what} writes to {name!r}")
            case MemoryAdd() | MemorySize() | MemoryFirst() | MemoryDrop():
                self._memory(statement, way, what)

    def _search(self, statement: Search, way: _KnownWay, what: str) -> None:
        begin, end, value = statement.begin, statement.end, statement.value
        self._access(statement.tensor, (begin,), value.type, way, what)
        self._value(value, value.type, way, f"what {what} searches for")
        self._value(end, begin.type, way, f"the end of the search of {what}")
        self._bind(statement.target, begin.type, way, what)

    def _indices(self, indices: tuple[Expr, ...], rank: int, way: _KnownWay, what: str) -> None:
        if len(indices) != rank:
            self._broken(f"{what} has the wrong number of indices", str(rank), str(len(indices)))
        for index in indices:
            verify_expr(index, replace(self.static, locals=way.locals), f"an index of {what}")
            if not index.type.is_integer or index.type.lanes != 1:
                self._broken(f"an index of {what} is not an integer", "an integer", str(index.type))

    def _access(
        self, name: str, indices: tuple[Expr, ...], type: Type, way: _KnownWay, what: str
    ) -> Tensor:
        names = {tensor.name: tensor for tensor in self.graph.tensors}
        if name not in names:
            self._broken(f"{what} uses an unknown tensor", one_of(names), repr(name))
        tensor = names[name]
        rank, place = len(tensor.allocated), f"{what}, tensor {name!r},"
        if by_lanes(indices):
            scope = replace(self.static, locals=way.locals)
            verify_lanes(indices, rank, type, scope, place)
            indices, rank = indices[:-1], rank - 1
        self._indices(indices, rank, way, place)
        if type != tensor.type.with_lanes(type.lanes):
            self._broken(f"{what}: an element of {name!r}", spell(tensor.type), spell(type))
        return tensor

    def _register(
        self, name: str, indices: tuple[Expr, ...], type: Type, way: _KnownWay, what: str
    ) -> None:
        if name not in self.registers:
            self._broken(f"{what}: unknown register", one_of(self.registers), repr(name))
        register = self.registers[name]
        self._indices(indices, len(register.shape), way, f"{what}, register {name!r},")
        if type != register.type:
            self._broken(f"{what}: register {name!r}", spell(register.type), spell(type))

    def _memory(
        self,
        statement: MemoryAdd | MemorySize | MemoryFirst | MemoryDrop,
        way: _KnownWay,
        what: str,
    ) -> None:
        if statement.memory not in self.memories:
            self._broken(f"{what}: unknown memory", one_of(self.memories), repr(statement.memory))
        memory = self.memories[statement.memory]
        match statement:
            case MemoryAdd(keys=keys, value=value):
                self._indices(keys, len(memory.keys), way, f"{what}, memory {memory.name!r},")
                for key, declared in zip(keys, memory.keys, strict=True):
                    self._value(key, declared, way, f"a key of {what}")
                self._value(value, memory.type, way, f"what {what} adds to {memory.name!r}")
            case MemorySize(target=target):
                self._bind(target, INT32, way, what)
            case MemoryFirst(targets=targets, value=value_name):
                if len(targets) != len(memory.keys):
                    self._broken(
                        f"{what} has the wrong number of keys",
                        str(len(memory.keys)),
                        str(len(targets)),
                    )
                for target, declared in zip(targets, memory.keys, strict=True):
                    self._bind(target, declared, way, what)
                self._bind(value_name, memory.type, way, what)

    def _all_used(self) -> None:
        paths = self.node.paths()
        taken = {name for path in paths for name in path.rule.takes}
        put = {put.channel for path in paths for put in path.rule.puts}
        for verb, channels, used in (
            ("takes tokens from", self.inputs, taken),
            ("puts tokens into", self.outputs, put),
        ):
            unused = next((name for name in channels if name not in used), None)
            if unused is not None:
                self._broken(
                    f"no rule {verb} channel {unused!r}",
                    "every channel of a node to be used",
                    "none",
                    "remove the channel, or add it to a rule",
                )

    def _comes_on(self) -> None:
        """Check that no cycle of modes consists of rules without effect."""
        idle: dict[str, set[str]] = {mode.name: set() for mode in self.node.modes}
        for path in self.node.paths():
            effects = any(not isinstance(step, _ON_THE_WAY) for step in path.rule.body)
            if path.rule.next is not None and not (path.rule.takes or path.rule.puts or effects):
                idle[path.mode.name].add(path.rule.next)
        for start in idle:
            reached, fresh = set[str](), idle[start]
            while fresh:
                reached |= fresh
                fresh = {after for mode in fresh for after in idle[mode]} - reached
            if start in reached:
                self._broken(
                    f"mode {start!r} may loop forever without effect",
                    "a rule on the way that takes, puts or changes something",
                    "rules that do nothing",
                )


def verify_memories(graph: Graph) -> None:
    """Check that what a machine stores into is its own: values must not depend on time.

    Tensors of single assignment are used by any machines; see ``Tensor.once``.
    """
    shared = {tensor.name for tensor in graph.tensors if tensor.once}
    users: dict[str, list[str]] = {}
    for node in graph.nodes:
        for tensor in sorted(accesses_of(node)):
            users.setdefault(tensor, []).append(node.name)
    for node in graph.machines:
        stored_tensors = {step.tensor for step in node.statements() if isinstance(step, Store)}
        stored = sorted(stored_tensors - shared)
        subject = Subject.of("node", node)
        if stored and node.place_count > 1:
            raise subject.error(
                f"several machines store into {stored[0]!r}",
                expected="one machine for each tensor that is stored into",
                given=f"{node.place_count} machines",
                hint="make a node for each of them, with a tensor of its own",
            )
        for tensor in stored:
            other = next((name for name in users[tensor] if name != node.name), None)
            if other is not None:
                raise subject.error(
                    f"node {other!r} uses {tensor!r} as well, into which it stores",
                    expected="what a machine stores into to be its own: values must not depend on"
                    " time",
                    given=f"two nodes that use {tensor!r}",
                )


def accesses_of(node: object) -> set[str]:
    """The tensors that a node loads from or stores into."""
    statements = node.statements() if isinstance(node, Machine) else getattr(node, "body", ())
    return {s.tensor for s in statements if isinstance(s, Load | Search | Store)}


# Tensors that several machines use: copies of inputs, and tensors of single assignment.
#
# Each element of a tensor of single assignment is stored once, and not loaded before, by whichever
# machine; then no value depends on time (``Tensor.once``).  The interpreter and the plain engine,
# which fires machines in the order of time, keep such tensors in lists that check that.


def verify_promises(graph: Graph, subject: Subject, tensor: Tensor) -> None:
    """Copies are those of inputs in memory, and what is stored once is stored at all."""
    if tensor.once and (tensor.role is TensorRole.INPUT or not tensor.open):
        raise subject.error(
            "it cannot be stored once",
            expected="an open output or intermediate",
            given=f"{tensor.role.value} {tensor.shape_text}",
        )
    if tensor.copy_of is None:
        return
    copied = [t for t in graph.tensors if t.name == tensor.copy_of]
    right = [
        t
        for t in copied
        if t.copy_of is None and t.layout is None and t.place is MemorySpace.MEMORY
        if (t.role, t.type, t.shape, t.padded, t.open)
        == (TensorRole.INPUT, tensor.type, tensor.shape, tensor.padded, tensor.open)
    ]
    alike = tensor.role is TensorRole.INPUT and tensor.layout is None
    if not right or not alike or tensor.place is MemorySpace.MEMORY:
        raise subject.error(
            f"it is not a copy of {tensor.copy_of!r}",
            expected="an input on the chip, of the type and the shape of an input in memory",
            given=f"{tensor.shape_text} beside {copied[0].shape_text if copied else 'nothing'}",
        )


class StoredOnce(list[Any]):
    """A list that grows, and knows which of its elements were stored and loaded."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._stored: set[int] = set()
        self._loaded: set[int] = set()

    def __getitem__(self, at: Any) -> Any:
        self._loaded.update(self._places(at))
        return super().__getitem__(at)

    def __setitem__(self, at: Any, value: Any) -> None:
        for place in self._places(at):
            if place in self._stored or place in self._loaded:
                before = "stored" if place in self._stored else "loaded"
                raise InternalError(
                    f"element {place} of {self._name!r} is stored, and was {before} before: in a"
                    " tensor of single assignment each is stored once, before it is loaded"
                )
            self._stored.add(place)
        super().__setitem__(at, value)

    def _places(self, at: slice | SupportsIndex) -> range:
        """The elements that are meant, also behind the end."""
        if isinstance(at, slice):
            return range(at.start or 0, len(self) if at.stop is None else at.stop)
        return range(at.__index__(), at.__index__() + 1)
