"""The body of a kernel that computes a system of recurrences.

One firing receives what other iterations sent, computes every member in order, and sends what
other iterations need.  A value that stays in its PE for a fixed number of firings waits in a
register file, addressed by the loops inside of the one that advances (rotating registers); every
other value goes through a channel, from PE to PE or back to the same PE.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Const,
    Expr,
    Index,
    Local,
    Read,
    ReduceLanes,
    Select,
    apply,
)
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term, rewrite
from t2s.graph.body import RegisterRead, RegisterWrite, Send
from t2s.graph.graph import Channel, StreamType
from t2s.graph.nodes import Register
from t2s.spatial.analysis.capacity import DEFAULT_CAPACITY, SKEW
from t2s.spatial.analysis.recurrences import (
    ReadTransfers,
    RecurrenceTransfer,
    check_causal,
    firings_between,
    inner_address,
    member_reads,
    most_firings_between,
    position,
    transfers_of,
)
from t2s.spatial.ir import LoopExecution, Member, Recurrences, SpatialKernel, SpatialLoop, shifted
from t2s.spatial.lowering.body_builder import (
    BodyBuilder,
    broadcast,
    lanes_of,
    placed,
    receive_from,
    widen,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A value that stays in its PE, with the register file it waits in."""

    register: str
    address: tuple[Expr, ...]
    transfer: RecurrenceTransfer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """A value that goes through a channel."""

    channel: str
    transfer: RecurrenceTransfer


