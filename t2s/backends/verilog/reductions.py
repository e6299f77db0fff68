"""Whether something holds at one or at all of many places: trees of registers."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.text.expressions import Name, number
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.top import Fresh

MODULE = "reduction"
_INPUTS = 4
"""Of a group of places with a register of its own: as many as a look-up table has."""


def levels_of(count: int) -> list[int]:
    """The registers at each level of a tree over so many places."""
    levels = [-(-count // _INPUTS)]
    while levels[-1] > 1:
        levels.append(-(-levels[-1] // _INPUTS))
    return levels


def depth_of(signals: Sequence[tuple[str, int]]) -> int:
    """The cycles until what holds at some places has got through the trees over them."""
    return max(len(levels_of(count)) for _, count in signals)


def reduction(
    fresh: Fresh, target: str, signals: Sequence[tuple[str, int]], reset: str, *, every: bool
) -> list[ast.Item]:
    """``target`` is whether one of the signals, or with ``every`` all of them, were true.

    Each is of so many places; ``depth_of(signals)`` cycles are between.  ``target`` is 0 in reset.
    """
    items: list[ast.Item] = []
    found, depth = [], depth_of(signals)
    for name, count in signals:
        together = fresh(f"{name}_together")
        found.append(Name(name=together))
        items += [
            ast.variable(together),
            ast.Instance(
                module=MODULE,
                name=fresh(f"{together}_tree"),
                parameters=(
                    ("COUNT", number(count)),
                    ("DEPTH", number(depth)),
                    ("EVERY", number(int(every))),
                ),
                connections=(
                    (port.CLOCK, Name(name=port.CLOCK)),
                    (port.RESET, Name(name=reset)),
                    ("holds", Name(name=name)),
                    ("found", Name(name=together)),
                ),
            ),
        ]
    whole = ast.both(*found) if every else ast.either(*found)
    return [*items, ast.ContinuousAssignment(target=Name(name=target), value=whole)]
