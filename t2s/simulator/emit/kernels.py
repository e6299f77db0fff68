"""Functions that numba compiled once, as machine code on disk: later processes need no numba.

Importing numba and taking a function from its own cache takes the better part of a second, and
loading the same machine code through llvmlite a few milliseconds.  Such a function, over flat
arrays and integers, neither allocates nor raises, so the code that numba makes of it needs nothing
else.  A ``CompiledKernel`` is called from Python, a ``Callback`` from other machine code.  A file
is named by everything that it depends on: the sources, the versions of the compilers and the CPU.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from t2s.core.errors import InternalError
from t2s.core.interrupts import late_module, undisturbed
from t2s.core.ops import Array
from t2s.simulator.emit.llvmlite import binding, llvmlite_version
from t2s.simulator.emit.object_cache import ObjectCache, cache_directory

_ARRAY_WORDS = 7
"""An array is passed as two owners, its size, the size of an item, address, shape and stride."""

_ENTRY = "kernel"


class Argument(Enum):
    """The type of an argument: one-dimensional arrays by their items, or a number."""

    INT32_ARRAY = "int32"
    INT64_ARRAY = "int64"
    UINT64_ARRAY = "uint64"
    INT64 = "integer"
    BOOLEAN = "boolean"

    @property
    def is_array(self) -> bool:
        return self not in (Argument.INT64, Argument.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Record:
    """An argument that is a ``NamedTuple``, by the types of its fields."""

    type: type
    fields: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """A function of a module that numba can compile; it returns a boolean.

    ``sources`` are the modules whose text the machine code depends on.
    """

    module: str
    name: str
    sources: tuple[str, ...]
    arguments: tuple[Argument | Record, ...]

    @property
    def flat(self) -> tuple[Argument, ...]:
        """The arguments one by one, as machine code takes them."""
        fields = (item.fields if isinstance(item, Record) else (item,) for item in self.arguments)
        return tuple(chain.from_iterable(fields))

    def __call__(self, *values: Any) -> bool:
        """Run the kernel without the interpreter's lock; compiles at the first call."""
        return self.prepared(*values)()

    def prepared(self, *values: Any) -> Callable[..., bool]:
        """A call with these first arguments, which takes the other ones, integers, in order.

        The arrays are those at this moment, and live as long as what is returned.
        """
        answer = ctypes.c_uint8(0)
        words: list[Any] = [ctypes.addressof(answer), None]
        first = self.arguments[: len(values)]
        for item, value in zip(first, values, strict=True):
            kinds, fields = (
                (item.fields, value) if isinstance(item, Record) else ((item,), (value,))
            )
            for kind, field in zip(kinds, fields, strict=True):
                words += _array_words(kind, field) if kind.is_array else [int(field)]
        return _Call(_loaded(self).run, words, answer, values)


def _array_words(kind: Argument, array: Array) -> list[Any]:
    if array.dtype != kind.value or array.ndim != 1 or not array.flags.c_contiguous:
        raise InternalError(f"a kernel takes a flat array of {kind.value}, not {array.dtype}")
    return [None, None, array.size, array.itemsize, array.ctypes.data, array.size, array.itemsize]


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """A function of a module that numba can compile, of the address of some 64-bit words to one.

    ``sources`` are the modules whose text the machine code depends on.
    """

    module: str
    name: str
    sources: tuple[str, ...]

    @property
    def address(self) -> int:
        """Where the machine code is; compiles at the first call."""
        return _address(self)

    def __call__(self, words: int) -> int:
        """Run the function on the words at an address."""
        function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self.address)
        return int(function(words))


@dataclass(frozen=True, slots=True)
class _Call:
    """A kernel and its first arguments, which it keeps."""

    run: Callable[..., int]
    words: list[Any]
    answer: ctypes.c_uint8
    kept: tuple[Any, ...]

    def __call__(self, *numbers: int) -> bool:
        self.run(*self.words, *numbers)
        return bool(self.answer.value)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Machine code in memory as long as this lives."""

    run: Callable[..., int]
    engine: Any


@lru_cache(maxsize=16)
def _loaded(kernel: CompiledKernel) -> _Loaded:
    engine = _engine(kernel)
    words: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind in kernel.flat:
        words += _parameter_types(kind)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *words)
    run: Any = prototype(engine.get_function_address(_ENTRY))
    run.engine = engine  # whoever calls it keeps the code, also where two threads load it at once
    return _Loaded(run, engine)


_CALLED: dict[Callback, Any] = {}
"""What other code may call at any time is never unloaded."""


def _address(callback: Callback) -> int:
    if callback not in _CALLED:
        _CALLED.setdefault(callback, _engine(callback))
    return int(_CALLED[callback].get_function_address(_ENTRY))


def _engine(function: CompiledKernel | Callback) -> Any:
    """An execution engine with the machine code of a function, which lives as long as it does."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )
    code = _code(function, machine)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _parameter_types(kind: Argument) -> list[Any]:
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    if kind.is_array:
        return [pointer, pointer, integer, integer, pointer, integer, integer]
    return [ctypes.c_uint8 if kind is Argument.BOOLEAN else integer]


