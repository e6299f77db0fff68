"""Simulated annealing: swaps parts between sites of their kind to shorten nets.

The input are the tables of a placement problem (``Problem``) and an initial site for each part, the
result is the best placement seen.  The cost is the sum of the half perimeters of the nets, an
integer.  All decisions use integers only, with a random number generator and an acceptance table
of its own, so that a seed gives the same placement on every machine.

``improve`` is a kernel: a function that is compiled to machine code, or runs as Python in tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import accumulate, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument

HOT, WARM = Decimal(6), Decimal(1)
"""Temperatures to start from, in units of the cost: one forgets the start, one keeps its shape."""

_TEMPERATURES = 60
_LAST = Decimal("0.12")

_BESIDE = 6
"""A move to a connected part goes to one of so many sites, the nearest ones."""

_MODULUS, _FACTOR = (1 << 31) - 1, 48_271
"""The generator: a state is the one before times the factor, modulo a prime."""

_NOWHERE = 1 << 40
"""Beyond all rows and columns."""

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
    kinds: the kind of each part, by number; a part may only go to sites that allow its kind.
    rows, columns, cells: the position of each site, and the number of its cell of the grid.
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


def half_perimeters(problem: Problem, sites: Sequence[int]) -> list[int]:
    """For each net, the height plus the width of the box around its parts."""
    costs = []
    for first, last in pairwise(problem.parts_from):
        members = [sites[part] for part in problem.parts_of[first:last]]
        rows = [problem.rows[site] for site in members]
        columns = [problem.columns[site] for site in members]
        costs.append(max(rows) - min(rows) + max(columns) - min(columns))
    return costs


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

    The temperature falls from ``first``. A Ctrl-C takes effect between two temperatures in compiled
    code.  Without ``compiled``, for tests, the steps are the same.
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
    of_nets = [0] * (len(problem.parts_from) - 1)
    room = (of_nets, [0] * len(start), of_nets * 8, of_nets, of_nets)
    state = [array(numbers) for numbers in (start, at, *room, [_seeded(seed)])]
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
    """A state of the generator; neighboring seeds give distant states."""
    return seed * 69_621 % (_MODULUS - 1) + 1


def _temperatures(first: Decimal) -> list[Decimal]:
    """A geometric sequence of temperatures."""
    context = Context(prec=30)
    step = context.divide(context.ln(context.divide(_LAST, first)), _TEMPERATURES - 1)
    return [
        context.multiply(first, context.exp(context.multiply(step, number)))
        for number in range(_TEMPERATURES)
    ]


def _acceptance(temperature: Decimal) -> list[int]:
    """For each increase of the cost, the bound of the random draws that accept it.

    Computed with ``decimal``, which rounds correctly, unlike the logarithms of C libraries.
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
    part_costs: Integers,
    boxes: Integers,
    marks: Integers,
    touched: Integers,
    random: Integers,
    accepted: Integers,
    grid: int,
    width: int,
    window: int,
    moves: int,
) -> None:
    """Try some moves at one temperature; changes ``sites``, ``at`` and ``random``.

    A move takes a part to one of the ``window`` nearest sites, or beside a part that it is
    connected to, and swaps it with the part there.  Nearly all moves are rejected.  So the allowed
    increase is drawn first, and a move is abandoned as soon as the remaining nets could not make up
    for those examined so far, even with length 0.  A net with both parts does not change; for any
    other one, the box without the moving part is known.

    The rest of the state is computed here: the ``costs`` of nets, their sum for each part, and the
    ``boxes`` that ``_measure`` describes.  ``marks`` and ``touched`` are scratch space with an item
    for each net.
    """
    state = random[0]
    parts, places = len(kinds), len(rows)
    for part in range(parts):
        part_costs[part] = 0
    for net in range(len(costs)):
        marks[net], costs[net] = -1, 0
        _measure(net, rows, columns, parts_of, parts_from, sites, costs, part_costs, boxes)
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
        state = state * _FACTOR % _MODULUS
        most = 0
        while most < _TABLED - 1 and state < accepted[most + 1]:
            most += 1
        most += part_costs[part]
        if other >= 0:
            most += part_costs[other]
            for index in range(nets_from[other], nets_from[other + 1]):
                marks[nets_of[index]] = move
        least, size, moved, row, column = 0, 0, part, rows[here], columns[here]
        new_row, new_column = rows[there], columns[there]
        while moved >= 0:
            for index in range(nets_from[moved], nets_from[moved + 1]):
                net = nets_of[index]
                if (marks[net] == move) == (moved == part):
                    marks[net] = -1
                    most -= costs[net]
                    continue
                touched[size] = net
                size += 1
                box = 8 * net
                top, bottom = boxes[box], boxes[box + 1]
                left, right = boxes[box + 2], boxes[box + 3]
                second, last_but_one = boxes[box + 4], boxes[box + 5]
                top = min(new_row, second if row == top else top)
                bottom = max(new_row, last_but_one if row == bottom else bottom)
                second, last_but_one = boxes[box + 6], boxes[box + 7]
                left = min(new_column, second if column == left else left)
                right = max(new_column, last_but_one if column == right else right)
                least += bottom - top + right - left
                if least > most:
                    break
            if least > most:
                break
            moved = other if moved == part else -1
            row, column, new_row, new_column = new_row, new_column, row, column
        if least <= most:
            sites[part] = there
            if other >= 0:
                sites[other] = here
            at[here], at[there] = other, part
            for index in range(size):
                net = touched[index]
                _measure(net, rows, columns, parts_of, parts_from, sites, costs, part_costs, boxes)
    random[0] = state


def _measure(
    net: int,
    rows: Integers,
    columns: Integers,
    parts_of: Integers,
    parts_from: Integers,
    sites: Integers,
    costs: Integers,
    part_costs: Integers,
    boxes: Integers,
) -> None:
    """Compute the cost of a net, its box, and its edges without one of the parts on them.

    An edge with several parts stays where it is, and otherwise moves inward to the next part.
    """
    site = sites[parts_of[parts_from[net]]]
    top = bottom = rows[site]
    left = right = columns[site]
    low, high, leftmost, rightmost = _NOWHERE, -1, _NOWHERE, -1
    for member in range(parts_from[net] + 1, parts_from[net + 1]):
        site = sites[parts_of[member]]
        row, column = rows[site], columns[site]
        low, high = min(low, max(top, row)), max(high, min(bottom, row))
        leftmost, rightmost = min(leftmost, max(left, column)), max(rightmost, min(right, column))
        top, bottom = min(top, row), max(bottom, row)
        left, right = min(left, column), max(right, column)
    box = 8 * net
    boxes[box], boxes[box + 1], boxes[box + 2], boxes[box + 3] = top, bottom, left, right
    boxes[box + 4], boxes[box + 5], boxes[box + 6], boxes[box + 7] = low, high, leftmost, rightmost
    change = bottom - top + right - left - costs[net]
    costs[net] += change
    for member in range(parts_from[net], parts_from[net + 1]):
        part_costs[parts_of[member]] += change
