"""From LLVM code to machine code: optimized, compiled, and cached on disk."""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from t2s.core.sigint import import_deferring_sigint

ENTRY = "run"
"""The function of a program."""

NEST = "nest"
"""The function of a nest."""

_COMPILED_MODULES = 64
LONG_PROGRAM = 700_000
"""Characters of a program that takes a second to optimize."""

_KIT = Path(__file__).parent
_PIPELINE = "2"
"""The version of the passes below, part of the name of cached code: change it with them."""


class Effort(Enum):
    """The effort of LLVM's instruction selection.

    ``EVERYTHING`` also runs all optimization passes, for code that does not hoist loop invariants
    itself.  All levels give the same values: nothing is reordered, and no multiplication is fused.
    """

    QUICK = 0
    FULL = 2
    EVERYTHING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCode:
    """Machine code that lives as long as this object.

    ``run`` takes the address of an arena and numbers (for a program a budget of firings), and
    releases the GIL.
    """

    run: Callable[..., int]
    engine: Any

    @property
    def address(self) -> int:
        """The address of ``run``."""
        return int(self.engine.get_function_address(ENTRY))


@lru_cache(maxsize=_COMPILED_MODULES)
def compile_text(text: str, effort: Effort = Effort.FULL) -> MachineCode:
    """Compile a whole program for this CPU, with a cache of recent programs."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return _code_of(_loaded(text, lambda: text, effort), ENTRY, prototype)


def compile_by_use(text: str) -> MachineCode:
    """Compile a program, a long one without optimization when it is new.

    That takes a third of the time.  A program that has code on disk is optimized.
    """
    is_new = not any(is_compiled(text, effort) for effort in (Effort.QUICK, Effort.FULL))
    quick = len(text) > LONG_PROGRAM and is_new
    return compile_text(text, Effort.QUICK if quick else Effort.FULL)


def is_compiled(text: str, effort: Effort = Effort.FULL) -> bool:
    """Whether the code of a program is on disk."""
    return ObjectCache(cache_directory()).find(_name_of(text, effort)) is not None


@lru_cache(maxsize=_COMPILED_MODULES)
def compile_nest(text: str) -> MachineCode:
    """Compile a nest for this CPU; ``run`` takes an arena, two PEs, and two rounds."""
    numbers = (ctypes.c_int64,) * 4
    return _code_of(compile_module(text), NEST, ctypes.CFUNCTYPE(None, ctypes.c_void_p, *numbers))


def _code_of(engine: Any, entry: str, prototype: Any) -> MachineCode:
    """A function that keeps its code alive while it runs."""
    run = prototype(engine.get_function_address(entry))
    run.engine = engine
    return MachineCode(run=run, engine=engine)


def compile_module(text: str) -> Any:
    """The execution engine that holds a module's functions, from disk if it is cached."""
    return _loaded(text, lambda: text)


def compile_when_new(
    facts: str,
    write: Callable[[], str],
    writers: Sequence[Path] = (),
    effort: Effort = Effort.FULL,
) -> MachineCode:
    """Machine code of the program that ``write`` generates, unless it is cached.

    ``facts`` must determine the text, given the code that generates it; ``writers`` are the files
    and folders of that code, to which ``t2s/llvm`` is added.
    """
    engine = _loaded(f"{_digest_of_files(_KIT, *writers)} {facts}", write, effort)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return _code_of(engine, ENTRY, prototype)


@cache
def _digest_of_files(*paths: Path) -> str:
    """A digest of Python files, and of those in folders."""
    digest = sha256()
    for path in paths:
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _loaded(key: str, write: Callable[[], str], effort: Effort = Effort.FULL) -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = _target_machine(effort)
    cache = ObjectCache(cache_directory())
    digest = _name_of(key, effort)
    code = cache.find(digest)
    if code is None:
        code = _object_code(write(), target, effort)
        cache.keep(digest, code)
    empty = binding.parse_assembly("")
    empty.triple = target.triple
    engine = binding.create_mcjit_compiler(empty, target)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _name_of(key: str, effort: Effort) -> str:
    """The file name of machine code, a digest of everything that it depends on."""
    features = binding.get_host_cpu_features().flatten()
    versions = llvmlite_version, str(binding.llvm_version_info), _PIPELINE, effort.name
    triple, cpu = binding.get_process_triple(), binding.get_host_cpu_name()
    return digest_of(key, triple, cpu, features, *versions)


