"""Simulated annealing: swaps of parts between sites of their kind, for short nets.

In go the tables of a placement problem (``Problem``) and a start, a site for each part; out comes
the best placement seen.  The cost is the sum of the half perimeters of the nets, an integer.  All
choices come from integers alone, a generator of our own and a table of acceptance, so that a seed
gives the same placement on every machine.

``improve`` is a kernel: a function that runs as machine code, and as it is, for tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import accumulate, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from t2s.simulator.emit.kernels import CompiledKernel
from t2s.simulator.emit.operands import Argument

HOT, WARM = Decimal(6), Decimal(1)
"""Temperatures to start from, in units of the cost: one forgets the start, one keeps its shape."""

_TEMPERATURES = 60
_LAST = Decimal("0.12")

_BESIDE = 6
"""A move to a connected part goes to one of so many sites, the nearest ones."""

_MODULUS, _FACTOR = (1 << 31) - 1, 48_271
"""The generator: a state is the one before times the factor, modulo a prime."""

_TABLED = 64
"""An increase of the cost by as much as this is never accepted."""

_IMPROVE = CompiledKernel(
    module=__name__,
    name="improve",
    sources=(Path(__file__),),
    arguments=(Argument.INT64_ARRAY,) * 20 + (Argument.INT64,) * 4,
)

Integers = Any
"""A list of integers, or a flat array of them for compiled code."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A placement problem as flat tables of integers.

    Attributes
    ----------
    kinds: of each part the number of its kind; a part may go to sites that allow its kind only.
    rows, columns, cells: of each site, where it is, and the number of that cell of the grid.
    nets_of, nets_from: the nets of part p are ``nets_of[nets_from[p]:nets_from[p + 1]]``.
    parts_of, parts_from: the same for the parts of a net, each part once.
    allowed: whether kind k may go to site s, at ``k * sites + s``.
    near, nearest: the sites that kind k may go to, those nearest to cell c of the grid first, are
        the first ``nearest[k]`` from ``(k * grid + c) * width`` on.
    grid, width: the number of cells, and that of the sites listed for one of them.
    """

    kinds: Sequence[int]
    rows: Sequence[int]
    columns: Sequence[int]
    cells: Sequence[int]
    nets_of: Sequence[int]
    nets_from: Sequence[int]
    parts_of: Sequence[int]
    parts_from: Sequence[int]
    allowed: Sequence[int]
    near: Integers
    nearest: Sequence[int]
    grid: int
    width: int


Box = tuple[int, int, int, int]
"""The first and the last row, and the first and the last column."""


def boxes_of(problem: Problem, sites: Sequence[int]) -> list[Box]:
    """Of each net the box around its parts."""
    boxes = []
    for first, last in pairwise(problem.parts_from):
        parts = problem.parts_of[first:last]
        rows = [problem.rows[sites[part]] for part in parts]
        columns = [problem.columns[sites[part]] for part in parts]
        boxes.append((min(rows), max(rows), min(columns), max(columns)))
    return boxes


def half_perimeters(problem: Problem, sites: Sequence[int]) -> list[int]:
    """Of each net the height plus the width of the box around its parts."""
    return [bottom - top + right - left for top, bottom, left, right in boxes_of(problem, sites)]


def annealed(
    problem: Problem,
    start: Sequence[int],
    seed: int,
    moves: int,
    first: Decimal,
    *,
    compiled: bool = True,
) -> Iterator[tuple[list[int], int, int]]:
    """Improve a placement; yields the sites after each temperature, their cost, and the moves.

    The temperature goes down from ``first``.  A Ctrl-C goes through, in compiled code between two
    temperatures.  What is not ``compiled``, for tests, takes the same steps.
    """
    if not problem.kinds or not moves:
        return
    array = _flat if compiled else _listed
    run: Any = _IMPROVE if compiled else improve
    tables = [
        array(table)
        for table in (
            *(problem.kinds, problem.rows, problem.columns, problem.cells),
            *(problem.nets_of, problem.nets_from, problem.parts_of, problem.parts_from),
            *(problem.allowed, problem.near, problem.nearest),
        )
    ]
    at = [-1] * len(problem.rows)
    for part, site in enumerate(start):
        at[site] = part
    costs = half_perimeters(problem, start)
    boxes = [number for box in boxes_of(problem, start) for number in box]
    room = [0] * len(costs)
    state = [
        array(numbers) for numbers in (start, at, costs, boxes, room, room, boxes, [_seeded(seed)])
    ]
    for number, temperature in enumerate(_temperatures(first)):
        done, goal = (moves * step // _TEMPERATURES for step in (number, number + 1))
        window = max(_BESIDE, problem.width * (_TEMPERATURES - number) // _TEMPERATURES)
        accepted = array(_acceptance(temperature))
        run(*tables, *state, accepted, problem.grid, problem.width, window, goal - done)
        yield [int(site) for site in state[0]], int(sum(state[2])), goal - done


def _flat(numbers: Integers) -> Any:
    return np.array(numbers, dtype=np.int64)


def _listed(numbers: Integers) -> list[int]:
    return [int(number) for number in numbers]


def _seeded(seed: int) -> int:
    """A state of the generator: neighboring seeds are far from one another."""
    return seed * 69_621 % (_MODULUS - 1) + 1


def _temperatures(first: Decimal) -> list[Decimal]:
    """From the first to the last, each the same fraction of the one before."""
    context = Context(prec=30)
    step = context.divide(context.ln(context.divide(_LAST, first)), _TEMPERATURES - 1)
    return [
        context.multiply(first, context.exp(context.multiply(step, number)))
        for number in range(_TEMPERATURES)
    ]


def _acceptance(temperature: Decimal) -> list[int]:
    """Of each increase of the cost, the draws below which it is accepted.

    Decimal numbers are rounded correctly, unlike the logarithms of C libraries.
    """
    context = Context(prec=40)
    of_one = context.exp(context.divide(Decimal(-1), temperature))
    chances = accumulate(repeat(of_one, _TABLED - 1), context.multiply, initial=Decimal(1))
    return [int(context.multiply(chance, _MODULUS)) for chance in chances]


def improve(
    kinds: Integers,
    rows: Integers,
    columns: Integers,
    cells: Integers,
    nets_of: Integers,
    nets_from: Integers,
    parts_of: Integers,
    parts_from: Integers,
    allowed: Integers,
    near: Integers,
    nearest: Integers,
    sites: Integers,
    at: Integers,
    costs: Integers,
    boxes: Integers,
    marks: Integers,
    touched: Integers,
    fresh: Integers,
    random: Integers,
    accepted: Integers,
    grid: int,
    width: int,
    window: int,
    moves: int,
) -> None:
    """Try some moves at one temperature; changes all of the state from ``sites`` on.

    A move takes a part to one of the ``window`` sites nearest to it, or to one beside a part that
    it is connected to; what is there goes where the part was.  A part that leaves the inside of a
    net's box can only make it larger, which spares a look at all parts of the large nets.
    ``marks`` and ``touched`` are room for an item for each net, ``fresh`` for a box of each.
    """
    state = random[0]
    parts, places = len(kinds), len(rows)
    for net in range(len(costs)):
        marks[net] = -1
    for move in range(moves):
        state = state * _FACTOR % _MODULUS
        part = state % parts
        here, kind = sites[part], kinds[part]
        first = nets_from[part]
        count = nets_from[part + 1] - first
        center, reach = cells[here], window
        state = state * _FACTOR % _MODULUS
        if count > 0 and state & 8192:
            net = nets_of[first + (state >> 15) % count]
            begin = parts_from[net]
            state = state * _FACTOR % _MODULUS
            other = parts_of[begin + state % (parts_from[net + 1] - begin)]
            if other != part:
                center, reach = cells[sites[other]], _BESIDE
        state = state * _FACTOR % _MODULUS
        there = near[(kind * grid + center) * width + state % min(reach, nearest[kind])]
        other = at[there]
        if there == here or (other >= 0 and not allowed[kinds[other] * places + here]):
            continue
        sites[part] = there
        if other >= 0:
            sites[other] = here
        change, size, moved, before = 0, 0, part, here
        while moved >= 0:
            row, column = rows[before], columns[before]
            for index in range(nets_from[moved], nets_from[moved + 1]):
                net = nets_of[index]
                if marks[net] == move:
                    continue
                marks[net] = move
                top, bottom = boxes[4 * net], boxes[4 * net + 1]
                left, right = boxes[4 * net + 2], boxes[4 * net + 3]
                if top < row and row < bottom and left < column and column < right:
                    site = sites[moved]
                    top, bottom = min(top, rows[site]), max(bottom, rows[site])
                    left, right = min(left, columns[site]), max(right, columns[site])
                else:
                    begin = parts_from[net]
                    site = sites[parts_of[begin]]
                    top = bottom = rows[site]
                    left = right = columns[site]
                    for member in range(begin + 1, parts_from[net + 1]):
                        site = sites[parts_of[member]]
                        top, bottom = min(top, rows[site]), max(bottom, rows[site])
                        left, right = min(left, columns[site]), max(right, columns[site])
                change += bottom - top + right - left - costs[net]
                touched[size] = net
                fresh[4 * size], fresh[4 * size + 1] = top, bottom
                fresh[4 * size + 2], fresh[4 * size + 3] = left, right
                size += 1
            moved, before = (other if moved == part else -1), there
        state = state * _FACTOR % _MODULUS
        if change <= 0 or (change < _TABLED and state < accepted[change]):
            at[here], at[there] = other, part
            for index in range(size):
                net = touched[index]
                top, bottom = fresh[4 * index], fresh[4 * index + 1]
                left, right = fresh[4 * index + 2], fresh[4 * index + 3]
                boxes[4 * net], boxes[4 * net + 1] = top, bottom
                boxes[4 * net + 2], boxes[4 * net + 3] = left, right
                costs[net] = bottom - top + right - left
        else:
            sites[part] = here
            if other >= 0:
                sites[other] = there
    random[0] = state
