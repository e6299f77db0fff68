"""Mappings that a search finds [Mosaic, Table 5]: counts, and the published ones, and seconds.

A mapping is a pair of a part, as it is printed with its operands in each order, and a function; the
published counts have the empty mapping too.  ``calls`` are different calls: operands that may be
exchanged count once, and every smallest set of fixed variables counts.
"""

from __future__ import annotations

import time

from benchmarks.mosaic.functions import NINE, THREE
from t2s.capability.reshape import Reshape
from t2s.plan.search import candidates, distinct_calls
from t2s.sparse import parse
from t2s.sparse_repr.notation.ir import Assignment

PUBLISHED = ((3, 7), (3, 7), (3, 7), (5, 13), (3, 7), (2, 13), None, None)
"""Table 5; its own code gives 5 for the sampled product."""

# statement, pairs + 1, with promotion, distinct calls: each for three and for nine functions
TABLE = [
    ("A(i) = B(i) + C(i)", (3, 7), (3, 7), (2, 5)),
    ("A = B(i) * C(i)", (3, 7), (5, 13), (1, 3)),
    ("A(i) = B(i,j) * C(j)", (3, 7), (5, 13), (1, 3)),
    ("A(i,k) = B(i,j) * C(j,k) + C(i,k)", (5, 13), (5, 13), (2, 6)),
    ("A(i,j,k) = B(i,j,k) + C(i,j,k)", (3, 7), (3, 7), (6, 15)),
    ("A(i,k) = B(i,k) * C(i,j) * D(j,k)", (5, 13), (5, 13), (2, 6)),
    ("A(i,j,k) = B(i,j,l) * C(k,l)", (3, 7), (5, 13), (1, 3)),
    ("A(i,k) = B(i,j) * C(j,k)", (5, 13), (5, 13), (2, 6)),
]
PLAIN = Reshape(fix=True, tile=True, pad=True)
PROMOTED = Reshape(fix=True, tile=True, pad=True, promote=True)
EXTENTS = dict.fromkeys("ijkl", 10)


def statement(text: str) -> Assignment:
    """The statement of a row; B of a sampled product is stored by rows."""
    return parse(text, {"B": "ds"} if "D(" in text else {})


LIMIT = 2000
"""Milliseconds for all searches without promotion; printed are those with it, too."""


def main() -> None:
    every = 0.0
    print(f"{'statement':38} {'paper':>8} {'pairs + 1':>10} {'promoted':>9} {'calls':>7} {'ms':>6}")
    for (text, *_), published in zip(TABLE, PUBLISHED, strict=True):
        begun = time.process_time()
        counts = []
        for reshape in (PLAIN, PROMOTED):
            for functions in (THREE, NINE):
                found = candidates(statement(text), functions, reshape, EXTENTS)
                counts.append((len({one.pair for one in found}) + 1, len(distinct_calls(found))))
        taken = 1e3 * (time.process_time() - begun)
        every += taken
        paper = "-" if published is None else f"{published[0]} / {published[1]}"
        (three, calls), (nine, more), (first, _), (second, _) = counts
        print(
            f"{text:38} {paper:>8} {f'{three} / {nine}':>10} {f'{first} / {second}':>9} "
            f"{f'{calls} / {more}':>7} {taken:6.0f}"
        )
    print(f"all searches: {every:.0f} ms, of {LIMIT} ms")


if __name__ == "__main__":
    main()
