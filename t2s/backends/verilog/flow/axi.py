"""A design with memories that masters of an AXI4 bus fill and write, started by registers.

A run copies all inputs by bursts into memories of the load units, runs the design, and copies what
the store units have stored.  Each load unit has a copy of the tensor that it reads, and each store
unit memory of its own, so all units are always granted, and the cycles of the design do not depend
on the bus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from t2s.backends.base import DeviceTimes, Unsupported
from t2s.backends.text.expressions import (
    Name,
    TargetExpression,
    Ternary,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import width_of
from t2s.backends.verilog.flow.surroundings import LIBRARY as COUNTING
from t2s.backends.verilog.flow.surroundings import Surroundings
from t2s.backends.verilog.flow.wishbone import unaligned
from t2s.backends.verilog.interfaces import LoadPort, StorePort
from t2s.backends.verilog.top import AccessNames, Top
from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, Tensor
from t2s.graph.ports import loading, storing

LIBRARY = ("rows.sv", "axi_masters.sv", "axi_control.sv", *COUNTING)
BUS_BITS = (32, 64, 128, 256, 512)
"""How wide the data of a master may be."""

CONTROL = "s_axi_control"
"""The prefix of the ports of the registers."""

_MASTER = "m_axi_"

CLOCK, RESET = "ap_clk", "ap_rst_n"
FIRST_ADDRESS = 16
"""The offset of the register with the address of the first tensor, in bytes."""

_CONTROL_BITS = 12
_LITE: Mapping[str, tuple[int, bool]] = {
    "awaddr": (_CONTROL_BITS, False),
    "awvalid": (1, False),
    "awready": (1, True),
    "wdata": (32, False),
    "wstrb": (4, False),
    "wvalid": (1, False),
    "wready": (1, True),
    "bresp": (2, True),
    "bvalid": (1, True),
    "bready": (1, False),
    "araddr": (_CONTROL_BITS, False),
    "arvalid": (1, False),
    "arready": (1, True),
    "rdata": (32, True),
    "rresp": (2, True),
    "rvalid": (1, True),
    "rready": (1, False),
}
"""The signals of AXI4-Lite: how wide they are, and whether a slave drives them."""

_WRITING = (
    *("awaddr", "awlen", "awvalid", "awready"),
    *("wdata", "wstrb", "wlast", "wvalid", "wready"),
    *("bresp", "bvalid", "bready"),
)
_READING = ("araddr", "arlen", "arvalid", "arready", "rdata", "rresp", "rvalid", "rready")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A tensor in the memory of a host, with the master that copies it.

    ``offset`` is that of the register with its address, ``size`` its bytes, and ``name`` what it is
    called in the ports of its master.
    """

    tensor: Tensor
    name: str
    offset: int
    size: int
    read: bool

    @property
    def prefix(self) -> str:
        """What the names of the ports begin with."""
        return f"{_MASTER}{self.name}"


@dataclass(frozen=True, kw_only=True)
class AxiDesign:
    """The files of a design with masters, its module, and its arguments in order.

    ``cycles``, ``elapsed`` and ``wrong`` are the offsets of the registers behind the addresses.
    """

    module: str
    files: Mapping[str, str]
    arguments: tuple[Argument, ...]
    bus_bits: int
    cycles: int
    elapsed: int
    wrong: int


def not_by_masters(graph: Graph, bus_bits: int) -> list[Unsupported]:
    """The tensors whose words are not parts of a beat of the bus, and those without elements."""
    problems = []
    for node in graph.pe_arrays:
        for statement in node.body:
            if isinstance(statement, Load | Store):
                tensor = graph.tensor(statement.tensor)
                why = unaligned(statement, tensor) or _too_wide(statement, tensor, bus_bits)
                if prod(tensor.allocated) == 0:
                    why = "it has no elements, and a burst has at least one"
                if why is not None:
                    problems.append(
                        Unsupported(
                            subject=f"tensor {tensor.name!r}", why=why, location=tensor.location
                        )
                    )
    return problems


def _too_wide(statement: Load | Store, tensor: Tensor, bus_bits: int) -> str | None:
    bits = _lanes(statement) * _held(tensor)
    if bits <= bus_bits:
        return None
    return f"a word of {bits} bits does not fit in a beat of {bus_bits}; data_bits= is at most 512"


def narrowest_bus(graph: Graph) -> int:
    """The least data bits that have the words of all units; 512 if none has."""
    needed = max(
        (
            _lanes(statement) * _held(graph.tensor(statement.tensor))
            for node in graph.pe_arrays
            for statement in node.body
            if isinstance(statement, Load | Store)
        ),
        default=0,
    )
    return next((bits for bits in BUS_BITS if bits >= needed), BUS_BITS[-1])


