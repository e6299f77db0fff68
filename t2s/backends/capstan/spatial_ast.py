"""The part of Spatial that programs of patterns need, as dataclasses [Stardust, sec. 4].

What a name means is not known here: ``emit.py`` decides, ``printer.py`` spells, ``parser.py``
gives the same tree back, and ``reader.py`` says what it means.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialNumber(Term):
    """A literal that is not negative."""

    value: int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialText(Term):
    """A literal in quotes; ``text`` has neither quotes nor backslashes."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialName(Term):
    """A value, a memory or an argument."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialCall(Term):
    """``function[type](arguments)``; also a word of a memory: ``memory(index)``."""

    function: str
    arguments: tuple[SpatialExpression, ...]
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialMember(Term):
    """``owner.member`` or ``owner.member(arguments)``."""

    owner: str
    member: str
    arguments: tuple[SpatialExpression, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialConversion(Term):
    """``value.to[type]``."""

    value: SpatialExpression
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialOperation(Term):
    """A binary operator."""

    operator: str
    left: SpatialExpression
    right: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialNegation(Term):
    """``-value``."""

    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialZeros(Term):
    """An array of the host with ``size`` zeros."""

    type: str
    size: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialMemory(Term):
    """``kind[type](partitions)(size, barrier)``, with ``.retiming`` or without."""

    kind: str
    type: str
    size: SpatialExpression | None = None
    partitions: SpatialExpression | None = None
    barrier: bool = False
    retiming: bool = False


SpatialExpression = (
    SpatialNumber
    | SpatialText
    | SpatialName
    | SpatialCall
    | SpatialMember
    | SpatialConversion
    | SpatialOperation
    | SpatialNegation
    | SpatialZeros
    | SpatialMemory
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialValue(Term):
    """``val name = value``."""

    name: str
    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialWrite(Term):
    """``memory(index) = value``."""

    memory: str
    index: SpatialExpression
    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialAlias(Term):
    """``view.alias = memory``."""

    view: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialOut(Term):
    """``register := value``."""

    register: str
    value: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialEffect(Term):
    """A call that is there for what it does."""

    call: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialSlice(Term):
    """``memory(begin::end par parallel)``."""

    memory: str
    begin: SpatialExpression
    end: SpatialExpression
    parallel: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialBlock(Term):
    """``memory load slice``, or ``slice store memory`` if ``stores``."""

    memory: str
    slice: SpatialSlice
    stores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialStream(Term):
    """``memory stream_load_vec(...)`` or ``memory stream_store_vec(...)`` if ``stores``."""

    memory: str
    queue: str
    begin: SpatialExpression
    length: SpatialExpression
    stores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialCounter(Term):
    """``extent by 1 par parallel``."""

    extent: SpatialExpression
    parallel: SpatialExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialScan(Term):
    """``Scan(parallel, bits, join, queues.deq)``; ``ScanRed`` of a reduction."""

    parallel: SpatialExpression
    bits: SpatialExpression
    join: str
    queues: tuple[str, ...]


SpatialHeader = SpatialCounter | SpatialScan


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialForeach(Term):
    """``Foreach(header) { binders => body }``."""

    header: SpatialHeader
    binders: tuple[str, ...]
    body: tuple[SpatialStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialReduce(Term):
    """``Reduce(register)(header) { binders => body; value } { _ + _ }``."""

    register: str
    header: SpatialHeader
    binders: tuple[str, ...]
    body: tuple[SpatialStatement, ...]
    value: SpatialExpression


SpatialStatement = (
    SpatialValue
    | SpatialWrite
    | SpatialAlias
    | SpatialOut
    | SpatialEffect
    | SpatialBlock
    | SpatialStream
    | SpatialForeach
    | SpatialReduce
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialFile(Term):
    """A file: the environment as parameters of the class, the host's part around the kernel.

    ``element`` is what ``T`` stands for.
    """

    name: str
    parameters: tuple[tuple[str, int], ...]
    element: str
    before: tuple[SpatialStatement, ...]
    kernel: tuple[SpatialStatement, ...]
    after: tuple[SpatialStatement, ...]
