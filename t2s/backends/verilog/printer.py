"""Spells the target AST as SystemVerilog."""

from __future__ import annotations

from collections.abc import Iterator

from t2s.backends.verilog.verilog_ast import (
    Binary,
    Bits,
    Call,
    Clocked,
    Combinational,
    Concatenation,
    Constant,
    Declaration,
    Do,
    Element,
    Expression,
    Finally,
    For,
    If,
    Initially,
    Instance,
    Item,
    Literal,
    Module,
    Name,
    Port,
    Remark,
    Repeat,
    Resize,
    Set,
    Slice,
    Statement,
    Ternary,
    Unary,
    Variable,
    Wire,
)
from t2s.core.names import one_line

_INDENT = "  "
_COLUMNS = 100
_TERNARY, _PREFIX, _PRIMARY = 0, 20, 30
_LEVELS = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
"""How strongly a binary operator binds."""


def print_modules(modules: tuple[Module, ...]) -> str:
    """The text of a file."""
    return "\n".join("\n".join(_module(module)) + "\n" for module in modules)


def _module(module: Module) -> Iterator[str]:
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


def _port(port: Port) -> str:
    return f"{port.direction.value} {_variable(port.variable)}"


def _bits(type: Bits) -> str:
    lanes = f"[{type.lanes - 1}:0]" if type.lanes > 1 else ""
    width = f"[{type.width - 1}:0]" if type.width > 1 or type.lanes > 1 else ""
    signed = "signed " if type.signed and type.lanes == 1 else ""
    return f"logic {signed}{lanes}{width}".rstrip()


def _variable(variable: Variable) -> str:
    count = "" if variable.count is None else f" [{variable.count}]"
    initial = "" if variable.initial is None else f" = {show(variable.initial)}"
    return f"{_bits(variable.type)} {variable.name}{count}{initial}"


def _item(item: Item, indent: str) -> Iterator[str]:
    match item:
        case Remark(text=text):
            yield ""
            yield f"{indent}// {one_line(text)}"
        case Declaration(variable=variable):
            yield f"{indent}{_variable(variable)};"
        case Constant(name=constant, type=type, value=number):
            yield f"{indent}localparam {_bits(type)} {constant} = {number};"
        case Wire(target=target, value=value):
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
        case Repeat(variable=variable_name, count=count, label=label, items=items):
            head = f"for (genvar {variable_name} = 0; {variable_name} < {count}; {variable_name}++)"
            yield f"{indent}{head} begin : {label}"
            for inner in items:
                yield from _item(inner, indent + _INDENT)
            yield f"{indent}end"
        case _:
            raise TypeError(f"{item.__class__.__name__} has no spelling")


def _wire(target: Expression, value: Expression, indent: str) -> Iterator[str]:
    line = f"{indent}assign {show(target)} = {show(value)};"
    parts = _conjuncts(value)
    if len(line) <= _COLUMNS or len(parts) == 1:
        yield line
        return
    yield f"{indent}assign {show(target)} ="
    for position, part in enumerate(parts):
        joined = f"&& {_show(part, _LEVELS['&&'] + 1)}" if position else _show(part, _LEVELS["&&"])
        yield f"{indent}{_INDENT}{joined}" + (";" if position == len(parts) - 1 else "")


def _conjuncts(value: Expression) -> list[Expression]:
    match value:
        case Binary(operator="&&", left=left, right=right):
            return [*_conjuncts(left), right]
    return [value]


def _block(head: str, body: tuple[Statement, ...], indent: str) -> Iterator[str]:
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


def _statement(statement: Statement, indent: str) -> Iterator[str]:
    match statement:
        case Set(target=target, value=value, clocked=clocked):
            yield f"{indent}{show(target)} {'<=' if clocked else '='} {show(value)};"
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _if(f"if ({show(condition)})", then, otherwise, indent)
        case For(variable=name, count=count, body=body):
            yield from _block(f"for (int {name} = 0; {name} < {count}; {name}++)", body, indent)
        case Do(call=call):
            yield f"{indent}{show(call)};"
        case _:
            raise TypeError(f"{statement.__class__.__name__} has no spelling")


def _if(
    head: str, then: tuple[Statement, ...], otherwise: tuple[Statement, ...], indent: str
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


def show(expression: Expression) -> str:
    """The text of an expression."""
    return _show(expression, _TERNARY)


def _show(expression: Expression, context: int) -> str:
    match expression:
        case Name(name=text) | Literal(text=text):
            return text
        case Unary(operator=operator, operand=operand):
            text, level = f"{operator}{_show(operand, _PRIMARY)}", _PREFIX
        case Binary(operator=operator, left=left, right=right):
            level = _LEVELS[operator]
            text = f"{_show(left, level)} {operator} {_show(right, level + 1)}"
        case Ternary(condition=condition, if_true=if_true, if_false=if_false):
            inner = (_show(part, _TERNARY + 1) for part in (condition, if_true, if_false))
            text, level = "{} ? {} : {}".format(*inner), _TERNARY
        case Resize(bits=bits, value=value):
            return f"{bits}'({show(value)})"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(show(argument) for argument in arguments)})"
        case Element(base=base, index=index):
            return f"{_show(base, _PRIMARY)}[{show(index)}]"
        case Slice(base=base, high=high, low=low):
            return f"{_show(base, _PRIMARY)}[{high}:{low}]"
        case Concatenation(parts=parts):
            return f"{{{', '.join(show(part) for part in parts)}}}"
        case _:
            raise TypeError(f"{expression.__class__.__name__} has no spelling")
    return f"({text})" if level < context else text
