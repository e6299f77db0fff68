"""Spells the target AST as SystemVerilog."""

from __future__ import annotations

from collections.abc import Iterator

from t2s.backends.text.expressions import (
    POSTFIX,
    PRECEDENCE,
    Binary,
    Do,
    If,
    Name,
    Set,
    Show,
    Spelling,
    TargetExpression,
    TargetStatement,
)
from t2s.backends.verilog.verilog_ast import (
    Bits,
    Clocked,
    Combinational,
    Concatenation,
    Constant,
    ContinuousAssignment,
    Declaration,
    Element,
    Finally,
    Generate,
    HardwareModule,
    Heading,
    Initially,
    Instance,
    Item,
    ModulePort,
    Resize,
    SetAtClock,
    Signal,
    Slice,
    UnrolledFor,
)
from t2s.core.names import one_line

_INDENT = "  "
_COLUMNS = 100
_AND = PRECEDENCE["&&"]


def print_modules(modules: tuple[HardwareModule, ...]) -> str:
    """The text of a file."""
    return "\n".join("\n".join(_module(module)) + "\n" for module in modules)


def _module(module: HardwareModule) -> Iterator[str]:
    yield from (f"// {one_line(line)}".rstrip() for line in module.about)
    yield f"module {module.name} ("
    for position, port in enumerate(module.ports):
        yield f"{_INDENT}{_port(port)}" + ("," if position < len(module.ports) - 1 else "")
    yield ");"
    if module.shared:
        yield f"{_INDENT}/*verilator no_inline_module*/"
    for item in module.items:
        yield from _item(item, _INDENT)
    yield "endmodule"


def _port(port: ModulePort) -> str:
    return f"{port.direction.value} {_variable(port.variable)}"


def _bits(type: Bits) -> str:
    lanes = f"[{type.lanes - 1}:0]" if type.lanes > 1 else ""
    width = f"[{type.width - 1}:0]" if type.width > 1 or type.lanes > 1 else ""
    signed = "signed " if type.signed and type.lanes == 1 else ""
    return f"logic {signed}{lanes}{width}".rstrip()


def _variable(variable: Signal) -> str:
    count = "" if variable.count is None else f" [{variable.count}]"
    initial = "" if variable.initial is None else f" = {show(variable.initial)}"
    return f"{_bits(variable.type)} {variable.name}{count}{initial}"


def _item(item: Item, indent: str) -> Iterator[str]:
    match item:
        case Heading(text=text):
            yield ""
            yield f"{indent}// {one_line(text)}"
        case Declaration(variable=variable):
            yield f"{indent}{_variable(variable)};"
        case Constant(name=constant, type=type, value=number):
            yield f"{indent}localparam {_bits(type)} {constant} = {number};"
        case ContinuousAssignment(target=target, value=value):
            yield from _wire(target, value, indent)
        case Combinational(body=body):
            yield from _block("always_comb", body, indent)
        case Clocked(body=body):
            yield from _block("always_ff @(posedge clock)", body, indent)
        case Initially(body=body):
            yield from _block("initial", body, indent)
        case Finally(body=body):
            yield from _block("final", body, indent)
        case Instance():
            yield from _instance(item, indent)
        case Generate(variable=variable_name, count=count, label=label, items=items):
            head = f"for (genvar {variable_name} = 0; {variable_name} < {count}; {variable_name}++)"
            yield f"{indent}{head} begin : {label}"
            for inner in items:
                yield from _item(inner, indent + _INDENT)
            yield f"{indent}end"
        case _:
            raise TypeError(f"{item.__class__.__name__} has no spelling")


def _wire(target: TargetExpression, value: TargetExpression, indent: str) -> Iterator[str]:
    line = f"{indent}assign {show(target)} = {show(value)};"
    parts = _conjuncts(value)
    if len(line) <= _COLUMNS or len(parts) == 1:
        yield line
        return
    yield f"{indent}assign {show(target)} ="
    for position, part in enumerate(parts):
        joined = f"&& {show(part, _AND)}" if position else show(part, _AND)
        yield f"{indent}{_INDENT}{joined}" + (";" if position == len(parts) - 1 else "")


def _conjuncts(value: TargetExpression) -> list[TargetExpression]:
    match value:
        case Binary(operator="&&", left=left, right=right):
            return [*_conjuncts(left), right]
    return [value]


def _block(head: str, body: tuple[TargetStatement, ...], indent: str) -> Iterator[str]:
    yield f"{indent}{head} begin"
    for statement in body:
        yield from _statement(statement, indent + _INDENT)
    yield f"{indent}end"


def _instance(item: Instance, indent: str) -> Iterator[str]:
    parameters = ", ".join(f".{name}({show(value)})" for name, value in item.parameters)
    yield f"{indent}{item.module}{f' #({parameters})' if parameters else ''} {item.name} ("
    for position, (name, value) in enumerate(item.connections):
        comma = "," if position < len(item.connections) - 1 else ""
        shown = f"({show(value)})" if value != Name(name=name) else ""
        yield f"{indent}{_INDENT}.{name}{shown}{comma}"
    yield f"{indent});"


def _statement(statement: TargetStatement, indent: str) -> Iterator[str]:
    match statement:
        case Set(target=target, value=value):
            yield f"{indent}{show(target)} = {show(value)};"
        case SetAtClock(target=target, value=value):
            yield f"{indent}{show(target)} <= {show(value)};"
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _if(f"if ({show(condition)})", then, otherwise, indent)
        case UnrolledFor(variable=name, count=count, body=body):
            yield from _block(f"for (int {name} = 0; {name} < {count}; {name}++)", body, indent)
        case Do(call=call):
            yield f"{indent}{show(call)};"
        case _:
            raise TypeError(f"{statement.__class__.__name__} has no spelling")


def _if(
    head: str,
    then: tuple[TargetStatement, ...],
    otherwise: tuple[TargetStatement, ...],
    indent: str,
) -> Iterator[str]:
    yield f"{indent}{head} begin"
    for inner in then:
        yield from _statement(inner, indent + _INDENT)
    match otherwise:
        case ():
            yield f"{indent}end"
        case (If(condition=condition, then=inner_then, otherwise=inner_otherwise),):
            head = f"end else if ({show(condition)})"
            yield from _if(head, inner_then, inner_otherwise, indent)
        case _:
            yield f"{indent}end else begin"
            for inner in otherwise:
                yield from _statement(inner, indent + _INDENT)
            yield f"{indent}end"


def _own(expression: TargetExpression, show: Show) -> str | None:
    """The expressions of SystemVerilog."""
    match expression:
        case Resize(bits=bits, value=value):
            return f"{bits}'({show(value)})"
        case Element(base=base, index=index):
            return f"{show(base, POSTFIX)}[{show(index)}]"
        case Slice(base=base, high=high, low=low):
            return f"{show(base, POSTFIX)}[{high}:{low}]"
        case Concatenation(parts=parts):
            return f"{{{', '.join(map(show, parts))}}}"
    return None


show = Spelling(_own).show
