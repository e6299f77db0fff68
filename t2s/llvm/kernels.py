"""Kernels: functions in a subset of Python, translated to machine code that is cached on disk.

``translate`` defines the subset.  If the code is in the cache, under a digest of everything that it
depends on, neither the module of a kernel nor LLVM's passes are needed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.core.sigint import defer_sigint
from t2s.llvm.compile import Effort, MachineCode, compile_when_new
from t2s.llvm.ir import (
    I64,
    POINTER,
    VOID,
    BasicBlock,
    Builder,
    LLVMFunction,
    Module,
    Slot,
    Value,
    integer,
    struct_type,
)
from t2s.llvm.operands import (
    Argument,
    ArgumentType,
    Fields,
    FlatArray,
    KernelNumber,
    Operand,
    Record,
    Scalar,
    Untranslatable,
    as_kind,
    binary,
    common_kind,
    compared,
    constant,
    converted,
    extreme,
    inlined,
    number,
    passed,
    received,
    scalar,
    truth,
    type_of,
    unary,
    values_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """A function in the subset of Python that ``translate`` takes.

    It returns an integer, a boolean or nothing; ``sources`` are the files and folders that its
    machine code depends on.
    """

    module: str
    name: str
    sources: tuple[Path, ...]
    arguments: tuple[ArgumentType, ...]

    @property
    def address(self) -> int:
        """The address of the machine code, for other machine code; compiled on first use.

        The function takes the address of the argument words that ``translate`` describes.
        """
        return _code(self).address

    def __call__(self, *values: Any) -> int:
        """Run the kernel without the GIL; compiled on first use."""
        return self.prepared(*values)()

    def prepared(self, *values: Any) -> Callable[..., int]:
        """Bind the first arguments; the result takes the remaining ones, which are integers.

        The result keeps the arrays alive.
        """
        words: list[int] = []
        for item, value in zip(self.arguments, values, strict=False):
            kinds, fields = (
                (item.fields, value) if isinstance(item, Record) else ((item,), (value,))
            )
            for kind, field in zip(kinds, fields, strict=True):
                words += _array_words(kind, field) if kind.is_array else [int(field)]
        left = len(self.arguments) - len(values)
        table = np.array(words + [0] * left, np.int64)
        if self.arguments == (Argument.WORDS,):
            (table,) = values
        return _Call(_code(self).run, table, len(table) - left, values)


def _array_words(kind: Argument, array: Array) -> list[int]:
    if array.dtype != kind.item or array.ndim != 1 or not array.flags.c_contiguous:
        raise InternalError(f"a kernel takes a flat array of {kind.item}, not {array.dtype}")
    return [array.ctypes.data, array.size]


class _Call:
    """A kernel with its first arguments bound."""

    __slots__ = ("_address", "_first", "_kept", "_run", "_words")

    def __init__(
        self, run: Callable[..., int], words: Array, first: int, references: tuple[Any, ...]
    ) -> None:
        self._run, self._words, self._first, self._kept = run, words, first, references
        self._address = words.ctypes.data

    def __call__(self, *numbers: int) -> int:
        self._words[self._first :] = numbers
        return self._run(self._address, 0)


_LOADED: dict[CompiledKernel, MachineCode] = {}
"""Code that other code may call is never unloaded."""


def _code(kernel: CompiledKernel) -> MachineCode:
    if kernel not in _LOADED:
        with defer_sigint():
            code = compile_when_new(
                f"{kernel.module} {kernel.name}",
                lambda: translate(
                    getattr(import_module(kernel.module), kernel.name), kernel.arguments
                ),
                kernel.sources,
                Effort.EVERYTHING,
            )
        _LOADED.setdefault(kernel, code)
    return _LOADED[kernel]


# Functions of Python as LLVM code: the translator of the simulator's kernels.
#
# A kernel is written in a small subset of Python, over 64-bit integers and flat arrays of integers,
# and can be read and called like any other function.  The subset: assignments (also of several
# names at once, augmented, and to elements of arrays), ``if``, ``while``, ``for`` over a ``range``,
# ``break``, ``continue``, ``return``; the operators of integers, comparisons, ``and``, ``or``,
# ``not``, conditional expressions; ``len`` of arrays, ``min``, ``max``, ``bool``, ``np.int64`` and
# ``np.uint64``; fields of named tuples; and calls of other such functions, which may be free
# variables of an enclosing function.  Constants are looked up where the function was defined.
#
# Types follow from the arguments: a function is translated for each tuple of argument types of its
# calls, and a variable has the type of its first assignment.  ``operands`` has the kinds of
# operands. Indices are never negative, and nothing raises.  Anything else is an ``InternalError``
# with file and line.

ENTRY = "run"
"""The name of the function that is called from outside."""

_LARGE = 150
"""Functions of more lines are only inlined if marked: LLVM takes more than twice as long for a
function of twice the size."""


def translate(function: Callable[..., Any], arguments: Sequence[ArgumentType]) -> str:
    """A module whose function ``run`` takes the address of argument words and returns a word.

    The words hold all arguments in turn, and do not change during the run, or are the elements of
    the array if the only argument is ``WORDS``.
    """
    module = _Module()
    entry = module.text.function(ENTRY, I64, [POINTER, I64])
    builder, words = Builder(entry), entry.args[0]
    operands: list[Operand] = []
    at = 0
    for place, kind in enumerate(arguments):
        operands.append(passed(builder, words, at, kind, f"argument {place}"))
        at += kind.words
    if arguments == (Argument.WORDS,):
        operands = [FlatArray(words, integer(0), Argument.WORDS)]
    result = module.call(builder, function, operands, inline=True)
    if isinstance(result, tuple):
        raise InternalError("a kernel returns a number or nothing")
    builder.ret(integer(0) if result is None else converted(builder, result, Argument.INT64).value)
    return str(module.text)


@cache
def _definitions(file: str) -> dict[int, ast.FunctionDef]:
    """The functions of a file by the lines in which they begin, with their decorators."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]): node
        for node in functions
    }