def _code(function: CompiledKernel | Callback, machine: Any) -> bytes:
    """The machine code, from disk if it is there."""
    name = f"{function.name}-{_fingerprint(function)}"
    caches = _caches()
    for cache in caches:
        found = cache.find(name)
        if found is not None:
            return found
    with undisturbed():
        code = _compiled(function, machine)
    any(cache.keep(name, code) for cache in caches)
    return code


def _fingerprint(function: CompiledKernel | Callback) -> str:
    """A digest of everything that the machine code depends on."""
    digest = sha256()
    for source in (*function.sources, __name__):
        spec = find_spec(source)
        if spec is None or spec.origin is None:
            raise InternalError(f"the source of {source} is not there")
        digest.update(Path(spec.origin).read_bytes())
    for part in (
        version("numba"),
        llvmlite_version,
        binding.get_process_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        function.name,
    ):
        digest.update(f"\0{part}".encode())
    return digest.hexdigest()[:32]


def _caches() -> tuple[ObjectCache, ObjectCache]:
    """Where machine code may be kept: beside the bytecode here, else in the user's cache."""
    return ObjectCache(Path(__file__).parent / "__pycache__"), ObjectCache(cache_directory())


def _compiled(function: CompiledKernel | Callback, machine: Any) -> bytes:
    """Let numba write the code and LLVM translate it."""
    text = (
        _kernel_text(function) if isinstance(function, CompiledKernel) else _callback_text(function)
    )
    return bytes(machine.emit_object(binding.parse_assembly(text)))


def _callback_text(callback: Callback) -> str:
    """The code that numba writes, with a plain name for the function that takes an address."""
    cfunc = late_module("numba").cfunc
    compiled = cfunc("int64(CPointer(int64))")(_function(callback))
    text = str(compiled.inspect_llvm())
    _check_alone(callback, text)
    return text.replace(f"@{compiled.native_name}(", f"@{_ENTRY}(")


def _function(function: CompiledKernel | Callback) -> Any:
    return getattr(import_module(function.module), function.name)


def _kernel_text(kernel: CompiledKernel) -> str:
    """The code that numba writes, with a plain name for the function."""
    numba = late_module("numba")
    items = {
        Argument.INT32_ARRAY: numba.int32[::1],
        Argument.INT64_ARRAY: numba.int64[::1],
        Argument.UINT64_ARRAY: numba.uint64[::1],
        Argument.INT64: numba.int64,
        Argument.BOOLEAN: numba.boolean,
    }
    dispatcher = numba.njit(
        nogil=True,
        error_model="numpy",
        _nrt=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(_function(kernel))
    dispatcher.compile(
        tuple(
            numba.types.NamedTuple([items[kind] for kind in item.fields], item.type)
            if isinstance(item, Record)
            else items[item]
            for item in kernel.arguments
        )
    )
    return _with_entry(kernel, dispatcher.inspect_llvm(dispatcher.signatures[0]))


def _with_entry(kernel: CompiledKernel, text: str) -> str:
    """The code with a plain name for its function, whose parameters have to be as expected."""
    found = re.findall(r'^define [^\n@]*@("[^"]+"|[^(\s]+)\(([^\n]*)\) ', text, re.MULTILINE)
    entries = [(name, given) for name, given in found if "%retptr" in given and "%arg." in given]
    if len(entries) > 1:  # functions that were not inlined
        mangled = f"{len(kernel.name)}{kernel.name}"
        entries = [(name, given) for name, given in entries if mangled in name]
    words = 2 + sum(_ARRAY_WORDS if kind.is_array else 1 for kind in kernel.flat)
    if len(entries) != 1 or len(re.findall(r"%[\w.]+", entries[0][1])) != words:
        raise InternalError(f"numba passes the arguments of {kernel.name} in another way")
    _check_alone(kernel, text)
    return text.replace(f"@{entries[0][0]}(", f"@{_ENTRY}(")


def _check_alone(function: CompiledKernel | Callback, text: str) -> None:
    """``InternalError`` if the code needs more than the processor."""
    outside = [line for line in text.splitlines() if line.startswith("declare")]
    if any("@llvm." not in line for line in outside):
        raise InternalError(f"{function.name} calls functions of numba: {outside}")
