"""Compiling loops with LLVM for this CPU, at full optimization, but without reordering floats.

Loops around calls by address are run here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, assert_never

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local
from t2s.core.ops import C_FUNCTIONS
from t2s.core.preparation import preparation
from t2s.core.types import INT32, Type
from t2s.core.walk import walk
from t2s.llvm.compile import ENTRY, Effort, MachineCode, compile_module, compile_text
from t2s.llvm.expressions import ExpressionEmitter, convert, load_value, register_type, store_value
from t2s.llvm.ir import I64, POINTER, VOID, Builder, Module, Slot, Value, integer
from t2s.loops.call_nest import FUNCTION, STATUS, NestedCall, nest_of
from t2s.loops.ir import (
    INDEX,
    CountingLoop,
    ElementAddress,
    EndWith,
    LoadElement,
    LoopArray,
    LoopBranch,
    LoopCall,
    LoopFunction,
    LoopStatement,
    MakeRoom,
    SetLocal,
    StoreElement,
    WhileLoop,
)

Array = np.ndarray[Any, Any]


@lru_cache(maxsize=64)
def machine_code(function: LoopFunction) -> MachineCode:
    """The machine code of loops, cached in memory and on disk.

    ``run`` takes the address of the table and 0, and returns 0, or the status of ``grow``.
    """
    return compile_text(llvm_text(function), Effort.EVERYTHING)


@cache
def _module_in_memory(text: str) -> Any:
    return compile_module(text)


def address_in(text: str, name: str) -> int:
    """The address of a function of an LLVM module, which is compiled once.

    Raises ``KeyError`` for an unknown name.
    """
    address = int(_module_in_memory(text).get_function_address(name))
    if not address:
        raise KeyError(name)
    return address


def llvm_text(function: LoopFunction) -> str:
    """The module in LLVM."""
    module = Module()
    _Emitter(module, function).emit()
    return str(module)


class _Names(Mapping[str, Value]):
    """Locals by their names; looking one up emits a load."""

    def __init__(self, load: Callable[[str], Value]) -> None:
        self._load = load

    def __getitem__(self, name: str) -> Value:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Emitter:
    def __init__(self, module: Module, function: LoopFunction) -> None:
        self.function = function
        self.made = module.function(ENTRY, I64, [POINTER, I64])
        self.builder = Builder(self.made)
        self.table = self.made.args[0]
        self.slots: dict[str, Slot] = {}
        self.pointers: dict[str, Slot | Value] = {}
        functions = {
            operator: self.builder.load(self._at(function.slot_of_operator(operator)), I64)
            for operator in C_FUNCTIONS
        }
        self.expressions = ExpressionEmitter(self.builder, _Names(self._read), functions)

    def emit(self) -> None:
        builder = self.builder
        for term in walk(self.function):
            match term:
                case SetLocal(name=name, value=value):
                    self._slot(name, value.type)
                case LoadElement(name=name, type=type):
                    self._slot(name, type)
                case CountingLoop(name=name):
                    self._slot(name, INDEX)
                case LoopCall(result=name, returns=returned) if returned is not None:
                    self._slot(name, returned)
        for argument in self.function.arguments:
            at = self._argument(argument.name)
            if not isinstance(argument, LoopArray):
                builder.store(builder.load(at, I64), self._slot(argument.name, INDEX))
            elif argument.grows:
                self.pointers[argument.name] = builder.alloca(POINTER)
                builder.store(builder.load(at, POINTER), self.pointers[argument.name])
            else:
                self.pointers[argument.name] = builder.load(at, POINTER)
        self._all(self.function.body)
        self._end(integer(0))

    def _end(self, status: Value) -> None:
        """Write the returned numbers to the table, and return."""
        for argument in self.function.arguments:
            if not isinstance(argument, LoopArray) and argument.returned:
                self.builder.store(self._read(argument.name), self._argument(argument.name))
        self.builder.ret(status)

    def _slot(self, name: str, type: Type) -> Slot:
        if name not in self.slots:
            self.slots[name] = self.builder.alloca(register_type(type))
        elif self.slots[name].kept is not register_type(type):
            raise InternalError(f"the local {name} has two types")
        return self.slots[name]

    def _argument(self, name: str) -> Value:
        return self._at(self.function.slot(name))

    def _at(self, slot: int) -> Value:
        return self.builder.offset(self.table, integer(8 * slot))

    def _read(self, name: str) -> Value:
        slot = self.slots[name]
        return self.builder.load(slot, slot.kept)

    def _value(self, expr: Expr) -> Value:
        return self._read(expr.name) if isinstance(expr, Local) else self.expressions.emit(expr)

    def _all(self, statements: Sequence[LoopStatement]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: LoopStatement) -> None:
        builder = self.builder
        match statement:
            case SetLocal(name=name, value=value):
                builder.store(self._value(value), self.slots[name])
            case LoadElement(name=name, array=array, index=index, type=type):
                element = self.function.array(array).type
                loaded = load_value(builder, self._element(array, index), element, element.bytes)
                builder.store(convert(builder, loaded, element, type), self.slots[name])
            case StoreElement(array=array, index=index, value=value):
                element = self.function.array(array).type
                stored = convert(builder, self._value(value), value.type, element)
                store_value(builder, stored, self._element(array, index), element, element.bytes)
            case CountingLoop(name=name, start=start, end=end, body=body):
                with builder.counting(self._value(start), self._value(end), flags="nsw") as at:
                    builder.store(at, self.slots[name])
                    self._all(body)
            case WhileLoop():
                self._while(statement)
            case LoopBranch(condition=condition, body=body, otherwise=otherwise):
                self._branch(self._value(condition), body, otherwise)
            case MakeRoom(group=group, needed=needed):
                self._make_room(group, needed)
            case LoopCall():
                self._call(statement)
            case EndWith(status=status):
                self._end(self._value(status))
                builder.position_at_end(self.made.block("unreached"))
            case _:
                assert_never(statement)

    def _element(self, array: str, index: Expr) -> Value:
        builder, pointer = self.builder, self.pointers[array]
        if self.function.array(array).grows:
            pointer = builder.load(pointer, POINTER)
        size = self.function.array(array).type.bytes
        return builder.offset(pointer, builder.mul(self._value(index), integer(size), "nsw"))

    def _call(self, call: LoopCall) -> None:
        """Pass integers of less than 32 bits in 32: ABIs disagree on who extends them."""
        builder = self.builder
        arguments: list[Value] = []
        for argument in call.arguments:
            if isinstance(argument, ElementAddress):
                arguments.append(self._element(argument.array, argument.index))
                continue
            value, type = self._value(argument), argument.type
            if not type.is_float and type.bits < 32:
                value = convert(builder, value, type, INT32)
            arguments.append(value)
        address = builder.inttoptr(self._read(call.function), POINTER)
        returns = VOID if call.returns is None else register_type(call.returns)
        result = builder.call_at(address, returns, arguments)
        if call.returns is not None:
            builder.store(result, self.slots[call.result])

    def _while(self, loop: WhileLoop) -> None:
        builder, block = self.builder, self.made.block
        head, body, after = block("head"), block("body"), block("after")
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(self._value(loop.condition), body, after)
        builder.position_at_end(body)
        self._all(loop.body)
        builder.branch(head)
        builder.position_at_end(after)

    def _branch(
        self,
        condition: Value,
        body: Sequence[LoopStatement],
        otherwise: Sequence[LoopStatement],
    ) -> None:
        builder, block = self.builder, self.made.block
        first, second, after = block("then"), block("else"), block("after")
        builder.cbranch(condition, first, second)
        for place, statements in ((first, body), (second, otherwise)):
            builder.position_at_end(place)
            self._all(statements)
            builder.branch(after)
        builder.position_at_end(after)

    def _make_room(self, group: str, needed: Expr) -> None:
        """Call ``grow`` if there is not enough room, and read the new addresses from the table."""
        builder = self.builder
        size = self._value(needed)
        with builder.if_then(builder.icmp_signed(">", size, self._read(group)), rare=True):
            grow = builder.load(self.table, POINTER)
            which = integer(self.function.groups.index(group))
            status = builder.call_at(grow, I64, [which, size])
            failed, going = self.made.block("failed"), self.made.block("going")
            builder.cbranch(builder.icmp_signed("!=", status, integer(0)), failed, going)
            builder.position_at_end(failed)
            builder.ret(status)
            builder.position_at_end(going)
            builder.store(builder.load(self._argument(group), I64), self.slots[group])
            for argument in self.function.arguments:
                if isinstance(argument, LoopArray) and argument.grows == group:
                    pointer = self.pointers[argument.name]
                    builder.store(builder.load(self._argument(argument.name), POINTER), pointer)


def run_nest(
    nest: NestedCall, address: int, arrays: Mapping[str, Array], numbers: Mapping[str, int]
) -> int | None:
    """Make all calls.  The status of one that failed, which was the last; ``None`` if none did.

    ``address`` is that of the function; arrays and numbers are by the arguments' names.  The first
    value of an array is where the loops begin.
    """
    with preparation():
        function = nest_of(nest)
        code = machine_code(function)
    numbers = {**numbers, FUNCTION: address, STATUS: 0}
    table = function.table()
    for argument in function.arguments:
        array = isinstance(argument, LoopArray)
        table[function.slot(argument.name)] = (
            arrays[argument.name].ctypes.data if array else numbers[argument.name]
        )
    failed = code.run(table.ctypes.data, 0)
    return int(table[function.slot(STATUS)]) if failed else None
