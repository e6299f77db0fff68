"""Transformations and dependences with isl: cases, translations, equalities, new loops.

All of it works on the iterations of a ``LoopDomain`` and gives expressions of its loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2s.core.affine import as_digits, tidy
from t2s.core.errors import InternalError
from t2s.core.expr import (
    Const,
    Expr,
    Index,
    Select,
    apply,
    const,
    equals,
    simplify,
    substitute,
    unequal,
)
from t2s.core.isl import LoopDomain, islpy_module
from t2s.core.ops import Op
from t2s.core.walk import walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Where expressions have the given values: a condition ``where``, ``None`` for everywhere.

    ``points`` is isl's set of those iterations.
    """

    values: tuple[int, ...]
    where: Expr | None
    points: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A loop of a new nest: first and last index, over the loops outside of it."""

    name: str
    first: Expr
    last: Expr


def cases(domain: LoopDomain, exprs: Sequence[Expr], limit: int) -> list[Case] | None:
    """The combinations of values of expressions, with conditions; ``None`` if more than ``limit``.

    Sorted by value.
    """
    image = domain.image(exprs)
    values = image.range()
    if not values.is_bounded() or int(values.count_val().to_python()) > limit:
        return None
    points: list[Any] = []
    values.foreach_point(points.append)
    branches = []
    for point in points:
        where = image.intersect_range(islpy_module().Set.from_point(point)).domain()
        coordinates = _coordinates(point, len(exprs))
        branches.append(Case(values=coordinates, where=condition(domain, where), points=where))
    return sorted(branches, key=lambda case: case.values)


def _coordinates(point: Any, size: int) -> tuple[int, ...]:
    dim = islpy_module().dim_type.set
    return tuple(int(point.get_coordinate_val(dim, at).to_python()) for at in range(size))


def condition(domain: LoopDomain, points: Any) -> Expr | None:
    """The condition under which an iteration of the domain is one of ``points``.

    ``None`` if it always is; the condition is only valid inside the domain.
    """
    if domain.points.is_subset(points):
        return None
    islpy = islpy_module()
    context = _parameters(domain, domain.points)
    build = islpy.AstBuild.from_context(context.params())
    gist = points.gist(domain.points).coalesce()
    ast = build.expr_from_set(_parameters(domain, gist).params())
    result = AstReader(islpy, domain.identifiers).read(ast)
    if isinstance(result, Const) and not result.type.is_bool:
        return equals(const(0), const(1)) if result.value == 0 else None
    return result


def project(domain: LoopDomain, names: Sequence[str]) -> Any:
    """isl's set of the joint values of some loops, in the order of the names."""
    return domain.image([Index(name=name) for name in names]).range()


def ends(domain: LoopDomain, fixed: int, *, first: bool) -> Any:
    """isl's set of the first, or last, iterations for every value of the ``fixed`` outermost loops.

    First and last are in execution order.  Inner loops may be empty, so the first iteration is not
    always that at which every loop starts.
    """
    return _end_of(domain.points, fixed, lower=first).wrap().flatten()


def translated(points: Any, by: Sequence[int]) -> Any:
    """The set moved by a constant vector."""
    size = len(by)
    inputs = ", ".join(f"x{at}" for at in range(size))
    outputs = ", ".join(f"x{at} + ({step})" for at, step in enumerate(by))
    return points.apply(islpy_module().Map(f"{{ [{inputs}] -> [{outputs}] }}"))


def _parameters(domain: LoopDomain, points: Any) -> Any:
    """The set with its dimensions as parameters, named as in the domain."""
    dim = islpy_module().dim_type
    size = points.dim(dim.set)
    moved = points.move_dims(dim.param, 0, dim.set, 0, size)
    for at, name in enumerate(domain.identifiers):
        moved = moved.set_dim_name(dim.param, at, name)
    return moved


