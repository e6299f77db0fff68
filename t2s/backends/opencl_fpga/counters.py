"""Counters in place of divisions: a digit of a loop is a variable that moves on with the loop.

Where ``step`` runs and ``step % 3`` and ``step / 3 % 5`` are wanted, the kernel has::

    int step_mod_3 = 0, step_div_3_mod_5 = 0;
    for (int step = 0; step < 60; step++) {
        ...
        if (++step_mod_3 == 3) {
            step_mod_3 = 0;
            if (++step_div_3_mod_5 == 5)
                step_div_3_mod_5 = 0;
        }
    }

Digits of one loop whose scales divide one another share such a chain.  Digits that are bits of the
loop need no counter.  What stays a division, by another number than a power of two: of a multiple
of a loop, of several loops together, of a loop together with the PE's position, and of data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from t2s.backends.opencl_fpga.digits import Digit
from t2s.backends.opencl_fpga.kernel_ast import (
    Assign,
    Expression,
    If,
    Increment,
    Name,
    Statement,
    Unary,
    binary,
    number,
)
from t2s.backends.opencl_fpga.names import Identifiers
from t2s.core.expr import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The variable of a digit, and the chains of the digits that the digit has itself."""

    digit: Digit
    name: str
    parts: tuple[Chain, ...] = ()


Chain = tuple[Counter, ...]
"""Counters of one loop, the lowest digit first, without gaps: from scale 1 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The values of a digit: from ``first`` up to, not including, ``limit``, then again."""

    first: int
    limit: int


class Counters:
    """The counters of one kernel: collected while its body is lowered, then declared and moved."""

    def __init__(self, loops: Iterable[str], identifiers: Identifiers) -> None:
        self.loops = frozenset(loops)
        self._identifiers = identifiers
        self._names: dict[Digit, str] = {}

    def variable(self, digit: Digit) -> str:
        """The counter of a digit of a loop."""
        if digit.of is not None:
            self.variable(digit.of)
        if digit not in self._names:
            self._names[digit] = self._identifiers.fresh(_describe(digit))
        return self._names[digit]

    def chains(self, loop: str, of: Digit | None = None) -> list[Chain]:
        """The counters of a loop: the digits that are wanted, and those that carry to them.

        With ``of``, those of one of its digits.  To be called once, when all are known.
        """
        base = Index(name=loop)
        wanted = [digit for digit in self._names if digit.base == base and digit.of == of]
        wanted.sort(key=lambda digit: (digit.shift, digit.scale, digit.count or 0))
        chains: list[Chain] = []
        for digit in wanted:
            parts = tuple(self.chains(loop, digit))
            counter = Counter(digit=digit, name=self._names[digit], parts=parts)
            below = [chain for chain in chains if _follows(chain[-1].digit, digit)]
            if below:
                chain = max(below, key=lambda chain: chain[-1].digit.end or 1)
                gap = self._gap(chain[-1].digit.end or 1, digit)
                chains[chains.index(chain)] = (*chain, *gap, counter)
            else:
                chains.append((*self._gap(1, digit), counter))
        return chains

    def _gap(self, scale: int, digit: Digit) -> Chain:
        """A counter from a scale up to that of ``digit``: it carries, and nothing else reads it."""
        if digit.scale == scale:
            return ()
        gap = Digit(
            base=digit.base,
            shift=digit.shift % digit.scale,
            scale=scale,
            count=digit.scale // scale,
            of=digit.of,
        )
        return (Counter(digit=gap, name=self._identifiers.fresh(_describe(gap))),)


def with_parts(chain: Chain) -> list[Chain]:
    """The chain, and those of the digits of its digits."""
    parts = [part for counter in chain for part in counter.parts]
    return [chain, *(each for part in parts for each in with_parts(part))]


def _describe(digit: Digit) -> str:
    text = digit.base.name if isinstance(digit.base, Index) else "number"
    text += "" if digit.of is None else "_part"
    text += f"_plus_{digit.shift}" if digit.shift else ""
    text += f"_div_{digit.scale}" if digit.scale > 1 else ""
    return text + ("" if digit.count is None else f"_mod_{digit.count}")


def _follows(last: Digit, digit: Digit) -> bool:
    """Whether a digit can stand above another in a chain."""
    if last.end is None or digit.scale % last.end:
        return False
    return last.shift % last.end == digit.shift % last.end


def first_value(digit: Digit, start: int, zero: Digit | None = None) -> int:
    """The value of a digit where its loop starts, or where another digit, ``zero``, is 0."""
    if zero is not None and digit == zero:
        return 0
    value = start if digit.of is None else first_value(digit.of, start, zero)
    value = (value + digit.shift) // digit.scale
    return value if digit.count is None else value % digit.count


def cycle_of(digit: Digit) -> Cycle | None:
    """What a digit runs through; ``None`` if it only grows."""
    return None if digit.count is None else Cycle(first=0, limit=digit.count)


def closed_cycle(digit: Digit, start: int, extent: int) -> Cycle | None:
    """What a digit runs through if it is back at its first value after the loop; else ``None``."""
    if digit.count is not None and digit.end is not None:
        return None if extent % digit.end else Cycle(first=0, limit=digit.count)
    first = start + digit.shift
    if first % digit.scale or extent % digit.scale:
        return None
    return Cycle(first=first // digit.scale, limit=(first + extent) // digit.scale)


def moved_on(chain: Chain, cycle: Callable[[Digit], Cycle | None]) -> list[Statement]:
    """What moves the counters of a chain on at the end of an iteration."""
    statements: list[Statement] = []
    for counter in reversed(chain):
        variable: Expression = Name(name=counter.name)
        values = cycle(counter.digit)
        if values is None:
            statements = [Increment(target=variable)]
            continue
        parts = [statement for part in counter.parts for statement in moved_on(part, cycle_of)]
        if values == Cycle(first=0, limit=2) and not statements and not parts:
            statements = [Assign(target=variable, value=binary("-", number(1), variable))]
            continue
        wraps = binary("==", Unary(operator="++", operand=variable), number(values.limit))
        restarts = [Assign(target=variable, value=number(values.first))]
        restarts += [
            Assign(
                target=Name(name=part.name),
                value=number(first_value(part.digit, 0, zero=counter.digit)),
            )
            for part_chain in with_parts((counter,))[1:]
            for part in part_chain
        ]
        statements = [*parts, If(condition=wraps, then=(*restarts, *statements))]
    return statements
