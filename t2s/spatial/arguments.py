"""The arguments of directives: objects become names, and what is none is refused at once."""

from __future__ import annotations

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.func.func import TemporalFunc
from t2s.func.symbols import ImageParam, RVar, Var
from t2s.spatial.directive import Directive

Loop = Var | RVar


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
        number = whole(value)
        if number is None or number < 1:
            raise UserError(
                f"the {role} of {what} on {self.name} has to be a positive integer",
                location=user_location(),
                expected="1 or more",
                given=repr(value),
            )
        return number
