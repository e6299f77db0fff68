"""The rules of expressions, types, shapes and names in a graph: scopes, typing, static control.

``verify_graph`` and ``BodyVerifier`` call ``verify_expr`` and ``verify_indices`` with the names
that are in scope; a broken rule is raised as a ``GraphError`` about their ``Subject``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any

from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Arrange,
    BitOperator,
    BlockOperator,
    Broadcast,
    Cast,
    Const,
    Contract,
    CountBits,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    RankBits,
    Read,
    ReduceLanes,
    ReduceRows,
    Select,
    SetBits,
)
from t2s.core.location import SourceLocation
from t2s.core.names import LONGEST_NAME, is_name
from t2s.core.ops import OPERATORS, accepts, result_type
from t2s.core.printer import show
from t2s.core.types import BOOL, INT32, MOST_LANES, Kind, Type, integer_range
from t2s.core.walk import Term, distinct, field_names
from t2s.graph.graph import Channel, Graph, Region, ScalarParameter, Tensor
from t2s.graph.nodes import Machine, Mode, Node, PEArray, Rule


class GraphError(UserError):
    """A graph that breaks a rule of ``verify_graph``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an error is about: how the message names it, and the user's line that made it."""

    text: str
    location: SourceLocation | None

    @classmethod
    def of(cls, kind: str, item: Node | Channel | Tensor | ScalarParameter) -> Subject:
        return cls(text=f"{kind} {item.name!r}", location=item.location)

    def error(
        self,
        problem: str,
        *,
        expected: str,
        given: str,
        hint: str | None = None,
        notes: Sequence[tuple[SourceLocation | None, str]] = (),
    ) -> GraphError:
        return GraphError(
            f"{self.text}: {problem}",
            location=self.location,
            expected=expected,
            given=given,
            hint=hint,
            notes=notes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExprScope:
    """The names an expression may use; ``locals`` is ``None`` where it has to be static.

    ``in_machine`` says that the operators of machines alone may be used, too.
    """

    subject: Subject
    indices: frozenset[str]
    parameters: Mapping[str, Type]
    locals: Mapping[str, Type] | None = None
    in_machine: bool = False


def one_of(names: Iterable[str]) -> str:
    """The choices there would have been, for the ``expected`` line of an error."""
    listed = ", ".join(sorted(names))
    return f"one of {listed}" if listed else "nothing: there are none"


def spell(type: Type) -> str:
    """A type in the text of an error, where it matters whether it is weak."""
    return f"weak {type}" if type.weak else str(type)


def verify_indices(indices: tuple[Expr, ...], rank: int, scope: ExprScope, what: str) -> None:
    """Index expressions: as many as there are dimensions, each a static scalar integer."""
    if len(indices) != rank:
        raise scope.subject.error(
            f"{what} has the wrong number of indices",
            expected=f"{rank}, one per dimension",
            given=f"{len(indices)}: [{', '.join(show(index) for index in indices)}]",
        )
    for position, index in enumerate(indices):
        verify_index(index, scope, f"index {position} of {what}")


def verify_index(index: Expr, scope: ExprScope, what: str) -> None:
    """A static scalar integer: an element of an index list, or a bound of a loop."""
    verify_expr(index, replace(scope, locals=None), what)
    if not index.type.is_integer or index.type.lanes != 1:
        raise scope.subject.error(
            f"{what} is not an integer",
            expected="a scalar integer",
            given=f"{show(index)} of type {index.type}",
        )


def verify_expr(expr: Expr, scope: ExprScope, what: str) -> None:
    """Every name is in scope and every operator well typed; no reads and no weak types remain."""
    for term in distinct(expr):
        problem = _problem(term, scope)
        if problem is not None:
            text = f"{what}: {problem.text}"
            if term is not expr:
                text += f" (in {show(expr)})"
            raise scope.subject.error(
                text, expected=problem.expected, given=problem.given, hint=problem.hint
            )


def verify_condition(condition: Expr | None, scope: ExprScope, what: str) -> None:
    """Check a condition (``None``: always): well-formed, and of type bool."""
    if condition is None:
        return
    verify_expr(condition, scope, f"the condition of {what}")
    if condition.type != BOOL:
        raise scope.subject.error(
            f"the condition of {what} is not a truth value",
            expected="an expression of type bool",
            given=f"{show(condition)} of type {condition.type}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    text: str
    expected: str
    given: str
    hint: str | None = None


def _problem(term: Term, scope: ExprScope) -> _Problem | None:
    """What is wrong with one node of an expression, its operands taken as right."""
    if isinstance(term, Expr) and term.type.weak:
        return _Problem(
            text="the type is weak",
            expected="a type with a fixed width",
            given=f"{show(term)} of type {spell(term.type)}",
            hint=f"Type.strengthened() gives {term.type}",
        )
    if isinstance(term, Expr) and term.type.lanes > MOST_LANES:
        return _Problem(
            text="the vector is too long",
            expected=f"at most {MOST_LANES} lanes",
            given=f"{term.type.lanes} lanes",
        )
    match term:
        case Const(value=value, type=type):
            return _literal_problem(value, type)
        case Index(name=name, type=type):
            return _name_problem("index", name, type, dict.fromkeys(scope.indices, INT32))
        case Parameter(name=name, type=type):
            return _name_problem("parameter", name, type, scope.parameters)
        case Local(name=name) if scope.locals is None:
            return _Problem(
                text="the expression is not static",
                expected="loop and space indices, parameters and literals only",
                given=f"the local {name!r}",
                hint="control never depends on data; select between values instead",
            )
        case Local(name=name, type=type):
            return _name_problem("local", name, type, scope.locals or {})
        case Read(source=source):
            return _Problem(
                text="a graph has no element reads",
                expected="a Local bound by a Load or a Receive",
                given=f"a read of {source!r}",
                hint="isolate the access into a load unit",
            )
        case Apply():
            return _apply_problem(term)
        case LaneNumbers(type=type):
            return _lane_numbers_problem(type)
        case Select() | Cast() | Broadcast() | ReduceLanes() | Insert():
            return _shape_problem(term)
        case BitOperator() if scope.in_machine:
            return _bits_problem(term)
        case BitOperator():
            return _Problem(
                text="operators on bits of words are those of machines",
                expected="other operators",
                given=show(term),
                hint="make the node a machine",
            )
        case BlockOperator() if scope.in_machine:
            return _block_problem(term)
        case BlockOperator():
            return _Problem(
                text="operators on blocks are those of machines",
                expected="other operators",
                given=show(term),
                hint="make the node a machine",
            )
    return None


def _literal_problem(value: object, type: Type) -> _Problem | None:
    if type.lanes != 1:
        return _Problem(
            text="a literal is a vector",
            expected=f"a literal of type {type.scalar} inside a Broadcast",
            given=f"a literal of type {type}",
        )
    low, high = integer_range(type)
    truth = isinstance(value, bool)
    if type.is_bool:
        fits = truth
    elif type.is_integer:
        fits = isinstance(value, int) and not truth and low <= value <= high
    else:
        fits = isinstance(value, int | float) and not truth
    if fits:
        return None
    return _Problem(
        text="a literal does not fit its type",
        expected=f"a value of {type}" + (f", {low} to {high}" if type.is_integer else ""),
        given=repr(value),
    )


def _lane_numbers_problem(type: Type) -> _Problem | None:
    if not type.is_integer:
        return _Problem(
            text="LaneNumbers are not integers", expected="an integer type", given=str(type)
        )
    last = type.lanes - 1
    return _lanes_problem("LaneNumbers", type) or _literal_problem(last, type.scalar)


def _name_problem(kind: str, name: str, type: Type, scope: Mapping[str, Type]) -> _Problem | None:
    if name not in scope:
        return _Problem(
            text=f"the {kind} {name!r} is not in scope",
            expected=one_of(scope),
            given=repr(name),
            hint="indices come from the node's own space and outer loops; locals are bound by an"
            " earlier statement",
        )
    if scope[name] != type:
        return _Problem(
            text=f"the {kind} {name!r} has the wrong type",
            expected=str(scope[name]),
            given=str(type),
        )
    return None


def _apply_problem(term: Apply) -> _Problem | None:
    operator, types = term.operator, [operand.type for operand in term.operands]
    info = OPERATORS[operator]
    if len(types) != info.arity:
        return _Problem(
            text=f"operator {operator.value!r} has the wrong number of operands",
            expected=str(info.arity),
            given=str(len(types)),
        )
    if any(type != types[0] for type in types):
        return _Problem(
            text=f"operator {operator.value!r} has operands of different types",
            expected="equal types",
            given=f"{show(term)} of {' and '.join(str(type) for type in types)}",
            hint="insert a Cast, or a Broadcast for a scalar beside a vector",
        )
    if not accepts(operator, types[0]):
        return _Problem(
            text=f"operator {operator.value!r} is not defined on {types[0]}",
            expected=info.operands.value,
            given=show(term),
        )
    return _type_problem(f"operator {operator.value!r}", result_type(operator, types[0]), term.type)


def _shape_problem(term: Select | Cast | Broadcast | ReduceLanes | Insert) -> _Problem | None:
    match term:
        case Select(condition=condition, if_true=if_true, if_false=if_false, type=type):
            return (
                _type_problem("a side of Select", type, if_true.type)
                or _type_problem("a side of Select", type, if_false.type)
                or _type_problem("the condition of Select", BOOL, condition.type, type.lanes)
            )
        case Cast(value=value, type=type):
            return _type_problem("Cast", type.with_lanes(value.type.lanes), type)
        case Broadcast(value=value, type=type):
            return _lanes_problem("Broadcast", type) or _type_problem(
                "the value of Broadcast", type.scalar, value.type
            )
        case Insert(vector=vector, lane=lane, value=value, type=type):
            if not lane.type.is_integer or lane.type.lanes != 1:
                return _Problem(
                    text="the lane of Insert is not an integer",
                    expected="a scalar integer",
                    given=f"{show(lane)} of type {lane.type}",
                )
            return (
                _lanes_problem("Insert", type)
                or _type_problem("the vector of Insert", type, vector.type)
                or _type_problem("the value of Insert", type.scalar, value.type)
            )
        case ReduceLanes(operator=operator, value=value, type=type):
            if OPERATORS[operator].associative:
                return _lanes_problem("the value of ReduceLanes", value.type) or _type_problem(
                    "ReduceLanes", value.type.scalar, type
                )
            return _Problem(
                text=f"ReduceLanes by {operator.value!r}, which is not associative",
                expected="an associative operator",
                given=show(term),
            )


def _bits_problem(term: BitOperator) -> _Problem | None:
    words, what = term.words.type, show(term)
    if words.kind is not Kind.UINT or words.bits != 32:
        return _Problem(text=f"the words of {what}", expected="uint32", given=str(words))
    if isinstance(term, SetBits):
        bits_type = term.bits.type
        bits = _type_problem(f"the bits of {what}", INT32.with_lanes(bits_type.lanes), bits_type)
        return bits or _type_problem(what, words, term.type)
    lanes = 1 if isinstance(term, CountBits) else term.type.lanes
    problem = _type_problem(what, INT32.with_lanes(lanes), term.type)
    if problem is None and isinstance(term, RankBits):
        return _type_problem(f"the bits of {what}", INT32.with_lanes(lanes), term.bits.type)
    return problem


def _block_problem(term: BlockOperator) -> _Problem | None:
    scalar, lanes, what = term.type.scalar, term.type.lanes, show(term)
    match term:
        case Arrange(value=value, shape=shape, strides=strides):
            ends = sum((n - 1) * step for n, step in zip(shape, strides, strict=False))
            inside = all(n > 0 for n in shape) and all(step >= 0 for step in strides)
            if len(shape) == len(strides) and inside and ends < value.type.lanes:
                return _type_problem(what, value.type.with_lanes(prod(shape)), term.type)
            return _Problem(
                text=f"{what} leaves its value",
                expected=f"extents and strides within {value.type.lanes} lanes",
                given=f"{list(shape)} by {list(strides)}",
            )
        case ReduceRows(operator=operator, value=value):
            if not OPERATORS[operator].associative:
                return _Problem(
                    text=f"ReduceRows by {operator.value!r}, which is not associative",
                    expected="an associative operator",
                    given=what,
                )
            rows = scalar.with_lanes(value.type.lanes)
            fits = value.type.lanes % lanes == 0 and value.type.lanes > lanes
            return _type_problem(f"the value of {what}", rows if fits else scalar, value.type)
        case Contract(left=left, right=right, inner=inner):
            height, width = (side.type.lanes // max(inner, 1) for side in (left, right))
            whole = inner > 0 and height * width == lanes
            if not whole or height * inner != left.type.lanes or inner * width != right.type.lanes:
                return _Problem(
                    text=f"{what} is not a product of matrices",
                    expected="rows x inner lanes times inner x columns lanes",
                    given=f"{left.type} times {right.type} with inner {inner} as {term.type}",
                )
            return _type_problem(f"the left side of {what}", scalar, left.type, height * inner) or (
                _type_problem(f"the right side of {what}", scalar, right.type, inner * width)
            )
    return None


def _lanes_problem(what: str, type: Type) -> _Problem | None:
    if type.lanes > 1:
        return None
    return _Problem(
        text=f"{what} is not a vector", expected="2 lanes or more", given=f"the type {type}"
    )


def _type_problem(what: str, expected: Type, given: Type, lanes: int = 1) -> _Problem | None:
    """``given`` has to equal ``expected``, or ``expected`` widened to ``lanes``."""
    if given in (expected, expected.with_lanes(lanes)):
        return None
    return _Problem(text=f"{what} has the wrong type", expected=str(expected), given=str(given))


# Types and shapes, wherever a graph has them; raises ``GraphError``.


def verify_extents(subject: Subject, shape: tuple[int, ...], what: str = "the shape") -> None:
    if any(extent < 1 for extent in shape):
        raise subject.error(
            f"{what} has an extent below 1", expected="extents of at least 1", given=str(shape)
        )


def verify_strong(subject: Subject, type: Type) -> None:
    if type.weak:
        raise subject.error(
            "the type is weak",
            expected="a type with a fixed width",
            given=spell(type),
            hint=f"Type.strengthened() gives {type}",
        )
    if type.lanes > MOST_LANES:
        raise subject.error(
            "the vector is too long",
            expected=f"at most {MOST_LANES} lanes",
            given=f"{type.lanes} lanes",
        )


def verify_scalar_type(subject: Subject, type: Type) -> None:
    verify_strong(subject, type)
    if type.lanes != 1:
        raise subject.error(
            "the type is a vector",
            expected=f"the type of one element, {type.scalar}",
            given=str(type),
            hint="vectors are loaded and stored as several contiguous elements",
        )


def verify_lanes(
    indices: tuple[Expr, ...], rank: int, type: Type, scope: ExprScope, what: str
) -> None:
    """Check the last index of an access whose value has a type; raises ``GraphError``."""
    index = indices[-1]
    verify_expr(index, scope, f"the last index of {what}")
    if len(indices) != rank:
        raise scope.subject.error(
            f"{what} has the wrong number of indices", expected=str(rank), given=str(len(indices))
        )
    if index.type.kind is not Kind.INT:
        raise scope.subject.error(
            f"the last index of {what} is a vector of the wrong type",
            expected="signed integers, of which -1 names no element",
            given=str(index.type),
            hint="insert a Cast",
        )
    if index.type.lanes != type.lanes:
        raise scope.subject.error(
            f"the last index of {what} has other lanes than the value",
            expected=f"{type.lanes} lanes, one for each lane of {type}",
            given=str(index.type),
            hint="an index of one lane accesses contiguous elements",
        )


def refuse_lanes(indices: tuple[Expr, ...], scope: ExprScope, what: str) -> None:
    """Refuse an access by a vector where the node is not a machine; raises ``GraphError``."""
    if indices and indices[-1].type.lanes > 1:
        raise scope.subject.error(
            f"{what} gathers or scatters: its last index is a vector",
            expected="a scalar integer; only machines access memory by a vector of indices",
            given=f"an index of type {indices[-1].type}",
            hint="make the node a machine, or access contiguous elements",
        )


# Every text in a graph is a name, but for a few that are shown to people and mean nothing.
#
# Generated files are made of names.  ``verify_graph`` and the reader of JSON ask the one question
# of this module about every field of every class, so that a new class is safe before anybody thinks
# of it: what is not listed here as prose, a path or a file has to be a name.


class Text(Enum):
    """What a text in a graph may be; the values say it in errors."""

    NAME = f"a name: letters, digits and underscores, no more than {LONGEST_NAME:,}"
    PATH = "names with / between them"
    PROSE = "text on one line"
    FILE = "the name of a file"

    def allows(self, text: str) -> bool:
        """Whether ``text`` is of this kind."""
        match self:
            case Text.NAME:
                return is_name(text)
            case Text.PATH:
                return all(is_name(part) for part in text.split("/"))
            case Text.PROSE:
                return text.isprintable()
            case Text.FILE:
                return True


_OTHERS: dict[tuple[type[Any], str], Text] = {
    (Region, "name"): Text.PATH,
    (Region, "parent"): Text.PATH,
    (PEArray, "region"): Text.PATH,
    (Machine, "region"): Text.PATH,
    (Tensor, "origin"): Text.PROSE,
    (Rule, "name"): Text.PROSE,
    (Mode, "expected"): Text.PROSE,
    (SourceLocation, "file"): Text.FILE,
}


def wrong_texts(item: Any) -> Iterator[tuple[str, str, Text]]:
    """The field, the text and what it has to be, of every text in a dataclass that is not that.

    Looks at the fields of ``item`` itself and not into what they hold.
    """
    for field in field_names(item):
        value = getattr(item, field)
        texts = value if isinstance(value, tuple) else (value,)
        for text in texts:
            if isinstance(text, str) and not isinstance(text, Enum):
                rule = _OTHERS.get((type(item), field), Text.NAME)
                if not rule.allows(text):
                    yield field, text, rule


def verify_texts(graph: Graph, alike: frozenset[str]) -> None:
    """Check all texts of a graph, but for what is inside of the machines named in ``alike``."""

    def is_new(part: Term) -> bool:
        return not (isinstance(part, Machine) and part.name in alike)

    for part in distinct(graph, is_new):
        for field, text, rule in wrong_texts(part):
            kind = type(part).__name__
            raise GraphError(
                f"the {field} of a {kind} of graph {graph.name!r} is invalid",
                location=getattr(part, "location", None) or graph.location,
                expected=rule.value,
                given=repr(text),
            )
