"""The points of ``sparse.search``: orders of loops, formats, lanes and directives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from math import prod

import numpy as np

from t2s.core.errors import T2SError, UserError
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.walk import walk
from t2s.driver.compiled_kernel import Kernel
from t2s.sparse_repr.concrete.schedule_text import parse_schedule
from t2s.sparse_repr.formats import Format, Part, make_format
from t2s.sparse_repr.lowering.diagram import block_counts
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    accesses,
    all_variables,
    print_expression,
    seen_patterns,
)
from t2s.sparse_repr.tensors.tensor import SparseTensor

MOST_POSITIONS = 2
"""Formats with more positions in a level than this number for each entry are left out."""

SPLIT_FACTORS = (8, 32)

DIRECTIVES = ("skip", "scan", "precompute", "split")

LEFT_OUT = ("two directives at once", "lanes of inner loops", "vectors", "fused loops", "depths")
"""What no search of this space tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A choice of everything; ``schedule`` is the text of its directives."""

    order: tuple[str, ...]
    formats: tuple[tuple[str, Format], ...]
    lanes: int
    schedule: str
    extra: str

    def kernel(self, assignment: Assignment) -> Kernel:
        """The compiled point.  Raises ``UserError`` for the reason why there is none."""
        stored = with_formats(assignment, dict(self.formats))
        return Kernel(stored, parse_schedule(self.schedule), assignment.semiring)


@dataclass(frozen=True, kw_only=True)
class CompiledPoint:
    """A legal candidate, as the kernel that runs, with its number of blocks."""

    candidate: Candidate
    kernel: Kernel
    blocks: int


@dataclass(frozen=True, kw_only=True)
class SparseSpace:
    """What a search may choose.

    Attributes
    ----------
    assignment: with the declared formats.
    letters: for each tensor the letters of levels that it may have; none if it stays as declared.
    extents: of all variables.
    lanes: the most lanes of the outermost loop; powers of two up to it are points.
    directives: of ``DIRECTIVES``.
    blocks: the most blocks that a point may have.
    """

    assignment: Assignment
    letters: Mapping[str, tuple[str, ...]]
    extents: Mapping[str, int]
    lanes: int
    directives: tuple[str, ...]
    blocks: int | None

    @property
    def text(self) -> str:
        """The space in words."""
        loops = ", ".join(all_variables(self.assignment))
        stored = "; ".join(
            f"{name} {' or '.join(letters) if letters else 'as declared'}"
            for name, letters in self.letters.items()
        )
        more = f", {', '.join(self.directives)}" if self.directives else ""
        without = [kind for kind in DIRECTIVES if kind not in self.directives]
        return (
            f"all orders of {loops}; {stored}; up to {self.lanes} lanes of the outermost loop{more}"
            f"; left out are {', '.join((*without, *LEFT_OUT))}"
        )

    def candidates(self) -> Iterator[tuple[Candidate, ...]]:
        """All points, legal or not, in groups that differ in lanes only, the fewest lanes first."""
        for order in permutations(all_variables(self.assignment)):
            names = tuple(self.letters)
            for formats in product(*(self._formats(name, order) for name in names)):
                stored = tuple(zip(names, formats, strict=True))
                for loops, extra in self._variants(order):
                    yield tuple(
                        Candidate(
                            order=loops,
                            formats=stored,
                            lanes=lanes,
                            schedule=_schedule(loops, extra, lanes),
                            extra=extra,
                        )
                        for lanes in self._lane_counts(order)
                    )

    def compiled(self, refused: dict[str, int]) -> Iterator[CompiledPoint | None]:
        """The legal points, equal ones once; ``None`` for each other candidate.

        Those that the compiler refuses are added to ``refused``, by the first line of its error.
        More lanes of a refused point are not tried: they are refused for the same reason.
        """
        met: set[str] = set()
        for group in self.candidates():
            reason = ""
            for candidate in group:
                point: CompiledPoint | None = None
                if not reason:
                    try:
                        kernel = candidate.kernel(self.assignment)
                    except T2SError as error:
                        reason = getattr(error, "message", str(error)).splitlines()[0]
                    else:
                        blocks = sum(block_counts(kernel.diagrams).values())
                        key = f"{kernel}\n{candidate.formats}"
                        if self.blocks is not None and blocks > self.blocks:
                            reason = f"more than {self.blocks} blocks"
                        elif key not in met:
                            met.add(key)
                            point = CompiledPoint(candidate=candidate, kernel=kernel, blocks=blocks)
                if reason:
                    refused[reason] = refused.get(reason, 0) + 1
                yield point

    def _lane_counts(self, order: tuple[str, ...]) -> tuple[int, ...]:
        most = min(self.lanes, max(1, self.extents[order[0]])) if order else 1
        return tuple(1 << power for power in range(most.bit_length()) if 1 << power <= most)

    def _formats(self, name: str, order: tuple[str, ...]) -> tuple[Format, ...]:
        """The formats of a tensor; its levels are in the order in which the loops walk them."""
        declared = self.assignment.tensor(name).format
        if not self.letters[name]:
            return (declared,)
        formats: dict[Format, None] = {}
        every = (self.assignment.result, *accesses(self.assignment.value))
        for access in every:
            if access.tensor == name:
                count = len(access.variables)
                modes = sorted(range(count), key=lambda m: order.index(access.variables[m]))
                for letters in self.letters[name]:
                    format = make_format(letters, None if set(letters) == {"d"} else modes)
                    formats[replace(format, place=declared.place)] = None
        return tuple(formats)

    def _variants(self, order: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
        """The loops, and directives besides their order and the lanes; at most one directive."""
        yield order, ""
        value = self.assignment.value
        read = accesses(value)
        if "skip" in self.directives:
            for variable in order:
                if sum(variable in access.variables for access in read) > 1:
                    yield order, f"skip({variable})"
        if "scan" in self.directives and len(read) > 1:
            yield order, "scan()"
        if "precompute" in self.directives:
            workspace = _unused_name("T", [tensor.name for tensor in self.assignment.tensors])
            for part in _pairs_of_factors(value):
                yield order, f"precompute({part},{workspace})"
        if "split" in self.directives and order:
            first, *rest = order
            names = [_unused_name(f"{first}{number}", list(order)) for number in range(2)]
            for factor in SPLIT_FACTORS:
                if factor < self.extents[first]:
                    yield (*names, *rest), f"split({first},{names[0]},{names[1]},{factor})"


def _schedule(loops: tuple[str, ...], extra: str, lanes: int) -> str:
    """Directives as text: the split names loops, so it comes before their order."""
    parts = [f"reorder({','.join(loops)})"] if loops else []
    if extra:
        parts.insert(0 if extra.startswith("split") else len(parts), extra)
    if lanes > 1:
        parts.append(f"parallelize({loops[0]},{lanes})")
    return ", ".join(parts)


def _unused_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _pairs_of_factors(value: Expression) -> list[str]:
    """Products of two factors inside of a product of three or more, as text."""
    pairs: dict[str, None] = {}
    inside = {inner for seen in seen_patterns(value) for inner in walk(seen)}
    for term in walk(value):
        factors = _factors(term) if isinstance(term, Combine) and term not in inside else ()
        if len(factors) > 2:
            for left, right in combinations(factors, 2):
                pairs[f"{print_expression(left)}*{print_expression(right)}"] = None
    return list(pairs)


def _factors(value: Expression) -> tuple[Access, ...]:
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            return (*_factors(left), *_factors(right))
        case Access():
            return (value,)
    return ()


def with_formats(assignment: Assignment, formats: Mapping[str, Format]) -> Assignment:
    """The assignment with other formats of some tensors."""
    tensors = tuple(
        replace(tensor, format=formats.get(tensor.name, tensor.format))
        for tensor in assignment.tensors
    )
    return replace(assignment, tensors=tensors)


def letters_of_input(declared: Format, tensor: SparseTensor, levels: str) -> tuple[str, ...]:
    """The letters of levels that are sensible for the entries of an input, the declared ones first.

    If more than half of the elements are stored, only dense levels are.  Else those that have at
    most ``MOST_POSITIONS`` positions for each entry.  Formats of parts of modes have no others.
    """
    if not _is_plain(declared):
        return ()
    choices = {declared.letters: None}
    entries = tensor.entries()
    count = len(entries.values)
    if 2 * count > prod(tensor.shape):
        choices["d" * tensor.order] = None
        return tuple(choices)
    for letters in product(levels, repeat=tensor.order):
        if _fits(letters, tensor.shape, entries.modes, count):
            choices["".join(letters)] = None
    return tuple(choices)


def _fits(
    letters: tuple[str, ...],
    shape: tuple[int, ...],
    modes: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...],
    count: int,
) -> bool:
    """Whether no level has far more positions than there are entries, in the order of the modes."""
    positions, prefix = 1, np.zeros(count, np.int64)
    for letter, extent, mode in zip(letters, shape, modes, strict=True):
        prefix = np.unique(prefix * extent + mode, return_inverse=True)[1].reshape(-1)
        positions = positions * extent if letter == "d" else int(prefix.max(initial=-1)) + 1
        if positions > MOST_POSITIONS * max(count, 1):
            return False
    return True


def letters_of_result(declared: Format, order: int, levels: str) -> tuple[str, ...]:
    """The letters of a result: the declared ones, and those of CSR and CSF of its order."""
    if not _is_plain(declared):
        return ()
    choices = {declared.letters: None}
    for letters in ("d" + "s" * (order - 1), "s" * order):
        if order and set(letters) <= set(levels):
            choices[letters] = None
    return tuple(choices)


def _is_plain(format: Format) -> bool:
    return all(part == Part(mode=part.mode) for part in format.parts) and not format.coordinate_list


def checked_directives(given: object) -> tuple[str, ...]:
    """The kinds of directives.  Raises ``UserError`` unless each is one of ``DIRECTIVES``."""
    listed = tuple(given) if isinstance(given, tuple | list) else (given,)
    unknown = [kind for kind in listed if kind not in DIRECTIVES]
    if unknown:
        raise UserError(
            "directives= must list kinds of directives",
            location=user_location(),
            expected=f"some of {', '.join(DIRECTIVES)}",
            given=repr(unknown[0]),
        )
    return tuple(kind for kind in DIRECTIVES if kind in listed)
