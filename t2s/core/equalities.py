"""The linear equations that hold for all iterations of a domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2s.core.affine import tidy
from t2s.core.expr import Expr, Index, apply, const
from t2s.core.isl import LoopDomain, islpy_module
from t2s.core.ops import Op


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
                term = apply(Op.MULTIPLY, const(abs(factor)), Index(name=other))
                total = apply(Op.ADD if sign * factor > 0 else Op.SUBTRACT, total, term)
        return tidy(apply(Op.ADD, total, const(sign * self.number)))


def equalities(domain: LoopDomain) -> list[Equality]:
    """The equations of the smallest affine space around a domain's iterations."""
    dim = islpy_module().dim_type.set
    hull = domain.points.remove_divs().affine_hull()
    names = list(domain.identifiers.values())
    found = []
    for constraint in hull.get_constraints():
        if not constraint.is_equality():
            continue
        factors = {
            name: int(constraint.get_coefficient_val(dim, at).to_python())
            for at, name in enumerate(names)
        }
        found.append(
            Equality(
                number=int(constraint.get_constant_val().to_python()),
                factors={name: factor for name, factor in factors.items() if factor},
            )
        )
    return found
