"""Generated code that computes the times of nodes from the codes of their firings.

Every node runs ahead as far as its channels allow.  An element of a channel is a ring of one 64-bit
word per slot: a positive word is a token and the cycle at which it is ready, a negative one a free
slot, negated the first cycle at which it may be filled.  A ring has a power of two of slots and may
be longer than the capacity c: send m has space from when token m - c has left.  A firing asks for
tokens and for space in a fixed order of *steps*, and fires at the latest of these cycles and of the
end of its interval.

The code does not branch on the code of a firing: each code has a row of masks, all ones where a
step is needed or a token moves, else zero.  So unpredictable sequences of codes cost nothing extra.
Functions are made per *shape* of a node (``Shape``), which many nodes of a graph share.

Stalls.  With s the end of the interval and p(k) the latest cycle of steps 1 to k, step k causes
max(s, p(k)) - max(s, p(k-1)) cycles.  The code adds up max(s, p(k)) over all firings except the
first, for each k; the differences of these sums are the stalls (the sum of s itself follows from
the last one).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.gc_pause import gc_paused
from t2s.llvm.expressions import offset_by
from t2s.llvm.ir import (
    I64,
    POINTER,
    BasicBlock,
    Builder,
    LLVMFunction,
    Module,
    Slot,
    Value,
    integer,
    integer_type,
)
from t2s.simulator.program.flatten import ACCESS, RECEIVES_END, USES_BEGIN, USES_END, Control
from t2s.simulator.program.trace import STORES

NEXT, CODE, CODE_END, MASKS, INTERVAL, FIRST, LAST_STORE, BLOCK, SEEN, FUNCTION, LIMIT = range(11)
"""Words at the front of the record of a node: the earliest cycle of its next firing, address of the
next code and of the end of the codes, address of the rows of masks, II, cycle of the first firing
(0 if there was none) and of the last one that stores, address and content of the word that blocks
the node, address of the node's function, last cycle to simulate."""

HEADER = 12
COUNT, WRAP = range(2)
"""Words of a group of ports whose tokens always move together: 8 times the tokens moved so far, and
the length of their rings in bytes minus 8."""

GROUP_WORDS = 2
BASE, DELAY, CAPACITY = range(3)
"""Words of a port: address of its ring; the latency of a sending port, for a receiving one 0, or
``ELASTIC`` if the channel has space for all its tokens, so that its slots are free from the first
cycle on; and the capacity in bytes of a sending port."""

PORT_WORDS = 3
ELASTIC = -1

ALWAYS, NEVER = -1, -2
"""Pseudo columns of masks."""

