"""Devices: the numbers that turn a graph into cycles, seconds and blocks of an FPGA.

A ``Device`` holds operator latencies, the memory system, the clock and the resources of a chip or
board.  Latencies are in cycles of the device's clock.  For FPGA boards, clocks, memory bandwidths
and resource counts are published figures (T2S-Tensor, Table II, and the boards' data sheets); the
latencies of operators and memory, and all numbers of the CGRAs, are our estimates.  All are data: a
design that closed timing with other depths is described by
``dataclasses.replace(DEVICES["arria10"], ...)`` and passed as the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from types import MappingProxyType

from t2s.core.errors import UserError
from t2s.core.expr import Apply, BitOperator, Cast, Contract, Expr, ReduceLanes, ReduceRows
from t2s.core.location import user_location
from t2s.core.ops import C_FUNCTIONS, Op
from t2s.core.types import INT32, BFloat, Float, Int, Kind, Type, UInt
from t2s.core.validate import as_int
from t2s.simulator.memory.spec import Banked, Dram, find_memory

# The blocks of an FPGA: the numbers behind resource estimates.
#
# A ``Fabric`` says how many DSP blocks an operator takes and what shapes a RAM block has.  The
# shapes and the hard floating-point operators are from the vendor's data sheets; the costs of
# operators built from several blocks, and of load and store units, are our estimates.

DspTable = Mapping[tuple[Op, Type], Fraction]


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """The blocks of an FPGA family.

    Attributes
    ----------
    dsp_costs: DSP blocks of one operator by (operator, scalar type); 0 where there is no entry,
        which means logic.
    fused: types whose DSP block has a multiplier and an adder that takes its product.
    ram_shapes: the (words, bits) that one RAM block can be configured to.
    logic_words: memories of at most this many words are made of logic and take no RAM block.
    burst_words: words of the FIFO that each load and each store unit has for bursts.
    shifts_floats: whether a product of a floating-point number and a constant power of two is an
        addition to the exponent, and not a multiplier.
    """

    dsp_costs: DspTable = field(repr=False, hash=False)
    fused: frozenset[Type]
    ram_shapes: tuple[tuple[int, int], ...]
    logic_words: int
    burst_words: int
    shifts_floats: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "dsp_costs", MappingProxyType(dict(self.dsp_costs)))

    def dsp_cost(self, operator: Op, type: Type) -> Fraction:
        """DSP blocks of an operator on operands of a scalar type."""
        return self.dsp_costs.get((operator, type), Fraction(0))

    def ram_cost(self, words: int, bits: int) -> int:
        """RAM blocks of a memory with one write and one read port."""
        if words <= self.logic_words:
            return 0
        return min(-(-words // deep) * -(-bits // wide) for deep, wide in self.ram_shapes)


def _intel_dsp_costs() -> DspTable:
    """Arria 10 and Stratix 10: a block is one float32 multiply-add, or two 18 x 19 multipliers."""
    one = Fraction(1)
    single, double = Float(32), Float(64)
    fused = Op.FUSED_MULTIPLY_ADD
    costs = {(op, single): one for op in (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, fused)}
    costs |= {(Op.DIVIDE, single): 4 * one, (Op.SQUARE_ROOT, single): 3 * one}
    costs |= {(Op.RECIPROCAL_SQUARE_ROOT, single): 3 * one}
    costs |= {(op, single): 6 * one for op in C_FUNCTIONS}
    costs |= {(op, double): 4 * one for op in (Op.MULTIPLY, fused)}
    costs |= {(Op.DIVIDE, double): 15 * one}
    costs |= {(Op.SQUARE_ROOT, double): 9 * one}
    costs |= {(op, double): 17 * one for op in C_FUNCTIONS}
    costs |= {(Op.RECIPROCAL_SQUARE_ROOT, double): 9 * one}
    for half in (Float(16), BFloat(16)):
        costs |= {(op, half): one / 2 for op in (Op.MULTIPLY, fused)} | {(Op.DIVIDE, half): one}
        costs |= {(Op.SQUARE_ROOT, half): one}
        costs |= {(op, half): 2 * one for op in C_FUNCTIONS}
        costs |= {(Op.RECIPROCAL_SQUARE_ROOT, half): one}
    for bits, blocks in ((8, one / 2), (16, one / 2), (32, 2 * one), (64, 6 * one)):
        costs |= {(op, t(bits)): blocks for op in (Op.MULTIPLY, fused) for t in (Int, UInt)}
    return costs


def _amd_dsp_costs() -> DspTable:
    """UltraScale+: a block is a 27 x 18 multiplier; floats are built from several, and logic."""
    one = Fraction(1)
    single, double = Float(32), Float(64)
    fused = Op.FUSED_MULTIPLY_ADD
    costs = {(Op.MULTIPLY, single): 3 * one, (fused, single): 5 * one}
    costs |= {(op, single): 2 * one for op in (Op.ADD, Op.SUBTRACT)}
    costs |= {(op, single): 7 * one for op in C_FUNCTIONS}
    costs |= {(Op.MULTIPLY, double): 8 * one, (fused, double): 11 * one}
    costs |= {(op, double): 3 * one for op in (Op.ADD, Op.SUBTRACT)}
    costs |= {(op, double): 26 * one for op in C_FUNCTIONS}
    for half in (Float(16), BFloat(16)):
        costs |= {(op, half): 2 * one for op in (Op.ADD, Op.SUBTRACT, Op.MULTIPLY)}
        costs |= {(fused, half): 4 * one} | {(op, half): 4 * one for op in C_FUNCTIONS}
    for bits, blocks in ((8, one), (16, one), (32, 3 * one), (64, 10 * one)):
        costs |= {(op, t(bits)): blocks for op in (Op.MULTIPLY, fused) for t in (Int, UInt)}
    return costs


RAMB36_FABRIC = Fabric(
    dsp_costs=_amd_dsp_costs(),
    fused=frozenset(),
    ram_shapes=((512, 72), (1024, 36), (2048, 18), (4096, 9), (8192, 4), (16384, 2), (32768, 1)),
    logic_words=64,
    burst_words=512,
)


M20K_FABRIC = Fabric(
    dsp_costs=_intel_dsp_costs(),
    fused=frozenset({Float(32)}),
    ram_shapes=((512, 40), (1024, 20), (2048, 10), (4096, 5), (8192, 2), (16384, 1)),
    logic_words=32,
    burst_words=512,
)


def _ecp5_fabric() -> Fabric:
    """ECP5: a block is an 18 x 18 multiplier; memories of up to 64 words are LUTs."""
    costs = {
        (Op.MULTIPLY, kind(bits)): Fraction(blocks)
        for bits, blocks in ((8, 1), (16, 1), (32, 3), (64, 10))
        for kind in (Int, UInt)
    }
    costs |= {(Op.MULTIPLY, Float(32)): Fraction(4), (Op.MULTIPLY, BFloat()): Fraction(1)}
    return Fabric(
        dsp_costs=costs,
        fused=frozenset(),
        ram_shapes=((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
        logic_words=64,
        burst_words=0,
        shifts_floats=False,
    )


_MOST_RATIO = 1 << 31
"""Both terms of the ratio of two clocks are below, so that products with cycles fit 64 bits."""

LatencyTable = Mapping[tuple[Op, "TypeFamily"], int]


class TypeFamily(Enum):
    """Types that share a kind of operator."""

    BOOL = "bool"
    INTEGER = "integer"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


def family_of(type: Type) -> TypeFamily:
    """The family of a type, lanes ignored."""
    match type.kind:
        case Kind.BOOL:
            return TypeFamily.BOOL
        case Kind.INT | Kind.UINT:
            return TypeFamily.INTEGER
        case Kind.BFLOAT:
            return TypeFamily.BFLOAT16
        case Kind.FLOAT:
            return TypeFamily(f"float{type.bits}")


@dataclass(frozen=True, kw_only=True)
class Device:
    """A target of the simulator.

    Attributes
    ----------
    name, description: for reports.
    clock_hz: cycles per second; only the conversion of cycles to seconds and of the memory
        bandwidth to bytes per cycle depends on it.
    operator_latencies: cycles by (operator, type family); 0 where there is no entry.
    conversion_latency: cycles of a cast between a float and any other number type.
    load_latency: cycles from a load's firing until its value arrives.
    store_latency: cycles from a store's firing until the value is in memory.
    bytes_per_cycle_per_unit: bandwidth of one load or store unit; ``None`` is unlimited.
    port_per_tensor: whether the PEs of a node share a port for each tensor that they access, which
        serves one access in a cycle, an element or an aligned vector, as an ``m_axi`` bundle does
        (beside machines, PEs that are kernels of their own do not); if not, each PE is a unit by
        itself.
    memory_bytes_per_second: bandwidth shared by all load and store units; ``None`` is unlimited.
    memory: a DRAM in place of constant latencies and bandwidth (``load_latency``,
        ``store_latency`` and ``memory_bytes_per_second``, which then have no effect); ``None`` is
        none.
    banked: the banks on the chip that tensors in ``MemorySpace.SHARED`` are in; without any, their
        accesses take no time.
    dsp_blocks, ram_blocks: resources of the chip; ``None`` where the notion does not apply.
    fabric: the capabilities of these blocks; ``None`` where the notion does not apply.
    """

    name: str
    description: str
    clock_hz: int
    operator_latencies: LatencyTable = field(default_factory=dict, repr=False, hash=False)
    conversion_latency: int = 0
    load_latency: int = 0
    store_latency: int = 0
    bytes_per_cycle_per_unit: int | None = None
    port_per_tensor: bool = False
    memory_bytes_per_second: int | None = None
    memory: Dram | None = None
    banked: Banked | None = None
    dsp_blocks: int | None = None
    ram_blocks: int | None = None
    fabric: Fabric | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for what, value, least in (
            ("clock_hz", self.clock_hz, 1),
            ("conversion_latency", self.conversion_latency, 0),
            ("load_latency", self.load_latency, 0),
            ("store_latency", self.store_latency, 0),
            ("bytes_per_cycle_per_unit", self.bytes_per_cycle_per_unit, 1),
            ("memory_bytes_per_second", self.memory_bytes_per_second, 1),
            *((f"the latency of {op.value}", n, 0) for (op, _), n in self._latency_items()),
        ):
            if value is not None and ((number := as_int(value)) is None or number < least):
                raise UserError(
                    f"device {self.name!r}: {what} is out of range",
                    location=user_location(),
                    expected=f"an integer of at least {least}",
                    given=repr(value),
                )
            if value is not None and hasattr(self, what):
                object.__setattr__(self, what, number)
        self._check_memory()
        frozen = MappingProxyType({key: int(n) for key, n in self.operator_latencies.items()})
        object.__setattr__(self, "operator_latencies", frozen)

    def _check_memory(self) -> None:
        if self.banked is not None and not isinstance(self.banked, Banked):
            raise UserError(
                f"device {self.name!r}: banked is not a banked memory",
                location=user_location(),
                expected="a Banked, or None for shared tensors whose accesses take no time",
                given=repr(self.banked),
            )
        if self.memory is None:
            return
        if not isinstance(self.memory, Dram):
            raise UserError(
                f"device {self.name!r}: memory is not a DRAM",
                location=user_location(),
                expected="a Dram, or None for constant latency and bandwidth",
                given=repr(self.memory),
                hint="device.with_memory('ddr4-2133') takes names",
            )
        ratio = self.memory.clock_hz / Fraction(self.clock_hz)
        if max(ratio.numerator, ratio.denominator) >= _MOST_RATIO:
            raise UserError(
                f"the clocks of device {self.name!r} and memory {self.memory.name!r} have no "
                "simple ratio",
                location=user_location(),
                expected=f"numerator and denominator below {_MOST_RATIO}",
                given=str(ratio),
                hint="round clock_hz to a multiple of 1000",
            )

    def with_memory(self, memory: str | Dram) -> Device:
        """This device with another memory: a ``Dram``, or a name of ``MEMORIES``.

        ``"ideal"`` is the memory of constant latency and bandwidth that the device describes.
        """
        return replace(self, memory=find_memory(memory))

    def with_banked(self, banked: Banked | None) -> Device:
        """This device with other banks for shared tensors."""
        return replace(self, banked=banked)

    def _latency_items(self) -> list[tuple[tuple[Op, TypeFamily], int]]:
        return list(self.operator_latencies.items())

    @property
    def memory_bytes_per_cycle(self) -> Fraction | None:
        """The shared memory bandwidth in bytes per cycle, exactly; ``None`` is unlimited."""
        if self.memory_bytes_per_second is None:
            return None
        return Fraction(self.memory_bytes_per_second, self.clock_hz)

    def operator_latency(self, operator: Op, type: Type) -> int:
        """Cycles of an operator on operands of a type."""
        return self.operator_latencies.get((operator, family_of(type)), 0)

    @property
    def latency_of(self) -> Callable[[Expr], int]:
        """Cycles of one node of an expression: the function that ``graph.analysis`` asks for.

        A tree over lanes takes ``ceil(log2(lanes))`` levels of its operator, an operator on bits
        as many levels of integer additions as a tree over the bits; selections, constants and
        broadcasts are wires or multiplexers and take none.  A product of matrices takes a
        multiplication and an addition, besides the latency of the unit that computes it.
        """

        def latency(expr: Expr) -> int:
            match expr:
                case Apply(operator=operator, operands=operands):
                    return self.operator_latency(operator, operands[0].type)
                case ReduceLanes(operator=operator, value=value):
                    levels = (value.type.lanes - 1).bit_length()
                    return levels * self.operator_latency(operator, value.type)
                case ReduceRows(operator=operator, value=value, type=type):
                    levels = (value.type.lanes // type.lanes - 1).bit_length()
                    return levels * self.operator_latency(operator, value.type)
                case Contract(add=add, multiply=multiply, type=type):
                    return self.operator_latency(multiply, type) + self.operator_latency(add, type)
                case BitOperator(words=words):
                    levels = (32 * words.type.lanes - 1).bit_length()
                    return levels * self.operator_latency(Op.ADD, INT32)
                case Cast(value=value, type=type):
                    converts = type.is_float or value.type.is_float
                    same = family_of(type) is family_of(value.type)
                    return self.conversion_latency if converts and not same else 0
            return 0

        return latency


_ADDITIVE = (Op.ADD, Op.SUBTRACT)
_EXTREMES = (Op.MINIMUM, Op.MAXIMUM)
_SHIFTS = (Op.SHIFT_LEFT, Op.SHIFT_RIGHT)
_ROUNDING = (Op.FLOOR, Op.CEILING)
_ORDER = (Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL, Op.EQUAL, Op.NOT_EQUAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FloatLatencies:
    """Cycles of the operators of one floating-point family."""

    add: int
    multiply: int
    divide: int
    square_root: int
    exponential: int
    compare: int = 1
    fused: int | None = None


def _latency_table(
    floats: Mapping[TypeFamily, _FloatLatencies],
    *,
    integer_multiply: int,
    integer_divide: int,
) -> dict[tuple[Op, TypeFamily], int]:
    """An FPGA's table: integer comparisons, logic and selections are combinational."""
    integer = TypeFamily.INTEGER
    table = {(op, integer): 1 for op in (*_ADDITIVE, *_EXTREMES, Op.NEGATE, Op.ABSOLUTE)}
    table |= {(op, integer): 1 for op in _SHIFTS}
    table[Op.MULTIPLY, integer] = integer_multiply
    table[Op.FUSED_MULTIPLY_ADD, integer] = integer_multiply + 1
    table[Op.FLOOR_DIVIDE, integer] = table[Op.MODULO, integer] = integer_divide
    for family, cycles in floats.items():
        table |= {(op, family): cycles.add for op in _ADDITIVE}
        table |= {(op, family): cycles.compare for op in (*_EXTREMES, *_ORDER)}
        table[Op.MULTIPLY, family] = cycles.multiply
        table[Op.FUSED_MULTIPLY_ADD, family] = cycles.fused or cycles.multiply + cycles.add
        table[Op.DIVIDE, family] = cycles.divide
        table[Op.SQUARE_ROOT, family] = cycles.square_root
        table[Op.RECIPROCAL_SQUARE_ROOT, family] = cycles.square_root
        table |= {(op, family): cycles.exponential for op in C_FUNCTIONS}
        table |= {(op, family): cycles.add for op in _ROUNDING}
    return table


