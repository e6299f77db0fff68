"""Counters in place of divisions: a digit of a loop is a variable that advances with the loop.

For ``step % 3`` and ``step / 3 % 5`` of a loop ``step`` the kernel has::

    int step_mod_3 = 0, step_div_3_mod_5 = 0;
    for (int step = 0; step < 60; step++) {
        ...
        if (++step_mod_3 == 3) {
            step_mod_3 = 0;
            if (++step_div_3_mod_5 == 5)
                step_div_3_mod_5 = 0;
        }
    }

Digits of one loop whose scales divide one another carry in this way.  Digits that are bits of the
loop need no counter.  Some divisions by other numbers than powers of two remain: of a multiple of a
loop, of a sum of loops, of a loop plus the PE's position, and of data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from t2s.backends.kernels.kernel_ast import (
    Increment,
)
from t2s.backends.text.expressions import (
    If,
    Name,
    Set,
    TargetExpression,
    TargetStatement,
    Unary,
    binary,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.core.expr import Apply, Const, Expr, Index, simplify
from t2s.core.intervals import Ranges, from_linear_form, interval, linear_form
from t2s.core.ops import Op
from t2s.core.types import INT32


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The variable of a digit.

    ``above`` are the counters that advance when this one wraps around; ``parts`` those of the
    digits of this digit, which advance with it.
    """

    digit: LoopDigit
    name: str
    above: tuple[Counter, ...] = ()
    parts: tuple[Counter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """The values of a digit: repeatedly from ``first`` up to, not including, ``limit``."""

    first: int
    limit: int


class DigitCounters:
    """The counters of one kernel: collected while the body is lowered, then declared."""

    def __init__(self, loops: Iterable[str], identifiers: Identifiers) -> None:
        self.loops = frozenset(loops)
        self._identifiers = identifiers
        self._names: dict[LoopDigit, str] = {}

    def __len__(self) -> int:
        return len(self._names)

    def variable(self, digit: LoopDigit) -> str:
        """The counter of a digit of a loop."""
        if digit.of is not None:
            self.variable(digit.of)
        if digit not in self._names:
            self._names[digit] = self._identifiers.fresh(_describe(digit))
        return self._names[digit]

    def lowest(self, loop: str, of: LoopDigit | None = None) -> tuple[Counter, ...]:
        """The counters that advance with a loop, or with one of its digits, and those above them.

        They include the digits that are needed to carry to the requested ones.  To be called once,
        when all requests are known.
        """
        base = Index(name=loop)
        names = {d: name for d, name in self._names.items() if d.base == base and d.of == of}
        below: dict[LoopDigit, LoopDigit | None] = {}
        for digit in sorted(names, key=lambda d: (d.shift, d.scale, d.count or 0)):
            carrying = [lower for lower in below if _carries(lower, digit)]
            lower = max(carrying, key=lambda d: d.end or 1) if carrying else None
            reached = 1 if lower is None else lower.end or 1
            if reached < digit.scale:
                gap = LoopDigit(
                    base=base,
                    shift=digit.shift % digit.scale,
                    scale=reached,
                    count=digit.scale // reached,
                    of=of,
                )
                if gap not in names:
                    names[gap] = self._identifiers.fresh(_describe(gap))
                below[gap] = lower
                lower = gap
            below[digit] = lower

        def counters(lower: LoopDigit | None) -> tuple[Counter, ...]:
            return tuple(
                Counter(
                    digit=digit,
                    name=names[digit],
                    above=counters(digit),
                    parts=self.lowest(loop, digit),
                )
                for digit, carried in below.items()
                if carried == lower
            )

        return counters(None)


def all_of(counter: Counter) -> list[Counter]:
    """The counter and all counters that advance with it."""
    moved = (*counter.above, *counter.parts)
    return [counter, *(each for other in moved for each in all_of(other))]


def _describe(digit: LoopDigit) -> str:
    text = digit.base.name if isinstance(digit.base, Index) else "number"
    text += "" if digit.of is None else "_part"
    text += f"_plus_{digit.shift}" if digit.shift else ""
    text += f"_div_{digit.scale}" if digit.scale > 1 else ""
    return text + ("" if digit.count is None else f"_mod_{digit.count}")


def _carries(lower: LoopDigit, digit: LoopDigit) -> bool:
    """Whether a digit advances only when a lower one wraps around."""
    if lower.end is None or digit.scale % lower.end:
        return False
    return lower.shift % lower.end == digit.shift % lower.end


def first_value(digit: LoopDigit, start: int, zero: LoopDigit | None = None) -> int:
    """The value of a digit at the start of its loop, or where another digit, ``zero``, is 0."""
    if zero is not None and digit == zero:
        return 0
    value = start if digit.of is None else first_value(digit.of, start, zero)
    value = (value + digit.shift) // digit.scale
    return value if digit.count is None else value % digit.count


def cycle_of(digit: LoopDigit) -> Cycle | None:
    """The cycle of values of a digit; ``None`` if it only grows."""
    return None if digit.count is None else Cycle(first=0, limit=digit.count)


def closed_cycle(digit: LoopDigit, start: int, extent: int) -> Cycle | None:
    """The cycle of a digit that is back at its first value after the loop; else ``None``."""
    if digit.count is not None and digit.end is not None:
        return None if extent % digit.end else Cycle(first=0, limit=digit.count)
    first = start + digit.shift
    if first % digit.scale or extent % digit.scale:
        return None
    return Cycle(first=first // digit.scale, limit=(first + extent) // digit.scale)


def moved_on(counter: Counter, cycle: Callable[[LoopDigit], Cycle | None]) -> list[TargetStatement]:
    """Statements that advance a counter, and those that it carries to, after an iteration."""
    variable: TargetExpression = Name(name=counter.name)
    values = cycle(counter.digit)
    if values is None:
        return [Increment(target=variable)]
    parts = [statement for part in counter.parts for statement in moved_on(part, cycle_of)]
    carried = [statement for above in counter.above for statement in moved_on(above, cycle)]
    if values == Cycle(first=0, limit=2) and not carried and not parts:
        return [Set(target=variable, value=binary("-", number(1), variable))]
    wraps = binary("==", Unary(operator="++", operand=variable), number(values.limit))
    restarts = [Set(target=variable, value=number(values.first))]
    restarts += [
        Set(
            target=Name(name=each.name),
            value=number(first_value(each.digit, 0, zero=counter.digit)),
        )
        for part in counter.parts
        for each in all_of(part)
    ]
    return [*parts, If(condition=wraps, then=(*restarts, *carried))]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopDigit:
    """``(base + shift) // scale % count``, or without the remainder if ``count`` is ``None``.

    ``base`` is linear in the indices and has no constant.  With ``of`` it is a digit of another
    digit, in place of ``base``, whose ``count`` is not a multiple of the scale.
    """

    base: Expr
    shift: int
    scale: int
    count: int | None
    of: LoopDigit | None = None

    @property
    def end(self) -> int | None:
        """The scale of the next digit."""
        return None if self.count is None else self.scale * self.count

    @property
    def is_bits(self) -> bool:
        """Whether the digit is some bits of ``base + shift``."""
        return is_power_of_two(self.scale) and (self.count is None or is_power_of_two(self.count))

    def at(self, base: Expr) -> Expr:
        """The same digit of another number, as an expression."""
        value = base if self.of is None else self.of.at(base)
        value = (value + self.shift) // self.scale
        if self.count is not None:
            value = value % self.count
        return simplify(value)


def is_power_of_two(number: int) -> bool:
    """Whether a positive number is 1, 2, 4, ..."""
    return number & (number - 1) == 0


def digit_of(expr: Expr, ranges: Ranges) -> tuple[LoopDigit, int] | None:
    """``expr`` as a digit plus a constant; ``None`` if it has no such form."""
    if expr.type != INT32:
        return None
    form = linear_form(expr)
    if form is not None:
        coefficients, constant = form
        known = isinstance(expr, Index) or interval(expr, ranges) is not None
        if not coefficients or not known:
            return None
        base = from_linear_form((coefficients, 0))
        return LoopDigit(base=base, shift=constant, scale=1, count=None), 0
    match expr:
        case Apply(operator=operator, operands=(left, Const(value=int() as number))):
            inner = digit_of(left, ranges)
            if inner is None:
                return None
            digit, offset = inner
            match operator:
                case Op.FLOOR_DIVIDE if number > 0:
                    return _divided(digit, offset, number), 0
                case Op.MODULO if number > 0:
                    return _remainder(digit, offset, number), 0
                case Op.ADD:
                    return digit, offset + number
                case Op.SUBTRACT:
                    return digit, offset - number
    return None


def _divided(digit: LoopDigit, offset: int, by: int) -> LoopDigit:
    if digit.count is None:
        shift = digit.shift + offset * digit.scale
        return replace(digit, shift=shift, scale=digit.scale * by)
    if offset or digit.count % by:
        return _part(digit, shift=offset, scale=by, count=None)
    return replace(digit, scale=digit.scale * by, count=digit.count // by)


def _remainder(digit: LoopDigit, offset: int, by: int) -> LoopDigit:
    if digit.count is None or digit.count % by == 0:
        return replace(digit, shift=digit.shift + offset * digit.scale, count=by)
    if not offset and digit.count <= by:
        return digit
    return _part(digit, shift=offset, scale=1, count=by)


def _part(digit: LoopDigit, *, shift: int, scale: int, count: int | None) -> LoopDigit:
    whole = replace(digit, shift=digit.shift % (digit.end or 1))
    return LoopDigit(base=digit.base, shift=shift, scale=scale, count=count, of=whole)
