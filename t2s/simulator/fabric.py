"""What the blocks of an FPGA do: the numbers that resource estimates are made of.

A ``Fabric`` says how many DSP blocks an operator takes and what shapes a RAM block has.  The shapes
and the hard floating-point operators are those of the vendor's data sheets; the costs of all
operators that are built from several blocks, and of load and store units, are estimates of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from t2s.core.ops import C_FUNCTIONS, Op
from t2s.core.types import BFloat, Float, Int, Type, UInt

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
    logic_words: memories of at most so many words are made of logic and take no RAM block.
    burst_words: words of the FIFO that each load and each store unit has for bursts.
    """

    dsp_costs: DspTable = field(repr=False, hash=False)
    fused: frozenset[Type]
    ram_shapes: tuple[tuple[int, int], ...]
    logic_words: int
    burst_words: int

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


M20K_FABRIC = Fabric(
    dsp_costs=_intel_dsp_costs(),
    fused=frozenset({Float(32)}),
    ram_shapes=((512, 40), (1024, 20), (2048, 10), (4096, 5), (8192, 2), (16384, 1)),
    logic_words=32,
    burst_words=512,
)