_HARD_FLOAT = _FloatLatencies(add=4, multiply=4, divide=16, square_root=14, exponential=20, fused=5)
_SOFT_HALF = _FloatLatencies(add=4, multiply=3, divide=10, square_root=10, exponential=20)
_SOFT_DOUBLE = _FloatLatencies(add=7, multiply=8, divide=30, square_root=30, exponential=30)
_FPGA_LATENCIES = _latency_table(
    {
        TypeFamily.FLOAT16: _SOFT_HALF,
        TypeFamily.BFLOAT16: _SOFT_HALF,
        TypeFamily.FLOAT32: _HARD_FLOAT,
        TypeFamily.FLOAT64: _SOFT_DOUBLE,
    },
    integer_multiply=3,
    integer_divide=32,
)

_ULTRASCALE_HALF = _FloatLatencies(add=5, multiply=4, divide=15, square_root=15, exponential=16)
_ULTRASCALE_FLOAT = _FloatLatencies(add=7, multiply=4, divide=28, square_root=28, exponential=20)
_ULTRASCALE_LATENCIES = _latency_table(
    {
        TypeFamily.FLOAT16: _ULTRASCALE_HALF,
        TypeFamily.BFLOAT16: _ULTRASCALE_HALF,
        TypeFamily.FLOAT32: _ULTRASCALE_FLOAT,
        TypeFamily.FLOAT64: _FloatLatencies(
            add=8, multiply=7, divide=57, square_root=57, exponential=35
        ),
    },
    integer_multiply=3,
    integer_divide=36,
)

