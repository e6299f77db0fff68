"""Integer sets and maps with named dimensions: the only module that imports islpy.

Expressions go in as ``core.expr`` trees and must be quasi-affine (sums, products with constants,
``//`` and ``%`` by positive constants, comparisons and their conjunctions), or selections between
such; ``NotAffine`` is raised otherwise.  islpy is imported at first use, so that ``import t2s``
stays fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from t2s.core.expr import Apply, Cast, Const, Expr, Index, Select
from t2s.core.intervals import linear_form
from t2s.core.ops import Op
from t2s.core.sigint import import_deferring_sigint
from t2s.core.types import Kind, Type, integer_range
from t2s.core.walk import Term, rewrite, walk


class NotAffine(Exception):
    """The expression is not quasi-affine; ``expr`` is the offending part."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(str(expr))
        self.expr = expr


@cache
def islpy_module() -> Any:
    """The module islpy, imported at first use."""
    return import_deferring_sigint("islpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One loop: ``name`` runs from ``minimum`` over ``extent`` values."""

    name: str
    minimum: Expr
    extent: Expr

    @property
    def constant(self) -> tuple[int, int] | None:
        """(minimum, extent) if both are numbers."""
        if isinstance(self.minimum, Const) and isinstance(self.extent, Const):
            return int(self.minimum.value), int(self.extent.value)
        return None

    @property
    def conditions(self) -> tuple[Expr, Expr]:
        """What the index has to meet: not below the minimum, not past the end."""
        index = Index(name=self.name)
        end = self.minimum + self.extent
        return index >= self.minimum, index < end


_SPELLING = {
    Op.ADD: "+",
    Op.SUBTRACT: "-",
    Op.EQUAL: "=",
    Op.LESS: "<",
    Op.LESS_EQUAL: "<=",
    Op.GREATER: ">",
    Op.GREATER_EQUAL: ">=",
    Op.AND: "and",
    Op.OR: "or",
}
_LOGIC = (Op.AND, Op.OR)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """What expressions are, without selections, where all ``conditions`` hold."""

    conditions: tuple[Expr, ...]
    exprs: tuple[Expr, ...]


def _pieces(exprs: Sequence[Expr], conditions: tuple[Expr, ...] = ()) -> list[_Piece]:
    """The expressions case by case; at every iteration the conditions of one case hold.

    Raises ``NotAffine`` for a selection by something else than loops.
    """
    selects = (node for expr in exprs for node in walk(expr) if isinstance(node, Select))
    first = next(selects, None)
    if first is None:
        return [_Piece(conditions=conditions, exprs=tuple(exprs))]
    test = first.condition
    isl_text(test)
    result = []
    for holds in (True, False):

        def rule(node: Term, holds: bool = holds) -> Term | None:
            if isinstance(node, Select) and node.condition == test:
                return node.if_true if holds else node.if_false
            return None

        where = test if holds else ~test
        result += _pieces([rewrite(expr, rule) for expr in exprs], (*conditions, where))
    return result


def without_bits(expr: Expr) -> Expr:
    """Shifts by constants and masks of low bits as the products and divisions that they are.

    ``i >> 1`` is ``i // 2``, ``i << 2`` is ``i * 4`` and ``i & 3`` is ``i % 4``.
    """
    return rewrite(expr, _arithmetic)


def _arithmetic(node: Term) -> Term | None:
    match node:
        case Apply(operator=operator, operands=(value, Const(value=int() as by)), type=type) if (
            type.kind is Kind.INT
        ):
            if operator is Op.AND and by > 0 and by & (by + 1) == 0 and by + 1 <= _largest(type):
                return value % Const(value=by + 1, type=type)
            if not 0 <= by < type.bits - 1:
                return None
            if operator is Op.SHIFT_RIGHT:
                return value // Const(value=1 << by, type=type)
            if operator is Op.SHIFT_LEFT:
                return value * Const(value=1 << by, type=type)
    return None


def _largest(type: Type) -> int:
    return integer_range(type)[1]


def isl_text(expr: Expr, rename: Mapping[str, str] | None = None) -> str:
    """The expression in isl's syntax; ``rename`` maps index names to isl's names."""
    names = rename or {}

    def text(node: Expr) -> str:
        match node:
            case Const(value=bool() as value):
                return "0 = 0" if value else "0 = 1"
            case Const(value=int() as value):
                return str(value)
            case Index(name=name):
                return names.get(name, name)
            case Cast(value=value, type=type) if type.is_integer and value.type.is_integer:
                return text(value)
            case Apply(operator=Op.NEGATE, operands=(operand,)):
                return f"(-{text(operand)})"
            case Apply(operator=Op.NOT, operands=(operand,)) if operand.type.is_bool:
                return f"(not {text(operand)})"
            case Apply(operator=Op.NOT_EQUAL, operands=(left, right)) if left.type.is_integer:
                return f"({text(left)} != {text(right)})"
            case Apply(operator=Op.MULTIPLY, operands=(left, right)) if isinstance(
                left, Const
            ) or isinstance(right, Const):
                return f"({text(left)} * {text(right)})"
            case Apply(operator=Op.FLOOR_DIVIDE, operands=(left, Const(value=int() as by))) if (
                by > 0
            ):
                return f"floor(({text(left)})/{by})"
            case Apply(operator=Op.MODULO, operands=(left, Const(value=int() as by))) if by > 0:
                return f"(({text(left)}) mod {by})"
            case Apply(operator=Op.MINIMUM, operands=(left, right)) if left.type.is_integer:
                return f"min({text(left)}, {text(right)})"
            case Apply(operator=Op.MAXIMUM, operands=(left, right)) if left.type.is_integer:
                return f"max({text(left)}, {text(right)})"
            case Apply(operator=operator, operands=(left, right)) if operator in _SPELLING and (
                left.type.is_bool if operator in _LOGIC else left.type.is_integer
            ):
                return f"({text(left)} {_SPELLING[operator]} {text(right)})"
            case Apply() if (plain := _arithmetic(node)) is not None:
                assert isinstance(plain, Expr)
                return text(plain)
        raise NotAffine(node)

    try:
        return text(expr)
    except NotAffine as error:
        if not (isinstance(error.expr, Select) and expr.type.is_bool):
            raise
    pieces = (f"({_all(p.conditions + p.exprs, names)})" for p in _pieces([expr]))
    return f"({' or '.join(pieces)})"


def _all(conditions: Iterable[Expr], rename: Mapping[str, str]) -> str:
    """The conjunction in isl's syntax."""
    return " and ".join(isl_text(condition, rename) for condition in conditions) or "0 = 0"


def is_affine(expr: Expr) -> bool:
    """Whether the expression can be given to isl."""
    try:
        isl_text(expr)
    except NotAffine as error:
        return isinstance(error.expr, Select) and _has_affine_pieces(expr)
    return True


def _has_affine_pieces(expr: Expr) -> bool:
    try:
        for piece in _pieces([expr]):
            for part in (*piece.conditions, *piece.exprs):
                isl_text(part)
    except NotAffine:
        return False
    return True


def _bounds(interval: Interval) -> tuple[Expr, Expr]:
    index, end = Index(name=interval.name), interval.minimum + interval.extent
    return interval.minimum <= index, index < end


def _names(intervals: Sequence[Interval], prefix: str) -> dict[str, str]:
    return {interval.name: f"{prefix}{number}" for number, interval in enumerate(intervals)}


class LoopDomain:
    """The set of iterations of a loop nest, restricted by conditions.

    Raises ``NotAffine`` if a bound or a condition is not quasi-affine.
    """

    def __init__(self, intervals: Sequence[Interval], conditions: Iterable[Expr] = ()) -> None:
        self.intervals = tuple(intervals)
        self.conditions = tuple(conditions)
        self._rename = _names(self.intervals, "x")
        bounds = [bound for interval in self.intervals for bound in _bounds(interval)]
        self._where = _all([*bounds, *self.conditions], self._rename)
        self._dims = ", ".join(self._rename.values())

    @cached_property
    def _set(self) -> Any:
        return islpy_module().Set(f"{{ [{self._dims}] : {self._where} }}")

    @cached_property
    def _box(self) -> dict[str, tuple[int, int]] | None:
        """The smallest and largest value of each loop, if all between them are iterations."""
        if self.conditions:
            return None
        box: dict[str, tuple[int, int]] = {}
        for interval in self.intervals:
            match interval.constant:
                case (low, extent) if extent > 0:
                    box[interval.name] = low, low + extent - 1
                case _:
                    return None
        return box

    def restricted(self, *conditions: Expr) -> LoopDomain:
        """The iterations of the domain that meet further conditions."""
        return LoopDomain(self.intervals, [*self.conditions, *conditions])

    def is_empty(self) -> bool:
        """Whether no iteration exists."""
        return self._box is None and bool(self._set.is_empty())

    def count(self) -> int:
        """Number of iterations."""
        return int(self._set.count_val().to_python())

    def sample(self) -> dict[str, int] | None:
        """Some iteration, by loop name, or ``None`` if there is none."""
        if self.is_empty():
            return None
        point = self._set.sample_point()
        dim = islpy_module().dim_type.set
        return {
            interval.name: int(point.get_coordinate_val(dim, position).to_python())
            for position, interval in enumerate(self.intervals)
        }

    def range_of(self, expr: Expr) -> tuple[int, int] | None:
        """Smallest and largest value of an expression over the domain; ``None`` if empty."""
        form = None if self._box is None else linear_form(expr)
        if self._box is not None and form is not None and form[0].keys() <= self._box.keys():
            factors, number = form
            ends = [sorted(f * x for x in self._box[name]) for name, f in factors.items()]
            return number + sum(low for low, _ in ends), number + sum(high for _, high in ends)
        image = self.image((expr,)).range()
        if image.is_empty():
            return None
        return (
            int(image.dim_min_val(0).to_python()),
            int(image.dim_max_val(0).to_python()),
        )

    def covers_exactly(
        self,
        exprs: Sequence[Expr],
        target: LoopDomain,
        target_exprs: Sequence[Expr] | None = None,
        names: Sequence[str] | None = None,
        within: LoopDomain | None = None,
        what: str = "computed",
    ) -> str | None:
        """Prove that ``exprs`` map this domain one-to-one onto ``target``.

        With ``target_exprs`` what has to be covered is their image of ``target``, whose dimensions
        ``names`` names; with ``within``, a larger domain, more of that may be covered.  Returns
        ``None`` if proved, else a sentence with a sample point; ``what`` is done to the points.
        """
        image_map = self.image(exprs)
        image = image_map.range()
        covered = target._set if target_exprs is None else target.image(target_exprs).range()
        labels = names or [interval.name for interval in target.intervals]
        missing = covered.subtract(image)
        if not missing.is_empty():
            return f"never {what}: {_describe(missing, labels)}"
        extra = image.subtract(covered if within is None else within._set)
        if not extra.is_empty():
            return f"outside of the domain: {_describe(extra, labels)}"
        if not image_map.is_injective():
            return f"some point is {what} twice"
        return None

    def leaves(self, exprs: Sequence[Expr], target: LoopDomain) -> str | None:
        """Some point outside of ``target`` to which ``exprs`` map, as ``i=3, j=0``, if any."""
        outside = self.image(exprs).range().subtract(target._set)
        if outside.is_empty():
            return None
        return _describe(outside, [interval.name for interval in target.intervals])

    def is_injective(self, exprs: Sequence[Expr]) -> bool:
        """Whether no two iterations give the same values."""
        return bool(self.image(exprs).is_injective())

    def differs(
        self, exprs: Sequence[Expr], other: LoopDomain, others: Sequence[Expr]
    ) -> tuple[int, ...] | None:
        """Values that ``exprs`` take here and ``others`` nowhere in ``other``, or the reverse.

        ``None`` if there are none.
        """
        islpy = islpy_module()
        left, right = self.image(exprs).range(), other.image(others).range()
        difference = left.subtract(right).union(right.subtract(left))
        if difference.is_empty():
            return None
        point = difference.sample_point()
        return tuple(
            int(point.get_coordinate_val(islpy.dim_type.set, position).to_python())
            for position in range(len(exprs))
        )

    def varies_along(self, exprs: Sequence[Expr], name: str) -> bool:
        """Whether iterations that differ in loop ``name`` only may give different values."""
        access = self.image(exprs)
        position = list(self._rename).index(name)
        size = len(self.intervals)
        left = ", ".join(f"x{number}" for number in range(size))
        right = ", ".join("y" if number == position else f"x{number}" for number in range(size))
        along = islpy_module().Map(f"{{ [{left}] -> [{right}] }}")
        pairs = along.intersect_domain(self._set).intersect_range(self._set)
        values = pairs.apply_domain(access).apply_range(access)
        identity = islpy_module().Map.identity(values.get_space())
        return not bool(values.subtract(identity).is_empty())

    def reverses(self, before: Sequence[Expr], after: Sequence[Expr]) -> dict[str, int] | None:
        """A pair of iterations that two orders execute in opposite sequence, if there is one.

        Both orders are lexicographic, given as tuples of expressions.  Returns an iteration that
        comes earlier in the first order and later in the second, or ``None``.
        """
        islpy = islpy_module()
        first, second = self.image(before), self.image(after)
        earlier = first.lex_lt_map(first)
        later = second.lex_gt_map(second)
        clash = earlier.intersect(later)
        if clash.is_empty():
            return None
        point = clash.domain().sample_point()
        return {
            interval.name: int(point.get_coordinate_val(islpy.dim_type.set, position).to_python())
            for position, interval in enumerate(self.intervals)
        }

    @property
    def points(self) -> Any:
        """isl's set of the iterations."""
        return self._set

    @property
    def identifiers(self) -> dict[str, str]:
        """The names of isl's dimensions, in order, and the loops they stand for."""
        return {short: name for name, short in self._rename.items()}

    def image(self, exprs: Sequence[Expr]) -> Any:
        """isl's map from iterations to the values of expressions."""
        try:
            maps = [self._mapping(_Piece(conditions=(), exprs=tuple(exprs)))]
        except NotAffine as error:
            if not isinstance(error.expr, Select):
                raise
            maps = [self._mapping(piece) for piece in _pieces(exprs)]
        return islpy_module().Map(f"{{ {'; '.join(maps)} }}")

    def _mapping(self, piece: _Piece) -> str:
        outputs = ", ".join(isl_text(expr, self._rename) for expr in piece.exprs)
        where = " and ".join([self._where, *(isl_text(c, self._rename) for c in piece.conditions)])
        return f"[{self._dims}] -> [{outputs}] : {where}"


def _describe(points: Any, names: Sequence[str]) -> str:
    """The first point of a set, as ``i=3, j=0``."""
    dim = islpy_module().dim_type.set
    point = points.lexmin().sample_point()
    coordinates = (
        f"{name}={int(point.get_coordinate_val(dim, position).to_python())}"
        for position, name in enumerate(names)
    )
    return ", ".join(coordinates)
