"""What no description of a call may be: each is refused where the function is made.

Terms name tensors and variables of the statement, modes that these have, arrays of levels that
their formats have, and a term for every type and semiring.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from t2s.capability.description import (
    AddressOf,
    ArrayOfLevelOf,
    BytesOf,
    CallLetter,
    CallNumber,
    CallTerm,
    DimensionOf,
    ExternalCall,
    ExternalFunction,
    ForSemiring,
    ForType,
    LabelsOf,
    LayoutOf,
    LeadOf,
    LibraryOf,
    OrderOf,
    ReturnedStatus,
    StepOf,
    StepsOf,
    StoredResult,
    StructOf,
)
from t2s.capability.printer import print_capability
from t2s.capability.slices import is_dense
from t2s.capability.verify import types_over
from t2s.core.errors import UserError
from t2s.core.types import Type
from t2s.sparse_repr.notation.ir import Access, accesses

TERMS = get_args(CallTerm)

PARTS = (
    ("call", ExternalCall, "external.ExternalCall(symbol=..., arguments=(...))"),
    ("library", LibraryOf, "external.LibraryOf(name=..., path=...)"),
    ("status", ReturnedStatus, "external.ReturnedStatus(good=(0,))"),
    ("stored", StoredResult, "external.StoredResult(pos=..., crd=..., values=..., index=...)"),
)


def verify_call(function: ExternalFunction) -> None:
    """Raise ``UserError`` for a description whose calls cannot be made."""
    for name, kind, expected in PARTS:
        given = getattr(function, name)
        if given is not None and not isinstance(given, kind):
            raise _error(function, f"the {name} is of another kind", expected, repr(given)[:80])
    for name in ("setup", "unpack", "teardown"):
        for one in getattr(function, name):
            if not isinstance(one, ExternalCall):
                what = f"{name} has something that is no call"
                raise _error(function, what, PARTS[0][2], repr(one)[:80])
    if function.call is None:
        return
    if function.library is None:
        raise _error(
            function,
            "its symbol is of no library",
            'library=external.LibraryOf(name=..., path="..."), or files=... that are installed',
            function.call.symbol,
        )
    if function.status is not None and function.call.returns is None:
        raise _error(
            function,
            "its status is a number that the call does not return",
            "returns=t2s.Int(32), or another integer, of the call",
            function.call.symbol,
        )
    result = function.capability.result.tensor
    formats = function.capability.needs_of(result).formats
    if bool(formats) != (function.stored is not None):
        raise _error(
            function,
            f"{result} is stored as {formats[0]}" if formats else f"{result} is dense",
            "stored=external.StoredResult(...), which says where its arrays are"
            if formats
            else f'formats={{"{result}": "ds"}} beside stored=',
        )
    made = _Described(function)
    for one in (*function.setup, function.call, *function.unpack, *function.teardown):
        made.check(one)
    if function.stored is not None:
        for term in (function.stored.pos, function.stored.crd, function.stored.values):
            made.check(term)


def _error(function: ExternalFunction, what: str, expected: str, given: str = "") -> UserError:
    return UserError(
        f"{function.name} cannot be called: {what}",
        location=function.location,
        expected=expected,
        given=given or print_capability(function.capability),
    )


@dataclass(frozen=True)
class _Described:
    """The terms of the calls of a function, beside its statement."""

    function: ExternalFunction

    @property
    def reads(self) -> dict[str, Access]:
        """An access of each tensor of the statement."""
        capability = self.function.capability
        return {one.tensor: one for one in (*accesses(capability.value), capability.result)}

    def check(self, term: Any) -> None:
        """Raise ``UserError`` for a term, or one below it, that names what is not there."""
        if not isinstance(term, TERMS):
            expected = "terms such as external.DataOf and external.DimensionOf, or "
            expected += "external.CallNumber(value=..., type=...)"
            raise self._error("an argument is none", expected, repr(term)[:80])
        if isinstance(term, CallLetter) and (len(term.letter) != 1 or not term.letter.isascii()):
            raise self._error("a letter is none", "one character of ASCII", repr(term.letter))
        if isinstance(term, CallNumber) and not _is_number(term):
            raise self._error(
                "a number is none",
                "an integer, or a float of a type of floats",
                f"CallNumber(value={term.value!r}, type={term.type})",
            )
        if isinstance(term, AddressOf) and isinstance(term.value, AddressOf | StructOf):
            raise self._error(
                "the address of an address is asked for",
                "the address of a number, a letter or an array",
                f"AddressOf(value={type(term.value).__name__}(...))",
            )
        if isinstance(term, DimensionOf | StepOf | LeadOf):
            self._check_integer(term)
        if isinstance(term, DimensionOf):
            self._check_variable(term)
        elif hasattr(term, "tensor"):
            self._check_tensor(term, term.tensor)
        elif isinstance(term, ForType):
            self._check_choice("type", [type for type, _ in term.terms], self._types())
        elif isinstance(term, ForSemiring):
            rings = self.function.capability.semirings
            self._check_choice("semiring", [ring for ring, _ in term.terms], rings)
        for one in _below(term):
            self.check(one)

    def _error(self, what: str, expected: str, given: str) -> UserError:
        return _error(self.function, what, expected, given)

    def _types(self) -> tuple[Any, ...]:
        capability = self.function.capability
        found = (type for ring in capability.semirings for type in types_over(capability, ring))
        return tuple(dict.fromkeys(found))

    def _check_choice(self, what: str, given: list[Any], wanted: tuple[Any, ...]) -> None:
        missing = [one for one in wanted if one not in given]
        if missing:
            one = missing[0]
            shown = f"{one.add.value}, {one.multiply.value}" if what == "semiring" else str(one)
            raise self._error(
                f"nothing is there for the {what} {shown}",
                f"a term for each {what} that the function computes",
                f"terms for {len(given)} of {len(wanted)}",
            )

    def _check_integer(self, term: DimensionOf | StepOf | LeadOf) -> None:
        type = term.type
        if type is not None and not (isinstance(type, Type) and type.is_integer):
            raise self._error(
                "the type of an integer is none",
                "type=Int(32) for int, Int(64) for long and size_t; index= for all of them",
                f"{term.__class__.__name__}(type={type})",
            )

    def _check_variable(self, term: DimensionOf) -> None:
        lists = self.function.capability.lists
        names = dict.fromkeys(name for one in self.reads.values() for name in one.variables)
        if term.variable not in names or term.variable in lists:
            what = "is a list" if term.variable in lists else "is not in the statement"
            known = ", ".join(name for name in names if name not in lists)
            raise self._error(
                f"the extent of {term.variable}, which {what}, is asked for",
                f"one of {known}" if known else "external.ExtentsOf(tensor=...), of all modes",
                f"DimensionOf(variable={term.variable!r})",
            )

    def _check_tensor(self, term: Any, name: str) -> None:
        shown = f"{type(term).__name__}(tensor={name!r})"
        access = self.reads.get(name)
        if access is None:
            raise self._error(
                f"it is given {name}, which is not in the statement",
                f"one of {', '.join(self.reads)}",
                shown,
            )
        formats = self.function.capability.needs_of(name).formats
        stored = [one for one in formats if not is_dense(one)]
        if isinstance(term, ArrayOfLevelOf) or (isinstance(term, BytesOf) and term.array):
            self._check_array(term, formats)
        elif stored and isinstance(term, StepOf | StepsOf | LeadOf | LayoutOf | LabelsOf | OrderOf):
            raise self._error(
                f"{name} is stored as {stored[0]}, which has no steps",
                "external.ArrayOfLevelOf(tensor=..., level=..., array=...), and DataOf",
                shown,
            )
        lists = self.function.capability.lists
        order = None if set(access.variables) & set(lists) else len(access.variables)
        if isinstance(term, LeadOf | LayoutOf) and order != 2:
            raise self._error(
                f"{name} has no leading dimension: it is no matrix", "a tensor of order 2", shown
            )
        if isinstance(term, StepOf) and order is not None and not 0 <= term.mode < order:
            raise self._error(
                f"{name} has no mode {term.mode}",
                f"a mode from 0 to {order - 1}" if order else "a tensor with modes",
                f"StepOf(tensor={name!r}, mode={term.mode})",
            )

    def _check_array(self, term: ArrayOfLevelOf | BytesOf, formats: tuple[Any, ...]) -> None:
        given = f"level={term.level}, array={term.array!r}"
        if not formats:
            raise self._error(
                f"{term.tensor} has no arrays of levels: it is dense",
                f'formats={{"{term.tensor}": "ds"}}, or another format, of the function',
                given,
            )
        for format in formats:
            there = 0 <= term.level < len(format.levels)
            arrays = format.levels[term.level].array_names if there else ()
            if term.array not in arrays:
                names = [
                    (at, name) for at, one in enumerate(format.levels) for name in one.array_names
                ]
                raise self._error(
                    f"{term.tensor} as {format} has no such array",
                    "; ".join(f"level={at}, array={name!r}" for at, name in names),
                    given,
                )


def _is_number(term: CallNumber) -> bool:
    kinds = int | float if term.type.is_float else int
    return isinstance(term.value, kinds)


def _below(term: Any) -> Iterator[Any]:
    """The terms that a term is made of."""
    match term:
        case ExternalCall(arguments=arguments):
            yield from arguments
        case StructOf(fields=fields):
            yield from fields
        case ForType(terms=pairs) | ForSemiring(terms=pairs):
            yield from (one for _, one in pairs)
        case _ if hasattr(term, "value") and isinstance(term.value, TERMS):
            yield term.value