_CGRA_FMA_LATENCY = 4
_ON_CGRA_FMA = (*_ADDITIVE, Op.MULTIPLY, Op.FUSED_MULTIPLY_ADD)


def _cgra(size: int) -> Device:
    """A grid of cells, a quarter of them with an FMA; other operations of a cell take no time."""
    return Device(
        name=f"cgra{size}",
        description=f"a CGRA of {size} x {size} cells, {size * size // 4} of them with an FMA on "
        f"float64 of {_CGRA_FMA_LATENCY} cycles; memory is unlimited, and the 1 GHz clock nominal",
        clock_hz=1_000_000_000,
        operator_latencies={(op, TypeFamily.FLOAT64): _CGRA_FMA_LATENCY for op in _ON_CGRA_FMA},
    )


_ECP5_LATENCIES = {
    **_latency_table({}, integer_multiply=3, integer_divide=32),
    **{(op, TypeFamily.FLOAT32): 6 for op in _ADDITIVE},
    **{(op, TypeFamily.FLOAT32): 1 for op in _EXTREMES},
    (Op.MULTIPLY, TypeFamily.FLOAT32): 7,
}


def _with_block_ram(
    name: str, part: str, megahertz: int, dsp_blocks: int | None, ram_blocks: int, fabric: Fabric
) -> Device:
    """An FPGA with its tensors in block RAM: latencies are the registers that a chip gets."""
    return Device(
        name=name,
        description=f"{part} with tensors in block RAM, {megahertz} MHz",
        clock_hz=megahertz * 1_000_000,
        operator_latencies=_ECP5_LATENCIES,
        load_latency=2,
        store_latency=1,
        dsp_blocks=dsp_blocks,
        ram_blocks=ram_blocks,
        fabric=fabric,
    )


