"""What a firing of a machine leaves behind: tokens, registers, memories and the next mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from t2s.backends.text.expressions import (
    Binary,
    If,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog.data_types import bits_of, start_of
from t2s.backends.verilog.interfaces import TAG_BITS, Interface, SendingPort
from t2s.backends.verilog.machine_rules import RuleLogic, State, any_of
from t2s.backends.verilog.sorted_memory import point_ports, typed_ports
from t2s.backends.verilog.verilog_ast import (
    FALSE,
    INTEGER,
    TRUE,
    ZEROS,
    Bits,
    Clocked,
    Combinational,
    Concatenation,
    ContinuousAssignment,
    HardwareModule,
    Heading,
    Instance,
    Item,
    Resize,
    UnrolledFor,
    element,
    put,
    variable,
)
from t2s.graph.machine import Machine
from t2s.graph.nodes import Register


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Builds the items; ``modules`` are those of the sorted memories."""

    interface: Interface
    node: Machine
    state: State
    rules: Sequence[RuleLogic]
    modules: Sequence[HardwareModule]
    cooldown: str
    mode_type: Bits

    def build(self) -> tuple[Item, ...]:
        """The items."""
        return (*self._memories(), *self._tokens(), *self._after())

    def _fresh(self, wanted: str) -> str:
        return self.interface.identifiers.fresh(wanted)

    # --------------------------------------------------------------------------------- values

    def _tokens(self) -> list[Item]:
        items: list[Item] = [Heading(text="tokens")] if self.interface.sending else []
        for sending in self.interface.sending:
            items += self._token(sending)
        return items

    def _token(self, sending: SendingPort) -> list[Item]:
        """The token that the next rule puts into a channel."""
        channel = sending.channel
        element_type = bits_of(channel.stream.element)
        tagged = channel.stream.nesting > 0
        value = self._fresh(f"{channel.name}_data")
        tag = self._fresh(f"{channel.name}_tag")
        body: tuple[TargetStatement, ...] = ()
        for rule in reversed(self.rules):
            for sent in rule.sent:
                if sent.channel == channel.name:
                    own: list[TargetStatement] = []
                    if sent.value is not None:
                        data: TargetExpression = Name(name=sent.value)
                        if isinstance(sent.tag, Name) and not sending.keeps_values:
                            is_value = Binary(operator="==", left=sent.tag, right=number(0))
                            data = Ternary(condition=is_value, if_true=data, if_false=ZEROS)
                        own.append(put(value, data))
                    if sent.tag is not None:
                        own.append(put(tag, sent.tag))
                    if own:
                        condition = Name(name=rule.taken)
                        body = (If(condition=condition, then=tuple(own), otherwise=body),)
        items: list[Item] = [variable(value, element_type)]
        start: list[TargetStatement] = [put(value, ZEROS)]
        whole: TargetExpression = Name(name=value)
        if tagged:
            items.append(variable(tag, INTEGER))
            start.append(put(tag, number(0)))
            whole = Concatenation(parts=(Resize(bits=TAG_BITS, value=Name(name=tag)), whole))
        return [
            *items,
            Combinational(body=(*start, *body)),
            ContinuousAssignment(target=Name(name=sending.value), value=whole),
        ]

    def _memories(self) -> list[Item]:
        """The sorted memories, and what the next rule does with them."""
        items: list[Item] = []
        for memory, module in zip(self.node.memories, self.modules, strict=True):
            names = self.state.points[memory.name]
            adding = [rule for rule in self.rules if memory.name in rule.added]
            dropping = [rule for rule in self.rules if memory.name in rule.dropped]
            items += [
                ContinuousAssignment(target=Name(name=names.add), value=any_of(adding)),
                ContinuousAssignment(target=Name(name=names.drop), value=any_of(dropping)),
            ]
            for at, target in enumerate((*names.keys, names.value)):
                chosen: TargetExpression = ZEROS
                for rule in reversed(adding):
                    one = Name(name=rule.added[memory.name][at])
                    chosen = Ternary(condition=Name(name=rule.taken), if_true=one, if_false=chosen)
                items.append(ContinuousAssignment(target=Name(name=target), value=chosen))
            inside = typed_ports(memory, point_ports(memory))
            pairs = zip(inside, typed_ports(memory, names), strict=True)
            connections = [(text, Name(name=text)) for text in (port.CLOCK, port.RESET)]
            connections += [(a.variable.name, Name(name=b.variable.name)) for a, b in pairs]
            instance = self._fresh(f"{memory.name}_memory")
            items.append(
                Instance(module=module.name, name=instance, connections=tuple(connections))
            )
        return items

    # ----------------------------------------------------------------------------- next state

    def _after(self) -> list[Item]:
        state = self.state
        next_mode, ends = self._fresh("next_mode"), self._fresh("ends")
        after: tuple[TargetStatement, ...] = ()
        targets = dict.fromkeys(rule.rule.next for rule in self.rules)
        for target in reversed(targets):
            rules = [rule for rule in self.rules if rule.rule.next == target]
            move = put(ends, TRUE)
            if target is not None:
                move = put(next_mode, Name(name=state.modes[target]))
            after = (If(condition=any_of(rules), then=(move,), otherwise=after),)
        start = (
            put(next_mode, Name(name=state.mode)),
            put(ends, FALSE),
        )
        return [
            Heading(text="what a firing leaves behind"),
            variable(next_mode, self.mode_type),
            variable(ends),
            Combinational(body=(*start, *after)),
            self._clocked(next_mode, ends),
        ]

    def _clocked(self, next_mode: str, ends: str) -> Item:
        state, cooldown = self.state, Name(name=self.cooldown)
        one = number(1)
        rest = Binary(operator="-", left=Name(name=port.INTERVAL), right=one)
        less = Binary(operator="-", left=cooldown, right=one)
        fired: list[TargetStatement] = [
            put(state.mode, Name(name=next_mode), clocked=True),
            put(state.finished, Name(name=ends), clocked=True),
            put(cooldown, rest, clocked=True),
        ]
        for rule in self.rules:
            written = tuple(
                put(
                    Name(name=state.files[write.register])
                    if write.at is None
                    else element(state.files[write.register], write.at),
                    Name(name=write.value),
                    clocked=True,
                )
                for write in rule.written
            )
            if written:
                fired.append(If(condition=Name(name=rule.taken), then=written))
        waits = If(
            condition=Binary(operator="!=", left=cooldown, right=number(0)),
            then=(put(cooldown, less, clocked=True),),
        )
        first = Name(name=state.modes[self.node.modes[0].name])
        resets: list[TargetStatement] = [
            put(state.mode, first, clocked=True),
            put(state.finished, FALSE, clocked=True),
            put(cooldown, number(0), clocked=True),
        ]
        resets += [
            _started(register, state.files[register.name]) for register in self.node.registers
        ]
        goes = If(condition=Name(name=port.FIRES), then=tuple(fired), otherwise=(waits,))
        return Clocked(
            body=(If(condition=Name(name=port.RESET), then=tuple(resets), otherwise=(goes,)),)
        )


def _started(register: Register, name: str) -> TargetStatement:
    if not register.shape:
        return put(name, start_of(register), clocked=True)
    start = put(element(name, Name(name="at")), start_of(register), clocked=True)
    return UnrolledFor(variable="at", count=prod(register.shape), body=(start,))
