"""The text of a Spatial program: one statement for each line, parentheses where they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from t2s.backends.capstan.spatial_ast import (
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

RANKS = {"|": 1, "&": 2, "&&": 2, "==": 3, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6}
"""How tightly operators bind."""

PREFIX, PRIMARY = 7, 8


def print_spatial(program: SpatialFile) -> str:
    """The whole file; the same bytes for equal programs."""
    parameters = ", ".join(f"{name}: scala.Int = {value}" for name, value in program.parameters)
    lines = [
        "import spatial.dsl._",
        "",
        f"@spatial class {program.name}({parameters}) extends SpatialTest {{",
        f"  type T = {program.element}",
        "  def main(args: Array[String]): Unit = {",
        *_indented(_body(program.before), 2),
        "    Accel {",
        *_indented(_body(program.kernel), 3),
        "    }",
        *_indented(_body(program.after), 2),
        "  }",
        "}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _indented(lines: Iterable[str], depth: int) -> Iterator[str]:
    return (f"{'  ' * depth}{line}" for line in lines)


def _body(body: Iterable[SpatialStatement]) -> Iterator[str]:
    for statement in body:
        match statement:
            case SpatialForeach(header=header, binders=binders, body=inside):
                yield f"Foreach({_header(header, 'Scan')}) {{ {_binders(binders)} =>"
                yield from _indented(_body(inside), 1)
                yield "}"
            case SpatialReduce(register=register, header=header, binders=binders, body=inside):
                opened = f"Reduce({register})({_header(header, 'ScanRed')})"
                yield f"{opened} {{ {_binders(binders)} =>"
                yield from _indented(_body(inside), 1)
                yield f"  {show_spatial(statement.value)}"
                yield "} { _ + _ }"
            case _:
                yield _line(statement)


def _line(statement: SpatialStatement) -> str:
    match statement:
        case SpatialValue(name=name, value=value):
            return f"val {name} = {show_spatial(value)}"
        case SpatialWrite(memory=memory, index=index, value=value):
            return f"{memory}({show_spatial(index)}) = {show_spatial(value)}"
        case SpatialAlias(view=view, memory=memory):
            return f"{view}.alias = {memory}"
        case SpatialOut(register=register, value=value):
            return f"{register} := {show_spatial(value)}"
        case SpatialEffect(call=call):
            return show_spatial(call)
        case SpatialBlock(memory=memory, slice=part, stores=False):
            return f"{memory} load {_slice(part)}"
        case SpatialBlock(memory=memory, slice=part):
            return f"{_slice(part)} store {memory}"
        case SpatialStream(memory=memory, queue=queue, begin=begin, length=length, stores=stores):
            first, last = show_spatial(begin), show_spatial(length)
            if stores:
                return f"{memory} stream_store_vec({first}, {queue}, {last})"
            return f"{memory} stream_load_vec({first}, {last}, {queue})"
    raise TypeError(f"{statement.__class__.__name__} has no line")


def _slice(part: SpatialSlice) -> str:
    bounds = f"{show_spatial(part.begin, RANKS['+'])}::{show_spatial(part.end, PRIMARY)}"
    return f"{part.memory}({bounds} par {show_spatial(part.parallel, PRIMARY)})"


def _header(header: SpatialHeader, scan: str) -> str:
    match header:
        case SpatialCounter(extent=extent, parallel=parallel):
            count = show_spatial(extent, PRIMARY)
            return f"{count} by 1 par {show_spatial(parallel, PRIMARY)}"
        case SpatialScan(parallel=parallel, bits=bits, join=join, queues=queues):
            words = ", ".join(f"{queue}.deq" for queue in queues)
            return f'{scan}({show_spatial(parallel)}, {show_spatial(bits)}, "{join}", {words})'


def _binders(binders: tuple[str, ...]) -> str:
    return binders[0] if len(binders) == 1 else f"case List({', '.join(binders)})"


def show_spatial(value: SpatialExpression, rank: int = 0) -> str:
    """An expression, in parentheses if it binds less tightly than ``rank``."""
    match value:
        case SpatialNumber(value=number):
            return repr(number)
        case SpatialText(text=text):
            return f'"{text}"'
        case SpatialName(name=name):
            return name
        case SpatialCall(function=function, arguments=arguments, type=type):
            kind = "" if type is None else f"[{type}]"
            return f"{function}{kind}({_listed(arguments)})"
        case SpatialMember(owner=owner, member=member, arguments=None):
            return f"{owner}.{member}"
        case SpatialMember(owner=owner, member=member, arguments=given):
            return f"{owner}.{member}({_listed(given or ())})"
        case SpatialConversion(value=inner, type=type):
            return f"{show_spatial(inner, PRIMARY)}.to[{type}]"
        case SpatialZeros(type=type, size=size):
            return f"Array.fill[{type}]({show_spatial(size)})(0.to[{type}])"
        case SpatialMemory():
            return _memory(value)
        case SpatialNegation(value=inner):
            text, own = f"-{show_spatial(inner, PRIMARY)}", PREFIX
        case SpatialOperation(operator=operator, left=left, right=right):
            own = RANKS[operator]
            text = f"{show_spatial(left, own)} {operator} {show_spatial(right, own + 1)}"
    return f"({text})" if own < rank else text


def _listed(values: Iterable[SpatialExpression]) -> str:
    return ", ".join(show_spatial(value) for value in values)


def _memory(memory: SpatialMemory) -> str:
    text = f"{memory.kind}[{memory.type}]"
    text += "" if memory.partitions is None else f"({show_spatial(memory.partitions)})"
    if memory.size is not None:
        text += f"({show_spatial(memory.size)}{', true' if memory.barrier else ''})"
    return text + (".retiming" if memory.retiming else "")