@dataclass(frozen=True, slots=True)
class _Translated:
    """A function of the module, and the types of its results: none, one, or several."""

    function: LLVMFunction
    returns: tuple[Argument, ...]
    several: bool


class _Module:
    """A module, with its translated functions by their argument types."""

    def __init__(self) -> None:
        self.text = Module()
        self._translated: dict[tuple[Any, ...], _Translated | None] = {}
        self._numbers = count()

    def call(
        self,
        builder: Builder,
        function: Callable[..., Any],
        arguments: Sequence[Operand],
        *,
        inline: bool = False,
    ) -> Operand:
        """Call a function on operands; ``inline`` forces inlining."""
        typed = list(map(number, arguments))
        key = (function, *map(type_of, typed))
        if key not in self._translated:
            self._translated[key] = None  # recursion: the function is still being translated
            self._translated[key] = self._translate(function, typed, inline)
        translated = self._translated[key]
        if translated is None:
            raise InternalError(f"the kernel {function.__qualname__} calls itself")
        words = [value for operand in typed for value in values_of(operand)]
        result = builder.call(translated.function, words)
        if not translated.several:
            return KernelNumber(result, translated.returns[0]) if translated.returns else None
        return tuple(
            KernelNumber(builder.extract_value(result, at, kind.llvm), kind)
            for at, kind in enumerate(translated.returns)
        )

    def _translate(
        self, function: Callable[..., Any], arguments: Sequence[Operand], inline: bool
    ) -> _Translated:
        assert isinstance(function, FunctionType)
        name = f"{function.__name__.lstrip('_')}_{next(self._numbers)}"
        types = [value.type for operand in arguments for value in values_of(operand)]
        inline = inline or inlined.__name__ in vars(function)
        attributes = "alwaysinline nounwind" if inline else "nounwind"
        target = self.text.function(name, VOID, types, attributes=attributes)
        target.internal = True
        left = iter(target.args)
        body = _Body(self, function, target)
        results = body.translated([received(operand, left) for operand in arguments])
        if not inline and sum(2 + len(block.lines) for block in target.blocks) > _LARGE:
            target.signature += " noinline"
        return results


