"""From LLVM code to machine code: read, optimized, compiled, and kept on disk."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from t2s.simulator import emit
from t2s.simulator.emit.llvmlite import binding, llvmlite_version
from t2s.simulator.emit.object_cache import ObjectCache, cache_directory, digest_of

ENTRY = "run"
"""The function of a program."""

NEST = "nest"
"""The function of a nest."""

_COMPILED_MODULES = 64
LONG_PROGRAM = 700_000
"""Characters of a program that takes a second to compile well."""

_KIT = Path(emit.__path__[0])
_PIPELINE = "2"
"""To be changed with the passes below: it is part of the name of compiled code on disk."""


class Effort(Enum):
    """How hard LLVM tries when it selects instructions: its own level, at most a tenth of the time.

    ``EVERYTHING`` runs all of its passes, too, for code that moves nothing out of loops itself.
    All give the same values: nothing is reordered, and no multiplication fused.
    """

    QUICK = 0
    FULL = 2
    EVERYTHING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCode:
    """Machine code in memory, as long as this object lives.

    ``run`` takes the address of an arena and numbers (for a program a budget of firings), and
    releases the GIL.
    """

    run: Callable[..., int]
    engine: Any

    @property
    def address(self) -> int:
        """Where ``run`` is."""
        return int(self.engine.get_function_address(ENTRY))


@lru_cache(maxsize=_COMPILED_MODULES)
def compile_text(text: str, effort: Effort = Effort.FULL) -> MachineCode:
    """Machine code for this CPU of a whole program.  Programs used lately are kept."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    return _code_of(_loaded(text, lambda: text, effort), ENTRY, prototype)


def compile_by_use(text: str) -> MachineCode:
    """Machine code of a program: a long one is compiled quickly when it is new.

    That takes a third of the time.  A program of which any code is on disk has come again, or goes
    on after many firings, and is compiled well.
    """
    cache = ObjectCache(cache_directory())
    efforts = (Effort.QUICK, Effort.FULL)
    is_new = all(cache.find(_name_of(text, effort)) is None for effort in efforts)
    quick = len(text) > LONG_PROGRAM and is_new
    return compile_text(text, Effort.QUICK if quick else Effort.FULL)


@lru_cache(maxsize=_COMPILED_MODULES)
def compile_nest(text: str) -> MachineCode:
    """Machine code for this CPU of a nest; ``run`` takes an arena, two PEs, and two rounds."""
    numbers = (ctypes.c_int64,) * 4
    return _code_of(compile_module(text), NEST, ctypes.CFUNCTYPE(None, ctypes.c_void_p, *numbers))


def _code_of(engine: Any, entry: str, prototype: Any) -> MachineCode:
    """A function that keeps its code, whoever else forgets it while it runs."""
    run = prototype(engine.get_function_address(entry))
    run.engine = engine
    return MachineCode(run=run, engine=engine)


def compile_module(text: str) -> Any:
    """The execution engine of a module, which keeps its functions; from disk if it is there."""
    return _loaded(text, lambda: text)


def compile_when_new(
    facts: str,
    write: Callable[[], str],
    writers: Sequence[Path] = (),
    effort: Effort = Effort.FULL,
) -> MachineCode:
    """Machine code of the program that ``write`` writes, if none is kept.

    ``facts`` have to say all that the text depends on besides the code that writes it, and
    ``writers`` are the files and folders where that code is; the kit is always one of them.
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
    """The name of machine code on disk, from all that it depends on."""
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
    """The host CPU.  LLVM fuses no multiplication with an addition that does not ask for it."""
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=effort.value, jit=True
    )


def _optimize(module: Any, machine: Any) -> None:
    """Stack slots become registers, and what that leaves is tidied up.

    All that LLVM would do at level 2 takes five times as long, and the code is not faster: what
    does not change in a loop is computed outside of it as it is emitted.
    """
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