def axi_design(
    top: Top, times: DeviceTimes, parameters: Mapping[str, Array], bus_bits: int
) -> AxiDesign:
    """A design with masters; ``parameters`` are the values of scalars by name."""
    return _Builder(top, times, parameters, bus_bits).build()


class _Builder:
    def __init__(
        self, top: Top, times: DeviceTimes, parameters: Mapping[str, Array], bus_bits: int
    ) -> None:
        self.top, self.fresh, self.bus_bits = top, top.identifiers.fresh, bus_bits
        own = ("run", "rests", "counted", "clear", "clear_row", "addresses")
        self.run, self.rests, self.cycles, self.clear, self.clear_row, self.addresses = map(
            self.fresh, own
        )
        of_masters = ("reads", "all_read", "writes", "all_written", "failed", "conflict")
        self.reads, self.read, self.writes, self.written, self.failed, self.conflict = map(
            self.fresh, of_masters
        )
        self.around = Surroundings(top, times, parameters, reset=self.rests, cycles=self.cycles)
        graph = top.graph
        loaded, stored = loading(graph), storing(graph)
        chosen = [t for t in graph.tensors if t.name in loaded]
        chosen += [t for t in graph.tensors if t.name in stored]
        self.arguments = tuple(
            Argument(
                tensor=tensor,
                name=self.fresh(f"{_MASTER}{tensor.name}").removeprefix(_MASTER),
                offset=FIRST_ADDRESS + 8 * at,
                size=prod(tensor.allocated) * tensor.type.bytes,
                read=tensor.name not in stored,
            )
            for at, tensor in enumerate(chosen)
        )

    def build(self) -> AxiDesign:
        module = self.fresh(f"{self.top.graph.name}_axi")
        items = [
            *self._declarations(),
            *self.around.chip(),
            self._control(),
            *(
                item
                for interface, names in self.top.nodes
                for item in self.around.grants(interface, names)
            ),
            *(item for at, one in enumerate(self.arguments) for item in self._copied(at, one)),
            *self._outcomes(),
            *self.around.counting(),
        ]
        ports = [ast.input_port(CLOCK), ast.input_port(RESET)]
        for name, (width, driven) in _LITE.items():
            made = ast.output_port if driven else ast.input_port
            ports.append(made(f"{CONTROL}_{name}", ast.Bits(width=width)))
        for argument in self.arguments:
            ports += self._ports(argument)
        built = ast.HardwareModule(
            name=module,
            about=(f"{self.top.graph.name} with masters of AXI4, which copy its tensors.",),
            ports=tuple(ports),
            items=tuple(items),
        )
        behind = FIRST_ADDRESS + 8 * len(self.arguments)
        return AxiDesign(
            module=module,
            files={"kernel.sv": ast.print_modules((built,))},
            arguments=self.arguments,
            bus_bits=self.bus_bits,
            cycles=behind,
            elapsed=behind + 4,
            wrong=behind + 8,
        )

    def _declarations(self) -> Iterator[ast.Item]:
        for name in (port.CLOCK, port.RESET, self.run, self.rests, self.clear):
            yield ast.variable(name)
        for name in (self.reads, self.writes, self.read, self.written, self.failed, self.conflict):
            yield ast.variable(name)
        yield ast.variable(self.cycles, ast.WORD)
        yield ast.variable(self.clear_row, ast.WORD)
        yield ast.variable(self.addresses, ast.Bits(width=64), len(self.arguments))
        for target, value in (
            (port.CLOCK, Name(name=CLOCK)),
            (port.RESET, ast.negation(Name(name=RESET))),
            (self.rests, ast.negation(Name(name=self.run))),
        ):
            yield ast.ContinuousAssignment(target=Name(name=target), value=value)

    def _control(self) -> ast.Instance:
        rows = [self._rows(one.tensor) for one in self.arguments if not one.read]
        return ast.Instance(
            module="axi_control",
            name=self.fresh("control"),
            parameters=(
                ("TENSORS", number(len(self.arguments))),
                ("IGNORED", number((self.bus_bits // 8).bit_length() - 1)),
                ("ROWS", number(max(rows, default=1))),
            ),
            connections=(
                (port.CLOCK, Name(name=port.CLOCK)),
                (port.RESET, Name(name=port.RESET)),
                *((name, Name(name=f"{CONTROL}_{name}")) for name in _LITE),
                ("addresses", Name(name=self.addresses)),
                ("read", Name(name=self.reads)),
                ("all_read", Name(name=self.read)),
                ("clear", Name(name=self.clear)),
                ("clear_row", Name(name=self.clear_row)),
                ("run", Name(name=self.run)),
                ("over", Name(name=self.around.over)),
                ("cycles", Name(name=self.cycles)),
                ("write", Name(name=self.writes)),
                ("all_written", Name(name=self.written)),
                ("failed", Name(name=self.failed)),
                ("conflict", Name(name=self.conflict)),
            ),
        )

    # ----------------------------------------------------------------------------------- masters

    def _ports(self, argument: Argument) -> Iterator[ast.ModulePort]:
        """All signals of a master that reads or writes, those that never change included."""
        kinds = ("ar", "r") if argument.read else ("aw", "w", "b")
        for channel in kinds:
            for name, width, driven in self._signals(channel):
                made = ast.output_port if driven else ast.input_port
                yield made(f"{argument.prefix}_{channel}{name}", ast.Bits(width=width))

    def _signals(self, channel: str) -> list[tuple[str, int, bool]]:
        """The signals of a channel: how wide they are, and whether the master drives them."""
        data = self.bus_bits
        match channel:
            case "ar" | "aw":
                wide = {"id": 1, "addr": 64, "len": 8, "size": 3, "burst": 2, "cache": 4, "prot": 3}
                signals = [(name, width, True) for name, width in wide.items()]
            case "r":
                signals = [("id", 1, False), ("data", data, False), ("resp", 2, False)]
                signals.append(("last", 1, False))
            case "w":
                signals = [("data", data, True), ("strb", data // 8, True), ("last", 1, True)]
            case _:
                signals = [("id", 1, False), ("resp", 2, False)]
        driven = channel in ("ar", "aw", "w")
        return [*signals, ("valid", 1, driven), ("ready", 1, not driven)]

    def _copied(self, at: int, argument: Argument) -> Iterator[ast.Item]:
        """A master, and the memories of all units of its tensor."""
        yield ast.Heading(text=f"tensor {argument.tensor.name}")
        yield from self._constants(argument)
        yield from (self._reader if argument.read else self._writer)(at, argument)

    def _constants(self, argument: Argument) -> Iterator[ast.Item]:
        """The signals of addresses that never change."""
        channel = "ar" if argument.read else "aw"
        constants = {
            "id": 0,
            "size": (self.bus_bits // 8).bit_length() - 1,
            "burst": 1,  # addresses increase
            "cache": 3,  # the bus may join and split bursts
            "prot": 0,
        }
        for name, value in constants.items():
            target = Name(name=f"{argument.prefix}_{channel}{name}")
            yield ast.ContinuousAssignment(target=target, value=number(value))

    def _reader(self, at: int, argument: Argument) -> Iterator[ast.Item]:
        prefix = argument.prefix
        own = {"write": ast.BIT, "row": ast.WORD, "value": ast.Bits(width=self.bus_bits)}
        yield from self._declared(prefix, own)
        yield ast.Instance(
            module="axi_reader",
            name=self.fresh(f"{prefix}_master"),
            parameters=self._sizes(argument),
            connections=self._connected(at, argument, (*own, *_READING)),
        )
        for interface, names in self.top.nodes:
            for load, access in zip(interface.loads, names.loads, strict=True):
                for place in range(interface.node.place_count):
                    if load.tensor.name == argument.tensor.name:
                        delay = interface.plan.load_latency
                        yield self._unit_that_loads(prefix, load, access, place, delay)

    def _writer(self, at: int, argument: Argument) -> Iterator[ast.Item]:
        prefix, per = argument.prefix, self._per(argument.tensor)
        own = {
            "row": ast.WORD,
            "once": ast.Bits(width=per),
            "word": ast.Bits(width=self.bus_bits),
            "conflict": ast.BIT,
            "conflicts": ast.BIT,
        }
        yield from self._declared(prefix, own)
        yield ast.Instance(
            module="axi_writer",
            name=self.fresh(f"{prefix}_master"),
            parameters=(*self._sizes(argument), ("PER", number(per))),
            connections=self._connected(at, argument, (*own, *_WRITING)),
        )
        yield from self._units_that_store(argument)

    def _declared(self, prefix: str, own: Mapping[str, ast.Bits]) -> Iterator[ast.Item]:
        for name, type in {"done": ast.BIT, "failed": ast.BIT, **own}.items():
            yield ast.variable(f"{prefix}_{name}", type)

    def _sizes(self, argument: Argument) -> tuple[tuple[str, TargetExpression], ...]:
        rows = self._rows(argument.tensor)
        return (("DATA", number(self.bus_bits)), ("BEATS", number(rows)))

    def _connected(
        self, at: int, argument: Argument, own: tuple[str, ...]
    ) -> tuple[tuple[str, TargetExpression], ...]:
        return (
            (port.CLOCK, Name(name=port.CLOCK)),
            (port.RESET, Name(name=port.RESET)),
            ("start", Name(name=self.reads if argument.read else self.writes)),
            ("address", ast.element(self.addresses, at)),
            *((name, Name(name=f"{argument.prefix}_{name}")) for name in ("done", "failed", *own)),
        )

    # ------------------------------------------------------------------------------------ memory

    def _unit_that_loads(
        self, prefix: str, load: LoadPort, access: AccessNames, place: int, delay: int
    ) -> ast.Instance:
        return ast.Instance(
            module="input_rows",
            name=self.fresh(f"{access.data}_rows"),
            parameters=(*self._shape(load), ("DELAY", number(delay))),
            connections=(
                (port.CLOCK, Name(name=port.CLOCK)),
                *((name, Name(name=f"{prefix}_{name}")) for name in ("write", "row", "value")),
                ("address", ast.element(access.address, place)),
                ("data", ast.element(access.data, place)),
            ),
        )

    def _units_that_store(self, argument: Argument) -> Iterator[ast.Item]:
        """The memories of all units that store a tensor, and what is in a row of any of them."""
        ports = [
            (store, access, interface.node.place_count)
            for interface, names in self.top.nodes
            for store, access in zip(interface.stores, names.stores, strict=True)
            if store.tensor.name == argument.tensor.name
        ]
        prefix, per = argument.prefix, self._per(argument.tensor)
        units = [(store, access, place) for store, access, n in ports for place in range(n)]
        stored, words, row = (self.fresh(f"{prefix}_{name}") for name in ("stored", "words", "at"))
        yield ast.variable(stored, ast.Bits(width=per), len(units))
        yield ast.variable(words, ast.Bits(width=self.bus_bits), len(units))
        yield ast.variable(row, ast.WORD)
        asked = Ternary(
            condition=Name(name=self.clear),
            if_true=Name(name=self.clear_row),
            if_false=Name(name=f"{prefix}_row"),
        )
        yield ast.ContinuousAssignment(target=Name(name=row), value=asked)
        for unit, (store, access, place) in enumerate(units):
            yield ast.Instance(
                module="output_rows",
                name=self.fresh(f"{access.data}_rows"),
                parameters=self._shape(store),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    ("clear", Name(name=self.clear)),
                    ("row", Name(name=row)),
                    ("write", ast.element(access.enable, place)),
                    ("address", ast.element(access.address, place)),
                    ("value", ast.element(access.data, place)),
                    ("stored", ast.element(stored, unit)),
                    ("word", ast.element(words, unit)),
                ),
            )
        yield ast.Instance(
            module="united_rows",
            name=self.fresh(f"{prefix}_united"),
            parameters=(
                ("UNITS", number(len(units))),
                ("DATA", number(self.bus_bits)),
                ("PER", number(per)),
            ),
            connections=(
                ("stored", Name(name=stored)),
                ("words", Name(name=words)),
                *((name, Name(name=f"{prefix}_{name}")) for name in ("once", "word", "conflict")),
            ),
        )
        for store, access, count in ports:
            yield from self.around.last_store(store, access.enable, count)

    def _shape(self, access: LoadPort | StorePort) -> tuple[tuple[str, TargetExpression], ...]:
        return (
            ("DATA", number(self.bus_bits)),
            ("ROWS", number(self._rows(access.tensor))),
            ("BITS", number(access.address_type.width)),
            ("WIDTH", number(width_of(access.tensor.type))),
            ("HELD", number(_held(access.tensor))),
            ("LANES", number(access.type.lanes)),
        )

    def _per(self, tensor: Tensor) -> int:
        """Elements of a tensor in a row."""
        return self.bus_bits // _held(tensor)

    def _rows(self, tensor: Tensor) -> int:
        return -(-prod(tensor.allocated) // self._per(tensor))

    def _outcomes(self) -> Iterator[ast.Item]:
        """Whether all masters are done, and what went wrong in any of them."""
        yield ast.Heading(text="all masters together")
        reading = [one for one in self.arguments if one.read]
        writing = [one for one in self.arguments if not one.read]

        def named(arguments: Sequence[Argument], what: str) -> list[TargetExpression]:
            return [Name(name=f"{one.prefix}_{what}") for one in arguments]

        for target, value in (
            (self.read, ast.both(*named(reading, "done"))),
            (self.written, ast.both(*named(writing, "done"))),
            (self.failed, ast.either(*named(self.arguments, "failed"))),
            (self.conflict, ast.either(*named(writing, "conflicts"))),
        ):
            yield ast.ContinuousAssignment(target=Name(name=target), value=value)


def _held(tensor: Tensor) -> int:
    """Bits of an element in the memory of a host."""
    return 8 * tensor.type.bytes


def _lanes(statement: Load | Store) -> int:
    return (statement.type if isinstance(statement, Load) else statement.value.type).lanes
