"""A text as blocks of lines, one block for each processing element.

Goes in: a text.  Comes out: for each label its block, with every line's code and comment apart and
the places known.  Refused: no label, statements before the first one, and what the public
assembler cuts without a word, which is whatever stands between ``<`` and ``>`` in a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from t2s.backends.cgra_tia.text.places import TextPlace, block_name

_LABEL = re.compile(r"([^<>#]*)<([^<>]*)>([^<>]*)")
_STATEMENT = re.compile(r"\s*(when|init)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLine:
    """A line, or what stands beside a label in it: ``code`` starts at ``place``."""

    code: str
    comment: str | None
    place: TextPlace

    @property
    def blank(self) -> bool:
        return not self.code.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBlock:
    """What belongs to one processing element."""

    label: str
    place: TextPlace
    lines: tuple[BlockLine, ...]


def source_blocks(text: str, file: str) -> tuple[SourceBlock, ...]:
    """The blocks of a text in their order; raises ``TriggeredTextError``."""
    found: list[tuple[str, TextPlace, list[BlockLine]]] = []
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        start = TextPlace(file=file, line=number, column=1, text=line, block=name)
        before, label, behind = _split(line, start)
        code, hash_sign, comment = before.partition("#")
        if found:
            kept = comment if hash_sign else None
            found[-1][2].append(BlockLine(code=code, comment=kept, place=start))
        elif _STATEMENT.match(code):
            raise start.error(
                "an instruction stands before the first label, where all text is ignored",
                expected="a line <NAME> before the instructions of each processing element",
                given=repr(code.strip()),
            )
        if label is not None:
            name = block_name(len(found), label)
            after = replace(start, column=len(line) - len(behind) + 1, block=name)
            code, hash_sign, comment = behind.partition("#")
            first = BlockLine(code=code, comment=comment if hash_sign else None, place=after)
            found.append((label, replace(start, column=len(before) + 1), [first]))
    if not found:
        raise TextPlace(file=file, line=1, column=1, text=text.partition("\n")[0]).error(
            "the text has no label, so that it programs nothing",
            expected="a line <NAME> before the instructions of each processing element",
            given="no label in the text",
            hint="put a line such as <pe_0> before the first instruction",
        )
    return tuple(
        SourceBlock(label=label, place=place, lines=tuple(lines)) for label, place, lines in found
    )


def _split(line: str, start: TextPlace) -> tuple[str, str | None, str]:
    """What stands before a label, the label, and what stands behind it."""
    at = line.find("<")
    if at < 0:
        return line, None, ""
    match = _LABEL.fullmatch(line)
    if match is not None:
        before, label, behind = match.groups()
        return before, label, behind
    in_comment = "#" in line[:at] or _LABEL.match(line) is not None
    column = at + 1 if "#" in line[:at] or not in_comment else _odd_bracket(line)
    raise replace(start, column=column).error(
        "a '<' or '>' is not that of a label"
        + (", and the public assembler would cut the text there" if in_comment else ""),
        expected="one label <NAME> in a line, and no '<' or '>' beside it or in a comment",
        given=repr(line[column - 1 :][:40]),
    )


def _odd_bracket(line: str) -> int:
    """The column of the first bracket behind a label."""
    behind = line.index(">") + 1
    return next(at + 1 for at in range(behind, len(line)) if line[at] in "<>")