class Transformation:
    """A change of loops: each new loop as an expression of the old ones.

    ``new`` holds the new loops, outermost first.
    """

    def __init__(self, domain: LoopDomain, new: Mapping[str, Expr]) -> None:
        self.domain = domain
        self.names = tuple(new)
        self.new = new
        self._map = domain.image(tuple(new.values()))
        self.image = self._map.range().coalesce()

    def clash(self) -> tuple[dict[str, int], dict[str, int]] | None:
        """Two old iterations that map to the same new one, or ``None``."""
        islpy = islpy_module()
        pairs = self._map.apply_range(self._map.reverse())
        identity = islpy.Map.identity(pairs.get_space())
        twice = pairs.subtract(identity)
        if twice.is_empty():
            return None
        sample = twice.sample()
        first = sample.domain().sample_point()
        start = islpy.BasicSet.from_point(first)
        second = sample.intersect_domain(start).range().sample_point()
        return self._old(first), self._old(second)

    def _old(self, point: Any) -> dict[str, int]:
        names = [interval.name for interval in self.domain.intervals]
        return dict(zip(names, _coordinates(point, len(names)), strict=True))

    def inverse(self) -> dict[str, Expr]:
        """The old loops as expressions of the new ones; the map has to be injective."""
        islpy = islpy_module()
        function = self._map.reverse().lexmin_pw_multi_aff()
        identifiers = {f"y{at}": name for at, name in enumerate(self.names)}
        context = self._as_parameters(self.image).params()
        build = islpy.AstBuild.from_context(context)
        reader = AstReader(islpy, identifiers)
        result: dict[str, Expr] = {}
        for at, interval in enumerate(self.domain.intervals):
            piece = islpy.Map.from_pw_aff(function.get_pw_aff(at))
            value = self._as_parameters_of_map(piece)
            result[interval.name] = reader.read(build.expr_from_pw_aff(value))
        if any(isinstance(part, Select) for expr in result.values() for part in walk(expr)):
            return self._as_digits() or result
        return result

    def _as_digits(self) -> dict[str, Expr] | None:
        """The old loops as digits of the new ones, if they are: without cases."""
        digits = as_digits(self.domain.intervals, self.new)
        if digits is None:
            return None
        for name, expr in digits.items():
            over_old = substitute(expr, dict(self.new))
            other = unequal(over_old, Index(name=name))
            if not self.domain.restricted(other).is_empty():
                return None
        return digits

    def constant_range(self, name: str) -> tuple[int, int]:
        """The first and the last index that a new loop ever has."""
        at = self.names.index(name)
        return (
            int(self.image.dim_min_val(at).to_python()),
            int(self.image.dim_max_val(at).to_python()),
        )

    def span(self, name: str) -> Span:
        """The first and the last index of a new loop over the loops before it, without slack."""
        at = self.names.index(name)
        dim = islpy_module().dim_type
        size = len(self.names)
        prefix = self.image.project_out(dim.set, at + 1, size - at - 1)
        convex = prefix.remove_divs().convex_hull()
        hull = convex.to_set()
        first, last = self._straight(convex, prefix, at)
        if not self._agree(prefix, hull, at, lower=True):
            first = self._exact(prefix, at, lower=True)
        if not self._agree(prefix, hull, at, lower=False):
            last = self._exact(prefix, at, lower=False)
        return Span(name=name, first=first, last=last)

    def _straight(self, hull: Any, prefix: Any, at: int) -> tuple[Expr, Expr]:
        """The bounds in a dimension that the constraints of a convex set give."""
        dim = islpy_module().dim_type
        outside = prefix.project_out(dim.set, at, 1).remove_divs().convex_hull()
        first: list[Expr] = []
        last: list[Expr] = []
        relevant = hull.gist(outside.insert_dims(dim.set, at, 1))
        for constraint in relevant.get_constraints():
            factor = int(constraint.get_coefficient_val(dim.set, at).to_python())
            if factor == 0:
                continue
            sign = -1 if factor > 0 else 1
            rest = self._rest(constraint, at, sign)
            if factor > 0:
                first.append(_floor(_plus(rest, factor - 1), factor))
            else:
                last.append(_floor(rest, -factor))
            if constraint.is_equality():
                last.append(_floor(rest, factor)) if factor > 0 else first.append(
                    _floor(_plus(rest, -factor - 1), -factor)
                )
        return _fold(Op.MAXIMUM, first), _fold(Op.MINIMUM, last)

    def _agree(self, prefix: Any, hull: Any, at: int, *, lower: bool) -> bool:
        """Whether a convex set starts (or ends) in a dimension where the set itself does."""
        exact, straight = (_end_of(points, at, lower=lower) for points in (prefix, hull))
        expected = prefix.project_out(islpy_module().dim_type.set, at, 1)
        return bool(exact.intersect(straight).domain().is_equal(expected))

    def _exact(self, prefix: Any, at: int, *, lower: bool) -> Expr:
        """The first or the last index in a dimension, case by case."""
        islpy = islpy_module()
        moved = self._as_parameters(prefix, at)
        value = (moved.dim_min(0) if lower else moved.dim_max(0)).coalesce()
        names = {f"y{number}": name for number, name in enumerate(self.names)}
        build = islpy.AstBuild.from_context(moved.params())
        return AstReader(islpy, names).read(build.expr_from_pw_aff(value))

    def _rest(self, constraint: Any, at: int, sign: int) -> Expr:
        """A constraint times ``sign``, without its term in dimension ``at``."""
        dim = islpy_module().dim_type
        number = sign * int(constraint.get_constant_val().to_python())
        added: list[Expr] = []
        subtracted: list[Expr] = []
        for other in range(at):
            factor = sign * int(constraint.get_coefficient_val(dim.set, other).to_python())
            term: Expr = Index(name=self.names[other]) * abs(factor)
            if factor:
                (added if factor > 0 else subtracted).append(term)
        starts = not added
        total: Expr = const(number) if starts else added.pop(0)
        for operator, terms in ((Op.ADD, added), (Op.SUBTRACT, subtracted)):
            for term in terms:
                total = apply(operator, total, term)
        return simplify(total if starts else _plus(total, number))

    def _as_parameters(self, points: Any, count: int | None = None) -> Any:
        """The set with its dimensions, or the first ``count`` of them, as parameters."""
        dim = islpy_module().dim_type
        count = len(self.names) if count is None else count
        moved = points.move_dims(dim.param, 0, dim.set, 0, count)
        for at in range(count):
            moved = moved.set_dim_name(dim.param, at, f"y{at}")
        return moved

    def _as_parameters_of_map(self, function: Any) -> Any:
        """A map from new loops to one number as a piecewise function of parameters."""
        dim = islpy_module().dim_type
        moved = function.move_dims(dim.param, 0, dim.in_, 0, len(self.names))
        for at in range(len(self.names)):
            moved = moved.set_dim_name(dim.param, at, f"y{at}")
        return moved.range().dim_min(0)