ENTRY = "advance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The properties of a node that its code depends on.

    Attributes
    ----------
    receives: for each port, whether it receives (else it sends).
    groups: for each port, the number of its group.
    moves: for each group, the mask column of its moves, ``ALWAYS`` or ``NEVER``.
    steps: (port, mask column of its waits, or ``ALWAYS``), in order.
    stores: the mask column of stores to memory, ``ALWAYS`` or ``NEVER``.
    columns: number of columns of masks.
    code_bytes: bytes of a code.
    """

    receives: tuple[bool, ...]
    groups: tuple[int, ...]
    moves: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]
    stores: int
    columns: int
    code_bytes: int

    def group(self, number: int) -> int:
        """The first word of a group in the record."""
        return HEADER + GROUP_WORDS * number

    def port(self, number: int) -> int:
        """The first word of a port in the record."""
        return HEADER + GROUP_WORDS * len(self.moves) + PORT_WORDS * number

    @property
    def sums(self) -> int:
        """The word of the record where the sums begin, one for each step."""
        return self.port(len(self.receives))

    @property
    def words(self) -> int:
        """Words of the record."""
        return self.sums + len(self.steps)


@gc_paused()
def emit_shapes(shapes: tuple[Shape, ...]) -> str:
    """A module with a function ``shape0``, ``shape1``, ... for each, and ``advance``.

    ``shapeN(record, most)`` fires a node up to ``most`` times and returns how often it fired.
    ``advance(records, count, budget, most)`` visits nodes in turn, given the addresses of their
    records, until nobody can fire or ``budget`` firings are made; it returns the number of firings.
    """
    module = Module()
    for number, shape in enumerate(shapes):
        _ShapeEmitter(module, shape, f"shape{number}").emit()
    _emit_advance(module)
    return str(module)


class _ShapeEmitter:
    """Emits the function of a shape; what changes lives in stack slots."""

    def __init__(self, module: Module, shape: Shape, name: str) -> None:
        self._shape = shape
        function = module.function(name, I64, [POINTER, I64], attributes="nounwind", noalias=True)
        self._function: LLVMFunction = function
        self._record, self._most = function.args
        self._builder = Builder(function)
        builder = self._builder
        self._counts = [builder.alloca(I64) for group in range(self._groups)]
        self._sums = [builder.alloca(I64) for _ in shape.steps]
        self._next = builder.alloca(I64)
        self._code = builder.alloca(I64)
        self._store = builder.alloca(I64)
        self._code_type = integer_type(8 * shape.code_bytes)
        ports = range(len(shape.receives))
        self._bases = [self._pointer(shape.port(port) + BASE) for port in ports]
        self._delays = [self._word(shape.port(port) + DELAY) for port in ports]
        self._capacities = [self._word(shape.port(port) + CAPACITY) for port in ports]
        self._wraps = [self._word(shape.group(group) + WRAP) for group in range(self._groups)]

    @property
    def _groups(self) -> int:
        return len(self._shape.moves)

    def emit(self) -> None:
        """The whole function."""
        shape, builder, function = self._shape, self._builder, self._function
        for word, slot in self._kept():
            builder.store(self._word(word), slot)
        for number, slot in enumerate(self._sums):
            builder.store(self._word(shape.sums + number), slot)
        masks, interval, limit = (self._word(word) for word in (MASKS, INTERVAL, LIMIT))
        first, start, end = (self._word(word) for word in (FIRST, CODE, CODE_END))
        fresh = builder.icmp_signed("==", first, integer(0))
        most = builder.select(fresh, integer(1), self._most)
        left = builder.sub(end, start)
        most = builder.mul(most, integer(shape.code_bytes))
        until = builder.add(start, builder.select(builder.icmp_signed("<", left, most), left, most))
        loop, fire, leave, blocked, late, move = (
            function.block(name) for name in ("loop", "fire", "leave", "blocked", "late", "move")
        )
        builder.branch(loop)

        builder.position_at_end(loop)
        going = builder.icmp_signed("<", self._load(self._code), until)
        builder.cbranch(going, fire, leave)
        builder.position_at_end(fire)
        row = self._row(masks)
        asked, latest, unready = self._asked(row)
        builder.cbranch(builder.icmp_signed("<", unready, integer(0)), blocked, move)
        builder.position_at_end(move)
        earliest = self._load(self._next)
        now = self._larger(earliest, latest[-1]) if latest else earliest
        fires = function.block("fires")
        builder.cbranch(builder.icmp_signed(">", now, limit), late, fires)
        builder.position_at_end(fires)
        self._add_up(earliest, latest, now)
        self._move(row, now)
        self._note_store(row, now)
        builder.store(builder.add(now, interval), self._next)
        builder.store(builder.add(self._load(self._code), integer(shape.code_bytes)), self._code)
        builder.branch(loop)

        self._emit_exits(loop=leave, blocked=blocked, late=late, asked=asked)
        self._emit_save(fresh, start, interval)

    def _emit_exits(
        self,
        *,
        loop: BasicBlock,
        blocked: BasicBlock,
        late: BasicBlock,
        asked: list[tuple[Value, Value, Value]],
    ) -> None:
        """Record what blocks the node: nothing, a slot, or something that never arrives."""
        builder = self._builder
        save = self._function.block("save")
        self._save = save
        builder.position_at_end(blocked)
        where, held = integer(0), integer(0)
        for position, value, wanted in reversed(asked):
            stuck = builder.icmp_signed("<", wanted, integer(0))
            where = builder.select(stuck, builder.ptrtoint(position, I64), where)
            held = builder.select(stuck, value, held)
        builder.store(where, self._address(BLOCK))
        builder.store(held, self._address(SEEN))
        builder.branch(save)
        builder.position_at_end(late)
        builder.store(builder.ptrtoint(self._address(SEEN), I64), self._address(BLOCK))
        builder.branch(save)
        builder.position_at_end(loop)
        done = builder.icmp_signed("==", self._load(self._code), self._word(CODE_END))
        code = builder.ptrtoint(self._address(CODE), I64)
        never = builder.ptrtoint(self._address(SEEN), I64)
        builder.store(builder.select(done, never, code), self._address(BLOCK))
        builder.store(integer(0), self._address(SEEN))
        builder.branch(save)

    def _emit_save(self, fresh: Value, start: Value, interval: Value) -> None:
        """Write the record back.  The sums leave out the first firing."""
        builder, shape = self._builder, self._shape
        builder.position_at_end(self._save)
        fired = builder.udiv(builder.sub(self._load(self._code), start), integer(shape.code_bytes))
        beginning = builder.and_(fresh, builder.icmp_signed(">", fired, integer(0)))
        for number, slot in enumerate(self._sums):
            total = builder.select(beginning, integer(0), self._load(slot))
            builder.store(total, self._address(shape.sums + number))
        for word, variable in self._kept():
            builder.store(self._load(variable), self._address(word))
        now = builder.sub(self._load(self._next), interval)
        first = builder.select(beginning, now, self._word(FIRST))
        builder.store(first, self._address(FIRST))
        builder.ret(fired)

    def _kept(self) -> list[tuple[int, Slot]]:
        """The mutable words of the record, and the stack slots that hold them during a visit."""
        slots = [(NEXT, self._next), (CODE, self._code)]
        for group, slot in enumerate(self._counts):
            slots.append((self._shape.group(group) + COUNT, slot))
        return slots if self._shape.stores == NEVER else [*slots, (LAST_STORE, self._store)]

    def _row(self, masks: Value) -> Value:
        """The address of the masks of the next code, if there are any."""
        builder = self._builder
        if self._shape.columns == 0:
            return integer(0)
        pointer = builder.inttoptr(self._load(self._code), POINTER)
        code = builder.zext(builder.load(pointer, self._code_type, align=1), I64)
        return builder.add(masks, builder.mul(code, integer(8 * self._shape.columns)))

    def _mask(self, row: Value, column: int) -> Value:
        pointer = self._builder.inttoptr(self._builder.add(row, integer(8 * column)), POINTER)
        return self._builder.load(pointer, I64)

    def _asked(self, row: Value) -> tuple[list[tuple[Value, Value, Value]], list[Value], Value]:
        """For each step: its slot, the word there, and the cycle it allows (negative if unknown).

        Also the latest cycles up to each step, and a number that is negative if any is unknown.
        """
        builder = self._builder
        asked: list[tuple[Value, Value, Value]] = []
        latest: list[Value] = []
        unready = integer(0)
        for port, column in self._shape.steps:
            position = self._asked_slot(port)
            value = builder.load(position, I64)
            wanted = value if self._shape.receives[port] else builder.neg(value)
            if column != ALWAYS:
                wanted = builder.and_(wanted, self._mask(row, column))
            asked.append((position, value, wanted))
            latest.append(self._larger(latest[-1], wanted) if latest else wanted)
            unready = builder.or_(unready, wanted)
        return asked, latest, unready

    def _asked_slot(self, port: int) -> Value:
        """The slot of a receiver's next token, or of the token whose departure makes space."""
        builder, group = self._builder, self._shape.groups[port]
        at = self._load(self._counts[group])
        if not self._shape.receives[port]:
            at = builder.sub(at, self._capacities[port])
        return offset_by(builder, self._bases[port], builder.and_(at, self._wraps[group]))

    def _add_up(self, earliest: Value, latest: list[Value], now: Value) -> None:
        builder = self._builder
        times = [self._larger(earliest, time) for time in latest[:-1]]
        for slot, time in zip(self._sums, [*times, now], strict=False):
            builder.store(builder.add(self._load(slot), time), slot)

    def _move(self, row: Value, now: Value) -> None:
        """Take and put tokens; the extra slot of a ring is written when no token moves."""
        builder, shape = self._builder, self._shape
        for group, column in enumerate(shape.moves):
            if column == NEVER:
                continue
            count, wrap = self._load(self._counts[group]), self._wraps[group]
            at, step = builder.and_(count, wrap), integer(8)
            if column != ALWAYS:
                mask = self._mask(row, column)
                moves = builder.icmp_signed("!=", mask, integer(0))
                at = self._select(moves, at, builder.add(wrap, integer(8)))
                step = builder.and_(mask, step)
            for port, receives in enumerate(shape.receives):
                if shape.groups[port] != group:
                    continue
                delay = self._delays[port]
                if receives:
                    entry = builder.or_(builder.not_(now), delay)
                else:
                    entry = builder.add(now, delay)
                builder.store(entry, offset_by(builder, self._bases[port], at))
            builder.store(builder.add(count, step), self._counts[group])

    def _note_store(self, row: Value, now: Value) -> None:
        builder, column = self._builder, self._shape.stores
        if column == NEVER:
            return
        if column != ALWAYS:
            now = self._larger(builder.and_(now, self._mask(row, column)), self._load(self._store))
        builder.store(now, self._store)

    def _larger(self, left: Value, right: Value) -> Value:
        return self._select(self._builder.icmp_signed(">", left, right), left, right)

    def _select(self, condition: Value, if_true: Value, if_false: Value) -> Value:
        """A selection that must not become a branch."""
        return self._builder.select(condition, if_true, if_false, unpredictable=True)

    def _address(self, word: int) -> Value:
        return offset_by(self._builder, self._record, 8 * word)

    def _word(self, word: int) -> Value:
        return self._builder.load(self._address(word), I64)

    def _pointer(self, word: int) -> Value:
        return self._builder.load(self._address(word), POINTER)

    def _load(self, slot: Value) -> Value:
        return self._builder.load(slot, I64)


