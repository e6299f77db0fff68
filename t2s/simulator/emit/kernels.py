"""Functions written in Python that run as machine code, which is kept on disk.

``translate`` says which part of Python they are written in.  Neither their module nor LLVM's passes
are needed where the code is on disk, under a name of everything that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.interrupts import undisturbed
from t2s.core.ops import Array
from t2s.simulator.emit.compile import Effort, MachineCode, compile_when_new
from t2s.simulator.emit.operands import Argument, ArgumentType, Record
from t2s.simulator.emit.translate import translate


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """A function of a module, in the part of Python that ``translate`` takes.

    It returns an integer, a boolean or nothing; ``sources`` are the files and folders that its
    machine code depends on.
    """

    module: str
    name: str
    sources: tuple[Path, ...]
    arguments: tuple[ArgumentType, ...]

    @property
    def address(self) -> int:
        """Where the machine code is, for other machine code; compiles at the first call.

        It takes the address of the words that ``translate`` describes.
        """
        return _code(self).address

    def __call__(self, *values: Any) -> int:
        """Run the kernel without the interpreter's lock; compiles at the first call."""
        return self.prepared(*values)()

    def prepared(self, *values: Any) -> Callable[..., int]:
        """A call with these first arguments, which takes the other ones, integers, in order.

        The arrays are those at this moment, and live as long as what is returned.
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
    """A kernel and its first arguments, which it keeps."""

    __slots__ = ("_address", "_first", "_kept", "_run", "_words")

    def __init__(
        self, run: Callable[..., int], words: Array, first: int, kept: tuple[Any, ...]
    ) -> None:
        self._run, self._words, self._first, self._kept = run, words, first, kept
        self._address = words.ctypes.data

    def __call__(self, *numbers: int) -> int:
        self._words[self._first :] = numbers
        return self._run(self._address, 0)


_LOADED: dict[CompiledKernel, MachineCode] = {}
"""What other code may call at any time is never unloaded."""


def _code(kernel: CompiledKernel) -> MachineCode:
    if kernel not in _LOADED:
        with undisturbed():
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