def _end_of(points: Any, at: int, *, lower: bool) -> Any:
    """isl's map from the dimensions before ``at`` to the first or last values of the others."""
    dim = islpy_module().dim_type
    moved = islpy_module().Map.from_range(points).move_dims(dim.in_, 0, dim.out, 0, at)
    return moved.lexmin() if lower else moved.lexmax()


def _plus(expr: Expr, number: int) -> Expr:
    if isinstance(expr, Const):
        return const(int(expr.value) + number)
    operator = Op.SUBTRACT if number < 0 else Op.ADD
    return simplify(apply(operator, expr, const(abs(number))))


def _floor(expr: Expr, by: int) -> Expr:
    return simplify(expr // by)


def _fold(operator: Op, parts: Sequence[Expr]) -> Expr:
    result = parts[0]
    for part in parts[1:]:
        if part != result:
            result = apply(operator, result, part)
    return simplify(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """``number + sum of factors * loops == 0``."""

    number: int
    factors: Mapping[str, int]

    def factor(self, name: str) -> int:
        """The factor of a loop; 0 if it does not occur."""
        return self.factors.get(name, 0)

    def without(self, name: str, by: Equality) -> Equality:
        """The equation with a loop eliminated by another one, in which its factor is 1 or -1."""
        scale = -self.factor(name) * by.factor(name)
        names = dict.fromkeys([*self.factors, *by.factors])
        sums = {n: self.factor(n) + scale * by.factor(n) for n in names}
        return Equality(
            number=self.number + scale * by.number,
            factors={n: factor for n, factor in sums.items() if factor},
        )

    def solved_for(self, name: str) -> Expr:
        """The loop, whose factor is 1 or -1, over the others."""
        sign = -self.factor(name)
        total: Expr = const(0)
        for other, factor in self.factors.items():
            if other != name:
                term = abs(factor) * Index(name=other)
                total = apply(Op.ADD if sign * factor > 0 else Op.SUBTRACT, total, term)
        return tidy(total + sign * self.number)


def equalities(domain: LoopDomain) -> list[Equality]:
    """The equations of the smallest affine space around a domain's iterations."""
    dim = islpy_module().dim_type.set
    hull = domain.points.remove_divs().affine_hull()
    names = list(domain.identifiers.values())
    equations = []
    for constraint in hull.get_constraints():
        if not constraint.is_equality():
            continue
        factors = {
            name: int(constraint.get_coefficient_val(dim, at).to_python())
            for at, name in enumerate(names)
        }
        equations.append(
            Equality(
                number=int(constraint.get_constant_val().to_python()),
                factors={name: factor for name, factor in factors.items() if factor},
            )
        )
    return equations


# From isl's sets and piecewise functions back to expressions.
#
# isl's AST generator writes conditions and functions in terms of named parameters, simplified by
# what is known of the context.  The functions here read that syntax tree.

_BINARY: Mapping[str, Op] = {
    "and_": Op.AND,
    "and_then": Op.AND,
    "or_": Op.OR,
    "or_else": Op.OR,
    "max": Op.MAXIMUM,
    "min": Op.MINIMUM,
    "add": Op.ADD,
    "sub": Op.SUBTRACT,
    "mul": Op.MULTIPLY,
    "div": Op.FLOOR_DIVIDE,
    "fdiv_q": Op.FLOOR_DIVIDE,
    "pdiv_q": Op.FLOOR_DIVIDE,
    "pdiv_r": Op.MODULO,
    "zdiv_r": Op.MODULO,
    "eq": Op.EQUAL,
    "le": Op.LESS_EQUAL,
    "lt": Op.LESS,
    "ge": Op.GREATER_EQUAL,
    "gt": Op.GREATER,
}


class AstReader:
    """Reads expressions of isl's AST; ``names`` maps isl's identifiers to indices."""

    def __init__(self, islpy: Any, names: Mapping[str, str]) -> None:
        self._types = islpy.ast_expr_type
        self._names = names
        self._operators = {
            getattr(islpy.ast_expr_op_type, name): operator
            for name, operator in _BINARY.items()
            if hasattr(islpy.ast_expr_op_type, name)
        }
        operations = islpy.ast_expr_op_type
        self._choices = (operations.cond, operations.select)
        self._minus = operations.minus

    def read(self, ast: Any) -> Expr:
        """The expression, with constants and identities folded."""
        return simplify(self._read(ast))

    def _read(self, ast: Any) -> Expr:
        kind = ast.get_type()
        if kind == self._types.int:
            return const(int(ast.get_val().to_python()))
        if kind == self._types.id:
            return Index(name=self._names[ast.get_id().name])
        operation = ast.op_get_type()
        operands = [self._read(ast.op_get_arg(at)) for at in range(ast.op_get_n_arg())]
        if operation in self._choices:
            condition, if_true, if_false = operands
            return Select(
                condition=condition, if_true=if_true, if_false=if_false, type=if_true.type
            )
        if operation == self._minus:
            return 0 - operands[0]
        if operation not in self._operators:
            raise InternalError(f"isl wrote an operation of an unknown kind: {ast.to_C_str()}")
        return _chain(self._operators[operation], operands)


def _chain(operator: Op, operands: Sequence[Expr]) -> Expr:
    result = operands[0]
    for operand in operands[1:]:
        result = apply(operator, result, operand)
    return result
