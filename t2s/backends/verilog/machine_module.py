"""The module of one machine: its mode, its registers and memories, and what a firing does.

A machine fires in the first cycle in which its interval has passed, the heads that its next rule
needs are valid, all channels that the rule puts into have space, and memory, if the machine has a
port there, grants the access.  The next rule follows from the mode, the registers and the heads
(``machine_rules``), never from space or from other valid signals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    call,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.cooldown import Cooldown
from t2s.backends.verilog.data_types import bits_of, start_of
from t2s.backends.verilog.expressions import ExpressionWriter, flat
from t2s.backends.verilog.faults import Fault
from t2s.backends.verilog.interfaces import (
    TAG_BITS,
    Interface,
    SendingPort,
    TakingPort,
    parameters_of_space,
    ports_of_one,
)
from t2s.backends.verilog.machine_ranges import Kept, Tag
from t2s.backends.verilog.machine_rules import (
    RuleEffect,
    RuleLogic,
    RuleWriter,
    Sent,
    State,
    any_of,
)
from t2s.backends.verilog.machine_values import MachineValues
from t2s.backends.verilog.sorted_memory import (
    PointPorts,
    point_ports,
    sorted_memory_module,
    typed_ports,
)
from t2s.core.expr import Expr
from t2s.core.types import INT32
from t2s.graph.analysis import path_bytes
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import Machine, Register, SortedMemory


class MachineModule:
    """Builds the module, after those of its sorted memories."""

    def __init__(
        self,
        graph: Graph,
        interface: Interface,
        node: Machine,
        space: Mapping[str, str],
        name: str,
        modules: Identifiers,
    ) -> None:
        self.graph, self.interface, self.node, self.name = graph, interface, node, name
        self.identifiers, self.modules = interface.identifiers, modules
        fresh = self.fresh = interface.identifiers.fresh
        self.space = space
        self.cooldown = Cooldown(name=fresh("cooldown"), interval=interface.interval)
        self.decided = fresh("decided")
        self.types = {
            head.value: graph.channel(head.channel).stream.element for head in node.heads
        } | {head.tag: INT32 for head in node.heads if head.tag is not None}
        files = {register.name: fresh(register.name) for register in node.registers}
        bits = {
            register.name: port.needed_bits(
                bits_of(register.type), interface.ranges.get(Kept(node.name, register.name))
            )
            for register in node.registers
        }
        parameters = {parameter.name: text for parameter, text in interface.parameters}
        single = {
            r.name: files[r.name] if bits[r.name] == bits_of(r.type) else fresh(f"{r.name}_value")
            for r in node.registers
            if not r.shape
        }
        self.state = State(
            mode=fresh("mode"),
            finished=port.FINISHED,
            modes={mode.name: fresh(f"in_{mode.name}") for mode in node.modes},
            files=files,
            bits=bits,
            points={memory.name: self._point_names(memory) for memory in node.memories},
            start={**parameters, **self.space, **single},
            heads={
                head.channel: {
                    local: fresh(local) for local in (head.value, head.tag) if local is not None
                }
                for head in node.heads
            },
        )
        self.needs = {t.channel.name: fresh(f"takes_{t.channel.name}") for t in interface.taking}
        self.offers = {s.channel.name: fresh(f"sends_{s.channel.name}") for s in interface.sending}
        self.rules = RuleWriter(interface, node, self.state)

    def _point_names(self, memory: SortedMemory) -> PointPorts:
        """Signals of the machine at the ports of a sorted memory."""
        fresh, name, ports = self.fresh, memory.name, point_ports(memory)
        return PointPorts(
            enable=port.FIRES,
            add=fresh(f"{name}_{ports.add}"),
            drop=fresh(f"{name}_{ports.drop}"),
            keys=tuple(fresh(f"{name}_{key}") for key in ports.keys),
            value=fresh(f"{name}_{ports.value}"),
            count=fresh(f"{name}_{ports.count}"),
            first_keys=tuple(fresh(f"{name}_{key}") for key in ports.first_keys),
            first_value=fresh(f"{name}_{ports.first_value}"),
            full=fresh(f"{name}_{ports.full}"),
        )

    def build(self) -> tuple[ast.HardwareModule, ...]:
        """The modules."""
        self.rules.build()
        memories = [
            sorted_memory_module(memory, self.modules.fresh(f"{self.name}_{memory.name}"))
            for memory in self.node.memories
        ]
        items: list[ast.Item] = [
            *self._constants(),
            *self._heads(),
            *self._storage(),
            *self.rules.items,
            *self._control(),
            *self._firing(),
            *self._effects(memories).build(),
        ]
        module = ast.HardwareModule(
            name=self.name,
            about=(f"One machine of {self.node.name}.",),
            ports=ports_of_one(self.interface),
            items=tuple(items),
            parameters=parameters_of_space(self.node, self.space),
            shared=True,
        )
        return (*memories, module)

    # ---------------------------------------------------------------------------------- state

    @property
    def _mode_type(self) -> ast.Bits:
        return ast.Bits(width=max(1, (len(self.node.modes) - 1).bit_length()))

    def _constants(self) -> list[ast.Item]:
        names = self.state.modes.values()
        return [ast.Constant(name=n, type=self._mode_type, value=at) for at, n in enumerate(names)]

    def _storage(self) -> list[ast.Item]:
        items: list[ast.Item] = [
            ast.Heading(text="what is kept"),
            ast.variable(self.state.mode, self._mode_type),
        ]
        for register in self.node.registers:
            count = prod(register.shape) if register.shape else None
            file, bits = self.state.files[register.name], self.state.bits[register.name]
            items.append(ast.variable(file, bits, count))
            value = self.state.start.get(register.name, file)
            if value != file:
                whole = bits_of(register.type)
                items.append(ast.variable(value, whole))
                held = ast.widened(Name(name=file), bits, whole)
                items.append(ast.ContinuousAssignment(target=Name(name=value), value=held))
        for memory in self.node.memories:
            names = self.state.points[memory.name]
            items += [
                ast.variable(p.variable.name, p.variable.type)
                for p in typed_ports(memory, names)
                if p.variable.name != names.enable
            ]
        return items

    def _heads(self) -> list[ast.Item]:
        items: list[ast.Item] = [ast.Heading(text="heads")] if self.node.heads else []
        ports = {taking.channel.name: taking for taking in self.interface.taking}
        for head in self.node.heads:
            taking, names = ports[head.channel], self.state.heads[head.channel]
            items += self._head(taking, names[head.value], head.tag and names[head.tag])
        return items

    def _head(self, taking: TakingPort, value: str, tag: str | None) -> list[ast.Item]:
        token, type = Name(name=taking.token), bits_of(taking.channel.stream.element)
        bits = taking.bits
        items: list[ast.Item] = [ast.variable(value, type)]
        if tag is None or bits.tag is None:
            whole = ast.widened(token, bits.value, type)
            return [*items, ast.ContinuousAssignment(target=Name(name=value), value=whole)]
        low = ast.Slice(base=token, high=bits.value.total - 1, low=0)
        high = ast.Slice(base=token, high=taking.type.width - 1, low=bits.value.total)
        return [
            *items,
            ast.variable(tag, ast.INTEGER),
            ast.ContinuousAssignment(
                target=Name(name=value), value=ast.widened(low, bits.value, type)
            ),
            ast.ContinuousAssignment(
                target=Name(name=tag), value=ast.widened(high, bits.tag, ast.INTEGER)
            ),
        ]

    # --------------------------------------------------------------------------------- firing

    def _control(self) -> list[ast.Item]:
        rules = self.rules.rules
        items: list[ast.Item] = [ast.Heading(text="what the present firing needs, and where")]
        for taking in self.interface.taking:
            name = taking.channel.name
            items.append(ast.variable(self.needs[name]))
            takers = any_of([rule for rule in rules if name in rule.rule.takes])
            items.append(ast.ContinuousAssignment(target=Name(name=self.needs[name]), value=takers))
            items += self._where(taking.at, taking.channel, taking.channel.sink_index)
        for sending in self.interface.sending:
            name = sending.channel.name
            items.append(ast.variable(self.offers[name]))
            senders = any_of([rule for rule in rules if any(s.channel == name for s in rule.sent)])
            items.append(
                ast.ContinuousAssignment(target=Name(name=self.offers[name]), value=senders)
            )
            items += self._where(sending.at, sending.channel, sending.channel.source_index)
        if self.interface.memory:
            items.append(
                ast.ContinuousAssignment(target=Name(name=port.MOVED), value=self._moved())
            )
        return items

    def _where(self, at: str | None, channel: Channel, index: tuple[Expr, ...]) -> list[ast.Item]:
        """The element of a channel, where that depends on parameters."""
        if at is None:
            return []
        static = ExpressionWriter(names=self.state.start, identifiers=self.identifiers)
        where = flat(tuple(static.index(i) for i in index), channel.shape)
        value = ast.Resize(bits=port.element_type(channel).width, value=where)
        return [ast.ContinuousAssignment(target=Name(name=at), value=value)]

    def _moved(self) -> TargetExpression:
        """The bytes that the next rule moves."""
        costs = [sum(path_bytes(self.graph, path)) for path in self.node.paths()]
        moved: TargetExpression = number(0)
        for cost in sorted(set(costs) - {0}):
            rules = [rule for rule, c in zip(self.rules.rules, costs, strict=True) if c == cost]
            moved = Ternary(condition=any_of(rules), if_true=number(cost), if_false=moved)
        return moved

    def _firing(self) -> list[ast.Item]:
        fires = Name(name=port.FIRES)
        conditions: list[TargetExpression] = [
            Name(name=self.decided),
            *self.cooldown.conditions(),
        ]
        for sending in self.interface.sending:
            absent = ast.negation(Name(name=self.offers[sending.channel.name]))
            conditions.append(ast.either(absent, Name(name=sending.space)))
        items: list[ast.Item] = [
            ast.Heading(text="firing"),
            *self.cooldown.declarations(),
            ast.variable(self.decided),
            ast.ContinuousAssignment(
                target=Name(name=self.decided), value=any_of(self.rules.rules)
            ),
        ]
        if self.interface.memory:
            items.append(
                ast.ContinuousAssignment(target=Name(name=port.READY), value=ast.both(*conditions))
            )
            allowed = ast.both(Name(name=port.READY), Name(name=port.GRANTED))
            items.append(ast.ContinuousAssignment(target=fires, value=allowed))
        else:
            items.append(ast.ContinuousAssignment(target=fires, value=ast.both(*conditions)))
        for taking in self.interface.taking:
            needs = Name(name=self.needs[taking.channel.name])
            items.append(
                ast.ContinuousAssignment(target=Name(name=taking.pop), value=ast.both(fires, needs))
            )
        for sending in self.interface.sending:
            offers = Name(name=self.offers[sending.channel.name])
            items.append(
                ast.ContinuousAssignment(
                    target=Name(name=sending.push), value=ast.both(fires, offers)
                )
            )
        return [*items, self._fault()]

    def _fault(self) -> ast.Item:
        """The fault of the machine."""
        fires = Name(name=port.FIRES)
        known = {name for names in self.state.heads.values() for name in names.values()}
        tags = [
            ast.both(
                Name(name=rule.taken), Binary(operator="!=", left=sent.tag, right=_cut(sent.tag))
            )
            for rule in self.rules.rules
            for sent in rule.sent
            if isinstance(sent.tag, Name)
            and sent.tag.name not in known
            # a tag in a known range fits
            and Tag(sent.channel) not in self.interface.ranges
        ]
        full = [Name(name=names.full) for names in self.state.points.values()]
        chain: tuple[TargetStatement, ...] = ()
        for kind, conditions, when in (
            (Fault.TAG, tags, (fires,)),
            (Fault.REGISTER, self.rules.outside, (fires,)),
            (Fault.POINTS, full, (fires,)),
            (Fault.TOKENS, self.rules.stray, ()),
        ):
            if conditions:
                what = ast.put(port.FAULT, number(kind.value))
                condition = ast.both(*when, ast.either(*conditions))
                chain = (If(condition=condition, then=(what,), otherwise=chain),)
        return ast.AlwaysComb(body=(ast.put(port.FAULT, number(0)), *chain))

    def _effects(self, memories: list[ast.HardwareModule]) -> Effects:
        return Effects(
            interface=self.interface,
            node=self.node,
            state=self.state,
            rules=self.rules.rules,
            values=self.rules.values,
            modules=memories,
            cooldown=self.cooldown,
            mode_type=self._mode_type,
        )


def _cut(tag: TargetExpression) -> TargetExpression:
    """A tag with the number of bits that tokens have for it."""
    return ast.Resize(bits=32, value=call("$signed", ast.Resize(bits=TAG_BITS, value=tag)))


# The effects of a firing of a machine: tokens, registers, memories and the next mode.


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Builds the items; ``modules`` are those of the sorted memories."""

    interface: Interface
    node: Machine
    state: State
    rules: Sequence[RuleLogic]
    values: MachineValues
    modules: Sequence[ast.HardwareModule]
    cooldown: Cooldown
    mode_type: ast.Bits

    def build(self) -> tuple[ast.Item, ...]:
        """The items."""
        tokens = self._tokens()
        return (*self._memories(), *self.values.items(), *tokens, *self._after())

    def _fresh(self, name: str) -> str:
        return self.interface.identifiers.fresh(name)

    # --------------------------------------------------------------------------------- values

    def _tokens(self) -> list[ast.Item]:
        items: list[ast.Item] = [ast.Heading(text="tokens")] if self.interface.sending else []
        for sending in self.interface.sending:
            items += self._token(sending)
        return items

    def _token(self, sending: SendingPort) -> list[ast.Item]:
        """The token that the next rule puts into a channel."""
        channel = sending.channel
        element_type = bits_of(channel.stream.element)
        value = self._fresh(f"{channel.name}_data")
        tag = self._fresh(f"{channel.name}_tag")
        body: tuple[TargetStatement, ...] = ()
        for rule in reversed(self.rules):
            for sent in rule.sent:
                if sent.channel == channel.name:
                    own: list[TargetStatement] = []
                    if sent.value is not None and not sent.stage:
                        data: TargetExpression = Name(name=sent.value)
                        if isinstance(sent.tag, Name) and not sending.keeps_values:
                            is_value = Binary(operator="==", left=sent.tag, right=number(0))
                            data = Ternary(condition=is_value, if_true=data, if_false=ast.ZEROS)
                        own.append(ast.put(value, data))
                    if sent.tag is not None:
                        own.append(ast.put(tag, sent.tag))
                    if own:
                        condition = Name(name=rule.taken)
                        body = (If(condition=condition, then=tuple(own), otherwise=body),)
        items: list[ast.Item] = [ast.variable(value, element_type)]
        start: list[TargetStatement] = [ast.put(value, ast.ZEROS)]
        whole: TargetExpression = Name(name=value)
        if sending.bits.value != element_type:
            whole = ast.Resize(bits=sending.bits.value.width, value=whole)
        if sending.bits.tag is not None:
            items.append(ast.variable(tag, ast.INTEGER))
            start.append(ast.put(tag, number(0)))
            kept = ast.Resize(bits=sending.bits.tag.width, value=Name(name=tag))
            whole = ast.Concatenation(parts=(kept, whole))
        items.append(ast.AlwaysComb(body=(*start, *body)))
        if sending.late:
            return [*items, *self._behind(sending, whole)]
        return [*items, ast.ContinuousAssignment(target=Name(name=sending.value), value=whole)]

    def _behind(self, sending: SendingPort, whole: TargetExpression) -> list[ast.Item]:
        """The token in the stage of its latest value: what rules send earlier waits for it."""
        name, late, bits = sending.channel.name, sending.late, sending.bits
        early = self._fresh(f"{name}_early")
        waited = self.values.pipeline.after(early, sending.type, late)
        value: TargetExpression = Name(name=waited)
        if bits.tag is not None:
            value = ast.Slice(base=value, high=bits.value.total - 1, low=0)
        for rule in reversed(self.rules):
            for sent in rule.sent:
                if sent.channel == name and sent.stage and sent.value is not None:
                    value = Ternary(
                        condition=self._sends_value(sending, rule, sent),
                        if_true=self._later(sent.value, sending, late - sent.stage),
                        if_false=value,
                    )
        if bits.tag is not None:
            high, low = sending.type.width - 1, bits.value.total
            tag = ast.Slice(base=Name(name=waited), high=high, low=low)
            value = ast.Concatenation(parts=(tag, value))
        self.values.declarations.append(ast.variable(early, sending.type))
        return [
            ast.ContinuousAssignment(target=Name(name=early), value=whole),
            ast.ContinuousAssignment(target=Name(name=sending.value), value=value),
        ]

    def _later(self, value: str, sending: SendingPort, cycles: int) -> TargetExpression:
        """A value some cycles later, with the bits that tokens have for it."""
        whole, kept = bits_of(sending.channel.stream.element), sending.bits.value
        later = Name(name=self.values.pipeline.after(value, whole, cycles))
        return later if kept == whole else ast.Resize(bits=kept.width, value=later)

    def _sends_value(self, sending: SendingPort, rule: RuleLogic, sent: Sent) -> TargetExpression:
        """Whether the firing whose value is there now was of a rule, and its token has a value."""
        taken = self.values.pipeline.after(rule.taken, ast.BIT, sending.late)
        if not isinstance(sent.tag, Name) or sending.keeps_values:
            return Name(name=taken)
        zero = self._fresh(f"{sent.tag.name}_is_value")
        is_value = Binary(operator="==", left=sent.tag, right=number(0))
        self.values.declarations.append(ast.variable(zero))
        self.values.body.append(ast.put(zero, is_value))
        later = self.values.pipeline.after(zero, ast.BIT, sending.late)
        return ast.both(Name(name=taken), Name(name=later))

    def _memories(self) -> list[ast.Item]:
        """The sorted memories, and what the next rule does with them."""
        items: list[ast.Item] = []
        for memory, module in zip(self.node.memories, self.modules, strict=True):
            names = self.state.points[memory.name]
            adding = [rule for rule in self.rules if memory.name in rule.added]
            dropping = [rule for rule in self.rules if memory.name in rule.dropped]
            items += [
                ast.ContinuousAssignment(target=Name(name=names.add), value=any_of(adding)),
                ast.ContinuousAssignment(target=Name(name=names.drop), value=any_of(dropping)),
            ]
            for at, target in enumerate((*names.keys, names.value)):
                chosen: TargetExpression = ast.ZEROS
                for rule in reversed(adding):
                    added = Name(name=rule.added[memory.name][at])
                    chosen = Ternary(
                        condition=Name(name=rule.taken), if_true=added, if_false=chosen
                    )
                items.append(ast.ContinuousAssignment(target=Name(name=target), value=chosen))
            inside = typed_ports(memory, point_ports(memory))
            pairs = zip(inside, typed_ports(memory, names), strict=True)
            connections = [(text, Name(name=text)) for text in (port.CLOCK, port.RESET)]
            connections += [(a.variable.name, Name(name=b.variable.name)) for a, b in pairs]
            instance = self._fresh(f"{memory.name}_memory")
            items.append(
                ast.Instance(module=module.name, name=instance, connections=tuple(connections))
            )
        return items

    # ----------------------------------------------------------------------------- next state

    def _after(self) -> list[ast.Item]:
        state = self.state
        next_mode, ends = self._fresh("next_mode"), self._fresh("ends")
        after: tuple[TargetStatement, ...] = ()
        targets = dict.fromkeys(rule.rule.next for rule in self.rules)
        for target in reversed(targets):
            rules = [rule for rule in self.rules if rule.rule.next == target]
            move = ast.put(ends, ast.TRUE)
            if target is not None:
                move = ast.put(next_mode, Name(name=state.modes[target]))
            after = (If(condition=any_of(rules), then=(move,), otherwise=after),)
        start = (
            ast.put(next_mode, Name(name=state.mode)),
            ast.put(ends, ast.FALSE),
        )
        return [
            ast.Heading(text="what a firing leaves behind"),
            ast.variable(next_mode, self.mode_type),
            ast.variable(ends),
            ast.AlwaysComb(body=(*start, *after)),
            self._clocked(next_mode, ends),
        ]

    def _kept(self, write: RuleEffect) -> TargetExpression:
        """What is written to a register: the bits that it has of the value."""
        bits = self.state.bits[write.register]
        register = next(r for r in self.node.registers if r.name == write.register)
        value = Name(name=write.value)
        return value if bits == bits_of(register.type) else ast.Resize(bits=bits.width, value=value)

    def _clocked(self, next_mode: str, ends: str) -> ast.Item:
        state = self.state
        fired: list[TargetStatement] = [
            ast.put(state.mode, Name(name=next_mode), clocked=True),
            ast.put(state.finished, Name(name=ends), clocked=True),
        ]
        for rule in self.rules:
            written = tuple(
                ast.put(
                    Name(name=state.files[write.register])
                    if write.at is None
                    else ast.element(state.files[write.register], write.at),
                    self._kept(write),
                    clocked=True,
                )
                for write in rule.written
            )
            if written:
                fired.append(If(condition=Name(name=rule.taken), then=written))
        first = Name(name=state.modes[self.node.modes[0].name])
        resets: list[TargetStatement] = [
            ast.put(state.mode, first, clocked=True),
            ast.put(state.finished, ast.FALSE, clocked=True),
            *self.cooldown.resets(),
        ]
        resets += [
            _started(register, state.files[register.name], state.bits[register.name])
            for register in self.node.registers
        ]
        fires = Name(name=port.FIRES)
        goes = (If(condition=fires, then=tuple(fired)), *self.cooldown.updates(fires))
        return ast.AlwaysFF(
            body=(If(condition=Name(name=port.RESET), then=tuple(resets), otherwise=goes),)
        )


def _started(register: Register, name: str, bits: ast.Bits) -> TargetStatement:
    value = start_of(register)
    if value != ast.ZEROS and bits != bits_of(register.type):
        value = ast.Resize(bits=bits.width, value=value)
    if not register.shape:
        return ast.put(name, value, clocked=True)
    start = ast.put(ast.element(name, Name(name="at")), value, clocked=True)
    return ast.UnrolledFor(variable="at", count=prod(register.shape), body=(start,))
