"""The self test of a chip: the design with its memories, which says whether all results are right.

Each load unit reads a block RAM of its own, with what it reads of the tensor's inputs; each store
unit has the results that are expected, and compares.  The loads of a machine read look-up tables.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.backends.base import DeviceTimes, Unsupported
from t2s.backends.text.expressions import (
    Binary,
    If,
    Literal,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    number,
)
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import hexadecimal, signal_names
from t2s.backends.verilog.flow.machine_memories import MOST_WORDS, in_tables, sharing
from t2s.backends.verilog.flow.surroundings import LIBRARY as COUNTING
from t2s.backends.verilog.flow.surroundings import P, Surroundings, of_place, row_of
from t2s.backends.verilog.interfaces import Interface, LoadPort, StorePort
from t2s.backends.verilog.reductions import reduction
from t2s.backends.verilog.top import AccessNames, NodeNames, Top
from t2s.core.ops import Array
from t2s.graph.arrays import pack
from t2s.graph.body import Load, Store
from t2s.graph.graph import Graph, MemorySpace, Tensor
from t2s.graph.nodes import Machine
from t2s.graph.ports import is_aligned, loading, storing

LIBRARY = ("image.sv", "judge.sv", *COUNTING)
DONE, PASSED, CYCLES = "done", "passed", "cycles"


@dataclass(frozen=True, kw_only=True)
class SelfTest:
    """The files of a self test; ``module`` has a clock, a reset, and the three results."""

    module: str
    files: Mapping[str, str]
    images: Mapping[str, str]


def unsupported(graph: Graph, *, machines: bool = True) -> list[Unsupported]:
    """Why a design has no memories; ``machines`` have some in a self test only."""
    problems = [
        Unsupported(
            subject=f"node {machine.name!r}",
            why="machines have a self test only, memory='bram': they decide on data in the cycle "
            "of their address",
            location=machine.location,
        )
        for machine in (() if machines else graph.machines)
    ]
    passed_on = loading(graph).keys() & storing(graph).keys()
    tables = in_tables(graph) if machines else frozenset()
    for tensor in graph.tensors:
        if tensor.name in tables and tensor.name not in passed_on:
            continue
        if tensor.place is not MemorySpace.MEMORY or tensor.open:
            why = "only tensors in memory whose size is known have a memory of a chip"
        elif tensor.name in passed_on:
            why = (
                "tensors that are stored and loaded again have no memory of a chip; stream() sends "
                "them"
            )
        else:
            continue
        problems.append(
            Unsupported(subject=f"tensor {tensor.name!r}", why=why, location=tensor.location)
        )
    return problems


def words_of_units(graph: Graph) -> Iterator[tuple[int, int, bool]]:
    """Words and bits of the memory of each unit of a self test, and whether the unit loads."""
    for node in graph.pe_arrays:
        for statement in node.body:
            if isinstance(statement, Load | Store):
                loads = isinstance(statement, Load)
                type = statement.type if isinstance(statement, Load) else statement.value.type
                words = prod(graph.tensor(statement.tensor).allocated) // type.lanes
                for _ in range(node.place_count):
                    yield words, type.lanes * type.bits, loads


def self_test(
    top: Top,
    times: DeviceTimes,
    memory: Mapping[str, Array],
    parameters: Mapping[str, Array],
) -> SelfTest:
    """The self test of a design.

    ``memory`` has all tensors by name, as arrays of their allocated shapes: what inputs are, and
    what outputs have to be.  ``parameters`` are the values of scalars by name.
    """
    return _Builder(top, times, memory, parameters).build()


def memory_images(graph: Graph, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The tensors as they are in memory; ``arrays`` are a user's inputs and the outputs."""
    return {tensor.name: pack(tensor, np.asarray(arrays[tensor.array])) for tensor in graph.tensors}