def _emit_advance(module: Module) -> None:
    """The loop over the nodes."""
    function = module.function(ENTRY, I64, [POINTER, I64, I64, I64])
    records, count, budget, most = function.args
    builder = Builder(function)
    names = ("sweep", "look", "visit", "step", "swept", "leave")
    sweep, look, visit, step, swept, leave = (function.block(name) for name in names)
    total, before, at = (builder.alloca(I64) for _ in range(3))
    builder.store(integer(0), total)
    builder.branch(sweep)

    builder.position_at_end(sweep)
    builder.store(builder.load(total, I64), before)
    builder.store(integer(0), at)
    empty = builder.icmp_signed("==", count, integer(0))
    builder.cbranch(empty, leave, look)

    builder.position_at_end(look)
    where = builder.mul(builder.load(at, I64), integer(8))
    record = builder.load(offset_by(builder, records, where), POINTER)
    block = builder.load(offset_by(builder, record, 8 * BLOCK), POINTER)
    seen = builder.load(offset_by(builder, record, 8 * SEEN), I64)
    same = builder.icmp_signed("==", builder.load(block, I64), seen)
    builder.cbranch(same, step, visit)

    builder.position_at_end(visit)
    address = builder.load(offset_by(builder, record, 8 * FUNCTION), I64)
    fired = builder.call_at(builder.inttoptr(address, POINTER), I64, [record, most])
    builder.store(builder.add(builder.load(total, I64), fired), total)
    builder.branch(step)

    builder.position_at_end(step)
    following = builder.add(builder.load(at, I64), integer(1))
    builder.store(following, at)
    builder.cbranch(builder.icmp_signed("<", following, count), look, swept)

    builder.position_at_end(swept)
    after = builder.load(total, I64)
    moved = builder.icmp_signed(">", after, builder.load(before, I64))
    funded = builder.icmp_signed("<", after, budget)
    builder.cbranch(builder.and_(moved, funded), sweep, leave)
    builder.position_at_end(leave)
    builder.ret(builder.load(total, I64))


