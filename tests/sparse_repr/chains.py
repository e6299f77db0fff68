"""Random matrices and random chains for property tests."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

import t2s
from t2s import Var
from t2s.representation import (
    ASAP,
    Chain,
    Columns,
    Diagonals,
    Index,
    Length,
    Longest,
    LongestFirst,
    RoundRobin,
    Rows,
    Whole,
    Zero,
    dense_matrix,
)


@dataclass
class Names:
    """Vars of a chain, all different."""

    used: list[Var] = field(default_factory=list)

    def fresh(self) -> Var:
        self.used.append(Var(f"s{len(self.used)}"))
        return self.used[-1]


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """A legal chain.

    Illegal steps are drawn too; the chain goes on without them, so that a refusal never leaves
    anything behind.
    """
    names = Names()
    chain = dense_matrix()
    second = Columns
    if draw(st.integers(0, 4)) == 0:
        chain, second = chain.skew(Columns), Diagonals
    targets: list[object] = [Rows, second]
    for _ in range(draw(st.integers(0, 2))):
        chain = _block(draw, chain, targets, names, whole=True)
    if draw(st.integers(0, 5)):
        first = draw(st.sampled_from([Rows, second]))
        structure = [Index(names.fresh())]
        if draw(st.integers(0, 3)):
            structure.append(Length(names.fresh()))
        chain = chain.pack(first, *structure)
        if draw(st.integers(0, 4)) == 0:
            other = second if first is Rows else Rows
            chain = chain.pack(other, Index(names.fresh()))
        for _ in range(draw(st.integers(0, 3))):
            chain = _block(draw, chain, targets, names, whole=False)
    return _schedule(draw, chain, targets, names)


def _block(
    draw: st.DrawFn,
    chain: Chain,
    targets: list[object],
    names: Names,
    whole: bool,
) -> Chain:
    target = draw(st.sampled_from(targets))
    factors = [*range(1, 5), *([Whole] if whole else [])]
    factor = draw(st.sampled_from(factors))
    padding = draw(st.sampled_from([Zero, Longest]))
    name = names.fresh() if draw(st.integers(0, 3)) else None
    length = Length(name) if name is not None else None
    try:
        chain = chain.block(target, factor, padding, length)
    except t2s.errors.UserError:
        return chain
    if name is not None:
        targets.append(name)
    return chain


def _schedule(draw: st.DrawFn, chain: Chain, targets: list[object], names: Names) -> Chain:
    machines = draw(st.integers(1, 5))
    policy = draw(
        st.sampled_from(
            [
                ASAP,
                ASAP,
                RoundRobin,
                LongestFirst,
            ]
        )
    )
    recorded = draw(st.integers(0, 3)) == 0 or policy is LongestFirst
    index = Index(names.fresh()) if recorded else None
    wanted = draw(st.permutations(targets))
    for target in wanted:
        try:
            return chain.schedule(target, machines, policy, Zero, index)
        except t2s.errors.UserError:
            continue
    first = wanted[0]  # nothing records enough: start again with lengths
    again = dense_matrix().pack(
        Columns,
        Index(Var("column")),
        Length(Var("length")),
    )
    target = first if isinstance(first, type(Rows)) and first is not Diagonals else Rows
    return again.schedule(target, machines, policy, Zero, Index(Var("job")))


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """A dense float32 matrix, with empty rows and columns, of 0 to 9 rows and columns."""
    rows, columns = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.1, 0.3, 1.0]))
    kept = generator.random((rows, columns)) < density
    kept[generator.random(rows) < draw(st.sampled_from([0.0, 0.5]))] = False
    values = generator.integers(1, 99, (rows, columns))
    return np.where(kept, values, 0).astype(np.float32)