def _object_code(text: str, target: Any, effort: Effort) -> bytes:
    module = binding.parse_assembly(text)
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    if effort is Effort.EVERYTHING:
        tuning = binding.create_pipeline_tuning_options(speed_level=2)
        builder = binding.create_pass_builder(target, tuning)
        builder.getModulePassManager().run(module, builder)
    else:
        _optimize(module, target)
    return bytes(target.emit_object(module))


def _target_machine(effort: Effort) -> Any:
    """The host CPU.  LLVM only fuses a multiplication with an addition on request."""
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=effort.value, jit=True
    )


def _optimize(module: Any, machine: Any) -> None:
    """Promote stack slots to registers, and clean up.

    LLVM's level 2 takes five times as long, and the code is not faster: loop invariants are already
    hoisted when code is emitted.
    """
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


# Machine code on disk, so that a design compiles once and not once per process.
#
# Files are named by a digest of everything that the code depends on.  A file also holds a digest of
# its contents, so a damaged or partial one counts as missing.  Files are written under another name
# and then renamed, so processes may share the directory.  An unusable directory is not an error:
# code is then compiled every time.
#
# Machine code is executed, so it is read only from trusted files: file and directory must be owned
# by the user, the administrator, or the owner of t2s itself, and not be writable by anyone else.

_MOST_FILES = 512
_DIGEST_BYTES = 32
_SUFFIX = ".object"


def cache_directory() -> Path | None:
    """The cache directory of this platform; ``None`` without a home.

    On Linux the XDG Base Directory Specification lets users move it; a relative path is invalid
    there, and ignored.
    """
    moved = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if moved.is_absolute() and sys.platform not in ("win32", "darwin"):
        return moved / "t2s"
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and no entry in the password database
        return None
    if not home.is_absolute():
        return None
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "t2s" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "t2s"
    return home / ".cache" / "t2s"


def digest_of(*parts: str) -> str:
    """A digest of texts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


class ObjectCache:
    """Object files by digest in one directory; the oldest are evicted when there are many.

    A ``directory`` of ``None`` holds nothing, like one that is unusable or not trusted.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def find(self, digest: str) -> bytes | None:
        """The object file, or ``None`` if there is no intact and trusted one."""
        if self._directory is None:
            return None
        path = self._directory / f"{digest}{_SUFFIX}"
        try:
            if not _trusted(self._directory.stat()):
                return None
            with path.open("rb") as file:
                if not _trusted(os.fstat(file.fileno())):
                    return None
                data = file.read()
        except OSError:
            return None
        mark, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if not code or hashlib.sha256(code).digest() != mark:
            return None
        with suppress(OSError):
            os.utime(path)
        return code

    def keep(self, digest: str, code: bytes) -> bool:
        """Write an object file if possible; return whether it is there."""
        if self._directory is None:
            return False
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _trusted(self._directory.stat()):
                return False
            handle, name = tempfile.mkstemp(dir=self._directory, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(code).digest() + code)
                os.replace(name, self._directory / f"{digest}{_SUFFIX}")
            except OSError:
                os.unlink(name)
                raise
        except OSError:
            return False
        with suppress(OSError):
            self._forget_the_oldest(self._directory)
        return True

    def _forget_the_oldest(self, directory: Path) -> None:
        """Delete the least recently used files, and leftovers of processes that died."""
        paths = [path for path in directory.iterdir() if path.suffix in (_SUFFIX, ".part")]
        if len(paths) <= _MOST_FILES:
            return
        ages = []
        for path in paths:
            with suppress(OSError):
                ages.append((path.stat().st_mtime, path.name, path))
        for _, _, path in sorted(ages)[: len(paths) - _MOST_FILES // 2]:
            path.unlink(missing_ok=True)


def _trusted(status: os.stat_result) -> bool:
    """Whether only the user, the administrator and the owner of t2s can have written a path."""
    if sys.platform == "win32":  # Windows: homes are private, and there are no such modes
        return True
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return False
    return status.st_uid in (os.geteuid(), 0, os.stat(__file__).st_uid)


# llvmlite, which has no type annotations, is imported only here.

llvmlite_version: str = import_deferring_sigint("llvmlite").__version__

binding: Any = import_deferring_sigint("llvmlite.binding")
"""Compiling LLVM code."""