class SystemBody:
    """Builds the statements of a system's kernel into a ``Builder``."""

    def __init__(self, builder: BodyBuilder, system: Recurrences) -> None:
        self._builder = builder
        self._system = system
        self._kernel = builder.kernel
        self._values: dict[str, Local] = {}
        self._arriving: dict[
            tuple[str, tuple[Expr, ...]], list[tuple[RecurrenceTransfer, Expr | None]]
        ] = {}
        self._kept: list[_Kept] = []
        self._passed: list[_Passed] = []
        self._skewed = False

    def build(self) -> None:
        """Append all statements."""
        reads = [(read, transfers_of(self._kernel, read)) for read in member_reads(self._kernel)]
        everything = [transfer for _, split in reads for transfer in split.transfers]
        for read, split in reads:
            for transfer in split.transfers:
                check_causal(self._kernel, read, transfer, everything)
        self._skewed = _streams(self._kernel, [split for _, split in reads]) > 1
        for read, split in reads:
            key = read.read.source, read.read.indices
            self._arriving[key] = [(t, self._arrival(t)) for t in split.transfers]
        for member in self._system.members:
            self._values[member.name] = self._builder.let(member.name, self._value(member))
        self._depart()
        self._send_results()

    # ------------------------------------------------------------------------------- arriving

    def _arrival(self, transfer: RecurrenceTransfer) -> Expr | None:
        """The value that a transfer brings; ``None`` if it is computed in this iteration."""
        if transfer.immediate and transfer.stays:
            return None
        firings = firings_between(transfer) if transfer.stays else None
        address = None if firings is None else inner_address(transfer, firings)
        if address is None:
            return self._received(transfer)
        return self._read_back(transfer, address, firings or 1)

    def _read_back(
        self, transfer: RecurrenceTransfer, address: tuple[SpatialLoop, ...], firings: int
    ) -> Expr:
        builder, type = self._builder, self._type(transfer)
        register = builder.locals.fresh(f"{transfer.source}_before")
        builder.registers.append(
            Register(
                name=register,
                type=type,
                shape=tuple(loop.fixed[1] for loop in address),
                distance=firings,
                location=self._location(transfer),
            )
        )
        indices = tuple(position(loop) for loop in address)
        target = builder.locals.fresh(f"{transfer.source}_kept")
        builder.statements.append(
            RegisterRead(target=target, register=register, indices=indices, type=type)
        )
        self._kept.append(_Kept(register=register, address=indices, transfer=transfer))
        return Local(name=target, type=type)

    def _received(self, transfer: RecurrenceTransfer) -> Expr:
        builder, type = self._builder, self._type(transfer)
        steps = {loop.name: step for loop, step in transfer.hop}
        used = self._used(transfer)
        receiver = tuple(_place(loop, low, 0) for loop, low, _ in used)
        sender = tuple(_place(loop, low, steps[loop.name]) for loop, low, _ in used)
        moves = [loop.name for loop, step in transfer.hop if step]
        latency = self._latency(transfer)
        channel = Channel(
            name=builder.channel_names.fresh("_".join([transfer.source, "along", *moves]))
            if moves
            else builder.channel_names.fresh(f"{transfer.source}_back"),
            stream=StreamType(element=type),
            source=self._kernel.name,
            sink=self._kernel.name,
            shape=tuple(extent for _, _, extent in used),
            source_index=sender,
            sink_index=receiver,
            capacity=self._capacity(transfer, latency),
            latency=latency,
            location=self._location(transfer),
        )
        builder.channels.append(channel)
        self._passed.append(_Passed(channel=channel.name, transfer=transfer))
        wanted = f"{transfer.source}_passed" if moves else f"{transfer.source}_kept"
        return receive_from(builder, wanted, channel.name, type, transfer.receive)

    def _used(self, transfer: RecurrenceTransfer) -> list[tuple[SpatialLoop, int, int]]:
        """The space loops along which there is more than one channel; first PE, and how many."""
        space = self._kernel.kind(LoopExecution.UNROLLED)
        domain = self._kernel.domain_of_iterations
        if transfer.receive is not None:
            domain = domain.restricted(transfer.receive)
        used = []
        for loop in space:
            reached = domain.range_of(Index(name=loop.name))
            low, high = reached or (loop.fixed[0], sum(loop.fixed) - 1)
            if high > low:
                used.append((loop, low, high - low + 1))
        return used

    def _latency(self, transfer: RecurrenceTransfer) -> int:
        """The latency of a hop by the schedule; 1 without a schedule."""
        steps = [(loop, step) for loop, step in transfer.delay if step]
        if not transfer.stays and len(steps) == 1 and steps[0][0].name == self._system.timed:
            return max(1, steps[0][1])
        return 1

    def _capacity(self, transfer: RecurrenceTransfer, latency: int) -> int:
        """Room for values in flight, and for those that wait for others with a longer latency."""
        waiting = most_firings_between(self._kernel, transfer)
        hops = sum(abs(step) for _, step in transfer.hop) if transfer.immediate else 0
        skew = max(hops - 1, 1 if self._skewed and not transfer.stays else 0)
        return max(waiting, latency - 1) + DEFAULT_CAPACITY + SKEW * skew

    def _type(self, transfer: RecurrenceTransfer) -> Type:
        member = self._member(transfer.source)
        return member.type.with_lanes(lanes_of(self._kernel) if self._wide(member) else 1)

    def _wide(self, member: Member) -> bool:
        return member.lanes and self._kernel.vector_loop is not None

    def _member(self, name: str) -> Member:
        member = self._kernel.member(name)
        if member is None:
            raise InternalError(f"{name} is not a member of {self._kernel.name}")
        return member

    def _location(self, transfer: RecurrenceTransfer) -> SourceLocation:
        return self._member(transfer.source).location

    # ------------------------------------------------------------------------------ computing

    def _value(self, member: Member) -> Expr:
        lanes = lanes_of(self._kernel)
        value = self._placed(member.value)
        if member.combine is None:
            return broadcast(value, lanes if self._wide(member) else 1)
        wide = broadcast(value, lanes)
        reduced = ReduceLanes(operator=member.combine, value=wide, type=wide.type.scalar)
        if member.initial is None or _is_neutral(member.combine, member.initial):
            return reduced
        return apply(member.combine, self._placed(member.initial), reduced)

    def _placed(self, expr: Expr) -> Expr:
        """A member's value over the loops, with operands and arrived values in place of reads."""

        values: dict[str, Expr] = dict(self._builder.operands)

        def hide(node: Term) -> Term | None:
            if not isinstance(node, Read):
                return None
            name = f"<{len(values)}>"  # not an identifier, so it cannot be the name of an operand
            values[name] = self._source_value(node)
            return Local(name=name, type=node.type)

        def show(node: Term) -> Term | None:
            return values.get(node.name) if isinstance(node, Local) else None

        return widen(rewrite(self._builder.place(rewrite(expr, hide)), show))

    def _source_value(self, read: Read) -> Expr:
        choices = self._arriving[read.source, read.indices]
        value: Expr | None = None
        for transfer, arrived in reversed(choices):
            source_value: Expr = self._values[read.source] if arrived is None else arrived
            if value is None:
                value = source_value
                continue
            chosen = transfer.receive
            if chosen is None:
                raise InternalError(f"{read.source} arrives twice in one iteration")
            value = Select(
                condition=chosen, if_true=source_value, if_false=value, type=source_value.type
            )
        if value is None:
            member = self._member(read.source)
            lanes = lanes_of(self._kernel) if self._wide(member) else 1
            return broadcast(Const(value=0, type=member.type), lanes)
        return value

    # ------------------------------------------------------------------------------- departing

    def _depart(self) -> None:
        for resident in self._kept:
            self._builder.statements.append(
                RegisterWrite(
                    register=resident.register,
                    indices=resident.address,
                    value=self._values[resident.transfer.source],
                )
            )
        for passed in self._passed:
            self._builder.statements.append(
                Send(
                    channel=passed.channel,
                    value=self._values[passed.transfer.source],
                    condition=passed.transfer.send,
                )
            )

    def _send_results(self) -> None:
        builder = self._builder
        for channel in builder.links.outgoing:
            result = self._kernel.result(builder.links.results[channel])
            if result is None:
                raise InternalError(f"{channel} carries no result of {self._kernel.name}")
            value = self._values[result.member]
            where = placed(builder, result.condition)
            builder.statements.append(Send(channel=channel, value=value, condition=where))


def _streams(kernel: SpatialKernel, reads: Iterable[ReadTransfers]) -> int:
    """The number of different values that go from PE to PE."""
    moving = {t.source for split in reads for t in split.transfers if not t.stays}
    return len(moving) + sum(
        len(operand.hops) + len(operand.neighbors) for operand in kernel.operands
    )


def _place(loop: SpatialLoop, low: int, step: int) -> Expr:
    """The position along a loop, counted from PE ``low``, of the PE that is ``step`` further."""
    return shifted(Index(name=loop.name), step - low)


def _is_neutral(operator: Op, initial: Expr) -> bool:
    """Whether this initial value of a reduction over lanes is the neutral element."""
    match operator, initial:
        case (Op.ADD, Const(value=0)) | (Op.MULTIPLY, Const(value=1)):
            return True
    return False
