"""From the text of a Spatial program to its tree: the inverse of ``printer.py``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from t2s.backends.capstan.spatial_ast import (
    RANKS,
    SpatialAlias,
    SpatialBlock,
    SpatialCall,
    SpatialConversion,
    SpatialCounter,
    SpatialEffect,
    SpatialExpression,
    SpatialFile,
    SpatialForeach,
    SpatialHeader,
    SpatialMember,
    SpatialMemory,
    SpatialName,
    SpatialNegation,
    SpatialNumber,
    SpatialOperation,
    SpatialOut,
    SpatialReduce,
    SpatialScan,
    SpatialSlice,
    SpatialStatement,
    SpatialStream,
    SpatialText,
    SpatialValue,
    SpatialWrite,
    SpatialZeros,
)
from t2s.core.errors import UserError

TOKEN = re.compile(
    r'\s*("[^"\\\n]*"|\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+|[A-Za-z_][A-Za-z0-9_]*|'
    r"=>|::|:=|>=|==|&&|[-+*/=.,:@&|(){}\[\]])"
)
MEMORIES = frozenset(
    {"DRAM", "SRAM", "FIFO", "Reg", "ArgIn", "ArgOut", "SparseDRAM", "SparseSRAM"}
    | {"SparseParSRAM", "SparseParSRAMSwizzle"}
)


def parse_spatial(text: str) -> SpatialFile:
    """The tree of a text.  Raises ``UserError`` with the line that is not understood."""
    return _SpatialParser(text).program()


@dataclass(frozen=True, slots=True)
class _SpatialToken:
    text: str
    line: int


class _SpatialParser:
    def __init__(self, text: str) -> None:
        self.tokens: list[_SpatialToken] = []
        at = 0
        rest = text.rstrip()
        while at < len(rest):
            found = TOKEN.match(rest, at)
            if found is None:
                wrong = rest[at:].lstrip()
                line = rest.count("\n", 0, len(rest) - len(wrong)) + 1
                raise _misread(wrong[:20].split("\n")[0], line, "a word of Spatial")
            start = rest.count("\n", 0, found.start(1)) + 1
            self.tokens.append(_SpatialToken(found.group(1), start))
            at = found.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead].text if self.at + ahead < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token, one of those that are wanted, in order."""
        for one in wanted or (self.peek(),):
            found = self.peek()
            if found != one or not found:
                line = self.tokens[min(self.at, len(self.tokens) - 1)].line if self.tokens else 1
                raise _misread(found or "the end", line, repr(one) if one else "more text")
            self.at += 1
        return found

    def goes_on(self, *tokens: str) -> bool:
        """Whether the next token is one of these, on the same line: a line begins a statement."""
        here = self.at < len(self.tokens) and self.at > 0
        same = here and self.tokens[self.at].line == self.tokens[self.at - 1].line
        return same and self.peek() in tokens

    def ask(self, wanted: str) -> bool:
        """Whether the next token is this one, which is taken then."""
        if self.peek() == wanted:
            self.at += 1
            return True
        return False

    def word(self) -> str:
        found = self.peek()
        if not found.isidentifier():
            line = self.tokens[min(self.at, len(self.tokens) - 1)].line
            raise _misread(found or "the end", line, "a name")
        self.at += 1
        return found

    def program(self) -> SpatialFile:
        self.take("import", "spatial", ".", "dsl", ".", "_", "@", "spatial", "class")
        name = self.word()
        parameters: list[tuple[str, int]] = []
        self.take("(")
        while not self.ask(")"):
            parameter = self.word()
            self.take(":", "scala", ".", "Int", "=")
            parameters.append((parameter, int(self.take())))
            self.ask(",")
        self.take("extends", "SpatialTest", "{", "type", "T", "=")
        element = self.word()
        self.take("def", "main", "(", "args", ":", "Array", "[", "String", "]", ")")
        self.take(":", "Unit", "=", "{")
        before = self.body("Accel")
        self.take("Accel", "{")
        kernel = self.body("}")
        self.take("}")
        after = self.body("}")
        self.take("}", "}")
        if self.at < len(self.tokens):
            raise _misread(self.peek(), self.tokens[self.at].line, "the end")
        return SpatialFile(
            name=name,
            parameters=tuple(parameters),
            element=element,
            before=before,
            kernel=kernel,
            after=after,
        )

    def body(self, end: str) -> tuple[SpatialStatement, ...]:
        found: list[SpatialStatement] = []
        while self.peek() != end:
            found.append(self.statement())
        return tuple(found)

    def statement(self) -> SpatialStatement:
        match self.peek(), self.peek(1):
            case "val", _:
                self.take("val")
                name = self.word()
                self.take("=")
                return SpatialValue(name=name, value=self.expression())
            case "Foreach", _:
                self.take("Foreach", "(")
                header, binders = self.header()
                body = self.body("}")
                self.take("}")
                return SpatialForeach(header=header, binders=binders, body=body)
            case "Reduce", _:
                return self.reduce()
            case memory, "load":
                self.take(memory, "load")
                return SpatialBlock(memory=memory, slice=self.slice())
            case memory, "stream_load_vec":
                self.take(memory, "stream_load_vec", "(")
                begin, length, queue = self.expression(), self.after(","), self.name_after(",")
                self.take(")")
                return SpatialStream(memory=memory, queue=queue, begin=begin, length=length)
            case memory, "stream_store_vec":
                self.take(memory, "stream_store_vec", "(")
                begin, queue, length = self.expression(), self.name_after(","), self.after(",")
                self.take(")")
                return SpatialStream(
                    memory=memory, queue=queue, begin=begin, length=length, stores=True
                )
            case register, ":=":
                self.take(register, ":=")
                return SpatialOut(register=register, value=self.expression())
            case view, "." if self.peek(2) == "alias":
                self.take(view, ".", "alias", "=")
                return SpatialAlias(view=view, memory=self.word())
        return self.store_or_call()

    def after(self, token: str) -> SpatialExpression:
        self.take(token)
        return self.expression()

    def name_after(self, token: str) -> str:
        self.take(token)
        return self.word()

    def store_or_call(self) -> SpatialStatement:
        """``m(i) = v``, ``m(a::b par p) store n``, or a call."""
        start = self.at
        if self.peek().isidentifier() and self.peek(1) == "(":
            memory = self.word()
            self.take("(")
            if self.peek() != ")":
                index = self.expression()
                if self.peek() == "::":
                    self.at = start
                    part = self.slice()
                    self.take("store")
                    return SpatialBlock(memory=self.word(), slice=part, stores=True)
                if self.peek() == ")" and self.peek(1) == "=":
                    self.take(")", "=")
                    return SpatialWrite(memory=memory, index=index, value=self.expression())
        self.at = start
        return SpatialEffect(call=self.expression())

    def slice(self) -> SpatialSlice:
        memory = self.word()
        self.take("(")
        begin = self.expression()
        self.take("::")
        end = self.primary()
        self.take("par")
        parallel = self.primary()
        self.take(")")
        return SpatialSlice(memory=memory, begin=begin, end=end, parallel=parallel)

    def reduce(self) -> SpatialReduce:
        self.take("Reduce", "(")
        register = self.word()
        self.take(")", "(")
        header, binders = self.header()
        found: list[SpatialStatement] = []
        while self.peek() != "}":
            found.append(self.statement())
        match found:
            case [*body, SpatialEffect(call=value)]:
                self.take("}", "{", "_", "+", "_", "}")
                return SpatialReduce(
                    register=register,
                    header=header,
                    binders=binders,
                    body=tuple(body),
                    value=value,
                )
        raise _misread("}", self.tokens[self.at].line, "the value of an iteration")

    def header(self) -> tuple[SpatialHeader, tuple[str, ...]]:
        """A header and its binders, from behind the parenthesis to the arrow."""
        header: SpatialHeader
        if self.peek() in ("Scan", "ScanRed"):
            self.take(self.peek(), "(")
            parallel, bits = self.expression(), self.after(",")
            self.take(",")
            join = self.take().strip('"')
            queues = []
            while self.ask(","):
                queues.append(self.word())
                self.take(".", "deq")
            self.take(")")
            header = SpatialScan(parallel=parallel, bits=bits, join=join, queues=tuple(queues))
        else:
            extent = self.primary()
            self.take("by", "1", "par")
            header = SpatialCounter(extent=extent, parallel=self.primary())
        self.take(")", "{")
        if self.ask("case"):
            self.take("List", "(")
            binders = [self.word()]
            while self.ask(","):
                binders.append(self.word())
            self.take(")")
        else:
            binders = [self.word()]
        self.take("=>")
        return header, tuple(binders)

    def expression(self, rank: int = 1) -> SpatialExpression:
        left = self.prefix()
        while self.goes_on(*RANKS) and RANKS[self.peek()] >= rank:
            operator = self.take()
            right = self.expression(RANKS[operator] + 1)
            left = SpatialOperation(operator=operator, left=left, right=right)
        return left

    def prefix(self) -> SpatialExpression:
        if self.ask("-"):
            return SpatialNegation(value=self.primary())
        return self.primary()

    def primary(self) -> SpatialExpression:
        found = self.peek()
        value: SpatialExpression
        if found == "(":
            self.take("(")
            value = self.expression()
            self.take(")")
        elif found[:1].isdigit():
            self.take()
            whole = found.isdecimal()
            value = SpatialNumber(value=int(found) if whole else float(found))
        elif found[:1] == '"':
            self.take()
            value = SpatialText(text=found[1:-1])
        elif found in MEMORIES:
            return self.memory()
        elif found == "Array":
            return self.zeros()
        else:
            value = self.named()
        while self.goes_on(".") and self.peek(1) == "to":
            self.take(".", "to", "[")
            value = SpatialConversion(value=value, type=self.word())
            self.take("]")
        return value

    def named(self) -> SpatialExpression:
        name = self.word()
        if self.goes_on("["):
            self.take("[")
            type = self.word()
            self.take("]")
            return SpatialCall(function=name, arguments=self.arguments(), type=type)
        if self.goes_on("("):
            return SpatialCall(function=name, arguments=self.arguments())
        if self.goes_on(".") and self.peek(1) != "to":
            self.take(".")
            member = self.word()
            given = self.arguments() if self.goes_on("(") else None
            return SpatialMember(owner=name, member=member, arguments=given)
        return SpatialName(name=name)

    def arguments(self) -> tuple[SpatialExpression, ...]:
        self.take("(")
        found: list[SpatialExpression] = []
        while not self.ask(")"):
            found.append(self.expression())
            self.ask(",")
        return tuple(found)

    def zeros(self) -> SpatialZeros:
        self.take("Array", ".", "fill", "[")
        type = self.word()
        self.take("]", "(")
        size = self.expression()
        self.take(")", "(", "0", ".", "to", "[", type, "]", ")")
        return SpatialZeros(type=type, size=size)

    def memory(self) -> SpatialMemory:
        kind = self.word()
        self.take("[")
        type = self.word()
        self.take("]")
        partitions: SpatialExpression | None = None
        size: SpatialExpression | None = None
        barrier = False
        if self.ask("("):
            size = self.expression()
            barrier = self.flag()
            self.take(")")
            if self.ask("("):
                partitions, size = size, self.expression()
                barrier = self.flag()
                self.take(")")
        retiming = self.goes_on(".") and self.peek(1) == "retiming"
        if retiming:
            self.take(".", "retiming")
        return SpatialMemory(
            kind=kind,
            type=type,
            size=size,
            partitions=partitions,
            barrier=barrier,
            retiming=retiming,
        )

    def flag(self) -> bool:
        if self.ask(","):
            self.take("true")
            return True
        return False


def _misread(found: str, line: int, expected: str) -> UserError:
    return UserError(
        f"line {line} of a Spatial program is not understood",
        expected=expected,
        given=found,
    )
