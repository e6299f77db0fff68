"""Runs the integer part of the target AST in Python: loops, counters, conditions, assignments."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.kernels import kernel_ast as c
from t2s.backends.text import expressions as e

Memory = dict[str, int]
Stores = list[tuple[int, int]]


def stores_of(kernel: c.KernelDefinition) -> Stores:
    """Every (address, value) that a kernel with one array stores, in order."""
    stores: Stores = []
    _run(kernel.body, {}, stores)
    return stores


def operators_in(kernel: c.KernelDefinition) -> set[str]:
    """The binary operators that a kernel uses."""
    found: set[str] = set()

    def look(node: object) -> None:
        if isinstance(node, tuple):
            for item in node:
                look(item)
        elif isinstance(node, e.TargetExpression | e.TargetStatement):
            if isinstance(node, e.Binary):
                found.add(node.operator)
            for name in node.__dataclass_fields__:
                look(getattr(node, name))

    look(kernel.body)
    return found


def _run(statements: Sequence[e.TargetStatement], memory: Memory, stores: Stores) -> None:
    for statement in statements:
        match statement:
            case c.DeclareAll(variables=variables):
                for name, initial in variables:
                    memory[name] = _value(initial, memory)
            case c.Declare(name=name, initial=e.TargetExpression() as initial):
                memory[name] = _value(initial, memory)
            case e.Set(target=c.Subscript(indices=(index,)), value=value):
                stores.append((_value(index, memory), _value(value, memory)))
            case e.Set(target=e.Name(name=name), value=value):
                memory[name] = _value(value, memory)
            case c.Increment(target=e.Name(name=name)):
                memory[name] += 1
            case e.If(condition=condition, then=then):
                if _value(condition, memory):
                    _run(then, memory, stores)
            case c.For(name=name, start=start, stop=stop, body=body, down=False):
                memory[name] = _value(start, memory)
                while memory[name] < _value(stop, memory):
                    _run(body, memory, stores)
                    memory[name] += 1
            case _:
                raise TypeError(f"cannot run {statement!r}")


def _value(expression: e.TargetExpression, memory: Memory) -> int:
    match expression:
        case e.Name(name=name):
            return memory[name]
        case e.Literal(text=text):
            return int(text)
        case e.Unary(operator="++", operand=e.Name(name=name)):
            memory[name] += 1
            return memory[name]
        case e.Binary(operator=operator, left=left, right=right):
            return _binary(operator, _value(left, memory), _value(right, memory))
    raise TypeError(f"cannot evaluate {expression!r}")


def _binary(operator: str, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case ">>":
            return left >> right
        case "&":
            return left & right
        case "==":
            return int(left == right)
        case "/" | "%" if left >= 0 and right > 0:  # where C and Python agree
            return left // right if operator == "/" else left % right
    raise TypeError(f"cannot compute {left} {operator} {right}")
