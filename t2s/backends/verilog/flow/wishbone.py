"""A design with memories that a host fills and reads over a Wishbone bus.

Each load unit has a copy of the tensor that it reads, and each store unit memory of its own for
what it stores, so all units are always granted; the host sees each tensor once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from t2s.backends.base import DeviceTimes, Unsupported
from t2s.backends.text.expressions import (
    Binary,
    Name,
    TargetExpression,
    TargetStatement,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import identifier, width_of
from t2s.backends.verilog.flow.surroundings import LIBRARY as COUNTING
from t2s.backends.verilog.flow.surroundings import P, Surroundings, lane_of, of_place, row_of
from t2s.backends.verilog.interfaces import LoadPort, StorePort
from t2s.backends.verilog.top import Top
from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Tensor
from t2s.graph.ports import is_aligned, storing

LIBRARY = ("banks.sv", "wishbone.sv", *COUNTING)
WORD_BITS = 32
_BUS = ("wb_cyc", "wb_stb", "wb_we", "wb_adr", "wb_sel", "wb_dat_w", "wb_dat_r", "wb_ack", "wb_err")


@dataclass(frozen=True, kw_only=True)
class WishboneSlave:
    """The files of a slave, its module, and the first word of each tensor by its name."""

    module: str
    files: Mapping[str, str]
    first: Mapping[str, int]


def not_on_a_bus(graph: Graph) -> list[Unsupported]:
    """The tensors whose elements are not words of the bus."""
    problems = []
    for node in graph.pe_arrays:
        for statement in node.body:
            if isinstance(statement, Load | Store):
                tensor = graph.tensor(statement.tensor)
                why = _why_not(statement, tensor)
                if why is not None:
                    problems.append(
                        Unsupported(
                            subject=f"tensor {tensor.name!r}", why=why, location=tensor.location
                        )
                    )
    return problems


def _why_not(statement: Load | Store, tensor: Tensor) -> str | None:
    if tensor.type.bits > WORD_BITS:
        return f"elements of {tensor.type} are wider than a word of the bus, 32 bits"
    return unaligned(statement, tensor)


def unaligned(statement: Load | Store, tensor: Tensor) -> str | None:
    """Why a host cannot hold vectors that cross the rows of its memory; ``None`` for others."""
    type = statement.type if isinstance(statement, Load) else statement.value.type
    lanes = type.lanes
    if lanes & (lanes - 1) or (
        lanes > 1 and not is_aligned(statement.indices, tensor.allocated, lanes)
    ):
        return (
            f"vectors of {lanes} that do not lie at multiples of a power of two have no memory "
            "behind a bus; one with lanes does, memory='bram' has them all"
        )
    return None


def wishbone_slave(top: Top, times: DeviceTimes, parameters: Mapping[str, Array]) -> WishboneSlave:
    """The slave of a design; ``parameters`` are the values of scalars by name."""
    return _Builder(top, times, parameters).build()


class _Builder:
    def __init__(self, top: Top, times: DeviceTimes, parameters: Mapping[str, Array]) -> None:
        self.top, self.fresh = top, top.identifiers.fresh
        graph = top.graph
        stored = storing(graph)
        inputs = [t for t in graph.tensors if t.name not in stored]
        outputs = [t for t in graph.tensors if t.name in stored]
        self.first: dict[str, int] = {}
        self.elements = 0
        for tensor in (*inputs, *outputs):
            self.first[tensor.name] = self.elements
            self.elements += prod(tensor.allocated)
        self.inputs = sum(prod(tensor.allocated) for tensor in inputs)
        self.address = ast.Bits(width=max(1, self.elements.bit_length()))
        names = ("bus_write", "bus_clear", "bus_address", "bus_value", "conflict", "result")
        self.write, self.clear, self.host, self.value, self.conflict, self.result = map(
            self.fresh, names
        )
        self.run, self.rests, self.cycles = map(self.fresh, ("run", "rests", "cycles"))
        self.around = Surroundings(top, times, parameters, reset=self.rests, cycles=self.cycles)
        self.found: list[tuple[str, str, int]] = []

    def build(self) -> WishboneSlave:
        module = self.fresh(f"{self.top.graph.name}_wishbone")
        items = [
            *self._declarations(),
            *self.around.chip(),
            self._bus(),
            ast.Heading(text="memory: a copy for each load unit, one for each store unit"),
            *self._loads(),
            *self._stores(),
            *self._answer(),
            *self.around.counting(),
        ]
        word, wide = ast.WORD, ast.Bits(width=self.address.width + 1)
        types = {"wb_adr": wide, "wb_sel": ast.Bits(width=4), "wb_dat_w": word, "wb_dat_r": word}
        out = ("wb_dat_r", "wb_ack", "wb_err")
        built = ast.HardwareModule(
            name=module,
            about=(f"{self.top.graph.name} with memories, as a slave of a Wishbone bus.",),
            ports=(
                ast.input_port(port.CLOCK),
                ast.input_port(port.RESET),
                *(
                    (ast.output_port if name in out else ast.input_port)(
                        name, types.get(name, ast.BIT)
                    )
                    for name in _BUS
                ),
            ),
            items=tuple(items),
        )
        base = 1 << self.address.width
        first = {name: base + at for name, at in self.first.items()}
        return WishboneSlave(
            module=module,
            files={"slave.sv": ast.print_modules((built,))},
            first=first,
        )

    def _declarations(self) -> Iterator[ast.Item]:
        for name in (self.write, self.clear, self.conflict, self.run, self.rests):
            yield ast.variable(name)
        yield ast.variable(self.host, self.address)
        for name in (self.value, self.result, self.cycles):
            yield ast.variable(name, ast.WORD)
        rests = ast.negation(Name(name=self.run))
        yield ast.ContinuousAssignment(target=Name(name=self.rests), value=rests)

    def _bus(self) -> ast.Instance:
        return ast.Instance(
            module="wishbone",
            name=self.fresh("bus"),
            parameters=(
                ("ADDRESS", number(self.address.width)),
                ("INPUTS", number(self.inputs)),
                ("ELEMENTS", number(self.elements)),
            ),
            connections=(
                *((name, Name(name=name)) for name in (port.CLOCK, port.RESET, *_BUS)),
                ("write", Name(name=self.write)),
                ("clear", Name(name=self.clear)),
                ("address", Name(name=self.host)),
                ("value", Name(name=self.value)),
                ("conflict", Name(name=self.conflict)),
                ("result", Name(name=self.result)),
                ("run", Name(name=self.run)),
                ("over", Name(name=self.around.over)),
                ("cycles", Name(name=self.cycles)),
            ),
        )

    # ------------------------------------------------------------------------------------ memory

    def _loads(self) -> Iterator[ast.Item]:
        for interface, names in self.top.nodes:
            count = interface.node.place_count
            yield from self.around.grants(interface, names)
            for load, access in zip(interface.loads, names.loads, strict=True):
                for place in range(count):
                    data = ast.element(access.data, place)
                    for lane in range(load.type.lanes):
                        yield ast.Instance(
                            module="input_bank",
                            name=self.fresh(f"{access.data}_bank"),
                            parameters=(
                                *self._shape(load, lane),
                                ("DELAY", number(interface.plan.load_latency)),
                            ),
                            connections=(
                                (port.CLOCK, Name(name=port.CLOCK)),
                                ("write", Name(name=self.write)),
                                ("host", Name(name=self.host)),
                                ("value", Name(name=self.value)),
                                ("address", _row(access.address, place, load)),
                                ("data", lane_of(data, load.type.lanes, lane)),
                            ),
                        )

    def _stores(self) -> Iterator[ast.Item]:
        for interface, names in self.top.nodes:
            count = interface.node.place_count
            for store, access in zip(interface.stores, names.stores, strict=True):
                banks = count * store.type.lanes
                found, result = self.fresh(f"{access.data}_found"), self.fresh(f"{access.data}_was")
                yield ast.variable(found, ast.BIT, banks)
                yield ast.variable(result, ast.WORD, banks)
                self.found.append((found, result, banks))
                for bank in range(banks):
                    place, lane = divmod(bank, store.type.lanes)
                    data = ast.element(access.data, place)
                    yield ast.Instance(
                        module="output_bank",
                        name=self.fresh(f"{access.data}_bank"),
                        parameters=self._shape(store, lane),
                        connections=(
                            (port.CLOCK, Name(name=port.CLOCK)),
                            ("clear", Name(name=self.clear)),
                            ("host", Name(name=self.host)),
                            ("write", ast.element(access.enable, place)),
                            ("address", _row(access.address, place, store)),
                            ("value", lane_of(data, store.type.lanes, lane)),
                            ("found", ast.element(found, bank)),
                            ("result", ast.element(result, bank)),
                        ),
                    )
                yield from self.around.last_store(store, access.enable, count)

    def _shape(
        self, access: LoadPort | StorePort, lane: int
    ) -> tuple[tuple[str, TargetExpression], ...]:
        lanes, tensor = access.type.lanes, access.tensor
        shift = lanes.bit_length() - 1
        return (
            ("WIDTH", number(width_of(tensor.type))),
            ("BITS", number(max(1, access.address_type.width - shift))),
            ("ROWS", number(prod(tensor.allocated) // lanes)),
            ("ADDRESS", number(self.address.width)),
            ("FIRST", number(self.first[tensor.name])),
            ("LANES", number(lanes)),
            ("LANE", number(lane)),
        )

    def _answer(self) -> Iterator[ast.Item]:
        """What the banks say of an element: one of them has it, or none, which is zero."""
        body: list[TargetStatement] = [
            ast.put(self.conflict, ast.FALSE),
            ast.put(self.result, number(0)),
        ]
        seen = self.fresh("seen")
        yield ast.variable(seen)
        body.append(ast.put(seen, ast.FALSE))
        for found, result, banks in self.found:
            both = ast.both(Name(name=seen), of_place(found))
            united = Binary(operator="|", left=Name(name=self.result), right=of_place(result))
            each = (
                ast.put(self.conflict, ast.either(Name(name=self.conflict), both)),
                ast.put(seen, ast.either(Name(name=seen), of_place(found))),
                ast.put(self.result, united),
            )
            body.append(ast.UnrolledFor(variable=P, count=banks, body=each))
        yield ast.AlwaysComb(body=tuple(body))


def header(name: str, slave: WishboneSlave) -> str:
    """The words of a slave for a host, as macros of C: numbers of words, not of bytes."""
    prefix = identifier(name).upper()
    words = {"START": 0, "CYCLES": 1}
    lines = [f"#define {prefix}_{word} {at}" for word, at in words.items()]
    lines += [
        f"#define {prefix}_TENSOR_{identifier(tensor)} {first}"
        for tensor, first in slave.first.items()
    ]
    return "\n".join((f"// Words of {name} on the bus; of tensors the first.", *lines, ""))


def _row(address: str, place: int, access: LoadPort | StorePort) -> TargetExpression:
    """The address of a unit without the bits of its lanes."""
    return row_of(address, place, access.address_type, access.type.lanes.bit_length() - 1)
