"""Spatial spelling of names, types and expressions of a program of patterns."""

from __future__ import annotations

from dataclasses import dataclass, field

from t2s.backends.capstan.spatial_ast import (
    SpatialCall,
    SpatialConversion,
    SpatialExpression,
    SpatialMember,
    SpatialName,
    SpatialNegation,
    SpatialNumber,
    SpatialOperation,
)
from t2s.backends.text.identifiers import Identifiers, plain
from t2s.core.errors import UnsupportedError
from t2s.core.expr import Apply, Const, Expr, Local, Parameter, Select
from t2s.core.ops import Op
from t2s.core.types import INT32, Float, Int, Type, UInt
from t2s.patterns.ir import Parallel, PatternMemory, PatternProgram

# Scala names for the names of a program: legal, unique, and no keywords of Scala or Spatial.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SCALA = _words(
    "abstract case catch class def do else extends false final finally for forSome if implicit"
    " import lazy macro match new null object override package private protected return sealed"
    " super this throw trait try true type val var while with yield _"
)
DSL = _words(
    "Accel Array ArgIn ArgOut Bit Boolean Double DRAM FIFO FixPt Float Foreach Int List Long"
    " MemReduce Parallel Pipe Reduce Reg RegFile SRAM Scan ScanRed Sequential Seq SparseDRAM"
    " SparseParSRAM SparseParSRAMSwizzle SparseSRAM SpatialTest Stream String T Tuple2 U32 Unit"
    " abs alias args assert barrierRead barrierWrite by deq enq fill gen_bitvector getArg getMem"
    " load loadCSV1D main max min mux par println retiming scala setArg setMem spatial store"
    " stream_load_vec stream_store_vec to until value writeCSV1D RMW RMW_ equals hashCode toString"
    " clone notify wait eq ne synchronized getClass isInstanceOf asInstanceOf finalize"
)
"""Names that generated programs use themselves, and members of every Scala class."""


def spatial_names() -> Identifiers:
    """A supply of legal names for one file: ``val`` becomes ``val_2``."""
    return Identifiers(plain, SCALA | DSL)


TYPES: dict[Type, str] = {
    INT32: "Int",
    Int(64): "Long",
    Float(32): "Float",
    Float(64): "Double",
    UInt(32): "U32",
}
OPERATORS = {
    Op.ADD: "+",
    Op.SUBTRACT: "-",
    Op.MULTIPLY: "*",
    Op.FLOOR_DIVIDE: "/",
    Op.GREATER_EQUAL: ">=",
    Op.AND: "&&",
}
BITWISE = {Op.AND: "&", Op.OR: "|"}
"""Bitwise operators."""


def element_type(program: PatternProgram) -> Type:
    """The type of the values of a program; its coordinates are 32-bit integers."""
    for memory in program.memories:
        if memory.holds is not None and memory.holds.level is None:
            return memory.type
    return INT32


def spelled_type(type: Type, program: PatternProgram) -> str:
    """The name of a type.  Raises ``UnsupportedError`` for one that Spatial does not have."""
    if type not in TYPES:
        raise UnsupportedError(
            f"Spatial has no values of type {type} here",
            location=program.location,
            expected=f"one of {', '.join(map(str, TYPES))}",
        )
    return TYPES[type]


@dataclass
class SpatialSpelling:
    """Spelling for one program: registers and arguments are read by ``value``."""

    source: PatternProgram
    supply: Identifiers = field(default_factory=spatial_names)
    names: dict[str, str] = field(default_factory=dict)
    registers: set[str] = field(default_factory=set)
    memories: dict[str, PatternMemory] = field(default_factory=dict)

    def name(self, name: str) -> str:
        """The identifier of a name of the program."""
        if name not in self.names:
            self.names[name] = self.supply.fresh(name)
        return self.names[name]

    def type(self, type: Type) -> str:
        """The name of a type; ``T`` is that of the values."""
        return "T" if type == element_type(self.source) else spelled_type(type, self.source)

    def parallel(self, parallel: Parallel) -> SpatialExpression:
        """The parallelization factor."""
        if parallel.variable is not None:
            return SpatialName(name=self.name(parallel.variable))
        return SpatialNumber(value=parallel.factor)

    def expression(self, value: Expr) -> SpatialExpression:
        """An expression."""
        match value:
            case Const(value=number, type=type):
                return self.number(number, type)
            case Local(name=name) if name in self.registers:
                return SpatialMember(owner=self.name(name), member="value")
            case Local(name=name):
                return SpatialName(name=self.name(name))
            case Parameter(name=name) if name in dict(self.source.environment):
                return SpatialName(name=self.name(name))
            case Parameter(name=name):
                return SpatialMember(owner=self.name(name), member="value")
            case Apply(operator=Op.NEGATE, operands=(Const() as inner,)):
                difference = 0 - inner
                return self.expression(difference)
            case Apply(operator=Op.NEGATE, operands=(inner,)):
                return SpatialNegation(value=self.expression(inner))
            case Apply(operator=operator, operands=(left, right)) if (
                operator in BITWISE and not value.type.is_bool
            ):
                return SpatialOperation(
                    operator=BITWISE[operator],
                    left=self.expression(left),
                    right=self.expression(right),
                )
            case Apply(operator=operator, operands=(left, right)) if operator in OPERATORS:
                return SpatialOperation(
                    operator=OPERATORS[operator],
                    left=self.expression(left),
                    right=self.expression(right),
                )
            case Select(condition=condition, if_true=first, if_false=second):
                operands = tuple(self.expression(operand) for operand in (condition, first, second))
                return SpatialCall(function="mux", arguments=operands)
        raise TypeError(f"{value.__class__.__name__} has no form in Spatial")

    def number(self, number: int | float | bool, type: Type) -> SpatialExpression:
        """A literal, with its type if it is not an index."""
        literal: SpatialExpression = SpatialNumber(value=abs(number))
        if number < 0:
            literal = SpatialNegation(value=literal)
        return literal if type == INT32 else SpatialConversion(value=literal, type=self.type(type))