class _Builder:
    def __init__(
        self,
        top: Top,
        times: DeviceTimes,
        memory: Mapping[str, Array],
        parameters: Mapping[str, Array],
    ) -> None:
        self.top, self.memory = top, memory
        self._fresh = fresh = top.identifiers.fresh
        self.wrong = fresh("wrong")
        self.around = Surroundings(top, times, parameters, reset=port.RESET, cycles=CYCLES)
        self.images: dict[str, str] = {}
        self.names: dict[tuple[str, int], str] = {}
        self.files = signal_names()
        self.judges: list[tuple[str, int]] = []

    def build(self) -> SelfTest:
        top = self.top
        module = self._fresh(f"{top.graph.name}_self_test")
        items = [
            ast.variable(self.wrong),
            *self.around.chip(),
            ast.Heading(text="memory: a block RAM for each load unit, results for each store unit"),
            *self._loads(),
            *self._stores(),
            *self.around.counting(),
            *self._end(),
        ]
        built = ast.HardwareModule(
            name=module,
            about=(
                f"Runs {top.graph.name} once on the inputs in its memories, and compares all"
                " results.",
            ),
            ports=(
                ast.input_port(port.CLOCK),
                ast.input_port(port.RESET),
                ast.output_port(DONE),
                ast.output_port(PASSED),
                ast.output_port(CYCLES, ast.WORD),
            ),
            items=tuple(items),
        )
        return SelfTest(
            module=module, files={"self_test.sv": ast.print_modules((built,))}, images=self.images
        )

    # ------------------------------------------------------------------------------------ memory

    def _loads(self) -> Iterator[ast.Item]:
        for interface, names in self.top.nodes:
            yield from self.around.grants(interface, names)
            yield from self._faults(interface, names)
            for numbers in sharing(interface.node, Load, len(interface.loads)):
                loads = [interface.loads[number] for number in numbers]
                signals = [names.loads[number] for number in numbers]
                yield from self._image(interface, loads, signals)

    def _image(
        self, interface: Interface, loads: Sequence[LoadPort], signals: Sequence[AccessNames]
    ) -> Iterator[ast.Item]:
        """A memory for each PE, which loads share that are never in one firing."""
        load, count = loads[0], interface.node.place_count
        words, shift = self._words(load)
        type = max((load.address_type for load in loads), key=lambda type: type.width)
        enables, data = [each.enable for each in signals], signals[0].data
        address = yield from self._chosen(enables, [a.address for a in signals], type, count)
        in_table = isinstance(interface.node, Machine) and len(words) <= MOST_WORDS
        if len(loads) > 1:
            data = self._fresh(f"{data}_shared")
            yield ast.variable(data, load.type, count)
            copies = tuple(ast.put(of_place(each.data), of_place(data)) for each in signals)
            yield ast.AlwaysComb(body=(ast.UnrolledFor(variable=P, count=count, body=copies),))
        for place in range(count):
            yield ast.Instance(
                module="image",
                name=self._fresh(f"{data}_image"),
                parameters=(
                    *self._shape(load, words, type, shift),
                    ("DELAY", number(load.stage)),
                    ("TABLE", number(int(in_table))),
                    ("FILE", self._file(load.tensor, words)),
                ),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    ("address", row_of(address, place, type, shift)),
                    ("data", ast.element(data, place)),
                ),
            )

    def _stores(self) -> Iterator[ast.Item]:
        for interface, names in self.top.nodes:
            for numbers in sharing(interface.node, Store, len(interface.stores)):
                stores = [interface.stores[number] for number in numbers]
                signals = [names.stores[number] for number in numbers]
                yield from self._judge(interface, names.fires, stores, signals)

    def _judge(
        self,
        interface: Interface,
        fires: str,
        stores: Sequence[StorePort],
        signals: Sequence[AccessNames],
    ) -> Iterator[ast.Item]:
        """A comparison for each PE, which stores share that are never in one firing."""
        store, count = stores[0], interface.node.place_count
        words, shift = self._words(store)
        type = max((store.address_type for store in stores), key=lambda type: type.width)
        enables, writes = [each.enable for each in signals], signals[0].enable
        if not interface.plan.chip:
            writes = self._fresh(f"{writes}_fires")
            yield from self._stored(writes, fires, enables, count)
        address = yield from self._chosen(enables, [s.address for s in signals], type, count)
        value = yield from self._chosen(enables, [s.data for s in signals], store.type, count)
        wrong = self._fresh(f"{value}_wrong")
        yield ast.variable(wrong, ast.BIT, count)
        self.judges.append((wrong, count))
        for place in range(count):
            yield ast.Instance(
                module="judge",
                name=self._fresh(f"{value}_judge"),
                parameters=(
                    *self._shape(store, words, type, shift),
                    ("FILE", self._file(store.tensor, words)),
                ),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    (port.RESET, Name(name=port.RESET)),
                    ("write", ast.element(writes, place)),
                    ("address", row_of(address, place, type, shift)),
                    ("value", ast.element(value, place)),
                    ("wrong", ast.element(wrong, place)),
                ),
            )
        yield from self.around.last_store(store, writes, count)

    def _chosen(
        self, enables: Sequence[str], signals: Sequence[str], type: ast.Bits, count: int
    ) -> Generator[ast.Item, None, str]:
        """The signal of the access that is enabled, for each PE; it returns its name."""
        if len(signals) == 1:
            return signals[0]
        name = self._fresh(f"{signals[0]}_shared")
        chosen = of_place(signals[0])
        for enable, signal in zip(enables[1:], signals[1:], strict=True):
            chosen = Ternary(condition=of_place(enable), if_true=of_place(signal), if_false=chosen)
        each = (ast.put(of_place(name), chosen),)
        yield ast.variable(name, type, count)
        yield ast.AlwaysComb(body=(ast.UnrolledFor(variable=P, count=count, body=each),))
        return name

    def _faults(self, interface: Interface, names: NodeNames) -> Iterator[ast.Item]:
        """Registers that say that a machine has met what it cannot take."""
        if not interface.may_fail:
            return
        count = interface.node.place_count
        failed = self._fresh(f"{names.fault}_seen")
        yield ast.variable(failed, ast.BIT, count)
        self.judges.append((failed, count))
        here = of_place(failed)
        fails = Binary(operator="!=", left=of_place(names.fault), right=number(0))
        seen = ast.both(ast.negation(Name(name=port.RESET)), ast.either(here, fails))
        each = (ast.put(here, seen, clocked=True),)
        yield ast.AlwaysFF(body=(ast.UnrolledFor(variable=P, count=count, body=each),))

    def _stored(
        self, writes: str, fires: str, enables: Sequence[str], count: int
    ) -> Iterator[ast.Item]:
        """Whether a machine stores: a rule that does is its next firing, and it fires."""
        yield ast.variable(writes, ast.BIT, count)
        enabled = ast.either(*map(of_place, enables))
        both = ast.put(of_place(writes), ast.both(of_place(fires), enabled))
        yield ast.AlwaysComb(body=(ast.UnrolledFor(variable=P, count=count, body=(both,)),))

    def _words(self, access: LoadPort | StorePort) -> tuple[Array, int]:
        """The words that a unit accesses, and how many low bits of its addresses they drop.

        Vectors that lie at multiples of their length are words; of others there is one for each
        address.
        """
        flat = self.memory[access.tensor.name].reshape(-1)
        if not flat.size:
            flat = np.zeros(1, flat.dtype)  # a memory of no words is none
        lanes, statement = access.type.lanes, access.statement
        if lanes == 1:
            return flat[:, None], 0
        if not lanes & (lanes - 1) and is_aligned(
            statement.indices, access.tensor.allocated, lanes
        ):
            return flat.reshape(-1, lanes), lanes.bit_length() - 1
        behind = np.concatenate([flat, np.zeros(lanes - 1, flat.dtype)])
        return np.lib.stride_tricks.sliding_window_view(behind, lanes), 0

    def _shape(
        self, access: LoadPort | StorePort, words: Array, address: ast.Bits, shift: int
    ) -> tuple[tuple[str, TargetExpression], ...]:
        return (
            ("WIDTH", number(access.type.total)),
            ("BITS", number(max(1, address.width - shift))),
            ("DEPTH", number(len(words))),
        )

    def _file(self, tensor: Tensor, words: Array) -> TargetExpression:
        lanes = words.shape[1]
        wanted = tensor.name if lanes == 1 else f"{tensor.name}_by_{lanes}"
        if (tensor.name, lanes) not in self.names:
            self.names[tensor.name, lanes] = f"{self.files.fresh(wanted)}.hex"
        name = self.names[tensor.name, lanes]
        digits = -(-words.dtype.itemsize * 8 // 4)
        bits = 1 if tensor.type.is_bool else tensor.type.bits
        rows = [
            "".join(f"{int(line, 16):0{digits}x}" for line in reversed(lines))
            for row in words
            if (lines := hexadecimal(row).split())
        ]
        assert lanes == 1 or bits == 4 * digits, "vectors of truth values have one bit for each"
        self.images[name] = "\n".join((*rows, ""))
        return Literal(text=f'"{name}"')

    def _end(self) -> Iterator[ast.Item]:
        """All is over when what fired last has been stored, compared and counted."""
        yield from reduction(self._fresh, self.wrong, self.judges, port.RESET, every=False)
        over = Name(name=self.around.over)
        yield ast.AlwaysFF(
            body=(
                If(
                    condition=Name(name=port.RESET),
                    then=(_later(DONE, ast.FALSE), _later(PASSED, ast.FALSE)),
                    otherwise=(
                        _later(DONE, over),
                        _later(PASSED, ast.both(over, ast.negation(Name(name=self.wrong)))),
                    ),
                ),
            )
        )


def _later(target: str, value: TargetExpression) -> TargetStatement:
    return ast.put(target, value, clocked=True)
