"""Schedules as text: ``split(i,i0,i1,32), reorder(i0,i1,j), parallelize(i0,4)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.renaming import warn_renamed
from t2s.sparse_repr.concrete.pattern_directives import FIT
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.formats import as_format
from t2s.sparse_repr.notation.parse import parse_expression
from t2s.sparse_repr.notation.symbols import Notation, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The syntax of a directive, and the method it calls; ``count`` is ``None`` for any number."""

    shown: str
    count: int | None
    append: Callable[[Schedule, list[str], SourceLocation | None], Schedule]


def parse_schedule(text: str, *, location: SourceLocation | None = None) -> Schedule:
    """Parse directives separated by commas, semicolons or spaces.

    Raises ``UserError`` for an unknown directive, and for arguments that do not fit.
    """
    if not isinstance(text, str):
        raise UserError("a schedule is a text", location=location, given=repr(text))
    schedule = Schedule()
    for name, arguments in _calls(text, location):
        form = _FORMS.get(name)
        if form is None:
            raise UserError(
                f"unknown directive {name}",
                location=location,
                expected=f"one of {', '.join(form.shown for form in _FORMS.values())}",
                given=text,
            )
        wrong = form.count is not None and len(arguments) != form.count
        if wrong or not all(arguments):
            raise UserError(
                f"{name}({', '.join(arguments)}) does not say a directive",
                location=location,
                expected=form.shown,
            )
        schedule = form.append(schedule, arguments, location)
    return schedule


def _calls(text: str, location: SourceLocation | None) -> list[tuple[str, list[str]]]:
    """The names and the arguments of ``name(a, b), name(c)``; arguments may have parentheses."""
    calls: list[tuple[str, list[str]]] = []
    rest = text.strip()
    while rest:
        name, opened, inside = rest.partition("(")
        end = _closing(inside)
        if not opened or not name.strip().isidentifier() or end is None:
            raise UserError(
                f"{rest} is not a schedule",
                location=location,
                expected="directives such as split(i,i0,i1,32) or parallelize(i0,4)",
                given=text,
            )
        calls.append((name.strip(), _split_arguments(inside[:end])))
        rest = inside[end + 1 :].strip().lstrip(",;").strip()
    return calls


def _closing(text: str) -> int | None:
    """The position of the closing parenthesis for one opened before the text."""
    depth = 1
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return at
    return None


