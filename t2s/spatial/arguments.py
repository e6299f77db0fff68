"""The arguments of directives: objects become names, and invalid ones are refused at once.

``space_time_directive`` reads the three forms of ``space_time_transform`` as one directive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Index, apply, const, simplify
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.validate import as_int
from t2s.func.expressions import as_expression
from t2s.func.func import ImageParam, RVar, TemporalFunc, Var
from t2s.spatial.directive import Directive
from t2s.spatial.directives.space_time import SpaceTimeTransform

LoopVariable = Var | RVar


class DirectiveArguments(TemporalFunc[Directive]):
    """A Func with checks of the arguments of its directives.

    ``what`` is the name of the directive, for the texts of errors.
    """

    def _operand(self, what: str, operand: object) -> str:
        if isinstance(operand, ImageParam | TemporalFunc):
            return operand.name
        raise UserError(
            f"{what} on {self.name} needs an input or a Func",
            location=user_location(),
            expected="an ImageParam or a Func object",
            given=repr(operand),
        )

    def _loops(self, what: str, *loops: object) -> tuple[str, ...]:
        names: list[str] = []
        for loop in loops:
            if isinstance(loop, Var | RVar):
                names.append(loop.name)
            elif isinstance(loop, tuple | list) and loop:
                names.extend(self._loops(what, *loop))
            else:
                raise UserError(
                    f"{what} on {self.name} needs loops",
                    location=user_location(),
                    expected="Var or RDom objects",
                    given=repr(loop),
                    hint='loops are named by objects: ii = Var("ii")',
                )
        if not names:
            raise UserError(
                f"{what} on {self.name} needs a loop",
                location=user_location(),
                expected="one or more Var or RDom objects",
            )
        return tuple(names)

    def _distinct(self, what: str, names: tuple[str, ...]) -> None:
        for name in names:
            if names.count(name) > 1:
                raise UserError(
                    f"{what} on {self.name} names {name} twice",
                    location=user_location(),
                    expected="each name once",
                    given=", ".join(names),
                )

    def _positive(self, what: str, role: str, value: object) -> int:
        number = as_int(value)
        if number is None or number < 1:
            raise UserError(
                f"the {role} of {what} on {self.name} has to be a positive integer",
                location=user_location(),
                expected="1 or more",
                given=repr(value),
            )
        return number


ReadLoops = Callable[..., tuple[str, ...]]


def space_time_directive(
    function: str, arguments: tuple[object, ...], read_loops: ReadLoops
) -> SpaceTimeTransform:
    """Parse the arguments; ``read_loops(what, *loops)`` checks loops and returns their names.

    Raises ``UserError`` with the user's line for arguments of any other form.
    """
    what = "space_time_transform"
    listed = bool(arguments) and isinstance(arguments[0], list | tuple)
    names = read_loops(what, arguments[0]) if listed else read_loops(what, *arguments)
    _check_distinct(function, names)
    rest = arguments[1:] if listed else ()
    coefficients: tuple[int, ...] = ()
    maps: tuple[tuple[str, Expr], ...] = ()
    match rest:
        case ():
            text = ", ".join(names)
        case (Mapping() as given,) if given:
            maps = _maps(function, given)
            text = f"[{', '.join(names)}], {_spell(maps)}"
        case (list() | tuple() as given,):
            coefficients = _integers(function, given, len(names))
            text = f"[{', '.join(names)}], {list(coefficients)}"
        case (list() | tuple() as targets, list() | tuple() as rows):
            maps = _matrix(function, names, read_loops(what, targets), rows)
            text = f"[{', '.join(names)}], {_spell(maps)}"
        case _:
            raise _no_form(function, ", ".join(map(repr, arguments)))
    if len(maps) == 1 or len(maps) > len(names):
        most = f"2 to {len(names)}" if len(names) > 2 else "2"
        raise UserError(
            f"space_time_transform on {function} needs one loop in time and at least one in space",
            location=user_location(),
            expected=f"{most} new loops, time last, for at least as many old ones",
            given=f"{len(names)} loop{'s' if len(names) > 1 else ''} to {_spell(maps)}",
            hint=_too_few(names) if len(maps) == 1 else None,
        )
    return SpaceTimeTransform(
        loops=names,
        coefficients=coefficients,
        maps=maps,
        location=user_location(),
        text=f"{what}({text})",
    )


def _too_few(names: Sequence[str]) -> str:
    """The error, with a suggestion, for a transformation without a new loop in space."""
    if len(names) == 1:
        return (
            f"a Func without the directive runs {names[0]} in time; "
            f"space_time_transform({names[0]}) puts it into space"
        )
    return "fuse the loops, or reorder them, to change the order in one PE"


def _no_form(function: str, given: str) -> UserError:
    return UserError(
        f"space_time_transform on {function} cannot read its arguments",
        location=user_location(),
        expected="space_time_transform(i, j), ([i, j], [1, 1]), ([i, j], {p: i, t: i + j}) or "
        "([i, j], [p, t], [[1, 0], [1, 1]])",
        given=given,
    )


def _check_distinct(function: str, names: Sequence[str]) -> None:
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise UserError(
            f"space_time_transform on {function} names {twice} twice",
            location=user_location(),
            expected="each loop once",
            given=", ".join(names),
        )


def _maps(function: str, given: Mapping[object, object]) -> tuple[tuple[str, Expr], ...]:
    result = []
    for target, value in given.items():
        if not isinstance(target, Var | RVar):
            raise _no_form(function, f"{target!r} as a new loop")
        result.append((target.name, simplify(as_expression(value).node)))
    _check_distinct(function, [name for name, _ in result])
    return tuple(result)


def _integers(function: str, given: Sequence[object], count: int) -> tuple[int, ...]:
    values = tuple(number for v in given if (number := as_int(v)) is not None)
    if len(values) != len(given) or len(values) != count:
        raise UserError(
            f"space_time_transform on {function} needs one integer for each loop",
            location=user_location(),
            expected=f"{count} coefficient{'s' if count != 1 else ''}",
            given=repr(list(given)),
        )
    return values


def _matrix(
    function: str, sources: tuple[str, ...], targets: tuple[str, ...], rows: Sequence[object]
) -> tuple[tuple[str, Expr], ...]:
    _check_distinct(function, targets)
    if len(rows) != len(targets) or not all(isinstance(row, list | tuple) for row in rows):
        raise UserError(
            f"space_time_transform on {function} needs one row for each new loop",
            location=user_location(),
            expected=f"{len(targets)} rows of {len(sources)} integers, the schedule last",
            given=repr(rows),
        )
    result = []
    for target, row in zip(targets, rows, strict=True):
        factors = _integers(
            function, list(row) if isinstance(row, list | tuple) else [], len(sources)
        )
        result.append((target, _combination(sources, factors)))
    return tuple(result)


def _combination(names: Sequence[str], factors: Sequence[int]) -> Expr:
    total: Expr = const(0)
    for name, factor in zip(names, factors, strict=True):
        if factor:
            term = abs(factor) * Index(name=name)
            total = apply(Op.ADD if factor > 0 else Op.SUBTRACT, total, term)
    return simplify(total)


def _spell(maps: Sequence[tuple[str, Expr]]) -> str:
    return "{" + ", ".join(f"{name}: {show(expr)}" for name, expr in maps) + "}"
