"""Names of programs as names of Scala: legal, unique, and none of the language's or the DSL's."""

from __future__ import annotations

from t2s.backends.text.identifiers import Identifiers, plain


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
"""Words that a program uses, and members that each Scala class has."""


def spatial_names() -> Identifiers:
    """A supply of names for one file: ``val`` becomes ``val_2``."""
    return Identifiers(plain, SCALA | DSL)