# From the control of a program to the shapes and masks of the run-ahead timing code.


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """The layout of a node (a PE or a machine) for the run-ahead code.

    ``ports`` are the channel elements of its ports, and ``masks`` has a row for each code.
    """

    shape: Shape
    ports: tuple[int, ...]
    masks: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPorts:
    """A row: the channel elements needed (in order), taken and sent to (in order)."""

    needs: list[int]
    takes: list[int]
    puts: list[int]
    stores: bool


class Rows:
    """The rows of a control, compared by identity because many controls share them."""

    def __init__(self, control: Control) -> None:
        self.rows, self.uses = control.rows, control.uses
        self.row_start, self.taken = control.row_start, control.taken
        self._key = tuple(map(id, (self.rows, self.uses, self.row_start, self.taken)))

    def count(self, instance: int) -> int:
        """Number of rows of a node."""
        following = instance + 1 < len(self.row_start)
        end = self.row_start[instance + 1] if following else len(self.rows)
        return int(end - self.row_start[instance])

    def ports(self, instance: int) -> list[RowPorts]:
        """The channel usage of a node's rows."""
        first = int(self.row_start[instance])
        ports: list[RowPorts] = []
        for row in self.rows[first : first + self.count(instance)]:
            begin, middle, end = (int(row[n]) for n in (USES_BEGIN, RECEIVES_END, USES_END))
            needs = self.uses[begin:middle].tolist()
            taken = self.taken[begin:middle].tolist()
            ports.append(
                RowPorts(
                    needs=needs,
                    takes=[use for use, takes in zip(needs, taken, strict=True) if takes],
                    puts=self.uses[middle:end].tolist(),
                    stores=bool(int(row[ACCESS]) & STORES),
                )
            )
        return ports

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._key == other._key


