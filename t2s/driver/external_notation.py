"""What a Func computes as a capability: derived from its definitions, so that nothing is claimed.

A Func is one statement of index notation if it is one function over a box from 0, with one update
at most, whose value adds products of reads at plain indices to what was there.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.capability.ir import (
    AllOf,
    Capability,
    Compared,
    Condition,
    VariableExtent,
    WholeNumber,
)
from t2s.capability.verify import verify_capability
from t2s.core.errors import UnsupportedError
from t2s.core.expr import Apply, Const, Expr, Index, Read, reads
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.func.ir import Definition, Dimension, Function, TemporalProgram
from t2s.sparse_repr.notation.ir import (
    Access,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
    accesses,
)

_BETWEEN = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.MINIMUM, Op.MAXIMUM)


def capability_of(program: TemporalProgram) -> Capability:
    """The statement that a design computes, for the extents that it has.

    Raises ``UnsupportedError`` at the line that is no index notation: several Funcs, recurrences,
    offsets in subscripts, conditions, and domains that are no boxes.
    """
    function = _only_function(program)
    notation = _Notation(program, function)
    value = notation.value()
    result = Access(tensor=function.name, variables=notation.target(function.initial))
    extents = notation.extents()
    notation.check_inputs(extents, value)
    condition = AllOf(
        parts=tuple(
            Compared(
                operator=Op.EQUAL,
                left=VariableExtent(variable=name),
                right=WholeNumber(value=extents[name]),
            )
            for name in dict.fromkeys((*result.variables, *_variables(value)))
        )
    )
    made = Capability(
        result=result,
        value=value,
        condition=condition,
        types=(function.type,),
        location=function.location,
    )
    verify_capability(made)
    return made


def extents_of(condition: Condition) -> dict[str, int]:
    """The extents that ``capability_of`` asks for."""
    found = {}
    for one in condition.parts if isinstance(condition, AllOf) else ():
        match one:
            case Compared(left=VariableExtent(variable=name), right=WholeNumber(value=extent)):
                found[name] = extent
    return found


def _variables(value: Expression) -> tuple[str, ...]:
    return tuple(name for access in accesses(value) for name in access.variables)


def _only_function(program: TemporalProgram) -> Function:
    if program.systems:
        first = program.function(program.systems[0].members[0])
        raise _refused(
            f"{first.name} is a recurrence",
            (first.updates or (first.initial,))[-1].location,
            "sums of products of inputs",
            f"a function that reads {', '.join(program.systems[0].members)} at other elements",
        )
    if len(program.functions) > 1:
        names = [one.name for one in program.functions]
        other = next(one for one in program.functions if one.name != program.output)
        raise _refused(
            f"the design of {program.output} is several functions",
            other.initial.location,
            "one function of inputs",
            ", ".join(names),
            hint="what one of them computes is an external function; the others are statements",
        )
    if program.parameters:
        raise _refused(
            f"{program.output} reads a number that is given when it runs",
            program.parameters[0].location,
            "inputs that are arrays",
            program.parameters[0].name,
        )
    return program.functions[0]


def _refused(
    what: str, location: SourceLocation | None, expected: str, given: str, hint: str | None = None
) -> UnsupportedError:
    return UnsupportedError(
        f"{what}, which is no index notation",
        location=location,
        expected=expected,
        given=given,
        hint=hint,
    )


@dataclass(frozen=True)
class _Notation:
    program: TemporalProgram
    function: Function

    def value(self) -> Expression:
        """The initial value, and what the update adds to it, with its sums."""
        function = self.function
        initial = self._expression(function.initial.value, function.initial)
        if not function.updates:
            return initial
        if len(function.updates) > 1:
            raise _refused(
                f"{function.name} has several updates",
                function.updates[1].location,
                "one update, which adds to the initial value",
                f"{len(function.updates)} updates",
            )
        update = function.updates[0]
        if self.target(update) != self.target(function.initial):
            raise self._no_sum(update)
        added = self._expression(self._added(update), update)
        summed = tuple(dimension.name for dimension in update.reductions)
        if summed:
            added = Sum(variables=summed, value=added)
        if initial == Number(value=0):
            return added
        return Combine(operator=Op.ADD, left=initial, right=added)

    def _added(self, update: Definition) -> Expr:
        """What an update adds to the element that it is for."""
        match update.value:
            case Apply(operator=Op.ADD, operands=(left, right)):
                for one, other in ((left, right), (right, left)):
                    if self._is_own(one, update) and not self._reads_own(other):
                        return other
        raise self._no_sum(update)

    def _is_own(self, one: Expr, update: Definition) -> bool:
        """Whether it is the element that the update is for."""
        own = isinstance(one, Read) and one.source == self.function.name
        return own and isinstance(one, Read) and one.indices == update.target

    def _reads_own(self, value: Expr) -> bool:
        return any(read.source == self.function.name for read in reads(value))

    def _no_sum(self, update: Definition) -> UnsupportedError:
        return _refused(
            f"the update of {self.function.name} is no sum",
            update.location,
            f"{self.function.name}[...] += a product of inputs",
            show(update.value),
        )

    def target(self, definition: Definition) -> tuple[str, ...]:
        """The variables of the result."""
        return self._plain(definition.target, definition.location, self.function.name)

    def _plain(
        self, indices: tuple[Expr, ...], location: SourceLocation | None, name: str
    ) -> tuple[str, ...]:
        found = []
        for one in indices:
            if not isinstance(one, Index):
                raise _refused(
                    f"{name} is read at {show(one)}",
                    location,
                    "a variable in each subscript",
                    show(one),
                )
            found.append(one.name)
        return tuple(found)

    def _expression(self, value: Expr, definition: Definition) -> Expression:
        match value:
            case Const(value=number) if value.type.is_float or value.type.is_integer:
                whole = int(number)
                return Number(value=whole if whole == number else number)
            case Read(source=source, indices=indices, location=location):
                names = self._plain(indices, location or definition.location, source)
                if value.type != self.function.type:
                    raise _refused(
                        f"{source} is of {value.type} and {self.function.name} of another type",
                        location or definition.location,
                        f"inputs of {self.function.type}",
                        str(value.type),
                    )
                return Access(tensor=source, variables=names, location=location)
            case Apply(operator=Op.NEGATE, operands=(one,)):
                return Negative(value=self._expression(one, definition))
            case Apply(operator=operator, operands=(left, right)) if self._joins(operator):
                return Combine(
                    operator=operator,
                    left=self._expression(left, definition),
                    right=self._expression(right, definition),
                )
        raise _refused(
            f"{self.function.name} is computed by other than + - * / min max",
            definition.location,
            "reads and numbers, joined by these operators",
            show(value),
        )

    def _joins(self, operator: Op) -> bool:
        """Whether notation has the operator; quotients of integers are rounded in other ways."""
        return operator in _BETWEEN and (operator is not Op.DIVIDE or self.function.type.is_float)

    def extents(self) -> dict[str, int]:
        """How far each variable goes."""
        found: dict[str, int] = {}
        for definition in self.function.definitions:
            for dimension in definition.domain:
                extent = self._extent(dimension, definition)
                if found.setdefault(dimension.name, extent) != extent:
                    raise _refused(
                        f"{dimension.name} goes to {extent} and to {found[dimension.name]}",
                        definition.location,
                        "one extent of each variable",
                        dimension.name,
                    )
        return found

    @staticmethod
    def _extent(dimension: Dimension, definition: Definition) -> int:
        match dimension.minimum, dimension.extent:
            case Const(value=0), Const(value=extent):
                return int(extent)
        raise _refused(
            f"{dimension.name} does not go from 0 to a number",
            definition.location,
            "bounds that are numbers, from 0",
            f"from {show(dimension.minimum)}, {show(dimension.extent)} values",
        )

    def check_inputs(self, extents: dict[str, int], value: Expression) -> None:
        """Inputs are read as a whole."""
        shapes = {one.name: one for one in self.program.inputs}
        for access in accesses(value):
            shape = tuple(extents[name] for name in access.variables)
            given = shapes[access.tensor].shape
            if shape != given:
                raise _refused(
                    f"a part of {access.tensor} is read",
                    access.location or self.function.location,
                    f"the whole of {access.tensor}, {' x '.join(map(str, given))}",
                    " x ".join(map(str, shape)),
                )