def _ecp5(kilo_luts: int, dsp_blocks: int, ram_blocks: int) -> Device:
    part = f"Lattice LFE5U-{kilo_luts}F"
    return _with_block_ram(f"ecp5-{kilo_luts}k", part, 150, dsp_blocks, ram_blocks, _ecp5_fabric())


def _gw2a_fabric() -> Fabric:
    """GW2A: a block is an 18 x 18 multiplier, or two of 9 x 9; small memories are LUTs."""
    costs = {
        (Op.MULTIPLY, kind(bits)): blocks
        for bits, blocks in ((8, Fraction(1, 2)), (16, Fraction(1)), (32, Fraction(4)))
        for kind in (Int, UInt)
    }
    return Fabric(
        dsp_costs=costs,
        fused=frozenset(),
        ram_shapes=((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
        logic_words=64,
        burst_words=0,
    )


_GATEMATE_FABRIC = Fabric(
    dsp_costs={},
    fused=frozenset(),
    ram_shapes=((512, 40), (1024, 20), (2048, 10), (4096, 5), (8192, 2), (16384, 1)),
    logic_words=64,
    burst_words=0,
)
"""GateMate: products are made of the cells of logic; a block is half of a memory of 40 Kbit."""


_XC7_FABRIC = Fabric(
    dsp_costs={
        (Op.MULTIPLY, kind(bits)): blocks
        for bits, blocks in ((8, Fraction(1)), (16, Fraction(1)), (32, Fraction(3)))
        for kind in (Int, UInt)
    },
    fused=frozenset(),
    ram_shapes=((512, 72), (1024, 36), (2048, 18), (4096, 9), (8192, 4), (16384, 2), (32768, 1)),
    logic_words=64,
    burst_words=0,
)
"""Series 7: a DSP block is a 25 x 18 multiplier, a block of memory has 36 Kbit."""


_TINY_TAPEOUT = Device(
    name="tiny-tapeout",
    description="a tile of Tiny Tapeout: standard cells at 50 MHz, and streams in place of memory",
    clock_hz=50_000_000,
    operator_latencies=_latency_table({}, integer_multiply=2, integer_divide=32),
    load_latency=0,
    store_latency=0,
)

_RTL_KERNEL = Device(
    name="rtl-kernel",
    description="an RTL kernel on an FPGA of AMD: tensors are copied into block RAM, 300 MHz",
    clock_hz=300_000_000,
    operator_latencies=_ECP5_LATENCIES,
    load_latency=2,
    store_latency=1,
)

_CAPSTAN = Device(
    name="capstan",
    description="Capstan: units of 6 stages and 16 lanes at 1 GHz, whose stages and links are in "
    "the latencies of a graph's channels; memory is unlimited unless there is a DRAM",
    clock_hz=1_000_000_000,
    banked=Banked(),
)

_ALL = (
    Device(
        name="ideal",
        description="a limit, not a machine: operators and memory take no time and memory is "
        "unlimited, so only the graph's own structure costs cycles; the 1 GHz clock is nominal",
        clock_hz=1_000_000_000,
    ),
    Device(
        name="arria10",
        description="Intel Arria 10 GX 1150 board, two banks of DDR4 (34.1 GB/s), 215 MHz",
        clock_hz=215_000_000,
        operator_latencies=_FPGA_LATENCIES,
        conversion_latency=4,
        load_latency=120,
        store_latency=40,
        bytes_per_cycle_per_unit=64,
        memory_bytes_per_second=34_100_000_000,
        dsp_blocks=1518,
        ram_blocks=2713,
        fabric=M20K_FABRIC,
    ),
    Device(
        name="stratix10",
        description="Intel Stratix 10 SX 2800 board, four banks of DDR4 (76.8 GB/s), 251 MHz",
        clock_hz=251_000_000,
        operator_latencies=_FPGA_LATENCIES,
        conversion_latency=4,
        load_latency=140,
        store_latency=50,
        bytes_per_cycle_per_unit=64,
        memory_bytes_per_second=76_800_000_000,
        dsp_blocks=5760,
        ram_blocks=11721,
        fabric=M20K_FABRIC,
    ),
    Device(
        name="alveo_u55c",
        description="AMD Alveo U55C, HBM2 (460 GB/s), 300 MHz; a port for each tensor of a node",
        clock_hz=300_000_000,
        operator_latencies=_ULTRASCALE_LATENCIES,
        conversion_latency=5,
        load_latency=100,
        store_latency=60,
        bytes_per_cycle_per_unit=64,
        port_per_tensor=True,
        memory_bytes_per_second=460_000_000_000,
        dsp_blocks=9024,
        ram_blocks=2016,
        fabric=RAMB36_FABRIC,
    ),
    Device(
        name="aup_zu3",
        description="AUP-ZU3 board (Zynq UltraScale+ ZU3EG), DDR4 (19.2 GB/s), 200 MHz; a port "
        "for each tensor of a node",
        clock_hz=200_000_000,
        operator_latencies=_ULTRASCALE_LATENCIES,
        conversion_latency=5,
        load_latency=60,
        store_latency=40,
        bytes_per_cycle_per_unit=16,
        port_per_tensor=True,
        memory_bytes_per_second=19_200_000_000,
        dsp_blocks=360,
        ram_blocks=216,
        fabric=RAMB36_FABRIC,
    ),
    _ecp5(25, 28, 56),
    _ecp5(45, 72, 108),
    _ecp5(85, 156, 208),
    _with_block_ram("gw2a-18", "Gowin GW2AR-18", 50, 48, 46, _gw2a_fabric()),
    _with_block_ram("ccgm1a1", "Cologne Chip GateMate CCGM1A1", 40, None, 64, _GATEMATE_FABRIC),
    _with_block_ram("xc7a35t", "AMD Artix-7 35T", 150, 90, 50, _XC7_FABRIC),
    _with_block_ram("xc7a100t", "AMD Artix-7 100T", 150, 240, 135, _XC7_FABRIC),
    *(_cgra(size) for size in (8, 16, 32)),
    _CAPSTAN,
    _TINY_TAPEOUT,
    _RTL_KERNEL,
)

DEVICES: Mapping[str, Device] = MappingProxyType({device.name: device for device in _ALL})


def find_device(device: str | Device) -> Device:
    """The device of that name, or the device itself; a ``UserError`` lists the names."""
    if isinstance(device, Device):
        return device
    if not isinstance(device, str) or device not in DEVICES:
        raise UserError(
            "unknown device",
            location=user_location(),
            expected=f"one of {', '.join(DEVICES)}, or a Device",
            given=repr(device),
            hint="dataclasses.replace(DEVICES['arria10'], clock_hz=...) describes a variant",
        )
    return DEVICES[device]
