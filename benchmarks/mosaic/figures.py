"""The figures of [Mosaic]: ``python -m benchmarks.mosaic.figures 16 [--quick]``; all, if none.

Each prints milliseconds of our loops and of calls of the libraries that are there, what is the
fastest at each point, and what the paper found.
"""

from __future__ import annotations

import sys

from benchmarks.mosaic import products_by_blocks, products_by_vectors, sampled_products, sums
from benchmarks.mosaic.measuring import Figure, measured

FIGURES: dict[int, Figure] = {
    one.number: one
    for one in (
        *products_by_vectors.FIGURES,
        *sums.FIGURES,
        *sampled_products.FIGURES,
        *products_by_blocks.FIGURES,
    )
}


def main(arguments: list[str]) -> None:
    quick = "--quick" in arguments
    numbers = [int(word) for word in arguments if word.isdecimal()]
    for number in numbers or sorted(FIGURES):
        print(measured(FIGURES[number], quick=quick).text(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