def twins(rows: Rows, instances: int) -> tuple[tuple[int, ...], ...]:
    """Channel elements whose tokens always move together, if capacity and latency are the same.

    All elements of a group connect the same two nodes, in the same rows and in the same relative
    order.  A coordinate and its reference are such a pair.
    """
    sends: dict[int, list[tuple[int, int]]] = {}
    needs: dict[int, list[tuple[int, int, bool]]] = {}
    for instance in range(instances):
        for number, row in enumerate(rows.ports(instance)):
            for element in row.puts:
                sends.setdefault(element, []).append((instance, number))
            for element in row.needs:
                taken = element in row.takes
                needs.setdefault(element, []).append((instance, number, taken))
    groups: dict[tuple[object, ...], list[int]] = {}
    for element, sent in sends.items():
        key = (*sent, *needs.get(element, []))
        groups.setdefault(key, []).append(element)
    alike = [group for group in groups.values() if len(group) > 1]
    wanted = {element for group in alike for element in group}
    orders: dict[int, list[list[int]]] = {element: [] for element in wanted}
    for instance in range(instances):
        for row in rows.ports(instance):
            for order in (row.needs, row.puts):
                for element in wanted.intersection(order):
                    orders[element].append(order)
    return tuple(
        tuple(group)
        for group in alike
        if all(_keeps_order(order, group) for element in group for order in orders[element])
    )


def _keeps_order(order: Sequence[int], group: Sequence[int]) -> bool:
    return [element for element in order if element in group] == list(group)


def layout_of(
    rows: Rows, instance: int, code_bytes: int, dropped: Collection[int] = ()
) -> RowLayout:
    """The layout of a node, without the channel elements that are ``dropped``."""
    table = rows.ports(instance)

    def kept(elements: list[int]) -> list[int]:
        return [element for element in elements if element not in dropped]

    receives, sends = [kept(row.needs) for row in table], [kept(row.puts) for row in table]
    takes = [kept(row.takes) for row in table]
    inputs, outputs = common_order(receives), common_order(sends)
    in_ports, out_ports = list(dict.fromkeys(inputs)), list(dict.fromkeys(outputs))
    columns = _Columns(len(table))
    steps: list[tuple[int, int]] = []
    for order, uses, ports, first_port in (
        (inputs, receives, in_ports, 0),
        (outputs, sends, out_ports, len(in_ports)),
    ):
        along = [used_positions(order, row) for row in uses]
        for position, element in enumerate(order):
            port = first_port + ports.index(element)
            steps.append((port, columns.of(position in used for used in along)))
    moving = [columns.of(element in row for row in takes) for element in in_ports]
    moving += [columns.of(element in row for row in sends) for element in out_ports]
    moves = list(dict.fromkeys(moving))
    shape = Shape(
        receives=(True,) * len(in_ports) + (False,) * len(out_ports),
        groups=tuple(moves.index(column) for column in moving),
        moves=tuple(moves),
        steps=tuple(steps),
        stores=columns.of(row.stores for row in table),
        columns=len(columns.masks),
        code_bytes=code_bytes,
    )
    masks = np.zeros((max(1, len(table)), max(1, shape.columns)), np.int64)
    for column, mask in enumerate(columns.masks):
        masks[:, column] = np.where(mask, -1, 0)
    return RowLayout(shape=shape, ports=(*in_ports, *out_ports), masks=masks)


class _Columns:
    """Numbers columns of masks; equal columns are one."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.masks: list[tuple[bool, ...]] = []

    def of(self, holds: Iterable[bool]) -> int:
        """The column of a mask, added if new."""
        mask = tuple(holds)
        if all(mask) and mask:
            return ALWAYS
        if not any(mask):
            return NEVER
        if mask not in self.masks:
            self.masks.append(mask)
        return self.masks.index(mask)


def common_order(rows: Sequence[Sequence[int]]) -> list[int]:
    """A sequence that has every row as a subsequence: elements repeat where rows disagree."""
    order: list[int] = []
    for row in dict.fromkeys(map(tuple, rows)):
        order = _merged(order, list(row))
    return order


def _merged(left: list[int], right: list[int]) -> list[int]:
    """The shortest sequence that has both as subsequences."""
    common = np.zeros((len(left) + 1, len(right) + 1), np.int64)
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            same = left[i] == right[j]
            common[i, j] = (
                common[i + 1, j + 1] + 1 if same else max(common[i + 1, j], common[i, j + 1])
            )
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            merged.append(left[i])
            i, j = i + 1, j + 1
        elif common[i + 1, j] >= common[i, j + 1]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def used_positions(order: Sequence[int], row: Sequence[int]) -> set[int]:
    """The positions in ``order`` at which a row goes along it."""
    positions: set[int] = set()
    at = -1
    for element in row:
        at = order.index(element, at + 1)
        positions.add(at)
    return positions