@dataclass(slots=True)
class _Loop:
    """The targets of ``continue`` and ``break``, and whether there is a ``break``."""

    again: BasicBlock
    after: BasicBlock
    left: bool = False


class _Body:
    """Translates the body of a function for some argument types."""

    def __init__(self, module: _Module, function: FunctionType, target: LLVMFunction) -> None:
        code = function.__code__
        self._module, self._function, self._made = module, function, target
        self._builder = Builder(target)
        self._node = _definitions(code.co_filename)[code.co_firstlineno]
        self._slots: dict[str, tuple[Slot, Argument]] = {}
        self._names: dict[str, Operand] = {}
        self._loops: list[_Loop] = []
        self._returned: dict[BasicBlock, Operand] = {}
        free = zip(code.co_freevars, function.__closure__ or (), strict=True)
        self._free = {name: cell.cell_contents for name, cell in free}

    def translated(self, arguments: Sequence[Operand]) -> _Translated:
        """The translated function."""
        try:
            for argument, operand in zip(self._node.args.args, arguments, strict=True):
                self._bind(argument.arg, operand)
            self._statements(self._node.body)
            return self._ended()
        except Untranslatable as error:
            raise self._located(self._node, error) from None

    def _located(self, node: ast.stmt, error: Untranslatable) -> InternalError:
        return InternalError(f"{self._function.__code__.co_filename}:{node.lineno}: {error}")

    def _ended(self) -> _Translated:
        """Unify the return values of all exits of the function."""
        if self._open:
            self._returned[self._builder.block] = None
        results = list(self._returned.values())
        several = isinstance(results[0], tuple)
        if any(isinstance(result, tuple) != several for result in results):
            raise Untranslatable("all ways out of a function return as many values")
        rows = [result if several else () if result is None else (result,) for result in results]
        if len(set(map(len, rows))) != 1:
            raise Untranslatable("all ways out of a function return as many values")
        kinds = tuple(map(common_kind, zip(*rows, strict=True)))
        types = [kind.llvm for kind in kinds]
        self._made.returns = struct_type(*types) if several else types[0] if types else VOID
        for block, row in zip(self._returned, rows, strict=True):
            self._builder.position_at_end(block)
            values = [
                as_kind(self._builder, value, kind) for value, kind in zip(row, kinds, strict=True)
            ]
            if several:
                self._builder.ret(self._builder.struct(self._made.returns, values))
            elif values:
                self._builder.ret(values[0])
            else:
                self._builder.ret_void()
        return _Translated(self._made, kinds, several)

    # -- names ------------------------------------------------------------------------------------

    def _bind(self, name: str, operand: Operand) -> None:
        """Assign to a name; the first assignment fixes its type."""
        operand = number(operand)
        if not isinstance(operand, KernelNumber):
            if name in self._names or name in self._slots:
                raise Untranslatable(f"{name} is assigned to twice, and is not a number")
            self._names[name] = operand
            return
        if name not in self._slots:
            with self._builder.goto_entry_block():
                self._slots[name] = self._builder.alloca(operand.kind.llvm), operand.kind
        slot, kind = self._slots[name]
        self._builder.store(as_kind(self._builder, operand, kind), slot)

    def _name(self, name: str) -> Operand:
        """A variable, or a constant from the defining scope."""
        if name in self._slots:
            slot, kind = self._slots[name]
            return KernelNumber(self._builder.load(slot, slot.kept), kind)
        for names in (self._names, self._free, self._function.__globals__, vars(builtins)):
            if name in names:
                return constant(names[name])
        raise Untranslatable(f"{name} is not there")

    # -- expressions ------------------------------------------------------------------------------

    def _scalar(self, node: ast.expr) -> Scalar:
        return scalar(self._value(node))

    def _value(self, node: ast.expr) -> Operand:
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.Name(id=name):
                return self._name(name)
            case ast.Tuple(elts=parts):
                return tuple(map(self._value, parts))
            case ast.Attribute(value=base, attr=name):
                base_value = self._value(base)
                if isinstance(base_value, Fields):
                    return base_value.field(self._builder, name)
                return constant(getattr(base_value, name))
            case ast.Subscript(value=base, slice=index):
                return self._element(self._value(base), self._scalar(index))
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
                return self._chosen(node, ast.Constant(True), ast.Constant(False))
            case ast.UnaryOp(op=sign, operand=part):
                return unary(self._builder, sign, self._scalar(part))
            case ast.BinOp(left=left, op=sign, right=right):
                return binary(self._builder, sign, self._scalar(left), self._scalar(right))
            case ast.Compare(left=left, ops=signs, comparators=others):
                return compared(self._builder, signs, list(map(self._scalar, (left, *others))))
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return self._chosen(test, body, otherwise)
            case ast.Call(func=callee, args=arguments, keywords=[]):
                return self._call(self._value(callee), list(map(self._value, arguments)))
        raise Untranslatable("kernels have no such expression")

    def _element(self, base: Operand, index: Scalar) -> Operand:
        if isinstance(base, tuple) and isinstance(index, int):
            return base[index]
        return self._array(base).load(self._builder, index)

    def _array(self, base: Operand) -> FlatArray:
        if not isinstance(base, FlatArray):
            raise Untranslatable("only arrays have elements, at numbers")
        return base

    def _decide(self, node: ast.expr, yes: BasicBlock, no: BasicBlock) -> None:
        """Branch on a condition, with short-circuit evaluation."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=part):
                self._decide(part, no, yes)
            case ast.BoolOp(op=sign, values=[*before, last]):
                for part in before:
                    further = self._block("further")
                    ways = (further, no) if isinstance(sign, ast.And) else (yes, further)
                    self._decide(part, *ways)
                    self._builder.position_at_end(further)
                self._decide(last, yes, no)
            case ast.Constant(value=value):
                self._builder.branch(yes if value else no)
            case _:
                self._builder.cbranch(truth(self._builder, self._scalar(node)), yes, no)

    def _chosen(self, test: ast.expr, body: ast.expr, otherwise: ast.expr) -> KernelNumber:
        """One of two values, of which only that one is computed."""
        yes, no, after = (self._block(name) for name in ("yes", "no", "after"))
        self._decide(test, yes, no)
        ways = []
        for block, part in ((yes, body), (no, otherwise)):
            self._builder.position_at_end(block)
            ways.append((self._scalar(part), self._builder.block))
        kind = common_kind([operand for operand, _ in ways])
        incoming: list[tuple[Value, BasicBlock]] = []
        for operand, block in ways:
            self._builder.position_at_end(block)
            incoming.append((as_kind(self._builder, operand, kind), block))
            self._builder.branch(after)
        self._builder.position_at_end(after)
        phi = self._builder.phi(kind.llvm)
        for value, block in incoming:
            phi.add_incoming(value, block)
        return KernelNumber(phi, kind)

    def _call(self, callee: Any, arguments: Sequence[Operand]) -> Operand:
        builder = self._builder
        match arguments:
            case [FlatArray(length=length)] if callee is len:
                return KernelNumber(length, Argument.INT64)
            case [operand] if callee is bool:
                return KernelNumber(truth(builder, scalar(operand)), Argument.BOOLEAN)
            case [operand] if callee is np.int64:
                return converted(builder, scalar(operand), Argument.INT64)
            case [operand] if callee is np.uint64:
                return converted(builder, scalar(operand), Argument.UINT64)
            case [_, _, *_] if callee is min or callee is max:
                return extreme(builder, callee.__name__, list(map(scalar, arguments)))
            case _ if isinstance(callee, FunctionType):
                return self._module.call(builder, callee, arguments)
        raise Untranslatable("kernels cannot call this")

    # -- statements -------------------------------------------------------------------------------

    def _block(self, name: str) -> BasicBlock:
        return self._made.block(name)

    @property
    def _open(self) -> bool:
        """Whether the end of the statements so far is reached."""
        block = self._builder.block
        return block.end is None and block not in self._returned

    def _statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            try:
                if not self._open:
                    raise Untranslatable("nothing comes here")
                self._statement(node)
            except Untranslatable as error:
                raise self._located(node, error) from None

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Expr(value=ast.Call() as call):
                self._value(call)
            case ast.Assign(targets=targets, value=value):
                operand = self._value(value)
                for target in targets:
                    self._assign(target, operand)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._value(value))
            case ast.AugAssign(target=ast.Name(id=name), op=sign, value=value):
                before = scalar(self._name(name))
                self._bind(name, binary(self._builder, sign, before, self._scalar(value)))
            case ast.AugAssign(target=ast.Subscript(value=base, slice=index), op=sign, value=value):
                array, at = self._array(self._value(base)), self._scalar(index)
                before = array.load(self._builder, at)
                after = binary(self._builder, sign, before, self._scalar(value))
                array.store(self._builder, at, after)
            case ast.If(test=test, body=body, orelse=otherwise):
                self._if(test, body, otherwise)
            case ast.While(test=test, body=body, orelse=[]):
                self._while(test, body)
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=bounds),
                body=body,
                orelse=[],
            ):
                self._for(name, list(map(self._scalar, bounds)), body)
            case ast.Break():
                self._loops[-1].left = True
                self._builder.branch(self._loops[-1].after)
            case ast.Continue():
                self._builder.branch(self._loops[-1].again)
            case ast.Return(value=value):
                operand = None if value is None else self._value(value)
                self._returned[self._builder.block] = operand
            case _:
                raise Untranslatable("kernels have no such statement")

    def _assign(self, target: ast.expr, operand: Operand) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, operand)
            case ast.Tuple(elts=targets) if isinstance(operand, tuple):
                for one, part in zip(targets, operand, strict=True):
                    self._assign(one, part)
            case ast.Subscript(value=base, slice=index):
                array = self._array(self._value(base))
                array.store(self._builder, self._scalar(index), operand)
            case _:
                raise Untranslatable("kernels do not assign to this")

    def _if(self, test: ast.expr, body: Sequence[ast.stmt], otherwise: Sequence[ast.stmt]) -> None:
        then, after = self._block("then"), self._block("after")
        other = self._block("else") if otherwise else after
        self._decide(test, then, other)
        reached = not otherwise
        for block, part in ((then, body), (other, otherwise)):
            if part:
                self._builder.position_at_end(block)
                self._statements(part)
                if self._open:
                    reached = True
                    self._builder.branch(after)
        # where nothing comes behind, that block stays empty, and LLVM removes it
        self._builder.position_at_end(after if reached else then)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        head, inside, after = (self._block(name) for name in ("head", "body", "after"))
        self._builder.branch(head)
        self._builder.position_at_end(head)
        self._decide(test, inside, after)
        left = self._loop(inside, body, _Loop(head, after))
        endless = isinstance(test, ast.Constant) and not left
        self._builder.position_at_end(head if endless else after)

    def _loop(self, inside: BasicBlock, body: Sequence[ast.stmt], loop: _Loop) -> bool:
        """The body of a loop; whether it is left by ``break``."""
        self._builder.position_at_end(inside)
        self._loops.append(loop)
        self._statements(body)
        self._loops.pop()
        if self._open:
            self._builder.branch(loop.again)
        return loop.left

    def _for(self, name: str, bounds: Sequence[Scalar], body: Sequence[ast.stmt]) -> None:
        """A loop over a range, whose bounds are computed once."""
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if not isinstance(step, int) or not step:
            raise Untranslatable("the step of a range is a constant")
        builder, kind = self._builder, common_kind([start, stop])
        first, end = as_kind(builder, start, kind), as_kind(builder, stop, kind)
        names = ("head", "body", "following", "after")
        head, inside, following, after = (self._block(name) for name in names)
        before = builder.block
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(I64)
        index.add_incoming(first, before)
        compare = builder.icmp_signed if kind is Argument.INT64 else builder.icmp_unsigned
        builder.cbranch(compare("<" if step > 0 else ">", index, end), inside, after)
        builder.position_at_end(inside)
        self._bind(name, KernelNumber(index, kind))
        self._loop(inside, body, _Loop(following, after))
        builder.position_at_end(following)
        index.add_incoming(builder.add(index, integer(step)), following)
        builder.branch(head)
        builder.position_at_end(after)