def _split_arguments(text: str) -> list[str]:
    """The parts between commas outside of parentheses; none of an empty text."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [] if not text.strip() else [part.strip() for part in parts]


def _number(word: str, location: SourceLocation | None) -> int:
    if not word.isdecimal():
        raise UserError(f"{word} is not a number", location=location, expected="a positive integer")
    return int(word)


def _precompute(
    schedule: Schedule, arguments: list[str], location: SourceLocation | None
) -> Schedule:
    """``precompute(part,T)``, ``precompute(part,T(i,j),dd)``, or ``precompute(part,T:d,k)``.

    The last form, with the variables behind the format, is of a tensor on chip.
    """
    workspace, declared, letters = arguments[1].partition(":") if arguments[1:] else ("", "", "")
    at_variables = workspace.endswith(")")
    if len(arguments) < 2 or (not declared and arguments[2:] and not at_variables):
        raise UserError(
            f"precompute({', '.join(arguments)}) does not say a directive",
            location=location,
            expected="precompute(B(i,k)*C(k,j),T), precompute(B(i,k)*C(k,j),T(i,j),dd),"
            " or precompute(C(i,k),T:d,k)",
        )
    part = Notation(parse_expression(arguments[0], location=location), {})
    if declared:
        format = as_format(letters, what=workspace, location=location).on_chip
        return schedule.precompute(part, Tensor(workspace, format), tuple(arguments[2:]))
    if not arguments[2:]:
        return schedule.precompute(part, workspace)
    return schedule.precompute(part, workspace, ",".join(arguments[2:]).strip("\"'"))


def _mapped(name: str) -> Callable[[Schedule, list[str], SourceLocation | None], Schedule]:
    """``parallel(j,reduction)``, ``parallel(j,reduction,16)``, and so for ``accelerate``."""

    def append(
        schedule: Schedule, arguments: list[str], location: SourceLocation | None
    ) -> Schedule:
        if name == "map" and _is_external(*arguments[:2]):
            return _external("map", schedule, arguments, location)
        if len(arguments) not in (2, 3):
            raise UserError(
                f"{name}({', '.join(arguments)}) does not say a directive",
                location=location,
                expected=f"{name}(j,reduction), or {name}(j,reduction,16)",
            )
        factor = _number(arguments[2], location) if arguments[2:] else None
        if name == "map":  # its name until release 0.1
            warn_renamed("map(j,reduction)", "parallel(j,reduction)")
        directive = schedule.accelerate if name == "accelerate" else schedule.parallel
        return directive(arguments[0], arguments[1], factor)

    return append


def _is_external(part: str = "", function: str = "") -> bool:
    """Whether a ``map`` is of a part of the expression rather than a loop."""
    return "." in function or not part.isidentifier()


_OPTIONS: Mapping[str, tuple[str, object]] = MappingProxyType(
    {
        "densify": ("densify", True),
        "densify=True": ("densify", True),
        "trusted": ("trusted", True),
        "trusted=True": ("trusted", True),
        "pad=False": ("pad", False),
        "else_=None": ("else_", None),
    }
)
"""What may be said behind the function of a part, and the argument that it is."""

_BOUND = ("trusted", "else_")
"""Those that ``bind`` takes, too."""


def _external(
    name: str, schedule: Schedule, arguments: list[str], location: SourceLocation | None
) -> Schedule:
    """``map(B(i,k)*C(k,j),blas.sgemm,pad=False)``, and the same for ``bind``."""
    words = [word.replace(" ", "") for word in arguments[2:]]
    known = [word for word, (option, _) in _OPTIONS.items() if name == "map" or option in _BOUND]
    if len(arguments) < 2 or not set(words) <= set(known):
        raise UserError(
            f"{name}({', '.join(arguments)}) does not say a directive",
            location=location,
            expected=f"{name}(B(i,k)*C(k,j),blas.sgemm), and behind it any of "
            + ", ".join(word for word in known if not word.endswith("True")),
        )
    part = Notation(parse_expression(arguments[0], location=location), {})
    options: dict[str, Any] = dict(_OPTIONS[word] for word in words)
    return (schedule.map if name == "map" else schedule.bind)(part, arguments[1], **options)


def _bind(schedule: Schedule, arguments: list[str], location: SourceLocation | None) -> Schedule:
    """``bind(B(i,k)*C(k,j),blas.sgemm)``."""
    return _external("bind", schedule, arguments, location)


def _promote(schedule: Schedule, arguments: list[str], location: SourceLocation | None) -> Schedule:
    """``promote(c,1)``, for the function that is bound next."""
    if not arguments:
        return schedule.promote()  # the name of promote_sums until release 0.1
    if len(arguments) != 2:
        raise UserError(
            f"promote({', '.join(arguments)}) does not say a directive",
            location=location,
            expected="promote(c,1) for external functions",
        )
    return schedule.promote(arguments[0], _number(arguments[1], location))


def _store(schedule: Schedule, arguments: list[str], location: SourceLocation | None) -> Schedule:
    """``store(D,1,0)``: by columns."""
    return schedule.store(arguments[0], *(_number(word, location) for word in arguments[1:]))


def _scan(schedule: Schedule, arguments: list[str], location: SourceLocation | None) -> Schedule:
    if len(arguments) > 2:
        raise UserError(
            f"scan({', '.join(arguments)}) does not say a directive",
            location=location,
            expected="scan(x,j), scan(x) for all dense levels of x, or scan() for those of all",
        )
    return schedule.scan(*arguments)


_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "reorder": _Form(
            shown="reorder(i,k,j)", count=None, append=lambda s, words, _: s.reorder(*words)
        ),
        "split": _Form(
            shown="split(i,i0,i1,32)",
            count=4,
            append=lambda s, words, where: s.split(
                words[0], words[1], words[2], _number(words[3], where)
            ),
        ),
        "fuse": _Form(shown="fuse(i,j,f)", count=3, append=lambda s, words, _: s.fuse(*words)),
        "precompute": _Form(shown="precompute(B(i,k)*C(k,j),T)", count=None, append=_precompute),
        "locate": _Form(shown="locate(x,j)", count=2, append=lambda s, words, _: s.locate(*words)),
        "scan": _Form(shown="scan(x,j)", count=None, append=_scan),
        "parallelize": _Form(
            shown="parallelize(i,4)",
            count=2,
            append=lambda s, words, where: s.parallelize(words[0], _number(words[1], where)),
        ),
        "vectorize": _Form(
            shown="vectorize(j,4)",
            count=2,
            append=lambda s, words, where: s.vectorize(words[0], _number(words[1], where)),
        ),
        "skip": _Form(shown="skip(j)", count=1, append=lambda s, words, _: s.skip(*words)),
        "transpose": _Form(
            shown="transpose(B)", count=None, append=lambda s, words, _: s.transpose(*words)
        ),
        "drop_zeros": _Form(
            shown="drop_zeros(X)", count=None, append=lambda s, words, _: s.drop_zeros(*words)
        ),
        "map": _Form(shown="map(B(i,k)*C(k,j),blas.sgemm)", count=None, append=_mapped("map")),
        "parallel": _Form(shown="parallel(j,reduction,16)", count=None, append=_mapped("parallel")),
        "accelerate": _Form(
            shown="accelerate(k,reduction,16)", count=None, append=_mapped("accelerate")
        ),
        "env": _Form(
            shown="env(bp,16)",
            count=2,
            append=lambda s, words, where: s.env(
                words[0], FIT if words[1] == FIT else _number(words[1], where)
            ),
        ),
        "promote": _Form(shown="promote(c,1)", count=None, append=_promote),
        "promote_sums": _Form(
            shown="promote_sums()", count=0, append=lambda s, words, _: s.promote_sums()
        ),
        "bind": _Form(shown="bind(B(i,k)*C(k,j),blas.sgemm)", count=None, append=_bind),
        "fix": _Form(shown="fix(i,k)", count=None, append=lambda s, words, _: s.fix(*words)),
        "assume": _Form(
            shown="assume(i % 16 == 0)", count=1, append=lambda s, words, _: s.assume(words[0])
        ),
        "store": _Form(shown="store(D,1,0)", count=None, append=_store),
        "streams": _Form(
            shown="streams(arria10)", count=1, append=lambda s, words, _: s.streams(words[0])
        ),
        "communicate": _Form(
            shown="communicate(A,j)", count=2, append=lambda s, words, _: s.communicate(*words)
        ),
    }
)
